"""Codes in, one Parquet or CSV file of decoded rows out; CSV text cannot become a formula."""

from __future__ import annotations

import ctypes
import queue
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import UsageError
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.write.arrow_schema import file_metadata
from gibbous.write.durable_files import new_file
from gibbous.write.labelled_files import LIBRARY, labelled

if TYPE_CHECKING:
    import polars as pl

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_ROW_GROUP = 1 << 18
_CELLS = 1 << 22  # that are decoded at a time
_GLANCE = 0.1  # seconds after which a wait looks around
_ROOM = 1024  # bytes; `struct sigaction` has 152 on Linux, and 16 on a Mac


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """What a file holds.

    Attributes:
        rows: number of rows.
        guarded_cells: text cells (header included) that were prefixed with an apostrophe.
        changed: rows that each rule changed.
    """

    rows: int
    guarded_cells: int = 0
    changed: tuple[int, ...] = ()


def write_files(
    batches: Iterable[Codes],
    schema: Schema,
    paths: Mapping[str, Path],
    *,
    seed: int,
    first: tuple[int, int] = (0, 0),
    csv_raw: bool = False,
    types: tuple[tuple[str, str], ...] = (),
    progress: Progress = silent,
) -> RowsWritten:
    """Decode rows once and write one file a format; a few slices of rows are in memory at a time.

    Args:
        batches: the rows, in order; how they are cut does not change a byte.
        paths: format -> a new file, mode 0600, on disk when this returns.
        seed: of sampling; places numbers and days within their bins.
        first: number of the set, and of the first row within it, both from 0.
        csv_raw: leave text that a spreadsheet would read as a formula as it is.
        types: of columns that have the type of the input; see `decode`.
        progress: told ("write", rows, 0).
    Raises:
        UsageError: unknown format.
        OutputNotWritten, ResourceLimit: a file cannot be written; the disk is full.
    """
    from gibbous.encode.decode import decoded

    for kind in paths:
        if kind not in _WRITERS:
            raise UsageError(
                "FORMAT",
                f"The format is {kind!r}.",
                f"It is one of {', '.join(_WRITERS)}.",
                "Correct --format.",
            )
    rows, guarded, changed = 0, 0, [0] * len(schema.rules)
    set_index, start = first
    with ExitStack() as stack:
        writers = [
            stack.enter_context(_WRITERS[kind](path, schema, csv_raw))
            for kind, path in paths.items()
        ]
        for codes in _slices(batches, schema):
            frame, more = decoded(
                codes,
                seed=seed,
                set_index=set_index,
                start_row=start + rows,
                dictionary=True,
                types=types,
            )
            for writer in writers:
                guarded += writer.add(frame)
            changed = [one + other for one, other in zip(changed, more, strict=True)]
            rows += codes.rows
            progress("write", rows, 0)
    return RowsWritten(rows, guarded, tuple(changed))


def _slices(batches: Iterable[Codes], schema: Schema) -> Iterator[Codes]:
    """The same rows, so many cells at a time as fit; one empty slice if there are none."""
    some, rows = False, max(1, min(_ROW_GROUP, _CELLS // len(schema)))
    for codes in batches:
        for low in range(0, codes.rows, rows):
            some = True
            yield codes if codes.rows <= rows else codes.part(slice(low, low + rows))
    if not some:
        yield Codes(schema, empty_codes(schema, 0))


@contextmanager
def _csv(path: Path, schema: Schema, raw: bool) -> Iterator[_Csv]:
    with new_file(path) as file:
        yield _Csv(file, schema, raw=raw)


@contextmanager
def _parquet(path: Path, schema: Schema, _: bool) -> Iterator[_Parquet]:
    import polars  # noqa: F401  before its handler of interrupts is set aside

    with heard_by_python_alone(), new_file(path) as file:
        writer = _Parquet(file, schema)
        try:
            yield writer
            writer.finish()
        finally:
            writer.stop()


@contextmanager
def heard_by_python_alone() -> Iterator[None]:
    """Give SIGINT to Python's handler and no other until the block ends.

    Polars hears Ctrl-C by a handler in front of Python's, and stops its own threads by a panic. Its
    Parquet writer answers that with another panic, whose text lands on the terminal.

    It changes nothing in a thread that is not the main one, or where SIGINT is ignored or handled
    by something that is not Python.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    system, before = ctypes.CDLL(None), ctypes.create_string_buffer(_ROOM)
    system.sigaction(int(signal.SIGINT), None, before)
    signal.signal(signal.SIGINT, handler)  # sets the system's handler to that of Python
    try:
        yield
    finally:
        system.sigaction(int(signal.SIGINT), before, None)


_WRITERS: dict[str, Any] = {"parquet": _parquet, "csv": _csv} | {
    form: partial(labelled, form=form) for form in LIBRARY
}


class _Csv:
    """A CSV file that grows by frames."""

    def __init__(self, file: BinaryIO, schema: Schema, *, raw: bool) -> None:
        self._file, self._schema, self._raw = file, schema, raw
        self._begun = False

    def add(self, frame: pl.DataFrame) -> int:
        """Write the next rows; returns the cells that were guarded, header included."""
        frame, cells = _days_as_declared(frame, self._schema), 0
        if not self._raw:
            names = 0 if not self._begun else _guarded_names(frame)
            frame, cells = guard(frame)
            cells -= names  # the header stands in the file once
        frame.write_csv(
            self._file,
            include_header=not self._begun,
            null_value=self._schema.null,
            line_terminator="\n",
        )
        self._begun = True
        return cells


class _Parquet:
    """A Parquet file that grows by frames, which a thread compresses while the next rows are drawn.

    The bytes are those of `DataFrame.write_parquet` of all rows together, however they are cut.
    """

    def __init__(self, file: BinaryIO, schema: Schema) -> None:
        self._file, self._schema = file, schema
        self._frames: queue.Queue[pl.DataFrame | None] = queue.Queue(1)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._ended = False

    def add(self, frame: pl.DataFrame) -> int:
        """Hand over the next rows; waits while the last ones are still to be compressed."""
        if self._thread is None:
            work = partial(self._write, frame.schema)
            self._thread = threading.Thread(target=work, name="gibbous-parquet", daemon=True)
            self._thread.start()
        self._hand(frame)
        return 0

    def finish(self) -> None:
        """Wait until all rows are in the file; what the library raised is for `new_file` to translate."""
        self._hand(None)
        assert self._thread is not None
        while self._thread.is_alive():
            self._thread.join(_GLANCE)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End the thread; a file that is not whole by then is no longer wanted."""
        self._ended = True
        if self._thread is not None:
            self._thread.join()

    def _hand(self, frame: pl.DataFrame | None) -> None:
        while True:
            if self._error is not None:
                raise self._error
            with suppress(queue.Full):
                self._frames.put(frame, timeout=_GLANCE)
                return

    def _write(self, schema: pl.Schema) -> None:
        from polars.io.plugins import register_io_source

        try:
            register_io_source(self._taken, schema=schema).sink_parquet(
                self._file,
                compression="zstd",
                row_group_size=_ROW_GROUP,
                metadata=file_metadata(schema, self._schema),
            )
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            # Where the interrupt could not be kept from the library, it panics with this name.
            stopped = "KEYBOARD_INTERRUPT" in str(error)
            self._error = KeyboardInterrupt() if stopped else error

    def _taken(self, *_: object) -> Iterator[pl.DataFrame]:
        while not self._ended:
            with suppress(queue.Empty):
                frame = self._frames.get(timeout=_GLANCE)
                if frame is None:
                    return
                yield frame


def _days_as_declared(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Days as text in the form that the schema declares, so that it describes the file; at midnight."""
    import polars as pl

    forms = {c.name: c.date_format for c in schema if c.date_format}
    days = (pl.col(name).cast(pl.Datetime).dt.to_string(form) for name, form in forms.items())
    return frame.with_columns(days)


def _guarded_names(frame: pl.DataFrame) -> int:
    return sum(guarded_name(name) != name for name in frame.columns)


def guard(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The frame with text that a spreadsheet would read as a formula behind an apostrophe; cells changed.

    Text starting with = + - @, tab, carriage return or NUL is meant; plain numbers are not, whatever
    the type of their column. Column names are text, too.
    """
    import polars as pl

    count, columns = 0, []
    for series in frame:
        if isinstance(series.dtype, pl.Enum | pl.Categorical | pl.String):
            shown, cells = _guarded(series)
            count += cells
        else:
            shown = series
        name = guarded_name(series.name)
        count += name != series.name
        columns.append(shown.alias(name))
    return pl.DataFrame(columns), count


def guarded_name(name: str) -> str:
    """A column name as it stands in the header of a guarded CSV file."""
    return f"'{name}" if name.startswith(FORMULA) else name


def guarded_text(text: str) -> str:
    """A text cell as it stands in a guarded CSV file."""
    return text if _NUMBER.fullmatch(text) else guarded_name(text)


def _guarded(series: pl.Series) -> tuple[pl.Series, int]:
    import polars as pl

    # By distinct value: there are few of them, and many rows.
    values = series.unique().cast(pl.String).drop_nulls()
    risky = [value for value in values if guarded_text(value) != value]
    if not risky:
        return series, 0
    text = series.cast(pl.String)
    hit = text.is_in(risky).fill_null(False)  # noqa: FBT003
    return text.to_frame().select(
        pl.when(hit).then("'" + pl.col(text.name)).otherwise(pl.col(text.name))
    ).to_series(), int(hit.sum())
