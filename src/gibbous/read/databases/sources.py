"""A table of a database -> slices of plain rows, checked by the code that checks files.

Whether a column of times holds days is decided over all of its rows first, as it is for files.
Passwords in addresses are refused, since others see them. Texts of libraries are withheld.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gibbous.core.errors import UsageError
from gibbous.core.schema import Schema
from gibbous.read.conform import check_years, conform_names
from gibbous.read.csv_file import ReadOptions
from gibbous.read.databases import postgresql, sqlite, tables
from gibbous.read.databases.tables import Rows
from gibbous.read.fields import shown
from gibbous.read.frames import frame_names, from_frame
from gibbous.read.slices import gathered

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
_LOOK, _GRACE = 0.1, 2.0  # seconds
Kind = Literal["duckdb", "sqlite", "postgres"]
_KINDS: dict[str, Kind] = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
}
_PASSWORD = re.compile(r"^[^/@]*:[^/@]*@|[?&]password=", re.IGNORECASE)
_OPENERS: dict[Kind, Callable[[str, str], AbstractContextManager[Rows]]] = {
    "duckdb": tables.duckdb_table,
    "sqlite": sqlite.sqlite_table,
    "postgres": postgresql.postgres_table,
}


@dataclass(frozen=True, slots=True)
class Address:
    """A table of a database.

    Attributes:
        kind: of the database.
        place: path of the file; for PostgreSQL its URL.
        table: as written: "table" or "schema.table".
    """

    kind: Kind
    place: str
    table: str


def address_of(text: str) -> Address | None:
    """Read "duckdb:///file.db::table" and its like; None for what is not an address of a table.

    UsageError for another kind of database, no table, or a password.
    """
    scheme, mark, rest = text.partition("://")
    if not mark or "::" not in rest:
        return None
    place, _, table = rest.rpartition("::")
    kind = _KINDS.get(scheme.lower())
    if kind is None or not place or not table:
        raise UsageError(
            "ADDRESS",
            f"{shown(scheme)} is not a kind of database."
            if kind is None
            else "The address lacks the file or the table.",
            "An address is duckdb:///file.db::table, sqlite:///file.db::table or "
            "postgres://user@host/database::table.",
            "Correct it; other databases are passed as an ibis table in Python.",
        )
    if kind == "postgres" and _PASSWORD.search(place):
        raise UsageError(
            "PASSWORD",
            "The address holds a password.",
            "Other users of this machine can read the arguments of a command.",
            "Put it into the file that PGPASSFILE names (mode 0600), and leave it out here.",
        )
    return Address(kind, f"postgresql://{place}" if kind == "postgres" else place, table)


@contextmanager
def table_slices(
    source: Any, *, schema: Schema, options: ReadOptions
) -> Iterator[tuple[int | None, Iterator[pl.DataFrame]]]:
    """Open a table: an address as in `read_slices`, an ibis Table, or a DuckDB relation.

    Yields:
        The number of rows (of an ibis table or a relation None: its query is not run twice to count
        them), and the slices in order (at least one).
    Raises:
        UsageError, InputRejected, SchemaMismatch, ResourceLimit, EngineFailure: no cell value.
    """
    with ExitStack() as stack:
        rows = _rows(source, stack)
        patience = Patience(threaded=rows.elsewhere)
        stack.callback(patience.close)
        count = patience.run(rows.count, rows.stop) if isinstance(source, str) else None
        slices = _plain(
            rows, frozenset(schema.ignore), options, patience, lambda n: conform_names(n, schema)
        )
        stack.callback(slices.close)  # what is still being read blocks its connection
        yield count, slices


def whole_table(source: Any, options: ReadOptions) -> tuple[pl.DataFrame, list[str]]:
    """Read a table whole, without a schema; columns of types that are not read are left out.

    Returns:
        The frame, and the names of all columns of the table, in order.
    Raises:
        As `table_slices`; ResourceLimit where it takes more memory than a file may.
    """
    names: list[str] = []
    with ExitStack() as stack:
        rows = _rows(source, stack)
        patience = Patience(threaded=rows.elsewhere)
        stack.callback(patience.close)
        slices = _plain(rows, None, options, patience, names.extend)
        stack.callback(slices.close)
        return gathered(slices, options.limit), names


def _rows(source: Any, stack: ExitStack) -> Rows:
    address = address_of(source) if isinstance(source, str) else None
    if address is not None:
        return stack.enter_context(_OPENERS[address.kind](address.place, address.table))
    ibis = type(source).__module__.partition(".")[0] == "ibis"
    return tables.ibis_table(source) if ibis else tables.relation(source)


def _plain(
    rows: Rows,
    ignored: frozenset[str] | None,
    options: ReadOptions,
    patience: Patience,
    check: Callable[[list[str]], object],
) -> Generator[pl.DataFrame, None, None]:
    """Slices with the columns and types that a file of the same rows would give.

    Args:
        ignored: columns that are left out where their type is not read; None for any.
        check: takes the names before a message about a type names a column.
    """
    first = patience.run(rows.head, rows.stop)
    check(frame_names(first))
    skip = frozenset(frame_names(first)) if ignored is None else ignored
    head = from_frame(first, max_columns=options.max_columns, skip=skip)
    yield head
    with closing(rows.batches(head.columns)) as batches:
        for batch in patience.each(batches, rows.stop):
            part = from_frame(batch, max_columns=options.max_columns, skip=skip)
            check_years(part)
            yield part


class Patience:
    """Work of a library in a thread of its own, so that Ctrl-C is heard at once and stops the work.

    Args:
        threaded: False for libraries whose connections stay in the thread that made them: their work
            is done here, and ends when it ends.
    """

    def __init__(self, *, threaded: bool = True) -> None:
        self._pool = ThreadPoolExecutor(1, "gibbous-database") if threaded else None

    def run(self, work: Callable[[], T], stop: Callable[[], object]) -> T:
        """The result of `work`, which touches nothing of other threads; an interrupt calls `stop`."""
        return work() if self._pool is None else _awaited(self._pool.submit(work), stop)

    def each(self, items: Iterator[T], stop: Callable[[], object]) -> Iterator[T]:
        """The items of an iterator that a library fills: the next one while the last one is used."""
        if self._pool is None:
            yield from items
            return
        end: Any = object()
        coming = self._pool.submit(next, items, end)
        try:
            while (item := _awaited(coming, stop)) is not end:
                coming = self._pool.submit(next, items, end)
                yield item
        finally:
            if not coming.done():
                stop()
                wait([coming], timeout=_GRACE)

    def close(self) -> None:
        """Wait for the thread, and end it."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _awaited(future: Future[T], stop: Callable[[], object]) -> T:
    try:
        while not wait([future], timeout=_LOOK).done:
            pass
    except BaseException:
        stop()
        wait([future], timeout=_GRACE)
        raise
    return future.result()
