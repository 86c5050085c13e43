"""A path -> an open regular file, or a clear refusal: no hang, no network, no other file."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from gibbous.core.errors import EngineFailure, InputRejected, ResourceLimit
from gibbous.core.machine import available_memory
from gibbous.read.fields import shown

BLOCK = 8 << 20
_CEILING = 8 << 30
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_KINDS = (
    (stat.S_ISDIR, "is a directory"),
    (stat.S_ISFIFO, "is a named pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)
_MOST_RATIO = 200
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_FREE_BYTES = 64 << 20


def format_of(path: Path) -> str:
    """'csv', 'csv.gz' or 'parquet', by the file's name; InputRejected for anything else."""
    name = path.name.lower()
    if _URL.match(str(path)):
        typed = str(path).replace(":/", "://", 1)  # a path has single slashes
        raise _rejected("NOTAFILE", typed, "is an address", "Download it first, and pass its path.")
    for ending, kind in ((".parquet", "parquet"), (".pq", "parquet")):
        if name.endswith(ending):
            return kind
    if name.endswith(TEXT_ENDINGS):
        return "csv.gz" if name.endswith(".gz") else "csv"
    if name.endswith(".zip"):
        raise _rejected("ARCHIVE", path, "is an archive", "Unpack it, and pass the file inside.")
    raise _rejected(
        "FORMAT",
        path,
        "has an ending that is not known",
        "Convert it, or rename it if it is one of these.",
    )


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; afterwards, check that it did not change meanwhile.

    Raises:
        InputRejected: missing, unreadable, or not a regular file.
        EngineFailure: it changed while it was read.
    """
    fault = ""
    handle = -1
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        fault = "does not exist"
        if any(letter in str(path) for letter in "*?["):
            fault += " (patterns are not expanded)"
    except PermissionError:
        fault = "cannot be read: no permission"
    except (OSError, ValueError):
        fault = "cannot be opened"
    if fault:
        raise _rejected("NOTAFILE", path, fault, "Check the path.")
    before = os.fstat(handle)
    fault = next((words for is_kind, words in _KINDS if is_kind(before.st_mode)), "")
    if fault:
        os.close(handle)
        raise _rejected("NOTAFILE", path, fault, "Pass the path of one regular file.")
    with os.fdopen(handle, "rb") as file:
        yield file
        check_unchanged(path, before)


def memory_limit() -> int:
    """Bytes that reading may take by default: half of what this process may use, at most 8 GiB."""
    return min(_CEILING, available_memory() // 2)


def blocks(file: BinaryIO, *, gz: bool, max_bytes: int) -> Iterator[bytes]:
    """The bytes of an open file, unpacked if it is gzip, in blocks of at most 8 MB.

    Raises:
        ResourceLimit: more than `max_bytes` after unpacking, or unpacks over 200-fold beyond 64 MB.
        InputRejected: it is not gzip, or cut short.
    """
    size = os.fstat(file.fileno()).st_size
    if not gz and size > max_bytes:
        raise _too_large(size, max_bytes)
    total = 0
    for block in _unpacked(file) if gz else iter(lambda: file.read(BLOCK), b""):
        total += len(block)
        if total > max_bytes:
            raise _too_large(total, max_bytes)
        if gz and total > _FREE_BYTES and total > _MOST_RATIO * size:
            raise ResourceLimit(
                "BOMB",
                f"The gzip file unpacks to more than {_MOST_RATIO} times its size.",
                "Real tables pack 3- to 50-fold.",
                "If it is right, unpack it first and pass the unpacked file.",
            )
        yield block


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    machine = zlib.decompressobj(31)
    fault = False
    while not fault:
        packed = machine.unconsumed_tail or file.read(1 << 20)
        if machine.eof:
            rest = machine.unused_data + (b"" if machine.unconsumed_tail else packed)
            if not rest:
                return
            machine, packed = zlib.decompressobj(31), rest
        elif not packed:
            break
        try:
            block = machine.decompress(packed, BLOCK)
        except zlib.error:
            fault = True
        else:
            yield block
    raise InputRejected(
        "GZIP",
        "The gzip file is damaged or cut short." if not fault else "The file is not sound gzip.",
        "A .gz file holds one gzip-packed text file.",
        "Fetch or pack it again.",
    )


def check_unchanged(path: Path, before: os.stat_result) -> None:
    """Raise EngineFailure if a file is not what it was."""
    same = False
    with suppress(OSError):
        after, parts = os.stat(path), attrgetter("st_ino", "st_size", "st_mtime_ns")
        same = parts(before) == parts(after)
    if not same:
        raise changed(path)


def changed(path: Path | None = None) -> EngineFailure:
    """The error for an input that did not stay as it was."""
    return EngineFailure(
        "INPUTCHANGED",
        f"The input {shown(path)} changed while it was read."
        if path
        else "The input changed while it was read.",
        "It stays as it is during a run.",
        "Wait until it is complete, and run again.",
    )


def _too_large(size: int, most: int) -> ResourceLimit:
    return ResourceLimit(
        "TOOLARGE",
        f"The input has at least {size:,} bytes.",
        f"At most {most:,} bytes are read here.",
        "Raise max_bytes if memory allows, or keep the columns and rows that are needed.",
    )


def _rejected(name: str, path: Path | str, what: str, fix: str) -> InputRejected:
    return InputRejected(
        name,
        f"The input {shown(path)} {what}.",
        "It is one regular local file: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.",
        fix,
    )


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
            "Keep its Parquet files alone there, or name files by a pattern, 'folder/*.csv'.",
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

    pattern = re.compile(fnmatch.translate(path.name))
    names = [n for n in _names(folder) if pattern.match(n) and not n.startswith((".", "_"))]
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
