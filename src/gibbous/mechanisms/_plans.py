"""What the plans of all mechanisms share: sizes, memory, expected error, warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from gibbous.core.claim import Claim, approximate, no_claim, pure
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError
from gibbous.core.exact import exact
from gibbous.core.params import as_json
from gibbous.core.plan import Plan, Spend
from gibbous.core.schema import Schema
from gibbous.core.tables import NoiseInfo
from gibbous.privacy.calibrate.gdp import mu_squared_for

Outlook = tuple[tuple[tuple[str, float], ...], tuple[str, ...]]
"""What a plan says beside the price: expected errors as (name, value), and warnings."""

NOTHING: Outlook = ((), ())
USUAL_ROWS = 1_000_000  # stands for the unknown number of records in memory estimates
HALF = math.sqrt(2 / math.pi) / 2  # E|noise| of one cell is sqrt(2/pi) sd; half of L1 is TV


def most_rows(schema: Schema) -> int:
    """Most rows of one privacy unit."""
    return schema.unit.max_rows if schema.unit else 1


def is_pure(mechanism: Any) -> bool:
    """Whether a mechanism's purchases are of pure epsilon: by its card, or by the noise it offers."""
    offered = any(f.name == "noise" for f in fields(mechanism))
    return mechanism.about.kind == "pure" and (not offered or mechanism.noise == "laplace")


def proof(mechanism: Any) -> str:
    """The page that proves a mechanism's claim."""
    return f"docs/proofs/{mechanism.about.name}.md"


def redrawn(schema: Schema) -> int:
    """Columns with more than one level: the others cost nothing."""
    return max(1, sum(size > 1 for size in schema.sizes))


def pays(mechanism: Any) -> str:
    """What is paid for, or published, where rows themselves are drawn from the records."""
    if mechanism.about.kind == "none":
        return "Rows are drawn from the records, and their number is published"
    if mechanism.about.unit in ("row", "block"):
        return f"Each drawn {mechanism.about.unit} is what costs"
    return "The file of drawn rows is what costs"


def paid_rows(mechanism: Any, rows: int | None, sets: int) -> int:
    """Rows of all sets, for a mechanism that pays by the row.

    Raises:
        ParameterError: the number of rows is not given.
    """
    if rows is None:
        raise ParameterError(
            "ROWS",
            f"{mechanism.about.name} was asked for without a number of rows.",
            f"{pays(mechanism)}, so the number must be fixed before the run.",
            "Give --rows, or use adaptive_gibbs, whose rows are free after its tables.",
        )
    return rows * sets


def rows_given(relation: str, otherwise: str = "") -> str:
    """The warning about a number of rows that is fixed beforehand; empty where that number is public.

    Args:
        relation: of the claim.
        otherwise: what else can be done.
    """
    if relation != "add_remove":
        return ""
    return (
        "The number of rows is published as given, and add/remove protects the number of records: "
        f"choose it without counting them{otherwise}."
    )


def total(mechanism: Any) -> Claim:
    """The guarantee of everything that a mechanism with a budget for all of it releases."""
    said = {"relation": mechanism.relation, "source": proof(mechanism)}
    if is_pure(mechanism):
        return pure(exact(mechanism.epsilon), unit=mechanism.about.unit, **said)
    return approximate(exact(mechanism.epsilon), exact(mechanism.delta), **said)


def row_plan(
    mechanism: Any,
    rows: int | None,
    sets: int,
    *,
    spend: Spend,
    units: int,
    contexts: Sequence[Context],
    published: str,
    outlook: Outlook = NOTHING,
) -> Plan:
    """The plan of a mechanism whose draws are what costs.

    Args:
        spend: what is drawn, and what one unit costs.
        units: how many units the file has: rows or blocks, of all sets.
    """
    claim = spend.claim
    total = claim.times(units, "dataset") if claim.is_dp else claim
    errors, warnings = outlook
    given = rows_given(claim.relation) if total.is_dp else ""
    warnings += (given,) if given else ()
    if total.is_dp and total.epsilon > 10:
        warnings += (
            (
                f"The whole file costs epsilon = {float(total.epsilon):g}: a bound that large "
                "excludes almost nothing. adaptive_gibbs and noisy_pegs pay once for any number of rows."
            ),
        )
    return Plan(
        mechanism=mechanism.about.name,
        params=as_json(mechanism),
        rows=rows,
        sets=sets,
        claim=claim,
        total=total,
        published=published,
        spends=(replace(spend, claim=total),),
        cells=sum(c.cells for c in contexts),
        memory_bytes=memory(contexts, rows),
        errors=errors,
        warnings=warnings,
    )


def unprotected_plan(
    mechanism: Any,
    rows: int | None,
    sets: int,
    *,
    contexts: Sequence[Context],
    what: str,
    warning: str,
) -> Plan:
    """The plan of a mechanism without any guarantee: needs alone."""
    claim = no_claim(unit="dataset", source=mechanism.about.paper)
    return row_plan(
        mechanism,
        rows,
        sets,
        spend=Spend(what, claim, "no noise"),
        units=paid_rows(mechanism, rows, sets),
        contexts=contexts,
        published="none",
        outlook=((), (warning,)),
    )


def unused_delta(mechanism: Any) -> tuple[str, ...]:
    """A warning where a delta was chosen and noise of pure epsilon-DP has no use for it."""
    default = next(f.default for f in fields(mechanism) if f.name == "delta")
    if mechanism.noise != "laplace" or mechanism.delta == default:
        return ()
    return (
        (
            f"delta = {mechanism.delta:g} is not used: noise = 'laplace' gives pure epsilon-DP. Ask for "
            "noise = 'gaussian', or leave delta out."
        ),
    )


def table_plan(
    mechanism: Any,
    rows: int | None,
    sets: int,
    *,
    contexts: Sequence[Context],
    spends: Sequence[Spend],
    published: str,
    outlook: Outlook = NOTHING,
    more_cells: int = 0,
) -> Plan:
    """The plan of a mechanism that publishes tables: any number of rows and sets for one price.

    What is paid in epsilon alone has a total of epsilon alone.

    Args:
        more_cells: dense cells beyond `contexts`, about, where contexts are chosen at the run.
    """
    whole, (errors, warnings) = total(mechanism), outlook
    if spends and all(spend.claim.kind == "pure" for spend in spends):
        whole = replace(whole, kind="pure", delta=Fraction(0))
    elif spends and all(spend.claim.kind == "gdp" for spend in spends):
        whole = replace(whole, mu_squared=mu_squared_for(whole.epsilon, whole.delta))
    given = rows_given(whole.relation, ", or leave it out for the noisy number")
    if rows is not None and given:
        warnings += (given,)
    if whole.delta > Fraction(1, 10**6):
        warnings += (
            f"delta = {float(whole.delta):g} is above 1e-6: keep it far below 1 / records.",
        )
    return Plan(
        mechanism=mechanism.about.name,
        params=as_json(mechanism),
        rows=rows,
        sets=sets,
        claim=whole,
        total=whole,
        published=published,
        spends=tuple(spends),
        cells=sum(c.cells for c in contexts) + more_cells,
        memory_bytes=memory(contexts, rows) + 24 * more_cells,
        errors=errors,
        warnings=warnings,
    )


def memory(contexts: Sequence[Context], rows: int | None) -> int:
    """Bytes of counts, noisy counts and drawing tables at their peak.

    Dense cells take three 8-byte numbers; a table of seen cells has at most one cell a record, each
    three numbers, twice. The number of records is not known: `rows` or a million stand for it.
    """
    records = rows or USUAL_ROWS
    dense = sum(c.cells for c in contexts if c.support == "dense")
    seen = sum(min(c.cells, records) for c in contexts if c.support == "seen")
    return 24 * dense + 48 * seen


def noise_facts(noise: NoiseInfo) -> tuple[tuple[str, float], ...]:
    """What noise and threshold do to one cell, as (name, value)."""
    facts = (("noise sd of one cell, counts", math.sqrt(noise.variance)),)
    if noise.threshold is None:
        return facts
    return (*facts, ("threshold, counts", float(noise.threshold)))


def noise_errors(
    noise: NoiseInfo, rows: int | None, *, one_way: float, two_way: float
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
    """Expected error from noise alone, and a warning where it drowns the data.

    Args:
        noise: of the tables that rows are drawn from.
        rows: stands for the number of records; None leaves the distances out.
        one_way, two_way: sum over the cells of one such table of the noise's standard deviations.
    Returns:
        (name, value) errors, and warnings.
    """
    found = noise_facts(noise)
    if not rows:
        return found, ()
    first, second = (min(1.0, HALF * sd / rows) for sd in (one_way, two_way))
    found += (
        ("expected 1-way total variation error from noise", first),
        ("expected 2-way total variation error from noise", second),
    )
    if first < 0.2:
        return found, ()
    return found, (
        (
            f"Noise dominates at {rows} rows: the expected error of a 1-way margin is {first:.2f}. "
            "Use a larger epsilon, fewer or coarser columns, or more records."
        ),
    )
