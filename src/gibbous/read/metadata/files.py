"""A file that describes a table, of whatever tool -> a draft of a schema, by one road for all formats."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.documents import Unreadable, json_value, read_bytes, read_text
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.keywords import answering
from gibbous.core.schema import Schema
from gibbous.read.fields import shown
from gibbous.read.metadata import croissant, domains, sheets
from gibbous.read.metadata.codebook import Codebook, Imported, draft_of, unsound
from gibbous.read.metadata.ddi import of_ddi
from gibbous.read.metadata.sdv import read_sdv
from gibbous.read.metadata.statistical import READERS, of_statistical

MAX_BYTES = 16 << 20
_YAML = (".yaml", ".yml")
FORMATS = (
    "It is domain.json, metadata of SDV, SmartNoise, DPSynth or Croissant (JSON or YAML), DDI-Codebook "
    "(.xml), a codebook sheet (.csv, .tsv, .xlsx), or a file of SPSS, Stata or SAS, at most "
    f"{MAX_BYTES >> 20} MB."
)
_DOCUMENTS: tuple[tuple[Callable[[object], bool], Callable[[Any], Codebook]], ...] = (
    (croissant.is_croissant, croissant.of_croissant),
    (domains.is_sizes, domains.of_sizes),
    (domains.is_dpsynth, domains.of_dpsynth),
    (domains.is_smartnoise, domains.of_smartnoise),
)


@answering
@guarded
def import_schema(path: str | os.PathLike[str], *, data: Any = None) -> Schema:
    """Read a schema from another tool's metadata or a codebook.

    What people wrote down (codebooks, dictionaries, domains) counts as declared; what a tool detected
    from data (SDV; statistics in DDI), and everything read off `data`, is marked inferred.

    Args:
        path: see `docs/how-to/schema.md` for the formats; the ending of its name says which.
        data: the records (path or frame), for columns whose levels or bounds the file does not state.
    Returns:
        The schema. Columns that nothing describes are in `ignore`; a privacy unit that is not stated
        is None.
    Raises:
        UsageError: the file is none of these, or states too little.
        EngineFailure: the format needs a library of the extra `formats`.
    Example:
        >>> import gibbous as gb
        >>> schema = gb.import_schema("codebook.csv")  # doctest: +SKIP
    """
    schema = import_draft(path, data=data).schema
    if schema is None:
        raise unsound(
            "states neither levels nor bounds of any column",
            "file",
            "It states levels or bounds, or the data are given too; `gibbous schema import` writes "
            "a draft that lists what is open",
        )
    return schema


def import_draft(path: str | os.PathLike[str], *, data: Any = None) -> Imported:
    """As `import_schema`, with notes on what was left out, what to check and what is left open."""
    return draft_of(read_codebook(path, data=data), data)


def read_codebook(path: str | os.PathLike[str], *, data: Any = None) -> Codebook:
    """What a file states of a table; arguments and errors as `import_schema`."""
    path = Path(path)
    ending = path.suffix.lower()
    try:
        if ending in READERS:
            return of_statistical(_regular(path))
        if ending in (".xlsx", ".xlsm"):
            read_bytes(path, MAX_BYTES)
            return sheets.of_excel(path)
        if ending in (".csv", ".tsv"):
            return sheets.of_csv(read_text(path, MAX_BYTES))
        if ending == ".xml":
            return of_ddi(read_text(path, MAX_BYTES))
        document = _yaml(path) if ending in _YAML else json_value(read_bytes(path, MAX_BYTES))
    except Unreadable as error:
        fault = str(error)
    else:
        return _of_document(document, data)
    raise UsageError("IMPORTFILE", f"The file {shown(path)} {fault}.", FORMATS, "Check the path.")


def _of_document(document: object, data: Any) -> Codebook:
    for fits, read in _DOCUMENTS:
        if fits(document):
            return read(document)
    if isinstance(document, Mapping) and any(
        isinstance(document.get(k), dict) for k in ("tables", "columns")
    ):
        return read_sdv(document, data)
    raise UsageError(
        "IMPORTFORMAT",
        "The file is in none of the formats that are read.",
        FORMATS,
        "Check the file, or start from gibbous schema infer.",
    )


def _yaml(path: Path) -> object:
    yaml = need("yaml", "formats")
    text = read_text(path, MAX_BYTES)
    try:
        if _written_out(yaml.compose(text, yaml.SafeLoader), {}) > MAX_BYTES:
            allowed = f"At most {MAX_BYTES >> 20} MB where aliases are written out"
            raise unsound("has aliases that make it huge", "YAML file", allowed)
        document = yaml.safe_load(text)
        str(document)  # ValueError for a hexadecimal number of thousands of digits
        return document
    except UsageError:
        raise
    except Exception:  # noqa: BLE001 - whatever a tag, for example !!bool x, makes of its parser
        raise Unreadable("cannot be read as YAML") from None


def _written_out(node: Any, known: dict[int, float]) -> float:
    """Characters and nodes of a YAML node whose aliases are written out; without end inside itself."""
    if id(node) not in known:
        known[id(node)], inner = math.inf, getattr(node, "value", "")
        parts = inner if isinstance(inner, list) else []
        nodes = (n for part in parts for n in (part if isinstance(part, tuple) else (part,)))
        size = 0 if parts else len(inner)
        known[id(node)] = 1 + size + sum(_written_out(n, known) for n in nodes)
    return known[id(node)]


def _regular(path: Path) -> Path:
    if not path.is_file():
        raise Unreadable("is missing or cannot be read")
    return path
