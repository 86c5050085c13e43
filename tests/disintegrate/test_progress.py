"""Progress is public, an interrupt ends a run soon, and start-up needs no numba."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from gibbous.disintegrate import schedule, warm
from gibbous.disintegrate.records import LocalEngine
from tests.disintegrate.brute import codes_of, context_of, schema_of


def test_m7_progress_shows_shares_and_never_the_number_of_rows() -> None:
    schema = schema_of([5, 90, 100])
    codes = codes_of(schema, 12_347, np.random.default_rng(1))
    contexts = [context_of(schema, (0,)), context_of(schema, (1,), (2,))]
    told: list[tuple[str, int, int]] = []

    LocalEngine.from_codes(codes).tally(contexts, progress=lambda *what: told.append(what))

    counted = [(done, total) for stage, done, total in told if stage == "count"]
    assert counted[0][0] == 0
    assert counted[-1][0] == counted[-1][1]
    assert {total for _, total in counted} <= {100, len(contexts)}
    assert counted == sorted(counted)


def test_an_interrupt_calls_off_the_jobs_that_run() -> None:
    ran: list[str] = []
    first = threading.Event()

    def endless(going):  # type: ignore[no-untyped-def]
        ran.append("started")
        first.set()
        while True:
            going(0.5)
            time.sleep(0.001)

    def quick(going):  # type: ignore[no-untyped-def]
        first.wait(10)
        return [np.zeros(1, dtype=np.int64)]

    def interrupt(stage: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    jobs = [schedule.Job([0], 50, quick), schedule.Job([1], 50, endless)]
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        list(schedule.run(jobs, 2, interrupt))
    while any(t.name.startswith("gibbous-count") for t in threading.enumerate()):
        assert time.monotonic() - began < 30
        time.sleep(0.01)

    assert ran == ["started"]


def test_an_error_in_a_job_reaches_the_caller() -> None:
    def fail(going):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(schedule.run([schedule.Job([0], 1, fail)], 1, lambda *_: None))


def test_engines_are_made_and_estimate_without_loading_numba() -> None:
    script = (
        "import sys\n"
        "from gibbous.core.context import Context\n"
        "from gibbous.disintegrate import engine\n"
        "engine('local').estimate([Context((0,), (1,), (5,), (5,))], 100)\n"
        "print([m for m in ('numba', 'polars', 'duckdb', 'opendp') if m in sys.modules])\n"
    )

    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert shown.stdout.strip() == "[]"


def test_warmup_compiles_every_kernel_that_counting_needs() -> None:
    told: list[tuple[str, int, int]] = []

    warm.compile_all(lambda *what: told.append(what))

    from gibbous.disintegrate import count_kernels

    names = ["count_many", "count_radix", "count_ids", "radix_ids", "lookup_ids", "hashed_ids"]
    for name in [*names, "minhash_ids", "distinct", "run_lengths"]:
        assert getattr(count_kernels, name).dispatcher().signatures
    assert told[-1] == ("compile", told[-1][2], told[-1][2])
