"""The engine of a run: made, filled with records for as long as they are counted, and its workers."""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from gibbous import disintegrate
from gibbous.core.dataset import DataSet
from gibbous.core.errors import UsageError
from gibbous.core.machine import default_limit
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Progress, Workers
from gibbous.core.request import Performance, Request
from gibbous.core.schema import Schema
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.datasets import file_place, file_stamp
from gibbous.read.files import changed


class InputChanged(UserWarning):
    """The input file changed after it was read, while the run went on."""

    def __init__(self) -> None:
        super().__init__(
            "The input changed after it was read. The release, and its charge, are of the records as "
            "they were before; what is in the file now is another data set."
        )


def engine_of(performance: Performance, source: Any = None, options: Any = None) -> Engine:
    """The engine that is meant: by its name, one that was made, or what a function makes.

    UsageError where there is no such engine, or a setting is given to one that is made.
    """
    given = performance.engine
    if given is None or isinstance(given, str):
        return disintegrate.engine(
            given,
            options,
            source=source,
            memory_limit=performance.memory,
            partitions=performance.partitions,
            master=performance.master,
            conf=performance.conf,
            scratch=performance.scratch,
        )
    if performance.partitions is not None:
        raise UsageError(
            "ENGINESETTING",
            "partitions was given beside an engine that is already made.",
            "An engine has its settings.",
            "Give them to gibbous.engine, or give the engine by name.",
        )
    made: Engine = given() if callable(given) else given
    return made


def text_engine(performance: Performance, source: Any = None, options: Any = None) -> Engine:
    """The engine that reads records without a schema; UsageError for one that already exists."""
    name = performance.engine or disintegrate.fitting(source)
    if name in disintegrate.LOCAL:
        from gibbous.disintegrate.text_records import TextEngine

        return TextEngine(
            options,
            threads=performance.threads,
            memory_limit=performance.memory,
            scratch=performance.scratch,
        )
    if name == "spark":
        from gibbous.disintegrate.spark.text_engine import SparkTextEngine

        return SparkTextEngine(
            options,
            master=performance.master,
            conf=performance.conf,
            partitions=performance.partitions,
            memory_limit=performance.memory,
        )
    raise UsageError(
        "DISCOVERYENGINE",
        "A schema is bought by an engine of its own, and a made or unknown one was given.",
        f"Engines by name are {', '.join(map(repr, disintegrate.ENGINES))}.",
        "Give the engine by name, leave it out, or declare a schema.",
    )


class NoRecords:
    """In place of an engine, for tables that were made elsewhere, by their digest: it has no records."""

    name: ClassVar[str] = "none"

    def __init__(self, digest: str) -> None:
        self.memory_limit, self._digest = default_limit(), digest

    def scan(self, source: Any, schema: Schema, *, key: bytes, **how: Any) -> bytes:
        """The name of the tables; nothing is opened."""
        return hmac.new(key, b"tables" + bytes.fromhex(self._digest), "sha256").digest()

    def workers(self) -> None:
        """This process alone."""

    def close(self) -> None:
        """There is nothing to forget."""


def memory_limit(performance: Performance) -> int:
    """Bytes that a run may use: this machine's share, or more where that is said."""
    own = getattr(performance.engine, "memory_limit", None) or performance.memory or 0
    return max(default_limit(), own)


@contextmanager
def records_in(
    request: Request,
    planned: Plan,
    ledger: Ledger,
    engine: Engine,
    progress: Progress,
    paid: Callable[[bytes], bool] = lambda dataset: False,
) -> Iterator[DataSet]:
    """Open, validate and encode the records; they are forgotten at the end.

    A file that the ledger knows is checked against its cap before it is opened. Whose account is
    charged, its records alone decide.

    Args:
        paid: whether the request was paid for already, on a data set: no cap stands against it then.
    """
    privacy, source = request.privacy, request.source
    address, stamp = file_place(source, ledger.key), file_stamp(source, ledger.key)
    known = ledger.recall(stamp)
    if known is not None and not paid(known):
        ledger.check(known, planned.total, protects=privacy.protects)
    try:
        scanned = engine.scan(
            source, privacy.schema, key=ledger.key, progress=progress, numbers=planned.numbers
        )
        if file_stamp(source, ledger.key) != stamp:
            raise changed()
        yield DataSet.of(scanned).read_from(address, stamp)
        if file_stamp(source, ledger.key) != stamp:
            warnings.warn(InputChanged(), stacklevel=4)
    finally:
        engine.close()


@contextmanager
def workers_of(engine: Engine) -> Iterator[Workers | None]:
    """Who draws and writes rows for an engine of a cluster: they hold no record, and outlive it."""
    workers = engine.workers()
    try:
        yield workers
    finally:
        if workers is not None:
            workers.close()
