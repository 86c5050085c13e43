"""Spend: a promise and an engine with scanned records in, public tables or drawn rows out.

The one place that makes a Curator. What it computes depends on the promise, the plan and the
records; how fast, on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from gibbous.core.codes import Codes
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Progress, TextRecords, Words64, silent
from gibbous.core.request import Privacy
from gibbous.core.tables import Tables
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.privacy.rehearsal import rehearse
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
        ...

    def keep(self, result: Tables | Codes) -> None:
        """Keep what was drawn: from here on it is never drawn again."""
        ...


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
