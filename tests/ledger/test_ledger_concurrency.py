"""Many processes on one ledger: exactly what the cap covers is granted, whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.core.claim import pure
from gibbous.core.errors import BudgetExhausted
from gibbous.privacy.ledger import Ledger
from tests.write.nursery import Child, Connection

DATA = bytes(range(32))

# Children here only touch the ledger: threads of libraries that other tests loaded do no harm.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def attempts(job: tuple[str, int]) -> int:
    """Reserve often; any error but a refusal is spurious and fails the test."""
    path, count = job
    ledger, granted = Ledger.open(Path(path)), 0
    for _ in range(count):
        try:
            ledger.reserve(DATA, pure(Fraction("0.1")), mechanism="x", request=os.urandom(8))
            granted += 1
        except BudgetExhausted:
            pass
    return granted


def race(path: Path, processes: int, count: int, cap: str) -> None:
    """All processes reserve at once; exactly what the cap covers is granted."""
    ledger = Ledger.open(path)
    ledger.cap(DATA, Fraction(cap), Fraction(0))
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        found = pool.map(attempts, [(str(path), count)] * processes, chunksize=1)

    wanted = Fraction(cap) // Fraction("0.1")
    assert sum(found) == wanted
    assert len(ledger.account(DATA).releases) == wanted
    ledger.verify()


@pytest.mark.slow
def test_h1_six_processes_are_granted_exactly_what_the_cap_covers(tmp_path: Path) -> None:
    race(tmp_path / "ledger.sqlite", 6, 20, "1.05")


@pytest.mark.slow
def test_h1_sixteen_processes_with_two_hundred_attempts_each(tmp_path: Path) -> None:
    race(tmp_path / "ledger.sqlite", 16, 200, "1")


@pytest.mark.slow
def test_h1_processes_may_all_be_the_first(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.sqlite"
    with multiprocessing.get_context("fork").Pool(6) as pool:
        found = pool.map(attempts, [(str(path), 3)] * 6, chunksize=1)

    assert sum(found) == 18
    assert len(Ledger.open(path).entries()) == 18


def reserving(says: Connection, path: Path) -> None:
    """Reserve and commit until killed, and say so."""
    ledger = Ledger.open(path)
    says.send(("ready", ""))
    while True:
        request = os.urandom(8)
        hold = ledger.reserve(b"d" * 32, pure(Fraction(1)), mechanism="x", request=request)
        says.send(("reserved", hold.id))
        hold.commit("ab" * 32)
        says.send(("committed", hold.id))


def storm(path: Path, kills: int) -> None:
    """Kill a process that reserves and commits; whatever it reported must be in the ledger."""
    rng, reserved, committed = random.Random(2), set(), set()
    for _ in range(kills):
        child = Child(reserving, path)
        assert child.next() == ("ready", "")
        time.sleep(rng.random() * 0.1)
        child.kill()
        told = child.rest()
        assert child.ended() == -signal.SIGKILL
        reserved |= {name for word, name in told if word == "reserved"}
        committed |= {name for word, name in told if word == "committed"}

    ledger = Ledger.open(path)
    ledger.verify()
    states = {p.id: p.state for p in ledger.account(b"d" * 32).releases}
    assert reserved <= states.keys()
    assert committed <= {name for name, state in states.items() if state == "committed"}
    assert len(states) <= len(reserved) + kills  # at most one unreported a kill


@pytest.mark.slow
def test_h3_kills_lose_no_reservation(tmp_path: Path) -> None:
    storm(tmp_path / "ledger.sqlite", 12)


@pytest.mark.slow
def test_h3_two_hundred_kills_lose_no_reservation(tmp_path: Path) -> None:
    storm(tmp_path / "ledger.sqlite", 200)
