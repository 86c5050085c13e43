"""Any input (path or frame) -> a polars frame of plain columns under a declared schema. Start here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from gibbous.core.boundary import guarded
from gibbous.core.dataset import DataSet
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.schema import Schema
from gibbous.read.conform import check_header, check_years, conform, conform_names
from gibbous.read.csv_file import DroppedLines, ReadOptions, csv_names, csv_slices, read_csv
from gibbous.read.fields import shown
from gibbous.read.files import TEXT_ENDINGS, format_of, is_many
from gibbous.read.frames import frame_names, from_frame
from gibbous.read.parquet import parquet_slices, parquet_types, read_parquet
from gibbous.read.slices import gathered, row_slices
from gibbous.read.text_files import is_text_pattern, text_parts, text_slices

if TYPE_CHECKING:
    import polars as pl

    Slices = tuple[int | None, Iterator[pl.DataFrame]]

__all__ = [
    "DroppedLines",
    "ReadOptions",
    "ReadProbe",
    "null_text",
    "probe",
    "read_columns",
    "read_slices",
]


_DATABASES = ("duckdb", "sqlite", "postgres", "postgresql")


@dataclass(frozen=True, slots=True)
class ReadProbe:
    """What the head of an input says.

    Attributes:
        names: column names, checked.
        kind: "csv", "parquet" or "frame".
    """

    names: tuple[str, ...]
    kind: Literal["csv", "parquet", "frame"]


def read_columns(
    source: Any, *, schema: Schema | None = None, options: ReadOptions | None = None
) -> pl.DataFrame:
    """Read an input whole.

    Args:
        source: a path (.csv, .tsv, .csv.gz, .tsv.gz, .parquet), a folder of Parquet files or a
            pattern for their names, a pattern for the names of text files, the address of a table as for
            `read_slices`, or a pandas, polars or pyarrow frame. Never modified.
        schema: names the text that means missing in CSV; its columns must be there.
        options: separator, encoding, limits.
    Returns:
        All columns, also those the schema ignores. From CSV every column is String, and null stands
        for the declared null text alone; otherwise columns keep their types.
    Raises:
        InputRejected: the input is not what it says it is.
        SchemaMismatch: names or types do not fit.
        ResourceLimit: bytes, columns, or records beyond the limits.
        EngineFailure: the file changed while it was read.
    """
    options = options or ReadOptions()
    skip = frozenset(schema.ignore) if schema else frozenset()
    with _names_first(source, schema, options):
        if is_table(source):
            frame = _table(source, schema, options)
        elif not isinstance(source, str | os.PathLike):
            frame = from_frame(source, max_columns=options.max_columns, skip=skip)
        elif is_text_pattern(source):
            with text_slices(source, schema=schema, options=options) as (_, slices):
                frame = gathered(slices, options.limit)
        elif is_parquet(Path(source)):
            frame = read_parquet(Path(source), options, skip=skip)
        else:
            frame = read_csv(Path(source), options, null=_null(schema), expected=_width(schema))
    if schema is not None:
        conform(frame.schema, schema)
    check_years(frame)
    return frame


def _table(source: Any, schema: Schema | None, options: ReadOptions) -> pl.DataFrame:
    """A table of a database whole; without a schema the columns of types that are not read are left out."""
    from gibbous.read.databases.sources import table_slices, whole_table

    if schema is None:
        return whole_table(source, options)[0]
    with table_slices(source, schema=schema, options=options) as (_, slices):
        return gathered(slices, options.limit)


def read_slices(
    source: Any, *, schema: Schema, options: ReadOptions | None = None
) -> AbstractContextManager[Slices]:
    """Read an input in slices of rows: files and tables are never held whole.

    Args:
        source: as for `read_columns`; or a pattern for the names of text files, an address
            ("duckdb:///file.db::table", "sqlite:///file.db::table",
            "postgres://user@host/database::table"), an ibis Table, or a DuckDB relation.
        schema, options: as for `read_columns`.
    Returns:
        What gives, when it is entered, the number of rows (None where it is not known before they are
        read), and the slices in order (at least one), with the columns and types that `read_columns`
        gives.
    Raises:
        UsageError: an address names another kind of database, no table, or a password.
        InputRejected, SchemaMismatch, ResourceLimit, EngineFailure: as `read_columns`.
    """
    options = options or ReadOptions()
    if is_table(source):
        from gibbous.read.databases.sources import table_slices

        return table_slices(source, schema=schema, options=options)
    if not isinstance(source, str | os.PathLike):
        frame = read_columns(source, schema=schema, options=options)
        return nullcontext((frame.height, row_slices(frame)))
    if is_text_pattern(source):
        return text_slices(source, schema=schema, options=options)
    of_files = _parquet if is_parquet(Path(source)) else _text
    return of_files(Path(source), schema, options)


@contextmanager
def _parquet(path: Path, schema: Schema, options: ReadOptions) -> Iterator[Slices]:
    with ExitStack() as stack:
        with _names_first(path, schema, options):
            file = parquet_slices(path, options, skip=frozenset(schema.ignore))
            rows, slices = stack.enter_context(file)
        yield rows, map(check_years, slices)


@contextmanager
def _text(path: Path, schema: Schema, options: ReadOptions) -> Iterator[Slices]:
    import polars as pl

    null, expected = _null(schema), _width(schema)
    with csv_slices(path, options, null=null, expected=expected) as (names, rows, slices):
        conform(dict.fromkeys(names, pl.String()), schema)
        yield rows, slices


def probe(source: Any, *, options: ReadOptions | None = None) -> ReadProbe:
    """Look at the head of an input, in under two seconds whatever its size; raises as `read_columns`."""
    options = options or ReadOptions()
    if not isinstance(source, str | os.PathLike):
        frame = from_frame(source, max_columns=options.max_columns, skip=frozenset())
        return ReadProbe(tuple(frame.columns), "frame")
    path = Path(source)
    if is_parquet(path):
        return ReadProbe(tuple(parquet_types(path, options)), "parquet")
    first = text_parts(path)[0] if is_text_pattern(path) else path
    return ReadProbe(tuple(csv_names(first, options)), "csv")


@contextmanager
def _names_first(source: Any, schema: Schema | None, options: ReadOptions) -> Iterator[None]:
    """What is wrong with a column is not said before its name is known to be one: it may be a value."""
    refused = None
    try:
        yield
    except SchemaMismatch as error:
        refused = error
    if refused is None:
        return
    if schema is not None and not is_table(source):  # whose names were looked at first
        paths = isinstance(source, str | os.PathLike)
        names = probe(source, options=options).names if paths else frame_names(source)
        conform_names(names, schema)
    raise refused


def null_text(source: Any, schema: Schema) -> str:
    """The text that a null of this source stood for: `read_slices` has taken it out of text files."""
    text = isinstance(source, str | os.PathLike) and "://" not in os.fspath(source)
    return schema.null if text and os.fspath(source).lower().endswith(TEXT_ENDINGS) else ""


def is_table(source: Any) -> bool:
    """Whether a source is a table of a database; nothing is imported or opened to find out.

    UsageError for the address of a database without a table.
    """
    scheme, _, rest = source.partition("://") if isinstance(source, str) else ("", "", "")
    address = "::" in rest
    if rest and not address and scheme.lower() in _DATABASES:
        what = f" {shown(source)}" if "@" not in rest else ""  # which may hold a password
        raise UsageError(
            "ADDRESS",
            f"The address{what} names no table.",
            "An address ends with ::TABLE: duckdb:///file.db::table.",
            "Add :: and the name of a table or view of the database.",
        )
    return address or type(source).__module__.partition(".")[0] in ("ibis", "duckdb", "_duckdb")


def name_of(source: Any) -> str:
    """What a table is called: its file, its folder, the folder of a pattern, or itself; "" for a frame."""
    if not isinstance(source, str | os.PathLike):
        return ""
    if is_table(source):
        return str(source).rpartition("::")[2]
    path = Path(source)
    pattern = not path.is_dir() and (is_text_pattern(path) or is_many(path))
    return (path.parent if pattern else path).name.partition(".")[0]


def is_one_file(source: Any) -> bool:
    """Whether a source is the path of one file; not a folder, a pattern, a table or a frame."""
    path = isinstance(source, str | os.PathLike) and not is_table(source)
    return path and not is_many(Path(source)) and not is_text_pattern(source)


def is_parquet(path: Path) -> bool:
    """Whether a path is that of Parquet: a file, a folder or a pattern."""
    return is_many(path) or format_of(path) == "parquet"


def _width(schema: Schema | None) -> int | None:
    """Columns of the data; None without a schema."""
    person = bool(schema and schema.unit and schema.unit.column)
    return len(schema) + person if schema else None


def _null(schema: Schema | None) -> str:
    if schema is None:
        return ""
    for column in schema:
        if schema.null in (*map(str, column.levels), column.other):
            raise UsageError(
                "NULLTEXT",
                f"Column {shown(column.name)} has a level that is also the null text of the schema.",
                "In text files one text means missing, and it is not a level.",
                "Choose another null in the schema, or read the data from Parquet.",
            )
    return schema.null


def usable_columns(source: Any, options: ReadOptions | None) -> tuple[pl.DataFrame, list[str]]:
    """Read a source as `read_columns` does; columns of other types are left out, not refused.

    Returns:
        The frame, and the names of the columns that it lacks, in order.
    Raises:
        As `read_columns`, types aside; InputRejected for names that look like a record.
    """
    options = options or ReadOptions()
    if is_table(source):
        from gibbous.read.databases.sources import whole_table

        frame, names = whole_table(source, options)
    elif not isinstance(source, str | os.PathLike):
        names = frame_names(source)
        frame = from_frame(source, max_columns=options.max_columns, skip=frozenset(names))
    else:
        seen = probe(source, options=options)
        names = list(seen.names)
        if seen.kind == "csv":
            frame = read_columns(source, options=options)
        else:
            frame = read_parquet(Path(source), options, skip=frozenset(names))
    check_header(names, frame)
    check_years(frame)
    return frame, [name for name in names if name not in frame.columns]


@guarded
def dataset(source: object, key: bytes, schema: Schema | None, options: object) -> DataSet:
    """See `Ledger.dataset`."""
    # Executors load this file, too.
    from gibbous.privacy.ledger.datasets import file_place, file_stamp
    from gibbous.read.fingerprint import fingerprint

    reading = cast("ReadOptions | None", options)
    where = file_place(source, key), file_stamp(source, key)
    if schema is None:
        frame, null = usable_columns(source, reading)[0], ""
    else:
        frame = read_columns(source, schema=schema, options=reading)
        null = null_text(source, schema)
    return fingerprint(frame, key, null).read_from(*where)
