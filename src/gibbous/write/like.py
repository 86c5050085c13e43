"""Frames come back as the kind that went in: polars, pandas or pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gibbous.core.release import Release
from gibbous.core.schema import Schema


@dataclass(frozen=True, slots=True)
class FrameKind:
    """How polars frames are handed back."""

    name: str
    convert: Callable[[Any], Any]

    def release(self, release: Release) -> Release:
        """The same release, with its sets and its further rows of this kind."""
        if self.name == "polars":
            return release
        inner = release.sampler
        return replace(
            release,
            sets=Converted(release.sets, self.convert),
            sampler=inner and (lambda *asked: self.convert(inner(*asked))),
        )


class Converted(Sequence[Any]):
    """A sequence of frames, each converted when it is asked for."""

    def __init__(self, frames: Sequence[Any], convert: Callable[[Any], Any]) -> None:
        self._frames, self._convert = frames, convert

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:
        found = self._frames[index]
        if isinstance(index, slice):
            return Converted(found, self._convert)
        return self._convert(found)

    def __iter__(self) -> Iterator[Any]:
        return (self._convert(frame) for frame in self._frames)


def frame_kind(source: object) -> FrameKind:
    """The kind of frame to hand back for a source: its own kind, or polars for files."""
    owner = type(source).__module__.split(".")[0]
    if owner == "pandas":
        return FrameKind("pandas", lambda frame: frame.to_pandas())
    if owner == "pyarrow":
        return FrameKind("pyarrow", lambda frame: frame.to_arrow())
    return FrameKind("polars", lambda frame: frame)


def together(frames: Sequence[Any], schema: Schema) -> Any:
    """One polars frame from the decoded batches of a set; an empty one from none."""
    import polars as pl

    from gibbous.core.codes import Codes, empty_codes
    from gibbous.encode.decode import decode

    if not frames:
        return decode(Codes(schema, empty_codes(schema, 0)), seed=0)
    return pl.concat(frames)
