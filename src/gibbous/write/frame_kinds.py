"""Frames come back as the kind that went in: polars, pandas, pyarrow or Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gibbous.core.release import Lazy, Release, Sampler, SetReader


@dataclass(frozen=True, slots=True)
class FrameKind:
    """How frames are handed back.

    Attributes:
        name: of the library.
        convert: a polars frame -> a frame of this kind.
        read: paths of Parquet files -> a frame of this kind; None where files are read by polars.
    """

    name: str
    convert: Callable[[Any], Any]
    read: Callable[[Sequence[Path]], Any] | None = None

    def release(self, release: Release) -> Release:
        """The same release, with its sets and its further rows of this kind."""
        if self.name == "polars":
            return release
        inner = release.sampler
        return replace(
            release,
            sets=Converted(release.sets, self),
            sampler=inner and partial(_converted, self.convert, inner),
        )


def _converted(convert: Callable[[Any], Any], sampler: Sampler, *asked: Any) -> Any:
    return convert(sampler(*asked))


def _pandas(frame: Any) -> Any:
    return frame.to_pandas()


def _arrow(frame: Any) -> Any:
    return frame.to_arrow()


def _polars(frame: Any) -> Any:
    return frame


class Converted(Sequence[Any]):
    """A sequence of frames, each converted when it is asked for; or read from its files as it is."""

    def __init__(self, frames: Sequence[Any], kind: FrameKind) -> None:
        self._frames, self._kind = frames, kind

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        if self._kind.read is not None and isinstance(self._frames, Lazy):
            return self._kind.read(self._frames.reader(place).files())
        return self._kind.convert(self._frames[place])

    def reader(self, place: int) -> SetReader:
        """How to get at one set on disk without reading it whole.

        Raises:
            AttributeError: the sets are in memory.
        """
        found: SetReader = self._frames.reader(place)  # type: ignore[attr-defined]
        return found


def frame_kind(source: object) -> FrameKind:
    """The kind of frame to hand back for a source: its own kind, or polars for files."""
    owner = type(source).__module__.split(".")[0]
    if owner == "pandas":
        return FrameKind("pandas", _pandas)
    if owner == "pyarrow":
        return FrameKind("pyarrow", _arrow)
    session = getattr(source, "sparkSession", None) if owner == "pyspark" else None
    if session is not None:
        return _spark(session)
    return FrameKind("polars", _polars)


def _spark(session: Any) -> FrameKind:
    """Spark frames of the session that the source came from; sets on disk are read by its executors."""

    def read(paths: Sequence[Path]) -> Any:
        return session.read.parquet(*(path.as_uri() for path in paths))

    def convert(frame: Any) -> Any:
        import polars as pl

        kinds = (pl.Enum, pl.Categorical)
        text = [name for name, kind in frame.schema.items() if isinstance(kind, kinds)]
        plain = frame.with_columns(pl.col(text).cast(pl.String)) if text else frame
        return session.createDataFrame(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))

    return FrameKind("pyspark", convert, read)
