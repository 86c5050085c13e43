"""Conditional rows from a release: labels in, labels out, kept as they were given."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.release import Release
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import LogLinear, Recipe, Tables
from gibbous.write.sampler import draw
from gibbous.write.table_files import read_tables, write_tables
from tests.write import made as packages

SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 100.0), integer=True),
        Column("job", "nominal", levels=("none", "some"), missing=True),
    )
)
THETA = np.log(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
MODEL = LogLinear((2, 3, 3), ((0,), (1, 2)), (np.zeros(2), THETA))
TABLES = Tables(SCHEMA, (), Recipe("loglinear", (), sweeps=5), model=MODEL)


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A release of the model, its tables loaded from disk."""
    write_tables(TABLES, tmp_path / "t")
    return Release(
        (), SCHEMA, packages.TOTAL, None, read_tables(tmp_path / "t", SCHEMA), None, None, draw  # type: ignore[arg-type]
    )  # fmt: skip


def test_one_value_for_all_rows(release: Release) -> None:
    drawn = release.sample(3000, 1, given={"age": 33, "sex": "m"})

    assert drawn["age"].to_list() == [33] * 3000, "a bin would come back as any of its values"
    assert drawn["sex"].unique().to_list() == ["m"]
    assert abs((drawn["job"] == "some").sum() / 3000 - 0.8) < 0.03
    assert drawn.columns == ["sex", "age", "job"]


def test_a_frame_of_fixed_columns_is_kept_and_the_rest_follows_it(release: Release) -> None:
    kept = pl.DataFrame({"age": [5, 25, 99] * 1000})

    drawn = release.sample(3000, 1, given=kept)

    assert drawn["age"].to_list() == kept["age"].to_list()
    per_age = (
        drawn.filter(pl.col("job").is_not_null())
        .group_by("age")
        .agg((pl.col("job") == "none").sum() / 1000.0)
    )
    shares = dict(per_age.iter_rows())
    assert abs(shares[5] - 0.8) < 0.06
    assert abs(shares[25] - 0.1) < 0.06
    assert kept.columns == ["age"], "the input is not modified"


@pytest.mark.parametrize(
    "ages",
    [pd.Series([5, 33, 99], index=[7, 8, 9]), pd.array([5, 33, 99]), pd.Index([5, 33, 99]),
     range(5, 8), np.array([5, 33, 99]), deque([5, 33, 99]), pl.Series([5, 33, 99])],
    ids=lambda ages: type(ages).__name__,
)  # fmt: skip
def test_any_sequence_gives_one_value_a_row(release: Release, ages: Any) -> None:
    drawn = release.sample(3, 1, given={"age": ages, "sex": "f"})

    assert drawn["age"].to_list() == list(ages)


@pytest.mark.parametrize("ages", [{5, 33, 99}, {5: 1, 33: 2, 99: 3}, np.ones((3, 1))], ids=repr)
def test_what_has_no_order_or_two_dimensions_is_refused(release: Release, ages: Any) -> None:
    with pytest.raises(UsageError, match="in column 'age'"):
        release.sample(3, 1, given={"age": ages})


def test_missing_is_a_value_like_others(release: Release) -> None:
    drawn = release.sample(2000, 1, given={"job": [None, "some"] * 1000})

    assert drawn["job"].to_list() == [None, "some"] * 1000
    ages = drawn.filter(pl.col("job").is_null())["age"]
    assert abs((ages >= 40).mean() - 0.8) < 0.06


def test_the_catch_all_of_a_column_that_can_be_missing_stays_what_it_is() -> None:
    job = Column("job", "nominal", levels=("some",), other="else", missing=True)
    tables = replace(TABLES, schema=Schema((*SCHEMA.columns[:2], job)))

    drawn = draw(tables, 3, 1, {"job": ["some", "poet", None]})

    assert drawn["job"].to_list() == ["some", "else", None]


def test_whole_numbers_that_would_be_rounded_are_refused() -> None:
    wide = Column("age", "numeric", edges=(0.0, 20.0, 40.0, 2.0**60), integer=True)
    tables = replace(TABLES, schema=Schema((SCHEMA.columns[0], wide, SCHEMA.columns[2])))

    with pytest.raises(UsageError, match=r"beyond 2\^53 in column 'age'"):
        draw(tables, 1, 1, {"age": 2**53 + 1})


def test_same_seed_same_rows(release: Release) -> None:
    one = release.sample(100, 1, given={"sex": "f"})

    assert one.equals(release.sample(100, 1, given={"sex": "f"}))
    assert not one.equals(release.sample(100, 2, given={"sex": "f"}))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"sex": "x"}, SchemaMismatch, "outside its declared levels"),
        ({"age": 150}, SchemaMismatch, "age"),
        ({"income": 1}, UsageError, "income"),
        ({"sex": ["f", "m"]}, UsageError, "another number of values"),
        (pl.DataFrame({"sex": ["f", "m"]}), UsageError, "2 rows"),
        ({}, UsageError, "0 columns"),
        ("sex", UsageError, "str"),
    ],
    ids=["no such level", "out of bounds", "no such column", "short", "short frame", "nothing", "no frame"],
)  # fmt: skip
def test_refuses_given_values_that_do_not_fit(
    release: Release, given: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        release.sample(5, 1, given=given)
