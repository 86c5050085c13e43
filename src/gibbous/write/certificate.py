"""The certificate of a release: what was done, promised and charged, without one exact count."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

from gibbous.core.about import About
from gibbous.core.claim import Claim, Relation
from gibbous.core.imprint import NONE_GIVEN, Imprint
from gibbous.core.plan import Plan
from gibbous.core.release import Receipt
from gibbous.core.schema import Schema, fact_words
from gibbous.core.tables import Tables
from gibbous.privacy.ledger import Hold

FORMAT = "gibbous-receipt/1"
LIBRARIES = ("gibbous", "numpy", "opendp", "polars", "numba")
NOT_DP = "not differentially private"

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
    *,
    seed: int,
    rows: tuple[int, ...],
    digest: str,
    tables: Tables | None,
    numbers: tuple[int, ...] = (),
    files: dict[str, Any] | None = None,
) -> Receipt:
    """Write down one release.

    Args:
        hold: committed.
        seed: sampling seed; the noise has none.
        rows: rows of each set.
        digest: of the tables or drawn rows, as committed.
        tables: the public tables; None when the rows were what was paid for.
        numbers: positions of columns of such rows that were drawn as numbers, not as bins.
        files: formats and guarded cells of the written sets.
    """
    plan, about, unit = facts.plan, facts.about, facts.schema.unit
    values: dict[str, Any] = {
        "format": FORMAT,
        "imprint": facts.imprint.to_json(),
        "guarantee": guarantee(plan, facts.uncovered),
        "differentially_private": plan.total.is_dp and not facts.uncovered,
        "total": plan.total.to_json(),
        "claim": plan.claim.to_json(),
        "relation": facts.relation,
        "unit": {"words": unit.words(), "max_rows": unit.max_rows} if unit else None,
        "published": plan.published,
        "method": {
            "name": about.name,
            "title": about.title,
            "paper": about.paper,
            "claimed": about.claimed,
            "proven": about.proven,
            "audited": about.audited,
            "params": plan.params,
        },
        "uncovered": list(facts.uncovered),
        "discovered": discovered(facts.schema),
        "assumptions": assumptions(facts.schema, plan),
        "plan": plan.to_json(),
        "rows": list(rows),
        "rows_from": rows_from(plan, tables),
        "sets": len(rows),
        "sanitized": "once" if _once(about, tables) else "per set",
        "seed": seed,
        "digest": digest,
        "tables": None if tables is None else len(tables.published()),
        "numbers": list(numbers),
        "files": files or {},
        "versions": versions(),
        "ledger": hold.proof(),
    }
    return Receipt(values)


def _once(about: About, tables: Tables | None) -> bool:
    """Whether all sets come from one noisy answer."""
    return about.shared if tables is None else tables.noisings == 1


def rows_from(plan: Plan, tables: Tables | None) -> str:
    """Where the number of rows is from: "given", "noisy count", or a public "number of records"."""
    if plan.rows is not None:
        return "given"
    return "number of records" if tables is None else "noisy count"


def guarantee(plan: Plan, uncovered: tuple[str, ...] = ()) -> str:
    """The guarantee in words, the total of everything first."""
    total = plan.total.words()
    if not plan.total.is_dp:
        return total if NOT_DP in total else f"{total}; {NOT_DP}"
    if plan.claim.unit in ("row", "block"):
        total += f"; {plan.headline()}"
    if uncovered:
        total += f"; {NOT_DP} with respect to {fact_words(uncovered)}"
    return total


def discovered(schema: Schema) -> list[str]:
    """Facts of the released schema that were paid for, as 'column: fact'."""
    return [
        f"{column.name}: {fact}"
        for column in schema
        for fact, source in column.sources
        if source == "discovered"
    ]


def assumptions(schema: Schema, plan: Plan) -> list[str]:
    """What must hold for the guarantee to hold."""
    found = list(_ASSUMED)
    unit, claim = schema.unit, plan.total
    if unit is not None and unit.kind == "person":
        found.append(
            f"column {unit.column} identifies persons; of each, at most {unit.max_rows} rows were kept, "
            "chosen at random"
        )
    if plan.rows is not None and claim.is_dp:
        found.append("the number of rows asked for was chosen without counting the records")
    if claim.is_dp and claim.relation == "replace_one":
        found.append("the number of records is public")
    return found


def versions() -> dict[str, str]:
    """Versions of this package and of what it computes with."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def claim_of(values: dict[str, Any], name: str) -> Claim:
    """A claim of a receipt that was read from a file.

    Raises:
        ValueError, KeyError, TypeError: it is not one.
    """
    claim = Claim.from_json(values[name])
    if min(claim.epsilon, claim.delta, claim.rho) < 0:
        raise ValueError("a negative claim")
    return claim
