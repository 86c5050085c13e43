"""The same tables and the same seed: files that executors write are those of this process, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.request import Output, Performance
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.spark.engine import SparkEngine
from gibbous.pipeline import sample_more
from gibbous.write.load import load

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # sockets that PySpark leaves to the collector
]


def test_rows_written_by_executors_have_the_bytes_of_one_machine(
    session: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(21)
    frame = pl.DataFrame({"a": rng.integers(0, 4, 500), "b": rng.uniform(0, 10, 500)})
    columns = (
        Column("a", "ordinal", levels=tuple(range(4))),
        Column("b", "numeric", edges=(0.0, 2.0, 10.0)),
    )
    release = gb.synthesize(
        frame,
        Schema(columns, unit=Unit()),
        gb.NoisyPegs(epsilon=1),
        rows=10,
        seed=1,
        ledger=tmp_path / "ledger.sqlite",
    )
    found = {}

    for partitions in (None, 1, 7, 32):
        out = tmp_path / f"set-{partitions}"
        engine = partitions and SparkEngine(session=session, partitions=partitions)
        output = Output(9_500, seed=3, out=out, part_rows=1_000)
        sample_more(load(release), output, Performance(engine or "local"))
        if engine:
            engine.close()
        files = sorted(out.rglob("part-*.parquet"))
        found[partitions] = [(file.name, file.read_bytes()) for file in files]

    assert len(found[None]) == 10
    assert found[1] == found[7] == found[32] == found[None]
