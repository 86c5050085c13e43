"""Codes on disk count as codes in memory do, bit for bit; the file has no name and is given back."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed, MinHash
from gibbous.core.errors import EngineFailure, ResourceLimit
from gibbous.core.moment import moment
from gibbous.core.recode import Edges, Groups
from gibbous.core.request import Performance
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.disintegrate import count_routes, passes, plain, schedule, spill
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.slabs import Slabs, SlabWriter
from gibbous.disintegrate.spill import SpillFile
from gibbous.disintegrate.text_records import TextEngine
from gibbous.engines import engine_of as engine_of_run
from tests.disintegrate.brute import as_dict, codes_of, context_of, count, schema_of

ROWS = 7_300
SLAB_ROWS = 1_024


def spilled(codes: Codes, folder: Path, *, rows: int = SLAB_ROWS) -> Slabs:
    """The same codes on disk, `rows` rows a slab, handed over in pieces of another size."""
    places = [place for place, _ in codes.numbers]
    width = codes.values.shape[1] * codes.schema.code_dtype().itemsize + 8 * len(places)
    writer = SlabWriter(codes.schema, places, folder, slab=rows * width)
    for start in range(0, codes.rows, 777):
        part = codes.part(slice(start, start + 777))
        writer.add(part.by_column, dict(part.numbers))
    return writer.finish()


def engine_of(codes: Codes, folder: Path, *, threads: int = 2) -> LocalEngine:
    """A local engine that holds these codes on disk."""
    made = LocalEngine(threads=threads, scratch=folder)
    made.take(spilled(codes, folder))
    return made


def contexts_of(schema: Schema) -> dict[str, Context]:
    """One context of each way of counting; sizes are those of `wide`."""
    return {
        "small": context_of(schema, (0,), (4,)),
        "small, seen": context_of(schema, (4,), (0,), seen=True),
        "dense": context_of(schema, (1,), (2,)),
        "dense, seen": context_of(schema, (2,), (1,), seen=True),
        "hashed": context_of(schema, (0,), (1, 2, 3), Hashed(256)),
        "minhash": context_of(schema, (4,), (1, 2, 3), MinHash(3, 128)),
        "sort": context_of(schema, (0,), (1, 2, 3), seen=True),
        "sorted hashes": context_of(schema, (0,), (1, 2, 3), Hashed(1 << 40), seen=True),
        "pairs": context_of(schema, (5, 6, 7, 8), (9, 10, 11, 12), seen=True),
    }


def wide(*, sizes: tuple[int, ...] = (5, 90, 80, 70, 4)) -> Schema:
    """Five columns, and eight of 300 levels so that keys x levels passes 63 bits."""
    return schema_of([*sizes, *[300] * 8])


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, SLAB_ROWS, ROWS])
def test_every_route_counts_codes_on_disk_as_a_dictionary_does(
    threads: int, rows: int, tmp_path: Path
) -> None:
    schema = wide()
    codes = codes_of(schema, rows, np.random.default_rng(1))
    contexts = list(contexts_of(schema).values())
    held = engine_of(codes, tmp_path, threads=threads)

    got = held.tally(contexts)

    for context, one in zip(contexts, got, strict=True):
        assert as_dict(one) == count(context, codes)


def test_the_routes_of_the_test_above_are_the_ones_it_names() -> None:
    schema = wide()

    routes = [count_routes.choose_route(c, ROWS, 1 << 30) for c in contexts_of(schema).values()]

    assert routes == ["small"] * 2 + ["dense"] * 4 + ["sort"] * 2 + ["pairs"]


@pytest.mark.parametrize("top", [200, 300, 70_000], ids=["uint8", "uint16", "uint32"])
def test_each_type_of_code_goes_through_the_disk(top: int, tmp_path: Path) -> None:
    edges = {n: tuple(float(e) for e in range(n + 1)) for n in (7, 40, top)}
    schema = Schema(
        tuple(Column(f"c{i}", "numeric", edges=edges[n]) for i, n in enumerate((7, top, 40)))
    )
    codes = codes_of(schema, 3_000, np.random.default_rng(2))
    contexts = [
        context_of(schema, (1,), (0,)),
        context_of(schema, (0,), (1, 2), Hashed(64)),
        context_of(schema, (1, 0), (2,), seen=True),
    ]

    got = engine_of(codes, tmp_path).tally(contexts)

    assert codes.values.dtype.itemsize == {200: 1, 300: 2, 70_000: 4}[top]
    assert [as_dict(c) for c in got] == [count(c, codes) for c in contexts]


@pytest.mark.slow
def test_a_thousand_columns_and_pairs_of_them_are_counted_in_one_pass(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    schema = schema_of([3] * 1_000)
    codes = codes_of(schema, 3_000, rng)
    pairs = [rng.choice(1_000, 2, replace=False).tolist() for _ in range(200)]
    contexts = [context_of(schema, (i,)) for i in range(1_000)]
    contexts += [context_of(schema, (a,), (b,)) for a, b in pairs]

    got = engine_of(codes, tmp_path).tally(contexts)

    for context, one in zip(contexts, got, strict=True):
        cells = (
            codes.values[:, context.columns].astype(int)
            @ (3 ** np.arange(len(context.columns)))[::-1]
        )
        assert np.array_equal(one.cells.values.ravel(), np.bincount(cells, minlength=context.cells))


def test_slabs_of_many_rows_are_divided_among_threads_and_covered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schema = schema_of([3, 7, 4, 90, 100])
    codes = codes_of(schema, 40_000, np.random.default_rng(3))
    monkeypatch.setattr(count_routes, "SPLIT", 1_000)
    monkeypatch.setattr("gibbous.disintegrate.schedule.COVERED", 1_000)
    contexts = [context_of(schema, (a,), (b,)) for a in range(3) for b in range(3) if a != b]
    contexts += [context_of(schema, (3,), (4,)), context_of(schema, (2,), (3, 4), Hashed(64))]
    held = LocalEngine(threads=3)
    held.take(spilled(codes, tmp_path, rows=17_000))

    for wanted in (contexts, contexts[-1:], contexts[-2:-1]):  # with one table, rows are divided
        got = held.tally(wanted)
        truth = plain.counts(codes, wanted)

        for one, two in zip(got, truth, strict=True):
            assert np.array_equal(one.cells.values, two.cells.values)


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    schema = schema_of([5, 9, 33, 20])
    codes = codes_of(schema, 4_000, np.random.default_rng(4))
    held = spilled(codes, tmp_path)
    got: list[int] = []
    read = SpillFile.get

    def counting(self: SpillFile, start: int, array: np.ndarray) -> None:
        got.append(array.nbytes)
        read(self, start, array)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpillFile, "get", counting)
        parts = [(c.values[:, 1].copy(), c.values[:, 2].copy()) for c in held.read([2, 1, 1])]

    assert sum(got) == 2 * codes.rows
    assert np.array_equal(np.concatenate([a for a, _ in parts]), codes.values[:, 1])
    assert np.array_equal(np.concatenate([b for _, b in parts]), codes.values[:, 2])


def numbered(rows: int = 5_000) -> Codes:
    """Two numeric columns with numbers, one with missing values, and one of levels."""
    rng = np.random.default_rng(5)
    schema = Schema(
        (
            Column("x", "numeric", edges=(0.0, 10.0, 40.0, 100.0), missing=True),
            Column("y", "numeric", edges=(-5.0, 0.0, 5.0)),
            Column("z", "nominal", levels=("a", "b", "c")),
        )
    )
    x, y = rng.uniform(0, 100, rows), rng.uniform(-5, 5, rows)
    bins = np.where(rng.random(rows) < 0.1, 3, np.searchsorted([10, 40], x, side="right"))
    values = np.stack([bins, (y >= 0).astype(int), rng.integers(0, 3, rows)]).astype(np.uint8)
    return Codes(schema, values.T, secret=True, numbers=((0, x), (1, y)))


def test_sums_recoded_and_split_of_codes_on_disk_are_those_of_memory(tmp_path: Path) -> None:
    codes = numbered()
    held, truth = engine_of(codes, tmp_path), LocalEngine.from_codes(codes)
    by_z = context_of(codes.schema, (2,))
    moments = [moment(codes.schema, by_z, factors) for factors in ((0,), (0, 1), (1, 1))]
    changes = {2: Groups(np.array([0, 1, 1])), 0: Edges((0.0, 50.0, 100.0))}
    words = np.random.default_rng(6).integers(0, 1 << 63, codes.rows).astype(np.uint64)

    for one, two in zip(held.sums(moments), truth.sums(moments), strict=True):
        assert np.array_equal(one.cells.values, two.cells.values)
    coarse, known = held.recoded(changes), truth.recoded(changes)
    twice = coarse.recoded({2: Groups(np.array([0, 0]))})
    context = context_of(coarse._look().schema, (0,), (2,))
    assert as_dict(coarse.tally([context])[0]) == as_dict(known.tally([context])[0])
    all_in_one = context_of(twice._look().schema, (2,))
    assert as_dict(twice.tally([all_in_one])[0]) == {(0, 0): codes.rows}
    parts, halves = held.split(2, _dealer(words)), truth.split(2, _dealer(words))
    for part, half in zip(parts, halves, strict=True):
        assert as_dict(part.tally([by_z])[0]) == as_dict(half.tally([by_z])[0])
        assert np.array_equal(
            part.sums(moments)[1].cells.values, half.sums(moments)[1].cells.values
        )
    third = coarse.split(3, _dealer(words))[1]
    assert as_dict(third.tally([context])[0]) == as_dict(
        known.split(3, _dealer(words))[1].tally([context])[0]
    )


def _dealer(words: np.ndarray):  # type: ignore[no-untyped-def]
    """Words in turn, so that rows get the same ones however many are asked for at once."""
    given = 0

    def deal(count: int) -> np.ndarray:
        nonlocal given
        given += count
        return words[given - count : given]

    return deal


def test_a_slab_of_few_columns_is_cut_by_rows(tmp_path: Path) -> None:
    writer = SlabWriter(schema_of([3]), (), tmp_path, slab=1 << 40)

    assert writer.slab_rows == 1 << 21


def test_merging_lists_of_cells_adds_what_is_in_both() -> None:
    rng = np.random.default_rng(7)
    for left, right in ((0, 0), (0, 5), (5, 0), (40, 60), (200, 3)):
        parts, truth = [], {}
        for size in (left, right):
            cells = np.unique(rng.integers(0, 12, (size, 2)).astype(np.uint64), axis=0)
            values = rng.integers(1, 1 << 60, len(cells))
            parts.append(Sparse(cells[:, 0].copy(), cells[:, 1].copy(), values))
            for (key, level), value in zip(cells.tolist(), values.tolist(), strict=True):
                truth[key, level] = truth.get((key, level), 0) + value

        got = passes.added(*parts)

        found = list(zip(got.keys.tolist(), got.levels.tolist(), strict=True))
        assert found == sorted(truth)
        assert got.values.tolist() == [truth[cell] for cell in found]


def test_lists_of_cells_are_together_less_than_twice_the_longest() -> None:
    rng = np.random.default_rng(8)
    schema = schema_of([60_000])
    context = context_of(schema, (0,), seen=True)
    found = passes.Gathering([context])

    for _ in range(40):
        cells = np.unique(rng.integers(0, 60_000, rng.integers(1, 900)).astype(np.uint64))
        found.add(0, Sparse(np.zeros_like(cells), cells, np.ones(len(cells), dtype=np.int64)))

        lengths = [len(run.values) for run in found._runs[0]]
        assert sum(lengths) < 2 * lengths[0]


def test_what_sorting_needs_on_disk_is_refused_before_it_starts(tmp_path: Path) -> None:
    schema = schema_of([90, 80, 70])
    codes = codes_of(schema, ROWS, np.random.default_rng(1))
    context = context_of(schema, (0,), (1, 2), seen=True)
    tight = LocalEngine(memory_limit=100_000, scratch=tmp_path)
    tight.take(spilled(codes, tmp_path))

    with pytest.raises(ResourceLimit) as caught:
        tight.tally([context])

    assert caught.value.code == "GB10-MEMORY"


@pytest.mark.parametrize("rows", [100_000, 400_000])
def test_the_estimate_of_codes_on_disk_is_an_upper_bound(rows: int, tmp_path: Path) -> None:
    import tracemalloc

    schema = schema_of([10, 90, 80, 200, 7, 90])
    codes = codes_of(schema, rows, np.random.default_rng(1))
    contexts = [
        context_of(schema, (0,), (1, 2, 3), seen=True),
        context_of(schema, (0,), (1, 2)),
        context_of(schema, (4,), (1, 2, 5), Hashed(1 << 16)),
    ]
    held = LocalEngine(threads=2, scratch=tmp_path)
    held.take(spilled(codes, tmp_path, rows=20_000))
    held.tally(contexts)

    tracemalloc.start()
    kept = held.tally(contexts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(kept) == 3
    assert peak <= held.estimate(contexts, rows) <= 4 * peak + (8 << 20)


def test_progress_of_slabs_grows_to_its_end_and_tells_no_number_of_rows(tmp_path: Path) -> None:
    schema = wide()
    codes = codes_of(schema, ROWS, np.random.default_rng(1))
    told: list[tuple[str, int, int]] = []

    engine_of(codes, tmp_path).tally(
        list(contexts_of(schema).values()), progress=lambda *what: told.append(what)
    )

    shares = [done for stage, done, total in told if stage == "count" and total == 100]
    assert shares[0] == 0
    assert shares[-1] == 100
    assert len(shares) > ROWS // SLAB_ROWS
    assert shares == sorted(set(shares))


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[Path]:
    """A scratch folder in which nothing is ever seen."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    yield folder
    assert not list(folder.iterdir())


def test_m2_codes_on_disk_have_no_name_and_are_for_this_user_alone(listing: Path) -> None:
    codes = codes_of(wide(), ROWS, np.random.default_rng(1))

    held = spilled(codes, listing)

    facts = os.fstat(held._file._handle)
    assert facts.st_nlink == 0
    assert facts.st_mode & 0o777 == 0o600
    assert facts.st_size >= codes.values.nbytes
    assert not list(listing.iterdir())


def test_where_nameless_files_are_not_known_the_name_is_gone_before_a_byte_is_written(
    listing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    seen: list[list[str]] = []
    write = os.pwrite

    def watching(handle: int, data: memoryview, start: int) -> int:
        seen.append([path.name for path in listing.iterdir()])
        return write(handle, data, start)

    monkeypatch.setattr(os, "pwrite", watching)
    file = SpillFile(listing)
    file.append(np.arange(5))

    assert seen == [[]]
    assert os.fstat(file._handle).st_nlink == 0
    assert os.fstat(file._handle).st_mode & 0o777 == 0o600


def test_f4_closing_gives_the_disk_back_and_nothing_is_counted_afterwards(listing: Path) -> None:
    codes = codes_of(wide(), ROWS, np.random.default_rng(1))
    held = engine_of(codes, listing)
    other = held.recoded({0: Groups(np.array([0, 0, 1, 1, 1]))})
    context = context_of(codes.schema, (1,))
    file = held._look()._file  # type: ignore[union-attr]
    twin = os.dup(file._handle)

    held.close()

    with pytest.raises(EngineFailure, match="closed"):
        held.tally([context])
    assert sum(as_dict(other.tally([context])[0]).values()) == ROWS  # it holds the file, too
    other.close()
    assert file.closed
    assert os.fstat(twin).st_size == 0  # emptied also for a process that forked meanwhile
    os.close(twin)


def test_nothing_on_disk_is_printed_or_pickled(tmp_path: Path) -> None:
    held = spilled(codes_of(wide(), ROWS, np.random.default_rng(1)), tmp_path)

    for thing in (held, held._file):
        assert str(ROWS) not in repr(thing)
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def test_n1_a_full_disk_is_refused_before_and_while_writing(
    listing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/path")

    with pytest.raises(ResourceLimit) as early:
        SpillFile(listing, 1 << 62)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(ResourceLimit) as late:
        spilled(codes_of(wide(), ROWS, np.random.default_rng(1)), listing)

    for caught in (early, late):
        assert caught.value.code == "GB10-DISKFULL"
        assert "GIBBOUS_SCRATCH" in caught.value.render()
        assert "no budget was spent" in caught.value.render()
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_scratch_folder_that_cannot_be_used_is_refused_before_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(ResourceLimit, match=f"{name}.*not a folder"):
            LocalEngine(scratch=tmp_path / name)
        with pytest.raises(ResourceLimit, match=name):
            engine_of_run(Performance(scratch=tmp_path / name))
        with pytest.raises(ResourceLimit, match=name):
            TextEngine(scratch=tmp_path / name)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ResourceLimit, match="can be written"):
        LocalEngine(scratch=tmp_path)


def test_a_scratch_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceLimit) as caught:
        SpillFile(tmp_path / "nowhere")

    assert caught.value.code == "GB10-SCRATCH"
    assert "nowhere" in caught.value.render()
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_cut_is_an_error_and_never_a_wrong_count(tmp_path: Path) -> None:
    codes = codes_of(wide(), ROWS, np.random.default_rng(1))
    held = engine_of(codes, tmp_path)
    os.ftruncate(held._look()._file._handle, 10_000)  # type: ignore[union-attr]

    with pytest.raises(EngineFailure) as caught:
        held.tally([context_of(codes.schema, (1,))])

    assert caught.value.code == "GB11-SCRATCHLOST"


def test_the_scratch_folder_is_the_one_given_then_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "c"))
    monkeypatch.delenv("GIBBOUS_SCRATCH", raising=False)

    assert spill.scratch_folder() == tmp_path / "c"
    monkeypatch.setenv("GIBBOUS_SCRATCH", str(tmp_path / "b"))
    assert spill.scratch_folder() == tmp_path / "b"
    assert spill.scratch_folder(tmp_path / "a") == tmp_path / "a"


def test_an_interrupted_tally_leaves_no_thread_that_reads(tmp_path: Path) -> None:
    import threading

    codes = codes_of(wide(), ROWS, np.random.default_rng(1))
    held = engine_of(codes, tmp_path)

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "count" and done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        held.tally([contexts_of(codes.schema)["sort"]], progress=interrupt)

    assert not [t for t in threading.enumerate() if t.name.startswith("gibbous-read")]


def test_shares_within_a_part_of_the_rows_are_shares_of_all() -> None:
    told: list[int] = []
    tell = schedule.within(lambda stage, done, total: told.append(done), 50, 100, 200)

    for done in (0, 1, 50, 100):
        tell("count", done, 100)

    assert told == [37, 50]
