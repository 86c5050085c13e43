"""Runs a study: cells in several processes, kept as they end, then tables, Parquet and drawings.

The rows depend on the settings alone: not on the number of processes, nor on where an earlier start
stopped.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gibbous.core.cores import usable_cores, workers_died
from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.core.extras import require
from gibbous.core.json_values import plain
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.frontier.store import Store, digest, make_own_folder, write_own
from gibbous.studies.parts import Cell, Figure, Row, Settings, Study, Table
from gibbous.studies.registry import load

if TYPE_CHECKING:
    import polars as pl

    from gibbous.frontier.grid import Cell as FrontierCell


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ran:
    """A study that was run.

    Attributes:
        study: which.
        settings: under which.
        rows: what the cells found, in their order.
    """

    study: Study
    settings: Settings
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return f"<{self.study.name}: {len(self.rows)} rows, {self.settings.reps} repeats>"

    @property
    def confidential(self) -> bool:
        """Whether the figures come from a table that the caller gave."""
        return self.settings.data is not None

    def tables(self) -> tuple[Table, ...]:
        """What is printed."""
        return self.study.tables(self.rows, self.settings)

    def figures(self) -> tuple[Figure, ...]:
        """What is drawn.

        Raises:
            EngineFailure: the extra "report" is not installed.
        """
        return self.study.figures(self.rows, self.settings)

    def frame(self) -> pl.DataFrame:
        """The rows, tidy."""
        import polars as pl

        known = dict.fromkeys(name for row in self.rows for name in row)
        tidy = [{name: row.get(name) for name in known} for row in self.rows]
        return pl.DataFrame(tidy, infer_schema_length=None)

    def to_json(self) -> dict[str, Any]:
        """Name, settings and tables as plain values."""
        return {
            "study": self.study.name,
            "title": self.study.title,
            "paper": self.study.paper,
            "reproduces": self.study.reproduces,
            "confidential": self.confidential,
            "settings": _facts(self.study, self.settings),
            "tables": [
                {"name": t.name, "title": t.title, "headers": t.headers, "rows": t.rows}
                for t in self.tables()
            ],
        }

    def write(self, folder: str | Path) -> tuple[str, ...]:
        """Write rows.parquet, tables.json and one SVG a figure, readable by their owner alone.

        Returns:
            The names of the files.
        Raises:
            OutputNotWritten: a file cannot be written.
            EngineFailure: the extra "report" is not installed.
        """
        from gibbous.studies.drawing import file_of

        table = BytesIO()
        self.frame().write_parquet(table)
        files = {
            "rows.parquet": table.getvalue(),
            "tables.json": json.dumps(plain(self.to_json()), indent=1).encode(),
        } | {f"{figure.name}.svg": file_of(figure) for figure in self.figures()}
        place = Path(folder)
        try:
            make_own_folder(place)
            for name, data in files.items():
                write_own(place / name, data)
        except OSError as error:
            raise OutputNotWritten(
                "STUDY",
                f"The study cannot be written to {str(place)!r} ({error.strerror}).",
                "It goes into a folder that this user may write to.",
                "Choose another --out.",
            ) from None
        return tuple(files)


@answering
def run(
    name: str,
    *,
    out: str | Path | None = None,
    quick: bool = False,
    reps: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
    schema: str | Path | None = None,
    resume: bool = True,
    progress: Progress = silent,
) -> Ran:
    """Run a study of a paper again. It simulates, or reads public data; nothing is charged.

    Args:
        name: one of `names()`.
        out: folder for rows.parquet, tables.json, the figures and the cells that are done; None
            keeps everything in memory.
        quick: the short setting in place of the paper's.
        reps: repeats of each setting; None for those of the setting.
        workers: processes; None for all cores. The figures do not depend on it.
        seed: of every draw.
        data: a table in place of the study's own, where the study takes one. Its figures are then
            confidential.
        schema: the schema file of that table.
        resume: go on where an earlier start in `out` stopped; False refuses such a folder.
        progress: called with ("runs", done, total).
    Returns:
        What came out: tables(), figures(), frame(), rows.
    Raises:
        UsageError: an unknown study, a number that is not positive, a table that the study does not
            take, or a folder of other settings.
    """
    study = load(name)
    settings = _settings(study, quick=quick, reps=reps, seed=seed, files=(data, schema))
    if workers is not None and workers < 1:
        raise UsageError(
            "WORKERS", f"workers={workers} was asked for.", "It is >= 1.", "Leave it out."
        )
    if out is not None:
        require(("altair", "vl_convert"), "report")  # before the work, not after it
    place = None if out is None else Path(out)
    if place is not None and not resume and (place / "cells").exists():
        raise UsageError(
            "STUDYTHERE",
            f"{str(place)!r} holds a study, and it shall not be resumed.",
            "Without resuming, a study goes into a new folder.",
            "Choose another folder, or leave --no-resume out.",
        )
    store = Store(place, _facts(study, settings))
    cells = tuple(study.cells(settings))
    _run(study, cells, settings, store, workers or usable_cores(), progress)
    rows = [row for cell in cells for row in store.get(_named(cell)) or ()]
    ran = Ran(study, settings, tuple(rows))
    if place is not None:
        ran.write(place)
    return ran


def _settings(
    study: Study,
    *,
    quick: bool,
    reps: int | None,
    seed: int,
    files: tuple[str | Path | None, str | Path | None],
) -> Settings:
    values = {**study.full, **(study.quick if quick else {})}
    usual = int(values.pop("reps", 1))
    if reps is not None and reps < 1:
        raise UsageError(
            "REPEATS", f"reps={reps} was asked for.", "It is >= 1.", f"Leave it out for {usual}."
        )
    source, schema = (None if file is None else Path(file).absolute() for file in files)
    if (source or schema) and not study.takes_data:
        raise UsageError(
            "STUDYDATA",
            f"The study {study.name!r} takes no table.",
            "It simulates its data, or reads its own.",
            "Leave --data and --schema out.",
        )
    if schema and not source:
        raise UsageError(
            "STUDYDATA",
            "A schema was given without a table.",
            "A schema file describes the table of --data.",
            "Give --data, or leave --schema out.",
        )
    return Settings(usual if reps is None else reps, seed, quick, values, source, schema)


def _facts(study: Study, settings: Settings) -> dict[str, Any]:
    """What the rows depend on. A table by its digest: a folder is not resumed with other data."""
    from gibbous import __version__

    return {
        "version": __version__,
        "study": study.name,
        "reps": settings.reps,
        "seed": settings.seed,
        "quick": settings.quick,
        "data": None if settings.data is None else digest(str(settings.data)),
        "schema": None if settings.schema is None else digest(str(settings.schema)),
        **{name: plain(value) for name, value in settings.values.items()},
    }


def _run(
    study: Study,
    cells: Sequence[Cell],
    settings: Settings,
    store: Store,
    workers: int,
    progress: Progress,
) -> None:
    left = [cell for cell in cells if store.get(_named(cell)) is None]
    done = len(cells) - len(left)
    progress("runs", done, len(cells))
    if workers == 1 or len(left) <= 1:
        for cell in left:
            store.put(_named(cell), _plain(study.run_cell(cell, settings)))
            done += 1
            progress("runs", done, len(cells))
        return
    # Started afresh, not forked: a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(
        min(workers, len(left)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(study.name, settings),
    )
    with pool:
        futures = {pool.submit(_step, cell): cell for cell in left}
        try:
            for future in as_completed(futures):
                store.put(_named(futures[future]), future.result())
                done += 1
                progress("runs", done, len(cells))
        except BrokenProcessPool:
            raise workers_died() from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _named(cell: Cell) -> FrontierCell:
    """The store of `compare` knows a cell by its name alone."""
    return cast("FrontierCell", cell)


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON reads them back, so that a resumed study is equal to one of a single start."""
    return [{name: _value(value) for name, value in row.items()} for row in rows]


def _value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


_told: tuple[Study, Settings] | None = None


def _start(name: str, settings: Settings) -> None:
    global _told
    _told = (load(name), settings)


def _step(cell: Cell) -> list[dict[str, Any]]:
    assert _told is not None
    return _plain(_told[0].run_cell(cell, _told[1]))
