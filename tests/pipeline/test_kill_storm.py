"""kill -9 of the whole command at random moments: nothing half, nothing uncharged, nothing twice."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from gibbous.privacy.ledger import Ledger
from gibbous.read.schema_write import schema_toml
from gibbous.write.verify import verify
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.write.nursery import Child, command

COMMANDS = {
    "sbhg": ("--method", "sbhg", "--epsilon", "1", "--delta", "1e-4", "--format", "csv"),
    "pegs": ("--method", "pegs", "--epsilon", "0.5"),
}
EXISTS = 9


class Place:
    """One folder with data, schema, ledger, and one command that is run again and again."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.out = folder, folder / "release"
        self.told = folder.with_name(f"{folder.name}.err")
        folder.mkdir(parents=True)
        table(400).write_csv(folder / "data.csv")
        (folder / "schema.toml").write_text(schema_toml(SCHEMA))
        self.command = [
            "synthesize", "data.csv", "--schema", "schema.toml",
            *COMMANDS[name], "--rows", "60", "--sets", "2", "--out", "release", "--quiet",
        ]  # fmt: skip
        self.draws: set[str] = set()

    def start(self) -> Child:
        return Child(command, self.command, self.folder, self.told)

    def killed_after(self, seconds: float) -> None:
        """Start the command and kill it, if it still runs then."""
        process = self.start()
        time.sleep(seconds)
        process.kill()
        assert process.ended() in (-signal.SIGKILL, 0, EXISTS if self.out.exists() else 0)
        self.check()

    def check(self) -> None:
        """What must hold at any moment."""
        if not (self.folder / "home").exists():
            assert not self.out.exists()
            return
        book = Ledger.open(self.folder / "home" / "ledger.sqlite")
        entries = book.entries()
        charges = {e.id for e in entries if e.kind == "reserve"}
        self.draws |= {str(e.sha256) for e in entries if e.kind == "commit"}
        if self.out.exists():
            assert verify(self.out, ledger=book).reservation in charges
        assert len(charges) <= 1, "a killed run was charged again"
        assert len(self.draws) <= 1, "a second draw was committed on one charge"
        book.close()

    def finish(self) -> None:
        """The same command again: one release, one charge, no scratch."""
        process = self.start()
        code = process.ended()
        assert code == 0 or (code == EXISTS and self.out.exists()), self.told.read_text()
        self.check()
        assert self.out.exists()
        assert len(self.draws) == 1
        assert self.draws == {json.loads((self.out / "ledger.json").read_text())["digest"]}
        assert [len(pl.read_parquet(p)) for p in sorted(self.out.glob("*.parquet"))] == [60, 60]
        assert sorted(p.name for p in self.folder.iterdir()) == [
            "data.csv", "home", "release", "schema.toml",
        ]  # fmt: skip
        book = Ledger.open(self.folder / "home" / "ledger.sqlite")
        assert {p.state for a in book.accounts() for p in a.releases} == {"committed"}
        book.close()


def length(folder: Path, name: str) -> float:
    """Seconds that the command takes when its kernels are compiled."""
    taken = []
    for number in range(2):
        place = Place(folder / f"warm-{name}-{number}", name)
        began = time.perf_counter()
        place.finish()
        taken.append(time.perf_counter() - began)
    return min(taken)


def storm(folder: Path, name: str, kills: int, *, each: int, seed: int) -> None:
    """Kill `kills` runs, spread evenly over the run time and a little beyond, up to `each` in one folder."""
    rng, whole = random.Random(seed), length(folder, name)
    moments = [whole * 1.05 * (k + rng.random()) / kills for k in range(kills)]
    rng.shuffle(moments)
    place, used, number = Place(folder / "0", name), 0, 0
    for moment in moments:
        if used == each or place.out.exists():
            place.finish()
            number, used = number + 1, 0
            place = Place(folder / str(number), name)
        place.killed_after(moment)
        used += 1
    place.finish()


@pytest.mark.slow
def test_i4_h3_three_kills_of_the_command_cost_once_and_show_nothing_half(tmp_path: Path) -> None:
    storm(tmp_path, "sbhg", 3, each=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills"), [("sbhg", 30), ("pegs", 15)])
def test_i4_h3_g_r1_forty_five_kills_of_the_command(name: str, kills: int, tmp_path: Path) -> None:
    storm(tmp_path, name, kills, each=3, seed=2)
