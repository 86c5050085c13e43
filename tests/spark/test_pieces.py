"""What runs on executors, called here without Spark: partial counts, persons, shares, and estimates."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from gibbous.core.context import Context, Hashed
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.tables import Counts
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.spark import estimate as sizes
from gibbous.disintegrate.spark import partial as tasks
from gibbous.disintegrate.spark import pieces, slabs
from gibbous.disintegrate.spark.encoding import EncodeJob, encoded
from gibbous.disintegrate.spark.slabs import bounded_rows, person_words
from gibbous.mechanisms.laplace import Laplace
from gibbous.read.fingerprint import root_of
from tests.disintegrate import brute
from tests.spark import tables

HUGE = (1 << 20, 1 << 20, 1 << 21, 1 << 10)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("buckets", [1, 5])
def test_pieces_of_three_partitions_add_up_to_the_counts_of_all(seed: int, buckets: int) -> None:
    rng = np.random.default_rng(seed)
    schema = brute.schema_of([3, 70, 500, 100])
    codes = brute.codes_of(schema, 3_000, rng)
    contexts = [
        brute.context_of(schema, (0,)),
        brute.context_of(schema, (1,), (0,)),
        brute.context_of(schema, (1,), (2, 3)),  # above DENSE cells
        brute.context_of(schema, (1,), (2, 3), seen=True),
        brute.context_of(schema, (0,), (1, 2), Hashed(1 << 40), seen=True),
        brute.context_of(schema, (0,), (1,), seen=True),
    ]

    found = [_by_parts(context, codes, buckets) for context in contexts]

    truth = LocalEngine.from_codes(codes).tally(contexts)
    assert tables.digest(tuple(found)) == tables.digest(truth)


def test_cells_beyond_63_bits_are_added_as_pairs() -> None:
    schema = brute.schema_of([2])
    codes = brute.codes_of(schema, 50, np.random.default_rng(3))
    context = Context((0,), (1, 2, 3, 4), (2,), HUGE, Hashed(1 << 63), "seen")
    keys = np.array([5, (1 << 63) - 1, 5], dtype=np.uint64)
    levels = np.array([1, 0, 1], dtype=np.uint64)
    one = pieces.Sparse(keys, levels, np.array([2, 3, 4]))
    assert codes.rows

    found: dict[int, pieces.Part] = {}
    for part, data in [*pieces.pieces(context, one, 3), *pieces.pieces(context, one, 3)]:
        found.setdefault(part, pieces.Part(context, part)).add(data)
    cells = pieces.counts(context, list(found.values())).cells

    assert isinstance(cells, pieces.Sparse)
    assert cells.keys.tolist() == [5, (1 << 63) - 1]
    assert cells.levels.tolist() == [1, 0]
    assert cells.values.tolist() == [12, 6]


def test_a_part_that_is_added_up_and_cut_again_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pieces, "_MOST", 50)
    rng = np.random.default_rng(4)
    schema = brute.schema_of([300, 300, 300])
    context = brute.context_of(schema, (0,), (1, 2), seen=True)
    part = pieces.Part(context, 0, _limit=100)
    again = pieces.Part(context, 0, _limit=100)
    codes = brute.codes_of(schema, 400, rng)

    for start in range(0, 400, 100):
        (count,) = LocalEngine.from_codes(codes.part(slice(start, start + 100))).tally([context])
        for _, data in pieces.pieces(context, count.cells, 1):
            part.add(data)
    for _, data in part.pieces():
        again.add(data)

    truth = LocalEngine.from_codes(codes).tally([context])
    assert tables.digest((pieces.counts(context, [again]),)) == tables.digest(truth)


def test_encoding_without_spark_gives_the_fingerprint_and_no_value() -> None:
    frame = pl.DataFrame({"x": ["a", "b", "Zaphod-SECRET-7"] * 5})
    schema = Schema((Column("x", "nominal", levels=("a", "b")),))
    job = EncodeJob(schema, root_of(tables.KEY), 7, (), slab=4)

    found = list(encoded(job, frame.to_arrow().to_batches()))

    words = "".join(str(batch.to_pydict()) for batch in found)
    assert "UNKNOWNLEVEL" in words
    assert "Zaphod" not in words
    assert all(batch.column("codes")[0].as_py() is None for batch in found)  # a slice with faults


def test_checks_see_any_changed_row_and_no_change_of_order() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, (3, 200)).astype(np.uint8)
    numbers = rng.uniform(size=(1, 200))
    order = rng.permutation(200)
    changed = codes.copy()
    changed[1, 17] ^= 1

    same = slabs.check_of(codes[:, order], numbers[:, order], 9)

    assert same == slabs.check_of(codes, numbers, 9)
    assert slabs.check_of(changed, numbers, 9) != same
    assert slabs.check_of(codes, numbers + 1e-9, 9) != same
    assert slabs.check_of(codes[:, :199], numbers[:, :199], 9) != same


def test_a_person_keeps_the_same_rows_in_any_order() -> None:
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 3, (2, 600)).astype(np.uint8)
    numbers, who = np.empty((0, 600)), rng.integers(0, 40, 600)
    people = person_words(pl.Series(who), b"root")
    order = rng.permutation(600)

    stay = bounded_rows(codes, numbers, people, 5, 11)
    again = order[bounded_rows(codes[:, order], numbers[:, order], people[:, order], 5, 11)]

    assert (np.bincount(who[stay]) == np.minimum(np.bincount(who), 5)).all()
    assert _rows(codes, who, stay) == _rows(codes, who, again)


@pytest.mark.statistical
def test_rows_of_a_person_are_kept_in_proportion() -> None:
    # 2,000 persons with 9 rows of one kind and 1 of another keep one row each: the other one is kept
    # Binomial(2000, 0.1) times. Level of the test: 2 x 1e-6 (4.9 standard deviations).
    codes = np.tile(np.array([0] * 9 + [1], dtype=np.uint8), 2_000)[None]
    people = person_words(pl.Series(np.repeat(np.arange(2_000), 10)), b"root")

    stay = bounded_rows(codes, np.empty((0, 20_000)), people, 1, 12)

    rare = int(codes[0, stay].sum())
    assert len(stay) == 2_000
    assert abs(rare - 200) < 4.9 * math.sqrt(
        2_000 * 0.1 * 0.9
    )  # by distinct rows it would be 1,000


@pytest.mark.statistical
def test_shares_are_drawn_without_regard_to_what_a_record_says() -> None:
    # Equal rows and different ones alike go to each of 4 shares with 1/4. Level: 8 x 2e-6.
    codes = np.concatenate([np.zeros(20_000, dtype=np.int64), np.arange(20_000)])[None].astype(
        np.uint16
    )

    share = slabs.parts_of(codes, np.empty((0, 40_000)), 4, key=b"k" * 32, task=0)

    for half in (share[:20_000], share[20_000:]):
        found = np.bincount(half.astype(np.int64), minlength=4)
        assert (abs(found - 5_000) < 4.8 * math.sqrt(20_000 * 3 / 16)).all()


def test_a_task_that_is_done_again_divides_its_records_in_the_same_way() -> None:
    rng = np.random.default_rng(8)
    codes, numbers = rng.integers(0, 9, (3, 500)).astype(np.uint8), rng.uniform(0, 1, (1, 500))
    order = rng.permutation(500)

    part = slabs.parts_of(codes, numbers, 5, key=b"k" * 32, task=3)
    again = slabs.parts_of(codes[:, order], numbers[:, order], 5, key=b"k" * 32, task=3)
    others = slabs.parts_of(codes, numbers, 5, key=b"k" * 32, task=4)

    assert (part[order] == again).all()
    assert (part != others).any()


def test_identifiers_are_told_apart_by_value_and_not_shown() -> None:
    text = person_words(pl.Series(["a", "b", "a", None]), b"root")
    whole = person_words(pl.Series([1, 2, 1]), b"root")

    assert (text[:, 0] == text[:, 2]).all()
    assert (text[:, 0] != text[:, 1]).all()
    assert (whole[:, 0] == whole[:, 2]).all()
    assert (whole[:, 0] != whole[:, 1]).all()
    assert (person_words(pl.Series([1]), b"other")[:, 0] != whole[:, 0]).all()


def test_passes_keep_tables_and_results_within_memory() -> None:
    schema = brute.schema_of([1_000, 1_000, 30])
    big = brute.context_of(schema, (0,), (1,))
    small = brute.context_of(schema, (2,))

    found = sizes.passes([big] * 20 + [small] * 100, rows=10**7, partitions=50)

    assert len(found) == 3  # 8 MB tables, 64 MB of them in a pass
    assert sorted(p for one in found for p in one.places) == list(range(120))
    assert all(one.shuffled for one in found[:2])
    assert not sizes.passes([small] * 100, rows=10**7, partitions=50)[0].shuffled


def test_the_estimate_grows_with_rows_and_says_what_a_person_costs() -> None:
    columns = brute.schema_of([4, 5]).columns
    rows = Schema(columns)
    people = Schema(columns, unit=Unit("person", "who", max_rows=3))
    plan = Laplace().plan(rows, None)

    small = sizes.estimate(plan, rows, 10**6, 16)
    large = sizes.estimate(plan, rows, 10**8, 16)
    cut = sizes.estimate(plan, people, 10**6, 16)

    assert large["codes"] == 100 * small["codes"] == 2 * 10**8
    assert small["shuffle"] == small["codes"]  # codes are divided anew; no count is
    assert cut["shuffle"] == 18 * 10**6  # two codes and two words of 64 bits a row
    assert small["count_passes"] == 1


def _by_parts(context: Context, codes: brute.Codes, buckets: int) -> Counts:
    """Counts of three partitions, each in its own task, added up by tasks and then here."""
    job = tasks.CountJob(codes.schema, (), (), (context,), (), buckets, 1 << 30, gather=500)
    moved: list[pa.RecordBatch] = []
    for start in range(0, codes.rows, 1_000):
        moved += tasks.counted(job, [_batch(codes.part(slice(start, start + 1_000)), 300)])
    parts: dict[int, pieces.Part] = {}
    for batch in tasks.added((context,), moved):
        place, number, data = (column[0].as_py() for column in batch.columns)
        if place == 0:
            parts.setdefault(number, pieces.Part(context, number)).add(data)
    return pieces.counts(context, list(parts.values()))


def _batch(codes: brute.Codes, most: int) -> pa.RecordBatch:
    blocks = [codes.by_column[:, s : s + most] for s in range(0, codes.rows, most)]
    return pa.RecordBatch.from_pydict(
        {
            "rows": [block.shape[1] for block in blocks],
            "sum": [0 for _ in blocks],
            "codes": [np.ascontiguousarray(block).tobytes() for block in blocks],
            "numbers": [b"" for _ in blocks],
        }
    )


def _rows(codes: np.ndarray, who: np.ndarray, stay: np.ndarray) -> list[tuple[int, ...]]:
    return sorted((int(who[i]), *codes[:, i].tolist()) for i in stay)
