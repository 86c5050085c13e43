"""Store: encoded records in a nameless DuckDB file; appended, counted, read back, dropped.

The file loses its name as soon as it is open, so that nothing of it survives a kill. What DuckDB
spills while it sorts has names, inside a private folder that the next start sweeps. Nothing outside
can be reached from SQL, and no text of a DuckDB error leaves this module: it may hold values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from gibbous.core.errors import EngineFailure, GibbousError, ResourceLimit
from gibbous.core.extras import need
from gibbous.disintegrate.ibis.patience import Patience
from gibbous.disintegrate.ibis.scratch import Scratch
from gibbous.disintegrate.layout import STATE

T = TypeVar("T")
BATCH = 1 << 18  # rows read back at once
LEAST = 96 << 20  # bytes that DuckDB needs to work at all
_TYPES = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "float64": "DOUBLE"}
_TYPES |= {"int64": "BIGINT"}
_FULL = ("no space left", "disk full", "file too large", "quota exceeded")


class Store:
    """One private database. Secret: cannot be printed or pickled.

    Args:
        threads: of DuckDB.
        memory: bytes of its buffers.
        disk: most bytes that it may spill; None for what it takes by itself (90 % of what is free).
        scratch: see `spill.scratch_folder`.
    Raises:
        EngineFailure: duckdb is not installed.
        ResourceLimit: the scratch folder cannot be used.
    """

    def __init__(
        self, *, threads: int, memory: int, disk: int | None, scratch: Path | str | None
    ) -> None:
        self._duckdb = need("duckdb", "duckdb")
        self._scratch = Scratch(scratch)
        self._patience = Patience()
        self._users, self._made = 1, 0
        settings: dict[str, Any] = {
            "threads": threads,
            "memory_limit": f"{max(memory, LEAST) // 1000}KB",
            "temp_directory": str(self._scratch.folder / "spill"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
        self._disk = disk
        self._connection: Any = None
        try:
            (self._scratch.folder / "spill").mkdir(mode=0o700)
            self._connection = self._guarded(lambda: self._opened(settings))
        except BaseException:
            self._close()
            raise

    def __repr__(self) -> str:
        return "<Store, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a database of confidential codes is never pickled")

    @property
    def folder(self) -> Path:
        """Its private folder."""
        return self._scratch.folder

    def shared(self) -> Store:
        """The same store for one more user, who calls `release` in turn."""
        self._users += 1
        return self

    def release(self, table: str | None = None) -> None:
        """One user less, who leaves a table behind; with the last one all records are gone."""
        self._users -= 1
        if self._users <= 0:
            self._close()
        elif table is not None:
            self.drop(table)

    def create(self, columns: Mapping[str, np.dtype]) -> str:
        """A new table.

        Args:
            columns: name -> type; names are our own.
        Returns:
            Its name.
        """
        self._made += 1
        name = f"codes{self._made}"
        shown = ", ".join(f"{n} {_TYPES[t.name]} NOT NULL" for n, t in columns.items())
        self.run(f"CREATE TABLE {name} ({shown})")
        return name

    def append(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Add rows, given column by column in the order of the table."""

        def work() -> None:
            held = self._connection
            held.register("part", {n: np.ascontiguousarray(c) for n, c in columns.items()})
            try:
                held.execute(f"INSERT INTO {table} SELECT * FROM part")  # noqa: S608
            finally:
                held.unregister("part")

        self._do(work)

    def without(self, table: str, rows: np.ndarray) -> str:
        """Drop the rows whose number, in the column `row`, is in a list; the table gets a new name."""
        gone = self.create({"row": np.dtype(np.int64)})
        self.append(gone, {"row": rows})
        self._made += 1
        kept = f"codes{self._made}"
        self.run(f"CREATE TABLE {kept} AS SELECT * FROM {table} ANTI JOIN {gone} USING (row)")  # noqa: S608
        self.drop(gone)
        self.drop(table)
        return kept

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.run(f"SELECT count(*) AS n FROM {table}")["n"][0])  # noqa: S608

    def run(self, sql: str) -> dict[str, np.ndarray]:
        """Run one statement of ours; its answer, column by column."""

        def work() -> dict[str, np.ndarray]:
            found = self._connection.execute(sql).fetchnumpy()
            return {name: np.asarray(column) for name, column in found.items()}

        return self._do(work)

    def read(self, table: str) -> Iterator[dict[str, np.ndarray]]:
        """All rows in batches, in no order; none for an empty table."""
        cursor = self._do(lambda: self._connection.cursor())
        self._do(lambda: cursor.execute("USE store"))
        reader = self._do(lambda: cursor.sql(f"SELECT * FROM {table}").to_arrow_reader(BATCH))  # noqa: S608
        try:
            while True:
                batch = self._do(lambda: next(reader, None), cursor.interrupt)
                if batch is None:
                    return
                names = batch.schema.names
                yield {n: batch.column(n).to_numpy(zero_copy_only=False) for n in names}
        finally:
            reader.close()
            cursor.close()

    def drop(self, table: str) -> None:
        """Forget a table."""
        self.run(f"DROP TABLE IF EXISTS {table}")

    def _opened(self, settings: dict[str, Any]) -> Any:
        connection = self._duckdb.connect(":memory:", config=settings)
        if (
            self._disk is not None
        ):  # given to `connect`, DuckDB 2.0 reads it and does not keep to it
            connection.execute(f"SET max_temp_directory_size = '{self._disk // 1000}KB'")
        path = self._scratch.folder / "codes.db"
        # No log is written beside the file: it would have a name, and nobody recovers a nameless file.
        connection.execute(f"ATTACH '{_quoted(path)}' AS store (RECOVERY_MODE 'NO_WAL_WRITES')")
        path.chmod(0o600)
        path.unlink()
        connection.execute("USE store")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _do(self, work: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
        if self._connection is None:
            raise AssertionError("the store was released")
        return self._guarded(lambda: self._patience.run(work, stop or self._connection.interrupt))

    def _guarded(self, work: Callable[[], T]) -> T:
        """Replace whatever DuckDB raises: its text may hold values."""
        try:
            return work()
        except self._duckdb.Error as error:
            fault = failure(error, self._duckdb)
        except MemoryError:
            fault = _memory()
        raise fault

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._patience.close()
        if connection is not None:
            connection.close()
        self._scratch.release()


def failure(error: Exception, duckdb: Any) -> GibbousError:
    """What is raised in place of a DuckDB error."""
    text = str(error).lower()
    if any(words in text for words in _FULL):
        return ResourceLimit(
            "DISKFULL",
            "The scratch folder has too little room for the encoded records.",
            "DuckDB keeps them there, and what it sorts or groups, for the length of a run.",
            "Free space there, or name another folder with --scratch or GIBBOUS_SCRATCH.",
            state=STATE,
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return _memory()
    return EngineFailure(
        "DUCKDB",
        "DuckDB failed while it worked on the encoded records (its text is withheld).",
        "A run needs a working DuckDB 2 and a scratch disk that keeps what is written.",
        "Run again; if it stays, use --engine local.",
        state=STATE,
    )


def _memory() -> ResourceLimit:
    return ResourceLimit(
        "SPILL",
        "DuckDB has used up its memory and the disk space that it may spill to.",
        "Both have limits: memory_limit, and disk_limit or the free space of the scratch folder.",
        "Raise them, name a larger disk with --scratch, or count fewer columns together.",
        state=STATE,
    )


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
