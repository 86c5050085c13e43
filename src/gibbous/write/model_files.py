"""A model <-> Parquet files beside its tables; no pickle, and nothing read is trusted.

A log-linear model: `model_theta.parquet` and `model_goals.parquet` hold the cells of all cliques
(goals) one after the other, the last column of a clique fastest; `model_merged.parquet` the group and
the share of each level of each merged column.
A cell model: `model_cells.parquet` has a row a cell: count, support, and the mean of each numeric
column; `model_spreads.parquet` a row a covariance matrix: degrees of freedom, then its entries row by
row; `model_sums.parquet` the noisy sums that the model was fitted to, one moment after the other.
What they belong to is in tables.json.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from gibbous.core.cell_model import CellModel, Draws, NoisySum, Values
from gibbous.core.context import Context
from gibbous.core.exact import is_finite
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Goal, LogLinear, Merged, NoiseInfo, Table
from gibbous.sampling.cells.cell_index import cell_context, cell_sizes, numeric_columns
from gibbous.sampling.loglinear.step_tables import model_rules
from gibbous.write.durable_files import new_file, rejected
from gibbous.write.release_digest import model_arrays, model_json

MAX_CLIQUES = 1 << 20
MAX_CLOSED = 1 << 22
MAX_NUMBERS = 1 << 27  # of one column: 1 GiB
_THETA, _GOALS, _MERGED = "model_theta.parquet", "model_goals.parquet", "model_merged.parquet"
_CELLS, _SPREADS, _SUMS = "model_cells.parquet", "model_spreads.parquet", "model_sums.parquet"
_ROW_GROUP = 1 << 20


def write_model(model: LogLinear | CellModel, folder: Path) -> dict[str, Any]:
    """Write the numbers of a model; returns the rest of it for tables.json."""
    if isinstance(model, CellModel):
        _write_cells(model, folder)
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
        return (_CELLS, _SPREADS, _SUMS) if data["sums"] else (_CELLS, _SPREADS)
    return (_THETA, _GOALS, _MERGED) if data["merged"] else (_THETA, _GOALS)


def read_model(folder: Path, data: dict[str, Any], schema: Schema) -> LogLinear | CellModel:
    """Read what `write_model` wrote; ModelRejected where a size, column, number or file is wrong."""
    if data.get("kind") == "cells":
        return _read_cell_model(folder, data, schema)
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
    gap = data.get("gap")
    if gap is not None and not (type(gap) in (int, float) and 0 <= gap <= 1):
        raise rejected("MODEL", "how far its model is from its tables is not a share")
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
        gap,
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
    if type(weight) not in (int, float) or not is_finite(weight) or weight <= 0:
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
    merged: list[Merged | None] = [None] * len(sizes)
    ends = np.cumsum(levels)
    for column, end, length in zip(columns, ends, levels, strict=True):
        own, part = groups[end - length : end], shares[end - length : end]
        if sorted(set(own.tolist())) != list(range(sizes[column])):
            raise rejected("MODEL", "a merged column of its model does not use each group")
        held = np.bincount(own, weights=part)
        if (part < 0).any() or (np.abs(held - 1.0) > 1e-6).any():
            raise rejected("MODEL", "the shares within a group of its model do not sum to 1")
        merged[column] = Merged(own, part)
    return tuple(merged)


def _write_cells(model: CellModel, folder: Path) -> None:
    cells = {"count": model.counts, "support": model.support}
    cells |= {f"mean_{column}": model.means[:, column] for column in range(len(model.numbers))}
    write_numbers(folder / _CELLS, cells)
    flat = model.covariances.reshape(len(model.covariances), len(model.numbers) ** 2)
    entries = {f"entry_{column}": flat[:, column] for column in range(flat.shape[1])}
    write_numbers(folder / _SPREADS, {"freedom": model.freedom, **entries})
    if model.sums:
        values = [one.table.cells.values.ravel() for one in model.sums]
        write_numbers(folder / _SUMS, {"sum": np.concatenate(values).astype(np.int64)})


def _read_cell_model(folder: Path, data: dict[str, Any], schema: Schema) -> CellModel:
    sizes, numbers = cell_sizes(schema), numeric_columns(schema)
    if data["sizes"] != list(sizes) or data["numbers"] != list(numbers):
        raise rejected("MODEL", "its model has other cells than the schema")
    prior, draws, values = data["prior"], data["draws"], data["values"]
    matrices = data["covariances"]
    if type(prior) not in (int, float) or not is_finite(prior) or prior < 0:
        raise rejected("MODEL", "the prior of its model is not a finite number >= 0")
    cells, width = math.prod(sizes), len(numbers)
    if draws not in get_args(Draws) or values not in get_args(Values):
        raise rejected("MODEL", "its model has an unknown word")
    if type(matrices) is not int or matrices not in (1, cells):
        raise rejected("MODEL", "its model has another number of covariances than cells")
    kinds = dict.fromkeys(["count", "support", *(f"mean_{p}" for p in range(width))], "f")
    counts, support, *means = read_numbers(folder / _CELLS, kinds, cells)
    kinds = dict.fromkeys(["freedom", *(f"entry_{p}" for p in range(width**2))], "f")
    freedom, *entries = read_numbers(folder / _SPREADS, kinds, matrices)
    covariances = np.array(entries).T.reshape(matrices, width, width)
    _check_numbers(counts, support, freedom, covariances)
    return CellModel(
        sizes=sizes,
        numbers=numbers,
        counts=counts,
        prior=float(prior),
        means=np.array(means).T.reshape(cells, width),
        support=support,
        covariances=covariances,
        freedom=freedom,
        draws=draws,
        values=values,
        sums=_sums(folder, data["sums"], schema),
    )


def _check_numbers(
    counts: np.ndarray, support: np.ndarray, freedom: np.ndarray, covariances: np.ndarray
) -> None:
    if (counts < 0).any() or (support <= 0).any():
        raise rejected("MODEL", "its model has a negative count, or a mean that rests on nothing")
    width = covariances.shape[1]
    if (freedom <= max(width - 1, 0)).any():
        raise rejected("MODEL", "a covariance of its model has too few degrees of freedom")
    if not np.array_equal(covariances, covariances.transpose(0, 2, 1)):
        raise rejected("MODEL", "a covariance of its model is not symmetric")
    try:
        if width:
            np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise rejected("MODEL", "a covariance of its model is not positive definite") from None


def _sums(folder: Path, listed: Any, schema: Schema) -> tuple[NoisySum, ...]:
    numbers = numeric_columns(schema)
    if not isinstance(listed, list) or len(listed) > 2 * (len(numbers) + 1) ** 2:
        raise rejected("MODEL", "its model does not list its sums")
    if not listed:
        return ()
    sums = []
    contexts = [_context(entry, schema) for entry in listed]
    cells = [context.cells for context in contexts]
    values = read_numbers(folder / _SUMS, {"sum": "i"}, sum(cells))[0]
    parts = np.split(values, np.cumsum(cells)[:-1])
    for entry, context, part in zip(listed, contexts, parts, strict=True):
        table = Table(
            context,
            Dense(part.reshape(context.keys, context.levels)),
            noise_of(entry["noise"], "a sum of its model"),
        )
        sums.append(NoisySum(tuple(entry["factors"]), table))
    return tuple(sums)


def _context(data: dict[str, Any], schema: Schema) -> Context:
    """The context of one moment: all cells, or the first factor's own codes."""
    factors, numbers = data["factors"], numeric_columns(schema)
    whole = isinstance(factors, list) and all(type(factor) is int for factor in factors)
    if not whole or len(factors) not in (1, 2) or not set(factors) <= set(numbers):
        raise rejected("MODEL", "a sum of its model is of something else than numeric columns")
    context = Context.from_json(data["context"])
    own = Context((factors[0],), (), (cell_sizes(schema)[factors[0]],), ())
    if context not in (cell_context(schema), own):
        raise rejected("MODEL", "a sum of its model has other cells than its model")
    return context


def noise_of(data: dict[str, Any], name: str) -> NoiseInfo:
    """The noise of a table in tables.json; ModelRejected for an unknown law or numbers out of range."""
    law, scale, threshold = data["law"], data["scale"], data["threshold"]
    if law not in ("geometric", "gaussian"):
        raise rejected("NOISE", f"{name} has an unknown noise")
    if type(scale) not in (int, float) or not is_finite(scale) or scale <= 0:
        raise rejected("NOISE", f"the noise scale of {name} is not positive and finite")
    if threshold is not None and type(threshold) is not int:
        raise rejected("NOISE", f"the threshold of {name} is not a whole number")
    return NoiseInfo(law, float(scale), threshold)


def write_numbers(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write a new file."""
    import polars as pl

    with new_file(path) as file:
        pl.DataFrame(dict(columns)).write_parquet(
            file, compression="zstd", row_group_size=_ROW_GROUP
        )


def read_numbers(path: Path, kinds: Mapping[str, str], rows: int) -> list[np.ndarray]:
    """Read what `write_numbers` wrote; sizes and types are compared before anything is read.

    Args:
        kinds: "f" or "i" by name of the column, in order.
        rows: how many there must be.
    Raises:
        ModelRejected: other columns, types or rows, missing cells, or a number that is not finite.
    """
    import polars as pl

    from gibbous.write.parquet_guard import guarded_read, metadata

    if rows > MAX_NUMBERS:
        raise rejected("SHAPE", f"{path.name} would have {rows} cells")
    types = {name: pl.Float64 if kind == "f" else pl.Int64 for name, kind in kinds.items()}
    footer = metadata(path)
    if footer.columns != types or footer.rows != rows:
        raise rejected("SHAPE", f"{path.name} does not have the columns or cells that are listed")
    frame = guarded_read(path)
    if frame.height != rows or any(frame.null_count().row(0)):
        raise rejected("SHAPE", f"{path.name} has missing cells")
    arrays = [frame.get_column(name).to_numpy().copy() for name in kinds]
    if not all(np.isfinite(values).all() for values in arrays):
        raise rejected("MODEL", f"{path.name} holds a number that is not finite")
    return arrays
