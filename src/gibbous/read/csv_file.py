"""A CSV file -> a frame of text, checked byte by byte before it is parsed; null is one declared text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np

from gibbous.core.errors import InputRejected, ResourceLimit, UsageError
from gibbous.read.conform import check_names
from gibbous.read.csv_text import Piece, keep_records, parsed, pieces, split_header
from gibbous.read.fields import shown
from gibbous.read.files import blocks, format_of, memory_limit, opened

if TYPE_CHECKING:
    import polars as pl

ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "latin-1": "latin-1",
    "latin1": "latin-1",
    "iso-8859-1": "latin-1",
    "cp1252": "cp1252",
    "windows-1252": "cp1252",
}
_COMMA = r"^[+-]?([0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?|[0-9]*,[0-9]+)$"
"""Numbers whose decimal mark is a comma, with or without points between thousands."""
_CANDIDATES = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}


class DroppedLines(UserWarning):
    """Malformed lines were left out, because on_bad_line="drop" asked for it."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read. Nothing here is guessed from the file.

    Attributes:
        sep: separator of CSV; one ASCII character. In a .tsv file the default stands for a tab.
        encoding: utf-8, latin-1 or cp1252.
        max_bytes: most bytes after unpacking (CSV) or in memory (Parquet); None takes half of the
            memory, at most 8 GiB, and sets no limit to plain text that is read in slices.
        max_columns: most columns.
        on_bad_line: "reject" a file with lines of the wrong number of fields, or "drop" those
            lines; they are counted, and reported as a `DroppedLines` warning.
        decimal: "." or ",". With a comma, cells such as 987,00 and 1.234,50 (points between
            thousands) are read as 987.00 and 1234.50, and 1.234 as 1234; other cells stay as they are.
        amounts: read $1,234.50, 1 234.50, 12.5 % and (3.00) as 1234.50, 1234.50, 12.5 and -3.00: signs of
            currencies and percent, signs between thousands, and brackets for what is below 0.
    """

    sep: str = ","
    encoding: str = "utf-8"
    max_bytes: int | None = None
    max_columns: int = 2_000
    on_bad_line: Literal["reject", "drop"] = "reject"
    decimal: str = "."
    amounts: bool = False

    def __post_init__(self) -> None:
        if self.sep in ("\\t", "tab"):
            object.__setattr__(self, "sep", "\t")
        wrong = ""
        if len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n\0':
            wrong = f"sep is {shown(self.sep)}."
        elif self.encoding.lower() not in ENCODINGS:
            wrong = f"encoding is {shown(self.encoding)}."
        elif self.on_bad_line not in ("reject", "drop"):
            wrong = f"on_bad_line is {shown(self.on_bad_line)}."
        elif self.decimal not in (".", ","):
            wrong = f"decimal is {shown(self.decimal)}."
        elif (self.max_bytes is not None and self.max_bytes < 1) or self.max_columns < 1:
            wrong = "max_bytes or max_columns is below 1."
        if wrong:
            raise UsageError(
                "READOPTIONS",
                f"The reading option {wrong}",
                "sep is one ASCII character other than a quote, encoding one of utf-8, latin-1, "
                "cp1252, on_bad_line reject or drop, decimal a point or a comma.",
                "Correct it, for example sep=';'.",
            )

    @property
    def limit(self) -> int:
        """Most bytes."""
        return self.max_bytes if self.max_bytes is not None else memory_limit()


@dataclass(slots=True)
class _Bad:
    """Lines with the wrong number of fields, so far."""

    count: int = 0
    first: int = 0
    fields: int = 0

    def add(self, piece: Piece, good: np.ndarray) -> None:
        if good.all():
            return
        if not self.count:
            place = int((~good).argmax())
            self.first, self.fields = piece.line + int(piece.lines[place]), int(piece.fields[place])
        self.count += int(np.count_nonzero(~good))


def read_csv(path: Path, options: ReadOptions, *, null: str, expected: int | None) -> pl.DataFrame:
    """Read a CSV file, plain or gzip-packed: all columns as String, columns and rows in file order.

    Args:
        null: the one text that means missing, quoted or not.
        expected: number of columns of the schema, for the advice on a wrong separator.
    Raises:
        InputRejected: the file is not what it says it is; line numbers, never values.
        ResourceLimit: too many bytes or columns, or an oversized record.
    """
    import polars as pl

    options = replace(options, max_bytes=options.limit)  # plain text, too, is held
    with csv_slices(path, options, null=null, expected=expected) as (names, _, frames):
        return pl.concat([_no_rows(names), *frames])


@contextmanager
def csv_slices(
    path: Path, options: ReadOptions, *, null: str, expected: int | None
) -> Iterator[tuple[list[str], int, Iterator[pl.DataFrame]]]:
    """Read a CSV file some rows at a time: all of it is checked, then it is read again and parsed.

    Yields names, number of rows, and at least one frame of some megabytes of text; what is raised is
    that of `read_csv`, before the first frame.
    """
    sep = _separator(path, options)
    if options.max_bytes is None and format_of(path) != "csv.gz":
        options = replace(options, max_bytes=sys.maxsize)  # nothing unpacks, and little is held
    with opened(path) as file:
        names, records = _records(file, path, sep, options, expected)
        bad, rows = _Bad(), 0
        for piece, good in records:
            bad.add(piece, good)
            rows += int(np.count_nonzero(good))
        _report(bad, len(names), rows, options)
        file.seek(0)
        _, again = _records(file, path, sep, options, expected)
        parsed = (_plain(_parsed(piece, good, names, sep, null), options) for piece, good in again)
        yield names, rows, parsed if rows else iter([_no_rows(names)])


def csv_names(path: Path, options: ReadOptions) -> list[str]:
    """The header of a CSV file, checked as in `read_csv`; reads no further."""
    sep = _separator(path, options)
    with opened(path) as file:
        return _records(file, path, sep, options, None)[0]


def _records(
    file: BinaryIO, path: Path, sep: str, options: ReadOptions, expected: int | None
) -> tuple[list[str], Iterator[tuple[Piece, np.ndarray]]]:
    """The header, and pieces of records with which of them have as many fields."""
    source = blocks(file, gz=format_of(path) == "csv.gz", max_bytes=options.limit)
    stream = pieces(source, sep, ENCODINGS[options.encoding.lower()])
    names = _header(next(stream, None), sep, options, expected)
    return names, _told(stream, len(names))


def _told(stream: Iterator[Piece], columns: int) -> Iterator[tuple[Piece, np.ndarray]]:
    piece = next(stream, None)
    while piece is not None:
        after = next(stream, None)
        piece = _without_blank_end(piece, columns) if after is None else piece
        yield piece, piece.fields == columns
        piece = after


def _no_rows(names: list[str]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(schema=dict.fromkeys(names, pl.String))


def _separator(path: Path, options: ReadOptions) -> str:
    tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
    return "\t" if tabs and options.sep == "," else options.sep


def _header(piece: Piece | None, sep: str, options: ReadOptions, expected: int | None) -> list[str]:
    if piece is None:
        raise InputRejected(
            "EMPTY", "The file is empty.", "It has a header line and records.", "Check the export."
        )
    if piece.text.startswith((b"PAR1", b"\x1f\x8b", b"PK\x03\x04")):
        raise InputRejected(
            "NOTCSV",
            "The file is named as CSV and is not text.",
            "Parquet files end in .parquet, packed text in .csv.gz; archives are not read.",
            "Rename or unpack it.",
        )
    count = int(piece.fields[0])
    if count > options.max_columns:
        raise ResourceLimit(
            "TOOMANYCOLUMNS",
            f"The header line has {count:,} columns.",
            f"At most {options.max_columns:,}.",
            "Keep the columns that are needed, check the separator, or raise max_columns.",
        )
    names = split_header(piece, sep)
    if count == 1 and expected != 1:
        other = [words for letter, words in _CANDIDATES.items() if letter in names[0]]
        if other or expected is not None:
            columns = "more" if expected is None else f"{expected:,}"
            comma = ", and --decimal ',' if it writes numbers as 3,5" if ";" in names[0] else ""
            raise InputRejected(
                "SEPARATOR",
                f"1 column found, {columns} expected.",
                "The separator is declared, never guessed.",
                f"Try --sep {other[0]}{comma}." if other else "Check the file and --sep.",
            )
    check_names(names, options.max_columns)
    return names


def _without_blank_end(piece: Piece, columns: int) -> Piece:
    """Blank lines at the very end of the file are not records (of more than one column)."""
    last = len(piece.ends)
    blank = np.diff(piece.ends, prepend=-1) == 1
    while columns > 1 and last and blank[last - 1]:
        last -= 1
    if last == len(piece.ends):
        return piece
    stop = int(piece.ends[last - 1]) + 1 if last else 0
    return Piece(
        piece.text[:stop],
        piece.fields[:last],
        piece.quoted,
        piece.line,
        piece.lines[:last],
        piece.ends[:last],
    )


def _parsed(piece: Piece, good: np.ndarray, names: list[str], sep: str, null: str) -> pl.DataFrame:
    import polars as pl

    text = piece.text if good.all() else keep_records(piece, good)
    if len(names) == 1:  # a second, empty field keeps blank lines from being skipped
        data = np.frombuffer(text, dtype=np.uint8)
        ends = np.cumsum(np.diff(piece.ends, prepend=-1)[good]) - 1
        text = np.insert(data, ends, ord(sep)).tobytes()
    count = int(np.count_nonzero(good))
    if count == 0:
        return _no_rows(names)
    columns = [*names, "\0"] if len(names) == 1 else names
    failed = False
    try:
        frame = parsed(
            text,
            has_header=False,
            separator=sep,
            schema=dict.fromkeys(columns, pl.String),
            quote_char='"',
            encoding="utf8",
        )
    except (pl.exceptions.PolarsError, ValueError, OSError):
        failed = True
    if failed or frame.height != count or frame.width != len(columns):
        raise InputRejected(
            "PARSE",
            f"The records from line {piece.line:,} on cannot be read.",
            "The text is CSV as in RFC 4180.",
            "Write the file again with a CSV writer.",
        )
    frame = frame.select(names)
    if null == "" and not piece.quoted:
        return frame
    # The declared text, and nothing else, is null: the parser reads bare empty fields as null.
    filled = [pl.col(name).fill_null("") for name in names]
    return frame.with_columns(pl.when(text != pl.lit(null)).then(text) for text in filled)


def _plain(frame: pl.DataFrame, options: ReadOptions) -> pl.DataFrame:
    """Numbers as no kind reads them, in plain digits with a point; other cells stay."""
    import polars as pl

    from gibbous.read.text_forms import amount, plain_numbers

    if options.decimal == "." and not options.amounts:
        return frame
    cell, point = pl.all().str.strip_chars(), options.decimal
    hit, digits = plain_numbers(cell, amount(point) if options.amounts else _COMMA, point)
    return frame.with_columns(pl.when(hit).then(digits).otherwise(pl.all()))


def _report(bad: _Bad, columns: int, rows: int, options: ReadOptions) -> None:
    if not bad.count:
        return
    what = (
        f"{bad.count:,} lines do not have {columns:,} fields, the first is line {bad.first:,}"
        if bad.count > 1
        else f"line {bad.first:,} does not have {columns:,} fields (1 such line)"
    )
    if options.on_bad_line == "drop":
        warnings.warn(f"Dropped: {what}.", DroppedLines, stacklevel=4)
        return
    if not rows:
        raise InputRejected(
            "RAGGED",
            f"The number of fields of the first line is {columns:,}, of line {bad.first:,} {bad.fields:,}, "
            "and no other line has as many as the first.",
            "The first line names all columns.",
            "Take out what stands above the names, or check --sep and the quotes.",
        )
    raise InputRejected(
        "RAGGED",
        f"The file is ragged: {what}.",
        "Every record has as many fields as the header line.",
        "Correct the lines, check --sep and the quotes, or leave them out with --on-bad-line drop.",
    )
