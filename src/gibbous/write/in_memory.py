"""A release that stays in memory: the verbs of `Package`, without a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import GibbousError
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.request import Output
from gibbous.core.tables import Tables
from gibbous.encode.column_types import fitting
from gibbous.encode.decode import decode, decoded
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.sampling.sample import stream
from gibbous.write.certificate import Facts, certify
from gibbous.write.kept_rules import Changed, with_rules
from gibbous.write.output_path import check_output
from gibbous.write.package import begin, rows_each
from gibbous.write.partial import drawn_seed
from gibbous.write.release_digest import digest_of
from gibbous.write.sampler import draw
from gibbous.write.signature import signing_key


class InMemory:
    """A release while it is made; nothing of it is resumed.

    Attributes:
        request: no other run has it.
        label: what the ledger calls it.
        result: tables or drawn rows; None before the draw.
        release, bought, bought_from: always None, False and empty; see `Package`.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._seed = drawn_seed() if output.seed is None else output.seed
        self._hold: Hold | None = None
        self._sets: tuple[Any, ...] = ()
        self._changed: Changed = ()
        self.request, self.label = os.urandom(32), "in memory"
        self.result: Tables | Codes | None = None
        self.release: Release | None = None
        self.bought, self.bought_from = False, ""

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
        self._ledger, self._hold = ledger, reserve()
        return self._hold

    def keep(self, result: Tables | Codes) -> None:
        """Keep what was drawn."""
        self.result, self._changed = with_rules(result, self._output.sets, self._seed)

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
        written = [self._frame(number, progress) for number in sets]
        self._sets = tuple(frame for frame, _ in written)
        self._changed = self._changed or tuple(changed for _, changed in written)

    def finish(self, facts: Facts) -> Release:
        """The release."""
        assert self._hold is not None
        assert self.result is not None
        rows, types = tuple(len(frame) for frame in self._sets), self._types()
        files = {"types": dict(types)} if types else None
        more: dict[str, Any] = {"files": files, "changed": self._changed}
        receipt = certify(facts, self._hold, self.result, seed=self._seed, rows=rows, **more)
        return Release(
            sets=self._sets,
            schema=self.result.schema,
            claim=facts.plan.total,
            plan=facts.plan,
            tables=self.result if isinstance(self.result, Tables) else None,
            receipt=receipt,
            sampler=partial(draw, types=types),
            saver=partial(self._save, facts),
        )

    def _save(
        self, facts: Facts, out: str | Path, *, overwrite: bool = False, sign: Any = None
    ) -> Path:
        """The package of what was drawn: the reservation that paid for it is that of the package."""
        hold, result = self._hold, self.result
        assert hold is not None
        assert result is not None
        target, key = check_output(out, overwrite=overwrite), signing_key(sign)
        output = replace(self._output, out=target, overwrite=overwrite, sign=key, seed=self._seed)
        with begin(target, output, request=self.request) as package:
            package.hold(self._ledger, lambda: hold)
            package.keep(result)
            package.commit()
            package.write_sets()
            package.finish(facts)
        return target

    def _frame(self, number: int, progress: Progress) -> tuple[Any, tuple[int, ...]]:
        import polars as pl

        assert self.result is not None
        frames, start, types = [], 0, self._types()
        schema = self.result.schema
        changed = [0] * len(schema.rules)
        named: dict[str, Any] = {"seed": self._seed, "set_index": number, "types": types}
        for codes in self._batches(number, progress):
            frame, more = decoded(codes, start_row=start, **named)
            frames.append(frame)
            changed = [one + other for one, other in zip(changed, more, strict=True)]
            start += codes.rows
        if not frames:
            frames = [decode(Codes(schema, empty_codes(schema, 0)), seed=0, types=types)]
        return pl.concat(frames), tuple(changed)

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
