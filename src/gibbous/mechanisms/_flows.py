"""What the flow mechanisms share: contexts by destination, checks of public geography, plans."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import Claim
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import exact
from gibbous.core.plan import Plan, Spend
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.privacy.calibrate.probabilistic import check_kept, shrunken_loss, theorem44_limit
from gibbous.structure.regions import Places, regions
from gibbous.synthesize.flows.scheme import Scheme
from gibbous.synthesize.flows.virtual import alpha_for, profile

if TYPE_CHECKING:
    from gibbous.mechanisms.onthemap import Onthemap

PROOF = "docs/proofs/onthemap.md; destination fixed, its total public"
SIZES = (15, 150, 1500)  # destinations whose virtual records a plan shows


def by_destination(schema: Schema, destination: str) -> Context:
    """Origins (all other columns together) given the destination, the cells that occur.

    Raises:
        UsageError: no such column, or no other one.
    """
    if not destination:
        columns = tuple(range(len(schema)))
        return Context(columns, (), schema.sizes, (), support="seen")
    place = schema.index(destination)
    columns = tuple(j for j in range(len(schema)) if j != place)
    if not columns:
        raise UsageError(
            "ORIGIN",
            "The schema has a destination and nothing else.",
            "Origins are the other column, or the other columns together.",
            "Declare the origin column.",
        )
    sizes = tuple(schema.sizes[j] for j in columns)
    return Context(columns, (place,), sizes, (schema.sizes[place],), support="seen")


def check_choices(one: Onthemap) -> None:
    """Refuse parameters that have no proof together, before anything is planned.

    Raises:
        ParameterError: each with its reason.
    """
    if one.accept == "rep":
        raise _refused(
            "REP",
            "accept='rep' was asked for: outputs that are not gamma-Rep of the records rejected.",
            "What is accepted must not depend on one record: an output at the limit of one table "
            "is impossible for its neighbor (lemma 5.1), a privacy loss without bound.",
            "Use accept='good', which accepts what is representative of the records or a neighbor.",
        )
    if one.accept == "good" and (one.keep or one.reach or one.bound == "printed"):
        raise _refused(
            "GOODONLY",
            "accept='good' was asked for with keep, reach or bound='printed'.",
            "Its proof is for the full domain and the exact tail.",
            "Leave out the other option.",
        )
    _check_keep(one)
    if one.bound == "printed":
        theorem44_limit(_left(one), one.delta, 1)
    if (one.keep or one.reach) and (one.origins is None or one.destinations is None):
        raise _refused(
            "NOPLACES",
            "keep or reach was given without public places.",
            "Distances need coordinates of origins and of destinations.",
            "Give origins= and destinations= (gibbous.structure.regions.places).",
        )
    if (one.level or one.spread) and one.origins is None:
        raise _refused(
            "NOPLACES",
            "level or spread was given without public places.",
            "Regions and densities are declared for every origin.",
            "Give origins= (gibbous.structure.regions.places).",
        )
    if one.earlier is not None and not one.keep:
        raise _refused(
            "EARLIER",
            "An earlier release was given without keep.",
            "It says which origins shrinking always keeps.",
            "Give keep=, for example ((0, 0.05),).",
        )


def scheme(one: Onthemap, schema: Schema) -> Scheme:
    """The promise of one destination under a schema, its geography checked against the columns.

    Raises:
        UsageError: places and columns differ.
    """
    context = by_destination(schema, one.destination)
    origins, found = one.origins, None
    if origins is not None:
        _same("origins", origins, context.levels)
    if one.destinations is not None:
        _same("destinations", one.destinations, context.keys)
    if one.level and origins is not None:
        found = regions(origins, one.level)
        origins = found.places
    share = context.keys if one.statement == "table" else 1
    if one.earlier is not None:
        _check_earlier(one, len(origins or ()), context.keys)
    return Scheme(
        one.epsilon,
        one.delta / share,
        one.bound,
        one.accept,
        one.keep,
        one.reach,
        one.spread,
        origins,
        one.destinations,
        found,
        one.earlier,
    )


def claim(one: Onthemap) -> Claim:
    """The guarantee of one set."""
    return Claim(
        "probabilistic",
        epsilon=exact(one.epsilon),
        delta=exact(one.delta),
        unit="dataset",
        relation=one.relation,
        source=PROOF,
        fixed=(one.destination,) if one.destination else (),
    )


def onthemap_plan(one: Onthemap, schema: Schema, rows: int | None, sets: int) -> Plan:
    """The plan of onthemap: price, virtual records of some sizes, warnings."""
    _check_schema(schema)
    if rows is not None and one.keep:
        raise _refused(
            "ROWSKEPT",
            "A number of rows was given with keep.",
            "Shrinking the domain is proven for as many people as a destination has records.",
            "Leave out rows, or keep.",
        )
    found, total = scheme(one, schema), claim(one).times(sets)
    context = by_destination(schema, one.destination)
    cells = len(found.origins) if found.origins is not None else context.levels
    whose = "of the whole table" if one.statement == "table" else "of each destination"
    return Plan(
        mechanism=one.about.name,
        params=as_json(one),
        rows=rows,
        sets=sets,
        claim=claim(one),
        total=total,
        published=f"epsilon = {one.epsilon:g}, delta = {one.delta:g}, probabilistic, "
        "by theorem 4.4" + (" and theorem 5.2" if one.keep else ""),
        spends=(
            Spend(
                f"origins of {context.keys:,} destinations",
                total,
                f"virtual records in {cells:,} origins; delta {whose}; neighbors differ in the "
                "origin of one record, destination totals are public",
            ),
        ),
        cells=context.cells,
        memory_bytes=_plans.memory((context,), rows) + 64 * (rows or _plans.USUAL_ROWS) * sets,
        errors=_alphas(found, cells),
        warnings=_warnings(one, sets),
    )


def as_json(one: Any) -> dict[str, object]:
    """Parameters as JSON values; public geography by size and digest."""
    out: dict[str, object] = {}
    for each in fields(one):
        value = getattr(one, each.name)
        value = value.to_json() if hasattr(value, "to_json") else value
        out[each.name] = [list(v) for v in value] if isinstance(value, tuple) else value
    return out


def _alphas(found: Scheme, cells: int) -> tuple[tuple[str, float], ...]:
    """Virtual records of the least origin in destinations of a few sizes, on the full domain."""
    if found.local:
        return ()
    weights, out = found.weights(cells), []
    shape = profile(weights, cells)
    for n in SIZES:
        alpha = shape.effective(alpha_for(found, shape, n, n), n, n)
        out.append((f"alpha, virtual records an origin, of {n} records", alpha))
        out.append((f"all virtual records beside {n} records", alpha * shape.weight / shape.least))
    return tuple(out)


def _warnings(one: Onthemap, sets: int) -> tuple[str, ...]:
    told = [
        (
            "Probabilistic DP: except with probability delta the output discloses at most epsilon; "
            "it implies (epsilon, delta)-DP. Destinations themselves have no protection."
        )
    ]
    if not one.destination:
        told.append("No destination column was named: the whole table is one destination.")
    if one.earlier is not None:
        told.append("Pairs of the earlier release stay in the domain: they are public already.")
    if sets > 1:
        told.append(f"Each of the {sets} sets is paid for.")
    if one.epsilon > 10:
        told.append(f"epsilon = {one.epsilon:g} excludes almost nothing.")
    return tuple(told)


def _check_keep(one: Onthemap) -> None:
    steps = one.keep
    wrong = any(
        not isinstance(s, tuple)
        or len(s) != 2
        or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in s)
        for s in steps
    )
    if wrong or (steps and steps[0][0] != 0) or _unordered(steps):
        raise _refused(
            "KEEP",
            "keep is not a list of steps.",
            "Steps are (miles, probability), the first from 0 miles, distances increasing.",
            "For example keep=((0, 1.0), (10, 0.3), (50, 0.04)).",
        )
    for _, share in steps:
        check_kept(share)
    if steps and _left(one) <= 0:
        least = min(share for _, share in steps)
        raise _refused(
            "SHRINKCOST",
            f"Keeping origins with probability {least:g} costs {math.log(1 / least):.4g} nats "
            f"and more, of epsilon = {one.epsilon:g}.",
            "What is left after ln(1 / f) and the change of |a| must be above 0.",
            "Raise epsilon, or the least probability in keep.",
        )


def _left(one: Onthemap) -> float:
    """Epsilon after the least that shrinking costs."""
    if not one.keep:
        return one.epsilon
    size = 1.0 if one.bound == "printed" else 0.0
    return one.epsilon - shrunken_loss(size, 1, 1, min(s for _, s in one.keep), sharp=False)


def _unordered(steps: tuple[tuple[float, float], ...]) -> bool:
    miles = [float(s[0]) for s in steps]
    return any(not a < b or math.isinf(b) for a, b in zip(miles, miles[1:], strict=False))


def _check_schema(schema: Schema) -> None:
    if _plans.most_rows(schema) > 1:
        raise PrivacyRefused(
            "PERSONROWS",
            "The privacy unit has more than one row.",
            "onthemap is proven for one record of one destination a unit.",
            "Keep one job a person (max_rows = 1), or use noisy_pegs or sba.",
        )
    if schema.impossible:
        raise UsageError(
            "IMPOSSIBLE",
            "The schema declares impossible combinations.",
            "onthemap puts virtual records in every origin of a destination's domain.",
            "Use reach= for distances, or drop [[impossible]].",
        )


def _same(what: str, places: Places, codes: int) -> None:
    if len(places) != codes:
        raise UsageError(
            "PLACES",
            f"There are {len(places):,} {what} in the geography and {codes:,} in the schema.",
            "They are the same list in the same order.",
            "Make the schema from the places (gibbous.flows.flow_schema).",
        )


def _check_earlier(one: Onthemap, origins: int, destinations: int) -> None:
    pairs = one.earlier
    assert pairs is not None
    low = min(pairs.origins.min(initial=0), pairs.destinations.min(initial=0))
    if (
        low < 0
        or pairs.origins.max(initial=-1) >= origins
        or pairs.destinations.max(initial=-1) >= destinations
    ):
        raise UsageError(
            "EARLIER",
            "The earlier release has a pair outside the declared places.",
            "Its codes are positions in origins (or their regions) and destinations.",
            "Code it against the same lists.",
        )


def _refused(name: str, wrong: str, allowed: str, fix: str) -> ParameterError:
    return ParameterError(name, wrong, allowed, fix)
