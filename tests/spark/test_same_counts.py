"""Equal counts and an equal fingerprint, however rows are divided, tried again or brought together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.context import Hashed
from gibbous.core.moment import moment
from gibbous.core.recode import Groups
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.spark import estimate as sizes
from gibbous.disintegrate.spark.engine import SparkEngine
from tests.spark import tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("partitions", [1, 7, 24])
@pytest.mark.parametrize(("seed", "rows"), [(1, 3_000), (2, 2_000), (3, 1_000)])
def test_j3_j8_thirty_random_schemas_count_as_numpy_does(
    session: Any, tmp_path: Path, seed: int, rows: int, partitions: int
) -> None:
    schema, frame, contexts = tables.side_by_side(10, rows, np.random.default_rng(seed))
    path = tmp_path / "table.parquet"
    frame.write_parquet(path)
    engine = SparkEngine(session=session)

    mark = engine.scan(
        session.read.parquet(str(path)).repartition(partitions), schema, key=tables.KEY
    )
    found = tables.digest(engine.tally(contexts))
    engine.close()

    assert (mark, found) == tables.truth(frame, schema, contexts)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_j3_partial_counts_added_by_executors_are_the_same(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adaptive: str
) -> None:
    schema, frame, contexts = tables.side_by_side(3, 4_000, np.random.default_rng(4))
    source = tables.parts_of(frame, tmp_path / "parts", 3)
    monkeypatch.setattr(sizes, "DIRECT", 0)  # the driver adds up nothing itself
    monkeypatch.setattr(sizes, "RESULT", 1 << 27)  # and takes several passes
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    engine = SparkEngine(session=session, partitions=5)

    mark = engine.scan(source, schema, key=tables.KEY)
    found = tables.digest(engine.tally(contexts))
    planned = sizes.passes(contexts, frame.height, 5)
    engine.close()
    session.conf.set("spark.sql.adaptive.enabled", "true")

    assert (mark, found) == tables.truth(frame, schema, contexts)
    assert all(one.shuffled for one in planned)


def test_a_csv_folder_a_table_and_a_view_are_the_same_data_set(
    session: Any, tmp_path: Path
) -> None:
    schema, frame, contexts = tables.side_by_side(2, 500, np.random.default_rng(5))
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(2):
        frame.slice(number * 250, 250).write_csv(folder / f"{number}.csv")
    frame.write_parquet(tmp_path / "table.parquet")
    odd = tmp_path / "a name, 50% [1] {of} many"
    odd.mkdir()
    frame.write_parquet(odd / "the rows.parquet")
    session.read.parquet(str(tmp_path / "table.parquet")).createOrReplaceTempView("people_view")
    engine, found = SparkEngine(session=session), []

    for source in (str(folder), "people_view", str(tmp_path / "*.parquet"), str(odd)):
        mark = engine.scan(source, schema, key=tables.KEY)
        found.append((mark, tables.digest(engine.tally(contexts))))
    engine.close()

    assert set(found) == {tables.truth(frame, schema, contexts)}


def test_a_person_keeps_at_most_the_declared_rows_whatever_the_partitions(
    session: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(6)
    frame = pl.DataFrame({"who": rng.integers(0, 300, 3_000), "x": rng.integers(0, 5, 3_000)})
    frame.write_parquet(tmp_path / "table.parquet")
    schema = Schema(
        (Column("x", "ordinal", levels=tuple(range(5))),), unit=Unit("person", "who", max_rows=4)
    )
    contexts = [tables.context(schema, [0], [])]
    expected = int(np.minimum(np.bincount(frame["who"].to_numpy()), 4).sum())
    found, marks = set(), set()

    for partitions in (1, 3):
        engine = SparkEngine(session=session, partitions=partitions)
        marks.add(engine.scan(str(tmp_path / "table.parquet"), schema, key=tables.KEY))
        (counts,) = engine.tally(contexts)
        found.add(tuple(counts.cells.values.ravel().tolist()))
        engine.close()

    assert {sum(one) for one in found} == {expected}
    assert len(found) == 1  # the same rows of each person, too
    assert marks == {tables.truth(frame, schema, [])[0]}


def test_sums_recoded_views_and_shares_agree_with_numpy(session: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    frame = pl.DataFrame({"g": rng.integers(0, 6, 2_000), "v": rng.integers(0, 100, 2_000)})
    source = tables.parts_of(frame, tmp_path / "parts", 3)
    schema = Schema(
        (
            Column("g", "ordinal", levels=tuple(range(6))),
            Column("v", "numeric", edges=(0.0, 50.0, 100.0), integer=True),
        )
    )
    moments = [moment(schema, tables.context(schema, [0], []), (1, 1))]
    changes = {0: Groups(np.array([0, 0, 0, 1, 1, 1]))}
    truth, engine = LocalEngine(), SparkEngine(session=session)
    truth.scan(frame, schema, key=tables.KEY, numbers=[1])
    engine.scan(source, schema, key=tables.KEY, numbers=[1])
    coarse = engine.recoded(changes)
    margin = [tables.context(coarse._schema, [0], [1], Hashed(4))]
    plain = [tables.context(schema, [0, 1], [])]

    sums = tables.digest(engine.sums(moments))
    merged = tables.digest(coarse.tally(margin))
    shares = engine.split(2, lambda count: np.arange(7, 7 + count, dtype=np.uint64))
    halves = [one.tally(plain)[0].cells.values for one in shares]
    engine.close()

    assert sums == tables.digest(truth.sums(moments))
    assert merged == tables.digest(truth.recoded(changes).tally(margin))
    assert (sum(halves) == truth.tally(plain)[0].cells.values).all()
    assert all(900 < int(half.sum()) < 1_100 for half in halves)  # 4.5 standard deviations
