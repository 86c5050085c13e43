"""OnTheMap: per-destination multinomial-Dirichlet origins under probabilistic differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gibbous.core.about import About
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.keywords import answering_class
from gibbous.core.params import at_least, check, param, probability
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _flows
from gibbous.mechanisms.limits import budget
from gibbous.structure.regions import Pairs, Places
from gibbous.synthesize.flows.rows import FlowRows
from gibbous.synthesize.flows.scheme import Accept, Bound, Keep


@answering_class
@dataclass(frozen=True, slots=True)
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
        _flows.check_choices(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: (epsilon, delta) times sets, whatever the number of people."""
        return _flows.onthemap_plan(self, schema, rows, sets)

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: count origins by destination once and draw the people of all sets."""
        schema = curator.schema
        draw = FlowRows(_flows.scheme(self, schema), _flows.claim(self), rows, sets)
        return curator.draw((self._context(schema),), draw, (rows or 0) * sets)

    def _context(self, schema: Schema) -> Context:
        return _flows.by_destination(schema, self.destination)
