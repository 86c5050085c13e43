"""Rows of one set from a cell model: a cell each, then numbers within it; seeded, free of cost.

Row i of a set depends on (seed, set, i) and the model alone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.codes import Codes
from gibbous.core.context import strides
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key
from gibbous.sampling.cells.cell_index import bins_of, settled
from gibbous.sampling.cells.deviates import normals, uniforms
from gibbous.sampling.cells.parameters import STREAM, parameters
from gibbous.sampling.structural_zeros import possible

MOST = 1 << 24  # numbers of one set's parameters: 128 MiB
_CELL, _NUMBER, _UNIFORM = 16, 17, 18
_SLICE = 1 << 14  # rows a thread takes at a time
_PATIENCE = 100  # attempts at a row that no structural zero rules out; then it is drawn uniformly


@dataclass(frozen=True, slots=True, eq=False)
class CellsReady:
    """A cell model prepared for drawing rows."""

    schema: Schema
    model: CellModel


def ready_cells(schema: Schema, model: CellModel) -> CellsReady:
    """Prepare a model; ResourceLimit if it is too large to draw from."""
    width = len(model.numbers)
    numbers = model.cells * (1 + width + width**2)
    if numbers > MOST:
        raise ResourceLimit(
            "CELLS",
            f"A model of {model.cells:,} cells has {numbers:,} parameters.",
            f"It may have {MOST:,}.",
            "Use coarser or fewer categorical columns.",
            state="What was bought stays bought; the tables are published as they are.",
        )
    return CellsReady(schema, model)


class CellRows:
    """The rows of one set."""

    def __init__(self, found: CellsReady, seed: int, set_index: int) -> None:
        self.found, self.seed = found, (seed, set_index)
        self.own = parameters(found.schema, found.model, seed, set_index)
        self._running = np.cumsum(self.own.shares)
        self._last = int(np.flatnonzero(self.own.shares)[-1])

    def rows(self, start: int, rows: int, threads: int) -> Codes:
        """Rows start..start + rows of the set, with their numbers."""
        schema = self.found.schema
        state = np.empty((len(schema), rows), dtype=schema.code_dtype())
        numbers = np.zeros((len(self.found.model.numbers), rows))

        def fill(low: int) -> None:
            part = slice(low, min(rows, low + _SLICE))
            places = np.arange(start + part.start, start + part.stop, dtype=np.uint64)
            state[:, part], numbers[:, part] = self._possible(places)

        cuts = range(0, rows, _SLICE)
        if threads > 1 and len(cuts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                for done in [pool.submit(fill, low) for low in cuts]:
                    done.result()
        else:
            for low in cuts:
                fill(low)
        known = zip(self.found.model.numbers, numbers, strict=True)
        return Codes(schema, state.T, numbers=tuple(known))

    def _possible(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes and numbers of chosen rows; impossible ones are drawn again, with their numbers."""
        state, numbers = self._drawn(places, 0)

        def again(attempt: int, bad: np.ndarray) -> np.ndarray:
            draw = self._drawn if attempt <= _PATIENCE else self._uniform
            fresh, numbers[:, bad] = draw(places[bad], attempt)
            return fresh

        return possible(self.found.schema, state, again), numbers

    def _drawn(self, places: np.ndarray, attempt: int) -> tuple[np.ndarray, np.ndarray]:
        model = self.found.model
        points = uniforms(places, stream_key(*self.seed, STREAM, _CELL, attempt))
        cells = np.searchsorted(self._running, points * self._running[-1], side="right")
        cells = np.minimum(cells, self._last)
        deviates = [
            normals(places, stream_key(*self.seed, STREAM, _NUMBER, attempt, j))
            for j in range(len(model.numbers))
        ]
        shared = len(self.own.forms) == 1
        numbers = np.empty((len(model.numbers), len(places)))
        for row, place in enumerate(self.own.places.T):
            # Added up column by column: the order of additions never depends on how rows are cut.
            total = place[cells]
            for column, deviate in enumerate(deviates):
                root = self.own.forms[:, row, column]
                total = total + (root[0] if shared else root[cells]) * deviate
            numbers[row] = total
        codes = [
            cells // step % size
            for step, size in zip(strides(model.sizes), model.sizes, strict=True)
        ]
        return self._coded(codes, numbers)

    def _coded(self, codes: list[np.ndarray], numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the schema (columns, rows), and numbers rounded and clipped; 0 where missing."""
        schema = self.found.schema
        state = np.empty((len(schema), numbers.shape[1]), dtype=schema.code_dtype())
        order = {place: row for row, place in enumerate(self.found.model.numbers)}
        for place, column in enumerate(schema):
            if place not in order:
                state[place] = codes[place]
                continue
            values = settled(column, numbers[order[place]])
            gone = codes[place] == 1
            state[place] = bins_of(column, values)
            if column.missing_code is not None:
                state[place][gone] = column.missing_code
            numbers[order[place]] = np.where(gone, 0.0, values)
        return state, numbers

    def _uniform(self, places: np.ndarray, attempt: int) -> tuple[np.ndarray, np.ndarray]:
        schema, model = self.found.schema, self.found.model
        points = [
            uniforms(places, stream_key(*self.seed, STREAM, _UNIFORM, attempt, j))
            for j in range(len(schema))
        ]
        sizes = model.sizes
        codes = [(p * size).astype(np.int64) for p, size in zip(points, sizes, strict=True)]
        numbers = np.empty((len(model.numbers), len(places)))
        for row, place in enumerate(model.numbers):
            low, high = (float(schema.columns[place].edges[i]) for i in (0, -1))
            within = points[place] * sizes[place] - codes[place]
            numbers[row] = low + within * (high - low)
        return self._coded(codes, numbers)
