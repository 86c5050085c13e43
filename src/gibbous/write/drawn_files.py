"""What a run has drawn, in its private folder: rows as arrays, and tables or rows read back after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.read.schema_file import load_schema
from gibbous.write import partial
from gibbous.write.durable_files import new_file
from gibbous.write.release_digest import digest_of
from gibbous.write.table_files import read_tables


def read_back(path: Path, state: Mapping[str, Any]) -> Tables | Codes | None:
    """What a run had drawn in its private folder; None where that is not whole."""
    kind, digest, package = state.get("kind"), state.get("digest"), path / "package"
    if kind is None:
        return None
    try:
        schema = load_schema(package / "schema.toml")
        tables = kind == "tables"
        found = read_tables(package / "tables", schema) if tables else _read_rows(path, schema)
        if digest_of(found) == digest:
            return found
    except (GibbousError, OSError, ValueError) as error:
        partial.refuse_unread(path, error)
    return None  # incomplete: it was not visible, so it may be drawn again


def write_rows(codes: Codes, folder: Path) -> None:
    """Write drawn rows, and numbers that were drawn with them."""
    with new_file(folder / "rows.npy") as file:
        np.save(file, np.ascontiguousarray(codes.by_column), allow_pickle=False)
    with new_file(folder / "numbers.npy") as file:
        positions = np.array([at for at, _ in codes.numbers], dtype=np.float64)
        drawn = np.array([values for _, values in codes.numbers])
        drawn = drawn.reshape(len(positions), codes.rows)
        np.save(file, np.column_stack([positions, drawn]), allow_pickle=False)


def _read_rows(folder: Path, schema: Schema) -> Codes:
    values, numbers = (
        np.load(folder / name, allow_pickle=False) for name in ("rows.npy", "numbers.npy")
    )
    sizes = np.array(schema.sizes)
    if values.ndim != 2 or len(values) != len(schema) or values.dtype.kind != "u":
        raise ValueError("not the rows of this schema")
    if values.size and (values.max(axis=1) >= sizes).any():
        raise ValueError("a code outside its column")
    drawn = tuple((int(row[0]), row[1:].copy()) for row in numbers)
    return Codes(schema, values.T, numbers=drawn)
