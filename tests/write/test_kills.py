"""kill -9 at every durable step and at random moments: never half a release, never a second charge."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gibbous.privacy.ledger import Ledger
from gibbous.write.verify import verify
from tests.write import made

ROOT = Path(__file__).resolve().parents[2]

# Each child would draw other tables: a second draw on one charge would show.
CHILD = """
import os, signal, sys, time
from pathlib import Path
from gibbous.privacy.ledger import Ledger
from tests.write import made
import polars
folder, last = Path(sys.argv[1]), int(sys.argv[2])
real, done = os.fsync, 0
def fsync(fd):
    global done
    real(fd)
    done += 1
    if done == last:
        os.kill(os.getpid(), signal.SIGKILL)
made.draw_plainly()
ledger = Ledger.open(folder / "ledger.sqlite")
tables = made.tables(seed=os.getpid())
print("ready", flush=True)
if last:
    os.fsync = fsync
made.write(folder / "rel", ledger, result=tables, format="csv", overwrite=len(sys.argv) > 3)
print("steps", done, flush=True)
"""


def child(folder: Path, last: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(last), *more],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def kill_at(folder: Path, last: int) -> None:
    process = child(folder, last)
    process.communicate()
    assert process.returncode == -9


def check(folder: Path, *, overwrite: bool = False) -> None:
    """After a kill: nothing or everything is visible; the same command finishes it, charged once."""
    ledger = Ledger.open(folder / "ledger.sqlite")
    before = ledger.entries()
    digests = {e.sha256 for e in before if e.kind == "commit"}
    visible = (folder / "rel").exists()
    if visible:
        verify(folder / "rel", ledger=ledger)
    if not visible or overwrite:
        made.write(folder / "rel", ledger, result=made.tables(1), format="csv", overwrite=overwrite)
    report = verify(folder / "rel", ledger=ledger)

    entries = ledger.entries()
    receipt = json.loads((folder / "rel" / "ledger.json").read_text())
    assert report.reservation in {e.id for e in entries}
    assert {p.state for p in ledger.account(made.DATASET).releases} == {"committed"}
    if not overwrite:
        assert len([e for e in entries if e.kind == "reserve"]) == 1
        assert digests <= {receipt["digest"]}
    assert not [name for name in os.listdir(folder) if "partial" in name and not visible]


def steps(tmp_path: Path) -> int:
    """How many durable steps of our own a run has."""
    out = child(tmp_path, 10**6).communicate()[0]
    return int(out.split()[-1])


def test_h3_i4_a_kill_at_durable_steps_costs_once_and_shows_nothing_half(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    total = steps(tmp_path / "whole")
    assert total > 20
    for last in range(1, total + 1, max(1, total // 4)):
        folder = tmp_path / str(last)
        folder.mkdir()
        kill_at(folder, last)
        check(folder)


@pytest.mark.slow
def test_h3_i4_a_kill_at_every_durable_step(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    for last in range(1, steps(tmp_path / "whole") + 1):
        folder = tmp_path / str(last)
        folder.mkdir()
        kill_at(folder, last)
        check(folder)


def storm(tmp_path: Path, kills: int, *, overwrite: bool = False) -> None:
    rng = random.Random(3)
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        more = ("overwrite",) if overwrite else ()
        if overwrite:
            made.write(folder / "rel", Ledger.open(folder / "ledger.sqlite"), seed=99, format="csv")
        process = child(folder, 0, *more)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.random() * 0.15)
        process.kill()
        process.communicate()
        check(folder, overwrite=overwrite)


def test_i4_random_kills(tmp_path: Path) -> None:
    storm(tmp_path, 3)


def test_i4_random_kills_while_a_release_is_replaced(tmp_path: Path) -> None:
    storm(tmp_path, 2, overwrite=True)


@pytest.mark.slow
def test_i4_two_hundred_random_kills(tmp_path: Path) -> None:
    storm(tmp_path, 200)


@pytest.mark.slow
def test_i4_fifty_kills_while_a_release_is_replaced(tmp_path: Path) -> None:
    storm(tmp_path, 50, overwrite=True)
