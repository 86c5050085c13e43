"""The simulated laws are those of the mechanisms that run: same records, same budget, many runs.

Each comparison is a Kolmogorov-Smirnov test of two samples at 10^-7 on fixed seeds of the simulation
(the mechanism's noise has no seed: the level is the chance that a right build fails), and must fail
against the law of another budget, for which p is about 10^-14 or less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbous as gb
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.dirichlet import Dirichlet
from gibbous.mechanisms.dp_prior import DpPrior
from gibbous.mechanisms.modips import Modips
from gibbous.mechanisms.smoothed_histogram import SmoothedHistogram
from gibbous.privacy.curator import Curator
from gibbous.sampling.sample import sample
from gibbous.studies import bowen2016_laws as laws
from gibbous.studies import histograms
from gibbous.studies.seeded_draws import Draws, multinomial
from tests.mechanisms.numeric_records import secret

LEVEL = 1e-7
N, ONES, RUNS, DRAWN = 60, 15, 500, 20_000
BINARY = Schema((Column("a", "binary", levels=("no", "yes")),))
RECORDS = secret(BINARY, [[1]] * ONES + [[0]] * (N - ONES))
BINS = Schema((Column("x", "ordinal", levels=(1, 2, 3, 4, 5)),))
COUNTS = np.array([30, 15, 10, 5, 0])


def runs(mechanism: Any, records: Any, rows: int, repeats: int) -> list[Any]:
    """What a mechanism releases of the same records, run after run; no ledger, no files."""
    schema, found = records.schema, []
    total = mechanism.plan(schema, rows).total
    for _ in range(repeats):
        engine = LocalEngine.from_codes(records)
        curator = Curator(engine, total, schema, relation=mechanism.relation)
        try:
            found.append(mechanism.run(curator, rows))
        finally:
            curator.close()
    return found


def simulated(law: laws.Law, epsilon: float, sets: int = 1) -> np.ndarray:
    s = np.full(DRAWN, float(ONES))
    return law(Draws(21, (7,)), s, N, epsilon, sets)[0]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "law", "epsilon"),
    [(Dirichlet, laws.dirichlet, 2.0), (DpPrior, laws.dp_prior, 30.0)],
    ids=["dirichlet", "dp_prior"],
)
def test_rows_of_the_mechanism_follow_the_simulated_law(
    mechanism: Any, law: laws.Law, epsilon: float
) -> None:
    drawn = runs(mechanism(epsilon=epsilon, relation="replace_one"), RECORDS, N, RUNS)

    ones = [float(codes.values.sum()) for codes in drawn]

    assert stats.ks_2samp(ones, simulated(law, epsilon)).pvalue > LEVEL
    assert stats.ks_2samp(ones, simulated(law, epsilon / 4)).pvalue < LEVEL


@pytest.mark.statistical
def test_noise_of_the_laplace_mechanism_follows_the_simulated_law() -> None:
    """Add/remove: one count, noise of scale 1 / epsilon; rounded Laplace against integer noise."""
    epsilon = 0.2
    tables = runs(gb.Laplace(epsilon=epsilon), RECORDS, N, RUNS)

    noisy = np.clip([float(t.items[0].cells.values.ravel()[1]) for t in tables], 0, N)

    assert stats.ks_2samp(noisy, simulated(laws.laplace_sanitizer, epsilon)).pvalue > LEVEL
    for other in (1 / 3, 3.0):
        wrong = simulated(laws.laplace_sanitizer, epsilon * other)
        assert stats.ks_2samp(noisy, wrong).pvalue < LEVEL


@pytest.mark.statistical
def test_sets_of_modips_without_noise_are_those_of_multiple_synthesis() -> None:
    """At epsilon = 1000 what is left is the posterior with 1/3 virtual records a level."""
    (tables,) = runs(Modips(epsilon=1000, relation="replace_one"), RECORDS, N, 1)

    ones = [
        float(sample(tables, N, seed=5, set_index=k, threads=1).values.sum()) for k in range(RUNS)
    ]

    assert stats.ks_2samp(ones, simulated(laws.modips_once, 1e6)).pvalue > LEVEL
    spread = float(np.var(ones))
    assert spread == pytest.approx(float(np.var(simulated(laws.modips_once, 1e6))), rel=0.25)
    assert spread > 1.4 * float(np.var(simulated(laws.dp_prior, 1e6)))  # parameters as they are


@pytest.mark.statistical
def test_rows_of_the_smoothed_histogram_follow_the_simulated_law() -> None:
    """Counts of the last, empty bin and of the first."""
    epsilon, rows = 25.0, int(COUNTS.sum())
    records = secret(BINS, np.repeat(np.arange(5), COUNTS)[:, None])
    drawn = runs(SmoothedHistogram(epsilon=epsilon, relation="replace_one"), records, rows, RUNS)

    def law(budget: float) -> np.ndarray:
        weight = float(histograms.smoothed_share(budget, 5, rows))
        p = (1 - weight) * COUNTS / rows + weight / 5
        return multinomial(Draws(22, (1,)), rows, np.broadcast_to(p, (DRAWN, 5)))

    found = np.array([np.bincount(codes.values[:, 0].astype(int), minlength=5) for codes in drawn])

    for cell in (0, 4):
        assert stats.ks_2samp(found[:, cell], law(epsilon)[:, cell]).pvalue > LEVEL
        assert stats.ks_2samp(found[:, cell], law(epsilon / 4)[:, cell]).pvalue < LEVEL
