"""Frames come back as the kind that went in, with its types: polars, pandas, pyarrow or Spark."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gibbous.core.errors import GibbousError
from gibbous.core.release import Lazy, Release, Sampler, SetReader
from gibbous.core.schema import Schema
from gibbous.encode.column_types import type_text
from gibbous.read.csv_file import ReadOptions
from gibbous.read.frames import frame_names
from gibbous.read.parquet import parquet_types
from gibbous.read.source import is_parquet, is_table
from gibbous.write.arrow_frames import arrow_shape, text_names
from gibbous.write.pandas_frames import pandas_shape

_SPARK = {
    "tinyint": "Int8", "smallint": "Int16", "int": "Int32", "bigint": "Int64", "float": "Float32",
    "double": "Float64", "string": "String", "boolean": "Boolean", "date": "Date",
    "timestamp_ntz": "Datetime[us]",
}  # fmt: skip
_MONEY = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


@dataclass(frozen=True, slots=True)
class FrameKind:
    """How frames are handed back.

    Attributes:
        name: of the library.
        convert: (a polars frame, its schema) -> a frame of this kind.
        columns: names in the order of the source; others follow in that of the schema.
        types: (name, type) of its columns in the words of `column_types`; shape, not values.
        read: paths of Parquet files -> a frame of this kind; None where files are read by polars.
        texts: names of its columns of text: days come back as the text that they were.
    """

    name: str
    convert: Callable[[Any, Schema], Any]
    columns: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    read: Callable[[Sequence[Path]], Any] | None = None
    texts: frozenset[str] = frozenset()

    def release(self, release: Release) -> Release:
        """The same release, with its sets and its further rows of this kind."""
        names = release.schema.names
        plain = self.name == "polars" and not self._days(release.schema)
        if plain and self.order(names) == names:
            return release
        inner, schema = release.sampler, release.schema
        return replace(
            release,
            sets=Converted(release.sets, self, schema),
            sampler=inner and partial(_converted, self, schema, inner),
        )

    def of(self, frame: Any, schema: Schema) -> Any:
        """A polars frame as this kind, its columns in the order of the source."""
        import polars as pl

        days = self._days(schema)
        written = [pl.col(n).dt.strftime(f or "%Y-%m-%d") for n, f in days if n in frame.columns]
        return self.convert(frame.select(self.order(frame.columns)).with_columns(written), schema)

    def _days(self, schema: Schema) -> list[tuple[str, str | None]]:
        """Columns of days that were text, with the form that the schema states."""
        return [
            (c.name, c.date_format) for c in schema if c.kind == "date" and c.name in self.texts
        ]

    def order(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names as the source has them in order, then those that it lacks."""
        own = tuple(name for name in self.columns if name in set(names))
        return own + tuple(name for name in names if name not in set(own))


def _converted(kind: FrameKind, schema: Schema, sampler: Sampler, *asked: Any) -> Any:
    return kind.of(sampler(*asked), schema)


def _polars(frame: Any, _: Schema) -> Any:
    return frame


class Converted(Sequence[Any]):
    """A sequence of frames, each converted when it is asked for; or read from its files as it is."""

    def __init__(self, frames: Sequence[Any], kind: FrameKind, schema: Schema) -> None:
        self._frames, self._kind, self._schema = frames, kind, schema

    def __repr__(self) -> str:
        return f"<{len(self)} synthetic sets>"

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        if self._kind.read is not None and isinstance(self._frames, Lazy):
            return self._kind.read(self._frames.reader(place).files())
        return self._kind.of(self._frames[place], self._schema)

    def reader(self, place: int) -> SetReader:
        """How to get at one set on disk without reading it whole.

        Raises:
            AttributeError: the sets are in memory.
        """
        found: SetReader = self._frames.reader(place)  # type: ignore[attr-defined]
        return found


def frame_kind(source: object, untyped: Container[str] = ()) -> FrameKind:
    """The kind of frame to hand back for a source: its own kind, or polars for files.

    Columns of `untyped` get the types of the schema: those of the source are data, and stay unknown.
    """
    owner = type(source).__module__.split(".")[0]
    columns = tuple(frame_names(source))
    if owner in ("pandas", "pyarrow") and columns:
        shape_of = pandas_shape if owner == "pandas" else arrow_shape
        shape = shape_of(source, untyped)
        types = tuple(shape.polars_types().items())
        return FrameKind(owner, shape.frame, columns, types, texts=shape.texts)
    session = getattr(source, "sparkSession", None) if owner == "pyspark" else None
    if session is not None:
        return _spark(session, source, columns, untyped)
    given = _polars_types(source)
    types = tuple((n, type_text(dtype)) for n, dtype in given.items() if n not in untyped)
    texts = frozenset() if isinstance(source, str | os.PathLike) else text_names(types)
    return FrameKind("polars", _polars, tuple(given), types, texts=texts)


def _polars_types(source: object) -> Mapping[str, Any]:
    """Types of a polars frame or of Parquet files; none of other sources, nor of what cannot be read."""
    if type(source).__module__.split(".")[0] == "polars":
        return dict(source.collect_schema())  # type: ignore[attr-defined]
    if isinstance(source, str | os.PathLike) and not is_table(source):
        with contextlib.suppress(GibbousError):  # said when it is read
            if is_parquet(Path(source)):
                return parquet_types(Path(source), ReadOptions())
    return {}


def _spark(
    session: Any, source: Any, columns: tuple[str, ...], untyped: Container[str]
) -> FrameKind:
    """Spark frames of the session that the source came from; sets on disk are read by its executors."""
    fields = [field for field in source.schema if field.name not in untyped]
    kinds = {field.name: field.dataType.simpleString() for field in fields}
    zone = session.conf.get("spark.sql.session.timeZone")
    plain = _SPARK | {"timestamp": f"Datetime[us, {zone}]"}
    types = {name: plain[kind] for name, kind in kinds.items() if kind in plain}
    types |= {n: f"Decimal[{d[1]}, {d[2]}]" for n, k in kinds.items() if (d := _MONEY.fullmatch(k))}

    def read(paths: Sequence[Path]) -> Any:
        found = session.read.parquet(*(path.as_uri() for path in paths))
        return found.select(*map(_quoted, kind.order(found.columns)))

    def convert(frame: Any, _: Schema) -> Any:
        import polars as pl

        text = [n for n, one in frame.schema.items() if isinstance(one, pl.Enum | pl.Categorical)]
        plain = frame.with_columns(pl.col(text).cast(pl.String)) if text else frame
        found = session.createDataFrame(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))
        bare = [n for n in frame.columns if kinds.get(n) == "timestamp_ntz"]
        return found.withColumns({n: found[_quoted(n)].cast("timestamp_ntz") for n in bare})

    kind = FrameKind("pyspark", convert, columns, tuple(types.items()), read)
    return kind


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
