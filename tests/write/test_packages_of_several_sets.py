"""Releases of several noisings and of parts on disk: whole, verified, resumed after a kill, never half."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import ModelRejected, PrivacyRefused, UsageError
from gibbous.mechanisms.multiple_synthesis import MultipleSynthesis
from gibbous.mechanisms.parallel import Parallel
from gibbous.mechanisms.per_set import PerSet
from gibbous.write.package import Package
from gibbous.write.release_digest import digest_of
from gibbous.write.sets import Sets
from gibbous.write.table_files import read_tables
from tests.mechanisms.linked_columns import MIXED, SCHEMA, frame, people

METHODS: dict[str, Any] = {
    "sets": PerSet(gb.NoisyPegs(epsilon=4)),
    "parts": Parallel(gb.NoisyPegs(epsilon=4)),
    "parts of sets": Parallel(PerSet(gb.Laplace(epsilon=4))),
}
CSV = "csv"
ROOT = Path(__file__).resolve().parents[2]


def write(out: Path, method: Any, ledger: Any, sets: int = 3, rows: int | None = 60) -> Any:
    return gb.synthesize(
        frame(500), SCHEMA, method, rows=rows, sets=sets, seed=5, out=out, ledger=ledger
    )


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sets")
    for name, method in METHODS.items():
        write(folder / name, method, gb.Ledger.ephemeral())
    return {name: folder / name for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_a_release_reads_back_and_verifies(releases: dict[str, Path], name: str) -> None:
    found, report = gb.load(releases[name]), gb.verify(releases[name])

    assert found.tables is not None
    assert report.tables == len(found.tables.published()) == found.receipt["tables"]
    assert digest_of(found.tables) == found.receipt["digest"]
    for index, one in enumerate(found.sets):
        assert found.sample(60, seed=5, set=index + 1).equals(one)


@pytest.mark.parametrize(
    ("name", "sanitized", "words"),
    [
        ("sets", "per set", "For each of the 3 sets the records were counted"),
        ("parts", "once", "one of 2 parts by chance"),
        ("parts of sets", "per set", "one of 2 parts by chance"),
    ],
)
def test_the_certificate_and_the_text_say_what_was_noised(
    releases: dict[str, Path], name: str, sanitized: str, words: str
) -> None:
    receipt = json.loads((releases[name] / "ledger.json").read_text())

    assert receipt["sanitized"] == sanitized
    assert words in (releases[name] / "METHODS.md").read_text()
    assert receipt["discovered"] == []
    assert receipt["total"]["epsilon"] == "4"


def test_the_folders_have_the_numbers_of_the_sets(releases: dict[str, Path]) -> None:
    names = {p.name for p in (releases["sets"] / "tables").iterdir() if p.is_dir()}

    assert names == {"set_002", "set_003"}
    assert read_tables(releases["sets"] / "tables", SCHEMA).noisings == 3


@pytest.mark.parametrize(
    "change",
    ["a set's table", "a folder less", "another folder", "a file more", "a deep folder", "order"],
)
def test_a_changed_copy_is_not_an_intact_release(
    releases: dict[str, Path], change: str, tmp_path: Path
) -> None:
    shutil.copytree(releases["sets"], tmp_path / "r")
    tables = tmp_path / "r" / "tables"
    if change == "a set's table":
        path = tables / "set_002" / "table_001.parquet"
        shutil.copy(tables / "set_003" / "table_001.parquet", path)
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    elif change == "a folder less":
        shutil.rmtree(tables / "set_003")
    elif change == "another folder":
        (tables / "set_x").mkdir()
    elif change == "a file more":
        (tables / "set_002" / "notes.txt").write_text("x")
    elif change == "a deep folder":
        (tables / "set_002" / "part_001" / "set_002").mkdir(parents=True)
        shutil.copy(
            tables / "tables.json", tables / "set_002" / "part_001" / "set_002" / "tables.json"
        )
    else:
        (tables / "set_002").rename(tables / "aside")
        (tables / "set_003").rename(tables / "set_002")
        (tables / "aside").rename(tables / "set_003")

    with pytest.raises(ModelRejected):
        gb.verify(tmp_path / "r")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"sets": -1}, "impossible number"),
        ({"sets": 10**9}, "impossible number"),
        ({"sets": True}, "impossible number"),
        ({"parts": 2, "sets": 0}, "does not describe|missing"),
        ({"shares": [0.5]}, "not shares"),
        ({"shares": ["a"]}, "not shares"),
    ],
)
def test_nothing_in_a_foreign_document_is_trusted(
    releases: dict[str, Path], document: dict[str, Any], words: str, tmp_path: Path
) -> None:
    shutil.copytree(releases["sets"] / "tables", tmp_path / "t")
    path = tmp_path / "t" / "tables.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | document))

    with pytest.raises(ModelRejected, match=words):
        read_tables(tmp_path / "t", SCHEMA)


@pytest.mark.parametrize("step", ["tables", "commit", "set"])
def test_a_killed_run_goes_on_with_the_copies_it_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The process is gone after a step: its locks are, too, and nothing is cleaned up."""
    ledger, done = gb.Ledger.open(tmp_path / "ledger.sqlite"), []
    steps = ((Package, "commit"), (Sets, "record"), (Package, "__exit__"))
    honest = [(owner, name, getattr(owner, name)) for owner, name in steps]

    def dying(self: Any, *args: Any, **given: Any) -> None:
        done.append(digest_of(self.job.source if isinstance(self, Sets) else self.result))
        raise KeyboardInterrupt

    def gone(self: Any, *args: Any) -> None:
        self._partial.close()
        self._hold.release()

    monkeypatch.setattr(Package, "__exit__", gone)
    if step == "tables":
        monkeypatch.setattr(Package, "commit", dying)
    else:
        monkeypatch.setattr(Sets, "record", dying if step == "commit" else _second(dying))
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", METHODS["sets"], ledger)
    for owner, name, method in honest:
        monkeypatch.setattr(owner, name, method)
    assert not (tmp_path / "out").exists()

    found = write(tmp_path / "out", METHODS["sets"], ledger)

    assert found.receipt["digest"] == done[0]
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1
    gb.verify(tmp_path / "out", ledger=ledger)


CHILD = """
import os, signal, sys
from pathlib import Path
import gibbous as gb
from tests.write.test_packages_of_several_sets import METHODS, write
folder, last = Path(sys.argv[1]), int(sys.argv[2])
real, done = os.fsync, 0
def fsync(fd):
    global done
    real(fd)
    done += 1
    if done == last:
        os.kill(os.getpid(), signal.SIGKILL)
ledger = gb.Ledger.open(folder / "ledger.sqlite")
os.fsync = fsync
write(folder / "out", METHODS["sets"], ledger)
print("steps", done)
"""


def _child(folder: Path, last: int) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), str(last)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_kill_9_at_durable_steps_costs_once_and_shows_nothing_half(tmp_path: Path) -> None:
    steps = int(_child(tmp_path / "whole", 10**6).stdout.split()[-1])

    for last in range(steps // 4, steps, steps // 3):
        folder = tmp_path / str(last)
        assert _child(folder, last).returncode == -9
        ledger = gb.Ledger.open(folder / "ledger.sqlite")
        digests = {e.sha256 for e in ledger.entries() if e.kind == "commit"}
        if not (folder / "out").exists():
            write(folder / "out", METHODS["sets"], ledger)
        gb.verify(folder / "out", ledger=ledger)
        assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1
        assert digests <= {gb.load(folder / "out").receipt["digest"]}


def _second(dying: Any) -> Any:
    honest, seen = Sets.record, []

    def record(self: Any, *args: Any, **given: Any) -> Any:
        seen.append(1)
        return dying(self) if len(seen) == 2 else honest(self, *args, **given)

    return record


@pytest.mark.slow
def test_fifty_sets_are_charged_once_and_verified(tmp_path: Path) -> None:
    ledger = gb.Ledger.ephemeral()

    found = write(tmp_path / "out", PerSet(gb.Laplace(epsilon=5)), ledger, sets=50, rows=8)

    assert len(found.sets) == 50
    assert found.tables.noisings == 50
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1
    assert gb.verify(tmp_path / "out").tables == 50


@pytest.mark.parametrize("sets", [0, -1, 1.5, "2"])
def test_no_set_at_all_is_refused_and_costs_nothing(sets: Any, tmp_path: Path) -> None:
    ledger = gb.Ledger.ephemeral()

    with pytest.raises(UsageError, match=r"sets >= 1|sets of synthesize is not"):
        write(tmp_path / "out", METHODS["sets"], ledger, sets=sets)

    assert ledger.entries() == ()


def test_one_set_says_once_and_has_no_copies(tmp_path: Path) -> None:
    found = write(tmp_path / "out", METHODS["sets"], gb.Ledger.ephemeral(), sets=1)

    assert found.receipt["sanitized"] == "once"
    assert not (tmp_path / "out" / "tables" / "set_002").exists()


@pytest.mark.parametrize("number", [0, 4, True, "1"])
def test_rows_of_a_set_that_is_not_there_are_refused(
    releases: dict[str, Path], number: Any
) -> None:
    with pytest.raises(UsageError, match=r"has sets 1 to 3|set of Release\.sample is not"):
        gb.load(releases["sets"]).sample(5, set=number)


def test_rows_given_a_value_are_refused_where_parts_are_mixed(releases: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="log-linear model"):
        gb.load(releases["parts"]).sample(5, given={"x0": 1})


def test_paid_rows_of_parts_have_no_tables(tmp_path: Path) -> None:
    found = write(tmp_path / "out", Parallel(gb.Pegs(epsilon=0.1), parts=3), gb.Ledger.ephemeral())

    assert found.claim.epsilon == 6  # 20 rows of a part, 3 sets, at 0.1
    assert gb.verify(tmp_path / "out").tables == 0
    with pytest.raises(PrivacyRefused, match="no public tables"):
        found.sample(1)


@pytest.mark.parametrize("form", ["parquet", CSV])
def test_drawn_numbers_are_what_the_ledger_entry_was_made_for(tmp_path: Path, form: str) -> None:
    found = gb.synthesize(
        people(200), MIXED, MultipleSynthesis(), rows=40, sets=2, seed=1, out=tmp_path / "out",
        format=form, ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    gb.verify(tmp_path / "out")

    assert found.receipt["numbers"] == [1, 2]
    assert [len(one) for one in gb.load(tmp_path / "out").sets] == [40, 40]


def test_a_number_changed_within_its_bin_is_noticed(tmp_path: Path) -> None:
    from gibbous.write import manifest

    gb.synthesize(
        people(200), MIXED, MultipleSynthesis(), rows=40, seed=1, out=tmp_path / "out",
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip
    path = tmp_path / "out" / "synthetic_1.parquet"
    moved = pl.read_parquet(path).with_columns(pl.col("height").round(0))
    moved.write_parquet(path)
    for name in ("manifest.json", "SHA256SUMS"):
        (tmp_path / "out" / name).unlink()
    manifest.seal(tmp_path / "out")

    with pytest.raises(ModelRejected, match="rows are not those"):
        gb.verify(tmp_path / "out")


def test_the_estimator_hands_out_rows_of_the_set_that_is_asked_for() -> None:
    free = gb.Synthesizer(METHODS["sets"], seed=3, ledger=gb.Ledger.ephemeral())
    paid = gb.Synthesizer(gb.Pegs(epsilon=0.1), ledger=gb.Ledger.ephemeral())

    free.fit(frame(200), SCHEMA, sets=2)
    paid.fit(frame(200), SCHEMA, rows=5, sets=2)

    assert free.sample(9, set=2).equals(free.release_.sets[1][:9])
    assert paid.sample(3, set=2).equals(paid.release_.sets[1][:3])
    assert len(paid.sample(5, set=1)) == 5
    assert len(paid.sample(2, set=2)) == 2
    with pytest.raises(PrivacyRefused, match="0 of 5 paid rows"):
        paid.sample(1, set=2)
    with pytest.raises(UsageError, match="sets 1 to 2"):
        paid.sample(1, set=3)


def test_the_public_report_says_how_often_the_records_were_counted(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    from gibbous.reporting.public_report import summary

    words = {name: summary(gb.load(path))[0][1] for name, path in releases.items()}

    assert "For each of the 3 sets the records were counted" in words["sets"]
    assert "one of 2 parts by chance" in words["parts"]
    assert "counted once" in words["parts"]


def test_bins_that_were_paid_for_are_named_in_certificate_and_text(tmp_path: Path) -> None:
    from gibbous.mechanisms.perturbed_histogram import PerturbedHistogram

    method = PerturbedHistogram(bins="scott", scale="paid", epsilon=3)
    found = gb.synthesize(
        people(300), MIXED, method, rows=10, out=tmp_path / "out", ledger=gb.Ledger.ephemeral()
    )

    gb.verify(tmp_path / "out")

    assert found.receipt["discovered"] == ["height: bins", "weight: bins"]
    assert found.schema != MIXED
    assert gb.load(tmp_path / "out").schema == found.schema
    assert "bins of height, weight" in (tmp_path / "out" / "METHODS.md").read_text()


def test_a_certificate_that_hides_what_was_paid_for_is_not_intact(tmp_path: Path) -> None:
    from gibbous.write import certificate_check, load

    write(tmp_path / "out", METHODS["parts"], gb.Ledger.ephemeral())
    receipt = load.read_receipt(tmp_path / "out") | {"discovered": ["x0: bins"]}
    total = gb.load(tmp_path / "out").claim

    with pytest.raises(ModelRejected, match="paid for"):
        certificate_check._check_words(receipt, SCHEMA, total, ())
