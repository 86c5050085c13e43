"""Counting against DuckDB group-bys, NumPy bincount and np.sort: CPU ratios inside one run.

Run: python bench/counting.py [--quick] [--rows N] [--json FILE]
All sides count the same codes in memory, on one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import combinations
from math import prod
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from common import Result, arguments, cpu_seconds, save, show, wall_seconds

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed, Key, MinHash, Radix, keys_of
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine

SIZES = (5, 17, 2, 6, 8, 20, 4, 10, 7, 3, 13, 9, 24)  # in the shape of a discharge table
RADIX = Radix()
PAIRS = tuple(2 + 7 * i % 9 for i in range(50))  # 2 to 10 levels


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, help="rows of the 13-column table")
    options = parser.parse_args()
    rows = options.rows or (1_000_000 if options.quick else 10_000_000)
    results = [
        *contexts(rows),
        *pairs(1_000_000),
        *sparse(rows),
        *from_file(rows),
        *growth(rows),
        *start_up(),
    ]
    show(f"Counting, {rows:,} rows x {len(SIZES)} columns", results)
    save(options.json, "counting", results, "numpy", "numba", "duckdb")


def contexts(rows: int) -> Iterator[Result]:
    """p contexts of R parents, dense: against DuckDB and NumPy."""
    codes = table(rows, SIZES)
    engine = LocalEngine.from_codes(codes, threads=1)
    base = duck(codes)
    p = len(SIZES)
    for parents, of_duck in ((2, 1 / 5), (4, 1 / 10)):
        wanted = ring(codes.schema, parents)
        ours = cpu_seconds(lambda w=wanted: engine.tally(w))
        numpy = cpu_seconds(lambda w=wanted: bincount(codes, w), 1)
        ducks = {
            "one integer key": cpu_seconds(lambda w=wanted: group_by_key(base, w), 1, warm=False),
            "columns": cpu_seconds(lambda w=wanted: group_by_columns(base, w), 1, warm=False),
        }
        name = min(ducks, key=ducks.__getitem__)
        cells = sum(c.cells for c in wanted)
        what = f"{p} contexts, R = {parents}"
        both = f"{ours:.3f} s against {{:.3f}} s; {cells:,} cells"
        yield Result(
            f"{what}: / DuckDB",
            ours / ducks[name],
            of_duck,
            detail=both.format(ducks[name]) + f"; by {name}",
        )
        yield Result(f"{what}: / NumPy bincount", ours / numpy, 1 / 3, detail=both.format(numpy))
        yield Result(f"{what}: a row x column", ours / rows / p * 1e9, 1.5, "ns")
    for key in (Hashed(4096), MinHash(2, 4096)):
        wanted = ring(codes.schema, 4, key)
        ours = cpu_seconds(lambda w=wanted: engine.tally(w))
        numpy = cpu_seconds(lambda w=wanted: keyed(codes, w), 1)
        what = f"{p} contexts, R = 4, {type(key).__name__} keys"
        yield Result(f"{what}: / NumPy", ours / numpy, detail=f"{ours:.3f} s against {numpy:.3f} s")
        yield Result(f"{what}: a row x column", ours / rows / p * 1e9, unit="ns")


def pairs(rows: int) -> Iterator[Result]:
    """All pairs of 50 columns."""
    codes = table(rows, PAIRS)
    wanted = [context(codes.schema, (a,), (b,)) for b, a in combinations(range(len(PAIRS)), 2)]
    engine = LocalEngine.from_codes(codes, threads=1)
    ours = cpu_seconds(lambda: engine.tally(wanted))
    numpy = cpu_seconds(lambda: bincount(codes, wanted), 1)
    what = f"all {len(wanted):,} pairs of 50 columns, {rows:,} rows"
    yield Result(
        f"{what}: / NumPy bincount",
        ours / numpy,
        1 / 6,
        detail=f"{ours:.3f} s against {numpy:.3f} s",
    )
    yield Result(f"{what}: a row x pair", ours / rows / len(wanted) * 1e9, unit="ns")


def sparse(rows: int) -> Iterator[Result]:
    """One table with more cells than fit densely: against sorting its keys and no more."""
    codes = table(rows, SIZES)
    engine = LocalEngine.from_codes(codes, threads=1)
    for parents in (8, 10):
        one = ring(codes.schema, parents, seen=True)[1]
        ids = keys_of(one, codes.values) * np.uint64(one.levels)
        ids += codes.values[:, one.targets[0]]
        ours = cpu_seconds(lambda w=one: engine.tally([w]))
        sort = cpu_seconds(lambda k=ids: np.sort(k))
        unique = cpu_seconds(lambda k=ids: np.unique(k, return_counts=True), 1)
        what = f"sparse, R = {parents} ({one.cells:.2g} cells)"
        detail = f"{ours:.3f} s against {{:.3f}} s"
        yield Result(
            f"{what}: / np.sort, 64-bit keys", ours / sort, 1.3, detail=detail.format(sort)
        )
        if one.cells <= 1 << 32:
            ids = ids.astype(np.uint32)
            short = cpu_seconds(lambda k=ids: np.sort(k))
            told = detail.format(short)
            yield Result(f"{what}: / np.sort, 32-bit keys", ours / short, detail=told)
        yield Result(f"{what}: / np.unique", ours / unique, detail=detail.format(unique))
        yield Result(f"{what}: a row", ours / rows * 1e9, 18, "ns")


def from_file(rows: int) -> Iterator[Result]:
    """Parquet of whole numbers to counts: read, validate, encode, fingerprint, count."""
    codes = table(rows, SIZES)
    schema = whole_numbers()
    wanted = ring(schema, 4)
    with tempfile.TemporaryDirectory() as folder:
        path, less = Path(folder) / "codes.parquet", Path(folder) / "less.parquet"
        frame = pl.DataFrame(dict(zip(schema.names, codes.by_column, strict=True)))
        frame.write_parquet(path)
        frame.head(rows // 10).write_parquet(less)
        del frame
        base = duckdb.connect(config={"threads": 1})
        base.execute(f"CREATE VIEW codes AS SELECT * FROM '{path}'")
        theirs = cpu_seconds(lambda: group_by_key(base, wanted), 1)
        ours = cpu_seconds(lambda: scanned(path, schema).tally(wanted))
        scans = [cpu_seconds(lambda p=p: scanned(p, schema)) for p in (less, path)]
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import counting as c, common\n"
            "s = c.whole_numbers(); c.scanned(sys.argv[2], s).tally(c.ring(s, 4)); print(common.peak_mb())"
        )
        command = [sys.executable, "-c", script, str(sys.path[0]), str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told = f"{ours:.3f} s ({scans[1]:.3f} s to scan) against {theirs:.3f} s"
    what = f"{len(SIZES)} contexts, R = 4, from Parquet, with validation and fingerprint"
    yield Result(f"{what}: / DuckDB", ours / theirs, 1 / 3, detail=told)
    yield Result("scan of a Parquet file, 10 x the rows", scans[1] / scans[0], 11)
    told = f"codes alone are {rows * len(SIZES) / 1e6:.0f} MB; imports are in it"
    yield Result("Parquet to counts, peak memory of a process", float(shown), 500, "MB", told)


def whole_numbers() -> Schema:
    """Codes themselves as levels."""
    return Schema(
        tuple(Column(f"c{i}", "ordinal", levels=tuple(range(s))) for i, s in enumerate(SIZES))
    )


def scanned(path: Path | str, schema: Schema) -> LocalEngine:
    """An engine that has read a file."""
    engine = LocalEngine(threads=1)
    engine.scan(path, schema, key=bytes(32))
    return engine


def growth(rows: int) -> Iterator[Result]:
    """Ten times the rows; two threads for one."""
    seconds = {}
    for n in (rows // 10, rows):
        codes = table(n, SIZES)
        wanted = ring(codes.schema, 4)
        wanted += ring(codes.schema, 8, seen=True)[:1]
        engine = LocalEngine.from_codes(codes, threads=1)
        seconds[n] = cpu_seconds(lambda e=engine, w=wanted: e.tally(w))
    yield Result(
        "10 x the rows", seconds[rows] / seconds[rows // 10], 11, detail="dense and sparse"
    )
    wanted = ring(codes.schema, 4)
    both = [LocalEngine.from_codes(codes, threads=t) for t in (1, 2)]
    cpu = [cpu_seconds(lambda e=one: e.tally(wanted)) for one in both]
    told = "with even shares, at most 2 / 1.7 gives 1.7 x the speed when idle"
    yield Result("2 threads: CPU / CPU of 1", cpu[1] / cpu[0], 2 / 1.7, detail=told)
    wall = [wall_seconds(lambda e=one: e.tally(wanted)) for one in both]
    detail = f"wall; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: idle machines only"
    yield Result("2 threads for 1", wall[0] / wall[1], 1.7, at_least=True, detail=detail)


def start_up() -> Iterator[Result]:
    """Import and first count of a fresh process, kernels in the cache."""
    script = (
        "import time; t = time.process_time(); import sys; sys.path.insert(0, sys.argv[1])\n"
        "import counting as c; print(time.process_time() - t)\n"
        "k = c.table(100, c.SIZES); e = c.LocalEngine.from_codes(k); t = time.process_time()\n"
        "e.tally(c.ring(k.schema, 2)); print(time.process_time() - t)"
    )
    command = [sys.executable, "-c", script, str(sys.path[0])]
    shown = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in "ab"
    ]
    yield Result(
        "first count of a process, warm", float(shown[1].split()[1]), 0.6, "s", "imports numba"
    )


def table(rows: int, sizes: tuple[int, ...]) -> Codes:
    """Skewed columns that depend on one hidden value."""
    rng = np.random.default_rng(1)
    hidden = rng.random(rows, dtype=np.float32)
    out = np.empty((len(sizes), rows), dtype=np.uint8)
    for column, size in zip(out, sizes, strict=True):
        own = rng.random(rows, dtype=np.float32)
        value = np.where(rng.random(rows, dtype=np.float32) < 0.5, hidden, own)
        column[:] = np.minimum(value * value * size, size - 1).astype(np.uint8)
    columns = tuple(
        Column(f"c{i}", "numeric", edges=tuple(float(e) for e in range(size + 1)))
        for i, size in enumerate(sizes)
    )
    return Codes(Schema(columns), out.T)


def context(
    schema: Schema,
    targets: tuple[int, ...],
    parents: tuple[int, ...],
    key: Key = RADIX,
    *,
    seen: bool = False,
) -> Context:
    """A context with the sizes of the schema."""
    sizes = schema.sizes
    t, p = tuple(sizes[c] for c in targets), tuple(sizes[c] for c in parents)
    return Context(targets, parents, t, p, key, "seen" if seen else "dense")


def ring(schema: Schema, parents: int, key: Key = RADIX, *, seen: bool = False) -> list[Context]:
    """Each column given `parents` others."""
    p = len(schema)
    given = [tuple((j + 1 + 3 * r % (p - 1)) % p for r in range(parents)) for j in range(p)]
    return [context(schema, (j,), given[j], key, seen=seen) for j in range(p)]


def bincount(codes: Codes, wanted: list[Context]) -> None:
    """NumPy: integer keys in place, then bincount."""
    for one in wanted:
        key = codes.values[:, one.columns[0]].astype(np.int64)
        for c in one.columns[1:]:
            key *= codes.schema.sizes[c]
            key += codes.values[:, c]
        np.bincount(key, minlength=one.cells)


def keyed(codes: Codes, wanted: list[Context]) -> None:
    """NumPy: the definition of the key, then bincount."""
    for one in wanted:
        key = keys_of(one, codes.values) * np.uint64(one.levels) + codes.values[:, one.targets[0]]
        np.bincount(key.astype(np.int64), minlength=one.cells)


def duck(codes: Codes) -> duckdb.DuckDBPyConnection:
    """The same codes as an in-memory table of UTINYINT columns, one thread."""
    base = duckdb.connect(config={"threads": 1})
    arrays = {f"c{i}": np.ascontiguousarray(c) for i, c in enumerate(codes.by_column)}
    base.register("arrays", arrays)
    base.execute("CREATE TABLE codes AS SELECT * FROM arrays")
    return base


def group_by_key(base: duckdb.DuckDBPyConnection, wanted: list[Context]) -> None:
    """One GROUP BY on one integer key a context."""
    for one in wanted:
        sizes = one.parent_sizes + one.target_sizes
        steps = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
        key = " + ".join(f"c{c}::UINTEGER * {s}" for c, s in zip(one.columns, steps, strict=True))
        base.execute(f"SELECT {key} AS k, count(*) FROM codes GROUP BY k").fetchnumpy()


def group_by_columns(base: duckdb.DuckDBPyConnection, wanted: list[Context]) -> None:
    """One GROUP BY on the columns a context."""
    for one in wanted:
        names = ", ".join(f"c{c}" for c in one.columns)
        base.execute(f"SELECT {names}, count(*) FROM codes GROUP BY {names}").fetchnumpy()


if __name__ == "__main__":
    main()
