"""Where a release may go: checked at plan time, before anything is spent."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from pathlib import Path

from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.core.request import Output
from gibbous.core.schema import Schema
from gibbous.read.fields import shown
from gibbous.write.durable_files import exists, not_written
from gibbous.write.partial import sweep_finished

LONGEST = 200  # bytes of the last part of a path; the partial folder needs some of the 255


def check_output(out: str | Path, *, overwrite: bool = False, source: object = None) -> Path:
    """Refuse an output that could not be written, or that would destroy something, such as the source.

    Returns:
        The absolute path; its parent has no links.
    Raises:
        UsageError: the path is unusable, or is the input.
        OutputNotWritten: it exists, its folder is missing, read-only or a release, or it may not be
            replaced.
    """
    target = _absolute(out)
    _check_source(target, source)
    _check_outside(target)
    if target.is_symlink():
        raise OutputNotWritten(
            "LINK",
            f"The output {str(target)!r} is a symbolic link.",
            "A release is a folder of its own.",
            "Name the folder itself.",
        )
    if target.exists():
        if not overwrite:
            sweep_finished(target)
            raise exists(target)
        _check_replaceable(target)
    _check_parent(target)
    return target


def check_levels(schema: Schema, output: Output) -> None:
    """Raise UsageError where a CSV file could not tell a level from a missing cell."""
    column = next((c for c in schema if schema.null in (*c.levels, c.other)), None)
    if "csv" in output.formats and column is not None:
        raise UsageError(
            "NULL",
            f"Column {shown(column.name)} has the level {schema.null!r}, which means missing in CSV.",
            "A CSV file has one text for what is missing, and no level has that text.",
            "State another one (null = in the schema), or write Parquet alone.",
        )


def _absolute(out: str | Path) -> Path:
    try:
        path = Path(out).expanduser()
        name = os.fsencode(path.name)
        str(path).encode("utf-8")
        usable = path.name not in ("", ".", "..") and b"\0" not in name and "\n" not in path.name
    except (ValueError, RuntimeError):
        usable = False
    if not usable:
        raise UsageError(
            "OUT",
            "The output path cannot be used.",
            "It is a new folder with a name in valid text, in a folder that exists.",
            "Choose another --out.",
        )
    if len(name) > LONGEST:
        raise OutputNotWritten(
            "LONGNAME",
            f"The name of the output has {len(name)} bytes.",
            f"At most {LONGEST}.",
            "Choose a shorter name.",
        )
    return Path(os.path.realpath(path.parent)) / path.name


def _check_source(target: Path, source: object) -> None:
    if not isinstance(source, str | os.PathLike):
        return
    with contextlib.suppress(OSError, ValueError):
        origin = Path(os.path.realpath(Path(os.fspath(source)).expanduser()))
        same = target.exists() and origin.exists() and os.path.samefile(target, origin)
        if same or target == origin or target in origin.parents:
            raise UsageError(
                "SAMEFILE",
                "The output is the input, or holds it.",
                "The confidential file is never overwritten.",
                "Choose another --out.",
            )


def _check_outside(target: Path) -> None:
    """A release is exactly what its manifest lists: one more file, and nobody accepts it any longer."""
    for folder in target.parents:
        if (folder / "manifest.json").is_file() and (folder / "SHA256SUMS").is_file():
            raise OutputNotWritten(
                "INRELEASE",
                f"{str(target)!r} would lie inside the release {str(folder)!r}.",
                "A release holds exactly the files of its manifest.",
                "Choose another --out, for example beside it.",
            )


def _check_replaceable(target: Path) -> None:
    ours = target.is_dir() and (
        (target / "ledger.json").is_file() and (target / "SHA256SUMS").is_file()
    )
    if not ours and not (target.is_dir() and not any(target.iterdir())):
        raise OutputNotWritten(
            "NOTOURS",
            f"{str(target)!r} exists and is not a release.",
            "--overwrite replaces a release, or an empty folder, and nothing else.",
            "Choose another name.",
        )


def _check_parent(target: Path) -> None:
    if not target.parent.is_dir():
        raise OutputNotWritten(
            "NOPARENT",
            f"The folder {str(target.parent)!r} does not exist.",
            "The output is made inside a folder that exists: a mistyped path makes none.",
            f"Make it (mkdir -p {shlex.quote(str(target.parent))}), or choose another --out.",
        )
    prefix = f".{target.name[:40]}.check-"
    try:
        # The only sure test of permissions, read-only file systems and quotas.
        tempfile.mkdtemp(prefix=prefix, dir=target.parent)
    except OSError as error:
        raise not_written(target.parent, error) from None
    for made in os.listdir(target.parent):  # this one, and those of runs that were killed here
        if made.startswith(prefix):
            with contextlib.suppress(OSError):
                os.rmdir(target.parent / made)
