"""What is named -> a Spark DataFrame of the columns that can be used, or text files for the executors."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbous.core.errors import EngineFailure, InputRejected, UsageError
from gibbous.core.schema import Schema
from gibbous.disintegrate.spark.faults import guarded
from gibbous.disintegrate.spark.session import quiet
from gibbous.read.conform import check_names, conform, conform_names, usable
from gibbous.read.fields import shown
from gibbous.read.files import TEXT_ENDINGS

_TABLE = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,3}")
_DIGITS = 18  # of a whole decimal that 64 bits hold
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """Where rows come from.

    Attributes:
        frame: a pyspark DataFrame of the columns that are kept, called c0, c1, ..., because Spark reads a
            point in a name as a path; None for text files.
        names: of its columns.
        paths: text files, one a task.
    """

    frame: Any
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def rows_of(session: Any, source: Any, schema: Schema, *, max_columns: int) -> Rows:
    """Open a source of `SparkEngine.scan`; nothing of its rows is read yet.

    Raises:
        InputRejected, UsageError, EngineFailure: without any value in the text.
    """
    if is_frame(source):
        return _of_frame(source, schema, max_columns, local=True)
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            "SOURCE",
            f"The input is a {type(source).__name__}.",
            "With engine='spark' it is a pyspark DataFrame, the name of a table, or a path (Parquet, "
            "CSV, a Delta table).",
            "Pass one of these, or use engine='local'.",
        )
    text = os.fspath(source)
    paths = _text_files(text)
    if paths:
        return Rows(None, paths=paths)
    return _of_frame(_loaded(session, text), schema, max_columns)


def is_frame(source: Any) -> bool:
    """Whether a source is a DataFrame of pyspark; nothing is imported to find out."""
    kind = type(source)
    return kind.__module__.split(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _text_files(text: str) -> tuple[str, ...]:
    lower = text.lower()
    if _ADDRESS.match(text):
        if lower.endswith(TEXT_ENDINGS):
            raise InputRejected(
                "NOTAFILE",
                f"The input {shown(text)} is text at an address.",
                "Text files are read by executors from a folder that all of them see.",
                "Write it as Parquet, or read it with spark.read.csv and a schema of text columns, and "
                "pass the DataFrame.",
            )
        return ()
    if os.path.isdir(text):
        names = sorted(n for n in os.listdir(text) if not n.startswith((".", "_")))
        if not names or not all(n.lower().endswith(TEXT_ENDINGS) for n in names):
            return ()
        return tuple(str(Path(text, name).absolute()) for name in names)
    if not lower.endswith(TEXT_ENDINGS):
        return ()
    found = sorted(glob.glob(text)) if any(c in text for c in "*?[") else [text]
    if not found or not all(os.path.isfile(path) for path in found):
        raise InputRejected(
            "NOTAFILE",
            f"The input {shown(text)} does not exist.",
            "It is a file, a folder or a pattern that this process and all executors see.",
            "Check the path.",
        )
    return tuple(str(Path(path).absolute()) for path in found)


def _loaded(session: Any, text: str) -> Any:
    with quiet():
        if os.path.isdir(os.path.join(text, "_delta_log")):
            return _delta(session, text)
        local = not _ADDRESS.match(text)
        is_path = os.path.exists(text) or "/" in text or text.lower().endswith((".parquet", ".pq"))
        if local and not is_path and _TABLE.fullmatch(text):
            return guarded(lambda: session.table(text))
        # Columns that only some files have show up, and are refused where they are not declared.
        reader = session.read.option("mergeSchema", "true")
        if local and os.path.exists(text):
            # Spark takes this for that very path: it decodes no %20, and would expand [1].
            text = "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", os.path.abspath(text))
        return guarded(lambda: reader.parquet(text))


def _delta(session: Any, text: str) -> Any:
    place = os.path.abspath(text)
    try:
        return guarded(lambda: session.read.format("delta").load(place))
    except (EngineFailure, InputRejected):
        reads = False
    assert not reads
    raise EngineFailure(
        "DELTA",
        f"{shown(text)} is a Delta table, and this session does not read Delta.",
        "Its Parquet files alone hold rows that were deleted or replaced since.",
        "Start the session with the Delta package (spark.jars.packages=io.delta:delta-spark), or pass a "
        "DataFrame that a session with it has read.",
    )


def _of_frame(frame: Any, schema: Schema, max_columns: int, *, local: bool = False) -> Rows:
    """Rows of a frame, its decimals and instants as `read.conform.plain` makes them of files.

    With `local`, days of instants are those of the session's time zone; else of UTC, as files say.
    """
    import polars as pl

    names = list(frame.columns)
    check_names(names, max_columns)
    with quiet():
        empty = pl.DataFrame(pl.from_arrow(guarded(lambda: frame.limit(0).toArrow())))
    kept = [name for name in names if name not in schema.ignore or usable(name, empty.schema[name])]
    conform_names(kept, schema)
    columns = {name: _plain(name, empty.schema[name], local=local) for name in kept}
    types = {name: dtype for name, (_, dtype) in columns.items()}
    conform(types, schema)
    frame = frame.selectExpr(*(f"{text} as c{at}" for at, (text, _) in enumerate(columns.values())))
    return Rows(frame, tuple(kept))


def _plain(name: str, dtype: Any, *, local: bool) -> tuple[str, Any]:
    """A column in Spark's SQL, and its type: a number for a decimal, no time zone for an instant."""
    import polars as pl

    column = f"`{name.replace('`', '``')}`"
    if isinstance(dtype, pl.Decimal) and (dtype.scale or (dtype.precision or 38) <= _DIGITS):
        made, dtype = ("double", pl.Float64) if dtype.scale else ("bigint", pl.Int64)
        return f"cast({column} as {made})", dtype
    if isinstance(dtype, pl.Datetime) and dtype.time_zone:
        made = f"cast({column} as timestamp_ntz)"
        if not local:
            epoch = "timestamp_ntz '1970-01-01 00:00:00'"
            made = f"timestampadd(microsecond, unix_micros({column}), {epoch})"
        return made, pl.Datetime("us")
    return column, dtype
