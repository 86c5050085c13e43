"""Do the columns of the data and of the schema agree: names, and types that can be used at all."""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import InputRejected, ResourceLimit, SchemaMismatch
from gibbous.core.schema import Schema
from gibbous.read.fields import listed, shown

if TYPE_CHECKING:
    import polars as pl

_DIGITS = 38  # of a decimal
_NO_NAME = r"^\s*[+-]?\.?[0-9][0-9.,:/ %-]*([eE][+-]?[0-9]+)?\s*$"  # numbers, days, times


def conform(columns: Mapping[str, pl.DataType], schema: Schema) -> None:
    """Check names and types (name -> polars type) against a schema; else SchemaMismatch.

    Columns in `ignore` and the person identifier may stand in the data beside the schema's columns;
    everything else is unexpected.
    """
    conform_names(columns, schema)
    described = set(schema.names) | ({schema.unit.column} if schema.unit else set())
    check_types({name: dtype for name, dtype in columns.items() if name in described})


def conform_names(names: Iterable[str], schema: Schema) -> None:
    """Check names against a schema; SchemaMismatch lists the missing ones, and `undeclared` ones."""
    given = list(names)
    person = [schema.unit.column] if schema.unit and schema.unit.column else []
    needed = [*schema.names, *person]
    missing = [n for n in needed if n not in set(given)]
    known = {*needed, *schema.ignore}
    extra = [n for n in given if n not in known]
    if not missing and not extra:
        return
    parts = [f"missing from the data: {listed(missing)}"] if missing else []
    parts += [f"in the data but not in the schema: {undeclared(extra, given)}"] if extra else []
    raise SchemaMismatch(
        "COLUMNS",
        f"The columns of the data and of the schema differ; {'; '.join(parts)}.",
        "Every column of the schema is in the data; other columns are named in ignore.",
        "Describe or ignore the extra columns, and check the spelling and the header line.",
    )


def undeclared(extra: Sequence[str], given: Sequence[str]) -> str:
    """Undeclared names among given ones, for a message; how many, where most are undeclared.

    A file without a header has values in their place.
    """
    if 2 * len(extra) < len(given):
        return listed(extra)
    return f"{len(extra):,} of {len(given):,} columns (names withheld: they may be a record)"


def check_header(names: Sequence[str], columns: Iterable[pl.Series]) -> None:
    """Raise InputRejected where half of the names or more look like the first record; none is shown.

    A name does where it is a number or a day, or occurs among the values of its column.
    """
    import polars as pl

    alike = pl.Series(names, dtype=pl.String).str.contains(_NO_NAME).sum()
    texts = (c for c in columns if c.dtype in (pl.String, pl.Categorical, pl.Enum))
    alike += sum(bool((c.cast(pl.String) == c.name).any()) for c in texts)
    if names and 2 * alike >= len(names):
        raise InputRejected(
            "NOHEADER",
            "Half or more of the column names look like values: they may be the first record.",
            "The first line of a text file, and the names of any other table, say what the columns are.",
            "Add a header line. If these are names, write them with a letter in front.",
        )


def check_types(columns: Mapping[str, Any], *, stored: bool = False) -> None:
    """Raise SchemaMismatch for types (by name) that are not one plain value a row.

    Args:
        stored: as they stand in a file or frame, before `plain` makes numbers of decimals, and days
            of times with a zone.
    """
    import polars as pl

    plain = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)
    for name, dtype in columns.items():
        usable = dtype in plain or dtype.is_integer() or dtype.is_float()
        days = isinstance(dtype, pl.Datetime) and (stored or dtype.time_zone is None)
        decimal = stored and isinstance(dtype, pl.Decimal) and (dtype.precision or 0) <= _DIGITS
        if not (usable or days or decimal):
            raise SchemaMismatch(
                "TYPE",
                f"Column {shown(name)} has type {_words(dtype)}.",
                "Columns are text, whole numbers, floats, decimals, booleans or days.",
                "Convert the column, or drop it from the data.",
            )


def plain(columns: Mapping[str, Any]) -> list[pl.Expr]:
    """Days of a time zone as its calendar shows them, and decimals as numbers: what the rest counts."""
    import polars as pl

    zoned = [n for n, t in columns.items() if isinstance(t, pl.Datetime) and t.time_zone]
    decimals = {n: t.scale for n, t in columns.items() if isinstance(t, pl.Decimal)}
    return [
        *(pl.col(name).dt.replace_time_zone(None) for name in zoned),
        *(pl.col(n).cast(pl.Float64 if scale else pl.Int128) for n, scale in decimals.items()),
    ]


def usable(name: str, dtype: Any) -> bool:
    """Whether a column's type is one that `check_types` takes."""
    try:
        check_types({name: dtype}, stored=True)
    except SchemaMismatch:
        return False
    return True


def _words(dtype: Any) -> str:
    if getattr(dtype, "precision", 0):
        return f"decimal of {dtype.precision} digits"
    # The text of a nested type may hold names, of an Enum its categories: the base name is enough.
    return str(dtype.base_type().__name__).lower()


def check_names(names: Sequence[str], max_columns: int) -> None:
    """Refuse blank, double, nearly double names and patterns; by place: a name may be a value of a record.

    Raises:
        ResourceLimit: there are more than `max_columns`.
        InputRejected: a name is blank, reads as a pattern, has a byte order mark, occurs twice, or differs
            from another one only by case, by Unicode form (NFC) or by outer blanks.
    """
    if len(names) > max_columns:
        raise ResourceLimit(
            "TOOMANYCOLUMNS",
            f"The input has {len(names):,} columns.",
            f"At most {max_columns:,}.",
            "Keep the columns that are needed, or raise max_columns.",
        )
    seen: dict[str, int] = {}
    folded: dict[str, int] = {}
    for place, name in enumerate(names):
        if not name.strip():
            raise _rejected(
                "BLANKNAME",
                f"Column {place + 1} has no name",
                "Name it in the header line, or leave it out (pandas: to_csv(index=False)).",
            )
        if "\ufeff" in name:
            raise _rejected(
                "BYTEORDER",
                f"The name of column {place + 1} has a byte order mark in it, which nobody sees",
                "Save the file again as UTF-8: a mark stands once, before all else, or not at all.",
            )
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise _rejected(
                "PATTERN",
                f"The name of column {place + 1} reads as a pattern of columns",
                "Rename it: '*', and a name from '^' to '$', stand for several columns.",
            )
        if name in seen:
            places = [i + 1 for i, other in enumerate(names) if other == name]
            raise _rejected(
                "DUPCOL",
                f"One column name occurs {len(places)} times (positions "
                f"{', '.join(map(str, places[:10]))})",
                "Rename one.",
            )
        seen[name] = place
        same = folded.setdefault(unicodedata.normalize("NFC", name.strip()).casefold(), place)
        if same != place:
            raise _rejected(
                "NEARNAMES",
                f"Two column names (positions {same + 1}, {place + 1}) differ only by case, Unicode form "
                "or outer blanks",
                "Rename one.",
            )


def _rejected(name: str, wrong: str, fix: str) -> InputRejected:
    return InputRejected(name, f"{wrong}.", "Names are unique and not blank.", fix)


_FIRST, _LAST = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
_DAY = datetime.timedelta(days=1)


def check_years(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame; SchemaMismatch for infinite days, which other programs write and no calendar does."""
    import polars as pl

    for column in frame:
        dtype = column.dtype
        times = isinstance(dtype, pl.Datetime) and dtype.time_unit != "ns"  # which end in 2262
        if not (dtype == pl.Date or times):
            continue
        first, before, last = pl.Series([_FIRST, _LAST - _DAY, _LAST]).cast(dtype).to_physical()
        number = column.to_physical()
        # All of the last day is in.
        if bool(((number < first) | (number >= 2 * last - before)).any()):
            raise SchemaMismatch(
                "NOTADAY",
                f"Column {shown(column.name)} has days that are infinite, or after the year 9999.",
                "Days lie between the years 1 and 9999.",
                "Make them missing (NULL) in a view, and set missing = true in the schema.",
            )
    return frame
