"""Rows: a released log-linear model in; any number of seeded rows out, closed to its goals.

Row i of a set depends on (seed, set, i) alone: it is cut from the block that holds it, which is
started, swept, closed and shuffled as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.schema import Schema, impossible_mask
from gibbous.core.stream import stream_key
from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear import twins
from gibbous.sampling.loglinear.chains import EXACT, SHUFFLE, SPLIT, draw, schedule, uniforms_at
from gibbous.sampling.loglinear.laws import draw_law, law, listable
from gibbous.sampling.loglinear.margin_adjustment import Closing
from gibbous.sampling.loglinear.step_tables import Flat, flatten, model_rules
from gibbous.sampling.loglinear.tree_rows import Link, first_rows, tree
from gibbous.sampling.structural_zeros import Rule

Given = Mapping[int, np.ndarray]
"""Codes of the schema for columns that are given: one value, or one a row."""


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A model prepared for drawing rows.

    Attributes:
        schema: public.
        model: the log-linear model.
        rules: structural zeros in its codes.
        flat: its layout.
        links: tree of first rows.
        sweeps: Gibbs passes a row.
        law: probability of every row of a small model, which is drawn from at once; None of others.
    """

    schema: Schema
    model: LogLinear
    rules: tuple[Rule, ...]
    flat: Flat
    links: tuple[Link, ...]
    sweeps: int
    law: np.ndarray | None


def ready(schema: Schema, model: LogLinear, sweeps: int) -> Ready:
    """Prepare a model.

    Raises:
        ResourceLimit: it is too large to draw from.
    """
    rules = model_rules(model, schema)
    shares = law(model, rules) if listable(model.sizes, model.cliques) else None
    return Ready(schema, model, rules, flatten(model, rules), tree(model), sweeps, shares)


def checked(schema: Schema, given: Mapping[int, np.ndarray | int], rows: int) -> Given:
    """Given codes as arrays.

    Raises:
        UsageError: a column or a code that the schema does not have, or another number of rows.
    """
    found = {}
    for column, codes in given.items():
        array = np.asarray(codes)
        if not 0 <= column < len(schema):
            wrong = f"column number {column}"
        elif array.shape not in ((), (rows,)) or array.dtype.kind not in "ui":
            wrong = (
                f"column {schema.names[column]!r} with other than one whole number, or one a row"
            )
        elif array.size and not 0 <= int(array.min()) <= int(array.max()) < schema.sizes[column]:
            wrong = f"column {schema.names[column]!r} with a code outside its levels"
        else:
            found[column] = array
            continue
        raise UsageError(
            "GIVEN",
            f"Rows were asked for given {wrong}.",
            "Given columns are positions in the schema, their codes lie inside it.",
            "Correct given.",
        )
    return found


class ModelRows:
    """The rows of one set.

    Args:
        found: the prepared model.
        seed, set_index: of the set.
        compiled: False draws and closes by the numpy twins.
    """

    def __init__(self, found: Ready, seed: int, set_index: int, *, compiled: bool = True) -> None:
        self.found, self.seed, self.compiled = found, (seed, set_index), compiled
        self.closing = Closing(found.model, found.flat, *self.seed)
        self._last: tuple[int, np.ndarray] | None = None

    def rows(self, start: int, rows: int, threads: int) -> Codes:
        """Rows start..start + rows of the set, closed to the goals."""
        model = self.found.model
        size = model.closed if model.goals else max(rows, 1)
        state = np.empty((len(model.sizes), rows), dtype=self.found.schema.code_dtype())
        if not model.goals:
            numbers = np.arange(start, start + rows, dtype=np.uint64)
            return Codes(self.found.schema, self._split(self._drawn(numbers, {}, threads), start).T)
        blocks = range(start // size, -(-(start + rows) // size) if rows else 0)
        several = threads > 1 and len(blocks) > 1  # then a thread takes whole blocks

        def fill(block: int) -> np.ndarray:
            whole = self._block(block, 1 if several else threads)
            first = block * size
            low, high = max(start, first), min(start + rows, first + size)
            part = self._split(whole[:, low - first : high - first], low)
            state[:, low - start : high - start] = part
            return whole

        if several:
            with ThreadPoolExecutor(threads) as pool:
                done = deque(pool.map(fill, blocks), maxlen=1)
        else:
            done = deque(map(fill, blocks), maxlen=1)
        if done:
            self._last = (blocks[-1], done[0])
        return Codes(self.found.schema, state.T)

    def given(self, given: Given, start: int, rows: int, threads: int) -> Codes:
        """Rows whose given columns are as given and the rest is drawn given them; not closed.

        Args:
            given: codes of the schema, scalar or (rows,) arrays, by position of the column.
        Raises:
            UsageError: a given combination is impossible, or leaves no possible row.
        """
        model, schema = self.found.model, self.found.schema
        full = {j: np.broadcast_to(codes, (rows,)) for j, codes in given.items()}
        grouped = {}
        for column, codes in full.items():
            merged = model.merged[column] if model.merged else None
            grouped[column] = codes if merged is None else merged.groups[codes]
        numbers = np.arange(start, start + rows, dtype=np.uint64)
        state = self._split(self._drawn(numbers, grouped, threads), start)
        for column, codes in full.items():
            state[column] = codes
        barred = impossible_mask(schema, state.T) if schema.impossible else np.zeros(0, dtype=bool)
        if barred.any():
            raise UsageError(
                "GIVEN",
                f"The given values leave no possible row in {barred.sum():,} of {rows:,} rows, first in "
                f"row {int(barred.argmax()) + 1:,}.",
                "A given combination is possible under the structural zeros of the schema.",
                "Check the given values against [[impossible]] in the schema.",
            )
        return Codes(schema, state.T)

    def _block(self, block: int, threads: int) -> np.ndarray:
        if self._last is not None and self._last[0] == block:
            return self._last[1]
        size = self.found.model.closed
        numbers = np.arange(block * size, (block + 1) * size, dtype=np.uint64)
        state = self._drawn(numbers, {}, threads)
        self.closing.close(state, block, compiled=self.compiled)
        # Closing visits rows in turn, so the first ones change most; whoever takes some rows of a
        # block must not get these.
        places = uniforms_at(numbers, stream_key(*self.seed, SHUFFLE))
        return np.ascontiguousarray(state[:, np.argsort(places, kind="stable")])

    def _drawn(self, numbers: np.ndarray, given: Given, threads: int) -> np.ndarray:
        """Rows before they are closed; a block of a law that is listed has the rows of every cell that it
        expects, rounded up or down.
        """
        found = self.found
        if found.law is not None:
            points = uniforms_at(numbers, stream_key(*self.seed, EXACT))
            if found.model.goals and not given:
                order = np.argsort(points, kind="stable")
                points[order] = (np.arange(len(points)) + points[0]) / len(points)
            return draw_law(found.law, points, given)
        state = first_rows(found.model.sizes, found.links, found.rules, numbers, given, *self.seed)
        order, keys = schedule(found.flat, 0, found.sweeps, *self.seed, fixed=tuple(given))
        first = int(numbers[0]) if len(numbers) else 0
        if self.compiled:
            draw(found.flat, state, order, keys, first=first, threads=threads)
        else:
            twins.sweep(found.flat, state, order, keys, first)
        return state

    def _split(self, state: np.ndarray, start: int) -> np.ndarray:
        """Codes of the schema: levels of merged columns are drawn within their groups."""
        model = self.found.model
        out = state.astype(self.found.schema.code_dtype())
        numbers = np.arange(start, start + state.shape[1], dtype=np.uint64)
        for column, merged in enumerate(model.merged):
            if merged is None:
                continue
            order = np.argsort(merged.groups, kind="stable")
            groups, shares = merged.groups[order], merged.shares[order]
            held = np.bincount(groups, weights=shares, minlength=model.sizes[column])
            running = np.cumsum(shares)
            before = np.concatenate([[0.0], np.cumsum(held)[:-1]])
            points = uniforms_at(numbers, stream_key(*self.seed, SPLIT, column))
            own = state[column].astype(np.int64)
            wanted = before[own] + points * held[own]
            ends = np.searchsorted(groups, np.arange(model.sizes[column]), side="right") - 1
            starts = np.searchsorted(groups, np.arange(model.sizes[column]), side="left")
            place = np.searchsorted(running, wanted, side="right")
            out[column] = order[np.clip(place, starts[own], ends[own])]
        return out
