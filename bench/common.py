"""What benches share: CPU seconds, ratios inside one run, a table with targets, JSON with versions."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a bench.

    Attributes:
        what: what was measured.
        value: what was reached; a ratio unless `unit` says otherwise.
        target: the most (or with `at_least`, the least) that is aimed at; None for information.
        unit: "x" for ratios inside this run, else for example "ns" or "s".
        detail: the two sides of a ratio, in words.
    """

    what: str
    value: float
    target: float | None = None
    unit: str = "x"
    detail: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def cpu_seconds(work: Callable[[], object], repeats: int = 3, *, warm: bool = True) -> float:
    """Least CPU seconds, over all threads, of several calls."""
    if warm:
        work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def wall_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Least wall-clock seconds of several calls: only for ratios inside one run."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def peak_mb() -> float:
    """Largest resident memory of this process so far, in MB."""
    try:  # of this program alone; ru_maxrss would begin with what the parent held when it forked
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    except OSError:
        pass
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def versions(*names: str) -> dict[str, str]:
    """Versions of the machine and of the named packages."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    found["cores"] = str(os.cpu_count())
    for name in names:
        found[name] = importlib.metadata.version(name)
    return found


def arguments(description: str) -> argparse.ArgumentParser:
    """The options every bench has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller tables, under a minute")
    parser.add_argument("--json", type=Path, help="write the results here, too")
    return parser


def show(title: str, results: Sequence[Result]) -> None:
    """Print a table: what, reached, target, verdict."""
    wide = max(len(r.what) for r in results)
    print(f"\n{title}\n{'':{wide}}   reached     target")
    for r in results:
        sign = ">=" if r.at_least else "<="
        target = "" if r.target is None else f"{sign} {number(r.target, r.unit)}"
        verdict = {True: "met", False: "MISSED", None: ""}[r.met]
        print(
            f"{r.what:{wide}}  {number(r.value, r.unit):>8}  {target:>9}  {verdict:6}  {r.detail}"
        )


def number(value: float, unit: str) -> str:
    """A short number: ratios below one as 1/n."""
    if unit == "x":
        return f"1/{1 / value:.1f}" if 0 < value < 0.95 else f"{value:.2f}"
    return f"{value:.3g} {unit}"


def save(path: Path | None, bench: str, results: Sequence[Result], *packages: str) -> None:
    """Write results and versions as JSON."""
    if path is None:
        return
    data = {
        "bench": bench,
        "versions": versions(*packages),
        "load": list(os.getloadavg()),
        "peak_mb": peak_mb(),
        "results": [asdict(r) | {"met": r.met} for r in results],
    }
    path.write_text(json.dumps(data, indent=1) + "\n")
