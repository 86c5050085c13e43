"""A forked process whose parent had tables open is refused: it would wait for threads that it lacks."""

from __future__ import annotations

import os

from gibbous.core.errors import EngineFailure

_began = [0]  # the process in which the threads of the table library may run


def refuse_forked() -> None:
    """Note that tables are read or written in this process from here on.

    Raises:
        EngineFailure: it was forked from a process in which that had begun.
    """
    if _began[0] not in (0, os.getpid()):
        raise EngineFailure(
            "FORKED",
            "This process was forked from one in which gibbous had read or written tables.",
            "The threads that do so are not in a forked process, which would wait for them for ever.",
            "Start workers by multiprocessing.get_context('spawn'), or fork before the first call.",
        )
    _began[0] = os.getpid()
