"""Rows for statistical programs: SPSS, Stata and Excel files, with labels of columns and of levels.

The same rows give the same bytes: the day and hour that these formats keep is fixed. So whoever has the
Parquet file can write the labelled one again, and compare, without a parser that reads what strangers wrote.
"""

from __future__ import annotations

import datetime
import re
import textwrap
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.column import Column
from gibbous.core.extras import need
from gibbous.core.schema import Schema
from gibbous.write.durable_files import new_file, sha256_of

if TYPE_CHECKING:
    import polars as pl

LIBRARY = {"sav": "pyreadstat", "dta": "pyreadstat", "xlsx": "openpyxl"}
IN_NOTES = ("description", "measured_in", "note")  # of a column, in the documents of an SPSS file
_LONGEST = {"sav": 64, "dta": 32}  # characters of a name
_LABEL = {"sav": 120, "dta": 80}  # bytes of a label that both keep whole
_EXCEL_ERA = datetime.date(1900, 3, 1)  # before it, days of a spreadsheet are counted wrongly
_DAY = {"sav": b"01 Jan 80", "dta": b"01 Jan 1980 00:00"}
_SAV_DAY, _SAV_HOUR = 92, b"00:00:00"  # bytes before the day in the header, which the hour follows
_CLOCK = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Labelled:
    """A labelled file of one part of a set, written once all its rows are there."""

    def __init__(self, path: Path, schema: Schema, form: str) -> None:
        self._path, self._schema, self._form = path, schema, form
        self._frames: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> int:
        """Keep the next rows."""
        self._frames.append(frame)
        return 0

    def finish(self) -> None:
        """Write them."""
        import polars as pl

        frame = pl.concat(self._frames)
        if self._form == "xlsx":
            _write_excel(frame, self._schema, self._path)
        else:
            _write_statistical(frame, self._schema, self._path, self._form)


@contextmanager
def labelled(path: Path, schema: Schema, raw: bool = False, *, form: str) -> Iterator[Labelled]:
    """A labelled file that appears whole; EngineFailure without its library.

    Its text is never a formula, whatever `raw` says.
    """
    need(LIBRARY[form], "formats")
    with new_file(path):
        writer = Labelled(path, schema, form)
        yield writer
        writer.finish()


def written_by(form: str) -> dict[str, dict[str, str]]:
    """What a certificate says of labelled files: their format, and the library that decides their bytes."""
    if form not in LIBRARY:
        return {}
    library = LIBRARY[form]
    need(library, "formats")
    return {"labelled": {"format": form, "library": library, "version": version(library)}}


def same_rows(parquet: Path, beside: Path, schema: Schema, scratch: Path) -> bool:
    """Whether a labelled file is what the rows of a Parquet file give, byte for byte."""
    import polars as pl

    form, again = beside.suffix[1:], scratch / beside.name
    with labelled(again, schema, form=form) as writer:
        writer.add(pl.read_parquet(parquet))
    same = sha256_of(again) == sha256_of(beside)
    again.unlink()
    return same


def variable_names(schema: Schema, form: str) -> list[str]:
    """Names that the program takes: letters, digits and _, not too long, no two alike."""
    names: list[str] = []
    for column in schema:
        name = re.sub(r"[^A-Za-z0-9_]", "_", column.name)
        name = (name if re.match(r"[A-Za-z]", name) else f"v_{name}")[: _LONGEST[form]]
        at, plain = 2, name
        while name.lower() in {one.lower() for one in names}:
            name = f"{plain[: _LONGEST[form] - 1 - len(str(at))]}_{at}"
            at += 1
        names.append(name)
    return names


def _write_statistical(frame: pl.DataFrame, schema: Schema, path: Path, form: str) -> None:
    import polars as pl

    pyreadstat = need("pyreadstat", "formats")
    columns, levels = {}, {}
    measures: dict[str, str] = {}
    labels = []
    for name, column in zip(variable_names(schema, form), schema, strict=True):
        columns[name], named = _variable(frame[column.name], column, form)
        if named:
            levels[name] = {level: _cut(text, form) for level, text in named.items()}
        scale = "scale" if column.binned else column.kind
        measures[name] = scale if scale in ("scale", "ordinal") else "nominal"
        labels.append(_cut(column.label or ("" if name == column.name else column.name), form))
    about: dict[str, Any] = {"column_labels": labels, "variable_value_labels": levels}
    table = pl.DataFrame(columns)
    if form == "sav":
        title = schema.name[:60]
        said = _notes(schema, form)
        pyreadstat.write_sav(table, path, title, variable_measure=measures, note=said, **about)
        _overwrite(path, _SAV_DAY, _DAY["sav"] + _SAV_HOUR)
    else:
        pyreadstat.write_dta(table, path, schema.name[:80], version=14, **about)
        head = path.read_bytes()[:1000]
        _overwrite(path, head.index(b"<timestamp>") + len(b"<timestamp>") + 1, _DAY["dta"])


def _notes(schema: Schema, form: str) -> list[str]:
    """What SPSS has no field for, as lines of its documents: `variable key: text`; 80 bytes each at most."""
    lines = []
    for name, column in zip(variable_names(schema, form), schema, strict=True):
        for key in IN_NOTES:
            if text := getattr(column, key):
                width = 76 // max(len(letter.encode()) for letter in text)
                said = f"{name} {key}: {text}"
                lines += textwrap.wrap(said, width, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _variable(series: pl.Series, column: Column, form: str) -> tuple[Any, dict[Any, str]]:
    """Values of one variable, and what its values mean."""
    import polars as pl

    meant = dict(column.level_labels)
    if column.kind == "date":
        return series, {}
    if series.dtype.is_numeric() or column.binned:
        return series.cast(pl.Float64), meant
    if series.dtype == pl.Boolean:
        named = {int(k): v for k, v in meant.items()} or {0: "false", 1: "true"}
        return series.cast(pl.Float64), named
    text = series.cast(pl.String)
    if form == "dta" and (meant or column.kind == "ordinal"):  # Stata labels numbers alone
        places = {level: at for at, level in enumerate(column.labels(), 1)}
        codes = text.replace_strict(places, default=None, return_dtype=pl.Float64)
        shown = {at: meant.get(level, level) for level, at in places.items()}
        return codes, shown
    return text.fill_null(""), meant


def _cut(text: str, form: str) -> str:
    return text.encode()[: _LABEL[form]].decode("utf-8", "ignore")


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _write_excel(frame: pl.DataFrame, schema: Schema, path: Path) -> None:
    book = need("openpyxl", "formats").Workbook(write_only=True)
    rows = book.create_sheet("rows")
    rows.append([_cell(rows, column.name) for column in schema])
    for values in frame.iter_rows():
        rows.append([_cell(rows, value) for value in values])
    columns, levels = book.create_sheet("columns"), book.create_sheet("levels")
    columns.append(["column", "label", "unit", "description", "note"])
    levels.append(["column", "level", "label"])
    for column in schema:
        about = (column.name, column.label, column.measured_in, column.description, column.note)
        columns.append([_cell(columns, text or "") for text in about])
        for level, text in column.level_labels:
            levels.append([_cell(levels, value) for value in (column.name, level, text)])
    loose = path.with_name(f"{path.name}.loose")
    try:
        book.save(loose)
        with zipfile.ZipFile(loose) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in sorted(old.namelist()):
                data = old.read(name)
                if name == "docProps/core.xml":
                    data = _CLOCK.sub(b"1980-01-01T00:00:00Z", data)
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                new.writestr(entry, data, zipfile.ZIP_DEFLATED)
    finally:
        loose.unlink(missing_ok=True)


def _cell(sheet: Any, value: Any) -> Any:
    """A cell whose text is never a formula, whatever it begins with."""
    if isinstance(value, datetime.date) and value < _EXCEL_ERA:
        value = value.isoformat()
    if not isinstance(value, str):
        return value
    made = need("openpyxl.cell.cell", "formats")
    cell = made.WriteOnlyCell(sheet, value=made.ILLEGAL_CHARACTERS_RE.sub("?", value))
    cell.data_type = "s"
    return cell
