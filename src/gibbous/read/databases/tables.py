"""Tables of DuckDB and of ibis -> Arrow batches; a view that reaches outside its file is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gibbous.core import machine
from gibbous.core.errors import EngineFailure, GibbousError, InputRejected, ResourceLimit
from gibbous.core.extras import need
from gibbous.read.fields import shown

T = TypeVar("T")
Guard = Callable[[Callable[[], Any]], Any]
"""Runs a step, and replaces what it raises."""

BATCH = 1 << 18  # rows
_EXACT = 1 << 53
_CLOSED = (
    "temp_directory = ''",  # else a view that sorts would spill values beside its database
    "enable_external_access = false",
    "lock_configuration = true",
)

_SAID = {
    "OUTSIDE": ("permissionexception: ", "permission error"),
    "LOCKED": ("conflicting lock", "different configuration"),
    "DATABASE": ("valid duckdb", "io error", "in-memory database"),
    "MEMORY": ("outofmemoryexception: ",),
}


class Rows(Protocol):
    """Rows of one table, read as often as it takes.

    Attributes:
        elsewhere: whether they may be read from another thread than the one that made this.
    """

    elsewhere: bool

    def count(self) -> int:
        """How many rows; 0 where nobody knows without reading them."""

    def head(self) -> Any:
        """No rows, with all columns and their types: an Arrow table or a polars frame."""

    def batches(self, columns: list[str]) -> Generator[Any, None, None]:
        """All rows, of some columns, as Arrow batches or polars frames."""

    def stop(self) -> None:
        """End what is being read, from another thread."""


class Relation:
    """Rows of a DuckDB relation; `stop` interrupts what `guard` runs."""

    def __init__(self, held: Any, guard: Guard, stop: Callable[[], object]) -> None:
        self._held, self._guard, self._stop = held, guard, stop
        self.elsewhere = True

    def count(self) -> int:
        """How many rows."""
        found = self._guard(lambda: self._held.aggregate("count(*)").fetchall())
        return int(found[0][0])

    def head(self) -> Any:
        """An Arrow table without rows."""
        return self._guard(lambda: self._held.limit(0).to_arrow_table())

    def batches(self, columns: list[str]) -> Generator[Any, None, None]:
        """All rows as Arrow batches."""
        wanted = ", ".join(map(quoted, columns))
        reader = self._guard(lambda: self._held.project(wanted).to_arrow_reader(BATCH))
        yield from drained(reader, self._guard)

    def stop(self) -> None:
        """End what is being read."""
        self._stop()


class IbisTable:
    """Rows of an ibis table of any backend."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.elsewhere = False

    def count(self) -> int:
        """How many rows."""
        return int(_withheld(lambda: self._table.count().execute()))

    def head(self) -> Any:
        """An Arrow table without rows."""
        return _withheld(lambda: self._table.limit(0).to_pyarrow())

    def batches(self, columns: list[str]) -> Generator[Any, None, None]:
        """All rows as Arrow batches."""
        wanted = self._table.select(columns)
        reader = _withheld(lambda: wanted.to_pyarrow_batches(chunk_size=BATCH))
        for batch in drained(reader, _withheld):
            yield _exact(batch)

    def stop(self) -> None:
        """A backend has no common way to be stopped: it ends with its batch."""


@contextmanager
def duckdb_table(place: str, table: str) -> Iterator[Rows]:
    """A table or view of a DuckDB file, which is opened for reading alone.

    Raises:
        InputRejected: there is no such file or table, it is not a DuckDB file, or a view reaches
            outside of it.
        EngineFailure: another process holds it.
    """
    duckdb = need("duckdb", "duckdb")
    if not Path(place).is_file():
        raise no_file(place, "DuckDB")
    settings = {
        "memory_limit": f"{machine.default_limit() // 1000}KB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }
    guard: Guard = partial(_scrubbed, duckdb, place)
    held = guard(lambda: duckdb.connect(place, read_only=True, config=settings))
    try:
        for setting in _CLOSED:
            guard(partial(held.execute, f"SET {setting}"))
        names = guard(
            lambda: held.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
                "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )
        found = named(names, table, default="main")
        yield Relation(guard(lambda: held.sql(f"SELECT * FROM {found}")), guard, held.interrupt)  # noqa: S608
    finally:
        held.close()


def relation(source: Any) -> Rows:
    """A relation of the caller's own DuckDB connection: what it may read is the caller's to decide."""
    duckdb = need("duckdb", "duckdb")
    return Relation(source, partial(_scrubbed, duckdb, "the relation"), lambda: None)


def ibis_table(source: Any) -> Rows:
    """An ibis table; on DuckDB and SQLite its query is read by their own readers.

    The ibis of today asks DuckDB 2 for methods that it no longer has, and takes whole numbers of
    SQLite through floats.
    """
    ibis = need("ibis", "duckdb")
    backend = _withheld(lambda: source.get_backend())
    if backend.name not in ("duckdb", "sqlite"):
        return IbisTable(source)
    prepare = getattr(backend, "_run_pre_execute_hooks", bool)  # what ibis does itself: memtables
    _withheld(lambda: prepare(source))
    sql = str(_withheld(lambda: ibis.to_sql(source, dialect=backend.name)))
    if backend.name == "sqlite":
        from gibbous.read.databases.sqlite import SqliteTable

        return SqliteTable(backend.con, f"({sql})", "the ibis table", elsewhere=False)
    duckdb = need("duckdb", "duckdb")
    guard: Guard = partial(_scrubbed, duckdb, "the ibis table")
    return Relation(guard(lambda: backend.con.sql(sql)), guard, backend.con.interrupt)


def named(names: list[tuple[str, str]], table: str, *, default: str) -> str:
    """The quoted name of an existing "table" (of the default schema) or "schema.table".

    It is one of the (schema, table) names that there are, never taken for a path.
    """
    schema, _, rest = table.rpartition(".")
    for wanted in ((default, table), (schema, rest)):
        if wanted in names:
            return ".".join(map(quoted, wanted))
    raise InputRejected(
        "NOTABLE",
        f"There is no table {shown(table)} in the database.",
        "After '::' stands a table or view, or 'schema.table'.",
        "Check its name, capitals included.",
    )


def quoted(name: str) -> str:
    """A name inside SQL."""
    return '"' + name.replace('"', '""') + '"'


def drained(reader: Any, guard: Guard) -> Generator[Any, None, None]:
    """The batches of an Arrow reader, which is closed afterwards: an open one blocks its connection."""
    try:
        while (batch := guard(lambda: next(reader, None))) is not None:
            yield batch
    finally:
        reader.close()


def no_file(place: str, kind: str) -> InputRejected:
    """The error for a database file that is not there."""
    return InputRejected(
        "NOTAFILE",
        f"There is no {kind} file at {shown(place)}.",
        "After '://' stands the path of the file; it begins with '/' if it is absolute.",
        "Check the path.",
    )


def _exact(batch: Any) -> Any:
    """Refuse whole numbers that a backend may have taken through floats."""
    import polars as pl

    frame = pl.DataFrame(batch)
    for column in frame:
        if column.dtype.is_integer() and bool((column.abs() >= _EXACT).any()):
            raise InputRejected(
                "INEXACT",
                f"Column {shown(column.name)} of the ibis table has whole numbers of 2^53 and more.",
                "Some backends of ibis take them through floats, which changes them silently.",
                "Cast the column to text in the query, or name the table by its address.",
            )
    return frame


def _scrubbed(duckdb: Any, place: str, work: Callable[[], T]) -> T:
    """Replace whatever DuckDB raises while a source is read: its text may hold values."""
    try:
        return work()
    except duckdb.Error as error:
        text = f"{type(error).__name__}: {error}".lower()
    except Exception as error:  # pyarrow's own classes, without importing it
        if not type(error).__module__.startswith("pyarrow"):
            raise
        text = str(error).lower()
    raise fault(_SAID, text, place, "DuckDB")


def fault(said: Mapping[str, Sequence[str]], text: str, place: str, kind: str) -> GibbousError:
    """The error for what a database raised; its text, which may hold values, is withheld.

    Args:
        said: name of the error -> words that the text of the database then holds, in lower case.
        text: what was raised, in lower case.
        kind: of the database.
    """
    name = next((name for name, words in said.items() if any(w in text for w in words)), "")
    if name == "OUTSIDE":
        return InputRejected(
            name,
            f"The table of {shown(place)} reaches outside of its database.",
            "A view reads tables of its own database, no files, and calls functions without effects.",
            "Store what it shows as a table, and name that.",
        )
    if name == "LOCKED":
        return EngineFailure(
            name,
            f"Another process, or another connection of this one, has {shown(place)} open.",
            "A file of a database is read while nobody writes to it.",
            "Close that or wait for it, pass a table of the open connection, or copy the file.",
        )
    if name == "DATABASE":
        return InputRejected(
            name,
            f"The file {shown(place)} is not a sound {kind} database.",
            f"It was written by {kind}, of this version or an earlier one.",
            "Check the path and the kind of database.",
        )
    if name == "MEMORY":
        return ResourceLimit(
            name,
            f"{kind} has too little memory to read {shown(place)}.",
            "A view that sorts or joins needs memory of its own.",
            "Store what it shows as a table, and name that.",
        )
    return lost(place)


def lost(place: str) -> EngineFailure:
    """The error for a source that stopped giving rows."""
    return EngineFailure(
        "SOURCE",
        f"Reading {shown(place)} failed (the text of the database is withheld).",
        "The database stays reachable, and its table readable, for the length of a run.",
        "Try the query in the database's own tool, and run again.",
    )


def _withheld(work: Callable[[], T]) -> T:
    """Replace whatever an ibis backend raises, of whichever library."""
    try:
        with warnings.catch_warnings():  # of libraries, about each other
            warnings.simplefilter("ignore")
            return work()
    except GibbousError:
        raise
    except Exception:  # noqa: BLE001 (any library may stand behind it)
        fault = lost("the ibis table")
    raise fault
