"""A folder or a pattern -> the Parquet files that it stands for, in the order of their names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gibbous.core.errors import InputRejected
from gibbous.read.fields import shown
from gibbous.read.files import format_of

MOST = 100_000  # files
_ENDINGS = (".parquet", ".pq")
_PATTERN = re.compile(r"[*?\[]")


def is_many(path: Path) -> bool:
    """Whether a path stands for several Parquet files: a folder, or a pattern for their names.

    A file whose name has the letters of a pattern is that one file.
    """
    if path.name.lower().endswith(_ENDINGS):
        return os.path.isdir(path) or (bool(_PATTERN.search(path.name)) and not _exists(path))
    return os.path.isdir(path) and not _named_as_file(path)


def files_of(path: Path) -> list[Path]:
    """The files of a folder or pattern, sorted by name; hidden ones, and those of `_`, are left out.

    Raises:
        InputRejected: there are none, a pattern has a part of a folder in it, or the folder holds
            something else: other files, folders (their names may be values of a column), or the log
            of a table format, which says which of the files count.
    """
    if not os.path.isdir(path):
        return _matching(path)
    names = _names(path)
    log = next((n for n in names if n in ("_delta_log", "metadata", ".hoodie", "_hudi")), None)
    if log and (path / log).is_dir():
        raise _refused(
            f"The folder {shown(path)} is a table of versions: {shown(log)} says which files count.",
            "Read it with the engine that knows its format (a Spark or DuckDB table), or export "
            "the current version to a folder of its own.",
        )
    plain = [n for n in names if not n.startswith((".", "_"))]
    odd = next((n for n in plain if not n.lower().endswith(_ENDINGS)), None)
    if odd is not None:
        kind = "folder" if (path / odd).is_dir() else "file"
        raise _refused(
            f"The folder {shown(path)} also holds the {kind} {shown(odd)}.",
            "Keep its Parquet files alone there, or name them by a pattern, 'folder/*.parquet'.",
        )
    return _some([path / n for n in plain], path)


def _matching(path: Path) -> list[Path]:
    folder = path.parent
    if _PATTERN.search(str(folder)) and not _exists(folder):
        raise _refused(
            f"The pattern {shown(path)} leaves the folder open.",
            "Name one folder, and give the pattern for the names of the files in it.",
        )
    import fnmatch

    wanted = re.compile(fnmatch.translate(path.name))
    names = [n for n in _names(folder) if wanted.match(n) and not n.startswith((".", "_"))]
    return _some([folder / n for n in names], path)


def _names(folder: Path) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError):
        names = None
    if names is None:
        raise _refused(f"The folder {shown(folder)} cannot be read.", "Check its path.")
    return names


def _some(files: list[Path], path: Path) -> list[Path]:
    if not files:
        raise _refused(
            f"No Parquet file is found at {shown(path)}.",
            "Check the path; hidden files, and those whose names begin with '_', are left out.",
        )
    if len(files) > MOST:
        raise _refused(
            f"{len(files):,} files are found at {shown(path)}; at most {MOST:,} are read.",
            "Join them into fewer.",
        )
    return files


def _exists(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _named_as_file(path: Path) -> bool:
    try:
        format_of(path)
    except InputRejected as error:
        return error.name != "FORMAT"
    return True


def _refused(wrong: str, fix: str) -> InputRejected:
    return InputRejected(
        "FILES",
        wrong,
        "A folder or pattern stands for Parquet files of the same columns, and for nothing else.",
        fix,
    )
