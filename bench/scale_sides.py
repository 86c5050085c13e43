"""One side of one step of scale.py, in a process of its own: seconds, CPU and memory of the process tree.

    python bench/scale_sides.py '{"step": "counts", "side": "local", ...}'

Imports and a run on a file of 1,000 rows come first and are outside the clock: kernels are loaded, a
Spark session stands. What a side needs is imported in its function alone, so that the peak is its own.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEVELS = (5, 17, 2, 6, 8, 20, 4, 10, 7, 3, 13, 9, 24)  # again from the start in wider tables
PARENTS = 4  # of the tables that are counted
TICKS = os.sysconf("SC_CLK_TCK")
BATCH = 1 << 20
SHORT = 1.0  # seconds: work that takes less is done again, and means count


@dataclass(frozen=True)
class Task:
    """What to do; `small` is a file of few rows of the same table, for warming up."""

    step: str
    side: str
    path: str
    small: str
    rows: int
    columns: int
    folder: str
    threads: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each column."""
        return sizes(self.columns)


def sizes(columns: int) -> tuple[int, ...]:
    """Levels of each column."""
    return tuple(LEVELS[j % len(LEVELS)] for j in range(columns))


def ring(columns: int) -> list[tuple[int, ...]]:
    """The columns of each table: `PARENTS` others and the column itself, last."""
    p = columns
    steps = [1 + 3 * r % (p - 1) for r in range(PARENTS)]
    return [(*((j + s) % p for s in steps), j) for j in range(p)]


def schema_of(columns: int) -> Any:
    from gibbous.core.schema import Column, Schema

    return Schema(
        tuple(
            Column(f"c{j}", "ordinal", levels=tuple(range(s))) for j, s in enumerate(sizes(columns))
        )
    )


def opened(task: Task) -> Any:
    """The engine of a side. A Spark session stays for the next one."""
    from gibbous.disintegrate import engine

    if task.side == "spark":
        return engine("spark", master=f"local[{task.threads}]")
    return engine("local", threads=task.threads)


def counts_of_engine(task: Task, path: str) -> int:
    """Parquet to counts through an engine of gibbous: read, check, encode, fingerprint, count."""
    from gibbous.core.context import Context

    one = opened(task)
    size = task.sizes
    wanted = [
        Context((c[-1],), c[:-1], (size[c[-1]],), tuple(size[j] for j in c[:-1]))
        for c in ring(task.columns)
    ]
    one.scan(path, schema_of(task.columns), key=bytes(32))
    one.tally(wanted)
    one.close()
    return sum(context.cells for context in wanted)


def counts_of_sql(task: Task, path: str) -> int:
    """DuckDB: one GROUP BY on one integer key a table, straight from the file."""
    import duckdb

    base = duckdb.connect(config={"threads": task.threads})
    base.execute(f"CREATE VIEW codes AS SELECT * FROM '{path}'")
    size, cells = task.sizes, 0
    for columns in ring(task.columns):
        key = f"c{columns[0]}::UINTEGER"
        for j in columns[1:]:
            key = f"({key}) * {size[j]} + c{j}"
        found = base.execute(f"SELECT {key} AS k, count(*) FROM codes GROUP BY k").fetchnumpy()
        cells += len(found["k"])
    return cells


def counts_of_numpy(task: Task, path: str) -> int:
    """NumPy: batches of the file, integer keys in place, `bincount`, summed."""
    import numpy as np

    size, tables = task.sizes, ring(task.columns)
    cells = [int(np.prod([size[j] for j in columns])) for columns in tables]
    totals = [np.zeros(n, dtype=np.int64) for n in cells]
    for batch in batches(path):
        for columns, total in zip(tables, totals, strict=True):
            key = batch[columns[0]].astype(np.int64)
            for j in columns[1:]:
                key *= size[j]
                key += batch[j]
            total += np.bincount(key, minlength=len(total))
    return sum(cells)


def batches(path: str) -> Iterator[Any]:
    """Columns of a file, some rows at a time."""
    import polars as pl

    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    for start in range(0, rows, BATCH):
        frame = pl.scan_parquet(path).slice(start, BATCH).collect()
        yield [frame[name].to_numpy() for name in frame.columns]


def counts_of_dpmm(task: Task, path: str) -> int:
    """dpmm's own counting (`Dataset.project(...).datavector()`) of codes that are in memory already."""
    import numpy as np
    import pandas as pd
    from dpmm.models.base.mbi import Domain
    from dpmm.models.base.mbi.dataset import Dataset

    names = [f"c{j}" for j in range(task.columns)]
    values = np.load(Path(path).with_suffix(".npy"))
    data = Dataset(pd.DataFrame(values, columns=names), Domain(names, list(task.sizes)))
    return sum(
        len(data.project([names[j] for j in columns]).datavector())
        for columns in ring(task.columns)
    )


def release(task: Task, path: str) -> int:
    """Parquet to released tables: counts, noise, ledger, package; 1,000 rows are drawn."""
    import gibbous as gb

    out = Path(task.folder) / f"release-{task.side}"
    shutil.rmtree(out, ignore_errors=True)
    method = gb.Sbhg(epsilon=1.0, delta=1e-9, parents=2)
    how = {"engine": opened(task), "rows": 1000, "seed": 1, "out": out}
    gb.synthesize(path, schema_of(task.columns), method, **how)
    return sum(file.stat().st_size for file in (out / "tables").glob("*.parquet"))


def rows(task: Task, path: str) -> int:
    """Released tables to as many rows in Parquet; 10 sweeps, compression included."""
    from gibbous.core.request import Output
    from gibbous.pipeline import sample_more
    from gibbous.write.load import load

    count = 1000 if path == task.small else task.rows
    out = Path(task.folder) / f"rows-{task.side}.parquet"
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)
    release = load(Path(task.folder) / "release-local")
    sample_more(release, Output(count, seed=1, out=out))
    return sum(f.stat().st_size for f in ([out] if out.is_file() else out.glob("*.parquet")))


SIDES: dict[tuple[str, str], Callable[[Task, str], int]] = {
    ("counts", "local"): counts_of_engine,
    ("counts", "spark"): counts_of_engine,
    ("counts", "sql"): counts_of_sql,
    ("counts", "numpy"): counts_of_numpy,
    ("counts", "dpmm"): counts_of_dpmm,
    ("release", "local"): release,
    ("release", "spark"): release,
    ("rows", "local"): rows,
}
PACKAGES = {
    "local": ("numpy", "numba", "polars"),
    "spark": ("pyspark", "pyarrow"),
    "sql": ("duckdb",),
    "numpy": ("numpy", "polars"),
    "dpmm": ("dpmm", "numpy", "pandas"),
}


def family() -> list[int]:
    """This process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(name))
    found, place = [os.getpid()], 0
    while place < len(found):
        found += parents.get(found[place], [])
        place += 1
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ...; none if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def cpu(pids: list[int]) -> float:
    """CPU seconds of processes and of those of their children that have ended."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in pids) / TICKS


def peak_mb(pids: list[int]) -> float:
    """Sum of the largest resident memory of each process so far."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return total / 1024


@contextmanager
def watched(seconds: float = 0.2) -> Iterator[list[float]]:
    """Within it, the peak of the process tree is looked at from time to time."""
    peak, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(seconds):
            peak[0] = max(peak[0], peak_mb(family()))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
        peak[0] = max(peak[0], peak_mb(family()))


def main() -> None:
    """Do one task and print one JSON object."""
    from common import versions

    task = Task(**json.loads(sys.argv[1]))
    work = SIDES[task.step, task.side]
    work(task, task.small)
    with watched() as peak:
        clock, used, times = time.perf_counter(), cpu(family()), 0
        while times == 0 or time.perf_counter() - clock < SHORT:  # the CPU clock ticks in 10 ms
            size = work(task, task.path)
            times += 1
        wall, spent = time.perf_counter() - clock, cpu(family()) - used
    cost = {"wall_s": wall / times, "cpu_s": spent / times, "times": times}
    cost |= {"peak_mb": peak[0], "size": size}
    print(json.dumps(cost | {"versions": versions(*PACKAGES[task.side])}))


if __name__ == "__main__":
    main()
