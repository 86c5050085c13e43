"""A release that stays in memory: the verbs of `Package`, without a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import GibbousError
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.request import Output
from gibbous.core.tables import Tables
from gibbous.encode.column_types import fitting
from gibbous.encode.decode import decode
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.sampling.sample import stream
from gibbous.write.certificate import Facts, certify
from gibbous.write.package import rows_each
from gibbous.write.partial import drawn_seed
from gibbous.write.release_digest import digest_of
from gibbous.write.sampler import draw


class InMemory:
    """A release while it is made; nothing of it is resumed.

    Attributes:
        request: no other run has it.
        label: what the ledger calls it.
        result: tables or drawn rows; None before the draw.
        release: always None; see `Package`.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._seed = drawn_seed() if output.seed is None else output.seed
        self._hold: Hold | None = None
        self._sets: tuple[Any, ...] = ()
        self.request, self.label = os.urandom(32), "in memory"
        self.result: Tables | Codes | None = None
        self.release: Release | None = None

    def __enter__(self) -> InMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._hold is not None and self.result is None and isinstance(error, GibbousError):
            self._hold.explain(error)

    def hold(self, ledger: Ledger, reserve: Callable[[], Hold], *, strict: bool = False) -> Hold:
        """Spend: a new reservation."""
        self._hold = reserve()
        return self._hold

    def keep(self, result: Tables | Codes) -> None:
        """Keep what was drawn."""
        self.result = result

    def commit(self) -> None:
        """Tell the ledger what was released."""
        assert self._hold is not None, "the reservation comes first"
        assert self.result is not None, "the draw comes first"
        self._hold.commit(digest_of(self.result))

    def write_sets(self, workers: Workers | None = None, progress: Progress = silent) -> None:
        """Draw and decode all synthetic sets, in this process."""
        assert self._hold is not None, "the reservation comes first"
        assert self._hold.committed, "the commit comes first"
        sets = range(self._output.sets)
        self._sets = tuple(self._frame(number, progress) for number in sets)

    def finish(self, facts: Facts) -> Release:
        """The release."""
        assert self._hold is not None
        assert self.result is not None
        rows, types = tuple(len(frame) for frame in self._sets), self._types()
        files = {"types": dict(types)} if types else None
        receipt = certify(facts, self._hold, self.result, seed=self._seed, rows=rows, files=files)
        return Release(
            sets=self._sets,
            schema=self.result.schema,
            claim=facts.plan.total,
            plan=facts.plan,
            tables=self.result if isinstance(self.result, Tables) else None,
            receipt=receipt,
            sampler=partial(draw, types=types),
        )

    def _frame(self, number: int, progress: Progress) -> Any:
        import polars as pl

        assert self.result is not None
        frames, start, types = [], 0, self._types()
        for codes in self._batches(number, progress):
            part = decode(codes, seed=self._seed, set_index=number, start_row=start, types=types)
            frames.append(part)
            start += codes.rows
        if not frames:
            schema = self.result.schema
            return decode(Codes(schema, empty_codes(schema, 0)), seed=0, types=types)
        return pl.concat(frames)

    def _types(self) -> tuple[tuple[str, str], ...]:
        assert self.result is not None
        return fitting(self.result.schema, dict(self._output.types))

    def _batches(self, number: int, progress: Progress) -> Iterator[Codes]:
        assert self.result is not None
        rows = rows_each(self.result, self._output)
        if isinstance(self.result, Codes):
            yield self.result.part(slice(number * rows, (number + 1) * rows))
            return
        yield from stream(self.result, rows, seed=self._seed, set_index=number, progress=progress)
