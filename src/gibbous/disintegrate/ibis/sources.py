"""Any source of the engine -> slices of plain rows: files, tables of databases, ibis tables, relations.

Rows come as Arrow batches and are checked by the code that checks files. Whether a column of times
holds days is decided over all of its rows first, as it is for files. Texts of libraries are withheld.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Schema
from gibbous.disintegrate.ibis import databases, postgres, sqlite, texts
from gibbous.disintegrate.ibis.addresses import address_of
from gibbous.disintegrate.ibis.databases import Rows
from gibbous.disintegrate.ibis.patience import Here, Patience
from gibbous.read.conform import check_years, conform_names
from gibbous.read.frames import frame_names, from_frame
from gibbous.read.slices import whole_only
from gibbous.read.source import ReadOptions, read_slices

if TYPE_CHECKING:
    import polars as pl

Slices = tuple[int, "Iterator[pl.DataFrame]"]
_OPENERS: dict[str, Callable[[str, str], AbstractContextManager[Rows]]] = {
    "duckdb": databases.duckdb_table,
    "sqlite": sqlite.sqlite_table,
    "postgres": postgres.postgres_table,
}


@contextmanager
def opened(source: Any, *, schema: Schema, options: ReadOptions) -> Iterator[Slices]:
    """Open a source.

    Args:
        source: a path, a folder or a pattern of Parquet files, a pattern of CSV files; an address
            ("duckdb:///file.db::table", "sqlite:///file.db::table",
            "postgres://user@host/database::table"); an ibis Table, a DuckDB relation; or a frame.
        schema: the declared schema.
        options: how text files are read; limits.
    Yields:
        The number of rows, and the slices in order (at least one).
    Raises:
        UsageError, InputRejected, SchemaMismatch, ResourceLimit, EngineFailure: no cell value.
    """
    with ExitStack() as stack:
        rows = _rows(source, stack)
        if rows is None:
            several = isinstance(source, str | os.PathLike) and texts.is_pattern(source)
            read = texts.text_slices if several else read_slices
            yield stack.enter_context(read(source, schema=schema, options=options))
            return
        patience = Patience() if rows.elsewhere else Here()
        stack.callback(patience.close)
        person = schema.unit is not None and schema.unit.column is not None
        # A query is not run twice for the sake of a percentage.
        known = isinstance(source, str) or person
        count = patience.run(rows.count, rows.stop) if known else 0
        slices = _plain(rows, schema, options, patience)
        stack.callback(slices.close)  # what is still being read blocks its connection
        yield count, slices


def _rows(source: Any, stack: ExitStack) -> Rows | None:
    """The rows of a database; None for files and frames."""
    family = type(source).__module__.partition(".")[0]
    if family in ("duckdb", "_duckdb"):
        return databases.relation(source)
    if family == "ibis":
        return databases.ibis_table(source)
    address = address_of(source) if isinstance(source, str) else None
    if address is None:
        return None
    return stack.enter_context(_OPENERS[address.kind](address.place, address.table))


def _plain(
    rows: Rows, schema: Schema, options: ReadOptions, patience: Patience | Here
) -> Generator[pl.DataFrame, None, None]:
    """Slices with the columns and types that a file of the same rows would give."""
    import polars as pl

    skip = frozenset(schema.ignore)

    def frames(columns: list[str]) -> Generator[pl.DataFrame, None, None]:
        with closing(rows.batches(columns)) as batches:
            for batch in patience.each(batches, rows.stop):
                part = from_frame(batch, max_columns=options.max_columns, skip=skip)
                check_years(part)
                yield part

    first = patience.run(rows.head, rows.stop)
    conform_names(frame_names(first), schema)  # before a message about a type names a column
    head = from_frame(first, max_columns=options.max_columns, skip=skip)
    times = [name for name, dtype in head.schema.items() if whole_only([dtype])]
    if times and not all(_midnights(part, times) for part in frames(times)):
        yield pl.concat([head, *frames(head.columns)])
        return
    yield _days(head, times)
    with closing(frames(head.columns)) as parts:
        for part in parts:
            if not _midnights(part, times):
                raise databases.changed()
            yield _days(part, times)


def _midnights(frame: pl.DataFrame, columns: list[str]) -> bool:
    return all(
        bool((frame[n].dt.date().cast(frame[n].dtype) == frame[n]).fill_null(value=True).all())
        for n in columns
    )


def _days(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    import polars as pl

    return frame.with_columns(pl.col(n).dt.date() for n in columns)
