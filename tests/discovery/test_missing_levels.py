"""A column without missing cells gets a missing level as rarely as is stated: 1 % over all columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from gibbous.encode.cell_text import CLASSES
from gibbous.structure.bought_columns import SPURIOUS, clear_of_noise, outline

SIGMA, ROWS, TABLES = 50.0, 20_000.0, 3000
KINDS = ("whole", "text", "%Y-%m-%d", "decimals 2")


def spurious(columns: int, clear: float) -> int:
    """Tables, of TABLES without a missing cell, in which any column gets a missing level."""
    draw, hits = np.random.default_rng(5), 0
    for _ in range(TABLES):
        counts = np.rint(draw.normal(0, SIGMA, (columns, len(CLASSES))))
        for j in range(columns):
            counts[j, CLASSES.index(KINDS[j % len(KINDS)])] += ROWS
        rows = float(np.mean([one[one > 3 * SIGMA].sum() for one in counts]))
        plans = (outline("x", one, sigma=SIGMA, rows=rows, clear=clear) for one in counts)
        hits += any(plan.missing for plan in plans)
    return hits


@pytest.mark.statistical
@pytest.mark.parametrize("columns", [1, 8])
def test_noise_alone_gives_missing_levels_as_rarely_as_is_stated(columns: int) -> None:
    hits = spurious(columns, clear_of_noise(columns))

    assert float(beta.ppf(1e-6, hits, TABLES - hits + 1)) <= SPURIOUS if hits else True


@pytest.mark.statistical
def test_two_standard_deviations_are_caught() -> None:
    hits = spurious(8, 2.0)

    assert float(beta.ppf(1e-6, hits, TABLES - hits + 1)) > SPURIOUS


def test_missing_cells_that_stand_out_are_found() -> None:
    counts = np.zeros(len(CLASSES))
    counts[0], counts[1] = 5 * SIGMA, ROWS

    plan = outline("x", counts, sigma=SIGMA, rows=ROWS + 5 * SIGMA, clear=clear_of_noise(50))

    assert plan.missing
