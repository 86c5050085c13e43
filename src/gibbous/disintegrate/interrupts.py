"""Interrupts: while a block runs, Ctrl-C goes to Python alone, and no library sees it.

Polars hears Ctrl-C by a handler in front of Python's, and stops its own threads by a panic. Its Parquet
writer answers that with another panic, whose text lands on the terminal although nothing is wrong.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ROOM = 1024  # bytes; `struct sigaction` has 152 on Linux, and 16 on a Mac


@contextmanager
def heard_by_python_alone() -> Iterator[None]:
    """Give SIGINT to Python's handler and no other until the block ends.

    It changes nothing in a thread that is not the main one, or where SIGINT is ignored or handled
    by something that is not Python.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    system, before = ctypes.CDLL(None), ctypes.create_string_buffer(_ROOM)
    system.sigaction(int(signal.SIGINT), None, before)
    signal.signal(signal.SIGINT, handler)  # sets the system's handler to that of Python
    try:
        yield
    finally:
        system.sigaction(int(signal.SIGINT), before, None)
