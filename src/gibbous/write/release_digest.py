"""One digest for what was released: tables with their recipe, or drawn rows; whatever the file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.codes import Codes
from gibbous.core.tables import Dense, LogLinear, Table, Tables
from gibbous.read.schema_write import schema_json

SLICE = 1 << 20  # rows that are widened at once


def digest_of(result: Tables | Codes) -> str:
    """SHA-256, hex, over the schema and the released numbers in a fixed byte order: what the ledger keeps."""
    sums = hashlib.sha256(b"gibbous-release-1")
    sums.update(_json(schema_json(result.schema)))
    if isinstance(result, Codes):
        drawn = [column for column, _ in result.numbers]
        sums.update(_json({"rows": result.rows} | ({"numbers": drawn} if drawn else {})))
        for column in result.by_column:
            for start in range(0, len(column), SLICE):
                part = np.ascontiguousarray(column[start : start + SLICE], dtype="<u4")
                sums.update(part.tobytes())
        for number, values in result.numbers:
            sums.update(as_written(result, number, values).astype("<f8").tobytes())
        return sums.hexdigest()
    _add_tables(sums, result)
    return sums.hexdigest()


def as_written(codes: Codes, place: int, numbers: np.ndarray) -> np.ndarray:
    """Numbers of one column as a file holds them: within the bounds, rounded; the lower bound if missing."""
    column = codes.schema.columns[place]
    low, high = float(column.edges[0]), float(column.edges[-1])
    written = np.clip(numbers, low, high)
    if column.integer or column.kind == "date":
        written = np.rint(written)
    elif column.decimals is not None:
        written = np.round(written, column.decimals)
    if column.missing:
        written = np.where(codes.by_column[place] == column.missing_code, low, written)
    return np.asarray(written + 0.0)  # -0.0 and 0.0 are one number


def recipe_json(tables: Tables) -> dict[str, Any]:
    """The recipe as plain JSON values."""
    recipe = tables.recipe
    # A recipe that asks for no diversity reads as it did before there was any.
    diverse = {"diverse": [list(one) for one in recipe.diverse], "criterion": recipe.criterion}
    return {
        "draw": recipe.draw,
        "order": list(recipe.order),
        "sweeps": recipe.sweeps,
        "kappa": float(recipe.kappa),
        "fallback": recipe.fallback,
        "floor": recipe.floor,
        "fit": recipe.fit,
        **(diverse if recipe.diverse else {}),
    }


def model_json(model: LogLinear | CellModel) -> dict[str, Any]:
    """Everything of a model but its numbers, as plain JSON values."""
    if isinstance(model, CellModel):
        return _cells_json(model)
    gap = {} if model.gap is None else {"gap": float(model.gap)}
    return gap | {
        "sizes": list(model.sizes),
        "cliques": [list(clique) for clique in model.cliques],
        "goals": [
            {"columns": list(goal.columns), "weight": float(goal.weight)} for goal in model.goals
        ],
        "merged": [column for column, merged in enumerate(model.merged) if merged is not None],
        "blocks": [list(block) for block in model.blocks],
        "closed": model.closed,
    }


def model_arrays(model: LogLinear | CellModel) -> dict[str, np.ndarray]:
    """The numbers of a model, each kind one flat array, in the order of `model_json`."""
    if isinstance(model, CellModel):
        return _cells_arrays(model)
    merged = [one for one in model.merged if one is not None]
    return {
        "theta": _flat(model.theta, "<f8"),
        "goals": _flat([goal.shares for goal in model.goals], "<f8"),
        "groups": _flat([one.groups for one in merged], "<i8"),
        "shares": _flat([one.shares for one in merged], "<f8"),
    }


def table_json(table: Table) -> dict[str, Any]:
    """Context and noise of one table as plain JSON values."""
    noise = table.noise
    return {
        "context": table.context.to_json(),
        "cells": "dense" if isinstance(table.cells, Dense) else "sparse",
        "noise": {"law": noise.law, "scale": float(noise.scale), "threshold": noise.threshold},
    }


def _add_tables(sums: Any, tables: Tables) -> None:
    """Add the numbers of one set of tables, then those of its further sets or parts."""
    sums.update(_json({"recipe": recipe_json(tables), "items": len(tables.items)}))
    for table in tables.items + tables.extra:
        sums.update(_json(table_json(table)))
        cells = table.cells
        kinds = [(cells.values, "<i8")]
        if not isinstance(cells, Dense):
            kinds = [(cells.keys, "<u8"), (cells.levels, "<u8"), *kinds]
        for values, kind in kinds:
            array = np.ascontiguousarray(values, dtype=kind)
            sums.update(_json(array.shape))
            sums.update(array.tobytes())
    if tables.model is not None:
        sums.update(_json({"model": model_json(tables.model)}))
        for name, values in model_arrays(tables.model).items():
            sums.update(_json([name, len(values)]))
            sums.update(values.tobytes())
    for kind, others in (("set", tables.copies), ("part", tables.parts)):
        if others:
            sums.update(_json([kind, len(others), list(tables.shares)]))
        for other in others:
            _add_tables(sums, other)


def _cells_json(model: CellModel) -> dict[str, Any]:
    return {
        "kind": "cells",
        "sizes": list(model.sizes),
        "numbers": list(model.numbers),
        "prior": float(model.prior),
        "draws": model.draws,
        "values": model.values,
        "covariances": len(model.covariances),
        "sums": [{"factors": list(one.factors), **table_json(one.table)} for one in model.sums],
    }


def _cells_arrays(model: CellModel) -> dict[str, np.ndarray]:
    floats = {
        name: _flat([getattr(model, name)], "<f8")
        for name in ("counts", "support", "means", "covariances", "freedom")
    }
    return floats | {"sums": _flat([one.table.cells.values for one in model.sums], "<i8")}


def _flat(arrays: Sequence[np.ndarray], kind: str) -> np.ndarray:
    parts = [np.ascontiguousarray(array, dtype=kind).ravel() for array in arrays]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _json(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode() + b"\n"
