"""The law of SBHG as printed, from seeded streams, and the error measure of its paper.

This is what algorithm 3 of the paper would publish, raw steps included: nothing here protects anybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import gibbous as gb
from gibbous.core.context import located
from gibbous.studies.park2014_data import Microdata
from gibbous.studies.sbhg_conditionals import Floats, Hashed, Ints, disintegrated, drawn, mixed
from gibbous.studies.seeded_draws import Draws

Accept = Literal["record", "key"]
"""Rows are kept if they are records (line 13 of algorithm 3), or if their key survived (s3.3)."""
Start = Literal["surviving", "record"]
"""Chains start at records whose cells survived in all tables (line 9), or at any record."""


@dataclass(frozen=True, slots=True, eq=False)
class Noised:
    """The hashed conditionals of one release: running sums of what survived, one a column."""

    tables: tuple[Hashed, ...]
    cumulative: tuple[Floats, ...]

    def survives(self, state: Ints) -> npt.NDArray[np.bool_]:
        """Whether the cell of each row survived, a column a table: bool (rows, columns)."""
        survived = []
        for table, sums in zip(self.tables, self.cumulative, strict=True):
            lines, level = table.lines(state), state[:, table.target]
            before = np.where(level > 0, sums[lines, np.maximum(level - 1, 0)], 0.0)
            survived.append(sums[lines, level] > before)
        return np.stack(survived, axis=1)


def sba(counts: npt.NDArray[Any], draws: Draws, *, scale: float, threshold: float) -> Floats:
    """Stability-based histogram: Laplace noise on occupied cells, kept above the threshold.

    Args:
        counts: any shape; only cells > 0 get noise.
    Source:
        [sbhg, alg. 2].
    """
    out = np.zeros(counts.shape)
    held = counts > 0
    noisy = counts[held] + scale * draws.laplace(int(held.sum()))
    out[held] = np.where(noisy > threshold, noisy, 0.0)
    return out


def threshold_printed(epsilon: float, delta: float) -> float:
    """1 + (2 / epsilon) ln(1 / delta) [sbhg, alg. 2], also at delta = 1."""
    return 1.0 + 2.0 / epsilon * math.log(1.0 / delta)


def noised(
    tables: Sequence[Hashed], draws: Draws, *, epsilon: float | None, delta: float = 0.1
) -> Noised:
    """SBA on each conditional, each with the noise of a single table, as printed.

    Args:
        epsilon: of one table; None leaves the counts as they are.
    """
    sums = []
    for table in tables:
        weights = table.counts.astype(np.float64)
        if epsilon is not None:
            threshold = threshold_printed(epsilon, delta)
            weights = sba(
                table.counts, draws.at(table.target), scale=2 / epsilon, threshold=threshold
            )
        sums.append(np.cumsum(weights, axis=1))
    return Noised(tuple(tables), tuple(sums))


def printed(
    table: Microdata,
    draws: Draws,
    *,
    parents: int,
    epsilon: float | None,
    delta: float,
    sweeps: int,
    accept: Accept = "record",
    start: Start = "surviving",
) -> Ints:
    """As many rows as the table has, by algorithm 3 with the raw steps it prints.

    Args:
        parents: k, the columns that the hash keeps.
        epsilon: of one table; None runs the plain Gibbs sampler.
    Returns:
        int64 (rows, columns).
    """
    tables = disintegrated(table.codes, table.sizes, parents)
    conditionals = noised(tables, draws.at(1), epsilon=epsilon, delta=delta)
    state = starts(table.codes, conditionals if start == "surviving" else None, draws.at(2))
    return gibbs(conditionals, state, draws.at(3), sweeps=sweeps, records=known(table, accept))


def known(table: Microdata, accept: Accept) -> Ints | None:
    """The records as numbers, where a proposed row must be one."""
    return np.unique(mixed(table.codes, table.sizes)) if accept == "record" else None


def starts(codes: Ints, conditionals: Noised | None, draws: Draws) -> Ints:
    """Records whose cells survived in all tables, or in most where there is none; None: any."""
    surviving = (
        np.zeros(len(codes)) if conditionals is None else conditionals.survives(codes).sum(axis=1)
    )
    pool = np.flatnonzero(surviving == surviving.max(initial=0))
    chosen = pool[(draws.uniform(len(codes)) * len(pool)).astype(np.int64)]
    return codes[chosen].copy()


def gibbs(
    conditionals: Noised, state: Ints, draws: Draws, *, sweeps: int, records: Ints | None
) -> Ints:
    """Passes over the columns; a row without a conditional, or that is refused, stays as it was."""
    sizes = [table.levels for table in conditionals.tables]
    for sweep in range(sweeps):
        for table, sums in zip(conditionals.tables, conditionals.cumulative, strict=True):
            j = table.target
            lines = table.lines(state, draws.at(sweep, j, 1))
            level, taken = drawn(sums, lines, draws.at(sweep, j).uniform(len(state)))
            if records is not None:
                proposed = state.copy()
                proposed[:, j] = level
                taken &= located(records, mixed(proposed, sizes))[1]
            state[:, j] = np.where(taken, level, state[:, j])
    return state


def error(real: Ints, synthetic: Ints, sizes: Sequence[int]) -> dict[str, Any]:
    """U(X, Z) over the occupied cells of the full table, and what falls beside them.

    Z is scaled to as many rows as X.

    Returns:
        u: sum of (x - z)^2 / x over x > 0. degrees: occupied cells less one: what U is on average
        if Z is multinomial with X's shares. outside: share of Z's rows where X has none. l1: sum of
        |x - z| over all cells. shown: share of the records that stand alone in their cell and are
        among Z's rows; None without such records.
    Source:
        [sbhg, s3.4].
    """
    cells, x = np.unique(mixed(real, sizes), return_counts=True)
    keys = mixed(synthetic, sizes)
    places, inside = located(cells, keys)
    held = np.bincount(places[inside], minlength=len(cells))
    z = held * (len(real) / max(len(keys), 1))
    alone = x == 1
    outside = 1.0 - float(inside.mean()) if len(keys) else 0.0
    return {
        "u": float(np.sum((x - z) ** 2 / x)),
        "degrees": float(len(cells) - 1),
        "outside": outside,
        "l1": float(np.abs(x - z).sum()) + outside * len(real),
        "shown": float((held[alone] > 0).mean()) if alone.any() else None,
    }


def projected(real: Ints, synthetic: Ints, sizes: Sequence[int], columns: int) -> dict[str, float]:
    """Means of u, degrees and outside over all tables of so many columns, and u over degrees."""
    errors = []
    for chosen in combinations(range(len(sizes)), columns):
        part = [sizes[c] for c in chosen]
        errors.append(error(real[:, chosen], synthetic[:, chosen], part))
    return {
        "u": float(np.mean([one["u"] for one in errors])),
        "degrees": float(np.mean([one["degrees"] for one in errors])),
        "outside": float(np.mean([one["outside"] for one in errors])),
        "ratio": float(np.mean([one["u"] / max(one["degrees"], 1) for one in errors])),
    }


def true_delta(tables: int, delta: float) -> float:
    """Least delta of so many tables, each with the paper's noise and threshold for one.

    A record that stands alone in its cells shows in each table with probability delta / 2, and in none
    without it: no epsilon covers that mass. Epsilon adds up over the tables on top of it.
    """
    return 1.0 - (1.0 - delta / 2) ** tables


def released(mechanism: Any, table: Microdata, rows: int, seed: int) -> Ints:
    """Rows of a mechanism as it runs, with the operating system's noise; charged to no ledger that lasts."""
    release = gb.synthesize(
        table.frame(), table.schema(), mechanism,
        rows=rows, seed=seed, ledger=gb.Ledger.ephemeral(), understand=True,
    )  # fmt: skip
    return table.coded(release.sets[0])
