"""Sets come back as the kind of frame that went in."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gibbous.core.release import Release
from gibbous.privacy.ledger import Ledger
from gibbous.write.frame_kinds import frame_kind
from tests.write import made


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
