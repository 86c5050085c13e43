"""A cell model <-> Parquet files beside its tables; no pickle, and nothing read is trusted.

`model_cells.parquet` has a row a cell: count, support, and the mean of each numeric column;
`model_spreads.parquet` a row a covariance matrix: degrees of freedom, then its entries row by row;
`model_sums.parquet` the noisy sums that the model was fitted to, one moment after the other. What
they belong to is in tables.json.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np

from gibbous.core.cell_model import CellModel, Draws, NoisySum, Values
from gibbous.core.context import Context
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, NoiseInfo, Table
from gibbous.synthesize.cells.layout import cell_context, cell_sizes, numeric_columns
from gibbous.write.files import rejected
from gibbous.write.number_files import read_numbers, write_numbers

_CELLS, _SPREADS, _SUMS = "model_cells.parquet", "model_spreads.parquet", "model_sums.parquet"


def write_cells(model: CellModel, folder: Path) -> None:
    """Write the numbers of a model."""
    cells = {"count": model.counts, "support": model.support}
    cells |= {f"mean_{place}": model.means[:, place] for place in range(len(model.numbers))}
    write_numbers(folder / _CELLS, cells)
    flat = model.covariances.reshape(len(model.covariances), len(model.numbers) ** 2)
    entries = {f"entry_{place}": flat[:, place] for place in range(flat.shape[1])}
    write_numbers(folder / _SPREADS, {"freedom": model.freedom, **entries})
    if model.sums:
        values = [one.table.cells.values.ravel() for one in model.sums]
        write_numbers(folder / _SUMS, {"sum": np.concatenate(values).astype(np.int64)})


def names(data: dict[str, Any]) -> tuple[str, ...]:
    """Names of the files of a model."""
    return (_CELLS, _SPREADS, _SUMS) if data["sums"] else (_CELLS, _SPREADS)


def read_cells(folder: Path, data: dict[str, Any], schema: Schema) -> CellModel:
    """Read what `write_cells` wrote.

    Args:
        folder: of the tables.
        data: the model in tables.json.
        schema: the public schema of the release.
    Raises:
        ModelRejected: a size, column, number or file is not what it must be.
    """
    sizes, numbers = cell_sizes(schema), numeric_columns(schema)
    if data["sizes"] != list(sizes) or data["numbers"] != list(numbers):
        raise rejected("MODEL", "its model has other cells than the schema")
    prior, draws, values = data["prior"], data["draws"], data["values"]
    matrices = data["covariances"]
    if type(prior) not in (int, float) or not math.isfinite(prior) or prior < 0:
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
    found = []
    contexts = [_context(one, schema) for one in listed]
    cells = [context.cells for context in contexts]
    values = read_numbers(folder / _SUMS, {"sum": "i"}, sum(cells))[0]
    parts = np.split(values, np.cumsum(cells)[:-1])
    for one, context, part in zip(listed, contexts, parts, strict=True):
        table = Table(context, Dense(part.reshape(context.keys, context.levels)), _noise(one))
        found.append(NoisySum(tuple(one["factors"]), table))
    return tuple(found)


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


def _noise(data: dict[str, Any]) -> NoiseInfo:
    law, scale = data["noise"]["law"], data["noise"]["scale"]
    if law not in ("geometric", "gaussian") or type(scale) not in (int, float):
        raise rejected("NOISE", "a sum of its model has an unknown noise")
    if not math.isfinite(scale) or scale <= 0:
        raise rejected("NOISE", "the noise scale of a sum of its model is not positive and finite")
    return NoiseInfo(law, float(scale))
