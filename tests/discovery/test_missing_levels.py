"""A column without missing cells gets a missing level as rarely as is stated: 1 % over all columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from gibbous.encode.cell_text import CLASSES
from gibbous.structure.column_outlines import SPURIOUS, clear_of_noise, outline
from tests.discovery.conftest import bought

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


@pytest.mark.slow
def test_missing_cells_that_the_first_look_hides_show_in_the_second_and_none_by_noise_alone() -> (
    None
):
    """20 tables: of 4,000 codes 200 are missing. Kinds show 300; the second look has noise of 10."""
    rows = np.repeat(["1", "2", "3", "4", "5", ""], [2_400, 1_000, 150, 150, 100, 200])
    frame = pl.DataFrame({"code": rows} | {f"sex {i}": ["F", "M"] * 2_000 for i in range(11)})
    whole = frame.with_columns(pl.col("code").replace("", "1"))

    found, false = (
        sum(bought(table, rho=0.0066)["code"].missing for _ in range(20))
        for table in (frame, whole)
    )

    assert found > 12  # mean 19 or more; in purchase 1 alone, with 1 - Phi(1.15) = .13 each
    assert false <= 1
