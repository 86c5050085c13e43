"""Chains: a population of synthetic rows under a log-linear model; started, swept, counted.

A draw depends on (key, sweep, column, number of the chain) alone, never on threads or blocks.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.context import mix64
from gibbous.core.schema import Schema
from gibbous.core.stream import GOLDEN, stream_key
from gibbous.core.tables import LogLinear, Merged
from gibbous.sampling.loglinear import gibbs_kernel, margin_kernels
from gibbous.sampling.loglinear.gibbs_kernel import room_of
from gibbous.sampling.loglinear.step_tables import FIRST, SECOND, Flat, flatten, model_rules
from gibbous.sampling.structural_zeros import Rule, redrawn

SLICE, LEAST_SLICE = 1 << 13, 1 << 10  # chains a thread takes at a time: at most, at least
START, PASS, AGAIN, RESAMPLE, CLOSE, SPLIT, EXACT, SHUFFLE = range(8)  # kinds of streams
ATTEMPTS = 100
COUNTED = 256  # rows that are counted into each margin in turn


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chains:
    """Rows of the model. Public.

    Attributes:
        state: (columns, chains) codes of the model, C-contiguous uint8 or uint16.
        rules: structural zeros in codes of the model.
        seed: of all streams.
        done: sweeps so far; they number the streams.
    """

    state: np.ndarray
    rules: tuple[Rule, ...]
    seed: int
    done: int = 0

    def __repr__(self) -> str:
        return f"<Chains: {self.count} of {len(self.state)} columns, {self.done} sweeps>"

    @property
    def count(self) -> int:
        """Number of chains."""
        return int(self.state.shape[1])


LEAST = 1e-9  # share that a level has at least in a first model


def independent(shares: Sequence[np.ndarray], merged: tuple[Merged | None, ...] = ()) -> LogLinear:
    """The model of independent columns.

    Args:
        shares: float64 (size,) a column, in codes of the model; >= 0, not all 0.
        merged: see LogLinear.
    """
    parts = [np.asarray(one, dtype=np.float64) / np.sum(one) for one in shares]
    return LogLinear(
        tuple(len(one) for one in parts),
        tuple((column,) for column in range(len(parts))),
        tuple(np.log(np.maximum(one, LEAST)) for one in parts),
        merged=merged,
    )


def start(
    model: LogLinear, schema: Schema, shares: Sequence[np.ndarray], count: int, *, seed: int
) -> Chains:
    """Chains of `independent(shares)`: each column from its own; impossible rows are drawn again.

    Args:
        model: for its sizes and merged levels.
        schema: public; for its structural zeros.
        shares: float64 (size,) a column, in codes of the model; >= 0, not all 0.
        count: number of chains.
        seed: any whole number.
    Raises:
        UsageError: the structural zeros leave (almost) no possible row.
    """
    rules = model_rules(model, schema)
    state = np.empty((len(model.sizes), count), dtype=code_dtype(model.sizes))
    numbers = np.arange(count, dtype=np.uint64)
    for column in range(len(state)):
        state[column] = _independent(shares[column], numbers, stream_key(seed, START, column))

    def again(attempt: int, bad: np.ndarray) -> np.ndarray:
        # After a while, levels are taken uniformly: the shares may leave nothing.
        flat = attempt > ATTEMPTS // 2
        return np.stack(
            [
                _independent(
                    np.ones(len(one)) if flat else one,
                    numbers[bad],
                    stream_key(seed, AGAIN, attempt, column),
                )
                for column, one in enumerate(shares)
            ]
        ).astype(state.dtype)

    return Chains(make_possible(rules, state, again), rules, seed)


def sweep(model: LogLinear | Flat, chains: Chains, sweeps: int, *, threads: int = 1) -> Chains:
    """Draw every column of every chain anew, given the others, `sweeps` times.

    Args:
        model: the log-linear model, or its layout.
        sweeps: Gibbs passes.
        threads: how many; never changes a byte.
    """
    flat = model if isinstance(model, Flat) else flatten(model, chains.rules)
    state = chains.state.copy()
    order, keys = schedule(flat, chains.done, sweeps, chains.seed)
    draw(flat, state, order, keys, threads=threads)
    return replace(chains, state=state, done=chains.done + sweeps)


def schedule(
    flat: Flat, done: int, sweeps: int, *seed: int, fixed: Collection[int] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Steps in the order in which they are run, and the key of each one's stream.

    Every second sweep, tied columns are redrawn together instead of one by one.

    Args:
        flat: the layout.
        done: sweeps before.
        sweeps: how many.
        seed: what the streams are keyed by.
        fixed: columns that are given, not drawn.
    """
    columns, steps = flat.steps[:, [FIRST, SECOND]], []
    alone = [s for s, (_, second) in enumerate(columns) if second < 0]
    paired = [s for s, pair in enumerate(columns) if pair[1] >= 0 and not set(fixed) & set(pair)]
    held = {int(column) for s in paired for column in columns[s]}
    for number in range(done, done + sweeps):
        together = paired if number % 2 == 0 else []
        skip = held if together else set()
        steps += [(number, s) for s in alone if s not in fixed and s not in skip]
        steps += [(number, s) for s in together]
    keys = [stream_key(seed[0], *seed[1:], PASS, *step) for step in steps]
    return np.array([s for _, s in steps], dtype=np.int64), np.array(keys, dtype=np.uint64)


def draw(
    flat: Flat,
    state: np.ndarray,
    order: np.ndarray,
    keys: np.ndarray,
    *,
    first: int = 0,
    threads: int = 1,
) -> None:
    """Run draws on a state in place; chain 0 has number `first` in the streams."""

    def work(low: int, high: int) -> None:
        gibbs_kernel.sweep(state, low, high, first + low, order, keys, flat, room_of(flat))

    if len(order):
        rows = state.shape[1]
        even = max(LEAST_SLICE, -(-rows // max(threads, 1)))  # few rows keep every thread busy
        spread(work, rows, threads, min(SLICE, even))


def margins(
    chains: Chains | np.ndarray, sizes: Sequence[int], cliques: Sequence[tuple[int, ...]]
) -> tuple[np.ndarray, ...]:
    """Counts of every clique over the chains, one pass.

    Args:
        chains: or a state (columns, rows).
        sizes: number of codes of each column.
        cliques: column positions.
    Returns:
        One int64 array a clique, with an axis a column.
    """
    state = chains.state if isinstance(chains, Chains) else chains
    rows, terms, cells = clique_terms(sizes, cliques)
    counts = np.zeros(cells, dtype=np.int64)
    if len(rows):
        places = np.empty(COUNTED, dtype=np.uint32)
        margin_kernels.count(np.ascontiguousarray(state), rows, terms, places, counts)
    shapes = [tuple(sizes[c] for c in clique) for clique in cliques]
    ends = np.append(rows[1:, 0], cells).astype(np.int64)
    return tuple(
        counts[at:end].reshape(shape)
        for at, end, shape in zip(rows[:, 0], ends, shapes, strict=True)
    )


def clique_terms(
    sizes: Sequence[int], cliques: Sequence[tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Cliques as kernels read them: (offset, first term, terms), (column, stride), all cells."""
    rows: list[tuple[int, int, int]] = []
    terms: list[tuple[int, int]] = []
    cells = 0
    for clique in cliques:
        rows.append((cells, len(terms), len(clique)))
        step, own = 1, []
        for column in reversed(clique):
            own.append((column, step))
            step *= sizes[column]
        terms += own[::-1]
        cells += step
    return (
        np.array(rows, dtype=np.int64).reshape(-1, 3),
        np.array(terms, dtype=np.int64).reshape(-1, 2),
        cells,
    )


def code_dtype(sizes: Sequence[int]) -> np.dtype:
    """Smallest unsigned type that holds every code of the model (see `layout.WIDEST`)."""
    return np.dtype(np.uint8 if max(sizes) <= 256 else np.uint16)


def impossible_rows(rules: tuple[Rule, ...], state: np.ndarray) -> np.ndarray:
    """Which rows are impossible, bool (rows,)."""
    bad = np.zeros(state.shape[1], dtype=bool)
    for rule in rules:
        hit = np.ones(state.shape[1], dtype=bool)
        for column, hits in zip(rule.columns, rule.hits, strict=True):
            hit &= hits[state[column]]
        bad |= hit
    return bad


def spread(work: Callable[[int, int], None], rows: int, threads: int, size: int) -> None:
    """Call work(low, high) for slices of the rows, on several threads; `work` itself calls no `spread`."""
    cuts = [(low, min(rows, low + size)) for low in range(0, rows, size)]
    if threads == 1 or len(cuts) <= 1:
        for low, high in cuts:
            work(low, high)
        return
    started = [_pool(threads, os.getpid()).submit(work, low, high) for low, high in cuts]
    for done in wait(started).done:
        done.result()


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay, so that no sweep pays for starting them; a fork has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gibbous-sweep")


def uniforms_at(numbers: np.ndarray, key: int) -> np.ndarray:
    """Uniforms in [0, 1) at chosen places of a stream, float64."""
    word = mix64(numbers * np.uint64(GOLDEN) + np.uint64(key))
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53


def make_possible(
    rules: tuple[Rule, ...], state: np.ndarray, again: Callable[[int, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Draw impossible rows again; used for first rows alone, draws of a chain are masked."""
    return redrawn(functools.partial(impossible_rows, rules), state, again, ATTEMPTS)


def _independent(shares: np.ndarray, numbers: np.ndarray, key: int) -> np.ndarray:
    sums = np.cumsum(np.asarray(shares, dtype=np.float64))
    points = uniforms_at(numbers, key) * sums[-1]
    found: np.ndarray = np.minimum(np.searchsorted(sums, points, side="right"), len(sums) - 1)
    return found
