"""Further rows of a release: one file or a folder that says what it is, at no cost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gibbous.core.errors import ModelRejected, OutputNotWritten, PrivacyRefused
from gibbous.core.release import Release
from gibbous.core.request import Output
from gibbous.privacy.ledger import Ledger
from gibbous.write import manifest, sampled_rows
from gibbous.write.durable_files import new_file
from gibbous.write.load import load
from gibbous.write.output_path import check_output
from gibbous.write.sampled_rows import write_sampled
from gibbous.write.sidecars import SIDECARS
from gibbous.write.verify import verify
from tests.write import made
from tests.write.test_parts import Shuffled, rows_of
from tests.write.test_verify import edit


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return made.write(tmp_path_factory.mktemp("rel") / "rel", Ledger.ephemeral())


@pytest.fixture(scope="module")
def origin(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("more") / "more"
    return write_sampled(release, Output(500, seed=9, format="csv", part_rows=200), target)


@pytest.fixture
def folder(origin: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", str(origin), str(tmp_path / "more")], check=True)
    return tmp_path / "more"


def test_a_folder_of_further_rows_verifies_and_names_its_release(
    folder: Path, release: Release
) -> None:
    report = verify(folder)

    assert report.rows == (500,)
    assert report.reservation == release.receipt["ledger"]["reservation"]
    assert report.claim == release.claim
    assert report.guarantee == f"none of its own; its release: {release.receipt['guarantee']}"
    assert "cost nothing" in report.checks[-1]
    assert {p.name for p in folder.iterdir()} == {
        "synthetic_1", "synthetic_1_csv", "schema.toml", "rows.json", "manifest.json", "SHA256SUMS",
        "codebook.html", *SIDECARS,
    }  # fmt: skip
    rows = pl.concat(pl.read_parquet(p) for p in sorted((folder / "synthetic_1").iterdir()))
    text = pl.col("sex", "region").cast(pl.String)
    assert rows.with_columns(text).equals(release.sample(500, seed=9))


def test_further_rows_are_the_same_in_one_file_in_parts_and_by_other_workers(
    release: Release, folder: Path, tmp_path: Path
) -> None:
    write_sampled(release, Output(500, seed=9), tmp_path / "one.parquet")
    output = Output(500, seed=9, format="csv", part_rows=200)
    write_sampled(release, output, tmp_path / "again", workers=Shuffled(3))

    assert pl.read_parquet(tmp_path / "one.parquet").equals(
        pl.concat(pl.read_parquet(p) for p in sorted((folder / "synthetic_1").iterdir()))
    )
    assert rows_of(tmp_path / "again") == rows_of(folder)
    assert sorted(os.listdir(tmp_path)) == ["again", "more", "one.parquet"]


def test_no_rows_at_all_are_a_file_with_a_header(release: Release, tmp_path: Path) -> None:
    write_sampled(release, Output(0, seed=1), tmp_path / "none")
    write_sampled(release, Output(0, seed=1, format="csv"), tmp_path / "none.csv")

    assert verify(tmp_path / "none").rows == (0,)
    assert (tmp_path / "none.csv").read_text() == "sex,region,age,pay,born\n"


def test_rows_that_were_paid_for_are_refused(tmp_path: Path) -> None:
    paid = made.write(tmp_path / "rel", Ledger.ephemeral(), result=made.codes(100, 3))

    with pytest.raises(PrivacyRefused, match="no public tables"):
        write_sampled(paid, Output(10, seed=1), tmp_path / "more")


def test_nothing_is_replaced(release: Release, folder: Path) -> None:
    with pytest.raises(OutputNotWritten, match="exists"):
        check_output(folder)
    with pytest.raises(OutputNotWritten, match="exists"):
        write_sampled(release, Output(10, seed=1), folder)

    verify(folder)
    assert os.listdir(folder.parent) == ["more"]


def test_a_stopped_run_keeps_its_parts_for_the_same_command(
    release: Release, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(Shuffled):
        def spread(self, work: Any, shared: Any, items: Any, **_: Any) -> Any:
            yield work(shared, items[0])
            raise KeyboardInterrupt

    output = Output(500, seed=9, format="csv", part_rows=200)
    with pytest.raises(KeyboardInterrupt):
        write_sampled(release, output, tmp_path / "again", workers=Stopping(1))
    kept = list(tmp_path.glob(".again.partial-*/package/synthetic_1/part-00000.parquet"))
    before = kept[0].stat().st_mtime_ns

    write_sampled(release, output, tmp_path / "again")

    assert rows_of(tmp_path / "again") == rows_of(folder)
    assert (tmp_path / "again/synthetic_1/part-00000.parquet").stat().st_mtime_ns == before
    assert sorted(os.listdir(tmp_path)) == ["again", "more"]


def test_a_stopped_run_of_one_file_leaves_nothing(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sampled_rows.durable_files, "move_into_place", stop)
    with pytest.raises(KeyboardInterrupt):
        write_sampled(release, Output(10, seed=1), tmp_path / "more")
    with pytest.raises(KeyboardInterrupt):
        write_sampled(
            release,
            Output(10, seed=1, format="csv"),
            tmp_path / "more.csv",
            progress=lambda *told: stop() if told[1] else None,
        )

    assert os.listdir(tmp_path) == []


def test_a_file_that_a_killed_run_left_is_swept_and_a_live_one_is_not(
    release: Release, tmp_path: Path
) -> None:
    dead, other = tmp_path / ".one.csv.partial-0", tmp_path / ".two.csv.partial-0"
    dead.write_text("half")
    other.write_text("of another output")
    with new_file(tmp_path / ".one.csv.partial-1"):
        write_sampled(release, Output(10, seed=1, format="csv"), tmp_path / "one.csv")
        left = sorted(os.listdir(tmp_path))

    assert left == [".one.csv.partial-1", ".two.csv.partial-0", "one.csv"]


def bad_total(document: Any) -> None:
    document["release"]["total"]["epsilon"] = "0.1"


def bad_cost(document: Any) -> None:
    document["cost"] = "nothing at all"


def bad_rows(document: Any) -> None:
    document["rows"] = [501]


def bad_version(document: Any) -> None:
    document["format"] = "gibbous-rows/2"


def bad_kind(document: Any) -> None:
    document["release"] = []


@pytest.mark.parametrize("change", [bad_total, bad_cost, bad_rows, bad_version, bad_kind])
def test_a_changed_origin_is_refused(folder: Path, change: Callable[[Any], None]) -> None:
    edit(folder, "rows.json", change)

    with pytest.raises(ModelRejected):
        verify(folder)


def test_descriptions_of_further_rows_follow_from_the_rest(folder: Path, release: Release) -> None:
    package = json.loads((folder / "datapackage.json").read_text())
    assert release.receipt["guarantee"] in package["description"]
    assert package["resources"][0]["path"] == [
        f"synthetic_1_csv/part-{part:05}.csv" for part in range(3)
    ]

    text = folder / "datacite.json"
    text.write_text(text.read_text().replace("epsilon", "epsilon of less than"))
    edit(folder, "rows.json", lambda document: None)
    with pytest.raises(ModelRejected, match="is not what"):
        verify(folder)


def test_a_folder_cannot_be_a_release_and_further_rows_at_once(
    folder: Path, release: Release, tmp_path: Path
) -> None:
    assert release.path is not None
    for name in ("ledger.json", "rows.json"):
        both = tmp_path / name
        source, extra = (folder, release.path) if name == "ledger.json" else (release.path, folder)
        subprocess.run(["cp", "-a", str(source), str(both)], check=True)
        (both / name).write_bytes((extra / name).read_bytes())
        for file in ("manifest.json", "SHA256SUMS"):
            (both / file).unlink()
        manifest.seal(both)
        for reader in (verify, load):
            with pytest.raises(ModelRejected):
                reader(both)


def test_loading_further_rows_says_what_they_are(folder: Path) -> None:
    with pytest.raises(ModelRejected, match="further rows of a release"):
        load(folder)


def test_rows_outside_the_schema_are_refused(folder: Path) -> None:
    path = folder / "synthetic_1" / "part-00001.parquet"
    pl.read_parquet(path).with_columns(pl.lit(200).alias("age")).write_parquet(path)
    edit(folder, "rows.json", lambda document: None)

    with pytest.raises(ModelRejected, match="schema"):
        verify(folder)


def test_the_origin_holds_no_seed_of_noise_and_no_path(folder: Path) -> None:
    document = json.loads((folder / "rows.json").read_text())

    assert set(document) == {
        "format", "cost", "release", "imprint", "seed", "rows", "sets", "files", "versions",
    }  # fmt: skip
    assert str(folder.parent) not in (folder / "rows.json").read_text()
