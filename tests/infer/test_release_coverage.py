"""The bench of coverage through release folders: its truths, its estimates, its sums; and a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbous as gb
from gibbous.evaluation.inference.analysis import Analysis
from gibbous.evaluation.inference.combining_rules import Noise, spread, unified
from gibbous.mechanisms import registry
from tests.infer.test_coverage import load_bench

bench = load_bench("inference_coverage")
SETTINGS = {one.method: one for one in bench.settings()}


def released(name: str, sets: int, out: Path | None = None) -> Analysis:
    setting = SETTINGS[name]
    found = gb.synthesize(
        bench.records(setting.population, np.random.default_rng(3)),
        bench.schema(setting.population),
        setting.make(sets),
        rows=bench.RECORDS,
        sets=sets,
        seed=4,
        out=out,
        ledger=gb.Ledger.ephemeral(),
    )
    return Analysis(found)


def test_B3_every_mechanism_has_its_setting_in_the_bench() -> None:
    assert set(SETTINGS) == set(registry.names())


@pytest.mark.parametrize("population", ["bins", "even", "apart", "normal"])
def test_B3_the_truths_of_the_bench_are_the_means_of_its_estimates(population: Any) -> None:
    """400 samples of 400 records: within 5 standard errors, and .02 for the bias of a log odds ratio."""
    rng = np.random.default_rng(8)

    found = [bench.estimates(bench.records(population, rng))[0] for _ in range(400)]

    off = np.abs(np.mean(found, axis=0) - bench.truth(population))
    assert (off < 5 * np.std(found, axis=0) / 20 + np.array([0, 0, 0, 0, 0.02])).all()


def test_B3_the_estimates_of_the_bench_are_those_of_glm_and_table() -> None:
    analysis = released("sba", 1)

    found = analysis.combine(bench.estimates, replicates=0)

    by_name = [
        analysis.table(["y"], replicates=0, rule="raab2016").combined,
        analysis.table(["a", "y"], replicates=0, rule="raab2016").combined,
        analysis.glm("x ~ a", replicates=0).combined,
        analysis.glm("y ~ a", "binomial", replicates=0).combined,
    ]
    assert found.estimate[1:] == pytest.approx([one.estimate[-1] for one in by_name], rel=1e-6)
    assert found.se[1:] == pytest.approx([one.se[-1] for one in by_name], rel=1e-4)


def test_B3_batches_add_up_and_a_bench_goes_on_where_it_stopped(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"

    for runs in (1, 2, 2):
        bench.measure(results, only="contingency", runs=runs, seconds=60)

    found = bench.read(results)
    assert {key: one["runs"] for key, one in found.items()} == {
        ("contingency", 1): 2,
        ("contingency", 5): 2,
    }
    assert len(results.read_text().splitlines()) == 4
    assert [line[:3] for line in bench.rows(found)] == [
        ["`contingency`", "1", "2"],
        ["`contingency`", "5", "2"],
    ]


def test_B3_rows_that_are_closed_to_margins_are_not_charged_as_independent_draws() -> None:
    """A share hardly differs between sets of adaptive_gibbs; W / m made a sixth of its variance of it."""
    found = released("adaptive_gibbs", 5).combine(bench.estimates, replicates=2)

    assert "S/m" in found.why
    assert found.synthesis[1] < 0.08
    assert released("laplace", 5).combine(bench.estimates, replicates=2).synthesis[1] > 0.1


def test_B3_s_takes_the_place_of_w_where_it_is_smaller() -> None:
    """T = V0 + V_s + S / m with V0 = .04, V_s = .01, m = 4, S = .008, .1 and not known; W = .04, N = n."""
    q = np.repeat([[0.1], [0.2], [0.3], [0.4]], 3, axis=1)
    sets = spread(q, np.full(q.shape, 0.04))

    noise = Noise(np.full(3, 0.01), rows=np.array([0.008, 0.1, np.nan]), rows_df=19)
    found = unified(sets, 1.0, noise, records=101)

    assert found.total == pytest.approx([0.052, 0.06, 0.06])
    assert found.df[0] == pytest.approx(0.052**2 / (0.042**2 / 100 + 0.002**2 / 19))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sets"), [("laplace", 5), ("modips", 5)])
def test_B3_releases_hold_the_truth_about_as_often_as_they_say(name: str, sets: int) -> None:
    """Level 5e-6: fewer than 83 of 100 intervals at .95 hold it; power .96 where they hold .75."""
    assert stats.binom(100, 0.95).cdf(82) < 1e-5

    found = bench.batch(SETTINGS[name], sets, 0, 100)

    assert min(found["held"]) >= 83
