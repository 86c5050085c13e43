"""kill -9 at every durable step and at random moments: never half a release, never a second charge."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from gibbous.privacy.ledger import Ledger
from gibbous.write.verify import verify
from tests.write import made
from tests.write.nursery import Child, Connection, killing


def run(says: Connection, folder: Path, last: int, overwrite: bool) -> None:
    """A run that is killed at its durable step `last`; 0 lets it end, and tells how many it has.

    Each child would draw other tables: a second draw on one charge would show.
    """
    honest, done, kill = os.fsync, [0], killing(last)

    def fsync(handle: int) -> None:
        honest(handle)
        done[0] += 1
        kill()

    made.draw_plainly()
    ledger = Ledger.open(folder / "ledger.sqlite")
    tables = made.tables(seed=os.getpid())
    os.fsync = fsync
    says.send("ready")
    made.write(folder / "rel", ledger, result=tables, format="csv", overwrite=overwrite)
    says.send(done[0])


def kill_at(folder: Path, last: int) -> None:
    assert Child(run, folder, last, False).ended() == -9


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
    return int(Child(run, tmp_path, 0, False).rest()[-1])


@pytest.mark.slow
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


@pytest.mark.slow
def test_F_a_replacing_run_that_is_killed_after_the_exchange_is_charged_once(
    tmp_path: Path,
) -> None:
    def replaced(folder: Path, last: int) -> Child:
        book = Ledger.open(folder / "ledger.sqlite")
        made.write(folder / "rel", book, seed=99, format="csv")
        book.close()
        return Child(run, folder, last, True)

    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    folder, total = tmp_path / "killed", int(replaced(tmp_path / "whole", 0).rest()[-1])
    assert (
        replaced(folder, total).ended() == -9
    )  # the name is durable; the old release is not removed
    assert len(os.listdir(folder)) > len(os.listdir(tmp_path / "whole"))

    check(folder, overwrite=True)

    entries = Ledger.open(folder / "ledger.sqlite").entries()
    charges = [e.id for e in entries if e.kind == "reserve"]
    receipt = json.loads((folder / "rel" / "ledger.json").read_text())
    assert len(charges) == 2
    assert receipt["ledger"]["reservation"] == charges[1]
    assert not [name for name in os.listdir(folder) if "partial" in name]


def storm(tmp_path: Path, kills: int, *, overwrite: bool = False) -> None:
    rng = random.Random(3)
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        if overwrite:
            made.write(folder / "rel", Ledger.open(folder / "ledger.sqlite"), seed=99, format="csv")
        child = Child(run, folder, 0, overwrite)
        assert child.next() == "ready"
        time.sleep(rng.random() * 0.15)
        child.kill()
        assert child.ended() in (-9, 0)
        check(folder, overwrite=overwrite)


@pytest.mark.slow
def test_i4_random_kills(tmp_path: Path) -> None:
    storm(tmp_path, 3)


@pytest.mark.slow
def test_i4_random_kills_while_a_release_is_replaced(tmp_path: Path) -> None:
    storm(tmp_path, 2, overwrite=True)


@pytest.mark.slow
def test_i4_two_hundred_random_kills(tmp_path: Path) -> None:
    storm(tmp_path, 200)


@pytest.mark.slow
def test_i4_fifty_kills_while_a_release_is_replaced(tmp_path: Path) -> None:
    storm(tmp_path, 50, overwrite=True)
