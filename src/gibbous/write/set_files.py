"""The files of synthetic sets: one a set while it is small, else a folder of parts; named and read.

Those of a release on disk are checked against its digests before they are used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.release import Lazy, SetReader
from gibbous.core.request import Output
from gibbous.core.schema import Schema
from gibbous.encode.column_types import dictionary_casts
from gibbous.write import manifest
from gibbous.write.durable_files import refusing, rejected
from gibbous.write.parquet_guard import guarded_read, guarded_scan

if TYPE_CHECKING:
    import polars as pl

MOST_FILES = 50_000  # of all sets; beyond that, parts grow


def fitting(part_rows: int, rows: int, sets: int) -> int:
    """Rows a part, doubled until all sets have at most MOST_FILES files: public numbers alone."""
    while sets * parts(rows, part_rows) > MOST_FILES and part_rows < rows:
        part_rows *= 2
    return part_rows


def parts(rows: int, part_rows: int) -> int:
    """Number of files of a set; an empty set has one."""
    return max(1, -(-rows // part_rows))


def part_span(rows: int, part_rows: int, part: int) -> tuple[int, int]:
    """First row of a part within its set, and the row after its last one."""
    return part * part_rows, min(rows, (part + 1) * part_rows)


def part_name(number: int, rows: int, part_rows: int, part: int, form: str) -> str:
    """Name of one file of set `number` (from 1) and `part` (from 0) within the package."""
    if parts(rows, part_rows) == 1:
        return f"synthetic_{number}.{form}"
    return f"{set_folder(number, form)}/part-{part:05d}.{form}"


def set_folder(number: int, form: str) -> str:
    """Name of the folder of a set in parts; Parquet readers take it as one table."""
    return f"synthetic_{number}" + ("" if form == "parquet" else f"_{form}")


def set_files(number: int, rows: int, part_rows: int, form: str) -> Iterator[str]:
    """Names of all files of a set, in the order of its rows."""
    for part in range(parts(rows, part_rows)):
        yield part_name(number, rows, part_rows, part, form)


def set_folders(rows: int, output: Output) -> tuple[str, ...]:
    """Names of the folders that sets of so many rows need: none while each is one file."""
    if parts(rows, output.part_rows) == 1:
        return ()
    numbers = range(1, output.sets + 1)
    return tuple(set_folder(number, form) for number in numbers for form in output.formats)


def lazy_sets(folder: Path, receipt: Mapping[str, Any], schema: Schema) -> Lazy:
    """The sets of a package, whose certificate was checked; ModelRejected without a list of digests."""
    names = [names_of(receipt, number) for number in range(1, receipt["sets"] + 1)]
    sums = manifest.digests(folder)
    casts = dictionary_casts(schema, receipt["files"].get("types", {}))
    return Lazy(
        [
            SetReader(
                read=partial(_read, folder, own, sums, casts),
                scan=partial(_scan, folder, own, sums, casts),
                files=partial(_checked, folder, own, sums),
            )
            for own in names
        ]
    )


def names_of(receipt: Mapping[str, Any], number: int, form: str = "parquet") -> tuple[str, ...]:
    """Names of the files of one set, counted from 1."""
    rows = receipt["rows"][number - 1]
    return tuple(set_files(number, rows, part_rows_of(receipt), form))


def part_rows_of(receipt: Mapping[str, Any]) -> int:
    """Rows a file: what the certificate says, if possible; a set is one file where it does not say."""
    with refusing("RECEIPT", "ledger.json does not say how large its files are"):
        most = max(receipt["rows"])
        part_rows = receipt["files"].get("part_rows", max(most, 1))
        whole = type(part_rows) is int and part_rows >= 1
        if whole and sum(parts(rows, part_rows) for rows in receipt["rows"]) <= manifest.MAX_FILES:
            return int(part_rows)
    raise rejected("RECEIPT", "the number of rows a file in ledger.json is not possible")


def _checked(folder: Path, names: tuple[str, ...], sums: dict[str, str]) -> tuple[Path, ...]:
    for name in names:
        if name not in sums or not (folder / name).is_file():
            raise rejected("MISSING", f"{name} is missing")
        manifest.check_file(folder, name, sums[name])
    return tuple(folder / name for name in names)


def _read(
    folder: Path, names: tuple[str, ...], sums: dict[str, str], casts: list[pl.Expr]
) -> pl.DataFrame:
    import polars as pl

    frames = [guarded_read(path) for path in _checked(folder, names, sums)]
    if len({tuple(frame.schema.items()) for frame in frames}) > 1:
        raise rejected("COLUMNS", f"the parts of {names[0].partition('/')[0]} have other columns")
    fitted: pl.DataFrame | None = None
    with contextlib.suppress(pl.exceptions.PolarsError):
        fitted = pl.concat(frames).with_columns(casts)
    if fitted is None:
        raise rejected("COLUMNS", f"{names[0].partition('/')[0]} does not fit its schema")
    return fitted


def _scan(
    folder: Path, names: tuple[str, ...], sums: dict[str, str], casts: list[pl.Expr]
) -> pl.LazyFrame:
    return guarded_scan(_checked(folder, names, sums)).with_columns(casts)
