"""Shares read off the released noisy tables themselves: unbiased, with a noise variance that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Radix
from gibbous.core.errors import UsageError
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, NoiseInfo, Table, Tables
from gibbous.evaluation.inference.combine import direct
from gibbous.evaluation.inference.combined_estimate import Combined
from gibbous.evaluation.inference.combining_rules import Floats, Noise
from gibbous.evaluation.inference.release_facts import Facts

MOST_CELLS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """Noisy counts of every combination of some columns, combined over the tables that hold them.

    Attributes:
        counts: float64 (combinations,), row-major over the columns in the order asked for; unbiased,
            hence possibly negative.
        variance: of the noise in one of these counts, in counts squared; equal for all.
    """

    counts: Floats
    variance: float
    tables: int


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Noisy counts of every combination of some columns in one table.

    Attributes:
        counts: float64 (combinations,), as in `Margin`.
        cells: of the table behind each of them.
        noise: in each cell.
    """

    counts: Floats
    cells: int
    noise: NoiseInfo


def margin(tables: Tables, columns: tuple[int, ...]) -> Margin | None:
    """Counts of the combinations of `columns`, by inverse variance over all dense tables with them.

    Tables of several sets with noise of their own are averaged, those of parts of the records added.

    Returns:
        None where no released table holds the columns together, each by its own code. Thresholded
        tables are left out: what they lost makes their sums too small.
    """
    margins = [margin(copy, columns) for copy in tables.copies]
    if any(part.copies for part in tables.parts):
        margins += [margin(tables.of_set(i), columns) for i in range(tables.noisings)]
    elif tables.parts:
        margins.append(_added([margin(part, columns) for part in tables.parts]))
    for one in _own(tables, columns):
        margins.append(Margin(one.counts, max(one.noise.variance, 1e-12) * one.cells, 1))
    known = [one for one in margins if one is not None]
    if not known:
        return None
    weights = np.array([1.0 / one.variance for one in known])
    total = sum(
        (weight * one.counts for weight, one in zip(weights, known, strict=True)),
        start=np.zeros(math.prod(tables.schema.sizes[c] for c in columns)),
    )
    precision = float(weights.sum())
    return Margin(total / precision, 1.0 / precision, sum(one.tables for one in known))


def readings(tables: Tables, columns: tuple[int, ...]) -> tuple[Reading, ...]:
    """What each dense table that holds the columns says of them, those of all sets together.

    Returns:
        () where no table does, or where tables are of parts of the records.
    """
    if tables.parts:
        return ()
    each = [_own(one, columns) for one in (tables, *tables.copies)]
    return tuple(one for found in each for one in found)


def _own(tables: Tables, columns: tuple[int, ...]) -> list[Reading]:
    each = [(one, _summed(one, columns, tables.schema)) for one in tables.items + tables.extra]
    return [Reading(found[0], found[1], one.noise) for one, found in each if found is not None]


def _added(parts: list[Margin | None]) -> Margin | None:
    """Counts of all parts of the records together; None where a part does not hold the columns."""
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    counts = sum((one.counts for one in known), start=np.zeros_like(known[0].counts))
    return Margin(counts, sum(one.variance for one in known), sum(one.tables for one in known))


def shares(counted: Margin, records: float) -> tuple[Floats, Floats, Noise]:
    """Shares of the combinations with both of their variances, by the delta method.

    Returns:
        Shares (they sum to 1 and may be negative), sampling variance p (1 - p) / n, and V_s.
    """
    total = max(float(counted.counts.sum()), 1.0)
    share = counted.counts / total
    inside = np.clip(share, 0.0, 1.0)
    noise = counted.variance * (1 - 2 * share + share.size * share**2) / total**2
    source = (
        "the published scale of the noise in the released "
        f"{'table' if counted.tables == 1 else f'{counted.tables} tables'}, by the delta method"
    )
    return share, inside * (1 - inside) / max(records, 1.0), Noise(noise, source=source)


def read_off(
    tables: Tables, columns: tuple[int, ...], facts: Facts, level: float, names: Sequence[str]
) -> Combined | None:
    """Shares of the combinations with intervals, without any rows; None where no table holds them."""
    known = margin(tables, columns)
    if known is None:
        return None
    records = facts.records or max(float(known.counts.sum()), 1.0)
    share, sampling, noise = shares(known, records)
    facts = replace(facts, records=records)
    return direct(share, sampling, noise, facts=facts, level=level, names=names)


def counted(codes: Codes, columns: tuple[int, ...]) -> Floats:
    """Shares of the combinations of some columns of rows, in the same order."""
    sizes = tuple(codes.schema.sizes[c] for c in columns)
    key = np.ravel_multi_index(tuple(codes.by_column[c].astype(np.int64) for c in columns), sizes)
    return np.asarray(np.bincount(key, minlength=math.prod(sizes)) / max(codes.rows, 1))


def positions(schema: Schema, columns: Sequence[str]) -> tuple[int, ...]:
    """Where the columns of a table are in the schema.

    Raises:
        UsageError: no such column, or more than MOST_CELLS combinations.
    """
    wrong = [name for name in columns if name not in schema.names]
    if isinstance(columns, str) or not columns or wrong or len(set(columns)) < len(columns):
        raise UsageError(
            "COLUMN",
            f"A table of {columns!r} was asked for.",
            f"It takes a list of different columns; the release has {', '.join(schema.names)}.",
            "Correct the columns.",
        )
    places = tuple(schema.index(name) for name in columns)
    cells = math.prod(schema.sizes[c] for c in places)
    if cells > MOST_CELLS:
        raise UsageError(
            "CELLS",
            f"The table would have {cells:,} cells.",
            f"At most {MOST_CELLS:,}.",
            "Ask for fewer columns.",
        )
    return places


def names(schema: Schema, columns: tuple[int, ...]) -> list[dict[str, str]]:
    """The levels of each combination, in the order of `Margin.counts`."""
    labels = [schema.columns[c].labels() for c in columns]
    places = np.unravel_index(
        np.arange(math.prod(map(len, labels))), tuple(len(one) for one in labels)
    )
    return [
        {schema.names[c]: labels[i][places[i][row]] for i, c in enumerate(columns)}
        for row in range(len(places[0]))
    ]


def _summed(table: Table, columns: tuple[int, ...], schema: Schema) -> tuple[Floats, int] | None:
    """Counts of the columns in one table, and how many of its cells each is a sum of."""
    context = table.context
    if not isinstance(table.cells, Dense) or not isinstance(context.key, Radix):
        return None
    if not set(columns) <= set(context.columns):
        return None
    shape = context.parent_sizes + context.target_sizes
    sizes = dict(zip(context.columns, shape, strict=True))
    if any(sizes[column] != schema.sizes[column] for column in columns):
        return None  # of merged levels, or of a number that is there or not
    cube = table.cells.values.astype(np.float64).reshape(shape)
    axes = tuple(context.columns.index(c) for c in columns)
    others = tuple(a for a in range(cube.ndim) if a not in axes)
    kept = sorted(axes)
    summed = cube.sum(axis=others) if others else cube
    ordered = summed.transpose([kept.index(a) for a in axes])
    return ordered.reshape(-1), math.prod(shape[a] for a in others)
