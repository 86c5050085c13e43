"""Runs the cells of a study, in one process or several, and keeps those that are done in a folder."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gibbous.core import durable
from gibbous.core.errors import InputRejected, OutputNotWritten, UsageError
from gibbous.core.machine import usable_cores, workers_died
from gibbous.core.protocols import Progress

if TYPE_CHECKING:
    import polars as pl

Rows = list[dict[str, Any]]
BROKE = "GB1-METHOD"  # how the reason of a run begins whose method ended with an error of its own


class Cell(Protocol):
    """One independent run."""

    @property
    def name(self) -> str:
        """A file is named after it: letters, digits, ".", "_", "=", "-"; equal runs have equal names."""


class Worker(Protocol):
    """What one process holds while it runs cells."""

    def run(self, cell: Any) -> Rows:
        """The rows of one cell."""


def run_cells(
    cells: Sequence[Cell],
    begin: Callable[[], Worker],
    store: Store,
    *,
    workers: int | None,
    progress: Progress,
) -> Rows:
    """Run every cell that is not in the store, and keep each as it ends; all their rows, in order."""
    left = [cell for cell in cells if store.get(cell.name) is None]
    done = len(cells) - len(left)
    progress("runs", done, len(cells))
    for cell, rows in _results(left, begin, min(workers or usable_cores(), len(left))):
        store.put(cell.name, _plain(rows), lasting=not broke(rows))
        done += 1
        progress("runs", done, len(cells))
    return [row for cell in cells for row in store.get(cell.name) or ()]


def broke(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run ended with an error of its method: mended, it is worth another run."""
    return any(str(row.get("failed", "")).startswith(BROKE) for row in rows)


def _results(
    cells: Sequence[Cell], begin: Callable[[], Worker], workers: int
) -> Iterator[tuple[Cell, Rows]]:
    if not cells:
        return
    if workers == 1:
        worker = begin()
        for cell in cells:
            yield cell, worker.run(cell)
        return
    begin()  # a fault of the data is raised here, with its own words
    # Started afresh, not forked: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (begin,)) as pool:
        futures = {pool.submit(_step, cell): cell for cell in cells}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise workers_died() from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _plain(rows: Rows) -> Rows:
    """Rows as JSON reads them back, so that a resumed study is equal to one of a single start."""
    return [
        {name: v.item() if hasattr(v, "item") else v for name, v in row.items()} for row in rows
    ]


_worker: Worker | None = None


def _start(begin: Callable[[], Worker]) -> None:
    global _worker
    _worker = begin()


def _step(cell: Cell) -> Rows:
    assert _worker is not None
    return _worker.run(cell)


class Store:
    """Results by cell, in memory and, with a folder, in files that only their owner reads.

    Args:
        folder: None keeps a study in memory alone.
        settings: everything that the figures depend on, as JSON values.
    Raises:
        UsageError: the folder holds finished runs of a study with other settings.
        OutputNotWritten: the folder cannot be made.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        self.folder, self._rows = folder, dict[str, list[dict[str, Any]]]()
        if folder is None:
            return
        text = json.dumps(settings, indent=1, sort_keys=True, default=str)
        try:
            make_own_folder(folder)
            make_own_folder(folder / "cells")
            known = folder / "study.json"
            if known.exists() and any((folder / "cells").iterdir()):
                self._check(known.read_text(encoding="utf-8"), text)
            else:
                durable.write_private(known, text.encode())
        except OSError as error:
            raise OutputNotWritten(
                "STUDY",
                f"The folder of the study {str(folder)!r} cannot be used.",
                "It is a new folder, or one of an earlier start of the same study.",
                f"Check the path and its permissions ({error.strerror}).",
            ) from None

    def get(self, name: str) -> list[dict[str, Any]] | None:
        """The figures of the cell of a name; None of one that is not done, or whose file is damaged."""
        if name in self._rows:
            return self._rows[name]
        if self.folder is None:
            return None
        path = self.folder / "cells" / f"{name}.json"
        try:
            rows = [_from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            return None
        self._rows[name] = rows
        return rows

    def put(self, name: str, rows: list[dict[str, Any]], *, lasting: bool = True) -> None:
        """Keep the figures of a cell; unless `lasting`, a second start makes them again."""
        self._rows[name] = rows
        if self.folder is not None and lasting:
            text = json.dumps([_to_json(row) for row in rows])
            durable.write_private(self.folder / "cells" / f"{name}.json", text.encode())

    def _check(self, known: str, wanted: str) -> None:
        if known == wanted:
            return
        now = json.loads(wanted)
        try:
            before = dict(json.loads(known))
        except (ValueError, TypeError):
            before = {}
        changed = sorted(
            k for k in {*before, *now} if (k in before, before.get(k)) != (k in now, now.get(k))
        )
        raise UsageError(
            "OTHERSTUDY",
            f"{str(self.folder)!r} holds a study with other {', '.join(changed)}.",
            "A study is resumed with the settings it was begun with.",
            "Restore them, or choose another folder.",
        )


def digest(source: str | bytes) -> str:
    """What tells one source from another, from the bytes of file or frame; InputRejected if unreadable."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    try:
        with Path(source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise InputRejected(
            "NOTAFILE",
            f"The input {str(source)!r} cannot be read.",
            "It is one regular local file: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.",
            "Check the path; in a study file it is relative to that file.",
        ) from None


def write_study(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the results of a study, readable by their owner alone.

    Raises:
        OutputNotWritten: the folder cannot be made, or a file not be written.
    """
    try:
        make_own_folder(folder)
        for name, data in files.items():
            durable.write_private(folder / name, data)
    except OSError as error:
        raise OutputNotWritten(
            "STUDY",
            f"The study cannot be written to {str(folder)!r} ({error.strerror}).",
            "It goes into a folder that this user may write to.",
            "Choose another --out.",
        ) from None


def parquet(frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def tidy(rows: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> pl.DataFrame:
    """Rows as a frame: every name that occurs is a column (`first` first), null where a row lacks it."""
    import polars as pl

    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    lines = [{name: row.get(name) for name in names} for row in rows]
    return pl.DataFrame(lines, infer_schema_length=None)


def make_own_folder(folder: Path) -> None:
    """A folder that its owner alone may open; one that is there stays as it is; OSError if neither."""
    if not folder.is_dir():
        folder.mkdir(parents=True, mode=0o700)


def _to_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: {"float": repr(v)} if isinstance(v, float) and not math.isfinite(v) else v
        for k, v in row.items()
    }


def _from_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: float(v["float"]) if isinstance(v, dict) else v for k, v in row.items()}
