"""Intervals from modips sets hold their level with the rule for tables that were noised once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous.core.cell_model import CellModel
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key
from gibbous.evaluate.inference.redraw import _cells_again
from gibbous.mechanisms.modips import Modips
from gibbous.synthesize.cells.deviates import normals
from gibbous.synthesize.sample import sample
from tests.modips.made import AGE, people, ran, secret

RECORDS, SETS, TIMES = 400, 3, 250
TRUTH, SPREAD = 50.0, 12.0


@pytest.mark.statistical
def test_means_are_covered_with_the_variance_of_the_noise_and_not_without_it() -> None:
    """T = V0 + V_s + (V0 + W) / m (posterior draws): 250 releases.

    Of 250 intervals at 95 % (at 94 %, geometric noise having longer tails) 216 to 249 cover with
    probability above 1 - 1e-4; noise has no seed. Without V_s about 73 % do, and 216 or more of them
    with probability below 1e-5.
    """
    schema, method = Schema((AGE,)), Modips(epsilon=0.5)
    places = np.arange(RECORDS, dtype=np.uint64)
    with_noise = without = 0
    for time in range(TIMES):
        drawn = TRUTH + SPREAD * normals(places, stream_key(21, time))
        ages = np.clip(np.rint(drawn), 0, 100)
        tables, _ = ran(method, secret(schema, np.zeros((RECORDS, 1)), {0: ages}))
        sums = tables.model.sums[0].table.noise.variance  # type: ignore[union-attr]
        sets = [sample(tables, RECORDS, seed=time, set_index=i).number(0) for i in range(SETS)]
        estimate = float(np.mean([one.mean() for one in sets]))
        within = float(np.mean([one.var(ddof=1) / len(one) for one in sets]))
        v_s = sums / RECORDS**2  # the center of the grid is the truth: counts add nothing
        plain = within + 2 * within / SETS
        error = abs(estimate - TRUTH)
        with_noise += error < 1.96 * math.sqrt(plain + v_s)
        without += error < 1.96 * math.sqrt(plain)

    assert 216 <= with_noise <= 249
    assert without < 216


def test_the_stated_numbers_of_the_coverage_test_follow_from_the_binomial_law() -> None:
    for rate in (0.94, 0.95):
        law = stats.binom(TIMES, rate)

        assert law.cdf(249) - law.cdf(215) > 1 - 1e-4
    assert stats.binom(TIMES, 0.74).sf(215) < 1e-5


@pytest.mark.parametrize("values", ["matched", "clipped"])
def test_noise_drawn_again_is_fitted_as_the_release_was(values: Any) -> None:
    """V_s is that of the recipe of the release: its model comes back but for the noise."""
    tables, _ = ran(Modips(values=values, draws="fitted", prior=5.0), people(100))

    again = _cells_again(tables).model

    assert isinstance(again, CellModel)
    assert (again.values, again.draws, again.prior) == (values, "fitted", 5.0)
    assert np.array_equal(again.means, tables.model.means)  # type: ignore[union-attr]
