"""Waiting time of a reservation while many processes share one ledger.

Run: python bench/ledger.py [--quick] [--json FILE]
Sixteen processes reserve as fast as they can, far past the cap; the target is for the 99th percentile
of one attempt, granted or refused, in wall time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from common import Result, arguments, save, show

from gibbous.core.claim import pure
from gibbous.core.errors import BudgetExhausted
from gibbous.privacy.ledger import Ledger

DATA, PROCESSES = bytes(range(32)), 16


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    count = 40 if options.quick else 200
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        Ledger.open(path).cap(DATA, Fraction(1), Fraction(0))
        with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
            found = pool.map(attempts, [(str(path), count)] * PROCESSES, chunksize=1)
    seconds = sorted(second for part in found for second in part)
    detail = f"{PROCESSES} processes x {count} attempts"
    results = [
        Result("median wait of one attempt", 1e3 * seconds[len(seconds) // 2], None, "ms", detail),
        Result("99th percentile", 1e3 * seconds[int(0.99 * len(seconds))], 100.0, "ms", detail),
    ]
    show("Ledger", results)
    save(options.json, "ledger", results)


def attempts(job: tuple[str, int]) -> list[float]:
    """Seconds of each attempt."""
    path, count = job
    ledger, seconds = Ledger.open(Path(path)), []
    for _ in range(count):
        start = time.perf_counter()
        with contextlib.suppress(BudgetExhausted):
            ledger.reserve(DATA, pure(Fraction("0.1")), mechanism="x", request=os.urandom(8))
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main()
