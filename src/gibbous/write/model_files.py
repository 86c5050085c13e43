"""A model <-> Parquet files beside its tables; no pickle, and nothing read is trusted.

A log-linear model is here, a cell model in cell_files.

`model_theta.parquet` and `model_goals.parquet` hold the cells of all cliques (goals) one after the
other, the last column of a clique fastest; `model_merged.parquet` the group and the share of each
level of each merged column. What they belong to is in tables.json.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.schema import Schema
from gibbous.core.tables import Goal, LogLinear, Merged
from gibbous.synthesize.loglinear.layout import model_rules
from gibbous.write import cell_files
from gibbous.write.digest import model_arrays, model_json
from gibbous.write.files import rejected
from gibbous.write.number_files import read_numbers, write_numbers

MAX_CLIQUES = 1 << 20
MAX_CLOSED = 1 << 22
_THETA, _GOALS, _MERGED = "model_theta.parquet", "model_goals.parquet", "model_merged.parquet"


def write_model(model: LogLinear | CellModel, folder: Path) -> dict[str, Any]:
    """Write the numbers of a model; returns the rest of it for tables.json."""
    if isinstance(model, CellModel):
        cell_files.write_cells(model, folder)
        return model_json(model)
    arrays = model_arrays(model)
    write_numbers(folder / _THETA, {"theta": arrays["theta"]})
    write_numbers(folder / _GOALS, {"share": arrays["goals"]})
    if len(arrays["groups"]):
        merged = {"group": arrays["groups"], "share": arrays["shares"]}
        write_numbers(folder / _MERGED, merged)
    return model_json(model)


def model_files(data: dict[str, Any]) -> tuple[str, ...]:
    """Names of the files of a model."""
    if data.get("kind") == "cells":
        return cell_files.names(data)
    return (_THETA, _GOALS, _MERGED) if data["merged"] else (_THETA, _GOALS)


def read_model(folder: Path, data: dict[str, Any], schema: Schema) -> LogLinear | CellModel:
    """Read what `write_model` wrote.

    Args:
        folder: of the tables.
        data: the model in tables.json.
        schema: the public schema of the release.
    Raises:
        ModelRejected: a size, column, number or file is not what it must be.
    """
    if data.get("kind") == "cells":
        return cell_files.read_cells(folder, data, schema)
    sizes = _sizes(data, schema)
    cliques = [_columns(one, sizes) for one in _listed(data["cliques"])]
    if len(set(cliques)) != len(cliques):
        raise rejected("MODEL", "its model has a clique twice")
    goals = [_columns(goal["columns"], sizes) for goal in _listed(data["goals"])]
    weights = [_positive(goal["weight"]) for goal in data["goals"]]
    blocks = tuple(_columns(one, sizes) for one in _listed(data["blocks"]))
    closed = data["closed"]
    if any(len(block) != 2 for block in blocks):
        raise rejected("MODEL", "its model redraws other than two columns together")
    if type(closed) is not int or not 1 <= closed <= MAX_CLOSED:
        raise rejected("MODEL", "the rows that its model closes together are out of range")
    theta = _read_cells(folder / _THETA, "theta", cliques, sizes)
    shares = _read_cells(folder / _GOALS, "share", goals, sizes)
    if any((one < 0).any() or not 0.5 < one.sum() < 2.0 for one in shares):
        raise rejected("MODEL", "the goals of its model are not shares")
    model = LogLinear(
        sizes,
        tuple(cliques),
        theta,
        tuple(Goal(*one) for one in zip(goals, shares, weights, strict=True)),
        _merged(folder, data["merged"], sizes, schema),
        tuple((block[0], block[1]) for block in blocks),
        closed,
    )
    try:
        model_rules(model, schema)
    except ValueError:
        raise rejected("MODEL", "it merges levels that a structural zero tells apart") from None
    return model


def _sizes(data: dict[str, Any], schema: Schema) -> tuple[int, ...]:
    sizes, merged = data["sizes"], data["merged"]
    whole = all(type(n) is int for n in (*sizes, *merged))
    if not whole or len(sizes) != len(schema) or merged != sorted(set(merged)):
        raise rejected("MODEL", "its model has other columns than the schema")
    if any(not 0 <= column < len(sizes) for column in merged):
        raise rejected("MODEL", "its model merges a column that the schema does not have")
    for column, (size, full) in enumerate(zip(sizes, schema.sizes, strict=True)):
        if (size != full and column not in merged) or not 1 <= size <= full:
            raise rejected("MODEL", "its model has other numbers of levels than the schema")
    return tuple(sizes)


def _listed(entries: Any) -> list[Any]:
    if not isinstance(entries, list) or len(entries) > MAX_CLIQUES:
        raise rejected("MODEL", "its model does not list its parts")
    return entries


def _columns(columns: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    whole = isinstance(columns, list) and columns and all(type(c) is int for c in columns)
    if not whole or columns != sorted(set(columns)):
        raise rejected("MODEL", "the columns of a clique of its model do not increase")
    if columns[0] < 0 or columns[-1] >= len(sizes):
        raise rejected("MODEL", "a clique of its model has a column that the schema does not have")
    return tuple(columns)


def _positive(weight: Any) -> float:
    if type(weight) not in (int, float) or not math.isfinite(weight) or weight <= 0:
        raise rejected("MODEL", "the weight of a goal of its model is not positive and finite")
    return float(weight)


def _read_cells(
    path: Path, name: str, cliques: list[tuple[int, ...]], sizes: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    shapes = [tuple(sizes[c] for c in clique) for clique in cliques]
    # Python integers: a foreign file may name astronomical cliques.
    cells = [math.prod(shape) for shape in shapes]
    values = read_numbers(path, {name: "f"}, sum(cells))[0]
    parts = np.split(values, np.cumsum(cells)[:-1]) if cells else []
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def _merged(
    folder: Path, columns: list[int], sizes: tuple[int, ...], schema: Schema
) -> tuple[Merged | None, ...]:
    if not columns:
        return ()
    levels = [schema.sizes[column] for column in columns]
    groups, shares = read_numbers(folder / _MERGED, {"group": "i", "share": "f"}, sum(levels))
    found: list[Merged | None] = [None] * len(sizes)
    ends = np.cumsum(levels)
    for column, end, length in zip(columns, ends, levels, strict=True):
        own, part = groups[end - length : end], shares[end - length : end]
        if sorted(set(own.tolist())) != list(range(sizes[column])):
            raise rejected("MODEL", "a merged column of its model does not use each group")
        held = np.bincount(own, weights=part)
        if (part < 0).any() or (np.abs(held - 1.0) > 1e-6).any():
            raise rejected("MODEL", "the shares within a group of its model do not sum to 1")
        found[column] = Merged(own, part)
    return tuple(found)
