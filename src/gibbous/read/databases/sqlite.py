"""A table of a SQLite file -> frames of plain columns; its cells have types one by one, columns must."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gibbous.core.errors import SchemaMismatch
from gibbous.read.databases.tables import Guard, Rows, fault, lost, named, no_file, quoted
from gibbous.read.fields import shown

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
BATCH = 1 << 17  # rows, which are Python objects at first
_EXACT = 1 << 53
_SAID = {
    "LOCKED": ("locked", "busy"),
    "DATABASE": ("not a database", "malformed"),
    "OUTSIDE": ("unsafe use", "not authorized"),
}


@contextmanager
def sqlite_table(place: str, table: str) -> Iterator[Rows]:
    """A table or view of a SQLite file, which is opened for reading alone; errors as `duckdb_table`."""
    path = Path(place)
    if not path.is_file():
        raise no_file(place, "SQLite")
    guard: Guard = partial(_guarded, place)
    held = guard(
        lambda: sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0, check_same_thread=False
        )
    )
    try:
        # A view can then neither load an extension nor look outside; it never could attach a file.
        guard(lambda: held.execute("PRAGMA trusted_schema = OFF"))
        guard(lambda: held.execute("BEGIN"))  # what follows sees the rows of one moment
        names = guard(
            lambda: held.execute(
                "SELECT 'main', name FROM sqlite_master WHERE type IN ('table', 'view')"
            ).fetchall()
        )
        found = named(names, table, default="main")
        yield SqliteTable(held, found, place)
    finally:
        held.close()


class SqliteTable:
    """Rows of a table.

    Args:
        held: the connection.
        name: quoted name of the table, or a query in parentheses.
        place: what errors call it.
        elsewhere: whether other threads may use the connection.
    """

    def __init__(
        self, held: sqlite3.Connection, name: str, place: str, *, elsewhere: bool = True
    ) -> None:
        self.elsewhere = elsewhere
        self._held, self._name, self._place = held, name, place
        self._run: Guard = partial(_guarded, place)
        self._names = [
            c[0]
            for c in self._run(lambda: held.execute(f"SELECT * FROM {name} LIMIT 0")).description  # noqa: S608
        ]
        self._types = self._looked_up()

    def count(self) -> int:
        """How many rows."""
        found = self._run(lambda: self._held.execute(f"SELECT count(*) FROM {self._name}"))  # noqa: S608
        return int(found.fetchone()[0])

    def head(self) -> pl.DataFrame:
        """A frame without rows."""
        import polars as pl

        return pl.DataFrame(schema=self._types)

    def batches(self, columns: list[str]) -> Generator[pl.DataFrame, None, None]:
        """All rows as frames."""
        import polars as pl

        wanted = ", ".join(self._shown(n) for n in columns)
        cursor = self._run(lambda: self._held.execute(f"SELECT {wanted} FROM {self._name}"))  # noqa: S608
        while part := self._run(lambda: cursor.fetchmany(BATCH)):
            frame = None
            with suppress(pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
                wanted_types = {n: self._types[n] for n in columns}
                frame = pl.DataFrame(part, schema=wanted_types, orient="row", strict=True)
            if frame is None:
                raise lost(self._place)
            yield frame

    def stop(self) -> None:
        """End what is being read."""
        self._held.interrupt()

    def _shown(self, name: str) -> str:
        import polars as pl

        text = self._types[name] == pl.String
        return f"CAST({quoted(name)} AS TEXT)" if text else quoted(name)

    def _looked_up(self) -> dict[str, Any]:
        """The one type of each column: that of a first cell, where one pass finds no other cell."""
        import polars as pl

        known = {"integer": pl.Int64(), "real": pl.Float64(), "text": pl.String()}
        kinds = {}
        for name in map(quoted, self._names):
            first = f"SELECT typeof({name}) FROM {self._name} WHERE {name} IS NOT NULL LIMIT 1"  # noqa: S608
            kinds[name] = (self._run(partial(self._held.execute, first)).fetchone() or ("null",))[0]
        others = " OR ".join(
            f"({name} IS NOT NULL AND typeof({name}) <> '{kind}')" for name, kind in kinds.items()
        )
        found = self._run(
            lambda: self._held.execute(f"SELECT 1 FROM {self._name} WHERE {others} LIMIT 1")  # noqa: S608
        )
        if "blob" in kinds.values() or found.fetchone():
            return {name: self._type(name) for name in self._names}
        return {
            name: known.get(kind, pl.Null())
            for name, kind in zip(self._names, kinds.values(), strict=True)
        }

    def _type(self, name: str) -> Any:
        """The one type of a column, from the types of its cells."""
        import polars as pl

        kinds = "typeof({0}) = 'integer', typeof({0}) = 'real', typeof({0}) = 'text', "
        kinds += "typeof({0}) = 'blob', "
        kinds += "typeof({0}) = 'integer' AND {0} NOT BETWEEN -{1} AND {1}"
        tests = kinds.format(quoted(name), _EXACT).split(", ")
        asked = ", ".join(f"max({test})" for test in tests)
        cursor = self._run(lambda: self._held.execute(f"SELECT {asked} FROM {self._name}"))  # noqa: S608
        whole, real, text, blob, large = map(bool, cursor.fetchone())
        if blob or (real and text) or (large and (real or text)):
            raise SchemaMismatch(
                "TYPE",
                f"Column {shown(name)} holds values of several types, or of bytes.",
                "A column holds one plain type: text, whole numbers or floats.",
                "Show it through a view that casts it to one of these.",
            )
        if text:
            return pl.String()
        return pl.Float64() if real else pl.Int64() if whole else pl.Null()


def _guarded(place: str, work: Callable[[], T]) -> T:
    """Replace whatever SQLite raises: its text may hold values."""
    try:
        return work()
    except sqlite3.Error as error:
        text = str(error).lower()
    raise fault(_SAID, text, place, "SQLite")
