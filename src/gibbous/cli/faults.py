"""Any exception in, one three-part line on stderr and an exit code out; never a value of the data."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from gibbous.core.errors import EngineFailure, GibbousError, OutputNotWritten, ResourceLimit

if TYPE_CHECKING:
    from threading import ExceptHookArgs

STATE_UNKNOWN = "What was reserved stays spent: `gibbous ledger show` lists it."
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CONTROL = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10},
    # Marks that reverse or hide text on a terminal.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}


def report(error: Exception, args: Sequence[str], *, debug: bool = False) -> int:
    """Print one error the way people and scripts expect it.

    Args:
        error: what was raised. Only our own errors are quoted; of any other, only the class is
            named, because library messages carry cell values.
        args: the command line, for did-you-mean.
        debug: also print where it happened: files, lines, functions; no values.
    Returns:
        The exit code.
    """
    ours = translate(error, args)
    print(safe(ours.render()).replace("\n", "\\n"), file=sys.stderr)
    if debug:
        for line in positions(error):
            print(line, file=sys.stderr)
    return ours.exit_code


def translate(error: Exception, args: Sequence[str]) -> GibbousError:
    """The error of our own that stands for `error`."""
    if isinstance(error, GibbousError):
        return error
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        from gibbous.cli.mistakes import usage  # only a wrong command line needs it

        return usage(error, args)
    if isinstance(error, MemoryError):
        return ResourceLimit(
            "MEMORY",
            "There is not enough memory for this run.",
            "`gibbous plan` prints the estimate.",
            "Use fewer parent columns or coarser levels, or a larger machine.",
            state=STATE_UNKNOWN,
        )
    if isinstance(error, OSError) and error.errno in DISK:
        return ResourceLimit(
            "DISK",
            "The disk is full, or a quota is used up.",
            "Nothing half-written is left at the output path.",
            "Free space or choose another --out, and run the same command again.",
            state=STATE_UNKNOWN,
        )
    if isinstance(error, OSError) and error.errno is not None:
        return OutputNotWritten(
            "SYSTEM",
            f"The operating system refused the use of a file or folder: {os.strerror(error.errno)}.",
            "The input must be readable; the output folder, GIBBOUS_HOME and the scratch folder "
            "must be writable.",
            "Check the disk and the permissions, or pass other paths.",
            state=STATE_UNKNOWN,
        )
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("gibbous"):
        return missing_library(error.name or "a library")
    return internal(error)


def internal(error: BaseException) -> GibbousError:
    """A bug: named by an id made of code positions, so that the same bug has the same id."""
    return GibbousError(
        "INTERNAL",
        f"Unexpected {type(error).__name__} inside gibbous (error id {error_id(error)}).",
        "This is a fault of gibbous, not of your data.",
        "Run again with --debug and report the id and the positions printed; they hold no data.",
        state=STATE_UNKNOWN,
    )


def not_printed(error: OSError) -> OutputNotWritten:
    """The command did what it was asked for; stdout could not be written."""
    return OutputNotWritten(
        "STDOUT",
        f"The output could not be printed to stdout: {os.strerror(error.errno or 0)}.",
        "The command itself ended well.",
        "Do not repeat it: look at its output folder, and at `gibbous ledger show`.",
        state="What it wrote is in place, and what it reserved is charged.",
    )


def missing_library(name: str) -> EngineFailure:
    """A library that this verb needs is not installed."""
    return EngineFailure(
        "MISSING",
        f"The library {name!r} is not installed.",
        "This command needs it.",
        f'Install it: pip install "{name}".',
    )


def error_id(error: BaseException) -> str:
    """Eight hex digits from the class and the code positions; no message, no value."""
    import hashlib
    import traceback

    digest = hashlib.sha256(type(error).__name__.encode())
    for frame in traceback.extract_tb(error.__traceback__):
        digest.update(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}:{frame.name}".encode())
    return digest.hexdigest()[:8]


def positions(error: BaseException) -> list[str]:
    """The traceback without messages, locals or source text; causes included."""
    import traceback

    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        lines.append(f"{type(seen).__name__} at:")
        for frame in traceback.extract_tb(seen.__traceback__):
            lines.append(f"  {frame.filename}:{frame.lineno} in {frame.name}")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return lines


def safe(text: str) -> str:
    """Text for a terminal: control characters and marks that reorder text are shown, not obeyed."""
    return text.translate(CONTROL).encode("utf-8", "backslashreplace").decode("utf-8")


def quiet_threads() -> None:
    """Exceptions in threads and destructors may quote cells: they do not reach stderr."""
    threading.excepthook = _thread_failed
    sys.unraisablehook = lambda _: None
    sys.excepthook = _uncaught


told: list[str] = []
"""Warnings of this run so far, for its JSON document: public words, as on stderr."""


@contextmanager
def own_warnings() -> Iterator[None]:
    """Within it, warnings of gibbous are one line each on stderr; those of libraries are dropped."""
    import warnings

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        if category.__module__.split(".")[0] == "gibbous":
            told.append(str(message))
            print(safe(f"warning: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            told.clear()


def _thread_failed(args: ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        print(internal(args.exc_value).render(), file=sys.stderr)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print(internal(error).render(), file=sys.stderr)
