"""A Spark frame that goes in gives Spark frames back, which executors read from the parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gibbous.privacy.ledger import Ledger
from gibbous.write.frame_kinds import frame_kind
from tests.write import made

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


def test_a_spark_frame_gives_spark_frames_that_read_the_parts(session: Any, tmp_path: Path) -> None:
    release = made.write(tmp_path / "rel", Ledger.ephemeral(), part_rows=20)

    found = frame_kind(session.createDataFrame([(1,)], ["a"])).release(release)

    second, more = found.sets[1], found.sample(5, seed=1)
    assert {type(one).__module__.split(".")[0] for one in (second, more)} == {"pyspark"}
    assert second.columns == list(made.SCHEMA.names)
    assert told(second.collect()) == sorted(map(repr, release.sets[1].rows()))
    assert told(more.collect()) == sorted(map(repr, release.sample(5, seed=1).rows()))


def told(rows: list[Any]) -> list[str]:
    return sorted(map(repr, map(tuple, rows)))
