"""The folder of the studio and those in it, and never one outside: what may be opened as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.studio.words import refusal
from gibbous.studio.workplace import INTERNAL, RUNS

if TYPE_CHECKING:
    from gibbous.studio.workplace import Workplace

TEXTS = (".csv.gz", ".tsv.gz", ".csv", ".tsv")
PARQUET = ".parquet"
TABLES = (*TEXTS, PARQUET)
SHOWN = 200


def shown(place: Workplace, at: str) -> dict[str, Any]:
    """One folder as a screen shows it; where it is none of ours, the uppermost."""
    folder = _inner(place, at) or place.folder
    own = folder.relative_to(place.folder).parts
    made = {place.folder / INTERNAL, place.folder / RUNS}
    names = sorted(p.name for p in _plain(folder) if _walkable(place, p) and p not in made)
    return {
        "up": [("/".join(own[:n]), name) for n, name in enumerate(own, 1)],
        "folders": [("/".join((*own, name)), name) for name in names[:SHOWN]],
        "files": ["/".join((*own, name)) for name in _tables(folder)[:SHOWN]],
        "whole": "/".join(own) if own and as_table(folder) is not None else "",
        "count": len(_tables(folder)),
    }


def as_table(folder: Path) -> Path | None:
    """A folder of parts as the path of one table: itself, if all are Parquet, or a pattern; else None."""
    names = _tables(folder)
    endings = {next(end for end in TABLES if name.lower().endswith(end)) for name in names}
    if len(endings) != 1:
        return None
    ending = endings.pop()
    return folder if ending == PARQUET else folder / f"*{ending}"


def whole(place: Workplace, at: str) -> Path:
    """The table that all files of one of our folders are together.

    Raises:
        UsageError: there is no such folder, or its files are of several kinds.
    """
    folder = _inner(place, at) if at else None
    table = None if folder is None else as_table(folder)
    if table is None:
        raise refusal("FOLDER")
    return table


def beside(place: Workplace, data: str) -> list[str]:
    """Tables in the folder of the studio, and in that of the data if it is inside."""
    parent = Path(data).parent if "://" not in data else Path()
    folders = {place.folder, _inner(place, str(parent)) or place.folder}
    found = (place.short(folder / name) for folder in sorted(folders) for name in _tables(folder))
    return [name for name in found if not name.startswith(".")][:SHOWN]


def _inner(place: Workplace, at: str) -> Path | None:
    """A folder inside that of the studio, reached through no link, no .. and nothing hidden."""
    path = place.folder / at
    try:
        ours = path.resolve() == path and path.is_relative_to(place.folder) and path.is_dir()
    except (OSError, ValueError):
        return None
    hidden = ours and any(name.startswith(".") for name in path.relative_to(place.folder).parts)
    return path if ours and not hidden else None


def _walkable(place: Workplace, path: Path) -> bool:
    return _inner(place, place.short(path)) is not None and not (path / "manifest.json").exists()


def _plain(folder: Path) -> list[Path]:
    """What a folder holds, hidden things and links aside."""
    try:
        return [p for p in folder.iterdir() if not p.name.startswith(".") and not p.is_symlink()]
    except OSError:
        return []


def _tables(folder: Path) -> list[str]:
    return sorted(p.name for p in _plain(folder) if p.name.lower().endswith(TABLES) and p.is_file())
