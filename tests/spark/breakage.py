"""Functions that run on executors in tests: they fail, wait, or say what is loaded there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARKER = "Zaphod-SECRET-7"


def through(frame: Any, function: Any, schema: Any) -> Any:
    """The frame through a function on the executors, without PySpark's word on pandas."""
    from gibbous.disintegrate.spark.session import quiet

    with quiet():
        return frame.mapInArrow(function, schema)


def fails_once(batches: Any) -> Iterator[Any]:
    """Pass batches on; the first attempt of partition 1 raises after its first batch."""
    from pyspark import TaskContext

    task = TaskContext.get()
    for batch in batches:
        yield batch
        if task.partitionId() == 1 and task.attemptNumber() == 0:
            raise ValueError(f"{MARKER} in the text of an exception")


def waits_once(batches: Any) -> Iterator[Any]:
    """Pass batches on; the first attempt of partition 0 waits so long that another one is started."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task.partitionId() == 0 and task.attemptNumber() == 0:
        time.sleep(30)
    yield from batches


def waits(batches: Any) -> Iterator[Any]:
    """Pass batches on, slowly."""
    time.sleep(0.3)
    yield from batches


def differs(batches: Any) -> Iterator[Any]:
    """Rows that are others whenever they are read."""
    import pyarrow as pa

    for batch in batches:
        values = [os.urandom(1)[0] % 3 for _ in range(batch.num_rows)]
        yield pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


def never_seen(batches: Any) -> Iterator[Any]:
    """Text that is new whenever it is read."""
    import pyarrow as pa

    for batch in batches:
        values = [os.urandom(8).hex() for _ in range(batch.num_rows)]
        yield pa.RecordBatch.from_pydict({"x": pa.array(values)})


def modules(batches: Any) -> Iterator[Any]:
    """Names of the modules that this worker has loaded."""
    import sys

    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"told": pa.array([",".join(sys.modules)])})


def writes(shared: str, item: int) -> tuple[int, int]:
    """A file of bytes that hang on the item alone; a note of each attempt beside it."""
    folder = Path(shared)
    (folder / "tried").mkdir(exist_ok=True)
    (folder / "tried" / f"{item}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.2)
    fresh = folder / f".{item}-{os.getpid()}"
    fresh.write_bytes(bytes([item % 256]) * 1_000)
    fresh.rename(folder / f"part-{item:05}")
    return item, 1_000


def dies_once(shared: str, item: int) -> int:
    """The same; whoever does item 3 first is killed with its executor."""
    folder = Path(shared)
    try:
        (folder / "killed").mkdir()
    except FileExistsError:
        return item
    if item == 3:
        kill_executor()
    (folder / "killed").rmdir()
    return item


def kill_executor() -> None:
    """Kill the JVM above this worker, as a cluster does that takes a machine back."""
    pid = os.getpid()
    while pid > 1:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        pid = int(status.split("PPid:")[1].split()[0])
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, 9)
            time.sleep(30)


def refuses(shared: Any, item: int) -> int:
    """A refusal of ours for one item."""
    from gibbous.core.errors import OutputNotWritten

    if item == 2:
        raise OutputNotWritten("WRITE", "It cannot be written.", "It is a folder.", "Make it.")
    return item


def breaks(shared: Any, item: int) -> int:
    """An exception whose text holds a value."""
    raise KeyError(f"{MARKER} {item}")
