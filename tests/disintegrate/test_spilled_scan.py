"""Scans of more rows than memory should hold: the same codes, marks and faults, in little memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import GibbousError, ResourceLimit, SchemaMismatch
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate import persons
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.slabs import LEAST, Slabs
from gibbous.read import parquet
from tests.disintegrate.brute import as_dict, context_of
from tests.disintegrate.test_scan import KEY, SCHEMA, people

PERSONS = Schema(SCHEMA.columns, Unit("person", "who", 3))


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "SLICE", 700)


def far(folder: Path, *, threads: int = 2) -> LocalEngine:
    """An engine that keeps all codes on disk, in slabs of LEAST rows."""
    return LocalEngine(threads=threads, scratch=folder, held=0, slab=1)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("threads", [1, 2])
def test_a_scan_to_disk_has_the_mark_and_the_counts_of_one_in_memory(
    threads: int, tmp_path: Path, scratch: Path
) -> None:
    frame = people(5_000)
    frame.write_parquet(tmp_path / "a.parquet")
    contexts = [context_of(SCHEMA, (0,), (1, 2)), context_of(SCHEMA, (1,))]
    near = LocalEngine()
    truth = near.scan(frame, SCHEMA, key=KEY)

    for source in (tmp_path / "a.parquet", frame):
        held = far(scratch, threads=threads)
        assert held.scan(source, SCHEMA, key=KEY) == truth
        codes = held._look()
        assert isinstance(codes, Slabs)
        assert [p.rows for p in codes.places] == [LEAST] * 4 + [5_000 - 4 * LEAST]
        assert [as_dict(c) for c in held.tally(contexts)] == [
            as_dict(c) for c in near.tally(contexts)
        ]
        held.close()
    assert not list(scratch.iterdir())


def test_numbers_are_kept_on_disk_beside_the_codes(tmp_path: Path, scratch: Path) -> None:
    frame = people(3_000)
    held, near = far(scratch), LocalEngine()

    for engine in (held, near):
        engine.scan(frame, SCHEMA, key=KEY, numbers=(1,))

    kept = np.concatenate([c.number(1).copy() for c in held._look().read()])  # type: ignore[union-attr]
    assert np.array_equal(kept, near._look().number(1))


def test_faults_are_those_of_a_scan_in_memory_and_the_disk_is_given_back(
    tmp_path: Path, scratch: Path
) -> None:
    frame = people(3_000).with_columns(
        place=pl.when(pl.int_range(3_000) == 2_345).then(pl.lit("MARKER1573")).otherwise("place")
    )
    faults = []

    for engine in (far(scratch), LocalEngine()):
        with pytest.raises(SchemaMismatch) as caught:
            engine.scan(frame, SCHEMA, key=KEY)
        faults.append(str(caught.value))
        with pytest.raises(GibbousError, match="Call scan first"):
            engine.tally([])

    assert faults[0] == faults[1]
    assert "data row 2,346" in faults[0]
    assert "MARKER1573" not in faults[0]
    assert not _open_files(scratch)
    held = far(scratch)
    held.scan(people(3_000), SCHEMA, key=KEY)
    assert len(_open_files(scratch)) == 1  # it would be seen
    held.close()


def _open_files(folder: Path) -> list[str]:
    """Files below a folder that this process holds open, nameless ones included."""
    held = []
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # another thread may close one meanwhile
            held.append(os.readlink(f"/proc/self/fd/{handle}"))
    return [name for name in held if name.startswith(str(folder.resolve()))]


def test_a_full_disk_is_found_before_a_row_is_encoded(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = os.statvfs(scratch)
    few = os.statvfs_result((*facts[:4], 1, *facts[5:]))  # f_bavail
    monkeypatch.setattr(os, "fstatvfs", lambda _: few)
    monkeypatch.setattr(
        "gibbous.encode.encode.SliceEncoder.encode", lambda *_: pytest.fail("encoded")
    )
    held = far(scratch)

    with pytest.raises(ResourceLimit) as caught:
        held.scan(people(5_000), SCHEMA, key=KEY)

    assert caught.value.code == "GB10-DISKFULL"


IDENTIFIERS = {
    "text": lambda n: pl.Series([f"person {i}" for i in n]),
    "dictionary": lambda n: pl.Series([f"person {i}" for i in n]).cast(pl.Categorical),
    "whole": lambda n: pl.Series(n, dtype=pl.Int64) - 50,
    "unsigned": lambda n: pl.Series([2**64 - 1 - i for i in n], dtype=pl.UInt64),
    "float": lambda n: pl.Series([0.0 if i else -0.0 for i in n]) + pl.Series(n),
    "day": lambda n: pl.Series(n, dtype=pl.Int32).cast(pl.Date),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
@pytest.mark.parametrize("ranges", [1, 1 << 20], ids=["many ranges", "one range"])
def test_c14_a_person_has_at_most_the_declared_rows_on_disk_and_else_keeps_all(
    kind: str, ranges: int, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persons, "RANGE", max(ranges, 100))
    rng = np.random.default_rng(1)
    who = rng.permutation(np.repeat(np.arange(1_000), rng.integers(1, 9, 1_000)))
    rows = len(who)
    schema = Schema(
        (Column("n", "numeric", edges=tuple(range(1_001)), integer=True),), PERSONS.unit
    )
    frame = pl.DataFrame({"n": who, "who": IDENTIFIERS[kind](who.tolist())})
    frame.write_parquet(tmp_path / "a.parquet")
    held = far(scratch)

    held.scan(tmp_path / "a.parquet", schema, key=KEY)

    got = held.tally([context_of(schema, (0,))])[0].cells.values.ravel()
    assert np.array_equal(got, np.minimum(np.bincount(who, minlength=1_000), 3))
    held.close()
    assert rows > got.sum()
    assert not list(scratch.iterdir())


def test_rows_of_persons_with_few_rows_are_not_touched(scratch: Path) -> None:
    frame = people(3_000).with_columns(who=pl.int_range(3_000) // 3)
    held, near = far(scratch), LocalEngine()

    for engine in (held, near):
        engine.scan(frame, PERSONS, key=KEY)

    kept = np.concatenate([c.values.copy() for c in held._look().read()])  # type: ignore[union-attr]
    assert np.array_equal(kept, near._look().values)


def test_numbers_stay_with_their_rows_where_others_are_dropped(scratch: Path) -> None:
    schema = Schema(
        (Column("n", "numeric", edges=(0, 2_500, 5_000), integer=True),), Unit("person", "who", 1)
    )
    frame = pl.DataFrame({"n": pl.int_range(5_000, eager=True), "who": [0, 1] * 2_500})
    held = far(scratch)

    held.scan(frame, schema, key=KEY, numbers=(0,))

    slabs = held._look().read()  # type: ignore[union-attr]
    kept = [(c.number(0).copy(), c.values[:, 0].copy()) for c in slabs]
    numbers = np.concatenate([n for n, _ in kept])
    assert sorted(numbers % 2) == [0, 1]
    assert np.array_equal(np.concatenate([c for _, c in kept]), numbers >= 2_500)


def test_one_person_with_nearly_all_rows_is_thinned_out_on_the_way(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persons, "RANGE", 500)
    who = [0] * 9_000 + list(range(1, 1_001))
    schema = Schema((Column("n", "nominal", levels=(0, 1)),), Unit("person", "who", 7))
    held = far(scratch)

    held.scan(pl.DataFrame({"n": [int(w > 0) for w in who], "who": who}), schema, key=KEY)

    assert held.tally([context_of(schema, (0,))])[0].cells.values.ravel().tolist() == [7, 1_000]


@pytest.mark.parametrize("missing", [pl.Series([None], dtype=pl.Int64), pl.Series([float("nan")])])
def test_a_row_without_a_person_is_refused_as_in_memory(missing: pl.Series, scratch: Path) -> None:
    who = pl.concat([pl.Series(range(2_000), dtype=missing.dtype), missing])
    frame = people(2_001).with_columns(who=who)
    told = []

    for engine in (far(scratch), LocalEngine()):
        with pytest.raises(SchemaMismatch) as caught:
            engine.scan(frame, PERSONS, key=KEY)
        told.append(str(caught.value))

    assert told[0] == told[1]
    assert "missing, first in data row 2,001" in told[0]


@pytest.mark.statistical
@pytest.mark.parametrize("thinned", [False, True])
def test_which_rows_of_a_person_stay_is_uniform(thinned: bool) -> None:
    # 2 of 5 rows, 4,000 persons: each row stays with share 0.4, each pair with 1/10.
    # Chi-squared of 10 pairs, 9 degrees of freedom: above 33.7 with probability 1e-4.
    rng = np.random.default_rng(11)

    def words(count: int) -> np.ndarray:
        return rng.integers(0, 1 << 64, count, dtype=np.uint64)

    def distance(dice: np.ndarray | None) -> float:
        who = np.repeat(np.arange(4_000, dtype=np.uint64), 5)[None]
        stays = np.ones(20_000, dtype=bool)
        stays[persons.surplus(who, 2, words if dice is None else dice)] = False
        assert (stays.reshape(-1, 5).sum(axis=1) == 2).all()
        counts = np.bincount(stays.reshape(-1, 5) @ (1 << np.arange(5)), minlength=32)
        return float((((counts - 400) ** 2)[counts > 0] / 400).sum())

    fair = distance(words(20_000) if thinned else None)
    loaded = distance(words(20_000) // (1 + np.arange(20_000, dtype=np.uint64) % 5 // 4))

    assert fair < 33.7 < loaded  # the last row of each person stays a little more often


def test_texts_are_told_apart_by_two_words_and_numbers_by_one() -> None:
    seeds = np.array([1, 2], dtype=np.uint64)
    texts = persons._words_of(pl.Series([f"p{i}" for i in range(5_000)]), seeds)
    numbers = persons._words_of(pl.Series(range(5_000)), seeds)

    assert texts.shape == (2, 5_000)
    assert numbers.shape == (1, 5_000)
    for lane in (*texts, *numbers):
        assert len(np.unique(lane)) == 5_000
    assert (texts[0] != texts[1]).all()
    assert not np.array_equal(texts, persons._words_of(pl.Series(["p0"]), seeds + np.uint64(1)))


MEMORY = """
import resource, sys
import numpy as np, polars as pl, pyarrow.parquet as pq
from pathlib import Path
from gibbous.core.context import Context
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
folder, rows, columns = Path(sys.argv[1]), 5_000_000, 13
names = [f"c{i}" for i in range(columns)]
schema = Schema(tuple(Column(n, "ordinal", levels=tuple(range(20))) for n in names))
def run(n):
    engine = LocalEngine(threads=2, scratch=folder, held=1 << 20, slab=4 << 20)
    engine.scan(folder / f"{n}.parquet", schema, key=bytes(32))
    tables = engine.tally([Context((a,), (b,), (20,), (20,)) for a in range(13) for b in range(a)])
    assert all(t.cells.values.sum() == n for t in tables)
    engine.close()
run(300_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(rows)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_n1_five_million_rows_take_hardly_more_memory_than_a_few(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(1)
    for rows in (300_000, 5_000_000):
        writer = None
        for start in range(0, rows, 1_000_000):
            count = min(rows - start, 1_000_000)
            part = pl.DataFrame(
                {f"c{i}": rng.integers(0, 20, count, dtype=np.uint8) for i in range(13)}
            ).to_arrow()
            writer = writer or pq.ParquetWriter(tmp_path / f"{rows}.parquet", part.schema)
            writer.write_table(part)
        assert writer is not None
        writer.close()

    shown = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=True
    )

    # Codes alone are 65 MB, the decoded columns as much again; kilobytes are told, 25,000 to 29,000.
    assert int(shown.stdout) < 48_000
