"""What one record can change of how all others are read or shown: nothing, where types are not public."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gibbous as gb
from gibbous.core.errors import SchemaMismatch
from gibbous.encode.cell_text import as_cells
from gibbous.encode.persons import bounded, identifiers

CODES = [1, 2, 3] * 1000
METHOD = gb.AdaptiveGibbs(epsilon=20, delta=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        [3, -12, 0, None, 2**53 - 1],
        [2**53 + 3, 10**16, -(10**18)],
    ],
)
def test_a_whole_number_has_one_text_whatever_type_its_column_has(values: list[int | None]) -> None:
    whole = as_cells(pl.Series(values, dtype=pl.Int64))

    assert whole.to_list() == as_cells(pl.Series(values, dtype=pl.Float64, strict=False)).to_list()
    assert as_cells(pl.Series(values, dtype=pl.Int64)[:2]).to_list() == whole[:2].to_list()


def test_a_decimal_has_the_text_of_its_float_whatever_scale_its_column_has() -> None:
    narrow = pl.Series([Decimal("12.50"), Decimal("3.00"), Decimal("100.00")])
    wide = pl.Series([Decimal("12.5000"), Decimal("3.0000"), Decimal("100.0000")])

    texts = [as_cells(one).to_list() for one in (narrow, wide, pl.Series([12.5, 3.0, 100.0]))]

    assert texts == [["12.5", "3", "100"]] * 3


def in_pandas(values: Sequence[Any], folder: Path) -> Any:
    return pd.DataFrame({"a": values, "b": "x"})


def in_parquet(values: Sequence[Any], folder: Path) -> Any:
    in_pandas(values, folder).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def in_arrow(values: Sequence[Any], folder: Path) -> Any:
    return pa.Table.from_pandas(in_pandas(values, folder))


def in_sqlite(values: Sequence[Any], folder: Path) -> Any:
    path = folder / "a.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as held:
        held.execute("create table t (a, b)")
        held.executemany("insert into t values (?, 'x')", [(value,) for value in values])
    return f"sqlite:///{path}::t"


@pytest.mark.parametrize("source", [in_pandas, in_parquet, in_arrow, in_sqlite])
@pytest.mark.parametrize("one", [None, 2.5])
def test_one_record_does_not_make_all_cells_other(
    source: Callable[..., Any], one: float | None, tmp_path: Path
) -> None:
    known = gb.Discovery(["a", "b"], gb.Unit(), levels={"a": ["1", "2", "3"]})

    release = gb.synthesize(
        source([*CODES, one], tmp_path), known, METHOD, rows=3000, ledger=gb.Ledger.ephemeral()
    )

    shares = Counter(map(str, release.sets[0]["a"]))
    assert min(shares[level] for level in ("1", "2", "3")) > 900


def published(source: Any, known: gb.Discovery | gb.Schema, out: Path) -> tuple[Any, ...]:
    ledger = gb.Ledger.ephemeral()
    gb.synthesize(source, known, METHOD, rows=50, out=out, ledger=ledger, overwrite=True)
    receipt = json.loads((out / "ledger.json").read_text())
    assert gb.verify(out)
    return (
        receipt["files"].get("types"),
        dict(pl.read_parquet_schema(out / "synthetic_1.parquet"))["a"],
        [text for text in receipt["assumptions"] if "names" in text],
    )


@pytest.mark.slow
@pytest.mark.parametrize("source", [in_pandas, in_parquet, in_arrow])
def test_types_of_the_source_are_published_only_where_they_are_public(
    source: Callable[..., Any], tmp_path: Path
) -> None:
    data = source([15.5, 33.0, 47.0, 71.0] * 500, tmp_path)
    closed = gb.Discovery(["a", "b"], gb.Unit(), numeric=["a"])
    public = gb.Discovery.of(data, gb.Unit(), types_are_public=True)

    types, _, assumed = published(data, closed, tmp_path / "closed")
    assert types is None
    assert [text.partition(";")[0] for text in assumed] == [
        "the names of the columns, and how text is cut into cells, are public"
    ]

    types, _, assumed = published(data, public, tmp_path / "public")
    assert types["a"] == "Float64"
    assert assumed[0].startswith("the names and types of the columns")


@pytest.mark.slow
def test_a_frame_of_whole_numbers_with_a_missing_one_comes_back_as_without(tmp_path: Path) -> None:
    found = []
    for extra in ([], [None]):
        frame = pd.DataFrame({"a": [15, 33, 47, 71] * 500 + extra, "b": "x"})
        known = gb.Discovery(["a", "b"], gb.Unit(), bounds={"a": (0, 100)})
        found.append(published(frame, known, tmp_path / "out")[:2])

    assert found[0] == found[1]


def test_types_under_a_declared_schema_are_an_assumption(tmp_path: Path) -> None:
    column = gb.Column("a", "numeric", edges=(0, 18, 65, 110), integer=True)
    frame = pd.DataFrame({"a": [15, 33, 47, 71] * 500})

    types, _, assumed = published(frame, gb.Schema((column,)), tmp_path / "out")

    assert types == {"a": "Int64"}
    assert assumed == ["the names of declared columns, and their types in the source, are public"]


def test_blanks_around_an_identifier_make_no_second_person() -> None:
    people = pl.Series("pid", ["77", "77 ", " 77", "\t77", "78"])

    keep = bounded(people, 1, lambda rows: np.arange(rows, dtype=np.uint64))

    assert keep is not None
    assert keep.sum() == 2
    assert identifiers(pl.Series(["  ", "a"])).to_list() == [None, "a"]


def test_a_person_of_four_ways_to_write_one_identifier_has_the_rows_of_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    others = "".join(f"p{i},b\n" for i in range(60))
    path.write_text("pid,x\n" + others + "77,a\n77 ,a\n 77,a\n77  ,a\n")
    schema = gb.Schema((gb.Column("x", "binary", ("a", "b")),), gb.Unit("person", "pid", 1))

    release = gb.synthesize(
        path, schema, gb.NoisyPegs(epsilon=60, delta=1e-6), rows=10, ledger=gb.Ledger.ephemeral()
    )

    assert release.tables is not None
    assert release.tables.published()[0].cells.values.ravel()[0] == pytest.approx(1, abs=1.5)


def test_identifiers_that_one_float_stands_for_stay_two_persons() -> None:
    people = [2**53 + n for n in range(400)]
    frame = pl.DataFrame({"pid": people, "x": ["a", "b"] * 200})
    known = gb.Discovery(["pid", "x"], gb.Unit("person", "pid", 1))

    release = gb.synthesize(frame, known, METHOD, rows=10, ledger=gb.Ledger.ephemeral())

    assert release.tables is not None
    assert release.tables.noisy_rows() == pytest.approx(400, abs=40)  # 200 where two are one


@pytest.mark.parametrize(
    "people",
    [
        pl.Series([Decimal(2**60 + n).scaleb(-2) for n in range(4)], dtype=pl.Decimal(38, 2)),
        pl.Series([1.5, 2.0, 3.0, None]),
        pl.Series([2.0**60, 2.0, 3.0, 4.0]),
    ],
)
def test_identifiers_that_floats_may_merge_are_refused(people: pl.Series) -> None:
    frame = pl.DataFrame({"pid": people, "x": ["a", "b", "a", "b"]})
    schema = gb.Schema((gb.Column("x", "binary", ("a", "b")),), gb.Unit("person", "pid", 1))

    with pytest.raises(SchemaMismatch, match="holds floats that are not whole"):
        gb.synthesize(
            frame, schema, gb.NoisyPegs(epsilon=1, delta=1e-6), ledger=gb.Ledger.ephemeral()
        )


def test_one_fraction_makes_no_floats_of_decimals_that_floats_do_not_hold() -> None:
    frame = pd.DataFrame({"x": [Decimal(2**60 + 1), Decimal(2**60), Decimal("1.5")]})
    schema = gb.Schema((gb.Column("x", "nominal", (2**60, 2**60 + 1), other="else"),))

    with pytest.raises(SchemaMismatch, match="floats do not hold"):
        gb.synthesize(
            frame, schema, gb.NoisyPegs(epsilon=1, delta=1e-6), ledger=gb.Ledger.ephemeral()
        )
