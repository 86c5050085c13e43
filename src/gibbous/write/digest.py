"""One digest for what was released: tables with their recipe, or drawn rows; whatever the file format."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.tables import Dense, Table, Tables
from gibbous.read.schema_write import schema_json


def digest_of(result: Tables | Codes) -> str:
    """SHA-256 over the schema and the released numbers, in a fixed byte order.

    Args:
        result: what a mechanism returned: public tables, or the rows of all sets.
    Returns:
        Hex digest: this is what the ledger commits to.
    """
    found = hashlib.sha256(b"gibbous-release-1")
    found.update(_json(schema_json(result.schema)))
    if isinstance(result, Codes):
        found.update(_json({"rows": result.rows}))
        for column in result.by_column:
            found.update(np.ascontiguousarray(column, dtype="<u4").tobytes())
        return found.hexdigest()
    found.update(_json({"recipe": recipe_json(result), "items": len(result.items)}))
    for table in result.items + result.extra:
        found.update(_json(table_json(table)))
        for array in _arrays(table):
            found.update(_json(array.shape))
            found.update(array.tobytes())
    return found.hexdigest()


def recipe_json(tables: Tables) -> dict[str, Any]:
    """The recipe as plain JSON values."""
    recipe = tables.recipe
    return {
        "draw": recipe.draw,
        "order": list(recipe.order),
        "sweeps": recipe.sweeps,
        "kappa": float(recipe.kappa),
        "fallback": recipe.fallback,
        "floor": recipe.floor,
        "fit": recipe.fit,
    }


def table_json(table: Table) -> dict[str, Any]:
    """Context and noise of one table as plain JSON values."""
    noise = table.noise
    return {
        "context": table.context.to_json(),
        "cells": "dense" if isinstance(table.cells, Dense) else "sparse",
        "noise": {
            "law": noise.law,
            "scale": float(noise.scale),
            "threshold": noise.threshold,
        },
    }


def _arrays(table: Table) -> list[np.ndarray]:
    cells = table.cells
    if isinstance(cells, Dense):
        return [np.ascontiguousarray(cells.values, dtype="<i8")]
    kinds = ((cells.keys, "<u8"), (cells.levels, "<u8"), (cells.values, "<i8"))
    return [np.ascontiguousarray(values, dtype=kind) for values, kind in kinds]


def _json(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode() + b"\n"
