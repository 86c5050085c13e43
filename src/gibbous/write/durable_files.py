"""Files and folders of a release: private, on disk before they count, renamed in one step."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gibbous.core import durable
from gibbous.core.documents import Unreadable, json_value, read_bytes
from gibbous.core.errors import GibbousError, ModelRejected, OutputNotWritten, ResourceLimit
from gibbous.core.request import PRIVATE, READABLE

NOREPLACE, EXCHANGE = 1, 2  # flags of renameat2(2)
_AT_FDCWD = -100
_NO_SPACE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
MAX_JSON = 64 << 20  # bytes
UNREADABLE = "UNREADABLE"


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file of mode 0600 that is on disk when the block ends, and gone when it fails.

    OutputNotWritten or ResourceLimit replaces what the library raised, here and in what follows.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise not_written(path, error) from None
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            with contextlib.suppress(
                OSError
            ):  # where files cannot be locked, nobody sweeps them either
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):  # swept with its folder
            path.unlink(missing_ok=True)
        if isinstance(error, OSError) or type(error).__module__.startswith("polars"):
            raise not_written(path, error) from None
        raise


def not_written(path: Path, error: BaseException) -> OutputNotWritten | ResourceLimit:
    """The error for a file that could not be written."""
    number = getattr(error, "errno", None)
    if number in _NO_SPACE or any(f"os error {n})" in str(error) for n in _NO_SPACE):
        return ResourceLimit(
            "DISK",
            f"The disk is full, or a quota is used up: {str(path)!r} cannot be written.",
            "A release is written whole or not at all.",
            "Make room, or write to another disk, and run again.",
        )
    why: Any = getattr(error, "strerror", None) or "the file system refused it"
    return OutputNotWritten(
        "WRITE",
        f"{str(path)!r} cannot be written: {why}.",
        "The output is a new file in a folder that this user may write.",
        "Correct the path or its permissions, and run again.",
    )


def write_bytes(path: Path, data: bytes) -> None:
    """Write a new file, mode 0600, on disk when this returns."""
    with new_file(path) as file:
        file.write(data)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file for people and machines; the same value gives the same bytes."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode("utf-8", "surrogatepass") + b"\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of a release; ModelRejected if it is missing, too large or not JSON."""
    with untrusted(path.name, "JSON"):
        return json_value(read_bytes(path, MAX_JSON))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the system into ours."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a small file in one step, mode 0600, on disk when this returns; else it is as it was."""
    with writing(path):
        durable.write_whole(path, data)


def sha256_of(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(path: Path) -> None:
    """A new folder, mode 0700 whatever the umask."""
    with writing(path):
        path.mkdir(mode=0o700)
        path.chmod(0o700)


def sync_folder(path: Path) -> None:
    """Make names in a folder durable; an error of the disk is not tried again."""
    with writing(path):
        durable.sync_folder(path)


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it, as far as possible; links are not followed."""
    shutil.rmtree(path, ignore_errors=True)


def share(path: Path, mode: int) -> None:
    """Give a file, or all files of a folder, this mode; folders that can be read can be entered."""
    if mode == PRIVATE:
        return  # everything is made so
    for one in (path, *path.rglob("*")):
        one.chmod(mode | 0o100 | (mode & 0o044) >> 2 if one.is_dir() else mode)


def mode_of(folder: Path) -> int:
    """The mode that the files of a release were given."""
    mode = stat.S_IMODE((folder / "manifest.json").stat().st_mode)
    return next((one for one in READABLE if one == mode), PRIVATE)


def move_into_place(
    source: Path, target: Path, *, overwrite: bool, mode: int | str = PRIVATE
) -> None:
    """Give a finished folder its final name in one step; `sync_name` makes the name durable.

    With `overwrite` and an existing target, the two folders exchange their names: at no moment is
    the target missing. The old one is then at `source`.

    Args:
        mode: of its files, for those who may read it from now on.
    Raises:
        OutputNotWritten: the target appeared meanwhile, or the file system refuses.
    """
    try:
        share(source, int(mode))
        if overwrite and target.exists():
            if not _renameat2(source, target, EXCHANGE):
                _exchange_by_steps(source, target)
        elif not _renameat2(source, target, NOREPLACE):
            if os.path.lexists(target):
                raise exists(target)
            source.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise exists(target) from None
        raise not_written(target, error) from None


def sync_name(target: Path) -> None:
    """Make the name of a finished output durable; it is there all the same if the disk reports an error."""
    try:
        sync_folder(target.parent)
    except GibbousError as error:
        error.restate(
            f"The output {str(target)!r} is there all the same, whole and paid for; whether its name "
            "outlives a power cut is not known."
        )
        raise


def exists(target: Path) -> OutputNotWritten:
    """The error for an output that is already there."""
    return OutputNotWritten(
        "EXISTS",
        f"The output {str(target)!r} exists.",
        "A release is a new folder; nothing is replaced without being asked.",
        "Choose another name, or pass --overwrite.",
    )


def rejected(name: str, wrong: str) -> ModelRejected:
    """The error for a release folder that is damaged or not one of ours."""
    return ModelRejected(
        name,
        f"This is not an intact release: {wrong}.",
        "A release is exactly what its manifest lists, with the digests and the claim it was made with.",
        "Get it again from whoever made it; do not use it as it is.",
        state="Nothing was read beyond that, and nothing was run.",
    )


def check_format(value: object, known: str, what: str) -> None:
    """Refuse, as VERSION, a document of another format; what: has it, for example "its tables have"."""
    if value != known:
        raise rejected(
            "VERSION", f"{what} the format {str(value)[:40]!r}, this gibbous reads {known!r}"
        )


def refuse_unreadable(path: Path, error: BaseException) -> None:
    """Raise ModelRejected, as UNREADABLE, for an error of the system: it says nothing about the content."""
    code = re.search(r"\(os error (\d+)\)", str(error))  # as Polars has it
    number = getattr(error, "errno", None) or (int(code[1]) if code else None)
    why = "" if number is None or number in (errno.ENOENT, errno.ENOTDIR) else os.strerror(number)
    if any("\ud800" <= c <= "\udfff" for c in os.path.abspath(path)):  # bytes that are not UTF-8
        why = "the reader of Parquet takes only paths that are UTF-8 text"
    if not why:
        return
    raise ModelRejected(
        UNREADABLE,
        f"{str(path)!r} cannot be read: {why}.",
        "This says nothing about what is in it.",
        "Check the disk and the permissions, and try again.",
        state="Nothing was read beyond that, and nothing was run.",
    ) from None


@contextlib.contextmanager
def untrusted(name: str, code: str) -> Iterator[None]:
    """Turn a file that is too large, or not the text it should be, into a refusal."""
    try:
        yield
    except Unreadable as error:
        refuse_unreadable(Path(name), error)
        raise rejected(code, f"{name} {error}") from None


_UNREADABLE = (
    ValueError, KeyError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError
)  # fmt: skip


@contextlib.contextmanager
def refusing(name: str, wrong: str) -> Iterator[None]:
    """Turn any error of reading untrusted values into a refusal."""
    try:
        yield
    except ModelRejected:
        raise
    except Exception as error:
        # A template that lacks a value raises an error of jinja2, which is not imported for that.
        if isinstance(error, _UNREADABLE) or type(error).__module__.startswith("jinja2."):
            raise rejected(name, wrong) from None
        raise


def _renameat2(source: Path, target: Path, flag: int) -> bool:
    """Rename by the system call of Linux; False where it does not exist."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    done = libc.renameat2(
        _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flag)
    )
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def _exchange_by_steps(source: Path, target: Path) -> None:
    aside = source.with_name(source.name + ".old")
    target.rename(aside)
    try:
        source.rename(target)
    except OSError:
        aside.rename(target)
        raise
    aside.rename(source)
