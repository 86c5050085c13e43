"""Claims: what a mechanism promises, of which kind, for which unit and neighbor relation.

Claims are exact: parameters are fractions, and the algebra (`then`, `times`) never rounds
in our favor. A claim is never relabeled: the relation it was proven under stays with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

from gibbous.core.errors import PrivacyRefused
from gibbous.core.exact import from_text, root_up, text

Kind = Literal["pure", "zcdp", "gdp", "approximate", "probabilistic", "l_diversity", "none"]
Measure = Literal["pure", "zcdp", "gdp"]
"""What purchases are added up in: epsilon, rho, or the square of mu."""
Unit = Literal["artifact", "block", "row", "dataset"]
Relation = Literal["add_remove", "replace_one"]
Basis = Literal["proven", "published", "stated", "heuristic"]

NUMBERS = ("epsilon", "delta", "rho", "mu_squared", "l")
_WORDS = {
    "kind": get_args(Kind),
    "unit": get_args(Unit),
    "relation": get_args(Relation),
    "basis": get_args(Basis),
}
_WEAKER: tuple[Basis, ...] = get_args(Basis)
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, repr=False)
class Claim:
    """One guarantee.

    Attributes:
        kind: pure (epsilon), zcdp (rho) and gdp (mu-Gaussian DP), each of both but for an event of
            probability delta where it has one, approximate (epsilon, delta)-DP, probabilistic
            (epsilon, delta)-probabilistic DP, l_diversity (l), or none.
        epsilon, delta, rho: exact; those the kind does not use are 0.
        mu_squared: exact, of kind gdp; and of an approximate claim that is kept by an account of
            Gaussian DP: the release is mu-GDP, too, without any delta.
        l: entropy l-diversity of each redrawn value; 1 means nothing.
        unit: what the budget buys: the released artifact (rows are free after it), a block of rows, one
            row, or the whole data set.
        relation: the neighbor relation of the proof.
        basis: proven here, published (only the paper says so), stated (only the maker of noisy tables
            says so), heuristic.
        source: paper and equation, or the proof page.
        fixed: columns in which neighbors agree: they are public, and the claim does not cover them.
    """

    kind: Kind
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    l: Fraction = Fraction(1)  # noqa: E741 - the field's name for it
    unit: Unit = "artifact"
    relation: Relation = "add_remove"
    basis: Basis = "proven"
    source: str = ""
    fixed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Claim: {self.words()}>"

    @property
    def is_dp(self) -> bool:
        """Whether this is a claim of differential privacy (of any kind)."""
        return self.kind in ("pure", "zcdp", "gdp", "approximate", "probabilistic")

    @property
    def measure(self) -> Measure:
        """In which purchases against this claim are counted, as was decided before any data."""
        if self.kind == "pure":
            return "pure"
        return "gdp" if self.mu_squared else "zcdp"

    @property
    def mu(self) -> Fraction:
        """Of mu-Gaussian DP, rounded up; 0 where this is not claimed."""
        return root_up(self.mu_squared)

    @property
    def price(self) -> Fraction:
        """The number that purchases of this kind are added up in: rho, mu squared, or epsilon."""
        return {"zcdp": self.rho, "gdp": self.mu_squared}.get(self.kind, self.epsilon)

    def then(self, other: Claim) -> Claim:
        """Both on the same records, one after the other (sequential composition).

        Raises:
            PrivacyRefused: the two claims are under different neighbor relations, or of kinds
                that have no common definition (probabilistic with (epsilon, delta), or DP with none).
        """
        if self.relation != other.relation:
            raise _mixed("neighbor relations", self.relation, other.relation)
        kind = _joint_kind(self.kind, other.kind)
        return replace(
            self,
            kind=kind,
            fixed=tuple(dict.fromkeys(self.fixed + other.fixed)),
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            rho=self.rho + other.rho,
            # One that says nothing of GDP leaves nothing to say of both.
            mu_squared=self.mu_squared + other.mu_squared
            if self.mu_squared and other.mu_squared
            else Fraction(0),
            l=min(self.l, other.l),
            unit=self.unit if self.unit == other.unit else "dataset",
            basis=max(self.basis, other.basis, key=_WEAKER.index),
            source=self.source if self.source == other.source else f"{self.source}; {other.source}",
        )

    def times(self, count: int, unit: Unit = "dataset") -> Claim:
        """The same promise `count` >= 0 times on the same records: a file of rows, m sets, p tables."""
        if count < 0:
            raise ValueError("count must be >= 0")
        return replace(
            self,
            epsilon=self.epsilon * count,
            delta=min(self.delta * count, Fraction(1)),
            rho=self.rho * count,
            mu_squared=self.mu_squared * count,
            unit=unit,
        )

    def words(self) -> str:
        """The claim in words, complete: kind, numbers, what pays, relation, basis."""
        if not self.is_dp:
            return self.amount()
        pays = f"per {self.unit}" if self.unit in ("row", "block") else "in total"
        relation = "add or remove one" if self.relation == "add_remove" else "replace one"
        public = f" with {', '.join(self.fixed)} public" if self.fixed else ""
        return f"{self.amount()} {pays} ({relation}{public}, {self.basis})"

    def amount(self) -> str:
        """Kind and numbers alone: for a part of a cost, whose relation stands beside the total."""
        beside = f", delta = {short(self.delta)}" if self.delta else ""
        return {
            "pure": f"epsilon = {short(self.epsilon)}",
            "zcdp": f"rho = {short(self.rho)} (zero-concentrated)" + beside,
            "gdp": f"mu = {short(self.mu)} (Gaussian)" + beside,
            "approximate": f"epsilon = {short(self.epsilon)}, delta = {short(self.delta)}",
            "probabilistic": f"epsilon = {short(self.epsilon)}, delta = {short(self.delta)} "
            "(probabilistic)",
            "l_diversity": f"entropy l-diversity, l = {short(self.l)}; not differentially private",
            "none": "no guarantee; not differentially private",
        }[self.kind]

    def to_json(self) -> dict[str, str]:
        """Exact, as text: fractions never pass through a float."""
        # A claim that says nothing of GDP reads as it did before there was such a kind.
        said = [key for key in NUMBERS if key != "mu_squared" or self.mu_squared]
        numbers = {key: text(getattr(self, key)) for key in said}
        words = {key: str(getattr(self, key)) for key in ("unit", "relation", "basis", "source")}
        fixed = {"fixed": json.dumps(self.fixed)} if self.fixed else {}
        return {"kind": self.kind, **numbers, **words, **fixed}

    @staticmethod
    def from_json(data: dict[str, str]) -> Claim:
        """Read what `to_json` wrote; ValueError or KeyError if the data are not a claim."""
        for key, known in _WORDS.items():
            if data[key] not in known:
                raise ValueError(f"unknown {key} of a claim")
        if not isinstance(data["source"], str):
            raise ValueError("a source that is not text")
        return Claim(
            kind=data["kind"],  # type: ignore[arg-type]
            **{key: from_text(data[key]) for key in NUMBERS if key != "mu_squared"},
            mu_squared=from_text(data.get("mu_squared", "0")),
            unit=data["unit"],  # type: ignore[arg-type]
            relation=data["relation"],  # type: ignore[arg-type]
            basis=data["basis"],  # type: ignore[arg-type]
            source=data["source"],
            fixed=tuple(str(name) for name in json.loads(data.get("fixed", "[]"))),
        )


def pure(epsilon: Fraction, **rest: object) -> Claim:
    """epsilon-DP."""
    return replace(Claim("pure", epsilon=epsilon), **rest)  # type: ignore[arg-type]


def zcdp(rho: Fraction, **rest: object) -> Claim:
    """rho-zCDP."""
    return replace(Claim("zcdp", rho=rho), **rest)  # type: ignore[arg-type]


def gdp(mu_squared: Fraction, **rest: object) -> Claim:
    """mu-Gaussian DP, stated by the square of mu, which is what adds up."""
    return replace(Claim("gdp", mu_squared=mu_squared), **rest)  # type: ignore[arg-type]


def approximate(epsilon: Fraction, delta: Fraction, **rest: object) -> Claim:
    """(epsilon, delta)-DP."""
    return replace(Claim("approximate", epsilon=epsilon, delta=delta), **rest)  # type: ignore[arg-type]


def l_diverse(l: Fraction, **rest: object) -> Claim:  # noqa: E741
    """Entropy l-diversity of each redrawn value; not differential privacy."""
    return replace(Claim("l_diversity", l=l), **rest)  # type: ignore[arg-type]


def no_claim(**rest: object) -> Claim:
    """No guarantee."""
    return replace(Claim("none"), **rest)  # type: ignore[arg-type]


def short(value: Fraction) -> str:
    """A number for people: up to six digits, never rounded down."""
    number = float(value)
    shown = f"{number:.6g}"
    if Fraction(shown) < value:  # shown must not be smaller than what is true
        shown = f"{number * (1 + 5e-6):.6g}"
    return shown


def _joint_kind(first: Kind, second: Kind) -> Kind:
    if first == second:
        return first
    if {first, second} == {"pure", "approximate"}:
        return "approximate"
    raise _mixed("kinds of claim", first, second)


def _mixed(what: str, first: str, second: str) -> PrivacyRefused:
    return PrivacyRefused(
        "MIXED",
        f"Two {what} cannot be added: {first} and {second}.",
        "A total is stated in one definition.",
        "Convert one of them by a proven conversion (privacy.accountant), or state them apart.",
    )
