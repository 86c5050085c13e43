"""A pattern of CSV files -> slices of rows; each file passes the checks that a single one passes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.core.errors import GibbousError, InputRejected, SchemaMismatch
from gibbous.core.schema import Schema
from gibbous.read.csv_file import ReadOptions
from gibbous.read.fields import shown
from gibbous.read.files import TEXT_ENDINGS
from gibbous.read.slices import row_slices

if TYPE_CHECKING:
    import polars as pl


def is_text_pattern(source: str | os.PathLike[str]) -> bool:
    """Whether a path is a pattern for the names of text files, and no file is called so."""
    path = Path(source)
    named = path.name.lower().endswith(TEXT_ENDINGS)
    return named and any(letter in path.name for letter in "*?[") and not os.path.lexists(path)


@contextmanager
def text_slices(
    source: str | os.PathLike[str], *, schema: Schema | None, options: ReadOptions
) -> Iterator[tuple[None, Iterator[pl.DataFrame]]]:
    """Read the files of a pattern in the order of their names; their number of rows is not known before.

    InputRejected where there is no such file; or as for one file, with its name.
    """
    yield None, _slices(text_parts(source), schema, options)


def text_parts(source: str | os.PathLike[str]) -> list[Path]:
    """The files of a pattern, sorted by name, without hidden ones and those of `_`; else InputRejected."""
    path = Path(source)
    files = sorted(p for p in path.parent.glob(path.name) if not p.name.startswith((".", "_")))
    if not files:
        raise InputRejected(
            "FILES",
            f"No text file is found at {shown(path)}.",
            "A pattern names files in one folder, for example 'data/*.csv'.",
            "Check the path.",
        )
    return files


def _slices(
    files: list[Path], schema: Schema | None, options: ReadOptions
) -> Iterator[pl.DataFrame]:
    order: list[str] = []
    for file in files:
        frame = _read(file, schema, options)
        order = order or frame.columns
        if set(frame.columns) != set(order):
            raise SchemaMismatch(
                "FILES",
                f"The file {shown(file.name)} has other columns than {shown(files[0].name)}.",
                "All files of a pattern have the same columns.",
                "Name the files that belong together.",
            )
        yield from row_slices(frame.select(order))


def _read(file: Path, schema: Schema | None, options: ReadOptions) -> pl.DataFrame:
    from gibbous.read.source import read_columns

    try:
        return read_columns(file, schema=schema, options=options)
    except GibbousError as error:
        said = f"In {shown(file.name)}: {error.wrong}"
        raise type(error)(error.name, said, error.allowed, error.fix, state=error.state) from None
