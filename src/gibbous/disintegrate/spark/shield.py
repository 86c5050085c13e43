"""Arrow batches of a task, in and out; what a task raises leaves it without its text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gibbous.core.errors import GibbousError

Batches = Iterable[Any]


class TaskFailed(Exception):
    """A task raised something: the name of its class, and nothing of its text."""


def shielded(work: Iterator[Any], refused: Callable[[str], Any]) -> Iterator[Any]:
    """Pass batches on; errors of ours become what `refused` makes of their words, others a `TaskFailed`."""
    name = ""
    try:
        yield from work
    except GibbousError as error:
        yield refused(_words(error))
    except (GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - also the panics of a reader, whose text may hold values
        name = type(error).__name__
    if name:  # outside the handler: nothing of the first exception is chained to this one
        raise TaskFailed(f"gibbous: a task raised {name}")


def attempted(work: Callable[[], Any]) -> tuple[str, Any]:
    """("", what a call returns), or an error of ours as plain words and None; else `TaskFailed`."""
    try:
        return "", work()
    except GibbousError as error:
        return _words(error), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - also the panics of a library
        name = type(error).__name__
    raise TaskFailed(f"gibbous: a task raised {name}")


def _words(error: GibbousError) -> str:
    told = [type(error).__name__, error.name, error.wrong, error.allowed, error.fix, error.state]
    return json.dumps(told)


def one_row(columns: str, **values: Any) -> Any:
    """One row as an Arrow batch of columns as Spark reads them ("rows bigint, report string"); else null."""
    import pyarrow as pa

    types = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary(), "string": pa.string()}
    named = [column.split() for column in columns.split(", ")]
    return pa.RecordBatch.from_pydict(
        {name: pa.array([values.get(name)], types[kind]) for name, kind in named}
    )


def rows(batches: Batches) -> Iterator[dict[str, Any]]:
    """The rows of batches as dictionaries; blocks of bytes are copied one at a time."""
    for batch in batches:
        columns = [(name, batch.column(i)) for i, name in enumerate(batch.schema.names)]
        for place in range(batch.num_rows):
            yield {name: column[place].as_py() for name, column in columns}


def task() -> int:
    """Number of the partition that this task works on; 0 outside of Spark.

    pyspark starts every task, so a process that has not loaded it runs none: nothing is imported.
    """
    spark = sys.modules.get("pyspark")
    context = spark.TaskContext.get() if spark else None
    return int(context.partitionId()) if context else 0
