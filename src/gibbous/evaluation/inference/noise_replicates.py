"""V_s for any estimator: noise of the published law drawn anew on the public tables, rows and estimate again.

Post-processing of public tables: no record is read and nothing is spent. The seeded noise here stands
for the noise that was; it protects nothing, which is why it may come from a sampling stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, uniforms
from gibbous.core.tables import Dense, LogLinear, NoiseInfo, Sparse, Table, Tables
from gibbous.evaluation.inference.combining_rules import Floats, Noise
from gibbous.structure.narrow_bins import redrawn_weights

Estimator = Callable[[Codes], Floats]
"""estimator(rows) -> float64 (estimates,); NaN where the rows do not have it."""
Refit = Callable[[Tables], Tables]
"""refit(tables) -> the same tables with everything that was fitted to them fitted again."""

REPLICATES = 100
REFITTED = 10  # replicates where each one fits a model again
REFITTED_AT_ONCE = 40  # the same, where all rows of the model can be listed
DRAWN_AGAIN = 20  # sets that the variance of rows is taken from
EARLY, EARLY_REFITTED = 10, 4  # replicates behind a provisional answer
LEAST = 20  # replicates that a variance is taken from
_STREAM = 0x696E66  # "inf": apart from the streams that drew the released rows
_FEWER = (
    "Some estimates do not exist in every redrawn table: V_s is taken from those that have them."
)
_SMOOTH = 1e4  # sigma from which a rounded normal law is the discrete one to all digits used here
_ROWS = (2_000, 40_000)  # rows of one half of a replicate


def ignored(_: object) -> None:
    """Nobody waits for a provisional answer."""


def noise_variance(
    tables: Tables,
    estimator: Estimator,
    *,
    seed: int = 0,
    replicates: int | None = None,
    rows: int | None = None,
    refit: Refit | None = None,
    progress: Progress = silent,
    early: Callable[[Noise], None] = ignored,
) -> Noise:
    """Variance of an estimate due to the noise in the tables, by a parametric bootstrap of the noise.

    Each replicate adds fresh noise of the published law and scale to the published tables, and draws
    two halves of rows by the public recipe; the covariance of their estimates over the replicates
    holds the noise and not the rows' own randomness. Where a model was fitted to the tables, the
    noise is added to what the model says of each table, and the model is fitted to that again. It
    assumes that the recipe answers to noise there as it did around the counts, and that what was
    chosen with noise (the contexts) would be chosen again.

    Args:
        replicates: >= 2; the standard error of the variance is about sqrt(2 / replicates) of it. None
            takes 100; where each one fits a model again 10, or 40 if the model is small.
        rows: of one half; None takes four times the noisy number of records, 2,000 to 40,000.
        refit: fits again a model that is saved beside its tables; None takes the recipe's own.
        early: given what the first 10 replicates say (4, if a model is fitted again), where more are made.
    Returns:
        V_s, at least 0, and its standard error; replicates - 1 degrees of freedom if rows were endless.
    Raises:
        UsageError: fewer than two replicates.
    """
    tables = tables.of_set(0)  # of sets with noise of their own: V_s is that of one of them
    center, fit = _around(tables, seed, refit)
    if replicates is None:
        replicates = _usual(tables)
    if replicates < 2:
        raise UsageError(
            "REPLICATES",
            f"replicates={replicates} were asked for.",
            "A variance needs two or more; 100 give it within about 14 %.",
            "Raise replicates.",
        )
    if fit is None:
        return _unfitted(estimator(_halves(tables, _ROWS[0], seed)[0]).size)
    each = rows or min(max(4 * tables.noisy_rows(), _ROWS[0]), _ROWS[1])
    base = np.mean([estimator(half) for half in _halves(tables, each, seed)], axis=0)
    estimates = np.full((replicates, 2, base.size), np.nan)
    few = EARLY if _usual(tables) == REPLICATES else EARLY_REFITTED
    for replicate in range(replicates):
        progress("noise again", replicate, replicates)
        if replicate == few:
            early(_noise(estimates[:few], base))
        again = fit(redrawn(center, seed, replicate))
        estimates[replicate] = [estimator(half) for half in _halves(again, each, seed)]
    progress("noise again", replicates, replicates)
    return _noise(estimates, base)


def row_variance(tables: Tables, estimator: Estimator, rows: int, seed: int) -> Floats | None:
    """S, variance of an estimate over sets of so many rows from the same tables, from `DRAWN_AGAIN` sets.

    None where rows are independent draws. Rows of a log-linear model with goals are moved to its margins:
    what depends on these hardly differs between sets.
    """
    from gibbous.sampling.sample import prepared, sample

    own = tables.of_set(0)
    if not any(isinstance(t.model, LogLinear) and t.model.goals for t in own.parts or (own,)):
        return None
    program, start = prepared(own), stream_key(seed, _STREAM, 1)
    sets, drawn = range(DRAWN_AGAIN), min(rows, _ROWS[1])
    estimates = [estimator(sample(program, drawn, seed=start, set_index=i)) for i in sets]
    return np.asarray(np.var(estimates, axis=0, ddof=1) * (drawn / max(rows, 1)))


def redrawn(tables: Tables, seed: int, replicate: int) -> Tables:
    """The tables with fresh noise of the published law added to every published cell.

    A thresholded table keeps what exceeds its threshold again; cells that it lost stay lost.
    """
    if tables.parts:
        own = [redrawn(part, stream_key(seed, i), replicate) for i, part in enumerate(tables.parts)]
        return replace(tables, parts=tuple(own))
    parts = [
        tuple(
            replace(t, cells=_fresh(t, stream_key(seed, _STREAM, replicate, group, i)))
            for i, t in enumerate(members)
        )
        for group, members in enumerate((tables.items, tables.extra))
    ]
    return replace(
        tables,
        items=parts[0],
        extra=parts[1],
        model=_redrawn_sums(tables.model, seed, replicate),
        schema=_redrawn_laws(tables.schema, stream_key(seed, _STREAM, replicate, 3)),
    )


def _redrawn_laws(schema: Schema, key: int) -> Schema:
    """The schema with fresh noise in the laws within bins that noise was paid for."""
    columns = list(schema.columns)
    for place, column in enumerate(columns):
        if column.within is not None and column.within.noise > 0:
            places = uniforms(stream_key(key, place), 0, len(column.within.weights))
            normal = need("scipy.special", "evaluate").ndtri(places + 2.0**-54)
            weights = redrawn_weights(column, np.asarray(normal))
            columns[place] = replace(column, within=replace(column.within, weights=weights))
    return schema if tuple(columns) == schema.columns else replace(schema, columns=tuple(columns))


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
    from gibbous.sampling.sample import prepared, sample

    program = prepared(tables)
    start = stream_key(seed, _STREAM)
    return (
        sample(program, rows, seed=start, set_index=0),
        sample(program, rows, seed=start, set_index=1),
    )


def _noise(estimates: np.ndarray, base: Floats) -> Noise:
    """V_s and its notes from the halves' estimates, (replicates, 2, estimates)."""
    whole = np.isfinite(estimates).all(axis=1)
    used = whole.sum(axis=0)
    some = np.maximum(used, 1)
    enough = used >= min(LEAST, len(estimates))
    halves = np.where(whole[:, None, :], estimates, 0.0)
    apart = np.where(whole[:, None, :], estimates - halves.sum(axis=0) / some, 0.0)
    free = np.maximum(used - 1, 1)
    covariance = (apart[:, 0] * apart[:, 1]).sum(axis=0) / free
    # Of a covariance of two normal numbers; the rows' own randomness, which V_s leaves out, is in it.
    own = np.prod((apart**2).sum(axis=0) / free, axis=0)
    error = np.where(enough, np.sqrt((own + covariance**2) / free), np.nan)
    variance = np.where(enough, np.maximum(covariance, 0.0), np.nan)
    shift = np.where(enough, halves.mean(axis=1).sum(axis=0) / some - base, np.nan)
    return Noise(
        variance,
        df=max(len(estimates) - 1, 1),
        source=f"noise of the published law drawn {len(estimates)} times on the public tables",
        notes=(_FEWER,) if ((used > 0) & (used < len(estimates))).any() else (),
        shift=shift,
        error=error,
    )


def _around(tables: Tables, seed: int, refit: Refit | None) -> tuple[Tables, Refit | None]:
    """What noise is added to, and what is made of the result; None where a model cannot be fitted."""
    from gibbous.sampling import loglinear

    if tables.parts:
        centers, fits = zip(*(_around(part, seed, refit) for part in tables.parts), strict=True)
        if None in fits:
            return tables, None
        return replace(tables, parts=centers), lambda fresh: replace(
            fresh, parts=tuple(fit(part) for fit, part in zip(fits, fresh.parts, strict=True))
        )
    if tables.model is None:
        return tables, lambda fresh: fresh
    if refit is not None:
        return tables, refit
    if isinstance(tables.model, CellModel):
        from gibbous.sampling.cells.cell_moments import refitted

        return tables, refitted
    start = loglinear.prepared(tables, seed=stream_key(seed, _STREAM))
    if start is None:
        return tables, None
    return start.expected, lambda fresh: loglinear.refitted(start, fresh)


def _redrawn_sums(
    model: LogLinear | CellModel | None, seed: int, replicate: int
) -> LogLinear | CellModel | None:
    """A cell model with fresh noise in its sums; another model, or none, as it is."""
    if not isinstance(model, CellModel):
        return model
    keys = [stream_key(seed, _STREAM, replicate, 2, i) for i in range(len(model.sums))]
    return replace(
        model,
        sums=tuple(
            replace(one, table=replace(one.table, cells=_fresh(one.table, key)))
            for one, key in zip(model.sums, keys, strict=True)
        ),
    )


def _usual(tables: Tables) -> int:
    from gibbous.sampling.loglinear.laws import listable

    if tables.parts:
        return min(_usual(part) for part in tables.parts)
    if not isinstance(tables.model, LogLinear):
        return REPLICATES
    small = listable(tables.model.sizes, tables.model.cliques)
    return REFITTED_AT_ONCE if small else REFITTED


def _unfitted(count: int) -> Noise:
    return Noise(
        np.full(count, np.nan),
        source="not found, the release's model was not fitted again",
        notes=("V_s needs the model fitted again to redrawn tables.",),
    )
