"""The fields of a certificate: names and kinds, checked against a document that anybody may have made."""

from __future__ import annotations

from typing import Any

from gibbous.write.durable_files import rejected
from gibbous.write.labelled_files import LIBRARY

NUMBER = (int, float)
CLAIM = {
    **dict.fromkeys(("kind", "epsilon", "delta", "rho", "l", "unit", "relation", "basis"), str),
    "source": str,
    "mu_squared?": str,
}
ENTRY = dict.fromkeys(("previous", "sealed", "public", "hash"), str)
RECEIPT: dict[str, Any] = {
    **dict.fromkeys(("guarantee", "relation", "published", "rows_from", "digest"), str),
    "differentially_private": bool,
    "total": CLAIM,
    "claim": CLAIM,
    "unit": (None, {"words": str, "max_rows": int}),
    "method": {
        **dict.fromkeys(("name", "title", "paper", "claimed", "proven", "audited"), str),
        "params": {},
    },
    "uncovered": [str],
    "discovered?": [str],
    "assumptions": [str],
    "plan": {
        "mechanism": str,
        "params": {},
        "rows": (None, int),
        "sets": int,
        "claim": CLAIM,
        "total": CLAIM,
        "published": str,
        "spends": [{"what": str, "claim": CLAIM, "detail": str}],
        "cells": int,
        "memory_bytes": int,
        "errors": {"*": (None, *NUMBER)},
        "warnings": [str],
        "beside?": [{"what": str, "claim": CLAIM, "detail": str}],
    },
    "rows": [int],
    "sets": int,
    "sanitized": ("once", "per set"),
    "seed": int,
    "tables": (None, int),
    "numbers?": [int],
    "files": {
        "csv": bool,
        "csv_raw": bool,
        "guarded_cells": [int],
        "part_rows?": int,
        "types?": {"*": str},
        "labelled?": {"format": tuple(LIBRARY), "library": str, "version": str},
    },
    "rules?": [{"rule": str, "rows_changed": [int]}],
    "given?": {"columns": [str], "covered": bool},
    "versions": {"*": str},
    "ledger": {
        **dict.fromkeys(("ledger", "reservation", "head"), str),
        "entries": {"reserve": ENTRY, "commit": ENTRY},
    },
}
"""What stands under each name: a type, a word, None, a list of one kind, a table of names, or one of
several. A name with ? may be missing; * is any name. Names that are not listed are left alone."""


def check_fields(document: dict[str, Any]) -> None:
    """Raise ModelRejected naming the first field of a certificate that is missing or of another kind."""
    wrong = _wrong(document, RECEIPT, "")
    if wrong:
        raise rejected("RECEIPT", f"{wrong} in ledger.json is missing, or not what it must be")


def _wrong(value: object, kind: Any, place: str) -> str:
    """The first place that does not fit; "" where all do."""
    if isinstance(kind, tuple):
        return "" if any(not _wrong(value, one, place) for one in kind) else place
    if isinstance(kind, list):
        members = list(enumerate(value)) if isinstance(value, list) else None
        kinds = [(str(at), kind[0]) for at, _ in members or ()]
        return _first(dict(members or ()), kinds, place) if members is not None else place
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return place or "the certificate"
        named = [(name, kind["*"]) for name in value] if "*" in kind else list(kind.items())
        return _first(value, named, place)
    return "" if (type(value) is kind if isinstance(kind, type) else value == kind) else place


def _first(values: dict[Any, Any], kinds: list[tuple[str, Any]], place: str) -> str:
    known = {str(name): value for name, value in values.items()}
    for written, kind in kinds:
        name = written.removesuffix("?") if written not in known else written
        below = f"{place}.{name}".lstrip(".")
        if name not in known:
            if written.endswith("?"):
                continue
            return below
        if wrong := _wrong(known[name], kind, below):
            return wrong
    return ""
