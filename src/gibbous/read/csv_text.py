"""CSV bytes -> checked pieces of whole records: encoding, quotes, line ends, number of fields.

Nothing is guessed and nothing repaired silently: RFC 4180 with a declared separator, one record
a line, quotes only around whole fields. All checks are on whole blocks; there is no loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.errors import InputRejected, ResourceLimit

if TYPE_CHECKING:
    import polars as pl

_MARK = b"\xef\xbb\xbf"
MAX_RECORD = 16 << 20
_QUOTE, _LF, _CR = 34, 10, 13


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """Whole records, line ends normalized to LF, UTF-8.

    Attributes:
        text: the bytes; they end in LF.
        fields: number of fields of each record.
        quoted: whether there is any quote.
        line: physical line number of the first record.
        lines: physical line on which each record starts, relative to `line`.
        ends: position in `text` of the LF that ends each record.
    """

    text: bytes
    fields: np.ndarray
    quoted: bool
    line: int
    lines: np.ndarray
    ends: np.ndarray


def pieces(blocks: Iterator[bytes], sep: str, encoding: str) -> Iterator[Piece]:
    """Cut the bytes of a file into checked pieces: the header record alone, then about a block each.

    Raises:
        InputRejected: wrong encoding, NUL, a stray or unclosed quote, a lone carriage return.
        ResourceLimit: a record of more than 16 MB.
    """
    left, line, offset, header = b"", 1, 0, True
    for block in blocks:
        if offset == 0 and not left:
            if block.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InputRejected(
                    "UTF16",
                    "The file is UTF-16 text.",
                    "Text files are UTF-8 (with or without a byte order mark).",
                    "Save it as UTF-8.",
                )
            marked = block.startswith(_MARK)
            block, offset = (block[3:], 3) if marked else (block, 0)
        left += block
        end = last_end(left, first=header)
        if end == 0:
            _check_record(left, line)
            continue
        while end:  # twice at most: the header, then all the rest
            piece = _checked(left[:end], sep, encoding, line, offset)
            yield piece
            line += left.count(b"\n", 0, end)
            offset += end
            left = left[end:]
            end = last_end(left, first=False) if header else 0
            header = False
    if left:
        yield _checked(left, sep, encoding, line, offset)


def split_header(piece: Piece, sep: str) -> list[str]:
    """The names in a header record; never more than the caller allows."""
    text = piece.text[:-1]
    if not piece.quoted:
        return text.decode().split(sep)
    data = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    cuts = _outside(np.flatnonzero(data == ord(sep)), quotes)
    ends = [-1, *cuts.tolist(), len(text)]
    names = [text[a + 1 : b].decode() for a, b in zip(ends, ends[1:], strict=False)]
    return [n[1:-1].replace('""', '"') if n.startswith('"') else n for n in names]


def keep_records(piece: Piece, good: np.ndarray) -> bytes:
    """The bytes of some records of a piece; good: bool (records,)."""
    lengths = np.diff(piece.ends, prepend=-1)
    return bytes(np.frombuffer(piece.text, dtype=np.uint8)[np.repeat(good, lengths)])


def last_end(text: bytes, *, first: bool = False) -> int:
    """Position after the last (or first) line end that is outside quotes; 0 if there is none."""
    if b'"' not in text:
        return (text.find(b"\n") if first else text.rfind(b"\n")) + 1
    data = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    ends = _outside(np.flatnonzero(data == _LF), quotes)
    if len(ends) == 0:
        return 0
    return int(ends[0] if first else ends[-1]) + 1


def _outside(places: np.ndarray, quotes: np.ndarray) -> np.ndarray:
    found: np.ndarray = places[np.searchsorted(quotes, places) % 2 == 0]
    return found


def _check_record(text: bytes, line: int) -> None:
    if len(text) <= MAX_RECORD:
        return
    opened = text.find(b'"')
    if opened >= 0 and b"\n" in text[opened:]:
        raise _unclosed(_line_at(text, opened, line))
    raise ResourceLimit(
        "LONGRECORD",
        f"The record on line {line:,} is longer than {MAX_RECORD >> 20} MB.",
        "Records are lines of a table.",
        "Check the line ends and the quotes of the file.",
    )


def _checked(text: bytes, sep: str, encoding: str, line: int, offset: int) -> Piece:
    if not text.endswith(b"\n"):
        text += b"\n"
    text = _as_utf8(text, encoding, line, offset)
    if b'"' in text:
        _check_quotes(np.frombuffer(text, dtype=np.uint8), ord(sep), line)
    if b"\r" in text:
        text = _unix_ends(text, line)
    data = np.frombuffer(text, dtype=np.uint8)
    ends, cuts = np.flatnonzero(data == _LF), np.flatnonzero(data == ord(sep))
    lines = np.arange(len(ends))
    quoted = b'"' in text
    if quoted:
        quotes = np.flatnonzero(data == _QUOTE)
        inside = np.searchsorted(quotes, ends) % 2 == 0
        starts = np.concatenate(([0], np.flatnonzero(inside)[:-1] + 1))
        ends, cuts, lines = ends[inside], _outside(cuts, quotes), starts
    fields = np.diff(np.searchsorted(cuts, ends), prepend=0) + 1
    return Piece(text, fields, quoted, line, lines, ends)


def _as_utf8(text: bytes, encoding: str, line: int, offset: int) -> bytes:
    zero = text.find(b"\0")
    if zero >= 0:
        raise InputRejected(
            "NUL",
            f"The file has a NUL byte on line {_line_at(text, zero, line):,}.",
            "Text has none; UTF-16 text is full of them.",
            "Save the file as UTF-8 text.",
        )
    if encoding == "utf-8" and text.isascii():
        return text
    place = -1
    try:
        decoded = text.decode(encoding)
    except UnicodeDecodeError as error:
        place = error.start
    if place >= 0:
        other = "latin-1" if encoding == "utf-8" else "utf-8"
        raise InputRejected(
            "ENCODING",
            f"The file is not {encoding.upper()} at byte {offset + place:,} "
            f"(line {_line_at(text, place, line):,}).",
            "The encoding is declared, never guessed.",
            f"Try --encoding {other}, or save the file as UTF-8.",
        )
    return text if encoding == "utf-8" else decoded.encode()


def _check_quotes(data: np.ndarray, sep: int, line: int) -> None:
    """Quotes open at the start of a field, close at its end, and are doubled inside."""
    quotes = np.flatnonzero(data == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    before = np.append(data, _LF)[opening - 1]  # the piece starts a record; index -1 is that LF
    after_open = np.isin(before, (sep, _LF))
    after_open[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    after = data[closing + 1]  # the piece ends in LF
    fine = np.isin(after, (sep, _LF, _CR))
    pairs = min(len(closing), len(opening) - 1)
    fine[:pairs] |= opening[1 : pairs + 1] == closing[:pairs] + 1
    stray = opening[~after_open]
    torn = opening[: len(closing)][~fine]
    unclosed = opening[-1:] if len(opening) > len(closing) else opening[:0]
    faults = np.concatenate((stray, torn, unclosed))
    if len(faults) == 0:
        return
    place = int(faults.min())
    where = line + int(np.count_nonzero(data[:place] == _LF))
    if len(stray) and place == int(stray[0]):
        raise InputRejected(
            "STRAYQUOTE",
            f"Line {where:,} has a quote inside a field that is not quoted.",
            "A quote opens at the start of a field; inside quotes it is doubled.",
            "Quote the whole field, or write the file again with a CSV writer.",
        )
    raise _unclosed(where)


def _unclosed(line: int) -> InputRejected:
    return InputRejected(
        "UNCLOSEDQUOTE",
        f"The quote that opens on line {line:,} is not closed at the end of its field.",
        "A quoted field ends in a quote, followed by a separator or the end of the line.",
        "Close it, or double the quotes inside the field.",
    )


def _unix_ends(text: bytes, line: int) -> bytes:
    """CRLF -> LF outside quotes; a carriage return on its own is refused there."""
    if b'"' not in text:
        text = text.replace(b"\r\n", b"\n")
        lone = text.find(b"\r")
        if lone < 0:
            return text
        raise _lone(_line_at(text, lone, line))
    data = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    returns = _outside(np.flatnonzero(data == _CR), quotes)
    lone_places = returns[data[returns + 1] != _LF]
    if len(lone_places):
        raise _lone(_line_at(text, int(lone_places[0]), line))
    keep = np.ones(len(data), dtype=bool)
    keep[returns] = False
    return data[keep].tobytes()


def _lone(line: int) -> InputRejected:
    return InputRejected(
        "LINEENDS",
        f"Line {line:,} holds a carriage return that ends no line.",
        "Lines end in LF or CRLF; inside quotes anything goes.",
        "Save the file with Unix line ends.",
    )


def _line_at(text: bytes, place: int, line: int) -> int:
    return line + text.count(b"\n", 0, place)


def parsed(text: bytes, *, has_header: bool = True, **options: Any) -> pl.DataFrame:
    """CSV text as polars reads it, all cells as text; errors are those of polars.

    A mark of byte order stands in front: polars would unpack text that begins like a packed file, be
    that gzip without end or the letters x^.
    """
    import polars as pl

    text = _MARK + (text.removeprefix(_MARK) if has_header else text)
    return pl.read_csv(BytesIO(text), has_header=has_header, infer_schema=False, **options)
