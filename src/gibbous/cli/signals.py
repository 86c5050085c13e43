"""Ctrl-C, SIGTERM and SIGHUP: unwind if Python gets its turn, leave in under two seconds if not."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGINT_CODE = 130
PATIENCE = 1.0  # seconds that a compiled kernel or a pool of threads has to come back
SPENDERS = {"synthesize", "demo", "compare"}  # commands that may have reserved a budget
RESERVED = (
    "A reservation that was already made stays spent: `gibbous ledger show` lists it, and the same "
    "command takes it up again."
)
WORDS = {130: "interrupted", 143: "terminated", 129: "the terminal went away"}


class Stopped(BaseException):
    """A signal asked this process to stop. Not an Exception: nothing on the way may swallow it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def watched() -> Iterator[None]:
    """Within it, stop signals raise `Stopped`, and a watchdog leaves if that does not help.

    A signal that arrives inside compiled code is only seen by Python when the code returns. The
    wake-up pipe is written by the C handler at once; a thread reads it and waits no longer than
    PATIENCE. Outside the main thread (tests, notebooks) nothing is installed.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _stop) for number in wanted}
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watchdog = threading.Thread(target=_watch, args=(reader,), name="watchdog", daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)
        watchdog.join()
        os.close(reader)


def leave(code: int) -> int:
    """Say what happened in one line and end this process now: no thread is waited for.

    Returns:
        Never, except where the process is not ours to end (no signal handler installed).
    """
    say(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if threading.current_thread() is threading.main_thread() and os.name == "posix":
        os._exit(code)
    return code


def say(code: int) -> None:
    """One line on stderr, written without Python's buffers (they may be locked)."""
    cursor = b"\r\x1b[?25h\x1b[K" if os.isatty(2) else b""
    spends = not SPENDERS.isdisjoint(sys.argv[1:])
    line = (
        f"error[GB{code}-STOPPED]: {WORDS.get(code, 'stopped')}. Nothing half-written is left at the "
        f"output path. {RESERVED if spends else 'This command reserves no budget.'}\n"
    )
    with suppress(OSError):
        os.write(2, cursor + line.encode())


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(128 + number)


def _watch(reader: int) -> None:
    code = _next_signal(reader)
    if code is None:
        return
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if ready:
            again = _next_signal(reader)
            if again is None:
                return  # the run unwound by itself
            break  # asked twice
    say(code)
    os._exit(code)


def _next_signal(reader: int) -> int | None:
    while True:
        try:
            byte = os.read(reader, 1)
        except OSError:
            return None
        if not byte:
            return None
        if byte[0] in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            return 128 + byte[0]
