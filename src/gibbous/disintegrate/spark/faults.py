"""What Spark raises -> errors of ours, in one line; its own text may hold what a column held."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from gibbous.core import errors
from gibbous.core.errors import (
    MAY_BE_SPENT,
    UNCHARGED,
    EngineFailure,
    GibbousError,
    InputRejected,
    ResourceLimit,
)

T = TypeVar("T")
_LIBRARY = re.compile(r"No module named '(gibbous|pyarrow|polars|numpy|numba|pandas)\b")
_RAISED = re.compile(r"gibbous: a task raised ([A-Za-z_][A-Za-z0-9_]{0,60})")
_CONDITION = re.compile(r"[A-Z][A-Z0-9_.]{2,80}")
_OURS = (ArithmeticError, AssertionError, AttributeError, NameError)
_DISK = ("No space left on device", "DiskQuota", "Disk quota exceeded")
_MEMORY = ("OutOfMemoryError", "maxResultSize", "gibbous: a task raised MemoryError")
_UNREAD = (
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "UNABLE_TO_INFER_SCHEMA",
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "PARQUET_TYPE_ILLEGAL",
    "PARQUET_TYPE_NOT_SUPPORTED",
)


def guarded(action: Callable[[], T], *, state: str = UNCHARGED) -> T:
    """Do something with Spark; GibbousError in place of what it raises, whose text may hold values."""
    try:
        return action()
    except GibbousError:
        raise
    except Exception as error:
        foreign = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
        if isinstance(error, _OURS) and not foreign:
            raise  # a fault of this program, in this process
        found = translated(error, state)
    raise found  # outside the handler, so that nothing is chained to it


def translated(error: BaseException, state: str) -> GibbousError:
    """The error of ours for one of Spark's; of its text only known words are looked at."""
    text = str(error)
    condition = _condition_of(error)
    missing = _LIBRARY.search(text)
    if missing or "PYTHON_VERSION_MISMATCH" in text:
        return incapable(f"It misses {missing[1]}." if missing else "Its Python differs.", state)
    if any(word in text for word in _DISK):
        return ResourceLimit(
            "DISK",
            "A disk of the cluster is full.",
            "Codes that do not fit into memory are kept on the local disks of the executors.",
            "Make room, give the executors more memory, or use more of them.",
            state=state,
        )
    if any(word in text for word in _MEMORY):
        return ResourceLimit(
            "MEMORY",
            "Memory ran out in Spark.",
            "Driver and executors hold what `plan --engine spark` estimates.",
            "Raise spark.executor.memory, spark.executor.memoryOverhead (Python works there) or "
            "spark.driver.memory, or use more partitions.",
            state=state,
        )
    if any(word in condition or word in text for word in _UNREAD):
        return InputRejected(
            "NOTREAD",
            f"Spark cannot read the input{f' ({condition})' if condition else ''}.",
            "It is a table of the catalog, or sound Parquet of one schema that driver and executors see.",
            "Check the path or the name of the table, and the rights to it.",
            state=state,
        )
    return _failed(error, text, condition, state)


def refused(words: str, *, state: str) -> GibbousError:
    """The error that a task sent back as plain words: a JSON list of class and parts."""
    kind, name, wrong, allowed, fix, told = json.loads(words)
    found = getattr(errors, str(kind), EngineFailure)
    if not (isinstance(found, type) and issubclass(found, GibbousError)):
        found = EngineFailure
    return found(name, wrong, allowed, fix, state=state if state == MAY_BE_SPENT else told)


def unstable(state: str) -> EngineFailure:
    """The error where a second pass over the records met other records."""
    return EngineFailure(
        "UNSTABLE",
        "The records that Spark read for counting are not those that it had read before.",
        "A source gives the same rows whenever it is read: Spark reads it again when an executor is lost.",
        "Write the frame to Parquet or to a table first, and pass that; it may hold rand(), a sample, "
        "or files that change.",
        state=state,
    )


def _condition_of(error: Any) -> str:
    for name in ("getCondition", "getErrorClass"):
        ask = getattr(error, name, None)
        if ask is not None:
            try:
                found = ask()
            except Exception:  # noqa: BLE001 - the JVM that knows may be gone
                return ""
            return found if isinstance(found, str) and _CONDITION.fullmatch(found) else ""
    return ""


def incapable(what: str, state: str = UNCHARGED) -> EngineFailure:
    """The error where a worker lacks what it needs."""
    return EngineFailure(
        "WORKERS",
        f"A worker of the cluster cannot run gibbous. {what}",
        "Every executor has the same Python and the same gibbous[spark] as the driver.",
        "Install it there, ship an environment (spark.archives), or set spark.pyspark.python; or use "
        "engine='local'.",
        state=state,
    )


def _failed(error: BaseException, text: str, condition: str, state: str) -> EngineFailure:
    raised = _RAISED.search(text)
    kind = type(error).__name__
    if raised:
        what = f"A task failed each time it was tried (it raised {raised[1]})."
    elif "ExecutorLostFailure" in text or "FetchFailed" in text:
        what = "Executors were lost, again and again."
    elif kind.startswith("Py4J") or isinstance(error, OSError):
        what = "The connection to Spark was lost."
    elif "All masters are unresponsive" in text or "stopped SparkContext" in text:
        what = "The cluster does not answer, or the session was stopped."
    else:
        what = f"Spark failed ({condition or kind})."
    return EngineFailure(
        "SPARK",
        what,
        "A task is tried again as often as spark.task.maxFailures says.",
        "Look at the health of the cluster and the memory of its executors, and run again.",
        state=state,
    )
