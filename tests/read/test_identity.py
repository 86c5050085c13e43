"""The same records keep their name, however they are written, read or described; others do not."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from gibbous.core.dataset import DataSet
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate import engine
from gibbous.read.fingerprint import Fingerprint, fingerprint, root_of
from gibbous.read.source import ReadOptions, null_text, read_columns, read_slices
from tests.read.slow_identity import MISSING, Value, form, name_of

KEY = b"k" * 32
TEXTS = ["a", "b ü", 'q"x', "x;y", "t|u,v\tw", "007", " 7", "1e3", "2020-01-02", "TRUE", "-99", "x"]
TYPES = ("whole", "real", "flag", "day", "instant", "text")
Table = dict[str, list[Value]]


@dataclass(frozen=True)
class Written:
    """How one table is written and described; nothing here changes a record.

    Attributes:
        form: "csv", "parquet", "polars", "pandas" or "pyarrow".
        sep, quoted, crlf: of text.
        missing: the text of a missing value in text files.
        blank: put around numbers in text.
        null: of the schema.
        order, columns: rows and columns are shuffled by these.
    """

    form: str
    sep: str
    quoted: bool
    crlf: bool
    missing: str
    blank: bool
    null: str
    order: int
    columns: int


def values_of(kind: str) -> st.SearchStrategy[Value]:
    days = st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1))
    return {
        "whole": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        "real": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float),
        "flag": st.booleans(),
        "day": days,
        "instant": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
        | days.map(lambda d: datetime.datetime(d.year, d.month, d.day)),
        "text": st.sampled_from(TEXTS),
    }[kind]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(1, 6))
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    found: Table = {"g": draw(st.lists(st.sampled_from("uv"), min_size=rows, max_size=rows))}
    for place, kind in enumerate(kinds):
        one = st.none() | values_of(kind)
        found[f"{kind}{place}"] = draw(st.lists(one, min_size=rows, max_size=rows))
    return found


writings = st.builds(
    Written,
    st.sampled_from(["csv", "parquet", "polars", "pandas", "pyarrow"]),
    st.sampled_from([",", ";", "|", "\t"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "NA", "nan", "NULL", "?", "None", "-"]),
    st.booleans(),
    st.sampled_from(["", "NA", "-99", "x", "7", "?", "a"]),
    st.integers(0, 5),
    st.integers(0, 5),
)


def frame_of(table: Table) -> pl.DataFrame:
    types = {
        "whole": pl.Int64, "real": pl.Float64, "flag": pl.Boolean, "day": pl.Date,
        "instant": pl.Datetime("us"), "text": pl.String, "g": pl.String,
    }  # fmt: skip
    return pl.DataFrame(
        {k: pl.Series(k, v, types[k.rstrip("0123456789")]) for k, v in table.items()}
    )


def shuffled(table: Table, how: Written) -> Table:
    rows = list(range(len(table["g"])))
    turned = rows[how.order % len(rows) :] + rows[: how.order % len(rows)]
    names = list(table)
    names = names[how.columns % len(names) :] + names[: how.columns % len(names)]
    return {name: [table[name][row] for row in reversed(turned)] for name in names}


def field(value: Value, how: Written) -> str:
    if value is None:
        text = how.missing
    elif isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" " if how.blank else "T")
    elif isinstance(value, float):
        text = f"{value!r} " if how.blank else f"{value:.17e}"
    elif isinstance(value, bool):
        text = str(value).upper() if how.blank else str(value).lower()
    elif isinstance(value, int):
        text = f"{'-' * (value < 0)}0{abs(value)}" if how.blank else str(value)
    else:
        text = str(value)
    special = any(letter in text for letter in (how.sep, '"'))
    return '"' + text.replace('"', '""') + '"' if how.quoted or special else text


def source_of(table: Table, how: Written, folder: Path) -> Any:
    turned = shuffled(table, how)
    frame = frame_of(turned)
    if how.form == "csv":
        lines = [how.sep.join(f'"{name}"' if how.quoted else name for name in turned)]
        columns = list(turned.values())
        for row in range(frame.height):
            lines.append(how.sep.join(field(column[row], how) for column in columns))
        end = "\r\n" if how.crlf else "\n"
        path = folder / "a.csv"
        path.write_bytes((end.join(lines) + end).encode())
        return path
    if how.form == "parquet":
        frame.write_parquet(folder / "a.parquet")
        return folder / "a.parquet"
    exact = all(not isinstance(v, int) or abs(v) <= 2**53 for c in turned.values() for v in c)
    if how.form == "pandas" and not exact:  # whose gaps make numbers floats
        return frame
    return {"polars": frame, "pandas": frame.to_pandas, "pyarrow": frame.to_arrow}[how.form]


def schema_of(table: Table, how: Written) -> Schema:
    ignored = tuple(name for name in table if name != "g")
    levels = ("u", "v") if how.order % 2 else ("v", "u", "w")
    return Schema((Column("g", "nominal", levels=levels),), null=how.null, ignore=ignored)


def named(source: Any, schema: Schema, options: ReadOptions) -> bytes:
    with read_slices(source, schema=schema, options=options) as (_, frames):
        mark = Fingerprint(KEY, null_text(source, schema))
        for frame in frames:
            mark.add(frame)
    return mark.digest()


def old_named(source: Any, schema: Schema, options: ReadOptions) -> bytes:
    """The saboteur: as it was, what the schema calls missing counts as missing."""
    frame = read_columns(source, schema=schema, options=options)
    texts = [pl.when(pl.col(n) != schema.null).then(pl.col(n)) for n in frame.columns]
    texts = [t for t, d in zip(texts, frame.dtypes, strict=True) if d == pl.String]
    return fingerprint(frame.with_columns(texts), KEY)


def keeps(
    table: Table, how: Written, folder: Path, name: Callable[[Any, Schema, ReadOptions], bytes]
) -> bool:
    source = source_of(table, how, folder)
    source = source() if callable(source) else source
    return name(source, schema_of(table, how), ReadOptions(sep=how.sep)) == name_of(table, KEY)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), how=writings)
def test_C_any_writing_reading_and_schema_gives_the_name_computed_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, table: Table, how: Written
) -> None:
    assert keeps(table, how, tmp_path_factory.mktemp("c", numbered=True), named)


@pytest.mark.slow
def test_C_the_fuzz_catches_a_name_that_hangs_on_the_null_text(tmp_path: Path) -> None:
    case = st.tuples(tables(), writings)
    quick = settings(max_examples=5_000, deadline=None, database=None, phases=[Phase.generate])

    table, how = find(case, lambda one: not keeps(*one, tmp_path, old_named), settings=quick)

    assert keeps(table, how, tmp_path, named)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), how=writings)
def test_C_every_engine_gives_that_name(
    tmp_path_factory: pytest.TempPathFactory, table: Table, how: Written
) -> None:
    folder = tmp_path_factory.mktemp("e", numbered=True)
    source, schema = source_of(table, how, folder), schema_of(table, how)
    found = set()
    for name in ("numpy", "local", "duckdb"):
        worker = engine(name, ReadOptions(sep=how.sep))
        opened = source() if callable(source) else source
        data = worker.scan(opened, schema, key=KEY)
        found.add((bytes(data), DataSet.of(data).columns))
        worker.close()

    assert found == {(name_of(table, KEY), fingerprint(frame_of(table), KEY).columns)}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(table=tables(), data=st.data())
def test_C_a_changed_value_row_or_column_changes_the_name(
    table: Table, data: st.DataObject
) -> None:
    column = data.draw(st.sampled_from(list(table)))
    row = data.draw(st.integers(0, len(table["g"]) - 1))
    kind = column.rstrip("0123456789")
    value = data.draw(st.sampled_from("uv") if kind == "g" else st.none() | values_of(kind))
    changed = {**table, column: [*table[column][:row], value, *table[column][row + 1 :]]}
    others = [
        {k: [*v, v[row]] for k, v in table.items()},
        {k: v for k, v in table.items() if k != column},
        {f"{k}9" if k == column else k: v for k, v in table.items()},
    ]
    whole = fingerprint(frame_of(table), KEY)

    rows = [Counter(zip(*([form(v) for v in t[n]] for n in table), strict=True))
            for t in (table, changed)]  # fmt: skip

    assert (fingerprint(frame_of(changed), KEY) == whole) == (rows[0] == rows[1])
    for other in others:
        assert not other or fingerprint(frame_of(other), KEY) != whole


@pytest.mark.parametrize("null", ["", "-99", "x"])
def test_C_executors_of_a_cluster_give_that_name_from_rows_and_from_text(
    null: str, tmp_path: Path
) -> None:
    import json

    import pyarrow as pa

    from gibbous.disintegrate.spark.encoding import EncodeJob, encoded
    from gibbous.read.fingerprint import Seen

    table: Table = {"g": ["u", "v", "u"], "text0": ["-99", None, "x"], "whole1": [7, None, -2]}
    how = Written("csv", ",", False, False, "NA", False, null, 0, 0)
    schema, path = schema_of(table, how), source_of(table, how, tmp_path)
    by_text = EncodeJob(schema, root_of(KEY), 7, (), slab=2, paths=(str(path),), options=None)
    by_rows = EncodeJob(schema, root_of(KEY), 7, (), slab=2)
    batches = [pa.RecordBatch.from_pydict({"id": pa.array([0], pa.int64())})]

    for reports in (
        list(encoded(by_text, batches)),
        list(encoded(by_rows, frame_of(table).to_arrow().to_batches())),
    ):
        mark = Fingerprint(KEY)
        for batch in reports:
            told = json.loads(batch.column("report")[0].as_py() or "{}")
            if "sums" in told:
                mark.join(Seen(tuple(told["names"]), told["rows"], tuple(told["sums"])))
        assert mark.digest() == name_of(table, KEY)


@pytest.mark.parametrize(
    "spellings",
    [
        ["7", "7.0", "07", "+7", " 7 ", "7e0", "0.7E1", "70e-1"],
        ["0.1", ".1", "0.10", "1e-1", "00.1 "],
        ["2020-01-02", "2020-01-02T00:00", "2020-01-02 00:00:00", "2020-01-02T00:00:00.000000"],
        ["2020-01-02T12:30", "2020-01-02 12:30:00", "2020-01-02T12:30:00.000"],
        ["2020-01-02T12:30:00Z", "2020-01-02 13:30:00+01:00", "2020-01-02T07:30:00.0-0500"],
        ["true", "TRUE", "True", "1"],
        ["inf", "Infinity", "+inf"],
        MISSING,
        ["99999999999999999999", "+99999999999999999999", " 0099999999999999999999"],
    ],
)
def test_C_spellings_of_one_value_are_one_value_and_no_other(spellings: list[str]) -> None:
    names = {bytes(fingerprint(pl.DataFrame({"a": [text]}), KEY)) for text in spellings}
    others = ["8", "0.2", "2020-01-03", "2020-01-02T12:31", "2020-01-02T12:30Z1", "false", "-inf"]

    assert len(names) == 1
    assert names.isdisjoint(bytes(fingerprint(pl.DataFrame({"a": [o]}), KEY)) for o in others)
