"""V_s counts the noise of the laws within bins: with it, and without it as the saboteur."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema, Within
from gibbous.encode.decode import decode
from gibbous.evaluation.inference.noise_replicates import noise_variance
from gibbous.structure.narrow_bins import redrawn_weights
from tests.mechanisms.test_paid_bins import run


def mean(codes: Codes) -> np.ndarray:
    return np.array([float(decode(codes, seed=1)["stay"].mean())])  # type: ignore[arg-type]


def test_the_noise_of_a_law_is_in_the_variance_of_a_mean() -> None:
    tables, _ = run(gb.PaidBins(gb.Laplace(epsilon=20), bins=2, share=0.01, columns=("stay",)))
    columns = tuple(
        replace(c, within=replace(c.within, noise=0.0)) if c.within else c for c in tables.schema
    )

    counted = noise_variance(tables, mean, replicates=30, rows=4000).variance[0]
    silent = replace(tables, schema=replace(tables.schema, columns=columns))
    left_out = noise_variance(silent, mean, replicates=30, rows=4000).variance[0]

    assert counted > 2 * left_out


def test_without_noise_weights_come_back() -> None:
    within = Within((0, 1, 2, 3, 3), (10, 0, 500, 90), 1e-3)
    column = Column("x", "numeric", edges=(0, 2, 3), integer=True, within=within)

    again = np.array(redrawn_weights(column, np.zeros(4)), dtype=float)

    assert np.allclose(again / again.sum(), np.array(within.weights) / 600, atol=1e-6)
    assert Schema((column,)).columns[0] == column
