"""A Spark frame that goes in gives Spark frames back, which executors read from the parts."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.schema import Column, Schema, Unit
from gibbous.privacy.ledger import Ledger
from gibbous.write.frame_kinds import frame_kind
from tests.write import made

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]

ZONE = "spark.sql.session.timeZone"


def test_a_spark_frame_gives_spark_frames_that_read_the_parts(session: Any, tmp_path: Path) -> None:
    release = made.write(tmp_path / "rel", Ledger.ephemeral(), part_rows=20)

    found = frame_kind(session.createDataFrame([(1,)], ["a"])).release(release)

    second, more = found.sets[1], found.sample(5, seed=1)
    assert {type(one).__module__.split(".")[0] for one in (second, more)} == {"pyspark"}
    assert second.columns == list(made.SCHEMA.names)
    assert told(second.collect()) == sorted(map(repr, release.sets[1].rows()))
    assert told(more.collect()) == sorted(map(repr, release.sample(5, seed=1).rows()))


def test_order_and_types_of_the_frame_come_back_from_memory_and_from_parts(
    session: Any, tmp_path: Path
) -> None:
    zone = session.conf.get(ZONE)
    session.conf.set(
        ZONE, "America/New_York"
    )  # before the query, which keeps the one it began with
    source = session.sql(
        """SELECT cast(id % 100 / 4 as decimal(8, 2)) cost, cast(id % 7 as short) n,
                  CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END `k.x`, id % 3 = 0 b,
                  date_add(date'2020-01-01', cast(id % 50 as int)) d, cast(d as timestamp) t,
                  cast(d as timestamp_ntz) u, cast(id % 4 as float) f FROM range(400)"""
    )
    first = datetime.date(2020, 1, 1).toordinal()
    days = [Column(name, "date", edges=(first, first + 60)) for name in "tdu"]
    schema = Schema(
        (
            Column("k.x", "nominal", levels=("a", "b")),
            Column("b", "binary", levels=(False, True)),
            Column("n", "ordinal", levels=tuple(range(7))),
            Column("cost", "numeric", edges=(0.0, 10.0, 25.0), decimals=2, missing=True),
            Column("f", "numeric", edges=(0.0, 2.0, 4.0)),
            *days,
        ),
        Unit(),
    )
    method = gb.NoisyPegs(epsilon=3, delta=1e-6)
    try:
        for out in (None, tmp_path / "out"):
            release = gb.synthesize(
                source,
                schema,
                method,
                rows=40,
                out=out,
                ledger=gb.Ledger.ephemeral(),
                engine="spark",
            )
            for found in (release.sets[0], release.sample(5, seed=1)):
                assert found.dtypes == source.dtypes
                midnight = found.selectExpr("bool_and(t = cast(cast(t as date) as timestamp))")
                assert midnight.collect()[0][0]
    finally:
        session.conf.set(ZONE, zone)


def told(rows: list[Any]) -> list[str]:
    return sorted(map(repr, map(tuple, rows)))
