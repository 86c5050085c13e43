"""OnTheMap: per-destination multinomial-Dirichlet origins under probabilistic differential privacy."""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from typing import ClassVar, Literal

from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import Rule, as_json, at_least, check, mechanism, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.mechanisms._virtual import beside_records, mostly_virtual
from gibbous.mechanisms.limits import budget
from gibbous.privacy.calibrate.probabilistic import check_kept, shrunken_loss, theorem44_limit
from gibbous.sampling.flows.flow_rows import FlowRows
from gibbous.sampling.flows.scheme import Accept, Bound, By, Coarsen, Keep, Scheme
from gibbous.structure.regions import Pairs, Places, regions

PROOF = "docs/proofs/onthemap.md; destination fixed, its total public"
ALWAYS = (
    "Probabilistic DP: except with probability delta the output discloses at most epsilon; "
    "it implies (epsilon, delta)-DP. Destinations themselves have no protection."
)
width = Rule(lambda v: v == "auto" or at_least(0).allows(v), ">= 0, or 'auto'")
NEIGHBORS = "neighbors differ in the origin of one record, destination totals are public"


@mechanism
class Onthemap:
    """Draw each destination's people from its records plus a few virtual records an origin.

    Guarantee:
        (epsilon, delta)-probabilistic DP of each destination, hence (epsilon, delta)-DP of the
        table, replace one record's origin: destinations and their totals are public and fixed.
        Without a destination column: replace one record, and the number of records is public.
        Claimed by the paper: the same, with a delta that shrinking breaks. Proven here: delta from
        the exact tail, calibrated on the shrunken domain (docs/proofs/onthemap.md). Audited:
        enumeration, and contract, with a tenth of the virtual records as saboteur.
    Source:
        [onthemap, alg. 1 and 2, theorems 4.3, 4.4, 5.1 and 5.2, lemma 5.2].
    """

    about: ClassVar[About] = About(
        name="onthemap",
        title="OnTheMap commuting patterns",
        paper="onthemap, alg. 1 and 2",
        unit="dataset",
        kind="probabilistic",
        releases="rows",
        claimed="(epsilon, delta)-probabilistic DP, destinations public, theorems 4.4 and 5.2",
        proven="the same with delta from the exact tail and on the shrunken domain; replace one "
        "record's origin, its destination fixed; sets add up",
        audited="enumerated laws of small tables; too few virtual records are caught",
    )

    epsilon: float = param(4.6, budget, unit="nats", help="Of each destination and set.")
    delta: float = param(1e-6, probability, help="Probability of an output that discloses more.")
    relation: Literal["replace_one"] = param(
        "replace_one", help="Neighbors differ in the origin of one record; totals are public."
    )
    destination: str = param("", help="Public destination column; empty for a table without one.")
    bound: Bound = param("exact", help="Exact tail, or theorem 4.4 as printed, for comparison.")
    statement: Literal["destination", "table"] = param(
        "destination", help="Whose probability delta is: one destination's, or their union's."
    )
    accept: Accept = param("none", help="'good' draws again until the output is gamma-Good.")
    keep: Keep = param(
        (), help="(miles, probability) steps: origins without records are kept so often."
    )
    reach: float = param(
        0.0, at_least(0), unit="miles", help="Farthest origin of a destination; 0 for no limit."
    )
    coarsen: Coarsen = param(
        0.0, width, help="Origins together in squares this share of their distance wide, or 'auto'."
    )
    coarsen_by: By = param("distance", help="'density': the share is of nearer origins' density.")
    spread: float = param(
        0.0, at_least(0), help="Virtual records that follow public density, in multiples of alpha."
    )
    level: str = param("", help="Hierarchy level of the origins to draw from; empty for none.")
    origins: Places | None = field(default=None)
    destinations: Places | None = field(default=None)
    earlier: Pairs | None = field(default=None)

    def __post_init__(self) -> None:
        if isinstance(self.keep, list | tuple):
            steps = tuple(tuple(s) if isinstance(s, list) else s for s in self.keep)
            object.__setattr__(self, "keep", steps)
        check(self)
        _check_choices(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: (epsilon, delta) times sets, whatever the number of people."""
        _check_schema(schema)
        if rows is not None and self.keep:
            raise ParameterError(
                "ROWSKEPT",
                "A number of rows was given with keep.",
                "Shrinking the domain is proven for as many people as a destination has records.",
                "Leave out rows, or keep.",
            )
        promise, context = scheme(self, schema), by_destination(schema, self.destination)
        each = claim(self)
        total = FlowRows(promise, each, rows, sets).cost((context,), 0, self.relation, 1)
        cells = len(promise.origins) if promise.origins is not None else context.levels
        whose = "of the whole table" if self.statement == "table" else "of each destination"
        detail = f"virtual records in {cells:,} origins; delta {whose}; {NEIGHBORS}"
        if self.reach:
            detail += f"; one from beyond {self.reach:g} miles counts at the nearest origin within"
        errors = beside_records(promise, cells, context.keys)
        return Plan(
            mechanism=self.about.name,
            params=_parameters(self),
            rows=rows,
            sets=sets,
            claim=each,
            total=total,
            published=f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, probabilistic, "
            "by theorem 4.4" + (" and theorem 5.2" if self.keep else ""),
            spends=(Spend(f"origins of {context.keys:,} destinations", total, detail),),
            cells=context.cells,
            memory_bytes=_plans.memory((context,), rows) + 16 * (rows or _plans.USUAL_ROWS) * sets,
            errors=errors,
            warnings=_warnings(self, sets) + mostly_virtual(errors),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: count origins by destination once and draw the people of all sets."""
        schema = curator.schema
        draw = FlowRows(scheme(self, schema), claim(self), rows, sets)
        contexts = (by_destination(schema, self.destination),)
        return curator.draw(contexts, draw, (rows or 0) * sets)


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


def scheme(one: Onthemap, schema: Schema) -> Scheme:
    """The promise of one destination under a schema, its geography checked against the columns.

    Raises:
        UsageError: places and columns differ.
    """
    context = by_destination(schema, one.destination)
    origins, grouped = one.origins, None
    _check_same("origins", origins, context.levels)
    _check_same("destinations", one.destinations, context.keys)
    if one.level and origins is not None:
        grouped = regions(origins, one.level)
        origins = grouped.places
    share = context.keys if one.statement == "table" else 1
    if one.earlier is not None:
        most = (one.earlier.origins, len(origins or ())), (one.earlier.destinations, context.keys)
        if any(codes.min(initial=0) < 0 or codes.max(initial=-1) >= end for codes, end in most):
            raise UsageError(
                "EARLIER",
                "The earlier release has a pair outside the declared places.",
                "Its codes are positions in origins (or their regions) and destinations.",
                "Code it against the same lists.",
            )
    kept = (one.bound, one.accept, one.keep, one.reach, one.coarsen, one.coarsen_by, one.spread)
    places = (origins, one.destinations, grouped, one.earlier)
    return Scheme(one.epsilon, one.delta / share, *kept, *places)


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


def _parameters(one: Onthemap) -> dict[str, object]:
    """Parameters as JSON values; public geography by size and digest."""
    public = {name: getattr(one, name) for name in ("origins", "destinations", "earlier")}
    places = {name: value.to_json() for name, value in public.items() if value is not None}
    return as_json(one) | {"keep": [list(step) for step in one.keep]} | places


def _warnings(one: Onthemap, sets: int) -> tuple[str, ...]:
    told = (
        (True, ALWAYS),
        (
            not one.destination,
            "No destination column was named: the whole table is one destination.",
        ),
        (
            one.earlier is not None,
            "Pairs of the earlier release stay in the domain: they are public already.",
        ),
        (sets > 1, f"Each of the {sets} sets is paid for."),
        (one.epsilon > 10, f"epsilon = {one.epsilon:g} excludes almost nothing."),
    )
    return tuple(text for applies, text in told if applies)


def _check_choices(one: Onthemap) -> None:
    """Refuse parameters that have no proof together, before anything is planned."""
    if one.accept == "rep":
        raise ParameterError(
            "REP",
            "accept='rep' was asked for: outputs that are not gamma-Rep of the records rejected.",
            "What is accepted must not depend on one record: an output at the limit of one table "
            "is impossible for its neighbor (lemma 5.1), a privacy loss without bound.",
            "Use accept='good', which accepts what is representative of the records or a neighbor.",
        )
    if one.accept == "good" and (one.keep or one.reach or one.bound == "printed"):
        raise ParameterError(
            "GOODONLY",
            "accept='good' was asked for with keep, reach or bound='printed'.",
            "Its proof is for the full domain and the exact tail.",
            "Leave out the other option.",
        )
    _check_keep(one)
    if one.bound == "printed":
        theorem44_limit(_left(one), one.delta, 1)
    alone = not one.coarsen and one.coarsen_by != "distance"
    if alone or (one.coarsen and (one.keep or one.spread or one.level or one.accept == "good")):
        other = "without coarsen" if alone else "with keep, spread, level or accept='good'"
        raise ParameterError(
            "COARSENONLY",
            f"{'coarsen_by' if alone else 'coarsen'} was given {other}.",
            "coarsen makes regions of its own, all alike to the draw; reach may limit them.",
            f"{'Give coarsen' if alone else 'Leave out the other option'}.",
        )
    distances = (one.keep or one.reach or one.coarsen) and (
        one.origins is None or one.destinations is None
    )
    if distances or ((one.level or one.spread) and one.origins is None):
        raise ParameterError(
            "NOPLACES",
            f"{'keep, reach or coarsen' if distances else 'level or spread'} was given "
            "without public places.",
            "Distances need coordinates of origins and of destinations."
            if distances
            else "Regions and densities are declared for every origin.",
            f"Give origins={' and destinations=' if distances else ''} "
            "(gibbous.structure.regions.places).",
        )
    if one.earlier is not None and not one.keep:
        raise ParameterError(
            "EARLIER",
            "An earlier release was given without keep.",
            "It says which origins shrinking always keeps.",
            "Give keep=, for example ((0, 0.05),).",
        )


def _check_keep(one: Onthemap) -> None:
    steps = one.keep
    miles = [float(step[0]) for step in steps if _is_step(step)]
    rising = all(near < far < math.inf for near, far in itertools.pairwise(miles))
    if len(miles) < len(steps) or miles[:1] not in ([], [0]) or not rising:
        raise ParameterError(
            "KEEP",
            "keep is not a list of steps.",
            "Steps are (miles, probability), the first from 0 miles, distances increasing.",
            "For example keep=((0, 1.0), (10, 0.3), (50, 0.04)).",
        )
    for _, share in steps:
        check_kept(share)
    if steps and _left(one) <= 0:
        least = min(share for _, share in steps)
        raise ParameterError(
            "SHRINKCOST",
            f"Keeping origins with probability {least:g} costs {math.log(1 / least):.4g} nats "
            f"and more, of epsilon = {one.epsilon:g}.",
            "What is left after ln(1 / f) and the change of |a| must be above 0.",
            "Raise epsilon, or the least probability in keep.",
        )


def _is_step(step: object) -> bool:
    return (
        isinstance(step, tuple)
        and len(step) == 2
        and not any(isinstance(v, bool) or not isinstance(v, int | float) for v in step)
    )


def _left(one: Onthemap) -> float:
    """Epsilon after the least that shrinking costs."""
    if not one.keep:
        return one.epsilon
    size = 1.0 if one.bound == "printed" else 0.0
    return one.epsilon - shrunken_loss(size, 1, 1, min(s for _, s in one.keep), sharp=False)


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


def _check_same(what: str, places: Places | None, codes: int) -> None:
    if places is not None and len(places) != codes:
        raise UsageError(
            "PLACES",
            f"There are {len(places):,} {what} in the geography and {codes:,} in the schema.",
            "They are the same list in the same order.",
            "Make the schema from the places (gibbous.flows.flow_schema).",
        )
