"""Bounds of mu against enumeration, the normal trade-off function, and runs whose canaries fail together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from gibbous.contract.auditor.gaussian import BETS, mu_bound, smallest_caught
from gibbous.contract.auditor.run import audit

LEVEL = 0.02


def wealth(right: np.ndarray, chance: float) -> float:
    """As the proof has it, run by run."""
    return float(np.mean([np.prod([1 + c * (r / chance - 1) for r in right]) for c in BETS]))


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0, 5.0])
def test_no_test_guesses_a_coin_better_than_the_bound_assumes(mu: float) -> None:
    """(1 - false alarms + power) / 2 over a fine grid of the trade-off function of mu."""
    alarms = np.linspace(1e-6, 1 - 1e-6, 400_001)
    best = ((1 - alarms + norm.cdf(norm.ppf(alarms) + mu)) / 2).max()

    assert best == pytest.approx(norm.cdf(mu / 2), abs=1e-7)
    assert best <= norm.cdf(mu / 2) + 1e-12


@pytest.mark.parametrize("right", [[1.0] * 40, [0.8, 0.75, 0.9] * 30, [1, 1, 1, 0, 1, 0.5] * 20])
def test_at_the_bound_the_wealth_is_one_over_the_level(right: list[float]) -> None:
    shares = np.array(right)
    mu = mu_bound(shares, LEVEL)

    assert mu > 0
    assert wealth(shares, norm.cdf(mu / 2)) == pytest.approx(1 / LEVEL, rel=1e-5)


@pytest.mark.parametrize("mu", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("runs", [5, 30, 90])
def test_by_enumeration_the_bound_is_above_the_truth_no_more_often_than_its_level(
    mu: float, runs: int
) -> None:
    """The worst that mu allows: all guesses of a run are right together, with the chance Phi(mu / 2)."""
    chance, hits = float(norm.cdf(mu / 2)), np.arange(runs + 1)
    law = binom.pmf(hits, runs, chance)
    outcomes = [np.repeat([1.0, 0.0], [h, runs - h]) for h in hits]
    above = np.array([mu_bound(one, LEVEL) > mu for one in outcomes])

    assert law @ np.array([wealth(one, chance) for one in outcomes]) == pytest.approx(1)
    assert law @ above <= LEVEL


def test_counting_canaries_that_fail_together_as_independent_is_wrong_far_more_often() -> None:
    """Clopper-Pearson on 100 canaries of 30 runs each, at the same level: what the bound must not do."""
    chance, runs, canaries = float(norm.cdf(0.2)), 30, 100
    hits = np.arange(1, runs)
    low = beta.ppf(LEVEL, hits * canaries, (runs - hits) * canaries + 1)

    assert binom.pmf(hits, runs, chance) @ (low > chance) > 10 * LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize(("claimed", "canaries", "runs"), [(0.2, 128, 1500), (1.0, 64, 200)])
def test_the_smallest_fault_is_caught_in_95_of_100_audits(
    claimed: float, canaries: int, runs: int
) -> None:
    """1,000 simulated audits; the standard error of the share is 0.7 percent."""
    level, dice = 1e-5, np.random.default_rng(8)
    least = smallest_caught(claimed, canaries, runs, level)

    def flagged(mu: float) -> float:
        right = dice.binomial(canaries, norm.cdf(mu / 2), size=(1000, runs)) / canaries
        return float(np.mean([mu_bound(one, level) > claimed for one in right]))

    assert claimed < least < 2.2 * claimed
    assert 0.93 < flagged(least) < 0.99
    assert flagged(claimed) == 0


def test_too_few_runs_show_no_mu_and_say_that_they_catch_nothing() -> None:
    assert mu_bound(np.ones(4), 1e-6) == 0
    assert smallest_caught(3.0, 128, 4, 1e-6) == math.inf


@pytest.mark.slow
def test_an_audit_says_the_mu_that_it_shows_where_one_is_claimed_and_only_there() -> None:
    gaussian = audit("noisy_pegs", params={"relation": "add_remove", "parents": 0}, runs=4)
    pure = audit("laplace", params={"relation": "add_remove"}, runs=4)

    assert gaussian.mu is not None
    assert gaussian.mu.holds
    assert gaussian.mu.level <= gaussian.level / 8
    assert gaussian.to_json()["claimed_mu"] == gaussian.mu.claimed
    assert "stated noise shows in 95 of 100 audits" in str(gaussian)
    assert pure.mu is None
    assert pure.to_json()["claimed_mu"] is None


def test_a_night_is_longer_than_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    from gibbous.contract.auditor import run as auditor_run
    from gibbous.contract.auditor.attacks import Effort

    asked = []

    def tested(result, builds, run, effort, progress):  # type: ignore[no-untyped-def]
        asked.append(effort)
        return result

    monkeypatch.setattr(auditor_run, "_tested", tested)
    for nightly in (False, True):
        audit("laplace", params={"relation": "add_remove"}, nightly=nightly)

    assert asked == [Effort(60.0), Effort(4 * 3600.0, more=20)]
    assert [one.count(each=0.001, most=1000) for one in asked] == [1000, 20_000]
