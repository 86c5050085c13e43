"""Records: a source and its schema go in; secret codes stay inside until they are forgotten.

Codes of few records stay in memory (`Codes`); codes of many go to a nameless file (`Slabs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import Words64
from gibbous.disintegrate.slabs import Slabs

Store = Codes | Slabs


class Records:
    """The one holder of an engine's codes. Secret: cannot be printed or pickled."""

    __slots__ = ("_closed", "_codes")

    def __init__(self) -> None:
        self._codes: Store | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Records, {'closed' if self._closed else 'secret'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are never pickled")

    @property
    def closed(self) -> bool:
        """Whether the records were forgotten."""
        return self._closed

    @property
    def scanned(self) -> bool:
        """Whether there are records."""
        return self._codes is not None

    def take(self, codes: Store) -> None:
        """Keep codes.

        Raises:
            EngineFailure: closed, or a code that the schema does not have.
        """
        if self._closed:
            raise _closed()
        self._drop()
        if isinstance(codes, Slabs):  # written by the encoder, checked there
            self._codes = codes
            return
        sizes = codes.schema.sizes
        columns = codes.by_column
        if columns.dtype.kind != "u" or (
            codes.rows and any(int(c.max()) >= size for c, size in zip(columns, sizes, strict=True))
        ):
            raise EngineFailure(
                "CODES",
                "The codes are not those of their schema.",
                "Codes are unsigned integers below the size of their column.",
                "Encode the table with gibbous.encode under this schema.",
            )
        self._codes = codes

    def look(self) -> Codes:
        """The codes, of an engine that keeps them in memory.

        Raises:
            EngineFailure: closed, or nothing was scanned.
        """
        codes = self.store()
        assert isinstance(codes, Codes)
        return codes

    def store(self) -> Store:
        """The codes, wherever they are.

        Raises:
            EngineFailure: closed, or nothing was scanned.
        """
        if self._closed:
            raise _closed()
        if self._codes is None:
            raise EngineFailure(
                "NOTSCANNED",
                "The engine holds no records.",
                "Records are scanned before they are counted.",
                "Call scan first.",
            )
        return self._codes

    def forget(self) -> None:
        """Drop the codes for good."""
        self._drop()
        self._closed = True

    def _drop(self) -> None:
        codes, self._codes = self._codes, None
        if isinstance(codes, Slabs):
            codes.release()


def slabs(codes: Store, columns: Sequence[int] | None = None) -> Iterator[Codes]:
    """The records, some at a time; those in memory all at once.

    Args:
        columns: positions that are needed; None for all.
    Yields:
        Codes that are good until the next ones are asked for; at least one, perhaps without rows.
    """
    if isinstance(codes, Slabs):
        yield from codes.read(columns)
    else:
        yield codes


def parted(codes: Codes, parts: int, words: Words64) -> list[Codes]:
    """Records divided at random: each goes to one part, independently of what it says.

    Args:
        parts: how many, >= 1.
        words: cryptographic words; a word modulo `parts` is uniform up to parts / 2^64.
    """
    chosen = words(codes.rows) % np.uint64(parts)
    return [codes.part(chosen == np.uint64(part)) for part in range(parts)]


def contiguous(codes: Codes) -> np.ndarray:
    """(columns, rows) in one read-only piece, one run a column; not copied if it is so already."""
    columns = np.ascontiguousarray(codes.by_column).view()
    columns.flags.writeable = False  # one type for the compiled kernels, whatever came in
    return columns


def _closed() -> EngineFailure:
    return EngineFailure(
        "CLOSED",
        "The engine is closed: its records were forgotten.",
        "Records are counted before rows are written, never after.",
        "Start a new run.",
        state="What was reserved stays spent.",
    )
