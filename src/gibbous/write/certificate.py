"""The certificate of a release: what was done, promised and charged, without one exact count."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gibbous.core.claim import NUMBERS, Claim, Relation
from gibbous.core.codes import Codes
from gibbous.core.method_card import About
from gibbous.core.plan import Plan, Spend
from gibbous.core.release import Receipt
from gibbous.core.request import NONE_GIVEN, Imprint
from gibbous.core.schema import Schema, fact_words
from gibbous.core.tables import Tables
from gibbous.privacy.calibrate.gdp import delta_of
from gibbous.privacy.ledger import Hold
from gibbous.write.kept_rules import Changed, rules_of_receipt

FORMAT = "gibbous-receipt/1"
LIBRARIES = ("gibbous", "numpy", "opendp", "polars", "numba")
NOT_DP = "not differentially private"
_CARD = ("name", "title", "paper", "claimed", "proven", "audited")  # what it says of the method

_ELSEWHERE = (
    "the noisy tables were made as their maker states: price, noise, and whom they protect",
    "facts marked declared in schema.toml were known without looking at the data",
    "other releases of the same data add to this one; whoever holds the data sums them",
)
_ASSUMED = (
    "the person who ran it, their account, the kernel and its random source are trusted",
    "facts marked declared in schema.toml were known without looking at the data",
    "method, budget, contexts and bins were chosen without looking at the records",
    "noise and paid draws come from the operating system's randomness; no seed reaches them",
    "other releases of the same data add to this one; the ledger of the data holder sums them",
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the run knows and the certificate says.

    Attributes:
        schema: public.
        plan: cost before data.
        about: the method's card.
        relation: neighbor relation of the run.
        uncovered: facts read off the data that a claim of differential privacy does not cover.
        imprint: who stands behind the release, as given.
    """

    schema: Schema
    plan: Plan
    about: About
    relation: Relation
    uncovered: tuple[str, ...] = ()
    imprint: Imprint = NONE_GIVEN


def certify(
    facts: Facts,
    hold: Hold,
    result: Tables | Codes,
    *,
    seed: int,
    rows: tuple[int, ...],
    files: dict[str, Any] | None = None,
    changed: Changed = (),
) -> Receipt:
    """Write down one release.

    Args:
        hold: committed to the digest of `result`.
        result: public tables, or rows where these were what was paid for.
        seed: sampling seed; the noise has none.
        rows: rows of each set.
        files: formats and guarded cells of the written sets.
        changed: of each set, the rows that each rule changed.
    """
    plan, about, unit = facts.plan, facts.about, facts.schema.unit
    tables = result if isinstance(result, Tables) else None
    numbers = [] if isinstance(result, Tables) else [at for at, _ in result.numbers]
    # Whether all sets come from one noisy answer.
    once = about.shared if tables is None else tables.noisings == 1
    drawn_from = "number of records" if tables is None else "noisy count"
    values: dict[str, Any] = {
        "format": FORMAT,
        "imprint": facts.imprint.to_json(),
        "guarantee": guarantee(plan, facts.schema, facts.uncovered),
        "differentially_private": plan.total.is_dp and not facts.uncovered,
        "total": plan.total.to_json(),
        "claim": plan.claim.to_json(),
        "relation": facts.relation,
        "unit": {"words": unit.words(), "max_rows": unit.max_rows} if unit else None,
        "published": plan.published,
        "method": {**{name: getattr(about, name) for name in _CARD}, "params": plan.params},
        "uncovered": list(facts.uncovered),
        "discovered": discovered(facts.schema),
        "assumptions": assumptions(facts.schema, plan),
        "plan": plan.to_json(),
        "rows": list(rows),
        "rows_from": drawn_from if plan.rows is None else "given",
        "sets": len(rows),
        "sanitized": "once" if once else "per set",
        "seed": seed,
        "digest": hold.sha256,
        "tables": None if tables is None else len(tables.published()),
        "numbers": numbers,
        "files": files or {},
        **rules_of_receipt(facts.schema, changed),
        "versions": versions(),
        "ledger": hold.proof(),
    }
    return Receipt(values)


def guarantee(
    plan: Plan, schema: Schema, uncovered: tuple[str, ...] = (), given: tuple[str, ...] = ()
) -> str:
    """The guarantee in words, the total of everything first; then what it does not cover.

    That is facts read off the data, and columns that were given, not drawn.
    """
    total = plan.total.words()
    if not plan.total.is_dp:
        total += "" if NOT_DP in total else f"; {NOT_DP}"
        return total + given_gap(given)
    if plan.claim.unit in ("row", "block"):
        total += f"; {plan.headline()}"
    total += earlier(schema, plan)
    if uncovered:
        total += f"; {NOT_DP} with respect to {fact_words(uncovered)}"
    return total + given_gap(given)


def given_gap(given: tuple[str, ...]) -> str:
    """What a guarantee in words ends with where some columns were given."""
    return f"; {NOT_DP} with respect to the given columns {', '.join(given)}" if given else ""


def discovered(schema: Schema) -> list[str]:
    """Facts of the released schema that were paid for, as 'column: fact'."""
    return [
        f"{column.name}: {fact}"
        for column in schema
        for fact, source in column.sources
        if source == "discovered"
    ]


def bought_before(schema: Schema, plan: Plan) -> list[str]:
    """Facts of a schema that were paid for, and that no part of this plan buys: an earlier purchase did.

    A plan that discovers buys all of them. Other plans buy at most bins, of columns that were declared.
    """
    if "discovery" in plan.params:
        return []
    facts, bins = discovered(schema), any("bins" in s.what + s.detail for s in plan.spends)
    known = {fact.rpartition(": ")[0] for fact in facts if not fact.endswith(": bins")}
    return [fact for fact in facts if not bins or fact.rpartition(": ")[0] in known]


def earlier(schema: Schema, plan: Plan) -> str:
    """What a guarantee in words says of facts that an earlier purchase paid for."""
    before = bought_before(schema, plan)
    return f"; what was paid before for {fact_words(before)} adds to it" if before else ""


def assumptions(schema: Schema, plan: Plan, given: tuple[str, ...] = ()) -> list[str]:
    """What must hold for the guarantee to hold."""
    unit, claim = schema.unit, plan.total
    assumed = list(_ELSEWHERE if claim.basis == "stated" else _ASSUMED)
    if unit is not None and unit.kind == "person":
        assumed.append(
            f"column {unit.column} identifies persons, each by one text, blanks around it aside; of each, "
            f"at most {unit.max_rows} rows were kept, chosen at random"
        )
    if claim.is_dp and (before := bought_before(schema, plan)):
        assumed.append(
            f"an earlier purchase from the same data paid for {fact_words(before)}; its price is no part "
            "of the total, and adds to it"
        )
    bought = [column.source("missing") == "discovered" for column in schema]
    if any(bought):
        facts = plan.params.get("discovery")
        public = isinstance(facts, Mapping) and bool(facts.get("types_are_public"))
        assumed.append(
            f"the names {'and types ' if public else ''}of the columns, and how text is cut into cells, are "
            "public; all else was paid for or is marked declared"
        )
    if not all(bought) and claim.basis != "stated":
        assumed.append("the names of declared columns, and their types in the source, are public")
    if plan.rows is not None and claim.is_dp:
        assumed.append("the number of rows asked for was chosen without counting the records")
    if claim.is_dp and claim.relation == "replace_one":
        assumed.append("the number of records is public")
    if given:
        assumed.append(
            "the given rows, and how many they are, were not taken from the data behind the tables"
        )
    return assumed


def versions() -> dict[str, str]:
    """Versions of this package and of what it computes with."""
    from importlib.metadata import PackageNotFoundError, version

    installed = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "unknown"
    return installed


def claim_of(values: Mapping[str, Any], name: str) -> Claim:
    """A claim of a receipt that was read from a file; ValueError, KeyError or TypeError if it is none."""
    claim = Claim.from_json(values[name])
    if min(getattr(claim, name) for name in NUMBERS) < 0:
        raise ValueError("a negative claim")
    both = claim.kind == "approximate" and claim.mu_squared > 0
    if both and delta_of(claim.mu_squared, claim.epsilon) > claim.delta:
        raise ValueError("a mu that its epsilon and delta do not follow from")
    return claim


def facts_of(receipt: Mapping[str, Any], schema: Schema) -> Facts:
    """What the run knew, as far as the certificate says it."""
    method, claim = receipt["method"], claim_of(receipt, "claim")
    about = About(
        **{name: method[name] for name in _CARD},
        unit=claim.unit,
        kind=claim.kind,
        releases="rows" if receipt["tables"] is None else "tables",
    )
    return Facts(
        schema=schema,
        plan=plan_of(receipt["plan"]),
        about=about,
        relation=receipt["relation"],
        uncovered=tuple(receipt["uncovered"]),
        imprint=Imprint.from_json(receipt.get("imprint", {})),
    )


def plan_of(data: Mapping[str, Any]) -> Plan:
    """The plan of a certificate; ValueError, KeyError or TypeError if it is none."""
    return Plan(
        mechanism=str(data["mechanism"]),
        params=dict(data["params"]),
        rows=data["rows"],
        sets=int(data["sets"]),
        claim=claim_of(data, "claim"),
        total=claim_of(data, "total"),
        published=str(data["published"]),
        spends=_spends(data["spends"]),
        cells=int(data["cells"]),
        memory_bytes=int(data["memory_bytes"]),
        errors=tuple((str(k), float(v)) for k, v in data["errors"].items()),
        warnings=tuple(str(w) for w in data["warnings"]),
        beside=_spends(data.get("beside", ())),
    )


def _spends(data: Iterable[Any]) -> tuple[Spend, ...]:
    return tuple(Spend(str(s["what"]), claim_of(s, "claim"), str(s["detail"])) for s in data)
