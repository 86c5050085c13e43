"""Whether the workers of a cluster can run what is sent to them: asked before any record is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from gibbous import __version__
from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import silent
from gibbous.disintegrate.spark.jobs import awaited
from gibbous.disintegrate.spark.session import quiet

NEEDED = ("numpy", "polars", "pyarrow", "gibbous")
_VERSION = re.compile(r"[0-9A-Za-z.+]{1,40}")


def check_workers(session: Any) -> None:
    """Refuse a cluster whose workers lack a library or have another gibbous.

    Raises:
        EngineFailure: one line, before Spark prints pages of its own.
    """
    tasks = max(1, min(64, 2 * int(session.sparkContext.defaultParallelism)))
    with quiet():
        frame = session.range(0, tasks, 1, tasks).mapInArrow(_asking(NEEDED), "told string")
        found = awaited(session, frame.toArrow, stage="start", progress=silent)
    for words in found.column("told").to_pylist():
        told = json.loads(words)
        if told["missing"]:
            raise _worker(f"It misses {', '.join(told['missing'])}.")
        theirs = told["version"]
        if theirs != __version__ and _VERSION.fullmatch(theirs):
            raise _worker(f"It has gibbous {theirs}, the driver has {__version__}.")


def _asking(needed: tuple[str, ...]) -> Callable[[Any], Iterator[Any]]:
    """A function that travels by value: where gibbous is missing, it can still say so."""

    def ask(batches: Any) -> Any:
        import importlib
        import json

        import pyarrow

        for _ in batches:
            pass
        missing, version = [], ""
        for name in needed:
            try:
                module = importlib.import_module(name)
            except ImportError:
                missing.append(name)
            else:
                version = str(getattr(module, "__version__", ""))
        told = json.dumps({"missing": missing, "version": version})
        yield pyarrow.RecordBatch.from_pydict({"told": pyarrow.array([told])})

    return ask


def _worker(what: str) -> EngineFailure:
    return EngineFailure(
        "WORKERS",
        f"A worker of the cluster cannot run gibbous. {what}",
        "Every executor has the same Python and the same gibbous[spark] as the driver.",
        "Install it there, ship an environment (spark.archives), or set spark.pyspark.python; or use "
        "engine='duckdb'.",
    )
