"""Many users of one machine at once: threads, forked and spawned workers, a web server that forks early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.core import durable
from gibbous.core.errors import BudgetExhausted, EngineFailure, OutputNotWritten
from tests.faults.test_files import in_a_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SCHEMA = gb.Schema(
    tuple(gb.Column(name, "nominal", levels=("a", "b", "c")) for name in "wxyz"), gb.Unit("row")
)


def records() -> pl.DataFrame:
    return pl.DataFrame({name: ["a", "b", "c", "a"] * 200 for name in "wxyz"})


def released(home: str) -> str:
    """The digest of a release, charged to the ledger in a folder; what a worker does."""
    ledger = gb.Ledger.open(Path(home) / "ledger.sqlite")
    method = gb.NoisyPegs(epsilon=1, delta=1e-6)
    release = gb.synthesize(records(), SCHEMA, method, rows=20, seed=3, ledger=ledger, fresh=True)
    ledger.close()
    return str(release.receipt["digest"])


def test_threads_share_a_cap_exactly(tmp_path: Path) -> None:
    ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.cap(ledger.dataset(records(), schema=SCHEMA), Fraction(3), Fraction(0))

    def work(number: int) -> bool:
        try:
            method = gb.Laplace(epsilon=1)
            out = tmp_path / f"r{number}"
            gb.synthesize(records(), SCHEMA, method, rows=9, out=out, ledger=ledger, fresh=True)
        except BudgetExhausted:
            return False
        gb.verify(tmp_path / f"r{number}", ledger=ledger)
        return True

    with ThreadPoolExecutor(6) as pool:
        granted = list(pool.map(work, range(6)))

    assert sum(granted) == 3
    assert ledger.accounts()[0].left == (0, 0)


def test_two_synthesizers_at_once_have_noise_and_rows_of_their_own(tmp_path: Path) -> None:
    """12 noisy cells a table and more: equal by chance less than once in 10^6 runs."""

    def work(seed: int) -> tuple[gb.Synthesizer, pl.DataFrame]:
        ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
        one = gb.Synthesizer(gb.NoisyPegs(epsilon=1, delta=1e-6), seed=seed, ledger=ledger)
        return one, one.fit(records(), SCHEMA, fresh=True).sample(500)

    with ThreadPoolExecutor(2) as pool:
        (first, rows), (second, others) = pool.map(work, (3, 3))

    assert first.release_.receipt["digest"] != second.release_.receipt["digest"]
    assert first.sample(500).equals(rows)  # the other one's draw has moved no state of this one
    assert second.sample(500).equals(others)
    assert len(gb.Ledger.read(tmp_path / "ledger.sqlite").accounts()[0].releases) == 2


def test_the_same_request_at_once_is_bought_by_one_and_handed_to_all(tmp_path: Path) -> None:
    def work(_: int) -> str:
        ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
        release = gb.synthesize(records(), SCHEMA, gb.Laplace(epsilon=1), rows=20, ledger=ledger)
        return str(release.receipt["digest"])

    with ThreadPoolExecutor(4) as pool:
        digests = set(pool.map(work, range(4)))

    assert len(digests) == 1
    assert len(gb.Ledger.read(tmp_path / "ledger.sqlite").accounts()[0].releases) == 1


@pytest.mark.slow
def test_the_same_request_at_once_into_several_folders_is_charged_once(tmp_path: Path) -> None:
    """Without `bought_alone`, all six find an empty ledger and the cap stops five of them."""
    ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.cap(ledger.dataset(records(), schema=SCHEMA), Fraction(1), Fraction(0))

    def work(number: int) -> str:
        out = tmp_path / f"r{number}"
        method = gb.Laplace(epsilon=1)
        release = gb.synthesize(records(), SCHEMA, method, rows=9, out=out, ledger=ledger)
        gb.verify(out, ledger=ledger)
        return str(release.receipt["digest"])

    with ThreadPoolExecutor(6) as pool:
        digests = set(pool.map(work, range(6)))

    assert len(digests) == 1
    assert len(ledger.accounts()[0].releases) == 1


def test_a_run_that_cannot_wait_for_the_same_request_is_refused_before_it_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
    method = gb.Laplace(epsilon=1)
    gb.synthesize(records(), SCHEMA, method, rows=9, out=tmp_path / "first", ledger=ledger)
    [notes] = (tmp_path / "ledger.sqlite.releases").glob("*.folders")
    monkeypatch.setattr("gibbous.core.durable.PATIENCE", 0.05)

    with notes.open() as other:
        durable.take(other.fileno())
        with pytest.raises(OutputNotWritten, match=r"Another run of the same request.*Nothing was"):
            gb.synthesize(records(), SCHEMA, method, rows=9, out=tmp_path / "second", ledger=ledger)

    again = gb.synthesize(records(), SCHEMA, method, rows=9, out=tmp_path / "second", ledger=ledger)
    assert again.bought_before
    assert len(ledger.accounts()[0].releases) == 1


@pytest.mark.slow
def test_spawned_workers_release_each_for_itself(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        digests = set(pool.map(released, [str(tmp_path)] * 3))

    assert len(digests) == 3
    assert len(gb.Ledger.read(tmp_path / "ledger.sqlite").accounts()[0].releases) == 3


@pytest.mark.slow
def test_a_server_that_imports_and_opens_its_ledger_before_it_forks_works(tmp_path: Path) -> None:
    """Pre-fork: the master imports all, reads schema and plan, and opens the ledger; workers release."""
    program = f"""
        import json, os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import polars, numpy
        import gibbous as gb
        from tests.pipeline.test_tenants import SCHEMA, released
        ledger = gb.Ledger.open()
        gb.plan(SCHEMA, gb.Laplace(epsilon=1))
        pipes = []
        for _ in range(2):
            reading, writing = os.pipe()
            if os.fork() == 0:
                os.write(writing, released({str(tmp_path)!r}).encode())
                os._exit(0)
            os.close(writing)
            pipes.append(reading)
        print(json.dumps([os.read(pipe, 100).decode() for pipe in pipes]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"GIBBOUS_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert done.returncode == 0, done.stderr
    assert len(set(json.loads(done.stdout))) == 2
    assert "" not in json.loads(done.stdout)
    assert len(gb.Ledger.read(tmp_path / "ledger.sqlite").accounts()[0].releases) == 2


REFUSED: dict[str, Callable[[Path], object]] = {
    "synthesize": lambda rel: gb.synthesize(
        records(), SCHEMA, gb.Laplace(epsilon=1), rows=9, ledger=gb.Ledger.ephemeral()
    ),
    "verify": gb.verify,
    "load": gb.load,
    "infer_schema": lambda rel: gb.infer_schema(rel / "synthetic_1.parquet"),
    "dataset": lambda rel: gb.Ledger.open(rel.parent / "l.sqlite").dataset(
        rel / "synthetic_1.parquet"
    ),
    "report": lambda rel: gb.report(rel, out=rel.parent / "page.html"),
    "evaluate": lambda rel: gb.evaluate(rel / "synthetic_1.parquet", rel, SCHEMA),
}


@pytest.fixture(scope="module")
def rel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forked") / "rel"
    method = gb.NoisyPegs(epsilon=1, delta=1e-6)
    gb.synthesize(records(), SCHEMA, method, rows=50, out=folder, ledger=gb.Ledger.ephemeral())
    return folder


@pytest.mark.parametrize("call", [*REFUSED, "sample", "sets"])
def test_g2_a_fork_among_the_threads_of_polars_is_refused_and_never_hangs(
    call: str, rel: Path
) -> None:
    """Before: all of these but synthesize waited for ever."""
    release = gb.load(rel)
    release.sets[0].group_by("w").len()  # the threads are there
    calls = REFUSED | {"sample": lambda _: release.sample(500), "sets": lambda _: release.sets[0]}

    def work() -> int:
        signal.alarm(60)  # ends the child where it hangs
        try:
            calls[call](rel)
        except EngineFailure as error:
            return error.exit_code if error.name == "FORKED" else 1
        return 2

    assert in_a_child(work) == 11


def test_what_needs_no_table_works_in_such_a_fork() -> None:
    records().group_by("w").len()

    assert in_a_child(lambda: gb.plan(SCHEMA, gb.Laplace(epsilon=1), rows=9).sets) == 1
