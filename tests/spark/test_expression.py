"""One expression of counts: in Spark SQL it gives the groups that brute force counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.context import Hashed, MinHash, Radix
from gibbous.disintegrate.ibis import expression
from tests.disintegrate.brute import codes_of, schema_of
from tests.ibis.test_expression import SIZES, contexts, wrong

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


def test_spark_counts_what_a_dictionary_counts(session: Any, tmp_path: Path) -> None:
    codes = codes_of(schema_of(SIZES), 300, np.random.default_rng(4))
    frame = pl.DataFrame({f"c{i}": c.astype(np.int16) for i, c in enumerate(codes.by_column)})
    frame.write_parquet(tmp_path / "codes.parquet")
    session.read.parquet(str(tmp_path / "codes.parquet")).createOrReplaceTempView("codes")

    def query(sql: str) -> dict[str, np.ndarray]:
        rows = session.sql(sql).collect()
        names = rows[0].__fields__
        return {n: np.array([row[n] for row in rows], dtype=np.int64) for n in names}

    chosen = [contexts(Radix())[-1]]
    chosen += [contexts(key)[-2] for key in (Hashed(1 << 33, 3), MinHash(3, 1 << 40, 2))]
    assert {expression.form_of(c) for c in chosen} == {"radix", "halves", "least"}

    assert wrong(query, codes, "pyspark", chosen) == []
