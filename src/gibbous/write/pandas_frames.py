"""Synthetic rows as a pandas frame with the types of the frame that went in.

A categorical has the levels of the schema for categories, never those of the input: they are data.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Column, Schema
from gibbous.encode.column_types import type_text
from gibbous.write.arrow_schema import pandas_attrs

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class PandasShape:
    """What of a pandas frame its synthetic rows have again: names and types, no value.

    Attributes:
        dtypes: name -> type; a categorical is its order flag and the type of its categories.
        index, columns: names of the index and of the columns' own axis.
        texts: names of columns of text.
    """

    dtypes: dict[str, Any] = field(default_factory=dict)
    index: Any = None
    columns: Any = None
    texts: frozenset[str] = frozenset()

    def polars_types(self) -> dict[str, str]:
        """name -> type as polars names it, where there is one."""
        found = {name: _polars(dtype) for name, dtype in self.dtypes.items()}
        return {name: text for name, text in found.items() if text}

    def frame(self, frame: pl.DataFrame, schema: Schema) -> Any:
        """Rows as `decode` makes them, as pandas."""
        import pandas as pd

        columns = {
            one.name: _column(one, schema[one.name], self.dtypes.get(one.name)) for one in frame
        }
        out = pd.DataFrame(columns, index=pd.RangeIndex(frame.height, name=self.index))
        out.columns.name = self.columns
        out.attrs = pandas_attrs(schema)
        return out


@dataclass(frozen=True, slots=True)
class _Categorical:
    ordered: bool
    inner: Any


def pandas_shape(frame: Any, untyped: Container[str] = ()) -> PandasShape:
    """The names of a pandas frame and the types of its columns, but those of `untyped`."""
    import pandas as pd

    dtypes, texts = {}, []
    for place, name in enumerate(frame.columns):
        if name in untyped:
            continue
        dtype = frame.dtypes.iloc[place]
        if str(dtype) == "object" or pd.api.types.is_string_dtype(dtype):
            kind = pd.api.types.infer_dtype(frame.iloc[:, place], skipna=True)
            texts += [name] if kind == "string" else []
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = _Categorical(bool(dtype.ordered), dtype.categories.dtype)
        dtypes[name] = dtype
    return PandasShape(dtypes, frame.index.name, frame.columns.name, frozenset(texts))


def _polars(dtype: Any) -> str:
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        from gibbous.write.arrow_frames import polars_type

        return polars_type(dtype.pyarrow_dtype)
    name = str(dtype)
    if name in ("bool", "boolean"):
        return "Boolean"
    if name.lower().removeprefix("u").rstrip("0123456789") in ("int", "float"):
        return name[0].upper() + name[1:].replace("int", "Int") if name[0] in "uU" else name.title()
    if not name.startswith("datetime64["):
        return ""
    unit, _, zone = name[len("datetime64[") : -1].partition(", ")
    return f"Datetime[{'ms' if unit == 's' else unit}{', ' + zone if zone else ''}]"


def _column(values: pl.Series, column: Column, dtype: Any) -> Any:
    import pandas as pd
    import polars as pl

    if isinstance(dtype, _Categorical) and not column.binned:
        return _categorical(values, column, dtype)
    if isinstance(dtype, pd.ArrowDtype):
        from gibbous.write.arrow_frames import arrow_column

        array = arrow_column(values, column, dtype.pyarrow_dtype)
        return pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type)))
    text = isinstance(values.dtype, pl.String | pl.Enum | pl.Categorical)
    if text and (str(dtype) == "object" or isinstance(dtype, pd.StringDtype)):
        return pd.Series(values.cast(pl.String).to_list(), dtype=dtype)
    if isinstance(values.dtype, pl.Enum):
        return _categorical(values, column, _Categorical(column.kind == "ordinal", None))
    if str(dtype) == "object":
        return pd.Series(values.to_list(), dtype=object)
    return _plain(values, column, dtype)


def _categorical(values: pl.Series, column: Column, dtype: _Categorical) -> Any:
    import pandas as pd
    import polars as pl

    from gibbous.encode.levels import output_labels

    labels = output_labels(column).drop_nulls()
    codes = values.cast(pl.String).cast(pl.Enum(labels.cast(pl.String))).to_physical()
    categories = pd.Index(labels.to_list())
    if dtype.inner is not None:
        try:
            narrow = categories.astype(dtype.inner)
        except (TypeError, ValueError, OverflowError):  # levels of another kind, in the schema
            narrow = categories
        categories = narrow if list(narrow) == list(categories) else categories
    kind = pd.CategoricalDtype(categories, ordered=dtype.ordered)
    places = codes.cast(pl.Int32).fill_null(-1).to_numpy()
    return pd.Series(pd.Categorical.from_codes(places, dtype=kind))


def _plain(values: pl.Series, column: Column, dtype: Any) -> Any:
    """Numbers, booleans and times: the type given where it fits, and room for missing where it is allowed."""
    import pandas as pd
    import polars as pl

    kind = values.dtype
    asked = str(dtype) if _polars(dtype) == type_text(kind) else ""
    if kind == pl.Boolean or kind.is_integer() or asked in ("Float32", "Float64"):
        name = asked or ("bool" if kind == pl.Boolean else type_text(kind).lower())
        if column.missing and name[0].islower():  # whether or not one was drawn
            name = "boolean" if kind == pl.Boolean else type_text(kind)
        if name[0].islower() and name != "boolean":
            return pd.Series(values.to_numpy().copy(), dtype=name)
        data = values.fill_null(value=False if kind == pl.Boolean else 0).to_numpy().copy()
        array: Any = {"b": pd.arrays.BooleanArray, "F": pd.arrays.FloatingArray}.get(
            name[0], pd.arrays.IntegerArray
        )
        return pd.Series(array(data, values.is_null().to_numpy().copy()))
    if kind.is_float():
        return pd.Series(values.to_numpy().copy())
    found = values.to_pandas()
    return found.astype(asked) if asked.startswith("datetime64") else found
