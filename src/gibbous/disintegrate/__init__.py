"""Disintegrate: records in, exact counts out, behind one seam; no noise is ever made here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.core.protocols import Progress, silent

if TYPE_CHECKING:
    from gibbous.core.protocols import Engine
    from gibbous.read.source import ReadOptions

ENGINES = ("local", "duckdb", "spark", "numpy")
_OWN = {"pyspark": "spark", "ibis": "duckdb", "duckdb": "duckdb", "_duckdb": "duckdb"}


def engine(
    name: str | None = None,
    options: ReadOptions | None = None,
    *,
    source: Any = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    partitions: int | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    scratch: Path | str | None = None,
) -> Engine:
    """Make an engine by name.

    Args:
        name: "local" (compiled, all cores), "duckdb" (extra "duckdb": databases, many files),
            "spark" (extra "spark": a cluster) or "numpy" (the truth they are tested against); None
            for the one that fits `source`.
        options: how text files are read; None for the defaults.
        source: what will be scanned; only its type is looked at.
        threads: of the local engine; None for all cores. Results do not depend on it.
        memory_limit: bytes that counting may need; None for a share of this machine's memory.
        partitions: of a Spark engine: into how many parts work is cut. Results do not depend on it.
        master: of a Spark engine: address of the cluster; None for the session that runs, or for
            the cores of this machine.
        conf: of a Spark engine: settings of a session that it starts.
        scratch: of the local engine and of DuckDB: where encoded records lie that do not fit memory;
            None for GIBBOUS_SCRATCH, or the temporary folder.
    Raises:
        UsageError: there is no such engine, or a setting that it does not have.
        EngineFailure: the extra of the engine is missing.
    """
    name = name or fitting(source)
    if name != "spark" and (partitions or master or conf):
        raise UsageError(
            "ENGINESETTING",
            f"Settings of a cluster were given for the engine {name!r}.",
            "partitions, master and conf are settings of the engine 'spark'.",
            "Leave them out, or choose --engine spark.",
        )
    if name == "local":
        from gibbous.disintegrate.local_engine import LocalEngine

        return LocalEngine(options, threads=threads, memory_limit=memory_limit, scratch=scratch)
    if name == "numpy":
        from gibbous.disintegrate.numpy_engine import NumpyEngine

        return NumpyEngine(options, memory_limit=memory_limit)
    if name == "duckdb":
        from gibbous.disintegrate.ibis.engine import IbisEngine

        return IbisEngine(options, threads=threads, memory_limit=memory_limit, scratch=scratch)
    if name == "spark":
        from gibbous.disintegrate.spark.engine import SparkEngine

        return SparkEngine(
            options,
            master=master,
            conf=dict(conf or {}),
            partitions=partitions,
            memory_limit=memory_limit,
        )
    raise UsageError(
        "ENGINE",
        f"There is no engine {name!r}.",
        f"Engines are {', '.join(map(repr, ENGINES))}.",
        "Leave it out: the one that fits the source is taken, 'local' for files and frames.",
    )


def fitting(source: Any) -> str:
    """The engine that can open a source where it lies: by the type of an object, or its address."""
    if isinstance(source, str) and "::" in source:
        return "duckdb"
    return _OWN.get(type(source).__module__.partition(".")[0], "local")


def warmup(*, progress: Progress = silent) -> None:
    """Compile every counting kernel into the cache, so that later runs start at once.

    Args:
        progress: called with ("compile", done, total).
    Raises:
        EngineFailure: numba is missing or does not run here.
    """
    from gibbous.disintegrate.warm import compile_all

    compile_all(progress)
