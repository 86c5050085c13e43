"""Parameters of one synthetic set: a public cell model in, shares, means and spreads out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key
from gibbous.sampling.cells.cell_index import possible_cells
from gibbous.sampling.cells.clipped import correlations, unclipped
from gibbous.sampling.cells.deviates import log_gammas, normals

STREAM = 0x63656C  # "cel": apart from the streams of other ways of drawing
_SHARES, _SPREADS, _MIXED, _MEANS = 0, 1, 2, 3
LEAST_EIGENVALUE = 1e-6
_CHUNK = 1 << 14  # cells whose laws before clipping are found at a time


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What the rows of one set are drawn from.

    Attributes:
        shares: float64 (cells,), >= 0, sum 1.
        means: float64 (cells, numeric columns), of the values that are drawn.
        roots: float64 (cells or 1, numeric columns, numeric columns): root @ root.T is the covariance
            of those values.
        places: float64 (cells, numeric columns): means of the normal law that is clipped.
        forms: like `roots`: roots of its covariances.
    """

    shares: np.ndarray
    means: np.ndarray
    roots: np.ndarray
    places: np.ndarray
    forms: np.ndarray


def parameters(schema: Schema, model: CellModel, seed: int, set_index: int) -> Parameters:
    """Parameters of one set: those of the model, or drawn from their posterior law.

    A normal law that is clipped to the bounds loses spread, and its mean moves. Of a "matched" model
    the law that is clipped is therefore another one, whose clipped values have these moments.

    The posterior: shares are Dirichlet(counts + prior / cells); a covariance S with f degrees of
    freedom gives inverse-Wishart(f, f S); a mean m with support n gives normal(m, covariance / n).

    Args:
        schema: public; cells that its structural zeros rule out get no share.
    Source:
        [bowen2016, s4.1 to s4.3]; the inverse Wishart by Bartlett's decomposition.
    """
    open_cells = possible_cells(schema, model)
    weights = np.where(open_cells, model.counts + model.prior / model.cells, 0.0)
    if not weights.any():
        weights = open_cells.astype(np.float64)
    if model.draws == "fitted":
        shares, means, roots = weights, model.means, _roots(model.covariances)
    else:
        logs = log_gammas(weights, seed, set_index, STREAM, _SHARES)
        shares = np.exp(logs - logs.max())
        roots = _inverse_wishart(model, seed, set_index)
        means = _means(model, roots, seed, set_index)
    places, forms = _before_clipping(schema, model, means, roots)
    return Parameters(shares / shares.sum(), means, roots, places, forms)


def _before_clipping(
    schema: Schema, model: CellModel, means: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    width = len(model.numbers)
    if model.values == "clipped" or not width:
        return means, roots
    bounds = [schema.columns[place].edges for place in model.numbers]
    low, high = (np.array([float(edges[end]) for edges in bounds]) for end in (0, -1))
    spreads = np.broadcast_to(np.sqrt((roots**2).sum(axis=2)), means.shape)
    places, wide = unclipped(means, spreads, low, high)
    if np.array_equal(wide, spreads):
        return means, roots
    covariances = roots @ roots.transpose(0, 2, 1)
    forms = np.empty((model.cells, width, width))
    for start in range(0, model.cells, _CHUNK):
        part = slice(start, start + _CHUNK)
        own, at = wide[part], places[part]
        wanted = covariances[part] if len(covariances) > 1 else covariances
        scaled = (
            np.broadcast_to(wanted, (len(own), width, width)) / own[:, :, None] / own[:, None, :]
        )
        inner = definite(correlations(scaled, (low - at) / own, (high - at) / own))
        forms[part] = np.linalg.cholesky(inner) * own[:, :, None]
    return places, forms


def _roots(covariances: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(covariances) if covariances.shape[1] else covariances


def _inverse_wishart(model: CellModel, seed: int, set_index: int) -> np.ndarray:
    """Roots of covariances drawn from inverse-Wishart(f, f S), a matrix each.

    With f S = L L' and A the lower triangle of Bartlett, W = L'^-1 A A' L^-1 is Wishart(f, (f S)^-1),
    and its inverse has the root L A'^-1.
    """
    matrices, width = model.covariances.shape[:2]
    if not width:
        return model.covariances
    lower = np.sqrt(model.freedom)[:, None, None] * _roots(model.covariances)
    bartlett = np.zeros_like(model.covariances)
    places = np.arange(matrices, dtype=np.uint64)
    for row in range(width):
        shape = (model.freedom - row) / 2
        logs = log_gammas(shape, seed, set_index, STREAM, _SPREADS, row)
        bartlett[:, row, row] = np.sqrt(2.0 * np.exp(logs))
        for column in range(row):
            key = stream_key(seed, set_index, STREAM, _MIXED, row, column)
            bartlett[:, row, column] = normals(places, key)
    return np.asarray(lower @ np.linalg.inv(bartlett).transpose(0, 2, 1))


def _means(model: CellModel, roots: np.ndarray, seed: int, set_index: int) -> np.ndarray:
    places = np.arange(model.cells, dtype=np.uint64)
    width = len(model.numbers)
    drawn = np.empty((model.cells, width))
    for column in range(width):
        drawn[:, column] = normals(places, stream_key(seed, set_index, STREAM, _MEANS, column))
    moved = np.einsum("cij,cj->ci", np.broadcast_to(roots, (model.cells, width, width)), drawn)
    return np.asarray(model.means + moved / np.sqrt(model.support)[:, None])


def definite(correlations: np.ndarray) -> np.ndarray:
    """Lift eigenvalues to at least `LEAST_EIGENVALUE`, and scale the diagonal back to 1.

    Args:
        correlations: float64 (matrices, d, d), symmetric, ones on the diagonal.
    Returns:
        The same shape; exactly symmetric, positive definite.
    """
    values, vectors = np.linalg.eigh(correlations)
    lifted = np.maximum(values, LEAST_EIGENVALUE)
    again = (vectors * lifted[:, None, :]) @ vectors.transpose(0, 2, 1)
    root = np.sqrt(np.einsum("mii->mi", again))
    again = again / (root[:, :, None] * root[:, None, :])
    return np.asarray((again + again.transpose(0, 2, 1)) / 2)
