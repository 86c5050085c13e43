"""N3: a run that is killed while it writes loses a part at most, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import OutputNotWritten, ResourceLimit
from gibbous.privacy import spend
from gibbous.privacy.ledger import Ledger
from gibbous.write import sets as sets_module
from gibbous.write.sets import Sets
from gibbous.write.verify import verify
from tests.write import made
from tests.write.nursery import Child, Connection, killing
from tests.write.test_parts import rows_of

ROWS, PART, PARTS = 500, 50, 20  # of two sets together


def run(says: Connection, folder: Path, last: int) -> None:
    """A run that is killed when so many parts are noted; 0 lets it end."""
    honest, kill = Sets.record, killing(last)

    def record(self: Sets, part: Any) -> None:
        honest(self, part)
        kill()

    made.draw_plainly()
    Sets.record = record  # type: ignore[method-assign]
    ledger = Ledger.open(folder / "ledger.sqlite")
    says.send("ready")
    made.write(folder / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART, format="csv")


def finish(folder: Path) -> list[tuple[int, int]]:
    """Run the same command to its end; the parts that it still drew."""
    drawn, honest = [], sets_module.write_part

    def write_part(job: Any, item: Any, **given: Any) -> Any:
        drawn.append(item)
        return honest(job, item, **given)

    sets_module.write_part = write_part  # type: ignore[assignment]
    try:
        made.write(
            folder / "rel", Ledger.open(folder / "ledger.sqlite"), planned=made.plan(rows=ROWS),
            part_rows=PART, format="csv",
        )  # fmt: skip
    finally:
        sets_module.write_part = honest
    return drawn


def stop_after(folder: Path, last: int, error: type[BaseException] = KeyboardInterrupt) -> Path:
    """A run in this process that ends after so many parts; its private folder."""
    honest, done = Sets.record, []

    def record(self: Sets, part: Any) -> None:
        honest(self, part)
        done.append(part)
        if len(done) == last:
            raise error

    Sets.record = record  # type: ignore[method-assign]
    try:
        with pytest.raises(error):
            finish(folder)
    finally:
        Sets.record = honest  # type: ignore[method-assign]
    return next(folder.glob(".rel.partial-*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the uninterrupted run writes."""
    folder = tmp_path_factory.mktemp("whole")
    assert len(finish(folder)) == PARTS
    return rows_of(folder / "rel")


def check(folder: Path, whole: dict[str, bytes]) -> None:
    ledger = Ledger.open(folder / "ledger.sqlite")
    verify(folder / "rel", ledger=ledger)
    assert rows_of(folder / "rel") == whole
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1
    assert sorted(p.name for p in folder.iterdir() if "sqlite" not in p.name) == ["rel"]


@pytest.mark.slow
def test_n3_killed_at_nine_tenths_the_resumed_run_draws_the_rest_alone(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    assert Child(run, tmp_path, PARTS * 9 // 10).ended() == -9
    assert not (tmp_path / "rel").exists()

    drawn = finish(tmp_path)

    assert len(drawn) == PARTS // 10
    check(tmp_path, whole)


def storm(folder: Path, whole: dict[str, bytes], kills: int) -> None:
    """Kills at random moments, each run going on from the last one."""
    rng = random.Random(5)
    for number in range(kills):
        here = folder / str(number)
        here.mkdir()
        for _ in range(2):
            child = Child(run, here, 0)
            assert child.next() == "ready"
            time.sleep(rng.random() * 0.4)
            child.kill()
            assert child.ended() in (-9, 0)
            if (here / "rel").exists():  # it was done before the kill
                break
        if (here / "rel").exists():
            # Killed after it had its name: what else it left goes with the next run.
            with pytest.raises(OutputNotWritten):
                finish(here)
        else:
            finish(here)
        check(here, whole)


@pytest.mark.slow
def test_i4_kills_at_random_moments_of_writing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    storm(tmp_path, whole, 6)


def flip(path: Path) -> None:
    found = bytearray(path.read_bytes())
    found[len(found) // 2] ^= 1
    path.write_bytes(found)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
def test_a_part_that_is_not_what_was_noted_is_drawn_again(
    tmp_path: Path, whole: dict[str, bytes], damage: Callable[[Path], None]
) -> None:
    left = stop_after(tmp_path, 15)
    damage(left / "package" / "synthetic_1" / "part-00003.parquet")
    damage(left / "package" / "synthetic_2_csv" / "part-00002.csv")

    drawn = finish(tmp_path)

    assert drawn == [(0, 3), (1, 2), *((1, part) for part in range(5, 10))]
    check(tmp_path, whole)


@pytest.mark.slow
def test_a_torn_note_and_files_nobody_noted_are_not_kept(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    left = stop_after(tmp_path, 10)
    notes = (left / "parts.jsonl").read_text()
    lines = notes.splitlines()
    foreign = json.loads(lines[0])
    foreign["files"][0]["name"] = "../../ledger.sqlite"
    lines[0] = json.dumps(foreign)
    (left / "parts.jsonl").write_text("\n".join(["[]", "null", *lines])[:-20])
    (left / "package" / "synthetic_2" / ".part.tmp").write_text("half")
    (left / "package" / "synthetic_7.parquet").write_text("of another run")

    drawn = finish(tmp_path)

    assert (0, 0) in drawn
    assert (0, 9) in drawn
    assert len(drawn) == PARTS - 8
    check(tmp_path, whole)


@pytest.mark.slow
def test_a_full_disk_keeps_the_parts_that_are_whole(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(ResourceLimit):
        def __init__(self) -> None:
            super().__init__("DISK", "The disk is full.", "It is not.", "Make room.")

    stop_after(tmp_path, 15, Full)

    assert len(finish(tmp_path)) == 5
    check(tmp_path, whole)


@pytest.mark.slow
@pytest.mark.parametrize("charged", [False, True])
def test_n1_a_run_that_needs_more_memory_is_refused_uncharged_or_is_charged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charged: bool
) -> None:
    if charged:  # an engine of another maker may find out only when it counts
        monkeypatch.setattr(spend, "rehearse", lambda *_, **__: None)
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.integers(0, 90, 20_000) for name in "abcd"})
    columns = tuple(gb.Column(name, "ordinal", levels=tuple(range(90))) for name in "abcd")
    ledger = Ledger.ephemeral()

    def run(memory_limit: int | None) -> None:
        gb.synthesize(
            frame, gb.Schema(columns, gb.Unit("row")), gb.Sbhg(parents=3, choice=0), rows=10, seed=1,
            out=tmp_path / "rel", ledger=ledger, engine=gb.engine("local", memory_limit=memory_limit),
        )  # fmt: skip

    with pytest.raises(ResourceLimit, match="memory_limit of gb") as caught:
        run(1_000_000)
    before = ledger.entries()
    run(None)

    said = "Nothing was released; no budget was spent."
    if charged:
        said = f"Reservation {before[0].id} stays spent; what was drawn may have decided this"
    assert [entry.kind for entry in before] == ["reserve", "commit"] * charged
    assert said in str(caught.value)
    assert [entry.kind for entry in ledger.entries()] == ["reserve", "commit"] * (1 + charged)


@pytest.mark.slow
def test_parts_of_tables_that_were_drawn_again_are_not_kept(tmp_path: Path) -> None:
    left = stop_after(tmp_path, 15)
    (left / "package" / "tables" / "table_001.parquet").unlink()

    assert len(finish(tmp_path)) == PARTS

    verify(tmp_path / "rel")


def test_notes_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        left = stop_after(tmp_path, 2)
    finally:
        os.umask(before)

    found = {p.relative_to(left).as_posix(): p.stat().st_mode & 0o777 for p in left.rglob("*")}
    assert {found[name] for name in found if not (left / name).is_dir()} == {0o600}
    assert {found[name] for name in found if (left / name).is_dir()} == {0o700}
