"""Two tables under one schema: values of their kinds, references, units that evaluation ignores."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.evaluation.tables import independent, plain, side, subject

SCHEMA = gb.Schema(
    (
        gb.Column("day", "date", edges=(730120.0, 730486.0, 730851.0)),
        gb.Column("size", "numeric", edges=(0.0, 10.0, 20.0), missing=True),
        gb.Column("kind", "nominal", levels=("a", "b"), missing=True),
    ),
    unit=gb.Unit("person", "id", 2),
)
DAYS = [datetime.date(2000, 1, 1), datetime.date(2000, 6, 1), datetime.date(2001, 2, 3)]
FRAME = pl.DataFrame(
    {"id": [1, 1, 1], "day": DAYS, "size": [1.5, None, 20.0], "kind": ["a", None, "b"]}
)


def test_numbers_are_numbers_days_ordinals_and_levels_codes() -> None:
    found = subject(FRAME, FRAME.drop("id"), SCHEMA).real.numbers

    expected = np.array([[d.toordinal() for d in DAYS], [1.5, np.nan, 20.0], [0.0, np.nan, 1.0]]).T
    assert np.array_equal(found, expected, equal_nan=True)


def test_text_and_typed_files_give_the_same_table(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "t.csv")
    FRAME.write_parquet(tmp_path / "t.parquet")

    text = subject(tmp_path / "t.csv", FRAME, SCHEMA).real
    typed = subject(tmp_path / "t.parquet", FRAME, SCHEMA).real

    assert text.frame.equals(typed.frame)
    assert np.array_equal(text.codes.values, typed.codes.values)


def test_an_identifier_is_no_column_and_cuts_no_rows() -> None:
    found = subject(FRAME, FRAME, SCHEMA)

    assert found.real.rows == 3
    assert found.schema.names == ("day", "size", "kind")


def test_independent_columns_keep_margins_and_lose_the_rest() -> None:
    rows = pl.DataFrame({"x": [0, 1] * 500, "y": [0, 1] * 500})
    schema = gb.Schema(tuple(gb.Column(n, "binary", levels=(0, 1)) for n in "xy"))

    table = subject(rows, rows, schema, seed=5).reference("independent")

    assert table is not None
    x, y = table.codes.by_column
    assert abs(np.mean(x == y) - 0.5) < 0.1
    assert table.rows == 1000
    assert (table.frame["x"].to_numpy() == x).all()


def test_a_resample_is_of_the_records_and_follows_the_seed() -> None:
    whole = subject(FRAME, FRAME, SCHEMA, seed=1)
    again = subject(FRAME, FRAME, SCHEMA, seed=1)

    one, two = whole.reference("bootstrap"), again.reference("bootstrap")

    assert one is not None
    assert two is not None
    assert np.array_equal(one.codes.values, two.codes.values)
    assert {tuple(r) for r in one.codes.values} <= {tuple(r) for r in whole.real.codes.values}
    assert whole.reference("holdout") is None


def test_tables_without_rows_and_other_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="no rows"):
        subject(FRAME, FRAME.head(0), SCHEMA)
    with pytest.raises(UsageError, match="synthetic table has no rows"):
        subject(FRAME, [FRAME, FRAME.head(0)], SCHEMA)
    with pytest.raises(UsageError, match="no synthetic set"):
        subject(FRAME, [], SCHEMA)
    with pytest.raises(SchemaMismatch):
        subject(FRAME, FRAME.rename({"kind": "other"}), SCHEMA)


BOUNDS = gb.Schema(
    (
        gb.Column("pay", "numeric", lower=0, upper=1000),
        gb.Column("ill", "binary", levels=("n", "y")),
    ),
    gb.Unit(),
)


def pays(shift: float, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(2000) < 0.4, 0.0, rng.gamma(2, 40, 2000).clip(0, 900) + shift)
    return pl.DataFrame({"pay": pay, "ill": np.where(pay > 100, "y", "n")})


def test_columns_with_bounds_alone_are_compared_in_bins_of_the_records() -> None:
    """Under one bin nothing would differ; zeros that many rows have are a bin of their own."""
    same, moved = (
        gb.evaluate(pays(0, 1), pays(shift, 2), BOUNDS, only=["tv1", "tv2"]) for shift in (0, 90)
    )

    assert same["tv1"].value < 0.05
    assert moved["tv1"].value > 0.25
    (edges,) = (cut.edges for cut in side(pays(0, 1), plain(BOUNDS)).cuts().values())
    assert edges[0] == 0
    assert edges[-1] == 1000
    assert 10 <= len(edges) <= 17
    inside = np.histogram(pays(0, 1)["pay"], edges)[0]
    assert inside[0] == (pays(0, 1)["pay"] == 0).sum()
    assert inside[1:].max() < 2.5 * 2000 / 16


def test_the_independent_reference_holds_what_was_read_beyond_bounds() -> None:
    """Before: the cells as the schema moved them, whose mean is another one."""
    schema = gb.Schema((gb.Column("x", "numeric", edges=(0.0, 1.0, 2.0), clamp=True),))
    table = side(pl.DataFrame({"x": [0.5, 1.5, 40.0, -7.0]}), schema)

    apart = independent(table, 1)

    assert table.read is not None
    assert apart.read is not None
    assert sorted(apart.read["x"].to_list()) == sorted(table.read["x"].to_list())
