"""Runs the cells of a study, in this process or in several: the one runner of `compare` and of `studies`.

The rows depend on the cells alone: not on the number of processes, nor on where an earlier start
stopped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from gibbous.core.machine import usable_cores, workers_died
from gibbous.core.protocols import Progress
from gibbous.frontier.store import Store

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
    """Run every cell that is not in the store, and keep each as it ends.

    Args:
        begin: makes the worker of a process; it can be pickled.
        store: of results by the names of cells.
        workers: processes; None for all cores.
        progress: called with ("runs", done, total).
    Returns:
        The rows of all cells, in the order of the cells.
    """
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
    """Each cell with its rows, as they are done."""
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
