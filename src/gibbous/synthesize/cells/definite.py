"""Correlation matrices that are near enough to positive definite ones, made so."""

from __future__ import annotations

import numpy as np

LEAST_EIGENVALUE = 1e-6


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
