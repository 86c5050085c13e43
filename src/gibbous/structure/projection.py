"""Noisy tables brought to the nearest without negative cells, where that risks less than posterior means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbous.structure.smoothing import simplex

UNSEEN = 0.5  # records a level of the first column, spread evenly: what noise erased stays possible


class Estimated(NamedTuple):
    """A noisy table, and what its cells are without the noise.

    Attributes:
        counts: noisy, an axis a column.
        sigma: standard deviation of a cell's noise, in counts, > 0.
        cells, errors: estimates, and their standard deviations.
    """

    counts: np.ndarray
    sigma: float
    cells: np.ndarray
    errors: np.ndarray


def projected(tables: Sequence[Estimated], total: float) -> list[Estimated]:
    """The tables projected on a known total, or as they are where their posterior means risk less.

    Both risks, squared errors in units of the noise, are unbiased where it is Gaussian: the squared
    distance from what was measured and twice the freedom, that is the cells above 0 less 1, or the
    posterior variances over the noise's. All tables decide together: one of few cells says too little.

    Args:
        tables: with posterior means.
        total: in counts, > 0.
    Source:
        [Stein 1981] for the risks, Held, Wolfe and Crowder (1974) for the projection.
    """
    nearest, risk = list[Estimated](), 0.0
    for counts, sigma, cells, errors in tables:
        near = simplex(counts, total)
        far = np.square(near - counts).sum() - np.square(cells - counts).sum()
        risk += float(far - 2.0 * np.square(errors).sum()) / sigma**2
        risk += 2.0 * (np.count_nonzero(near) - 1)
        some = near + UNSEEN * len(counts) / counts.size
        nearest.append(Estimated(counts, sigma, some, np.zeros_like(errors)))
    return nearest if risk < 0.0 else list(tables)
