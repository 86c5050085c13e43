"""Random public schemas with rows that fit them, contexts of every kind, and what the truth says of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense

KEY = b"a key of some installation, here"


def column_of(name: str, rng: np.random.Generator, rows: int) -> tuple[Column, pl.Series]:
    """One random column and values for it."""
    missing = bool(rng.integers(2))
    kind = int(rng.integers(6))
    size = int(rng.integers(1, 7))
    levels: tuple[Any, ...]
    if kind == 0:
        levels = tuple(f"level {i}" for i in range(size))
        column = Column(name, "nominal", levels=levels, missing=missing)
        values = pl.Series(name, [levels[i] for i in rng.integers(0, size, rows)], dtype=pl.String)
    elif kind == 1:
        column = Column(name, "ordinal", levels=tuple(range(size)), other="more", missing=missing)
        values = pl.Series(name, rng.integers(0, size + 3, rows), dtype=pl.Int32)
    elif kind == 2:
        column = Column(name, "binary", levels=(False, True), missing=missing)
        values = pl.Series(name, rng.integers(0, 2, rows).astype(bool))
    elif kind == 3:
        edges = tuple(float(i * 10) for i in range(size + 1))
        column = Column(name, "numeric", edges=edges, integer=True, clamp=True, missing=missing)
        values = pl.Series(name, rng.integers(-5, size * 10 + 5, rows), dtype=pl.Int64)
    elif kind == 4:
        edges = tuple(i / 4 for i in range(size + 1))
        column = Column(name, "numeric", edges=edges, missing=missing)
        values = pl.Series(name, rng.uniform(0, size / 4, rows))
    else:
        start = 730_000
        column = Column(
            name, "date", edges=tuple(start + 30.0 * i for i in range(size + 1)), missing=missing
        )
        days = pl.Series(name, rng.integers(start, start + 30 * size, rows) - 719_163)
        values = days.cast(pl.Int32).cast(pl.Date)
    if missing and rows:
        values = (
            values.to_frame()
            .select(pl.when(pl.Series(rng.integers(0, 4, rows) > 0)).then(pl.col(name)))
            .to_series()
        )
    return column, values


def side_by_side(
    count: int, rows: int, rng: np.random.Generator
) -> tuple[Schema, pl.DataFrame, list[Context]]:
    """`count` random schemas of 2 to 5 columns side by side in one table, and contexts of each."""
    columns, values, groups = [], [], []
    for number in range(count):
        places = []
        for place in range(int(rng.integers(2, 6))):
            column, series = column_of(f"s{number}_c{place}", rng, rows)
            places.append(len(columns))
            columns.append(column)
            values.append(series)
        groups.append(places)
    schema = Schema(tuple(columns))
    return schema, pl.DataFrame(values), [c for g in groups for c in contexts_of(schema, g, rng)]


def contexts_of(schema: Schema, places: list[int], rng: np.random.Generator) -> list[Context]:
    """Margins, every kind of key and support, and a table that is mostly empty, over some columns."""
    mixed = [int(p) for p in rng.permutation(places)]
    targets, parents = mixed[:1], mixed[1:]
    keys: list[Key] = [Radix(), Hashed(8, 3), MinHash(2, 16, 1), Hashed(1 << 24, 5)]
    found = [context(schema, [place], []) for place in places]
    found += [context(schema, targets, parents, key) for key in keys[:3]]
    return found + [context(schema, targets, parents, key, seen=True) for key in keys]


def context(
    schema: Schema,
    targets: list[int],
    parents: list[int],
    key: Key = Radix(),  # noqa: B008
    *,
    seen: bool = False,
) -> Context:
    """A context with the sizes of the schema."""
    sizes = schema.sizes
    return Context(
        tuple(targets),
        tuple(parents),
        tuple(sizes[c] for c in targets),
        tuple(sizes[c] for c in parents),
        key,
        "seen" if seen else "dense",
    )


def digest(counts: tuple[Counts, ...]) -> str:
    """sha256 of tables, cell for cell in their order, with their types."""
    found = hashlib.sha256()
    for one in counts:
        cells = one.cells
        arrays = (
            [cells.values] if isinstance(cells, Dense) else [cells.keys, cells.levels, cells.values]
        )
        found.update(type(cells).__name__.encode())
        for array in arrays:
            found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def truth(frame: pl.DataFrame, schema: Schema, contexts: list[Context]) -> tuple[bytes, str]:
    """Fingerprint and digest of the counts, by the NumPy engine."""
    from gibbous.disintegrate.records import LocalEngine

    engine = LocalEngine()
    mark = engine.scan(frame, schema, key=KEY)
    return mark, digest(engine.tally(contexts))


def parts_of(frame: pl.DataFrame, folder: Path, count: int) -> str:
    """A folder of Parquet files with the rows of a frame."""
    folder.mkdir()
    step = max(1, -(-frame.height // count))
    for number in range(count):
        frame.slice(number * step, step).write_parquet(folder / f"part-{number}.parquet")
    return str(folder)
