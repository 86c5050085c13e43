"""The Curator: the only holder of confidential counts; it charges, then looks, then hands out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from threading import Event
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gibbous.core.claim import Claim, Measure, Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import EngineFailure, PrivacyRefused
from gibbous.core.machine import beside, leaving
from gibbous.core.moment import Moment, moment
from gibbous.core.protocols import Engine, MomentNoise, Noise, Progress, RowDraw, T, Words64, silent
from gibbous.core.recode import Change, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret
from gibbous.core.tables import NONE_MORE, Counts, KnownCounts, Table
from gibbous.privacy import entropy
from gibbous.privacy.calibrate.gdp import choice_price
from gibbous.privacy.purse import Purse


class Curator(Secret):
    """Holds an engine with scanned records, and a budget that was reserved for them.

    Each method is one mechanism: it computes the price from the noise (or the draw) itself, checks
    that price against what is left of the reserved claim, and only then touches the counts. A
    mechanism that plans one price and asks for another is refused here, not trusted.

    Args:
        engine: has scanned the records.
        budget: the claim that the ledger reserved for this run.
        schema: public.
        relation: neighbor relation of the run.
        words: source of cryptographic words (tests pass their own).
        progress: told the stage and a public count of what is done.
    """

    __slots__ = (
        "_cache",
        "_engine",
        "_known",
        "_progress",
        "_purse",
        "_relation",
        "_schema",
        "_scores",
        "_views",
        "_words",
    )

    def __init__(
        self,
        engine: Engine,
        budget: Claim,
        schema: Schema,
        *,
        relation: Relation,
        words: Words64 = entropy.words,
        progress: Progress = silent,
    ) -> None:
        self._engine: Engine | None = engine
        self._purse = Purse(budget)
        self._schema, self._relation = schema, relation
        self._words, self._progress = words, progress
        self._cache: dict[Context, Counts] = {}
        self._scores: WeakKeyDictionary[Any, np.ndarray] = WeakKeyDictionary()
        self._views: list[Curator] = []
        self._known: Mapping[int, KnownCounts] = {}

    def __repr__(self) -> str:
        return f"<Curator, {'open' if self._engine else 'closed'}>"

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def relation(self) -> Relation:
        """The neighbor relation of this run."""
        return self._relation

    @property
    def measure(self) -> Measure:
        """In which Gaussian purchases of this run are priced: what was reserved says it."""
        return self._purse.budget.measure

    @property
    def known_counts(self) -> Mapping[int, KnownCounts]:
        """Noisy counts that were paid for before the method; a random part has none."""
        return self._known

    @property
    def max_rows(self) -> int:
        """Most rows of one privacy unit."""
        return self._schema.unit.max_rows if self._schema.unit else 1

    @property
    def spent(self) -> tuple[Claim, ...]:
        """What was paid so far, alike ones together; of parts, by the part that paid most often."""
        return tuple(self._purse.longest().elements())

    def noisy_counts(self, contexts: Sequence[Context], noise: Noise) -> tuple[Table, ...]:
        """Spend: count the contexts once and add noise once, as one joint release; see `CuratorLike`.

        Raises:
            PrivacyRefused: the price is not covered, or a context with support "seen" comes with
                noise that has no stability threshold.
        """
        info = noise.info()
        if any(c.support == "seen" for c in contexts) and info.threshold is None:
            raise PrivacyRefused(
                "SEENKEYS",
                "A table of only the keys that occur was asked for without a stability threshold.",
                "Which keys occur is itself confidential.",
                "Use support='dense', or thresholded noise.",
            )
        self._pay(noise.cost(len(contexts), self._relation, self.max_rows))
        counts = self._count(contexts, keep=False)
        tables = []
        for done, (context, secret) in enumerate(zip(contexts, counts, strict=True)):
            self._progress("noise", done, len(contexts))
            tables.append(Table(context, noise.add(secret.cells, progress=self._progress), info))
        self._progress("noise", len(contexts), len(contexts))
        return tuple(tables)

    def choose(
        self,
        contexts: Sequence[Context],
        score: Callable[[Sequence[Counts]], np.ndarray],
        *,
        sensitivity: Fraction | int,
        epsilon: Fraction,
        accounting: Measure = "pure",
        among: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> int:
        """Spend: pick one candidate by the exponential mechanism; see `CuratorLike`."""
        price = choice_price(epsilon, accounting)
        self._pay(replace(price, relation=self._relation, source="exponential mechanism"))
        scores = self._scores.get(score) if among else None
        if scores is None:
            scores = score(self._count(contexts, keep=True))
        if among:
            self._scores[score], scores = scores, among(scores.copy())
        return entropy.exponential_choice(
            scores, epsilon=epsilon, sensitivity=Fraction(sensitivity * self.max_rows)
        )

    def noisy_moments(
        self, moments: Sequence[Moment], noises: Sequence[MomentNoise]
    ) -> tuple[Table, ...]:
        """Spend: sum numbers within cells and add integer noise once; one table a moment, in grid units.

        Raises:
            PrivacyRefused: the price is not covered, or a moment's bound is below what a record adds
                under this curator's schema.
        """
        if any(o.bound < moment(self._schema, o.context, o.factors).bound for o in moments):
            raise PrivacyRefused(
                "BOUND",
                "A sum was asked for with a bound below the largest number of one record.",
                "The bound sets the price; it is that of this schema's grids.",
                "Make the moment from the schema of the curator that is asked.",
            )
        engine = self._open()
        for one, noise in zip(moments, noises, strict=True):
            self._pay(noise.moment_cost(one, self._relation, self.max_rows))
        found = engine.sums(moments)
        return tuple(
            Table(secret.context, noise.add(secret.cells, progress=self._progress), noise.info())
            for secret, noise in zip(found, noises, strict=True)
        )

    def recoded(
        self, changes: Mapping[int, Change], *, known: Mapping[int, KnownCounts] | None = NONE_MORE
    ) -> Curator:
        """A view under a coarser public schema, with the same budget; free; closed with this curator."""
        engine, schema = self._open().recoded(changes), recoded_schema(self._schema, changes)
        view = self._view(engine, self._purse, schema)
        if known is not None:
            kept = {j: one for j, one in self._known.items() if j not in changes}
            view._known = {**kept, **known}
        return view

    def on_parts(
        self, parts: int, work: Callable[[Curator, int], T], *, memory: int = 0
    ) -> list[T]:
        """Work on random parts of the records, on as many at once as there are threads; free.


        A record's part is drawn with cryptographic words, whatever it says, so that one record is in
        one part: what is spent on a part is spent beside the others (docs/proofs/noise.md, random parts;
        both relations: a record that is replaced keeps its part).

        Args:
            work: (the same run on a part, its number) -> result.
            memory: bytes that one part needs: no more run at once than fit the engine's limit.
        Returns:
            The results, in the order of the parts.
        Raises:
            PrivacyRefused: a privacy unit has several rows, which may lie in different parts.
        """
        views, engine, left = self.split(parts), self._open(), Event()
        fit = engine.memory_limit // memory if memory else parts
        if (at_once := min(parts, engine.threads, fit)) > 1:
            for view in views:  # beside others they report nothing, and end where they would
                view._progress = leaving(left)
        results, numbers = [], range(parts)
        with beside(lambda k: work(views[k], k), numbers, at_once, name="gibbous-part") as coming:
            try:
                for number in numbers:
                    self._progress("parts", number, parts)
                    results.append(next(coming))
            finally:
                left.set()
        return results

    def split(self, parts: int) -> tuple[Curator, ...]:
        """The same run on each random part of the records, closed with this one; see `on_parts`."""
        if self.max_rows > 1:
            raise PrivacyRefused(
                "PARTS",
                "Records cannot be divided at random: one person may have several.",
                "A person in several parts pays in each.",
                "Use a method without parts, or a privacy unit of one row.",
            )
        purses = self._purse.divided(parts)
        engines = self._open().split(parts, self._words)
        return tuple(self._view(e, p, self._schema) for e, p in zip(engines, purses, strict=True))

    def draw(self, contexts: Sequence[Context], draw: RowDraw, rows: int) -> Codes:
        """Spend: draw rows of all sets from exact counts; the draw itself is the mechanism."""
        self._pay(draw.cost(contexts, rows, self._relation, self.max_rows))
        return draw(self._count(contexts, keep=True), self._schema, rows, self._words)

    def report(self, stage: str, done: int, total: int) -> None:
        """Tell whoever watches how far a method is; free, and only ever public numbers."""
        self._progress(stage, done, total)

    def close(self) -> None:
        """Forget records and counts. Any later request raises: nothing raw can be consulted again.

        Counts that a score or a draw saw are set to zero, in case that it kept them.
        """
        for view in self._views:
            view.close()
        if self._engine is not None:
            self._engine.close()
        self._engine = None
        for counts in self._cache.values():
            counts.wipe()
        for scores in self._scores.values():
            scores.fill(0)
        self._cache.clear()
        self._scores.clear()

    def _pay(self, price: Claim) -> None:
        self._open()
        if price.relation != self._relation:
            raise PrivacyRefused(
                "RELATION",
                f"A purchase is priced under {price.relation}, the run is under {self._relation}.",
                "One run has one neighbor relation.",
                "Price the noise under the relation of the run.",
            )
        self._purse.spend(price)

    def _open(self) -> Engine:
        if self._engine is None:
            raise _closed()
        return self._engine

    def _view(self, engine: Engine, purse: Purse, schema: Schema) -> Curator:
        view = Curator(
            engine,
            purse.budget,
            schema,
            relation=self._relation,
            words=self._words,
            progress=self._progress,
        )
        view._purse = purse
        self._views.append(view)
        return view

    def _count(self, contexts: Sequence[Context], *, keep: bool) -> list[Counts]:
        engine = self._open()
        missing = [c for c in dict.fromkeys(contexts) if c not in self._cache]
        counted = engine.tally(missing, progress=self._progress) if missing else ()
        fresh = dict(zip(missing, counted, strict=True))
        if keep:
            self._cache.update(fresh)
        return [fresh[c] if c in fresh else self._cache[c] for c in contexts]


def _closed() -> EngineFailure:
    return EngineFailure(
        "CLOSED",
        "The curator is closed.",
        "Records are read before the tables are written, never after.",
        "Start a new run.",
        state="What was reserved stays spent.",
    )
