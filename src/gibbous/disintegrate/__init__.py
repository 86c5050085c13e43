"""Disintegrate: records in, exact counts out, behind one seam; no noise is ever made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gibbous.core.errors import UsageError
from gibbous.core.protocols import Progress, silent

if TYPE_CHECKING:
    from gibbous.core.protocols import Engine
    from gibbous.read.source import ReadOptions

ENGINES = ("local", "numpy")


def engine(
    name: str,
    options: ReadOptions | None = None,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> Engine:
    """Make an engine by name.

    Args:
        name: "local" (compiled, all cores) or "numpy" (the truth it is tested against).
        options: how text files are read; None for the defaults.
        threads: of the local engine; None for all cores. Results do not depend on it.
        memory_limit: bytes that counting may need; None for a share of this machine's memory.
    Raises:
        UsageError: there is no such engine.
    """
    if name == "local":
        from gibbous.disintegrate.local_engine import LocalEngine

        return LocalEngine(options, threads=threads, memory_limit=memory_limit)
    if name == "numpy":
        from gibbous.disintegrate.numpy_engine import NumpyEngine

        return NumpyEngine(options, memory_limit=memory_limit)
    raise UsageError(
        "ENGINE",
        f"There is no engine {name!r}.",
        f"Engines are {', '.join(map(repr, ENGINES))}.",
        "Leave it out: 'local' is the default.",
    )


def warmup(*, progress: Progress = silent) -> None:
    """Compile every counting kernel into the cache, so that later runs start at once.

    Args:
        progress: called with ("compile", done, total).
    Raises:
        EngineFailure: numba is missing or does not run here.
    """
    from gibbous.disintegrate.warm import compile_all

    compile_all(progress)
