"""From 1e5 to 1e8 rows: Parquet to counts, to a release, to rows again; every engine and its rivals.

    python bench/scale.py                                   # what fits this machine; resumable
    python bench/scale.py --sides local sql numpy --columns 13 --rows 100000 1000000
    python bench/scale.py --dpmm PEERS_FOLDER/dpmm          # dpmm, too (bench/accuracy.py installs it)
    python bench/scale.py --table                           # what was measured so far, as Markdown
    python bench/scale.py --model                           # the cost model, residuals, extrapolation
    python bench/scale.py --figure docs/reference/scale.svg

Every run is a process of its own and one line of bench/results/scale.jsonl; one that is there is not run
again but with --again, and the last one counts. Data are drawn under --folder with a fixed seed: half of
the values of a row follow one hidden number of the row (see `made`), 2 to 24 levels a column; they are
removed when their runs are done. All sides count the same tables, one a column, given four others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import scale_fit
from scale_sides import SIDES, Task, sizes

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "scale.jsonl"
ROWS = (10**5, 10**6, 10**7, 10**8)
COLUMNS = (13, 50, 200)
VALUES = 2 * 10**9  # rows x columns: more would take hours and tens of GB
BYTES = 0.5  # of a value in a file, about
CHUNK = 1 << 20
DPMM_ROWS = 10**6  # its arrays have a copy of the table for each margin, in 64-bit numbers
SPARK_VALUES = 2 * 10**8
LONGEST = 3600  # seconds of one run
SMALL = 1000


def made(path: Path, rows: int, columns: int) -> None:
    """Write codes: half of the values follow the row's own hidden number, and all lean to low codes."""
    import numpy as np
    import polars as pl
    import pyarrow.parquet as pq

    writer = None
    for part, start in enumerate(range(0, rows, CHUNK)):
        rng = np.random.Generator(np.random.SFC64([1, part]))
        count = min(CHUNK, rows - start)
        hidden = rng.random(count, dtype=np.float32)
        values = {}
        for j, size in enumerate(sizes(columns)):
            own = rng.random(count, dtype=np.float32)
            # Below a half the row's number, above it one of its own: one draw is both coin and value.
            value = np.where(own < 0.5, hidden, 2 * own - 1)
            values[f"c{j}"] = np.minimum(value * value * size, size - 1).astype(np.uint8)
        table = pl.DataFrame(values).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    if writer:
        writer.close()


def known() -> dict[tuple[str, str, int, int, int], dict[str, Any]]:
    """The last line of each run."""
    if not RESULTS.exists():
        return {}
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {(r["step"], r["side"], r["columns"], r["rows"], r["threads"]): r for r in lines}


def unfit(step: str, side: str, rows: int, columns: int, given: argparse.Namespace) -> str:
    """Why a run is left out; empty if it is not."""
    values = rows * columns
    free = shutil.disk_usage(given.folder).free
    if values > given.values:
        return f"more than {given.values:.0e} values (--values)"
    if 2 * BYTES * values > free / 2:
        return "the file would take more than half of the free disk"
    if side == "dpmm" and (given.dpmm is None or rows > DPMM_ROWS):
        return "no --dpmm" if given.dpmm is None else "its copies would not fit in memory"
    if side == "spark" and values > given.spark_values:
        return f"more than {given.spark_values:.0e} values (--spark-values)"
    return ""


def run(task: Task, given: argparse.Namespace) -> dict[str, Any]:
    """One process; a failure is a result, too."""
    python = sys.executable
    if task.side == "dpmm":
        python = str(given.dpmm / "bin" / "python")
    threads = str(task.threads)
    env = os.environ | {
        "GIBBOUS_HOME": str(Path(task.folder) / "home"),
        "GIBBOUS_SCRATCH": task.folder,
        "NUMBA_CACHE_DIR": str(given.kernels),
        "OMP_NUM_THREADS": threads,
        "POLARS_MAX_THREADS": threads,
        "PYSPARK_PYTHON": python,
    }
    begin = time.perf_counter()
    command = [python, str(HERE / "scale_sides.py"), json.dumps(asdict(task))]
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LONGEST} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return {"failed": last[:200]}
    cost: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return cost | {"process_s": time.perf_counter() - begin}


def measure(given: argparse.Namespace) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    done = set() if given.again else {k for k, r in known().items() if "failed" not in r}
    for columns in given.columns:
        for rows in given.rows:
            wanted = []
            for step, side in SIDES:
                if step not in given.steps or side not in given.sides:
                    continue
                why = unfit(step, side, rows, columns, given)
                if why:
                    print(f"left out: {step} {side} {rows:.0e} x {columns}: {why}", flush=True)
                elif (step, side, columns, rows, given.threads) not in done:
                    wanted.append((step, side))
            if wanted:
                with tempfile.TemporaryDirectory(dir=given.folder, prefix="scale-") as folder:
                    _measured(wanted, rows, columns, Path(folder), given)


def _measured(
    wanted: list[tuple[str, str]],
    rows: int,
    columns: int,
    folder: Path,
    given: argparse.Namespace,
) -> None:
    path, small = folder / "codes.parquet", folder / "small.parquet"
    made(path, rows, columns)
    made(small, SMALL, columns)
    if ("counts", "dpmm") in wanted:
        import numpy as np
        import polars as pl

        for file in (path, small):
            np.save(file.with_suffix(".npy"), pl.read_parquet(file).to_numpy())
    if any(step == "rows" for step, _ in wanted) and ("release", "local") not in wanted:
        # The tables that rows are drawn from; not a result.
        run(Task("release", "local", str(path), str(small), rows, columns, str(folder), 2), given)
    for step, side in wanted:
        task = Task(step, side, str(path), str(small), rows, columns, str(folder), given.threads)
        row: dict[str, Any] = {"step": step, "side": side, "rows": rows, "columns": columns}
        row |= {"threads": given.threads, "file_mb": path.stat().st_size / 1e6}
        row |= {"load": os.getloadavg()[0], "cores": os.cpu_count(), "python": _python()}
        row |= {"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}
        row |= run(task, given)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def _python() -> str:
    return platform.python_version()


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--columns", nargs="+", type=int, default=list(COLUMNS))
    parser.add_argument("--steps", nargs="+", default=["counts", "release", "rows"])
    every = list(dict.fromkeys(side for _, side in SIDES))
    parser.add_argument("--sides", nargs="+", default=every, choices=every)
    parser.add_argument("--threads", type=int, default=1, help="of every side")
    parser.add_argument("--values", type=float, default=VALUES, help="most rows x columns")
    parser.add_argument("--spark-values", type=float, default=SPARK_VALUES)
    parser.add_argument("--dpmm", type=Path, help="a virtual environment with dpmm")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--kernels", type=Path, help="compiled kernels; default: the user's own")
    parser.add_argument("--again", action="store_true", help="run what was run before; it counts")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    if given.kernels is None:
        from gibbous.core.compiled import cache_folder

        given.kernels = cache_folder()
    found = [r for r in known().values() if "failed" not in r]
    if given.table:
        print(scale_fit.table(found))
    elif given.model:
        print(scale_fit.model(found))
    elif given.figure:
        scale_fit.figure(given.figure, found)
    else:
        measure(given)


if __name__ == "__main__":
    main()
