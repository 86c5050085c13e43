"""Closing: rows and goal margins in; the rows with few values changed, so that their margins meet the goals.

Rows are closed in blocks of `LogLinear.closed` by their number, so that a row depends on its block
alone and never on threads, chunks or how many rows are asked for. A block gets whole-number goals:
the whole numbers between its running sum of expected rows and the one before, counted from an
offset. They sum to the rows of the block, and the offset runs evenly through [0, 1) from block to
block, so that over many blocks each cell gets what it expects. Rounded by itself, a cell that
expects a third of a row a block would lose every row it has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, uniforms
from gibbous.core.tables import Goal, LogLinear
from gibbous.sampling.loglinear import margin_kernels, twins
from gibbous.sampling.loglinear.chains import CLOSE, margins, spread
from gibbous.sampling.loglinear.margin_kernels import Goals
from gibbous.sampling.loglinear.step_tables import WIDTH, Flat, flatten, model_rules, padded

PASSES = 2
GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0  # step of the offset: the most even one
KEEP = 0.25  # gain that a change has to bring, in shares of its cost between met cells


class Closing:
    """The goals of a model, laid out.

    Args:
        model: for sizes and goals.
        flat: its layout; for its structural zeros.
        seed: what the rounding of the goals is drawn by.
    """

    def __init__(self, model: LogLinear, flat: Flat, *seed: int) -> None:
        self.sizes, self.goals, self.flat = model.sizes, model.goals, flat
        running = [np.cumsum(goal.shares.ravel()) for goal in model.goals]
        self.after = _concatenated([sums / sums[-1] for sums in running])
        self.before = _concatenated([np.append(0.0, sums[:-1] / sums[-1]) for sums in running])
        self.offset = float(uniforms(stream_key(seed[0], *seed[1:], CLOSE), 0, 1)[0])
        weights = np.array([goal.weight for goal in model.goals], dtype=np.float32)
        self.laid = self._lay_out([goal.columns for goal in model.goals], weights)

    def close(
        self, state: np.ndarray, block: int, fixed: Collection[int] = (), *, compiled: bool = True
    ) -> int:
        """Close one block in place.

        Args:
            state: (columns, rows) codes of the model, C-contiguous; all rows of the block.
            block: its number.
            fixed: columns that do not change.
            compiled: False takes the numpy twin.
        Returns:
            How many values were changed.
        """
        one_pass = margin_kernels.close if compiled else twins.close
        short = self.short(state, block)[self.order]
        columns = np.array(
            [j for j in range(len(state)) if j not in fixed and self.uses_of[j]], dtype=np.int64
        )
        gain = np.empty(max([1, *self.flat.steps[columns, WIDTH]]), dtype=np.float32)
        codes = np.empty(len(state), dtype=np.int64)
        moved = 0
        for _ in range(PASSES):
            now = one_pass(state, columns, self.laid, short, self.flat, KEEP, gain, codes)
            moved += int(now)
            if not now:
                break
        return moved

    def short(self, state: np.ndarray, block: int) -> np.ndarray:
        """Rows that each cell of each goal lacks, int32 (cells,)."""
        offset = (self.offset + block * GOLDEN_RATIO) % 1.0
        rows = state.shape[1]
        goal = np.floor(self.after * rows + offset) - np.floor(self.before * rows + offset)
        counts = margins(state, self.sizes, [goal.columns for goal in self.goals])
        lacking: np.ndarray = goal - _concatenated([n.ravel() for n in counts])
        return lacking.astype(np.int32)

    def _lay_out(self, cliques: Sequence[tuple[int, ...]], weights: np.ndarray) -> Goals:
        """Each goal once for each of its columns, that column's axis last."""
        uses_of: list[list[tuple[int, ...]]] = [[] for _ in self.sizes]
        terms: list[tuple[int, int]] = []
        order, at, held = [], 0, 0
        for goal, clique in enumerate(cliques):
            shape = [self.sizes[c] for c in clique]
            cells = int(np.prod(shape))
            places = np.arange(at, at + cells).reshape(shape)
            for place, column in enumerate(clique):
                width = padded(self.sizes[column])
                runs = np.moveaxis(places, place, -1).reshape(-1, self.sizes[column])
                wide = np.full((len(runs), width), -1)  # padding: never drawn
                wide[:, : self.sizes[column]] = runs
                order.append(wide.ravel())
                rest = [c for c in clique if c != column]
                uses_of[column].append((goal, held, len(terms), len(rest)))
                step, own = width, []
                for other in reversed(rest):
                    own.append((other, step))
                    step *= self.sizes[other]
                terms += own
                held += wide.size
            at += cells
        self.uses_of = uses_of
        self.order = _concatenated(order).astype(np.int64)
        uses = np.array([use for own in uses_of for use in own], dtype=np.int64).reshape(-1, 4)
        owner = np.repeat(np.arange(len(uses_of)), [len(own) for own in uses_of])
        by_goal = np.argsort(uses[:, 0], kind="stable")
        return Goals(
            np.cumsum([0] + [len(own) for own in uses_of]).astype(np.int64),
            uses,
            np.array(terms, dtype=np.int64).reshape(-1, 2),
            np.searchsorted(uses[by_goal, 0], np.arange(len(cliques) + 1)).astype(np.int64),
            np.stack([owner[by_goal], by_goal], axis=1).astype(np.int64),
            weights,
        )


def close(
    model: LogLinear,
    schema: Schema,
    rows: np.ndarray,
    goals: Sequence[Goal] | None = None,
    *,
    seed: int,
    threads: int = 1,
) -> tuple[np.ndarray, int]:
    """Close rows to goals, block by block; a last short block is closed as what it is.

    Args:
        model: for its sizes, and its goals where none are given.
        schema: public; for its structural zeros.
        rows: (columns, rows) codes of the model.
        goals: margins to reach; where they contradict each other, their weights decide.
        seed: of the rounding.
        threads: how many; never changes a byte.
    Returns:
        The closed rows, and how many values were changed.
    """
    wanted = model.goals if goals is None else tuple(goals)
    bare = LogLinear(model.sizes, (), (), wanted, model.merged)
    closing = Closing(bare, flatten(bare, model_rules(bare, schema)), seed)
    size = model.closed
    out, moved = np.ascontiguousarray(rows).copy(), np.zeros(-(-rows.shape[1] // size), dtype=int)

    def work(low: int, high: int) -> None:
        for at in range(low, high, size):
            part = np.ascontiguousarray(out[:, at : min(at + size, high)])
            moved[at // size] = closing.close(part, at // size)
            out[:, at : min(at + size, high)] = part

    spread(work, rows.shape[1], threads, size)
    return out, int(moved.sum())


def _concatenated(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0)
