"""Sets in parts: the same bytes whoever draws them in whatever order, kept whole, read as one set."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import (
    EngineFailure,
    ModelRejected,
    OutputNotWritten,
    ResourceLimit,
    UsageError,
)
from gibbous.core.request import PART_ROWS, Output
from gibbous.encode.decode import decode
from gibbous.privacy.ledger import Ledger
from gibbous.sampling.sample import sample
from gibbous.write import parts as parts_module
from gibbous.write.arrow_schema import file_metadata
from gibbous.write.durable_files import make_folder
from gibbous.write.load import load
from gibbous.write.parts import TOKEN, Drawing, versions, write_part
from gibbous.write.set_files import (
    MOST_FILES,
    fitting,
    parts,
    set_files,
)
from gibbous.write.verify import verify
from tests.write import made
from tests.write.test_verify import edit, reseal

ROWS, PART = 1000, 300  # four parts a set, the last one shorter


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.ephemeral()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of two sets in four parts each, drawn by this process."""
    folder = tmp_path_factory.mktemp("whole") / "rel"
    made.write(
        folder, Ledger.ephemeral(), planned=made.plan(rows=ROWS), part_rows=PART, format="csv"
    )
    return folder


@pytest.fixture
def rel(whole: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "rel"
    subprocess.run(["cp", "-a", str(whole), str(copy)], check=True)
    return copy


def rows_of(folder: Path) -> dict[str, bytes]:
    """Bytes of the files of the sets."""
    found = (p for p in folder.rglob("synthetic_*/*") if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def job_in(folder: Path, **changes: Any) -> Drawing:
    """A job whose folders are made."""
    tables = made.tables()
    make_folder(folder / "scratch")
    make_folder(folder / "package")
    for form in ("", "_csv"):
        make_folder(folder / "package" / f"synthetic_1{form}")
    (folder / "scratch" / TOKEN).write_text("seen")
    part_rows, form = changes.pop("part_rows", PART), changes.pop("format", "csv")
    job = Drawing(
        tables, "digest", Output(part_rows=part_rows, format=form), ROWS, 7,
        folder=str(folder / "package"), scratch=str(folder / "scratch"), token="seen",
        versions=versions(),
    )  # fmt: skip
    return replace(job, **changes)


class Shuffled:
    """Workers as a cluster has them: any order, some parts twice, everything through pickle."""

    def __init__(self, seed: int, change: Callable[[Any], Any] = lambda done: done) -> None:
        self.random, self.change = random.Random(seed), change

    def spread(self, work: Any, shared: Any, items: Sequence[Any], **_: Any) -> Iterator[Any]:
        shared = pickle.loads(pickle.dumps(shared))
        todo = [*items, *items[::3]]
        self.random.shuffle(todo)
        for item in todo:
            yield self.change(pickle.loads(pickle.dumps(work(shared, item))))


def test_a_small_set_is_one_file_and_a_large_one_a_folder_of_equal_parts() -> None:
    assert list(set_files(1, 50, PART, "parquet")) == ["synthetic_1.parquet"]
    assert list(set_files(2, 0, PART, "csv")) == ["synthetic_2.csv"]
    assert list(set_files(2, 601, PART, "csv")) == [
        f"synthetic_2_csv/part-0000{part}.csv" for part in range(3)
    ]
    assert parts(PART_ROWS, PART_ROWS) == 1
    assert parts(PART_ROWS + 1, PART_ROWS) == 2


def test_parts_grow_where_there_would_be_too_many_files() -> None:
    assert fitting(PART_ROWS, 10**8, 10) == PART_ROWS
    for rows, sets in ((10**13, 1), (10**9, 3000), (10, 10**6)):
        each = fitting(1, rows, sets)
        assert sets * parts(rows, each) <= max(MOST_FILES, sets)
        assert each == 1 or sets * parts(rows, each // 2) > MOST_FILES


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "many"])
def test_an_unusable_part_size_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="part_rows"):
        Output(part_rows=given)


def test_the_parts_of_a_set_are_its_rows_cut_and_nothing_else(whole: Path) -> None:
    for number in (0, 1):
        codes = sample(made.tables(), ROWS, seed=7, set_index=number)
        wanted = decode(codes, seed=7, set_index=number)

        files = sorted((whole / f"synthetic_{number + 1}").iterdir())
        frames = [pl.read_parquet(file) for file in files]

        assert [frame.height for frame in frames] == [300, 300, 300, 100]
        text = pl.col("sex", "region").cast(pl.String)
        assert pl.concat(frames).with_columns(text).equals(wanted)


def test_one_part_has_the_bytes_of_the_library_for_the_whole_frame(tmp_path: Path) -> None:
    rows = (1 << 18) + 5  # more than a row group
    job = job_in(tmp_path, rows=rows, part_rows=rows, format="parquet")
    codes = sample(job.source, rows, seed=7)  # type: ignore[arg-type]
    wanted = decode(codes, seed=7, dictionary=True)
    said = file_metadata(wanted.schema, codes.schema)
    wanted.write_parquet(
        tmp_path / "wanted", compression="zstd", row_group_size=1 << 18, metadata=said
    )

    done = write_part(job, (0, 0))

    assert done.rows == rows
    found = tmp_path / "package" / "synthetic_1.parquet"
    assert found.read_bytes() == (tmp_path / "wanted").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_any_workers_in_any_order_write_the_same_bytes(
    whole: Path, tmp_path: Path, ledger: Ledger, seed: int
) -> None:
    made.write(
        tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART, format="csv",
        workers=Shuffled(seed),
    )  # fmt: skip

    assert len(rows_of(whole)) == 16
    assert rows_of(tmp_path / "rel") == rows_of(whole)
    verify(tmp_path / "rel")
    assert os.listdir(tmp_path) == ["rel"]


def test_any_number_of_threads_writes_the_same_bytes(tmp_path: Path) -> None:
    rows = 3 << 15  # several slices of a thread
    found = set()
    for threads in (1, 2, 3):
        (tmp_path / str(threads)).mkdir()
        job = job_in(tmp_path / str(threads), rows=rows, part_rows=rows, threads=threads)
        found.add(tuple(file.sha256 for file in write_part(job, (0, 0)).files))

    assert len(found) == 1


def test_paid_rows_are_cut_into_parts_too(tmp_path: Path, ledger: Ledger) -> None:
    codes = made.codes(100, 3)
    made.write(tmp_path / "rel", ledger, result=codes, part_rows=20, workers=Shuffled(5))

    release = load(tmp_path / "rel")
    verify(tmp_path / "rel", ledger=ledger)

    assert len(list((tmp_path / "rel" / "synthetic_2").iterdir())) == 3
    second = Codes(codes.schema, codes.values[50:])
    assert release.sets[1].equals(decode(second, seed=7, set_index=1))


def test_a_part_written_twice_has_the_same_bytes_and_leaves_no_draft(tmp_path: Path) -> None:
    job = job_in(tmp_path)

    first, second = write_part(job, (0, 2)), write_part(job, (0, 2))

    assert first == second
    assert os.listdir(tmp_path / "scratch") == [TOKEN]
    assert pickle.loads(pickle.dumps(first)) == first


def test_a_failing_part_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Iterator[Codes]:
        yield made.codes(10, 1)
        raise ResourceLimit("X", "x", "y", "z")

    job = job_in(tmp_path)
    monkeypatch.setattr(parts_module, "stream", broken)

    with pytest.raises(ResourceLimit, match="x y z"):
        write_part(job, (0, 1))
    assert os.listdir(tmp_path / "scratch") == [TOKEN]
    assert os.listdir(tmp_path / "package" / "synthetic_1") == []


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for blind in (replace(job, token="another"), replace(job, scratch=str(tmp_path / "none"))):
        with pytest.raises(OutputNotWritten, match="does not see the output folder") as caught:
            write_part(blind, (0, 0))
        assert caught.value.exit_code == 9


def test_a_part_that_the_driver_does_not_see_stops_the_run(tmp_path: Path, ledger: Ledger) -> None:
    def elsewhere(done: Any) -> Any:
        next(tmp_path.glob(f".rel.partial-*/package/{done.files[0].name}")).unlink(missing_ok=True)
        return done

    with pytest.raises(OutputNotWritten, match="does not see"):
        made.write(
            tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART,
            workers=Shuffled(1, elsewhere),
        )  # fmt: skip
    assert not (tmp_path / "rel").exists()


def test_a_worker_with_other_versions_is_refused(tmp_path: Path) -> None:
    mine = dict(versions()) | {"polars": "0.1"}
    job = job_in(tmp_path, versions=tuple(mine.items()))

    with pytest.raises(EngineFailure, match=f"polars {pl.__version__} there, 0.1 here"):
        write_part(job, (0, 0))


def test_workers_that_disagree_about_a_part_are_refused(tmp_path: Path, ledger: Ledger) -> None:
    count = iter(range(1000))

    def differ(done: Any) -> Any:
        return replace(done, guarded_cells=next(count))

    with pytest.raises(EngineFailure, match="different bytes"):
        made.write(
            tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART,
            workers=Shuffled(1, differ),
        )  # fmt: skip


def test_workers_that_stop_early_do_not_make_a_release(tmp_path: Path, ledger: Ledger) -> None:
    class Lazy:
        def spread(self, work: Any, shared: Any, items: Sequence[Any], **_: Any) -> Iterator[Any]:
            yield work(shared, items[0])

    with pytest.raises(EngineFailure, match="before all parts"):
        made.write(
            tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART, workers=Lazy()
        )
    assert not (tmp_path / "rel").exists()

    made.write(tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART)
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1


def test_progress_counts_rows_of_all_sets_up_to_a_public_total(
    tmp_path: Path, ledger: Ledger
) -> None:
    seen: list[tuple[str, int, int]] = []

    made.write(
        tmp_path / "rel", ledger, planned=made.plan(rows=ROWS), part_rows=PART,
        progress=lambda *told: seen.append(told),
    )  # fmt: skip

    rows = [done for stage, done, _ in seen if stage == "rows"]
    assert {total for stage, _, total in seen if stage == "rows"} == {2 * ROWS}
    assert rows == sorted(rows)
    assert (rows[0], rows[-1]) == (0, 2 * ROWS)
    assert {300, 1000, 1300} <= set(rows)


def test_what_a_worker_imports_makes_no_noise_and_reads_no_records() -> None:
    code = (
        "import sys, gibbous.write.parts; print([m for m in sys.modules if m.startswith("
        "('opendp', 'gibbous.privacy', 'gibbous.mechanisms', 'gibbous.read.source', 'pandas'))])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_job_shows_no_rows_and_is_never_of_secret_codes(tmp_path: Path) -> None:
    job = job_in(tmp_path, source=replace(made.codes(10, 1), secret=True))

    assert repr(job) == "<Drawing: 1 sets of 1,000 rows>"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(job)


def test_a_release_in_parts_loads_scans_and_verifies_as_one(whole: Path) -> None:
    release, seen = load(whole), []

    report = verify(whole, progress=lambda *told: seen.append(told))

    assert report.rows == (ROWS, ROWS)
    assert seen[-1] == ("verify", 2 * ROWS, 2 * ROWS)
    assert release.sets[1].equals(release.sample(ROWS, seed=7, set=2))
    lazy = release.scan(set=2)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(release.sets[1])
    assert release.receipt["files"]["part_rows"] == PART
    text = (whole / "METHODS.md").read_text()
    assert "`synthetic_1/part-00000.parquet`" in text
    assert "`synthetic_1_csv/part-00000.csv`" in text
    with pytest.raises(UsageError):
        release.scan(set=3)


def test_scanning_a_release_in_memory_is_refused(whole: Path) -> None:
    release = load(whole)
    held = replace(release, sets=(release.sets[0],), path=None)

    with pytest.raises(UsageError, match="in memory"):
        held.scan()


def test_the_certificate_counts_the_guarded_cells_of_every_part(whole: Path) -> None:
    release = load(whole)
    guarded = [
        int(release.sets[number]["region"].is_in(["=1+1", '@"x",\n']).sum()) for number in (0, 1)
    ]

    assert release.receipt["files"]["guarded_cells"] == guarded


def drop(rel: Path) -> None:
    (rel / "synthetic_1" / "part-00002.parquet").unlink()


def swap(rel: Path) -> None:
    one, two = (rel / "synthetic_1" / f"part-0000{part}.parquet" for part in (2, 3))
    one.rename(rel / "aside")
    two.rename(one)
    (rel / "aside").rename(two)


def more(rel: Path) -> None:
    path = rel / "synthetic_1" / "part-00003.parquet"
    path.with_name("part-00004.parquet").write_bytes(path.read_bytes())


def wrong_csv(rel: Path) -> None:
    path = rel / "synthetic_2_csv" / "part-00001.csv"
    path.write_bytes(path.read_bytes().replace(b"f,", b"m,", 1))


def outside(rel: Path) -> None:
    path = rel / "synthetic_2" / "part-00001.parquet"
    pl.read_parquet(path).with_columns(pl.lit(200).alias("age")).write_parquet(path)


@pytest.mark.parametrize("change", [drop, swap, more, wrong_csv, outside])
def test_a_changed_part_is_refused_whoever_recomputed_the_digests(
    rel: Path, change: Callable[[Path], None]
) -> None:
    change(rel)
    with pytest.raises(ModelRejected):
        verify(rel)
    reseal(rel)
    with pytest.raises(ModelRejected):
        verify(rel)


@pytest.mark.parametrize("size", [0, -1, True, "300", 1.5, None, 301, 10**6])
def test_a_certificate_with_another_part_size_is_refused(rel: Path, size: Any) -> None:
    edit(rel, "ledger.json", lambda document: document["files"].update(part_rows=size))

    with pytest.raises(ModelRejected):
        verify(rel)


def test_an_impossible_number_of_parts_is_refused_before_it_is_counted(rel: Path) -> None:
    def change(document: Any) -> None:
        document["rows"], document["files"]["part_rows"] = [10**15, 10**15], 1

    edit(rel, "ledger.json", change)

    for reader in (verify, load):
        with pytest.raises(ModelRejected):
            reader(rel)


def test_a_part_is_checked_when_its_set_is_read(rel: Path) -> None:
    release = load(rel)
    path = rel / "synthetic_2" / "part-00003.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")

    assert release.sets[0].height == ROWS
    for read in (lambda: release.sets[1], lambda: release.scan(set=2)):
        with pytest.raises(ModelRejected):
            read()


def test_parts_of_other_columns_are_refused(rel: Path) -> None:
    path = rel / "synthetic_1" / "part-00001.parquet"
    pl.read_parquet(path).rename({"age": "old"}).write_parquet(path)
    reseal(rel)

    with pytest.raises(ModelRejected):
        load(rel).sets[0]
