"""Tables of databases as sources: CPU and peak memory of reading alone, and of reading and counting.

Run: python bench/sources.py [--rows N] [--json FILE] [--sources parquet duckdb sqlite postgresql]
Each measurement is a process of its own. The local path is a Parquet file of the same rows; a database is
held against that path plus its own reading (its slices, and nothing done with them); what its library alone
takes stands beside it. A PostgreSQL server is started where its programs are found.
"""

from __future__ import annotations

import json
import os
import pwd
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
from common import Result, arguments, save, show

SIZES = (5, 17, 2, 6, 8, 20, 4, 10, 7, 3, 13, 9, 24)
NAMES = [f"c{j}" for j in range(len(SIZES))]
CHUNK = 1_000_000
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--sources", nargs="*", default=["duckdb", "sqlite", "postgresql"])
    options = parser.parse_args()
    rows = options.rows or (1_000_000 if options.quick else 10_000_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / "rows.parquet"
        write_parquet(path, rows)
        ours = measured("count", str(path))
        results = shown("parquet", "count", ours)
        for name in options.sources:
            with made(name, folder, rows) as address:
                found = {what: measured(what, address) for what in ("library", "read", "count")}
            reading, counting = found["read"], found["count"]
            for what, numbers in found.items():
                results += shown(name, what, numbers)
            for what, unit in (("cpu", "CPU"), ("mb", "peak memory")):
                both = ours[what] + reading[what]
                detail = f"{counting[what]:.1f} against {ours[what]:.1f} + {reading[what]:.1f}"
                results.append(Result(f"{name}: {unit}", counting[what] / both, 1.0, detail=detail))
    show(f"Sources, {rows:,} rows x {len(SIZES)} columns", results)
    save(options.json, "sources", results, "polars", "duckdb", "adbc-driver-postgresql")


def shown(name: str, what: str, found: dict[str, float]) -> list[Result]:
    return [
        Result(f"{name}: {what}, {words}", found[key], unit=unit)
        for key, words, unit in (
            ("cpu", "CPU", "s"),
            ("wall", "by the clock", "s"),
            ("mb", "peak", "MB"),
        )
    ]


def part(start: int, rows: int) -> pl.DataFrame:
    """Some rows: half of the values of a row follow one hidden number of the row."""
    rng = np.random.default_rng([3, start])
    hidden = rng.random(rows)
    columns = {
        n: np.where(rng.random(rows) < 0.5, hidden, rng.random(rows)) * size
        for n, size in zip(NAMES, SIZES, strict=True)
    }
    return pl.DataFrame({n: c.astype(np.int32) for n, c in columns.items()})


def parts(rows: int) -> Iterator[pl.DataFrame]:
    for start in range(0, rows, CHUNK):
        yield part(start, min(CHUNK, rows - start))


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow.parquet as pq

    writer: Any = None
    for frame in parts(rows):
        table = frame.to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    writer.close()


@contextmanager
def made(name: str, folder: Path, rows: int) -> Iterator[str]:
    """The address of a table with the rows."""
    if name == "duckdb":
        import duckdb

        with duckdb.connect(str(folder / "a.db")) as held:
            held.execute(f"CREATE TABLE t AS SELECT * FROM '{folder / 'rows.parquet'}'")
        yield f"duckdb://{folder / 'a.db'}::t"
    elif name == "sqlite":
        held = sqlite3.connect(folder / "a.sqlite")
        held.execute(f"CREATE TABLE t ({', '.join(f'{n} INTEGER' for n in NAMES)})")
        places = ", ".join("?" * len(NAMES))
        for frame in parts(rows):
            held.executemany(f"INSERT INTO t VALUES ({places})", frame.iter_rows())
        held.commit()
        held.close()
        yield f"sqlite://{folder / 'a.sqlite'}::t"
    else:
        with server() as url:
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(url) as held, held.cursor() as cursor:
                for i, frame in enumerate(parts(rows)):
                    mode = "append" if i else "create"
                    cursor.adbc_ingest("t", frame.to_arrow(), mode=mode)
                held.commit()
            yield f"{url}::t"


@contextmanager
def server() -> Iterator[str]:
    """URL of a PostgreSQL server on a socket in a folder of its own, and on no port."""
    homes = [*(p for g in PLACES for p in sorted(Path("/").glob(g[1:])))]
    home = next((p for p in reversed(homes) if (p / "initdb").exists()), None)
    if home is None:
        raise SystemExit("no PostgreSQL programs are found")
    folder, user = Path(tempfile.mkdtemp(prefix="gb-pg-")), {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL} | user
    quiet["stderr"] = subprocess.DEVNULL
    data = folder / "data"
    command = [home / "initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync"]
    subprocess.run([*command, "--encoding", "UTF8", "--locale", "C"], check=True, **quiet)
    running = subprocess.Popen(
        [home / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        **quiet,
    )
    try:
        url = f"postgresql://tester@/postgres?host={quote(str(folder))}"
        _wait_for(url)
        yield url
    finally:
        running.send_signal(signal.SIGQUIT)
        running.wait(60)
        shutil.rmtree(folder)


def _wait_for(url: str) -> None:
    from adbc_driver_postgresql import dbapi

    for _ in range(600):
        try:
            dbapi.connect(url).close()
        except dbapi.Error:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server does not answer")


def measured(what: str, source: str) -> dict[str, float]:
    """CPU seconds, seconds and peak memory (MB) of one process."""
    code = [sys.executable, __file__, "--child", what, source]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(what: str, source: str) -> None:
    from gibbous.core.context import Context
    from gibbous.core.schema import Column, Schema
    from gibbous.disintegrate.records import LocalEngine

    schema = Schema(
        tuple(
            Column(n, "ordinal", levels=tuple(range(s))) for n, s in zip(NAMES, SIZES, strict=True)
        )
    )
    columns = [tuple((i + j) % len(SIZES) for j in range(5)) for i in range(len(SIZES))]
    contexts = [
        Context(c[:1], c[1:], (SIZES[c[0]],), tuple(SIZES[j] for j in c[1:])) for c in columns
    ]
    warm = LocalEngine(threads=1)
    warm.scan(part(0, 200_000), schema, key=bytes(32))
    warm.tally(contexts)
    warm.close()
    wall, cpu = time.perf_counter(), time.process_time()
    if what == "library":
        read_library(source)
    elif what == "read":
        read(source, schema)
    else:
        engine = LocalEngine(threads=1)
        engine.scan(source, schema, key=bytes(32))
        engine.tally(contexts)
        engine.close()
    found = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(found))


def read(source: str, schema: Any) -> None:
    """All rows as the source yields them, and nothing done with them."""
    from gibbous.read.source import read_slices

    with read_slices(source, schema=schema) as (_, frames):
        for _ in frames:
            pass


def read_library(source: str) -> None:
    """All rows as the database's own library gives them, unchecked."""
    kind, _, rest = source.partition("://")
    place, _, table = rest.rpartition("::")
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(place, read_only=True) as held:
            for _ in held.sql(f"SELECT * FROM {table}").to_arrow_reader(1 << 17):
                pass
    elif kind == "sqlite":
        cursor = sqlite3.connect(place).execute(f"SELECT * FROM {table}")
        while batch := cursor.fetchmany(1 << 17):
            pl.DataFrame(batch, schema=dict.fromkeys(NAMES, pl.Int64), orient="row")
    else:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(f"{kind}://{place}") as held, held.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            for _ in cursor.fetch_record_batch():
                pass


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main()
