"""`gibbous study`: the simulations of the papers, run again; tables here, files in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.core.errors import OutputNotWritten

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags


def run(name: str, out: Path | None, settings: dict[str, Any], screen: ScreenFlags) -> None:
    """Run, or go on with, a study, print its tables and write its files; no `out` writes nothing."""
    from gibbous import studies

    check_folder(out)
    with Bars(quiet=screen.silent) as bars:
        ran = studies.run(name, out=out, progress=bars, **settings)
    if screen.json:
        from gibbous.core.json_values import plain

        show.as_json(plain(ran.to_json()) | {"written": None if out is None else str(out)})
        return
    if not screen.quiet:
        _tables(ran)
    if ran.confidential:
        show.line(
            "Confidential: these figures were computed against the table that was given; publishing "
            "them is a release of its own unless its records are public."
        )
    where = "nothing was written (--out)" if out is None else f"in {show.quoted(out)}"
    show.line(f"{name}: {ran.settings.reps} repeats, {len(ran.rows)} rows; {where}.")


def check_folder(out: Path | None) -> None:
    """Refuse a file where the folder of a study goes, by OutputNotWritten."""
    if out is not None and out.exists() and not out.is_dir():
        raise OutputNotWritten(
            "STUDY",
            f"{str(out)!r} is a file.",
            "A study goes into a folder, new or of an earlier start.",
            "Choose another --out.",
        )


def _tables(ran: Any) -> None:
    from gibbous.studies.study_parts import summary

    show.line(f"{ran.study.title} ({ran.study.paper})")
    show.line(ran.study.reproduces)
    for table in ran.tables():
        show.line()
        show.line(table.title)
        show.table(table.headers, [list(map(show.figure, row)) for row in table.rows])
    show.line()
    show.line(summary(ran.printed()))
