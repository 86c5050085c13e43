"""Sets come back as the kind of frame that went in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gibbous.core.release import Release
from gibbous.privacy.ledger import Ledger
from gibbous.write.like import frame_kind
from tests.write import made

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("like") / "rel"
    return made.write(folder, Ledger.ephemeral(), part_rows=20)


@pytest.mark.parametrize(
    ("source", "kind"),
    [(pd.DataFrame({"a": [1]}), pd.DataFrame), (pa.table({"a": [1]}), pa.Table)],
    ids=["pandas", "pyarrow"],
)
def test_sets_and_further_rows_are_of_the_kind_of_the_source(
    release: Release, source: object, kind: type
) -> None:
    found = frame_kind(source).release(release)

    assert [type(one) for one in found.sets] == [kind, kind]
    assert isinstance(found.sets[-1], kind)
    assert [type(one) for one in found.sets[:1]] == [kind]
    assert isinstance(found.sample(3, seed=1), kind)
    assert pl.DataFrame(found.sets[1]).equals(release.sets[1])
    assert found.scan(set=2).collect().equals(release.sets[1])
    with pytest.raises(IndexError):
        found.sets[2]


@pytest.mark.parametrize("source", ["data.csv", Path("data.parquet"), pl.DataFrame({"a": [1]})])
def test_files_and_polars_give_polars(release: Release, source: object) -> None:
    assert frame_kind(source).release(release) is release


SPARK = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from gibbous.privacy.ledger import Ledger
from gibbous.write.like import frame_kind
from tests.write import made
session = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate()
)
made.draw_plainly()
release = made.write(Path(sys.argv[1]) / "rel", Ledger.ephemeral(), part_rows=20)
found = frame_kind(session.createDataFrame([(1,)], ["a"])).release(release)
kinds = {type(one).__module__.split(".")[0] for one in (found.sets[0], found.sample(5, seed=1))}
rows = sorted(map(repr, map(tuple, found.sets[1].collect())))
more = sorted(map(repr, map(tuple, found.sample(5, seed=1).collect())))
same = rows == sorted(map(repr, release.sets[1].rows()))
alike = more == sorted(map(repr, release.sample(5, seed=1).rows()))
print("found", kinds, same, alike, found.sets[0].columns == list(made.SCHEMA.names))
session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_spark_frame_gives_spark_frames_that_read_the_parts(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs the extra spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java 17")

    done = subprocess.run(
        [sys.executable, "-c", SPARK, str(tmp_path)], capture_output=True, text=True, cwd=ROOT,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable}, check=False,
    )  # fmt: skip

    assert "found {'pyspark'} True True True" in done.stdout, done.stderr[-2000:]
