"""Intervals from modips sets hold their level with the rule for tables that were noised once."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from gibbous.core.cell_model import CellModel
from gibbous.core.number_grid import grid_of
from gibbous.core.release import Receipt, Release
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Tables
from gibbous.encode.decode import decode
from gibbous.evaluation.inference.analysis import Analysis
from gibbous.frontier.cell_worker import Job, Worker
from gibbous.frontier.grid import Arm, Cell
from gibbous.mechanisms.modips import Modips
from gibbous.sampling.cells.cell_moments import fitted, refitted, unfloored
from gibbous.sampling.cells.deviates import normals
from gibbous.sampling.sample import sample
from tests.mechanisms.numeric_records import AGE, people, ran, secret
from tests.mechanisms.test_cell_model_fit import exact_tables

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

    again = refitted(tables).model

    assert isinstance(again, CellModel)
    assert (again.values, again.draws, again.prior) == (values, "fitted", 5.0)
    assert np.array_equal(again.means, tables.model.means)  # type: ignore[union-attr]


def _analysis(tables: Tables) -> Analysis:
    """A release in memory, as if it had been loaded."""
    receipt = Receipt({"rows": [RECORDS] * SETS, "method": {"name": "modips", "params": {}}})
    codes = [sample(tables, RECORDS, seed=3, set_index=i) for i in range(SETS)]
    frames = [decode(one, seed=3, set_index=i) for i, one in enumerate(codes)]
    return Analysis(Release(frames, tables.schema, None, None, tables, receipt))  # type: ignore[arg-type]


def _mean(frame: pl.DataFrame) -> tuple[float, float]:
    age = frame["age"].to_numpy()
    return float(age.mean()), float(age.var(ddof=1) / len(age))


def _ages(spread: float, schema: Schema | None = None) -> Any:
    drawn = TRUTH + spread * normals(np.arange(RECORDS, dtype=np.uint64), stream_key(5))
    numbers = {0: np.clip(np.rint(drawn), 0, 100)}
    return secret(schema or Schema((AGE,)), np.zeros((RECORDS, 1)), numbers)


@pytest.mark.parametrize("edges", [(0, 100), (0, 40, 100)], ids=["one bin", "two bins"])
def test_B3_numbers_that_the_model_drew_reach_the_redrawn_rows(edges: tuple[int, ...]) -> None:
    """V_s of a mean is the variance of the noisy sum over n^2; 40 redraws know it within a factor 3."""
    schema = Schema((replace(AGE, edges=edges),))
    tables, _ = ran(Modips(epsilon=1), _ages(15, schema))
    analysis = _analysis(tables)
    sums = tables.model.sums[0].table.noise.variance  # type: ignore[union-attr]

    found = analysis.combine(_mean, replicates=40)

    stated = float(found.noise * found.variance)
    assert 1 / 3 < stated / (sums / tables.noisy_rows() ** 2) < 3


def test_B3_a_method_without_a_ledger_is_compared_with_the_numbers_it_drew() -> None:
    """Numbers near 50 in one bin of 0 to 100: drawn evenly within the bin they would spread by 29."""
    schema = Schema((replace(AGE, edges=(0, 100)),))
    real = pl.DataFrame({"age": np.rint(50 + np.sin(np.arange(400)) * 2)})
    file = io.BytesIO()
    real.write_ipc(file)
    job = Job(file.getvalue(), schema, None, None, (), {}, 0)
    arm = Arm("modips", "modips", (("epsilon", 10.0),))

    side, _ = Worker(job)._synthetic(Cell(arm, 0))

    assert side.frame["age"].cast(pl.Float64).std() < 15  # type: ignore[operator]


def _floored(records: Any, below: int) -> Tables:
    """Exact counts and sums, said to have noise; the sum of squares moved down until nothing is left."""
    counts, sums = exact_tables(records, "pooled", NoiseInfo("geometric", 2_000.0))
    squares = sums[1].table
    lowered = replace(squares, cells=Dense(squares.cells.values - below))
    sums[1] = replace(sums[1], table=lowered)
    model = fitted(records.schema, counts, sums, prior=0.0, draws="posterior")
    return Tables(records.schema, (counts,), Recipe("cells", ()), model=model)


def test_B3_a_variance_at_its_floor_is_raised_by_what_its_noise_may_have_taken() -> None:
    tables = _floored(_ages(15), 10**7)
    centre = tables.model.sums[0].table.cells.values.ravel()[0] / 400  # type: ignore[union-attr]
    noise = NoiseInfo("geometric", 2_000.0).variance

    raised, places = unfloored(tables)

    assert places == (0,)
    grid = float(grid_of(AGE).step)
    by_hand = 1 / 12 + 1.96 * math.sqrt(noise * (1 + 4 * centre**2)) / 399
    assert raised.model.covariances.ravel() == pytest.approx([by_hand * grid**2])  # type: ignore[union-attr]


def test_B3_a_variance_above_its_floor_stays_as_it_is() -> None:
    tables = _floored(_ages(15), 0)

    raised, places = unfloored(tables)

    assert places == ()
    assert np.array_equal(raised.model.covariances, tables.model.covariances)  # type: ignore[union-attr]


def test_B3_a_floored_variance_is_said_and_the_interval_is_that_of_the_raised_one() -> None:
    tables = _floored(_ages(15), 10**7)
    analysis = _analysis(tables)

    found = analysis.combine(_mean, replicates=0)

    raised = unfloored(tables)[0].model.covariances.ravel()[0]  # type: ignore[union-attr]
    assert any(
        text.startswith("Floor: noise left nothing of the variance of age")
        for text in found.warnings
    )
    assert float(analysis.sets[0].frame["age"].std()) < 1  # type: ignore[arg-type]
    # T = V0 (1 + 1/3) + W / 3 at n = N = 400; the variance of a set is drawn from its posterior.
    assert float(found.variance) == pytest.approx(raised / 400 * 5 / 3, rel=0.3)
