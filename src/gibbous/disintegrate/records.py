"""Records: a source and its schema go in; secret codes stay inside until they are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import Progress, Words64
from gibbous.core.schema import Schema

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


class Records:
    """The one holder of an engine's codes. Secret: cannot be printed or pickled."""

    __slots__ = ("_closed", "_codes")

    def __init__(self) -> None:
        self._codes: Codes | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Records, {'closed' if self._closed else 'secret'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are never pickled")

    @property
    def closed(self) -> bool:
        """Whether the records were forgotten."""
        return self._closed

    def take(self, codes: Codes) -> None:
        """Keep codes.

        Raises:
            EngineFailure: closed, or a code that the schema does not have.
        """
        if self._closed:
            raise _closed()
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
        """The codes.

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
        self._codes = None
        self._closed = True


def scan(
    source: Any,
    schema: Schema,
    *,
    key: bytes,
    options: ReadOptions | None,
    progress: Progress,
    numbers: Sequence[int] = (),
) -> tuple[Codes, bytes]:
    """Read, fingerprint, validate and encode.

    Args:
        source: a path or a frame.
        key: secret key of this installation's ledger.
        options: how to read a text file; None for the defaults.
        numbers: positions of numeric columns whose numbers are kept beside their bins.
    Returns:
        Secret codes, and the keyed fingerprint (32 bytes) of the rows as they were read.
    Guarantee:
        A person of the schema's unit has at most `max_rows` rows in the codes; which ones is drawn
        with words of the operating system.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit: without any cell value in the text.
    """
    from gibbous.encode.dictionary import coded, dictionaries
    from gibbous.encode.encode import Encoder
    from gibbous.read.fingerprint import Fingerprint
    from gibbous.read.source import ReadOptions, read_slices

    progress("read", 0, 100)
    mark, known = Fingerprint(key, schema.null), dictionaries(schema)
    with read_slices(source, schema=schema, options=options or ReadOptions()) as (rows, frames):
        encoder = Encoder(schema, rows, words=_words(schema), numbers=numbers)
        for frame in frames:
            part = coded(frame, known)
            encoder.add(part)
            mark.add(part)
            progress("read", 100 * encoder.done // max(1, rows), 100)
    codes = encoder.finish()
    progress("read", 100, 100)
    return codes, mark.digest()


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


def _words(schema: Schema) -> Words64 | None:
    if schema.unit is None or schema.unit.kind == "row":
        return None
    from gibbous.privacy.entropy import words  # loads OpenDP

    return words


def _closed() -> EngineFailure:
    return EngineFailure(
        "CLOSED",
        "The engine is closed: its records were forgotten.",
        "Records are counted before rows are written, never after.",
        "Start a new run.",
        state="What was reserved stays spent.",
    )
