"""Synthesize: public tables in, rows out at no cost; or paid draws from perturbed exact counts."""

from __future__ import annotations

from gibbous.core.protocols import Progress, silent


def warmup(*, progress: Progress = silent) -> None:
    """Compile every sampling kernel into the cache, so that later runs start at once.

    Raises:
        EngineFailure: numba is missing or does not run here.
    """
    from gibbous.sampling.warm import compile_all

    compile_all(progress)
