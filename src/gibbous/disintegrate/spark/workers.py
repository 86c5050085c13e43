"""SparkWorkers: public work done by executors; results come once, whatever is tried again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, Queue
from threading import Thread
from typing import Any

from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import Progress, silent
from gibbous.core.secret import Secret
from gibbous.disintegrate.spark.faults import guarded, refused
from gibbous.disintegrate.spark.session import Held
from gibbous.disintegrate.spark.shield import attempted

STATE = "What was released stays as it is: run the same command again, and it goes on from there."


class SparkWorkers(Secret):
    """Workers of a Spark cluster; see `core.protocols.Workers`.

    Args:
        session: held by these workers until they are closed.
        partitions: items are done in so many tasks; None does each in a task of its own.
    """

    __slots__ = ("_held", "partitions")

    def __init__(self, session: Held, *, partitions: int | None = None) -> None:
        self._held: Held | None = session.take()
        self.partitions = partitions

    def __repr__(self) -> str:
        return f"<SparkWorkers, {'closed' if self._held is None else 'open'}>"

    def close(self) -> None:
        """Let go of the session; one that was made for these workers stops."""
        found, self._held = self._held, None
        if found is not None:
            found.let_go()

    def spread(
        self,
        work: Callable[[Any, Any], Any],
        shared: Any,
        items: Sequence[Any],
        *,
        progress: Progress = silent,
    ) -> Iterator[Any]:
        """Call work(shared, item) for every item on the executors; see `core.protocols.Workers`."""
        if self._held is None or self._held.session is None:
            raise EngineFailure(
                "CLOSED",
                "The workers are closed.",
                "Rows are spread while the session is held.",
                "Make new ones.",
                state=STATE,
            )
        context = self._held.session.sparkContext
        count = len(items)
        progress("write", 0, count)
        if not count:
            return
        public = guarded(lambda: context.broadcast(_OneBlock(shared)), state=STATE)
        try:
            done = 0
            for group in self._results(context, partial(_call, work, public), list(items)):
                for told, value in group:
                    if told:
                        raise refused(told, state="")
                    done += 1
                    progress("write", done, count)
                    yield value
        finally:
            with contextlib.suppress(Exception):  # the cluster may be gone already
                public.destroy()

    def _results(
        self, context: Any, call: Callable[[Any], tuple[str, Any]], items: list[Any]
    ) -> Iterator[list[tuple[str, Any]]]:
        """Results of each task as it ends: one small job a task, as many at once as there are cores."""
        parts = min(len(items), self.partitions or len(items))
        rows = guarded(lambda: context.parallelize(items, parts), state=STATE)
        todo: Queue[int] = Queue()
        for number in range(parts):
            todo.put(number)
        found: Queue[Any] = Queue()
        group = f"gibbous-write-{id(found)}"
        threads = min(parts, max(2, int(context.defaultParallelism)))
        for _ in range(threads):
            args = (context, group, rows, call, todo, found)
            Thread(target=_submit, args=args, daemon=True).start()
        try:
            for _ in range(parts):
                yield guarded(partial(_taken, found), state=STATE)
        finally:
            with contextlib.suppress(Exception):
                while True:
                    todo.get_nowait()
            with contextlib.suppress(Exception):
                context.cancelJobGroup(group)


class _OneBlock:
    """A value that is pickled as one object of bytes, and comes out as the value itself.

    Where encryption is on, PySpark sends a broadcast through a stream that takes bytes alone, while
    a large array would be handed over as a buffer of its own.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        from pyspark.serializers import CPickleSerializer

        serializer = CPickleSerializer()
        return serializer.loads, (serializer.dumps(self.value),)


def _submit(
    context: Any, group: str, rows: Any, call: Any, todo: Queue[int], found: Queue[Any]
) -> None:
    context.setJobGroup(group, "gibbous", interruptOnCancel=True)
    while True:
        try:
            number = todo.get_nowait()
        except Empty:
            return
        try:
            found.put(context.runJob(rows, partial(_mapped, call), [number]))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            found.put(error)


def _taken(found: Queue[Any]) -> list[tuple[str, Any]]:
    result = found.get()
    if isinstance(result, BaseException):
        raise result
    return list(result)


def _mapped(call: Callable[[Any], tuple[str, Any]], items: Any) -> Iterator[tuple[str, Any]]:
    return (call(item) for item in items)


def _call(work: Callable[[Any, Any], Any], public: Any, item: Any) -> tuple[str, Any]:
    """On an executor: ("", result), or a refusal as plain words."""
    return attempted(lambda: work(public.value, item))
