"""The fingerprint names a multiset of rows: its order and format do not matter, its rows do."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.read import fingerprint as fingerprint_module
from gibbous.read import row_sums
from gibbous.read.fingerprint import Fingerprint, fingerprint
from gibbous.read.source import read_columns

KEY = b"k" * 32
TABLE = pl.DataFrame(
    {
        "text": ["a", None, 'ü, "q"\nz', "007", "7"],
        "int": [1, -2, 2**40 + 1, None, 0],
        "real": [0.1, -0.0, 3.0, None, 1e19],
        "single": pl.Series([0.1, 0.5, None, 2.0, 3.25], dtype=pl.Float32),
        "flag": [True, False, None, True, True],
        "day": pl.Series([datetime.date(2020, 1, d) for d in range(1, 6)]),
        "cat": pl.Series(["u", "v", "u", None, "w"], dtype=pl.Categorical),
    }
)


def name(frame: pl.DataFrame, null: str = "") -> bytes:
    return fingerprint(frame, KEY, null)


def test_h11_the_same_rows_have_one_name_in_every_format(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "polars.csv")
    TABLE.write_parquet(tmp_path / "d.parquet")
    TABLE.to_pandas().to_csv(tmp_path / "pandas.csv", index=False)
    sources = [tmp_path / "polars.csv", tmp_path / "pandas.csv", tmp_path / "d.parquet"]

    names = {name(read_columns(s)) for s in [*sources, TABLE.to_pandas(), TABLE.to_arrow()]}

    assert names == {name(TABLE)}
    assert len(name(TABLE)) == 32


def test_h11_the_order_of_rows_and_columns_does_not_matter() -> None:
    shuffled = TABLE.sample(fraction=1, shuffle=True, seed=3).select(sorted(TABLE.columns))

    assert name(shuffled) == name(TABLE)


def test_c17_the_way_a_table_is_chunked_does_not_matter() -> None:
    assert name(pl.concat([TABLE[:2], TABLE[2:]], rechunk=False)) == name(TABLE)


def test_another_key_row_column_or_multiplicity_is_another_name() -> None:
    others = [
        TABLE[:4],
        pl.concat([TABLE, TABLE[:1]]),
        TABLE.rename({"int": "Int"}),
        TABLE.drop("int"),
        TABLE.with_columns(pl.col("text").fill_null("x")),
        TABLE.with_columns(pl.col("real") + 1e-9),
        TABLE.with_columns(pl.col("text").reverse()),
    ]

    names = [name(t) for t in (TABLE, *others)] + [fingerprint(TABLE, b"j" * 32, "")]

    assert len(set(names)) == len(names)


def test_values_that_swap_between_columns_are_another_table() -> None:
    assert name(pl.DataFrame({"a": [1], "b": [2]})) != name(pl.DataFrame({"a": [2], "b": [1]}))


@pytest.mark.parametrize("null", ["", "NA", "-99"])
def test_C_a_null_counts_as_the_text_that_it_stood_for(null: str) -> None:
    written = pl.DataFrame({"a": [null, "x"]})

    assert name(written, "other") == name(written)
    assert name(pl.DataFrame({"a": [None, "x"]}), null) == name(written)


@pytest.mark.slow
@given(st.integers(-(2**70), 2**70))
def test_a_whole_number_has_one_name_as_text_and_as_number(value: int) -> None:
    typed = pl.Series("a", [value], dtype=pl.Int128)
    text = pl.Series("a", [str(value)])

    assert name(pl.DataFrame([typed])) == name(pl.DataFrame([text]))
    assert name(pl.DataFrame([typed])) != name(pl.DataFrame([pl.Series("a", [str(value + 1)])]))


@given(st.floats(allow_nan=False))
def test_a_number_has_one_name_as_text_and_as_number(value: float) -> None:
    text = pl.DataFrame({"a": [repr(value)]})

    assert name(pl.DataFrame({"a": [value]})) == name(text)


def test_many_distinct_texts_take_the_same_names_as_few() -> None:
    many = pl.DataFrame({"a": [f"v{i}" for i in range(20_000)]})
    few = pl.concat([many[:6_000], many[6_000:].sort("a", descending=True)])

    assert name(many) == name(few)


def test_blocks_change_nothing_for_floats_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    real = np.concatenate(
        (rng.normal(size=500), np.floor(rng.normal(size=500) * 1e6), rng.normal(size=500) * 1e25)
    )
    odd = [math.inf, -math.inf, math.nan, -0.0, 2.0**63, -(2.0**63), 2.0**62]
    frame = pl.DataFrame({"real": [*real.tolist(), *odd, None]})
    whole = name(frame)
    for module in (fingerprint_module, row_sums):
        monkeypatch.setattr(module, "BLOCK", 7)

    assert name(frame) == whole
    assert name(frame.reverse()) == whole
    assert name(frame.with_columns(pl.col("real").cast(pl.String))) == whole


def wide(rows: int) -> pl.DataFrame:
    """Columns of every kind of part: of few values, of more than 2^16, and hashed row by row."""
    rng = np.random.default_rng(rows)
    codes = {f"c{i}": rng.integers(-3, 4 + 5 * i, rows) for i in range(8)}
    levels = pl.Enum([str(i) for i in range(70_000)])
    large = levels.categories.gather(rng.integers(0, 70_000, rows)).cast(levels).alias("large")
    gaps = pl.Series("gaps", rng.integers(0, 9, rows)).replace(4, None)
    return pl.DataFrame(codes).with_columns(large, gaps, pl.Series("real", rng.normal(size=rows)))


@pytest.mark.parametrize("keep", ["all", "looked up", "hashed"])
def test_the_kernel_adds_up_what_numpy_adds_up(keep: str) -> None:
    frames = [TABLE, TABLE.clear(), wide(2_500)]
    if keep == "looked up":
        frames = [frame.select(pl.selectors.by_name("c0", "c5", "gaps")) for frame in frames[2:]]
    elif keep == "hashed":
        frames = [frame.select("real") for frame in frames]

    for frame in frames:
        found = []
        for adding in (row_sums.plain, row_sums.compiled):
            mark = Fingerprint(KEY, "", adding=adding)
            for start in range(0, max(1, frame.height), 1_100):
                mark.add(frame.slice(start, 1_100))
            found.append(mark.digest())
        assert found[0] == found[1]


def test_an_empty_table_has_a_name() -> None:
    assert name(TABLE.clear()) != name(TABLE.clear().drop("int"))
