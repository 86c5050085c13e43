"""A codebook as a sheet (CSV or Excel), one row a variable or a level -> what it states."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.read.metadata.codebook import Codebook, Variable, levels_of_texts, unsound

HEADINGS = {
    "variable": ("variable", "variable name", "column", "column name", "name", "field"),
    "label": ("label", "variable label"),
    "level": ("level", "value", "code"),
    "level label": ("level label", "value label", "code label", "meaning"),
    "kind": ("kind",),
    "lower": ("lower", "min", "minimum"),
    "upper": ("upper", "max", "maximum"),
    "measured in": ("measured in", "unit", "units"),
    "missing": ("missing",),
    "description": ("description",),
    "note": ("note", "notes"),
}
"""What a column of the sheet may be called, capitals and underscores aside."""

_ALLOWED = f"Its first row names columns: variable, and any of {', '.join(list(HEADINGS)[1:])}"
_MOST_ROWS = 1_000_000
_MOST_COLUMNS = 64  # of Excel: others are not looked at
_MOST_UNPACKED = 256 << 20
_YES = {"yes": True, "true": True, "1": True, "y": True, "no": False, "false": False, "0": False}
_YES["n"] = False
Row = dict[str, str]


def of_csv(text: str) -> Codebook:
    """A codebook in CSV, separated by commas, semicolons or tabs; UsageError if it is none."""
    first = text.split("\n", 1)[0]
    mark = max(",;\t", key=first.count)
    try:
        return _of_rows(csv.reader(io.StringIO(text), delimiter=mark))
    except csv.Error:
        raise unsound("cannot be read as CSV", "codebook", _ALLOWED) from None


def of_excel(path: Path) -> Codebook:
    """The first sheet of an Excel file.

    Raises:
        UsageError: it is not an Excel file (.xlsx), too large when unpacked, or no codebook.
        EngineFailure: openpyxl is not installed.
    """
    openpyxl = need("openpyxl", "formats")
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > _MOST_UNPACKED:
            raise unsound("is too large when unpacked", "Excel file", "At most 256 MB")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # rows are else filled up to the size that the file states
        cells = sheet.iter_rows(max_col=_MOST_COLUMNS, values_only=True)
        return _of_rows([_cell(v) for v in row] for row in cells)
    except UsageError:
        raise
    except Exception:  # noqa: BLE001 - whatever a part of the file makes of openpyxl
        raise unsound("cannot be read as Excel (.xlsx)", "file", _ALLOWED) from None


def _of_rows(rows: Iterable[Sequence[str]]) -> Codebook:
    reader = iter(rows)
    heads = [_heading(text) for text in next(reader, [])]
    if "variable" not in heads:
        raise unsound("has no column 'variable'", "codebook", _ALLOWED)
    together: dict[str, list[Row]] = {}
    for row in _named(heads, reader):
        together.setdefault(row["variable"], []).append(row)
    if not together:
        raise unsound("names no variable", "codebook", _ALLOWED)
    return Codebook(tuple(_variable(name, group) for name, group in together.items()))


def _named(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[Row]:
    name = ""
    for number, cells in enumerate(rows):
        if number >= _MOST_ROWS:
            raise unsound("has too many rows", "codebook", f"At most {_MOST_ROWS:,}")
        row = {h: c.strip() for h, c in zip(heads, cells, strict=False) if h}
        name = row.get("variable") or name  # rows of levels may leave it empty
        if name and any(row.values()):
            yield row | {"variable": name}


def _variable(name: str, rows: list[Row]) -> Variable:
    def first(heading: str) -> str:
        return next((row[heading] for row in rows if row.get(heading)), "")

    texts = tuple((key, first(key.replace("_", " "))) for key in ("label", "description", "note"))
    texts += (("measured_in", first("measured in")),)
    found = {row["level"]: row.get("level label", "") for row in rows if row.get("level")}
    missing = _YES.get(first("missing").lower())
    levels = levels_of_texts(list(found))
    labels = tuple((a, b) for a, b in zip(levels, found.values(), strict=True) if b)
    kind = first("kind").lower()
    base = Variable(name, missing=missing, texts=texts)
    if levels:
        return replace(base, levels=tuple(levels), labels=labels, ordered=kind == "ordinal")
    ends = [_number(first(end)) for end in ("lower", "upper")]
    if ends[0] is None or ends[1] is None:
        return base
    whole = all(isinstance(end, int) for end in ends)
    return replace(base, lower=ends[0], upper=ends[1], integer=whole)


def _heading(text: str) -> str:
    plain = " ".join(text.replace("_", " ").lower().split()).lstrip("\ufeff")
    return next((ours for ours, names in HEADINGS.items() if plain in names), "")


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number - number == 0 else None


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)
