"""V_s for any estimator: noise of the published law drawn anew on the public tables, rows and estimate again.

Post-processing of public tables: no record is read and nothing is spent. The seeded noise here stands
for the noise that was; it protects nothing, which is why it may come from a sampling stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.protocols import Progress, silent
from gibbous.core.stream import stream_key, uniforms
from gibbous.core.tables import Dense, NoiseInfo, Sparse, Table, Tables
from gibbous.evaluate.inference.choice import Noise
from gibbous.evaluate.inference.rules import Floats

Estimator = Callable[[Codes], Floats]
"""estimator(rows) -> float64 (estimates,); NaN where the rows do not have it."""
Refit = Callable[[Tables], Tables]
"""refit(tables) -> the same tables with everything that was fitted to them fitted again."""

REPLICATES = 100
REFITTED = 10  # replicates where each one fits a model again
LEAST = 20  # replicates that a variance is taken from
_STREAM = 0x696E66  # "inf": apart from the streams that drew the released rows
_FEWER = (
    "Some estimates do not exist in every redrawn table: V_s is taken from those that have them."
)
_SMOOTH = 1e4  # sigma from which a rounded normal law is the discrete one to all digits used here
_ROWS = (2_000, 40_000)  # rows of one half of a replicate


def noise_variance(
    tables: Tables,
    estimator: Estimator,
    *,
    seed: int = 0,
    replicates: int | None = None,
    rows: int | None = None,
    refit: Refit | None = None,
    progress: Progress = silent,
) -> Noise:
    """Variance of an estimate due to the noise in the tables, by a parametric bootstrap of the noise.

    Each replicate adds fresh noise of the published law and scale to the published tables, and draws
    two halves of rows by the public recipe; the covariance of their estimates over the replicates
    holds the noise and not the rows' own randomness. It assumes that the recipe answers to noise
    around the published tables as it did around the counts, and that what was chosen with noise (the
    contexts) would be chosen again.

    Args:
        tables: public.
        estimator: of a table of rows.
        seed: of noise and rows.
        replicates: >= 2; the standard error of the variance is about sqrt(2 / replicates) of it. None
            takes 100, or 10 where each one fits a model again.
        rows: of one half; None takes four times the noisy number of records, 2,000 to 40,000.
        refit: fits again a model that is saved beside its tables; None takes the recipe's own.
        progress: told how many replicates are done.
    Returns:
        V_s with replicates - 1 degrees of freedom.
    Raises:
        UsageError: fewer than two replicates.
    """
    fitted = getattr(tables, "model", None) is not None
    if replicates is None:
        replicates = REFITTED if fitted else REPLICATES
    if replicates < 2:
        raise UsageError(
            "REPLICATES",
            f"replicates={replicates} were asked for.",
            "A variance needs two or more; 100 give it within about 14 %.",
            "Raise replicates.",
        )
    refit = (refit or _own_refit(seed)) if fitted else None
    if fitted and refit is None:
        return _unfitted(estimator(_halves(tables, _ROWS[0], seed)[0]).size)
    each = rows or min(max(4 * tables.noisy_rows(), _ROWS[0]), _ROWS[1])
    base = np.mean([estimator(half) for half in _halves(tables, each, seed)], axis=0)
    found = np.full((replicates, 2, base.size), np.nan)
    for replicate in range(replicates):
        progress("noise again", replicate, replicates)
        fresh = redrawn(tables, seed, replicate)
        again = refit(fresh) if refit else fresh
        found[replicate] = [estimator(half) for half in _halves(again, each, seed)]
    progress("noise again", replicates, replicates)
    return _noise(found, base)


def redrawn(tables: Tables, seed: int, replicate: int) -> Tables:
    """The tables with fresh noise of the published law added to every published cell.

    A thresholded table keeps what exceeds its threshold again; cells that it lost stay lost.
    """
    parts = [
        tuple(
            replace(t, cells=_fresh(t, stream_key(seed, _STREAM, replicate, group, i)))
            for i, t in enumerate(members)
        )
        for group, members in enumerate((tables.items, tables.extra))
    ]
    return replace(tables, items=parts[0], extra=parts[1])


def noise(info: NoiseInfo, count: int, key: int) -> np.ndarray:
    """Seeded noise of a published law: int64 (count,). For variances only, never for protection."""
    first = uniforms(key, 0, count)
    if info.law == "geometric":
        # The difference of two geometric numbers has P(g) proportional to exp(-|g| / scale).
        second = uniforms(key, count, count)
        one, two = (np.floor(-info.scale * np.log1p(-u)) for u in (first, second))
        return np.asarray(one - two, dtype=np.int64)
    if info.scale >= _SMOOTH:
        normal = need("scipy.special", "evaluate").ndtri(first + 2.0**-54)
        return np.asarray(np.rint(info.scale * normal), dtype=np.int64)
    reach = math.ceil(12 * info.scale) + 1
    support = np.arange(-reach, reach + 1)
    law = np.cumsum(np.exp(-(support**2) / (2 * info.scale**2)))
    places = np.searchsorted(law / law[-1], first, side="right")
    return np.asarray(support[np.minimum(places, len(support) - 1)])


def _fresh(table: Table, key: int) -> Dense | Sparse:
    cells = table.cells
    values = cells.values + noise(table.noise, cells.values.size, key).reshape(cells.values.shape)
    if isinstance(cells, Dense):
        return Dense(values)
    kept = values > (-math.inf if table.noise.threshold is None else table.noise.threshold)
    return Sparse(cells.keys[kept], cells.levels[kept], values[kept])


def _halves(tables: Tables, rows: int, seed: int) -> tuple[Codes, Codes]:
    """Two tables of rows; the same streams in every replicate, so that only the tables differ."""
    from gibbous.synthesize.program import prepare
    from gibbous.synthesize.sample import sample

    program = prepare(tables)
    start = stream_key(seed, _STREAM)
    return (
        sample(program, rows, seed=start, set_index=0),
        sample(program, rows, seed=start, set_index=1),
    )


def _noise(found: np.ndarray, base: Floats) -> Noise:
    """V_s and its notes from the halves' estimates, (replicates, 2, estimates)."""
    whole = np.isfinite(found).all(axis=1)
    used = whole.sum(axis=0)
    some = np.maximum(used, 1)
    halves = np.where(whole[:, None, :], found, 0.0)
    apart = np.where(whole[:, None, :], found - halves.sum(axis=0) / some, 0.0)
    covariance = (apart[:, 0] * apart[:, 1]).sum(axis=0) / np.maximum(used - 1, 1)
    enough = used >= min(LEAST, len(found))
    variance = np.where(enough, np.maximum(covariance, 0.0), np.nan)
    shift = np.where(enough, halves.mean(axis=1).sum(axis=0) / some - base, np.nan)
    return Noise(
        variance,
        df=max(len(found) - 1, 1),
        source=f"noise of the published law drawn {len(found)} times on the public tables",
        notes=(_FEWER,) if ((used > 0) & (used < len(found))).any() else (),
        shift=shift,
    )


def _own_refit(seed: int) -> Refit | None:
    """What the log-linear recipe offers for fitting its model again to other tables."""
    from gibbous.synthesize import loglinear

    own = getattr(loglinear, "refit", None)
    return None if own is None else lambda tables: own(tables, seed=seed)


def _unfitted(count: int) -> Noise:
    return Noise(
        np.full(count, np.nan),
        source="not found, the release's model was not fitted again",
        notes=("V_s needs the model fitted again to redrawn tables.",),
    )
