"""Start-up: CPU time of whole processes of the command line, from the first byte code to the last.

Run: python bench/start_up.py [--quick] [--repeats N] [--json FILE]
Byte code lies in a cache of its own, filled by a run before, as pip leaves it. Each first release starts
from an empty cache of compiled kernels, as in a new environment; the later ones find what it left. Each
release has a ledger of its own: with the ledger of the one before, it would be free, and count nothing. The
least of the repeats is shown, and the median in the details; `import numpy`, measured in turn with
them, says how fast the machine is at the moment.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Result, arguments, save, show
from end_to_end import make

PROGRAM = [sys.executable, "-m", "gibbous"]
BUDGET = ["--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6"]
LIGHT = {
    "python -c pass": ([sys.executable, "-c", "pass"], None),
    "import numpy": ([sys.executable, "-c", "import numpy"], None),
    "import gibbous": ([sys.executable, "-c", "import gibbous"], 0.15),
    "gibbous --help": ([*PROGRAM, "--help"], 0.15),
    "gibbous methods": ([*PROGRAM, "methods"], 0.15),
    "gibbous methods sbhg --json": ([*PROGRAM, "methods", "sbhg", "--json"], 0.15),
    "gibbous synthesize --help": ([*PROGRAM, "synthesize", "--help"], None),
}
HEAVY = ("noisy_pegs", "sbhg", "pegs", "adaptive_gibbs")
ROWS = 10_000


def seconds(command: list[str], folder: Path, env: dict[str, str]) -> float:
    """CPU seconds of one process and its children; what an earlier one bought or wrote is gone."""
    for name in ("home", "release"):
        shutil.rmtree(folder / name, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(
    commands: dict[str, tuple[list[str], float | None]],
    repeats: int,
    folder: Path,
    env: dict[str, str],
) -> list[Result]:
    """All in turn, several times: a busy minute then meets all of them."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats + 1):
        for name, (command, _) in commands.items():
            spent[name].append(seconds(command, folder, env))
    out = []
    for name, (_, target) in commands.items():
        found = [s * 1e3 for s in spent[name][1:]]  # the first one fills caches
        told = f"median {statistics.median(found):,.0f} ms"
        limit = None if target is None else target * 1e3
        out.append(Result(name, min(found), limit, "ms", told))
    return out


def first_results(folder: Path) -> dict[str, tuple[list[str], float | None]]:
    """Plan and release of 10,000 rows of 13 columns, as whole processes."""
    data = make(folder, ROWS)
    plan = [*PROGRAM, "plan", *BUDGET, "--rows", str(ROWS), "--quiet", "--method"]
    run = [*PROGRAM, "synthesize", str(data), "--out", "release", "--overwrite", "--quiet"]
    out: dict[str, tuple[list[str], float | None]] = {
        "plan, adaptive_gibbs": ([*plan, "adaptive_gibbs"], 2.0)
    }
    for method in HEAVY:
        budget = BUDGET[:-2] if method == "pegs" else BUDGET
        more = ["--rows", "1000"] if method == "pegs" else []
        out[f"release of 1e4 rows, {method}"] = ([*run, *budget, *more, "--method", method], 2.0)
    return out


def first_ever(folder: Path, env: dict[str, str], repeats: int) -> list[Result]:
    """A release by the default method, with no kernel compiled before."""
    kernels, spent = folder / "kernels", []
    command, _ = first_results(folder)["release of 1e4 rows, adaptive_gibbs"]
    for _ in range(repeats + 1):
        shutil.rmtree(kernels, ignore_errors=True)
        spent.append(seconds(command, folder, env | {"NUMBA_CACHE_DIR": str(kernels)}) * 1e3)
    found = spent[1:]  # the first one writes byte code
    told = f"median {statistics.median(found):,.0f} ms"
    return [Result("first release ever, adaptive_gibbs", min(found), 8000.0, "ms", told)]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    repeats = 3 if options.quick else options.repeats
    kept = ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
    env = {k: v for k, v in os.environ.items() if k not in kept}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = env | {"PYTHONPYCACHEPREFIX": str(folder / "bytes"), "OMP_NUM_THREADS": "1"}
        own["GIBBOUS_HOME"] = str(folder / "home")
        results = measured(LIGHT, repeats, folder, own)
        results += first_ever(folder, own, max(2, repeats // 6))
        own["NUMBA_CACHE_DIR"] = str(folder / "kernels")
        results += measured(first_results(folder), max(2, repeats // 6), folder, own)
    show("Start-up, CPU of whole processes", results)
    save(options.json, "start_up", results, "numpy", "numba", "polars", "typer")


if __name__ == "__main__":
    main()
