"""Executors are killed, tasks fail, wait or are done twice: counts stay, and nothing raw comes out."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import (
    EngineFailure,
    GibbousError,
    OutputNotWritten,
    ResourceLimit,
    SchemaMismatch,
)
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.spark.engine import SparkEngine
from gibbous.disintegrate.spark.session import held
from gibbous.disintegrate.spark.workers import SparkWorkers
from tests.spark import breakage, tables
from tests.spark.breakage import MARKER
from tests.spark.conftest import Cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # sockets that PySpark leaves to the collector
]


@pytest.mark.parametrize("trouble", [breakage.fails_once, breakage.waits_once])
def test_j2_j3_a_task_that_fails_once_or_is_done_twice_changes_no_count(
    session: Any, tmp_path: Path, trouble: Any
) -> None:
    schema, frame, contexts = tables.side_by_side(2, 600, np.random.default_rng(11))
    source = session.read.parquet(tables.parts_of(frame, tmp_path / "parts", 3)).repartition(6)
    engine = SparkEngine(session=session)

    mark = engine.scan(breakage.through(source, trouble, source.schema), schema, key=tables.KEY)
    found = tables.digest(engine.tally(contexts))
    engine.close()

    assert (mark, found) == tables.truth(frame, schema, contexts)


def test_j1_an_executor_killed_while_codes_are_counted_changes_no_count(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    schema, frame, contexts = tables.side_by_side(2, 2_000, np.random.default_rng(12))
    source = session.read.parquet(tables.parts_of(frame, tmp_path / "parts", 4)).repartition(8)
    engine, killed = SparkEngine(session=session), []

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "count" and done < total and not killed:
            killed.extend(cluster.executors()[:1])
            os.kill(killed[0], signal.SIGKILL)

    mark = engine.scan(
        breakage.through(source, breakage.waits, source.schema), schema, key=tables.KEY
    )
    kill("count", 0, 100)  # the codes that it kept are lost, and encoded again
    found = tables.digest(engine.tally(contexts, progress=kill))
    engine.close()

    assert killed
    assert (mark, found) == tables.truth(frame, schema, contexts)


def test_a_source_that_reads_differently_each_time_is_refused(
    session: Any, cluster: Cluster
) -> None:
    schema = Schema((Column("x", "ordinal", levels=(0, 1, 2)),))
    source = session.range(0, 2_000, 1, 4).selectExpr("id as x")
    engine = SparkEngine(session=session)
    engine.scan(breakage.through(source, breakage.differs, "x long"), schema, key=tables.KEY)
    for pid in cluster.executors():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(EngineFailure, match="not those that it had read before") as caught:
        engine.tally([tables.context(schema, [0], [])])
    engine.close()

    assert caught.value.name == "UNSTABLE"


def test_items_are_written_once_whatever_the_partitions(session: Any, tmp_path: Path) -> None:
    found = {}
    for partitions in (1, 7, None):
        folder = tmp_path / f"set-{partitions}"
        folder.mkdir()
        told: list[int] = []
        with contextlib.closing(SparkWorkers(held(session), partitions=partitions)) as workers:
            results = list(
                workers.spread(
                    breakage.writes,
                    str(folder),
                    range(9),
                    progress=lambda stage, done, total, told=told: told.append(done),  # type: ignore[misc]
                )
            )
        files = sorted(folder.glob("part-*"))
        found[partitions] = [file.read_bytes() for file in files]
        assert sorted(results) == [(item, 1_000) for item in range(9)]
        assert told == list(range(10))

    assert found[1] == found[7] == found[None]


def test_j1_an_executor_killed_while_it_writes_changes_no_result(
    session: Any, tmp_path: Path
) -> None:
    with contextlib.closing(SparkWorkers(held(session))) as workers:
        results = list(workers.spread(breakage.dies_once, str(tmp_path), range(6)))

    assert sorted(results) == list(range(6))
    assert (tmp_path / "killed").exists()


def test_a_refusal_of_a_task_arrives_and_other_exceptions_lose_their_text(session: Any) -> None:
    with contextlib.closing(SparkWorkers(held(session))) as workers:
        with pytest.raises(OutputNotWritten) as refused:
            list(workers.spread(breakage.refuses, None, range(4)))
        with pytest.raises(EngineFailure) as failed:
            list(workers.spread(breakage.breaks, None, range(2)))

    assert refused.value.fix == "Make it."
    assert failed.value.name == "SPARK"
    assert "KeyError" in str(failed.value)
    _says_nothing(failed.value)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["x", MARKER, "y"] * 50, "UNKNOWNLEVEL"),
        (["x", None, "y"] * 50, "MISSINGVALUE"),
    ],
)
def test_m1_j10_values_that_do_not_fit_are_neither_counted_nor_shown(
    session: Any, tmp_path: Path, values: list[str | None], name: str
) -> None:
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "t.parquet")
    schema = Schema((Column("x", "nominal", levels=("x", "y")),))
    engine = SparkEngine(session=session)

    with pytest.raises(
        SchemaMismatch, match=r"column 'x': (values|missing) .* first in data row 2 "
    ) as caught:
        engine.scan(str(tmp_path / "t.parquet"), schema, key=tables.KEY)
    engine.close()

    assert caught.value.name == name
    _says_nothing(caught.value)


def test_m10_an_exception_of_spark_that_quotes_a_value_is_replaced(
    session: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    source = session.createDataFrame([(MARKER,)], "x string").selectExpr("cast(x as int) as x")
    schema = Schema((Column("x", "ordinal", levels=(0, 1)),))
    engine = SparkEngine(session=session)

    with pytest.raises(EngineFailure) as caught:
        engine.scan(source, schema, key=tables.KEY)
    engine.close()

    _says_nothing(caught.value)
    assert MARKER not in "".join(capfd.readouterr())


def test_a_row_without_its_person_is_refused(session: Any, tmp_path: Path) -> None:
    pl.DataFrame({"who": [1, None, 2], "x": [0, 1, 0]}).write_parquet(tmp_path / "t.parquet")
    schema = Schema((Column("x", "ordinal", levels=(0, 1)),), unit=Unit("person", "who"))
    engine = SparkEngine(session=session)

    with pytest.raises(SchemaMismatch, match="missing, first in data row 2") as caught:
        engine.scan(str(tmp_path / "t.parquet"), schema, key=tables.KEY)
    engine.close()

    assert caught.value.name == "NULLID"


def test_days_with_a_time_of_day_are_days_when_all_rows_say_so(
    session: Any, tmp_path: Path
) -> None:
    import datetime

    start = datetime.datetime(2020, 1, 1)
    days = [start + datetime.timedelta(days=i % 20) for i in range(100)]
    schema = Schema((Column("d", "date", edges=(737_425.0, 737_435.0, 737_445.0)),), ignore=("e",))
    seen = []
    for hours in (0, 5):
        times = [*days[:99], days[99] + datetime.timedelta(hours=hours)]
        frame = pl.DataFrame({"d": days, "e": times})
        path = tmp_path / f"{hours}.parquet"
        frame.write_parquet(path)
        engine = SparkEngine(session=session)
        source = session.read.option("inferTimestampNTZ", "true").parquet(str(path)).repartition(3)
        mark = engine.scan(source, schema, key=tables.KEY)
        contexts = [tables.context(schema, [0], [])]
        seen.append((mark, tables.digest(engine.tally(contexts))))
        engine.close()

        assert seen[-1] == tables.truth(frame, schema, contexts)
    assert seen[0][0] != seen[1][0]


def test_decimals_and_instants_count_and_are_known_as_on_one_machine(
    session: Any, tmp_path: Path
) -> None:
    day = pl.datetime(2020, 1, 1, time_zone="UTC") + pl.duration(days=pl.int_range(200) % 20)
    frame = pl.select(
        cost=(pl.int_range(200) % 40 / 4).cast(pl.Decimal(10, 2)),
        whole=(pl.int_range(200) % 3).cast(pl.Decimal(18, 0)),
        day=day.dt.cast_time_unit("us"),
    )
    schema = Schema(
        (
            Column("cost", "numeric", edges=(0.0, 4.0, 10.0)),
            Column("whole", "ordinal", levels=(0, 1, 2)),
            Column("day", "date", edges=(737_425.0, 737_435.0, 737_445.0)),
        )
    )
    path, contexts = tmp_path / "one.parquet", [tables.context(schema, [0], [1, 2])]
    frame.write_parquet(path)
    engine = SparkEngine(session=session)

    mark = engine.scan(str(path), schema, key=tables.KEY)
    found = mark, tables.digest(engine.tally(contexts))
    engine.close()

    assert found == tables.truth(frame, schema, contexts)


def test_wrong_sources_are_refused_in_one_line(session: Any, tmp_path: Path) -> None:
    schema = Schema((Column("x", "ordinal", levels=(0, 1)),))
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "none.parquet").write_bytes(b"PAR1" + MARKER.encode() + b"PAR1")
    sources = {
        "no.such.table": "NOTREAD",
        str(tmp_path / "missing.parquet"): "NOTREAD",
        str(tmp_path / "none.parquet"): "NOTREAD",
        str(tmp_path / "missing.csv"): "NOTAFILE",
        str(tmp_path / "delta"): "DELTA",
        "s3://bucket/file.csv": "NOTAFILE",
    }
    engine, names = SparkEngine(session=session), {}

    for source in sources:
        with pytest.raises(GibbousError) as caught:
            engine.scan(source, schema, key=tables.KEY)
        names[source] = caught.value.name
        _says_nothing(caught.value)
    engine.close()

    assert names == sources


def test_after_close_nothing_is_counted_and_no_code_is_kept(session: Any, tmp_path: Path) -> None:
    pl.DataFrame({"x": [0, 1, 1]}).write_parquet(tmp_path / "t.parquet")
    schema = Schema((Column("x", "ordinal", levels=(0, 1)),))
    contexts = [tables.context(schema, [0], [])]
    engine = SparkEngine(session=session)
    engine.scan(str(tmp_path / "t.parquet"), schema, key=tables.KEY)
    view = engine.recoded({})
    view.memory_limit = 0
    with pytest.raises(ResourceLimit, match="no budget was spent"):
        view.check(contexts)
    before = session.sparkContext._jsc.getPersistentRDDs().size()

    engine.close()

    assert before > session.sparkContext._jsc.getPersistentRDDs().size()
    for one in (engine, view):
        with pytest.raises(EngineFailure, match="closed"):
            one.tally(contexts)


def test_nothing_that_runs_on_executors_loads_a_maker_of_noise(
    session: Any, tmp_path: Path
) -> None:
    schema, frame, contexts = tables.side_by_side(1, 100, np.random.default_rng(13))
    frame.write_parquet(tmp_path / "t.parquet")
    engine = SparkEngine(session=session)
    engine.scan(str(tmp_path / "t.parquet"), schema, key=tables.KEY)
    engine.tally(contexts)
    engine.close()

    told = breakage.through(session.range(0, 8, 1, 8), breakage.modules, "told string").collect()
    loaded = {name for row in told for name in row.told.split(",")}

    assert "gibbous.disintegrate.spark.partial" in loaded
    assert "opendp" not in loaded
    assert not any(name.startswith("gibbous.privacy") for name in loaded)


def _says_nothing(error: BaseException) -> None:
    """No exception in the chain holds the marker, and there is no chain."""
    assert MARKER not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
