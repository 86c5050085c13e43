"""A pandas, polars or pyarrow frame -> a polars frame of plain columns; the input is not modified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbous.core.errors import EngineFailure, InputRejected, SchemaMismatch, UsageError
from gibbous.read.conform import check_names, check_types, plain, usable
from gibbous.read.fields import shown

if TYPE_CHECKING:
    import polars as pl

_OBJECTS = (
    "string", "empty", "boolean", "integer", "floating", "decimal", "date", "datetime", "datetime64"
)  # fmt: skip
_EXACT = 1 << 53
_STOPS = ("decimal256", "month_day_nano_interval")


def from_frame(source: Any, *, max_columns: int, skip: frozenset[str]) -> pl.DataFrame:
    """Take a frame of pandas (without its index), polars (lazy, too) or pyarrow in.

    Args:
        skip: columns that the schema ignores; they are left out when their type is not usable.
    Returns:
        A polars frame. NaN of pandas is null; NaN of polars and pyarrow stays a number.
    Raises:
        UsageError: not a frame.
        InputRejected: names that are double, blank, not text, or more than `max_columns`.
        SchemaMismatch: a column of mixed or unusable type.
    """
    family = type(source).__module__.partition(".")[0]
    if family not in ("pandas", "polars", "pyarrow") or not hasattr(type(source), "columns"):
        raise UsageError(
            "SOURCE",
            f"The input is a {type(source).__name__}.",
            "It is a path (.csv, .csv.gz, .tsv, .parquet) or a pandas, polars or pyarrow frame.",
            "Pass one of these.",
        )
    if family == "pandas":
        _check_names(source.columns, max_columns)
        return _from_pandas(source, skip)
    import polars as pl

    if family == "pyarrow":
        _check_names(source.schema.names, max_columns)
        types = {one.name: str(one.type).partition("(")[0] for one in source.schema}
        wide = [name for name, kind in types.items() if kind in _STOPS]
        for name in wide:  # polars stops the process's stack at one
            if name not in skip:
                raise _unusable(name, types[name])
        narrow = source.select([n for n in source.schema.names if n not in wide])
        source = _guarded(lambda: pl.from_arrow(narrow), "The pyarrow table")
    if isinstance(source, pl.LazyFrame):
        lazy = source
        source = _guarded(lazy.collect, "The lazy frame")
    check_names(source.columns, max_columns)
    return _plain(source, skip)


def series_of(name: str, values: Any) -> pl.Series:
    """A sequence as a column; SchemaMismatch for one of pandas of mixed or unusable type."""
    import polars as pl

    if type(values).__module__.partition(".")[0] != "pandas":
        return pl.Series(name, values)
    import pandas as pd

    return _pandas_column(name, pd.Series(values))


def frame_names(frame: Any) -> list[str]:
    """Column names of a pandas, polars or pyarrow frame that are text; none of anything else."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(getattr(frame, "schema", None), "names"):
        return list(frame.schema.names)
    return [name for name in getattr(frame, "columns", ()) if isinstance(name, str)]


def _check_names(names: Any, max_columns: int) -> None:
    if any(not isinstance(n, str) for n in names):
        raise InputRejected(
            "NAMES",
            "A column name of the frame is not text.",
            "Names are text.",
            "Rename the columns, for example frame.columns = frame.columns.map(str).",
        )
    check_names(list(names), max_columns)


def _from_pandas(frame: Any, skip: frozenset[str]) -> pl.DataFrame:
    import polars as pl

    columns = []
    for place, name in enumerate(frame.columns):
        try:
            columns.append(_pandas_column(name, frame.iloc[:, place]))
        except SchemaMismatch:
            if name not in skip:
                raise
    return _plain(pl.DataFrame(columns), skip)


def _pandas_column(name: str, values: Any) -> pl.Series:
    import pandas as pd
    import polars as pl

    if isinstance(values.dtype, pd.CategoricalDtype):
        labels = _pandas_column(name, pd.Series(values.cat.categories))
        codes = pl.Series(values.cat.codes.to_numpy())
        return labels.gather(codes.set(codes < 0, None)).alias(name)
    if values.dtype != object:
        if not hasattr(values.dtype, "kind") or values.dtype.kind not in "biufMOUST":
            raise _unusable(name, str(values.dtype))
        found: pl.Series = _guarded(lambda: pl.from_pandas(values), f"Column {shown(name)}")
        return found.alias(name)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind not in _OBJECTS:
        raise _unusable(name, "mixed types" if "mixed" in kind else kind)
    plain = values.astype(object).where(values.notna(), None).tolist()
    return _objects(name, plain, kind)


def _objects(name: str, values: list[Any], kind: str) -> pl.Series:
    import polars as pl

    types: dict[str, tuple[Any, ...]] = {
        "string": (pl.String,),
        "boolean": (pl.Boolean,),
        "integer": (pl.Int64, pl.Int128),
        "floating": (pl.Float64,),
        "date": (pl.Date,),
    }
    if kind == "decimal":  # polars makes nulls of those that one common scale does not hold
        held = [v for v in values if v is not None]
        whole = all(v.is_finite() and v == v.to_integral_value() for v in held)
        large = (v for v in held if v.is_finite() and abs(v) > _EXACT)
        if not whole and any(v == v.to_integral_value() for v in large):
            raise _unusable(name, "decimal, some of which floats do not hold")
        of, kind = (int, "integer") if whole else (float, "floating")
        values = [None if v is None else of(v) for v in values]
    for dtype in types.get(kind, (None,)):
        try:
            return pl.Series(name, values, dtype=dtype, strict=True)
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            continue
    raise _unusable(name, kind)


def _plain(frame: pl.DataFrame, skip: frozenset[str]) -> pl.DataFrame:
    kept = {n: dtype for n, dtype in frame.schema.items() if n not in skip or usable(n, dtype)}
    check_types(kept, stored=True)
    return frame.select(list(kept)).with_columns(plain(kept))


def _guarded(action: Any, what: str) -> Any:
    """Convert; whatever the libraries raise is replaced, because its text may hold values."""
    import polars as pl

    missing = False
    try:
        return action()
    except ImportError:
        missing = True
    except (pl.exceptions.PolarsError, ValueError, TypeError, OverflowError, NotImplementedError):
        pass
    except Exception as error:  # pyarrow's own classes, without importing it
        if not type(error).__module__.startswith("pyarrow"):
            raise
    if missing:
        raise EngineFailure(
            "PYARROW",
            f"{what} needs pyarrow to be converted.",
            "pandas and pyarrow frames are converted through it.",
            "Install pyarrow, or pass a polars frame or a path.",
        )
    raise SchemaMismatch(
        "TYPE",
        f"{what} cannot be converted.",
        "Columns are text, whole numbers, floats, decimals, booleans or days.",
        "Convert it to one of these.",
    )


def _unusable(name: str, what: str) -> SchemaMismatch:
    return SchemaMismatch(
        "TYPE",
        f"Column {shown(name)} has type {what}.",
        "A column holds one plain type: text, whole numbers, floats, decimals, booleans or days.",
        "Convert the column, for example with astype(str).",
    )
