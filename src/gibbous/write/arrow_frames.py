"""Synthetic rows as a pyarrow table with the types of the table that went in.

A dictionary has the levels of the schema for values, never those of the input: they are data.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Column, Schema
from gibbous.encode.column_types import type_text

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class ArrowShape:
    """What of a pyarrow table its synthetic rows have again: names and types, no value.

    Attributes:
        types: name -> Arrow type.
        nullable: names of fields that may hold null.
    """

    types: dict[str, Any] = field(default_factory=dict)
    nullable: frozenset[str] = frozenset()

    def polars_types(self) -> dict[str, str]:
        """name -> type as polars names it; dictionaries are left out."""
        found = {name: polars_type(kind) for name, kind in self.types.items()}
        return {name: text for name, text in found.items() if text}

    @property
    def texts(self) -> frozenset[str]:
        """Names of columns of text."""
        return text_names(self.polars_types().items())

    def frame(self, frame: pl.DataFrame, schema: Schema) -> Any:
        """Rows as `decode` makes them, as a pyarrow table."""
        import pyarrow as pa

        arrays, fields = [], []
        for values in frame:
            name, column = values.name, schema[values.name]
            arrays.append(arrow_column(values, column, self.types.get(name)))
            room = column.missing or name in self.nullable or name not in self.types
            fields.append(pa.field(name, arrays[-1].type, nullable=room))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def arrow_shape(table: Any, untyped: Container[str] = ()) -> ArrowShape:
    """The names of a pyarrow table and the types of its columns, but those of `untyped`."""
    fields = [field for field in table.schema if field.name not in untyped]
    nullable = frozenset(one.name for one in fields if one.nullable)
    return ArrowShape({one.name: one.type for one in fields}, nullable)


def text_names(types: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Names of columns of text, of (name, type) in the words of `type_text`."""
    return frozenset(name for name, text in types if text == "String")


def polars_type(kind: Any) -> str:
    """The polars type that holds an Arrow type; "" for dictionaries, and where there is none."""
    import polars as pl
    import pyarrow as pa

    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind):
        return ""
    try:
        empty = pl.from_arrow(pa.table({"one": pa.array([], type=kind)}))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException):
        return ""
    assert isinstance(empty, pl.DataFrame)
    return type_text(empty.schema["one"])


def arrow_column(values: pl.Series, column: Column, kind: Any) -> Any:
    """One column, as `decode` makes it, as an Arrow array; kind: Arrow type of the input, None for none."""
    import polars as pl
    import pyarrow as pa

    text = isinstance(values.dtype, pl.String | pl.Enum | pl.Categorical)
    ordered = isinstance(values.dtype, pl.Enum) and column.kind == "ordinal"
    if kind is not None and pa.types.is_dictionary(kind) and not column.binned:
        return _dictionary(values, column, kind)
    if kind is None or polars_type(kind) != ("String" if text else type_text(values.dtype)):
        if text and ordered:
            return _dictionary(
                values, column, pa.dictionary(pa.int32(), pa.large_string(), ordered=True)
            )
        return (values.cast(pl.String) if text else values).to_arrow()
    return (values.cast(pl.String) if text else values).to_arrow().cast(kind)


def _dictionary(values: pl.Series, column: Column, kind: Any) -> Any:
    import polars as pl
    import pyarrow as pa

    from gibbous.encode.levels import output_labels

    labels = output_labels(column).drop_nulls()
    codes = values.cast(pl.String).cast(pl.Enum(labels.cast(pl.String))).to_physical()
    index = kind.index_type if len(labels) <= 2 ** (kind.index_type.bit_width - 1) else pa.int32()
    levels = labels.to_arrow()
    try:
        levels = levels.cast(kind.value_type)
    except pa.ArrowException:  # levels of another kind, in the schema
        levels = labels.to_arrow()
    places = codes.cast(pl.Int64).to_arrow().cast(index)
    return pa.DictionaryArray.from_arrays(places, levels, ordered=kind.ordered)
