"""Columns in, the Arrow schema that a Parquet file carries out: nominal dictionaries have no order there.

Polars marks every Enum as ordered. What is written here says it of ordinal columns alone, and has the
labels of columns in the metadata of their fields, and what pandas reads: types that hold missing.

Source:
    Arrow columnar format, Schema.fbs and Message.fbs; FlatBuffers, "Internals".
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl

_UNITS = ("s", "ms", "us", "ns")
_FORMATS = {"byte": "<B", "bool": "<?", "short": "<h", "int": "<i", "long": "<q"}


def file_metadata(columns: Mapping[str, pl.DataType], schema: Schema) -> dict[str, str]:
    """Metadata of a Parquet file: functions of the schema and of the types (name -> polars type) alone."""
    told = pandas_attrs(schema)
    said = {"pandas": _pandas(columns, schema)}
    said |= {"PANDAS_ATTRS": json.dumps(told)} if told else {}
    fields = [_field(schema[name], dtype, at) for at, (name, dtype) in enumerate(columns.items())]
    # Arrow takes the metadata of a file from here, other readers from the file itself.
    return {"ARROW:schema": b64encode(_message(fields, said)).decode(), **said}


def pandas_attrs(schema: Schema) -> dict[str, Any]:
    """What the schema says of columns to people, as the `attrs` of a pandas frame."""
    told = {c.name: dict(texts(c)) for c in schema if texts(c)}
    return {"columns": told} if told else {}


def texts(column: Column) -> tuple[tuple[str, Any], ...]:
    """What the schema says of a column to people, as (name, text); labels of levels are a dictionary."""
    names = ("label", "description", "measured_in", "note")
    said = [(name, getattr(column, name)) for name in names]
    labels = {str(level): text for level, text in column.level_labels}
    return (
        *((name, text) for name, text in said if text),
        *([("labels", labels)] if labels else ()),
    )


def _pandas(columns: Mapping[str, pl.DataType], schema: Schema) -> str:
    """What pandas takes types from, so that whole numbers and booleans with missing stay what they are."""
    listed = []
    for name, dtype in columns.items():
        text = str(dtype) if dtype.is_integer() or dtype.is_float() else ""
        numpy_type = text.lower()
        if schema[name].missing and dtype.is_integer():
            numpy_type = text
        elif schema[name].missing and text == "" and str(dtype) == "Boolean":
            numpy_type = "boolean"
        listed.append(
            {
                "name": name, "field_name": name, "pandas_type": text.lower() or "unicode",
                "numpy_type": numpy_type or "object", "metadata": None,
            }
        )  # fmt: skip
    return json.dumps({"index_columns": [], "column_indexes": [], "columns": listed})


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Table:
    """A FlatBuffers table: (slot, kind, value); kinds are scalars, or "ref" for text, table or vector."""

    fields: tuple[tuple[int, str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Vector:
    members: tuple[_Table, ...]


def _field(column: Column, dtype: pl.DataType, number: int) -> _Table:
    import polars as pl

    union, inner = _type(dtype)
    fields: list[tuple[int, str, Any]] = [
        (0, "ref", _Text(column.name)), (1, "bool", True), (2, "byte", union), (3, "ref", inner),
        (5, "ref", _Vector(())),
    ]  # fmt: skip
    metadata = [(n, t if isinstance(t, str) else json.dumps(t)) for n, t in texts(column)]
    if isinstance(dtype, pl.Enum | pl.Categorical):
        index = _Table(((0, "int", 32), (1, "bool", True)))
        ordered = column.kind == "ordinal"
        coding = _Table(((0, "long", number), (1, "ref", index), (2, "bool", ordered)))
        fields.append((4, "ref", coding))
    if isinstance(dtype, pl.Enum):  # from which polars has the declared levels
        kept = "".join(f"{len(one.encode())};{one}" for one in dtype.categories)
        metadata.append(("_PL_ENUM_VALUES2", kept))
    return _Table((*fields, (6, "ref", _pairs(dict(metadata)))))


def _pairs(metadata: Mapping[str, str]) -> _Vector:
    pairs = [(_Text(name), _Text(text)) for name, text in metadata.items()]
    return _Vector(tuple(_Table(((0, "ref", name), (1, "ref", text))) for name, text in pairs))


def _type(dtype: pl.DataType) -> tuple[int, _Table]:
    """The member of Arrow's union of types, and its table."""
    import polars as pl

    if isinstance(dtype, pl.Datetime):
        unit = (0, "short", _UNITS.index(dtype.time_unit))
        zone = ((1, "ref", _Text(dtype.time_zone)),) if dtype.time_zone else ()
        return 10, _Table((unit, *zone))
    if isinstance(dtype, pl.Decimal):
        size = (dtype.precision or 38, dtype.scale, 128)
        return 7, _Table(tuple((slot, "int", value) for slot, value in enumerate(size)))
    if dtype.is_integer():
        bits = int(str(dtype).lstrip("UInt"))
        return 2, _Table(((0, "int", bits), (1, "bool", dtype.is_signed_integer())))
    if dtype.is_float():
        return 3, _Table(((0, "short", 1 if dtype == pl.Float32 else 2),))
    if dtype == pl.Date:
        return 8, _Table(((0, "short", 0),))
    return {pl.Boolean: 6, pl.String: 20}.get(dtype.base_type(), 5), _Table(())


def _message(fields: list[_Table], metadata: Mapping[str, str]) -> bytes:
    """An encapsulated Arrow message that holds a schema."""
    members = (1, "ref", _Vector(tuple(fields))), (2, "ref", _pairs(metadata))
    schema = _Table(((0, "short", 0), *members))
    root = _Table(((0, "short", 4), (1, "byte", 1), (2, "ref", schema), (3, "long", 0)))
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _write(out, root))
    out += bytes(-len(out) % 8)
    return struct.pack("<iI", -1, len(out)) + bytes(out)


def _write(out: bytearray, thing: _Table | _Vector | _Text) -> int:
    """Append a value, what it refers to behind it; returns where it lies."""
    if isinstance(thing, _Text):
        text = thing.text.encode()
        place = _room(out, 4 + len(text) + 1)
        struct.pack_into("<I", out, place, len(text))
        out[place + 4 : place + 4 + len(text)] = text
        return place
    if isinstance(thing, _Vector):
        place = _room(out, 4 + 4 * len(thing.members))
        struct.pack_into("<I", out, place, len(thing.members))
        for number, member in enumerate(thing.members, 1):
            _refer(out, place + 4 * number, member)
        return place
    slots = 1 + max((slot for slot, _, _ in thing.fields), default=-1)
    size = 8 + 8 * len(thing.fields)  # each field has eight bytes, at a multiple of eight
    jumps = _room(out, 4 + 2 * slots)
    place = _room(out, size)
    struct.pack_into("<HH", out, jumps, 4 + 2 * slots, size)
    struct.pack_into("<i", out, place, place - jumps)
    for at, (slot, kind, value) in enumerate(thing.fields):
        struct.pack_into("<H", out, jumps + 4 + 2 * slot, 8 + 8 * at)
        if kind == "ref":
            _refer(out, place + 8 + 8 * at, value)
        else:
            struct.pack_into(_FORMATS[kind], out, place + 8 + 8 * at, value)
    return place


def _refer(out: bytearray, place: int, thing: _Table | _Vector | _Text) -> None:
    struct.pack_into("<I", out, place, _write(out, thing) - place)


def _room(out: bytearray, size: int) -> int:
    out += bytes(-len(out) % 8)
    place = len(out)
    out += bytes(size)
    return place
