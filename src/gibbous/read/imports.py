"""Metadata of other tools -> a schema: domain.json (private-pgm, NIST) and SDV metadata V2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibbous.core.documents import Unreadable, json_value, read_bytes
from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, Schema, Unit
from gibbous.read.fields import shown
from gibbous.read.sdv import read_sdv

MAX_BYTES = 16 << 20
MAX_LEVELS = 10_000


def import_schema(path: str | Path, *, data: Any = None, options: Any = None) -> Schema:
    """Read another tool's metadata.

    `domain.json` maps columns to sizes: codes 0..size-1, counted as declared, one record a row.
    SDV metadata (V2, or V1; one table) arrive with every fact marked inferred, because SDV detects
    them from data; what they do not state is read off `data`. Their privacy unit stays undeclared.

    Args:
        path: a JSON file of at most 16 MB.
        data: the records (path or frame), for SDV metadata without ranges (V1).
        options: how `data` is read.
    Returns:
        The schema. Identifiers, and kinds that are not tabular values, are in `ignore`.
    Raises:
        UsageError: the file is neither, or facts are missing and there are no data.
    """
    document = _json(Path(path))
    if isinstance(document, dict) and any(
        isinstance(document.get(k), dict) for k in ("tables", "columns")
    ):
        return read_sdv(document, data, options)
    sizes = isinstance(document, dict) and all(
        isinstance(v, int) and not isinstance(v, bool) for v in document.values()
    )
    if not sizes or not document:
        raise _unknown()
    return Schema(tuple(_coded(name, size) for name, size in document.items()), Unit())


def _json(path: Path) -> Any:
    try:
        return json_value(read_bytes(path, MAX_BYTES))
    except Unreadable as error:
        fault = str(error)
    raise UsageError(
        "IMPORTFILE",
        f"The file {shown(path)} {fault}.",
        "It is domain.json or SDV metadata V2, JSON in UTF-8.",
        "Check the path.",
    )


def _coded(name: str, size: int) -> Column:
    if not 1 <= size <= MAX_LEVELS:
        raise UsageError(
            "DOMAIN",
            f"Column {shown(name)} has size {size:,}.",
            f"Sizes are 1 to {MAX_LEVELS:,}.",
            "Group its codes, or leave it out of the domain and the data.",
        )
    return Column(name, "binary" if size == 2 else "nominal", tuple(range(size)))


def _unknown() -> UsageError:
    return UsageError(
        "IMPORTFORMAT",
        "The file is neither domain.json nor SDV metadata.",
        "domain.json maps column names to sizes; SDV metadata have columns with an sdtype each.",
        "Check the file, or start from gibbous schema infer.",
    )
