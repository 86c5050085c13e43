"""Columns come out as the types that went in: whatever is drawn, and whether or not missing is drawn."""

from __future__ import annotations

import datetime
import decimal
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema, Unit
from gibbous.encode.column_types import fits, fitting, type_of, type_text
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode
from gibbous.read.conform import plain
from gibbous.read.source import read_columns
from gibbous.write.arrow_schema import file_metadata
from gibbous.write.frame_kinds import frame_kind

DAY = datetime.date(2020, 1, 1).toordinal()
WHOLE: dict[str, Any] = {"edges": (0, 5, 100), "integer": True}
REAL: dict[str, Any] = {"edges": (0.0, 0.3, 1.0)}
DAYS: dict[str, Any] = {"edges": (DAY, DAY + 40, DAY + 400)}
TEXT: dict[str, Any] = {"levels": ("b", "a", "ö")}
YES_NO: dict[str, Any] = {"levels": (False, True)}
CENTS: dict[str, Any] = {"edges": (0.0, 0.25, 10.0), "decimals": 2}
NUMBERS = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]

POLARS: list[tuple[pl.DataType, str, dict[str, Any]]] = [
    *((type_of(name), "numeric", WHOLE) for name in [*NUMBERS, "Float32", "Float64"]),
    *((type_of(name), "numeric", REAL) for name in ("Float32", "Float64")),
    (pl.Decimal(9, 2), "numeric", CENTS),
    (pl.Decimal(20, 0), "numeric", WHOLE),
    (pl.Boolean(), "binary", YES_NO),
    (pl.Int8(), "nominal", {"levels": (3, 1)}),
    (pl.String(), "nominal", TEXT),
    (pl.Categorical(), "nominal", TEXT),
    (pl.Enum(["b", "a", "ö"]), "ordinal", TEXT),
    (pl.Enum(["b", "a", "ö"]), "nominal", TEXT),
    (pl.Categorical(), "nominal", {"levels": (3, 1)}),
    (pl.Enum(["3", "1"]), "ordinal", {"levels": (3, 1)}),
    (pl.Enum(["3", "1", "rest"]), "nominal", {"levels": (3, 1), "other": "rest"}),
    (pl.Categorical(), "nominal", {"levels": (0.5, 2.0)}),
    (pl.Enum(["False", "True"]), "binary", YES_NO),
    (pl.Date(), "date", DAYS),
    *((pl.Datetime(unit), "date", DAYS) for unit in ("ms", "us", "ns")),
    (pl.Datetime("us", "America/New_York"), "date", DAYS),
]
PANDAS: list[tuple[Any, str, dict[str, Any]]] = [
    *((name, "numeric", WHOLE) for name in [*NUMBERS, "Float32", "Float64", "float64"]),
    ("float32", "numeric", REAL),
    ("int64[pyarrow]", "numeric", WHOLE),
    ("boolean", "binary", YES_NO),
    ("object", "binary", YES_NO),
    ("string", "nominal", TEXT),
    ("str", "nominal", TEXT),
    ("object", "nominal", TEXT),
    (pd.CategoricalDtype(["b", "a", "ö"], ordered=False), "nominal", TEXT),
    (pd.CategoricalDtype(["b", "a", "ö"], ordered=True), "ordinal", TEXT),
    (pd.CategoricalDtype([3, 1], ordered=False), "nominal", {"levels": (3, 1)}),
    (pd.CategoricalDtype([0.5, 2.0], ordered=False), "nominal", {"levels": (0.5, 2.0)}),
    (pd.CategoricalDtype([False, True], ordered=False), "binary", YES_NO),
    *((f"datetime64[{unit}]", "date", DAYS) for unit in ("s", "ms", "us", "ns")),
    ("datetime64[us, Europe/Berlin]", "date", DAYS),
]
ARROW: list[tuple[pa.DataType, str, dict[str, Any]]] = [
    *((getattr(pa, name.lower())(), "numeric", WHOLE) for name in NUMBERS),
    (pa.float32(), "numeric", REAL),
    (pa.decimal128(9, 2), "numeric", CENTS),
    (pa.bool_(), "binary", YES_NO),
    (pa.string(), "nominal", TEXT),
    (pa.large_string(), "nominal", TEXT),
    (pa.dictionary(pa.int8(), pa.string()), "nominal", TEXT),
    (pa.dictionary(pa.int16(), pa.large_string(), ordered=True), "ordinal", TEXT),
    (pa.dictionary(pa.int32(), pa.string()), "nominal", {"levels": (3, 1)}),
    (pa.date32(), "date", DAYS),
    (pa.date64(), "date", DAYS),
    *((pa.timestamp(unit), "date", DAYS) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("ms", "Asia/Tokyo"), "date", DAYS),
]
DRAWS = st.tuples(
    st.booleans(),
    st.sampled_from(["none", "some", "all"]),
    st.integers(0, 20),
    st.integers(0, 2**32),
)


def _drawn(column: Column, draw: tuple[bool, str, int, int]) -> Codes:
    """Codes of so many rows, with missing where the column has it and the draw asks for it."""
    _, missing, rows, seed = draw
    codes = np.random.default_rng(seed).integers(0, column.size - column.missing, rows)
    if column.missing and missing != "none":
        codes[:: 1 if missing == "all" else 2] = column.missing_code
    return Codes(Schema((column,), Unit("row")), codes[:, None].astype(np.uint32))


def _back(source: Any, column: Column, draw: tuple[bool, str, int, int]) -> Any:
    """A drawn frame, of the kind and types of the source; its values read back as the codes drawn."""
    codes, kind = _drawn(column, draw), frame_kind(source)
    types = fitting(codes.schema, dict(kind.types))
    frame = decode(codes, seed=draw[3], types=types)
    again = encode(frame.with_columns(plain(frame.schema)), codes.schema)
    assert np.array_equal(again.by_column[0], codes.by_column[0])
    return kind.of(frame, codes.schema)


def _polars_case(case: Any, draw: Any) -> None:
    dtype, kind, facts = case
    found = _back(
        pl.DataFrame(schema={"x": dtype}), Column("x", kind, missing=draw[0], **facts), draw
    )

    assert found.schema == {"x": dtype}


def _pandas_case(case: Any, draw: Any) -> None:
    dtype, kind, facts = case
    source = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
    source.index.name = "person"
    found = _back(source, Column("x", kind, missing=draw[0], **facts), draw)

    assert found.dtypes["x"] == source.dtypes["x"]
    assert found.index.name == "person"
    if isinstance(dtype, pd.CategoricalDtype):
        assert found["x"].cat.ordered == dtype.ordered
        assert list(found["x"].cat.categories) == list(facts["levels"])


def _arrow_case(case: Any, draw: Any) -> None:
    dtype, kind, facts = case
    source = pa.schema([pa.field("x", dtype)]).empty_table()
    found = _back(source, Column("x", kind, missing=draw[0], **facts), draw)

    assert found.schema == source.schema
    found.validate(full=True)


def _parquet_case(case: Any, draw: Any) -> None:
    dtype, kind, facts = case
    column = Column("x", kind, missing=draw[0], **facts)
    codes, types = _drawn(column, draw), (("x", type_text(dtype)),)
    frame, file = decode(codes, seed=1, dictionary=True, types=types), io.BytesIO()
    frame.lazy().sink_parquet(file, metadata=file_metadata(frame.schema, codes.schema))
    found, arrow = pl.read_parquet(file.getvalue()), pq.read_table(io.BytesIO(file.getvalue()))

    assert found.schema == {"x": dtype}
    assert found.equals(frame)
    if pa.types.is_dictionary(arrow.schema.field("x").type):
        assert (
            arrow.schema.field("x").type.index_type == pa.int32()
        )  # unsigned: not in every pyarrow
        assert arrow.schema.field("x").type.ordered == (kind == "ordinal")
    assert arrow["x"].to_pylist() == frame["x"].to_list()


KINDS = {
    "polars": (POLARS, _polars_case),
    "pandas": (PANDAS, _pandas_case),
    "pyarrow": (ARROW, _arrow_case),
    "parquet": (POLARS, _parquet_case),
}


@pytest.mark.parametrize("library", KINDS)
def test_a_frame_comes_back_with_the_types_that_went_in(library: str) -> None:
    cases, check = KINDS[library]

    for case in cases:  # each type once with and once without missing, whatever hypothesis tries
        for draw in ((False, "none", 7, 1), (True, "none", 7, 2), (True, "some", 7, 3)):
            check(case, draw)


@pytest.mark.slow
@pytest.mark.parametrize("library", KINDS)
def test_a_frame_comes_back_with_its_types_for_any_draw(library: str) -> None:
    cases, check = KINDS[library]

    @settings(max_examples=500, deadline=None)
    @given(st.sampled_from(range(len(cases))), DRAWS)
    def holds(case: int, draw: Any) -> None:
        check(cases[case], draw)

    holds()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Int8", {"edges": (0, 300), "integer": True}),
        ("Int64", REAL),
        ("Float32", {"edges": (0.1, 0.1 + 1e-12, 1.0)}),
        ("Decimal[9, 2]", {"edges": (0.0, 0.001, 0.002, 1.0), "decimals": 2}),
        ("Decimal[3, 2]", CENTS),
        ("String", WHOLE),
        ("Datetime[us, ../../etc]", WHOLE),
        ("List", WHOLE),
    ],
)
def test_a_type_that_cannot_hold_all_of_the_schema_is_not_taken(text: str, facts: Any) -> None:
    assert not fits(Column("x", "numeric", **facts), text)


def test_a_zone_that_skipped_a_midnight_of_the_schema_is_not_taken() -> None:
    first = datetime.date(2018, 10, 1).toordinal()  # on 4 November clocks went from 0:00 to 1:00
    column = Column("x", "date", edges=(first, first + 60))

    assert not fits(column, "Datetime[us, America/Sao_Paulo]")
    assert fits(column, "Datetime[us, America/New_York]")


def test_categories_of_the_input_that_are_no_levels_do_not_come_out() -> None:
    source = pd.DataFrame({"x": pd.Categorical(["a"], categories=["a", "Mrs Smith"])})
    codes = Codes(
        Schema((Column("x", "nominal", **TEXT),), Unit("row")), np.zeros((2, 1), np.uint32)
    )
    kind = frame_kind(source)

    found = kind.of(decode(codes, seed=1), codes.schema)

    assert list(found["x"].cat.categories) == ["b", "a", "ö"]
    assert "Smith" not in repr(kind)


def test_whole_numbers_with_missing_of_a_parquet_file_are_nullable_in_pandas(tmp_path: Any) -> None:
    columns = (
        Column("n", "numeric", missing=True, label="Age", **WHOLE),
        Column("m", "numeric", **WHOLE),
    )
    schema, path = Schema(columns, Unit("row")), tmp_path / "x.parquet"
    frame = decode(Codes(schema, np.zeros((2, 2), np.uint32)), seed=1)
    frame.lazy().sink_parquet(path, metadata=file_metadata(frame.schema, schema))

    found = pd.read_parquet(path)

    assert dict(found.dtypes.astype(str)) == {"n": "Int64", "m": "int64"}
    assert found.attrs == {"columns": {"n": {"label": "Age"}}}
    assert pq.read_schema(path).field("n").metadata == {b"label": b"Age"}


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y"])
@pytest.mark.parametrize("library", ["polars", "pandas", "pandas string", "pyarrow"])
def test_days_that_were_text_come_back_as_text(library: str, form: str) -> None:
    own = None if form == "%Y-%m-%d" else form
    column = Column("x", "date", date_format=own, missing=True, **DAYS)
    days = pl.Series([datetime.date(2020, 1, day + 1) for day in range(31)] * 9)
    source: Any = pl.DataFrame({"x": days.dt.strftime(form)})
    if library.startswith("pandas"):
        source = pd.DataFrame({"x": source["x"].to_list()}, dtype=object)
        source = source.astype("string") if library == "pandas string" else source
    source = source.to_arrow() if library == "pyarrow" else source
    schema = Schema((column,), Unit("row"))
    release = gb.synthesize(
        source, schema, "laplace", epsilon=9, rows=40, ledger=gb.Ledger.ephemeral()
    )

    for found in (release.sets[0], release.sample(5)):
        values = found["x"].to_pylist() if library == "pyarrow" else list(found["x"])
        kind = (lambda frame: frame.dtypes["x"]) if library[:6] == "pandas" else lambda f: f.schema
        assert kind(found) == kind(source)
        assert all(
            isinstance(datetime.datetime.strptime(one, form), datetime.datetime)
            for one in values
            if isinstance(one, str)
        )
        assert any(isinstance(one, str) for one in values)
        assert encode(pl.DataFrame({"x": pl.Series(values, dtype=pl.String)}), schema).rows


@pytest.mark.parametrize("values", [[True, False], [3, 1]], ids=["booleans", "numbers"])
def test_types_come_back_from_files_where_levels_are_text(
    values: list[Any], tmp_path: Path
) -> None:
    """As a schema that was bought has them: such a run stopped after its charge."""
    levels = tuple(str(one).lower() for one in values)
    schema = Schema((Column("x", "ordinal", levels=levels),), Unit("row"))
    source = pl.DataFrame({"x": values * 50})
    release = gb.synthesize(source, schema, "laplace", epsilon=9, rows=9, out=tmp_path / "out")

    assert gb.load(release.path).sets[0].schema == release.sets[0].schema == source.schema


def test_objects_come_back_as_objects() -> None:
    source = pd.DataFrame({"x": pd.Series([1, 2, None] * 50, dtype=object)})
    column = Column("x", "numeric", missing=True, **WHOLE)
    release = gb.synthesize(
        source, Schema((column,), Unit("row")), "laplace", epsilon=9, rows=40, ledger=gb.Ledger.ephemeral()
    )  # fmt: skip

    assert release.sets[0].dtypes["x"].kind == "O"
    assert {type(one) for one in release.sets[0]["x"]} <= {int, type(None)}


def test_decimals_of_a_pandas_column_of_objects_come_back_as_numbers_in_objects() -> None:
    source = pd.DataFrame({"x": [decimal.Decimal(n) / 4 for n in range(20)] * 9})
    schema = Schema((Column("x", "numeric", **CENTS),), Unit("row"))

    found = gb.synthesize(source, schema, "laplace", epsilon=9, rows=9).sets[0]["x"]

    assert found.dtype.kind == "O"
    assert {type(one) for one in found} == {float}


def test_labels_are_in_the_attributes_of_the_frame_that_a_run_returns(tmp_path: Path) -> None:
    column = Column("x", "numeric", label="Age", note="at entry", **WHOLE)
    source = pd.DataFrame({"x": [1, 2, 3] * 50})
    release = gb.synthesize(
        source, Schema((column,), Unit("row")), "laplace", epsilon=9, rows=9, out=tmp_path / "out"
    )

    attrs = {"columns": {"x": {"label": "Age", "note": "at entry"}}}
    assert release.sets[0].attrs == release.sample(3).attrs == attrs
    assert pd.read_parquet(tmp_path / "out" / "synthetic_1.parquet").attrs == attrs


def test_a_decimal_that_no_column_holds_is_refused_in_a_sentence(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([decimal.Decimal(1)] * 9, pa.decimal256(40, 0)), "y": [1] * 9})
    pq.write_table(table, tmp_path / "wide.parquet")
    schema = Schema((Column("y", "numeric", **WHOLE),), Unit("row"))
    wide = Schema((Column("x", "numeric", **WHOLE), *schema), Unit("row"))

    for source in (table, tmp_path / "wide.parquet"):
        with pytest.raises(
            gb.GibbousError, match=r"Column 'x' has type decimal.*Convert the column"
        ):
            read_columns(source, schema=wide)
        assert read_columns(source, schema=replace(schema, ignore=("x",))).columns == ["y"]
