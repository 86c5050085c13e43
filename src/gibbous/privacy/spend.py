"""Spend: a promise and an engine with scanned records in, public tables or drawn rows out.

The one place that makes a Curator. What it computes depends on the promise, the plan and the
records; how fast, on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, Protocol

from gibbous.core.claim import Measure, Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.moment import Moment
from gibbous.core.plan import Plan
from gibbous.core.protocols import (
    CuratorLike,
    Engine,
    Mechanism,
    MomentNoise,
    Noise,
    Progress,
    RowDraw,
    T,
    TextRecords,
    Words64,
    silent,
)
from gibbous.core.recode import Change, recoded_schema
from gibbous.core.request import Privacy
from gibbous.core.schema import Schema
from gibbous.core.tables import NONE_MORE, Counts, KnownCounts, Table, Tables
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.privacy.text_curator import TextCurator


class Draft(Protocol):
    """Where a result is kept as soon as it is drawn; it may know one of a run that was killed.

    Attributes:
        request: digest of everything that was asked for.
        label: what the ledger calls the release.
        result: what was drawn; None before.
    """

    request: bytes
    label: str
    result: Tables | Codes | None

    def hold(self, ledger: Ledger, reserve: Callable[[], Hold], *, strict: bool) -> Hold:
        """Take over the reservation of a run that was killed, or make a new one."""

    def keep(self, result: Tables | Codes) -> None:
        """Keep what was drawn: from here on it is never drawn again."""


@dataclass(frozen=True, slots=True)
class Charge:
    """Who pays for a run, and where its result is kept.

    Attributes:
        ledger: is charged before anything is counted.
        dataset: fingerprint of the records.
        draft: keeps the result.
    """

    ledger: Ledger
    dataset: bytes
    draft: Draft

    def reserve(self, privacy: Privacy, plan: Plan, engine: Engine) -> Hold:
        """Spend: the ledger's entry, before anything is counted, of a run whose tables fit the engine.

        Raises:
            BudgetExhausted, PrivacyRefused, LedgerUnusable, ResourceLimit: nothing is charged then.
        """
        rehearse(privacy.method, engine, privacy.schema, relation=privacy.relation, plan=plan)
        return self.ledger.reserve(
            self.dataset,
            plan.total,
            mechanism=plan.mechanism,
            request=self.draft.request,
            rows=plan.rows,
            protects=privacy.protects,
            label=self.draft.label,
            new_data=privacy.new_data,
        )


def spend(
    privacy: Privacy,
    plan: Plan,
    engine: Engine,
    *,
    charge: Charge | None = None,
    words: Words64 = entropy.words,
    progress: Progress = silent,
) -> Tables | Codes:
    """Spend: reserve, count once, add noise once; the curator is closed when this returns.

    Args:
        privacy: schema, method and what belongs to its promise.
        plan: of the run: its total is what is reserved and the most that the method can get.
        engine: has scanned the records; it is closed with the curator.
        charge: the ledger, and who keeps the result; None charges nobody: for constructed tables,
            and for figures that are not released.
        words: source of cryptographic words (audits pass their own).
        progress: told the stage and a public count of what is done.
    Returns:
        Public tables, or rows whose drawing was what cost.
    Guarantee:
        `plan.total`, for the result; it was charged before anything was counted.
    Raises:
        BudgetExhausted, PrivacyRefused, LedgerUnusable, ResourceLimit: see `Ledger.reserve`.
    """
    if charge is not None:
        draft = charge.draft
        draft.hold(
            charge.ledger, lambda: charge.reserve(privacy, plan, engine), strict=privacy.strict
        )
        if draft.result is not None:  # of a run that was killed after its draw became visible
            return draft.result
    with curator_of(privacy, plan, engine, words=words, progress=progress) as curator:
        result = privacy.method.run(curator, plan.rows, plan.sets)
    if charge is not None:
        charge.draft.keep(result)
    return result


@contextmanager
def curator_of(
    privacy: Privacy,
    plan: Plan,
    engine: Engine,
    *,
    words: Words64 = entropy.words,
    progress: Progress = silent,
) -> Iterator[Curator]:
    """The curator of one run, which is closed at the end; see `spend`."""
    kind = TextCurator if isinstance(engine, TextRecords) else Curator
    curator = kind(
        engine,
        plan.total,
        privacy.schema,
        relation=privacy.relation,
        words=words,
        progress=progress,
    )
    try:
        yield curator
    finally:
        curator.close()


def rehearse(
    mechanism: Mechanism, engine: Engine, schema: Schema, *, relation: Relation, plan: Plan
) -> None:
    """Refuse a run whose tables do not fit the engine, while nothing is charged.

    No record is counted and nothing is drawn: of the records only their number is used. A refusal
    tells it to whoever runs the command, who can read the records; nothing that is released hangs on
    it.

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
        self.schema, self.relation, self.measure = schema, relation, measure
        self._parts = parts
        self.known_counts: Mapping[int, KnownCounts] = {}

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
        sensitivity: Fraction | int,
        epsilon: Fraction,
        accounting: Measure = "pure",
        among: object = None,
    ) -> int:
        self._asked(contexts)

    def draw(self, contexts: Sequence[Context], draw: RowDraw, rows: int) -> Codes:
        self._asked(contexts)

    def recoded(
        self, changes: Mapping[int, Change], *, known: Mapping[int, KnownCounts] | None = NONE_MORE
    ) -> _Nobody:
        coarser = recoded_schema(self.schema, changes)
        return _Nobody(coarser, self.relation, self.measure, self._parts)

    def on_parts(
        self, parts: int, work: Callable[[CuratorLike, int], T], *, memory: int = 0
    ) -> list[T]:
        part = _Nobody(self.schema, self.relation, self.measure, self._parts * parts)
        return [work(part, number) for number in range(parts)]

    def report(self, stage: str, done: int, total: int) -> None:
        """Nobody watches."""

    def _asked(self, contexts: Sequence[Context]) -> NoReturn:
        raise _Asked(contexts, self.schema, self._parts)
