"""A table of a PostgreSQL server -> Arrow batches of one read-only transaction."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from gibbous.core.errors import EngineFailure
from gibbous.core.extras import need
from gibbous.read.databases.tables import Guard, Rows, drained, named, quoted
from gibbous.read.fields import shown

T = TypeVar("T")


@contextmanager
def postgres_table(place: str, table: str) -> Iterator[Rows]:
    """A table or view of a PostgreSQL database: "table" (of the schema public) or "schema.table".

    The URL has no password: libpq takes it from PGPASSFILE or PGPASSWORD.

    Raises:
        EngineFailure: the driver is not installed, or the connection is refused or lost.
        InputRejected: there is no such table.
    """
    driver = need("adbc_driver_postgresql.dbapi", "postgresql")

    def guard(work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception:  # noqa: BLE001 (the driver raises classes of several libraries)
            fault = _lost(place)
        raise fault

    held = guard(lambda: driver.connect(place))
    try:
        guard(lambda: _run(held, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        names = guard(
            lambda: _run(
                held, "SELECT table_schema::text, table_name::text FROM information_schema.tables"
            )
        )
        found = named([(s, t) for s, t in names], table, default="public")
        yield _Table(held, found, guard)
    finally:
        with suppress(Exception):  # a connection that was lost cannot be closed
            held.close()


class _Table:
    """Rows of a table, all of one transaction."""

    def __init__(self, held: Any, name: str, guard: Guard) -> None:
        self._held, self._name, self._guard = held, name, guard
        self.elsewhere = True

    def count(self) -> int:
        found = self._guard(lambda: _run(self._held, f"SELECT count(*) FROM {self._name}"))  # noqa: S608
        return int(found[0][0])

    def head(self) -> Any:
        def work() -> Any:
            with self._held.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {self._name} LIMIT 0")  # noqa: S608
                return cursor.fetch_arrow_table()

        return self._guard(work)

    def batches(self, columns: list[str]) -> Generator[Any, None, None]:
        wanted = ", ".join(map(quoted, columns))
        with self._held.cursor() as cursor:
            self._guard(lambda: cursor.execute(f"SELECT {wanted} FROM {self._name}"))  # noqa: S608
            yield from drained(self._guard(cursor.fetch_record_batch), self._guard)

    def stop(self) -> None:
        self._held.adbc_cancel()


def _run(held: Any, sql: str) -> Any:
    with held.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if sql.startswith("SELECT") else None


def _lost(place: str) -> EngineFailure:
    return EngineFailure(
        "CONNECTION",
        f"The connection to {shown(place)} failed (the text of the server is withheld).",
        "The server is reachable, and the user may read the table, for the length of a run.",
        "Try the address with psql; the password comes from PGPASSFILE or PGPASSWORD.",
    )
