"""Noisy tables brought to the nearest without negative cells, where that risks less than posterior means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbous.structure.smoothing import simplex

UNSEEN = 0.5  # records a level of the first column, spread evenly: what noise erased stays possible


Estimated = tuple[np.ndarray, float, np.ndarray, np.ndarray]
"""Noisy counts, a cell's noise (standard deviation), estimates of the cells and their standard deviations."""


def projected(tables: Sequence[Estimated], total: float) -> list[Estimated]:
    """The tables projected on a known total, or as they are where their posterior means risk less.

    Risks are squared errors in units of the noise: the squared distance from what was measured and twice
    the freedom, which is the cells above 0 less 1, or the posterior variances over the noise's. Of Gaussian
    noise both are unbiased, but for the law of the cells, which was estimated from the same counts. All
    tables decide together: one of few cells says too little.

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
        nearest.append((counts, sigma, some, np.zeros_like(errors)))
    return nearest if risk < 0.0 else list(tables)
