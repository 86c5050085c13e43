"""The boundary of calls that handle tables: no dead fork gets in, and no record gets out with an error."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gibbous.core.errors import EngineFailure

Function = TypeVar("Function", bound=Callable[..., Any])
_THREADS = re.compile(r"polars-\d")
_parent, _forked_among_threads = [False], [False]  # what was seen before a fork; what holds here


def guarded(function: Function) -> Function:
    """Refuse the call in a process forked among the threads of Polars; empty the frames of an error.

    Frames keep their variables as long as a traceback lives, and error trackers send them on. So when an
    error leaves this function, the variables of every frame behind it are gone; those of the caller stay.

    Raises:
        EngineFailure: this process was forked from one in which Polars had worked.
    """

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        refuse_forked()
        try:
            return function(*args, **given)
        except BaseException as error:
            _empty_frames(error)
            args, given = (), {}  # the variables of this very frame
            raise

    call.__guarded__ = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def refuse_forked() -> None:
    """Raise EngineFailure in a process forked from one in which Polars had worked: it would wait forever."""
    if _forked_among_threads[0]:
        raise EngineFailure(
            "FORKED",
            "This process was forked from one in which Polars had read or made tables.",
            "The threads that do so are not in a forked process, which would wait for them forever.",
            "Start workers by multiprocessing.get_context('spawn'), or fork before the first table.",
        )


def _empty_frames(error: BaseException | None) -> None:
    """Clear the variables of all frames in the traceback of an error, and of those that it came from."""
    done: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in done:
            continue
        done.add(id(one))
        traceback.clear_frames(one.__traceback__)
        waiting += [one.__cause__, one.__context__]


def _threads_run() -> bool:
    """Whether Polars has its threads; where the system does not name them, whether it was imported."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        return True
    return not names or any(_THREADS.match(name) for name in names)


def _before_fork() -> None:
    _parent[0] = _threads_run()


def _in_child() -> None:
    _forked_among_threads[0] |= _parent[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
