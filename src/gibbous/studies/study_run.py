"""Runs a study of a paper by its name: settings in, then tables, Parquet and drawings of its rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.core.extras import require
from gibbous.core.json_values import plain
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.frontier.runner import Store, digest, parquet, run_cells, tidy, write_study
from gibbous.studies.study_parts import Cell, Figure, Printed, Row, Settings, Study, Table, load

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ran:
    """A study that was run; the rows that the cells found are in their order."""

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
        """What is drawn; EngineFailure without the extra "report"."""
        return self.study.figures(self.rows, self.settings)

    def printed(self) -> tuple[Printed, ...]:
        """What the paper prints beside ours, each with its verdict."""
        return self.study.printed(self.rows, self.settings)

    def frame(self) -> pl.DataFrame:
        """The rows, tidy."""
        return tidy(self.rows)

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
            "printed": [asdict(row) | {"verdict": row.verdict} for row in self.printed()],
        }

    def write(self, folder: str | Path) -> tuple[str, ...]:
        """Write study.html, rows.parquet, tables.json and one SVG a figure, for their owner alone.

        Returns:
            The names of the files.
        Raises:
            OutputNotWritten: a file cannot be written.
            EngineFailure: the extra "report" is not installed.
        """
        from gibbous.studies.panels import file_of
        from gibbous.studies.study_page import page_of

        files = {
            "rows.parquet": parquet(self.frame()),
            "tables.json": json.dumps(plain(self.to_json()), indent=1).encode(),
            "study.html": page_of(self),
        } | {f"{figure.name}.svg": file_of(figure) for figure in self.figures()}
        write_study(Path(folder), files)
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
        out: folder for study.html, rows.parquet, tables.json, the figures and the cells that are done; None
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
        What came out: tables(), figures(), printed(), frame(), rows.
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
            f"{str(place)!r} holds a study, and resuming it was turned off.",
            "Without resuming, a study goes into a new folder.",
            "Choose another folder, or leave --no-resume out.",
        )
    store = Store(place, _facts(study, settings))
    begin = partial(_Worker, name, settings)
    rows = run_cells(study.cells(settings), begin, store, workers=workers, progress=progress)
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


class _Worker:
    """Holds a study and its settings in one process."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._study, self._settings = load(name), settings

    def run(self, cell: Cell) -> list[dict[str, Any]]:
        return self._study.run_cell(cell, self._settings)
