"""Rows from public tables: fast, seeded, free of cost; the same bytes for any threads and chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.machine import usable_cores
from gibbous.core.protocols import Progress, silent
from gibbous.core.stream import stream_key
from gibbous.core.tables import Tables
from gibbous.sampling import alias_kernels, alias_twins
from gibbous.sampling.cells.cell_rows import CellRows, CellsReady
from gibbous.sampling.loglinear.chains import spread
from gibbous.sampling.loglinear.model_rows import ModelRows, Ready, checked
from gibbous.sampling.mixed_rows import Parted, PartedRows, Rows, part_seed, part_shares
from gibbous.sampling.program import Program, prepare
from gibbous.sampling.rule_zeros import with_zeros
from gibbous.sampling.structural_zeros import possible

Prepared = Program | Ready | CellsReady | Parted
Source = Tables | Prepared

CHUNK = 1 << 18
_SLICE = 1 << 15  # rows a thread takes at a time
_START, _PASS, _AGAIN = 0, 1, 2  # kinds of streams


def sample(
    tables: Source,
    rows: int,
    *,
    seed: int,
    set_index: int = 0,
    start: int = 0,
    threads: int | None = None,
    given: Mapping[int, np.ndarray | int] | None = None,
) -> Codes:
    """Draw rows from public tables: post-processing, no cost.

    Args:
        tables: a release, or what `prepared` made of it.
        seed: sampling seed; the same seed gives the same rows.
        set_index: number of the synthetic set; other sets are independent draws, from their own
            tables where every set was noised for itself.
        start: number of the first row; rows start..start + rows of the set are returned.
        threads: how many; None for all cores. Never changes a byte.
        given: codes of columns by position, one value or one a row; the others are drawn given
            them. Only from a log-linear model.
    Returns:
        Public codes (rows, columns).
    Raises:
        UsageError: the structural zeros leave (almost) no possible row; or the tables cannot be
            drawn from given some columns.
        ResourceLimit: a table is too large to draw from.
    """
    run = _run(prepared(tables, set_index), seed, set_index)
    if given is None:
        return run.rows(start, rows, _threads(threads))
    if not isinstance(run, ModelRows):
        raise UsageError(
            "GIVEN",
            "Rows were asked for with some columns given.",
            "Only a log-linear model (adaptive_gibbs) can be drawn from given some columns.",
            "Leave given out, or use a release of adaptive_gibbs.",
        )
    return run.given(checked(run.found.schema, given, rows), start, rows, _threads(threads))


def stream(
    tables: Source,
    rows: int,
    *,
    seed: int,
    set_index: int = 0,
    start: int = 0,
    chunk: int = CHUNK,
    threads: int | None = None,
    progress: Progress = silent,
) -> Iterator[Codes]:
    """The same rows as `sample`, in chunks.

    Args:
        chunk: rows a batch, >= 1. Never changes a byte.
    Yields:
        Codes of up to `chunk` rows; nothing for rows = 0.
    """
    run = _run(prepared(tables, set_index), seed, set_index)
    for done in range(0, rows, chunk):
        progress("rows", done, rows)
        yield run.rows(start + done, min(chunk, rows - done), _threads(threads))
    progress("rows", rows, rows)


def prepared(tables: Source, set_index: int = 0) -> Prepared:
    """What drawing rows needs of a release, made once for many calls.

    Args:
        set_index: which set's tables, where every set was noised for itself.
    """
    if not isinstance(tables, Tables):
        return tables
    own = tables.of_set(set_index)
    if own.recipe.draw != "cells":
        own = replace(own, schema=with_zeros(own.schema))
    if own.parts:
        return Parted(own.schema, tuple(prepared(part) for part in own.parts), part_shares(own))
    return prepare(own)


def _run(program: Prepared, seed: int, set_index: int, *, compiled: bool = True) -> Rows:
    if isinstance(program, Parted):
        runs = [
            _run(one, part_seed(seed, number), set_index, compiled=compiled)
            for number, one in enumerate(program.members)
        ]
        return PartedRows(program, runs, seed, set_index)
    if isinstance(program, CellsReady):
        return CellRows(program, seed, set_index)
    if isinstance(program, Ready):
        return ModelRows(program, seed, set_index, compiled=compiled)
    return _Run(program, seed, set_index, compiled=compiled)


class _Run:
    """One set of rows of a program: which steps are executed, each with the key of its stream."""

    def __init__(self, program: Program, seed: int, set_index: int, *, compiled: bool) -> None:
        self.program, self.seed, self.set_index = program, seed, set_index
        self.compiled = compiled
        columns = len(program.schema)
        drawn = {t for i in program.order for t in program.steps[i].targets}
        first = [j for j in range(columns) if program.chained or j not in drawn]
        self.begin = self._execution([(j, _START, 0, j) for j in first])
        passes = [
            (columns + i, _PASS, sweep, i) for sweep in range(program.sweeps) for i in program.order
        ]
        self.passes = self._execution(passes)

    def rows(self, start: int, rows: int, threads: int) -> Codes:
        """Rows start..start + rows of the set."""
        schema = self.program.schema
        state = np.zeros((len(schema), rows), dtype=schema.code_dtype())
        execute = self._compiled if self.compiled else self._plain
        zeros = bool(schema.impossible)

        def work(low: int, high: int) -> None:
            execute(self.begin, state, low, high, start)
            if zeros and self.program.chained:
                part = np.ascontiguousarray(state[:, low:high])
                state[:, low:high] = self._repair(part, start + low, self.begin)
            execute(self.passes, state, low, high, start)
            if zeros and not self.program.chained:
                part = np.ascontiguousarray(state[:, low:high])
                state[:, low:high] = self._repair(part, start + low, self.begin, self.passes)

        spread(work, rows, threads, _SLICE)
        return Codes(schema, state.T)

    def _execution(
        self, steps: list[tuple[int, int, int, int]], attempt: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        order = np.array([s[0] for s in steps], dtype=np.int64)
        kinds = [(*s[1:], attempt) if attempt else s[1:] for s in steps]
        keys = [stream_key(self.seed, self.set_index, *k) for k in kinds]
        return order, np.array(keys, dtype=np.uint64)

    def _plain(
        self,
        what: tuple[np.ndarray, np.ndarray],
        state: np.ndarray,
        low: int,
        high: int,
        start: int,
    ) -> None:
        numbers = np.arange(start + low, start + high, dtype=np.uint64)
        alias_twins.run(self.program, *what, numbers, state[:, low:high])

    def _compiled(
        self,
        what: tuple[np.ndarray, np.ndarray],
        state: np.ndarray,
        low: int,
        high: int,
        start: int,
    ) -> None:
        """Kernels for the runs of steps they can run, numpy for the others."""
        order, keys = what
        flat, steps = self.program.flat, (*self.program.start, *self.program.steps)
        room = alias_kernels.room()
        fast = np.array([steps[at].compiled for at in order], dtype=bool)
        cuts = np.flatnonzero(np.diff(fast)) + 1
        for part in np.split(np.arange(len(order)), cuts):
            if not len(part):
                continue
            if not fast[part[0]]:
                self._plain((order[part], keys[part]), state, low, high, start)
                continue
            alias_kernels.run(state, low, high, start + low, order[part], keys[part], flat, room)

    def _repair(
        self, state: np.ndarray, first: int, *what: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Draw impossible rows again, each attempt with streams of its own; later ones uniformly."""

        def again(attempt: int, bad: np.ndarray) -> np.ndarray:
            numbers = (first + bad).astype(np.uint64)
            fresh = np.zeros((len(state), len(bad)), dtype=state.dtype)
            if attempt > 100:
                return self._uniform(attempt, numbers, fresh)
            for order, _ in what:
                keys = [
                    stream_key(self.seed, self.set_index, _AGAIN, attempt, int(i)) for i in order
                ]
                alias_twins.run(
                    self.program, order, np.array(keys, dtype=np.uint64), numbers, fresh
                )
            return fresh

        return possible(self.program.schema, state, again)

    def _uniform(self, attempt: int, numbers: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        from gibbous.core.context import mix64
        from gibbous.core.stream import GOLDEN

        for column, size in enumerate(self.program.schema.sizes):
            key = np.uint64(stream_key(self.seed, self.set_index, _AGAIN, attempt, column))
            word = mix64(numbers * np.uint64(GOLDEN) + key)
            fresh[column] = ((word >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)
        return fresh


def _threads(threads: int | None) -> int:
    return usable_cores() if threads is None else max(1, threads)
