"""Disintegrate: records in, exact counts out, behind one seam; no noise is ever made here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering

if TYPE_CHECKING:
    from gibbous.core.protocols import Engine
    from gibbous.read.source import ReadOptions

ENGINES = ("local", "duckdb", "spark", "numpy")
LOCAL = ("local", "duckdb", "numpy")  # names of the one engine that counts in this process


@answering
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
        name: "local" (compiled, all cores) or "spark" (extra "spark": a cluster); None for the one
            that fits `source`. "duckdb" and "numpy" are other names of "local".
        options: how text files are read; None for the defaults.
        source: what will be scanned; only its type is looked at.
        threads: of the local engine; None for all cores. Results do not depend on it.
        memory_limit: bytes that counting may need; None for a share of this machine's memory.
        partitions: of a Spark engine: into how many parts work is cut. Results do not depend on it.
        master: of a Spark engine: address of the cluster; None for the session that runs, or for
            the cores of this machine.
        conf: of a Spark engine: settings of a session that it starts.
        scratch: of the local engine: where encoded records lie that do not fit memory;
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
    if name in LOCAL:
        from gibbous.disintegrate.records import LocalEngine

        return LocalEngine(options, threads=threads, memory_limit=memory_limit, scratch=scratch)
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
        "Leave it out: 'spark' is taken for its DataFrames, 'local' for everything else.",
    )


def fitting(source: Any) -> str:
    """The engine that counts a source where it lies: by the type of an object."""
    return "spark" if type(source).__module__.partition(".")[0] == "pyspark" else "local"
