"""Bins that fit numeric columns, bought with a share of the budget; a method works on them with the rest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.exact import down, exact
from gibbous.core.keywords import answering_class, did_you_mean
from gibbous.core.method_card import About
from gibbous.core.params import Rule, as_json, at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Mechanism, Noise
from gibbous.core.recode import Change, recoded_schema
from gibbous.core.rules import Rule as SchemaRule
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.mechanisms import _inner, _plans
from gibbous.mechanisms._bought_maps import bought_rules, determined, pairs
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms._inner import OWN, Options, Own
from gibbous.mechanisms._narrow_counts import Look, bought_steps, looks_at
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import gaussian_for, geometric_for
from gibbous.structure.known_counts import counts_of_bins
from gibbous.structure.narrow_bins import Grid, merged_edges, narrow_edges, widest_edges

PROOF = "docs/proofs/paid_bins.md"
DIGITS = 15  # of a share: such a decimal and its float are one and the same
part = Rule(lambda v: 0.001 <= v <= 0.9, "between 0.001 and 0.9")
fine = Rule(lambda v: 2 <= v <= 4096, "between 2 and 4096")


@answering_class
@dataclass(frozen=True, slots=True)
class PaidBins:
    """Buy noisy counts of narrow bins, merge these to bins of about equal mass, and run a method on them.

    Numeric columns have public bounds, and so a public grid of narrow bins. A share of the budget
    buys their noisy counts, and then those of parts of the bins that clearly hold records, up to twice,
    where single values with many records stand out. Everything that is made of these is free: the cut
    points that the method works with, and the law inside each bin from which output numbers are drawn.
    Missing stays a code of its own, whole numbers stay whole, and other columns are as they were.

    Guarantee:
        That of the method inside at the budget given here, add/remove or replace one, for counts of
        narrow bins and everything else together. No paper describes this combinator. Proven here:
        composition, docs/proofs/paid_bins.md. Audited: contract, with the saboteurs of the method
        inside; counts that nobody charges and cut points of raw counts in tests/sets.
    Source:
        This project; paid quantiles as in perturbed_histogram.
    """

    about: ClassVar[About] = _inner.Card(  # type: ignore[assignment]
        About(
            name="paid_bins",
            title="on paid bins",
            paper="this project",
            unit="artifact",
            kind="approximate",
            releases="tables",
            claimed="nothing: no paper describes this combinator",
            proven="the guarantee of the method inside, for narrow counts and the method together",
            audited="noisy cells of the running code; unpaid counts and cut points of raw counts are caught",
        )
    )

    method: str | Mechanism = param(
        "noisy_pegs", help="The method inside: a registered name, or a mechanism."
    )
    bins: int = param(16, at_least(1), unit="bins", help="Most bins of a column in the method.")
    within: Literal["paid", "uniform"] = param(
        "paid", help="Numbers inside a bin: by the narrow counts, or evenly."
    )
    share: float = param(0.2, part, unit="share", help="Of the budget, for the narrow counts.")
    grid: Grid = param(
        "auto",
        help="Narrow bins: auto (both, or each value), equal width, log (equal ratios), the schema's.",
    )
    narrow: int = param(256, fine, unit="bins", help="Narrow bins of a column (not with schema).")
    columns: tuple[str, ...] = param(
        (), help="Numeric or date columns; all numeric ones if this and maps are empty."
    )
    maps: tuple[str, ...] = param(
        (), help="Details of rules with bought = true: which group each level belongs to is bought."
    )
    epsilon: float | Own | None = param(
        OWN, budget, unit="nats", help="The whole budget; own: that of the method inside."
    )
    delta: float | Own | None = param(
        OWN, probability, help="Of everything together; own: that of the method inside."
    )
    relation: Relation = param(
        OWN, help="Which tables count as neighbors; own: that of the method inside."
    )
    options: Options = param((), help="Further parameters of the method inside, by name.")

    def __post_init__(self) -> None:
        for name in ("columns", "maps"):
            if isinstance(names := getattr(self, name), list):
                object.__setattr__(self, name, tuple(names))
        _inner.settle(self)
        check(self)
        _check_inside(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: the total of the method inside at the whole budget.

        Raises:
            PrivacyRefused: the method inside looks at numbers itself.
            UsageError: `columns` names none, or one that keeps its bins.
        """
        places = self._places(schema)
        if not places and not self.maps:
            known = _inner.made(self).plan(schema, rows, sets)
            _check_numbers(known, str(self.method))
            return replace(known, mechanism=self.about.name, params=as_json(self))
        split = self._split(schema, places, rows, sets)
        with in_account("gaussian") if split.part else nullcontext():
            plan, total = split.inside.plan(split.widest, rows, sets), split.known.total
        spends, claim = plan.spends, split.known.claim
        if split.part:
            total, claim = split.part.total(total), split.part.total(claim)
            spends = tuple(replace(s, claim=split.part.counted(s.claim)) for s in spends)
        cells = sum(len(cut) - 1 for cut in split.edges.values())
        crossed = sum(schema[r.detail].size * schema[r.group].size for r in split.rules)
        parts = "parts of those that clearly hold records"
        most = _plans.most_rows(schema)
        bought = [
            Spend(
                f"counts of {look.bins} of {', '.join(schema.names[j] for j in look.which)}",
                look.noise.cost(len(look.which), total.relation, most),
                f"{look.words}, {parts if place else f'{cells} narrow bins'}",
            )
            for place, look in enumerate(split.looks)
            if look.which
        ] + [
            Spend(
                f"counts of pairs: {rule.words()}",
                split.looks[0].noise.cost(1, total.relation, most),
                f"{split.looks[0].words}, the most frequent group of each level is kept",
            )
            for rule in split.rules
        ]
        return replace(
            plan,
            mechanism=self.about.name,
            params=as_json(self),
            claim=replace(claim, source=f"{PROOF}; {claim.source}"),
            total=replace(total, source=f"{PROOF}; {total.source}"),
            published="nothing: no paper describes this combinator",
            spends=(*bought, *spends),
            cells=plan.cells + cells + crossed,
            memory_bytes=plan.memory_bytes
            + 24 * (cells + crossed)
            + (rows or _plans.USUAL_ROWS) * (8 * len(places) + len(schema)),
            errors=(*plan.errors, ("noise sd of a narrow bin, counts", split.looks[0].sigma)),
            numbers=places,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend: counts of narrow bins and of pairs, then the method inside on what they were made to."""
        schema = curator.schema
        places = self._places(schema)
        if not places and not self.maps:
            return _inner.made(self).run(curator, rows, sets)
        split = self._split(schema, places, rows, sets)
        steps = bought_steps(curator, split.edges, split.looks)
        sigma, within = split.looks[0].sigma, self.within == "paid"
        bins = {
            j: merged_edges(one.edges, one.counts, sigma, self.bins, within=within)
            for j, one in steps.items()
        }
        merged: dict[int, Change] = {**bins}
        if split.rules:
            tables = curator.noisy_counts(pairs(schema, split.rules), split.looks[0].noise)
            merged |= determined(schema, split.rules, tables)
        sizes = recoded_schema(schema, bins).sizes
        counted = {
            j: counts_of_bins(one.looks, bins[j].edges, sizes[j]) for j, one in steps.items()
        }
        known = {j: one for j, one in counted.items() if one is not None}
        return split.inside.run(curator.recoded(merged, known=known), rows, sets)

    def _places(self, schema: Schema) -> tuple[int, ...]:
        """Columns that get new bins: those named, or all numeric ones that no structural zero names.

        None where maps alone are bought.
        """
        bound = {name for rule in schema.impossible for name, _ in rule.where}
        for name in self.columns:
            if name not in schema.names or not schema[name].binned or name in bound:
                raise _unfit(name, schema)
        free = [
            j
            for j, column in enumerate(schema)
            if column.edges[:1] < column.edges[-1:] and column.name not in bound
        ]
        if self.columns:
            return tuple(j for j in free if schema.names[j] in self.columns)
        if self.maps:
            return ()
        return tuple(j for j in free if schema.columns[j].kind == "numeric")

    def _split(self, schema: Schema, places: Sequence[int], rows: int | None, sets: int) -> _Split:
        """How the budget is divided: in Gaussian noise where that is less in the loudest count of bins."""
        found = self._divided(schema, places, rows, sets)
        if found.part is None:
            with in_account("gaussian"):
                other = self._divided(schema, places, rows, sets)
            loudest = [max(look.sigma for look in one.looks) for one in (found, other)]
            # With less epsilon, a method that bought one table may be better off with Gaussian noise.
            left = found.inside.plan(found.widest, rows, sets).total.kind
            if other.part and (loudest[1] < loudest[0] or left != found.known.total.kind):
                return other
        return found

    def _divided(
        self, schema: Schema, places: Sequence[int], rows: int | None, sets: int
    ) -> _Split:
        edges = {j: narrow_edges(schema.columns[j], self.grid, self.narrow) for j in places}
        most = {j: widest_edges(schema.columns[j], cut, self.bins) for j, cut in edges.items()}
        rules = bought_rules(schema, self.maps)
        widest = recoded_schema(schema, most)
        known = _inner.made(self).plan(widest, rows, sets)
        _check_numbers(known, str(self.method))
        epsilon = known.total.epsilon
        rest, shape = 1 - exact(self.share), (known.total.relation, _plans.most_rows(schema))
        part = None
        if _inner.gaussian(known):
            part = _inner.share_of(self, rest, lambda inside: inside.plan(widest, rows, sets))
            smaller, paid = part.epsilon, part.whole - part.taken
        else:
            smaller = float(down(epsilon * rest, DIGITS))
            paid = epsilon - exact(smaller)

        def noise_for(share: Fraction, tables: int) -> Noise:
            if part is None:
                return geometric_for(paid * share, tables, *shape)
            return gaussian_for(paid * share, tables, *shape, measure=part.measure)

        looks = looks_at(schema, edges, noise_for, finer=self.grid != "schema", beside=len(rules))
        inside = _inner.made(self, epsilon=smaller)
        return _Split(edges, looks, rules, widest, known, part, inside)


@dataclass(frozen=True, slots=True)
class _Split:
    """What a share of the budget buys, and the method on the rest.

    Attributes:
        edges: of the narrow bins, by position of the column.
        looks: at these, and at finer ones.
        rules: whose maps are bought.
        widest: the schema with as many bins as they may be merged to.
        known: the plan of the method inside at the whole budget.
        part: of a Gaussian budget, what the method inside takes.
        inside: the method inside at what is left.
    """

    edges: dict[int, tuple[float, ...]]
    looks: tuple[Look, ...]
    rules: tuple[SchemaRule, ...]
    widest: Schema
    known: Plan
    part: _inner.Share | None
    inside: Mechanism


def _check_inside(combinator: PaidBins) -> None:
    """Refuse a method without a budget for the whole release.

    Raises:
        PrivacyRefused: it has none, or pays for each row.
        UsageError: it is this combinator again.
    """
    name = str(combinator.method)
    if name == "paid_bins":
        raise UsageError(
            "NESTED",
            "PaidBins was asked for around paid_bins.",
            "Bins are bought once.",
            "Leave one of them out; per_set and parallel may be inside.",
        )
    about = _inner.made(combinator).about
    if about.kind not in ("pure", "approximate") or about.unit in ("row", "block"):
        raise PrivacyRefused(
            "SHARE",
            f"The method inside paid_bins is {name}.",
            "It is a method whose epsilon is that of the whole release, of which a share buys bins.",
            "Use for example method='adaptive_gibbs', 'noisy_pegs' or 'laplace'; or declare cut points.",
        )


def _unfit(name: str, schema: Schema) -> UsageError:
    if name in schema.names:
        fix = "Leave it out of columns: it keeps the bins of the schema."
    else:
        fix = did_you_mean(name, schema.names, "Check the spelling.")
    return UsageError(
        "COLUMNS",
        f"columns of PaidBins names {name!r}.",
        "It names numeric or date columns of the schema that no [[impossible]] names.",
        fix,
    )


def _check_numbers(known: Plan, name: str) -> None:
    if known.numbers:
        raise PrivacyRefused(
            "OWNBINS",
            f"The method inside paid_bins is {name}, which looks at numbers or cuts bins itself.",
            "Bins are bought for a method that works on the bins it is given.",
            f"Use {name} without paid_bins, or with the schema's bins.",
        )
