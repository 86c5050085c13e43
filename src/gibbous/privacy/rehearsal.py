"""Rehearsal: a method and an engine that holds records in; a refusal of what cannot be counted out.

Called before the ledger is charged. No record is counted and nothing is drawn: of the records only
their number is used. A refusal tells it to whoever runs the command, who can read the records; nothing
that is released hangs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NoReturn

from gibbous.core.claim import Measure, Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.moment import Moment
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Mechanism, MomentNoise, Noise, RowDraw
from gibbous.core.recode import Change, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Table


def rehearse(
    mechanism: Mechanism, engine: Engine, schema: Schema, *, relation: Relation, plan: Plan
) -> None:
    """Refuse a run whose tables do not fit the engine, while nothing is charged.

    What the method asks for first is found by running it up to there. What it asks for later may hang
    on what it has bought by then: a method that has `counted(schema)` names the largest of that, and
    of others it is checked when it is counted.

    Args:
        engine: has scanned the records.
        plan: of the run.
    Raises:
        ResourceLimit: a table does not fit the memory limit, or has more than 2^63 keys or levels.
        GibbousError: whatever the method refuses before its first purchase.
    """
    later: Callable[[Schema], Iterable[Sequence[Context]]] | None
    later = getattr(mechanism, "counted", None)
    for contexts in later(schema) if later is not None else ():
        engine.check(contexts)
    first: _Asked | None = None
    try:
        mechanism.run(_Nobody(schema, relation, plan.total.measure), plan.rows, plan.sets)
    except _Asked as asked:
        first = asked
    if first is not None:
        engine.check(first.contexts, schema=first.schema, parts=first.parts)


class _Asked(BaseException):
    """The first request of a method; no `except Exception` of its own stops it."""

    def __init__(self, contexts: Sequence[Context], schema: Schema, parts: int) -> None:
        super().__init__()
        self.contexts, self.schema, self.parts = tuple(contexts), schema, parts


class _Nobody:
    """A curator of no records: it answers nothing, and only notes what it is asked."""

    def __init__(
        self, schema: Schema, relation: Relation, measure: Measure, parts: int = 1
    ) -> None:
        self._schema, self._relation, self._parts = schema, relation, parts
        self._measure = measure

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def relation(self) -> Relation:
        return self._relation

    @property
    def measure(self) -> Measure:
        return self._measure

    def noisy_counts(self, contexts: Sequence[Context], noise: Noise) -> tuple[Table, ...]:
        self._asked(contexts)

    def noisy_moments(
        self, moments: Sequence[Moment], noises: Sequence[MomentNoise]
    ) -> tuple[Table, ...]:
        self._asked([one.context for one in moments])

    def choose(
        self,
        contexts: Sequence[Context],
        score: Callable[[Sequence[Counts]], object],
        *,
        sensitivity: int,
        epsilon: Fraction,
        accounting: Measure = "pure",
    ) -> int:
        self._asked(contexts)

    def draw(self, contexts: Sequence[Context], draw: RowDraw, rows: int) -> Codes:
        self._asked(contexts)

    def recoded(self, changes: Mapping[int, Change]) -> _Nobody:
        coarser = recoded_schema(self._schema, changes)
        return _Nobody(coarser, self._relation, self._measure, self._parts)

    def split(self, parts: int) -> tuple[_Nobody, ...]:
        more = self._parts * parts
        return (_Nobody(self._schema, self._relation, self._measure, more),) * parts

    def report(self, stage: str, done: int, total: int) -> None:
        """Nobody watches."""

    def _asked(self, contexts: Sequence[Context]) -> NoReturn:
        raise _Asked(contexts, self._schema, self._parts)
