"""Study 1 of bowen2016: its printed table, its ordering, and what its methods truly cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous import studies
from gibbous.studies import bowen2016_laws as laws
from gibbous.studies.bowen2016_1 import ORIGINAL, PRINTED
from gibbous.studies.seeded_draws import Draws

REPEATS = 5000  # of the paper


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, int, float, int], Any]:
    ran = studies.run("bowen2016-1", quick=True, reps=200, workers=1)
    return {(r["method"], r["n"], r["pi"], r["ln_epsilon"]): r for r in ran.rows}


@pytest.mark.parametrize(("pi", "fits"), [(0.10, False), (0.15, True), (0.20, False)])
def test_printed_usable_repeats_fit_rounded_counts_at_pi_015(pi: float, *, fits: bool) -> None:
    """54 printed shares against the exact chance; chi-square with 54 degrees of freedom."""
    total = 0.0
    for (printed_pi, n), shares in PRINTED.items():
        for place, share in enumerate(shares):
            chance = _usable(n, pi if printed_pi == 0.15 else printed_pi, math.exp(place - 10))
            total += (share - chance) ** 2 / (chance * (1 - chance) / REPEATS)

    assert bool(stats.chi2(54).sf(total) > 0.05) is fits


@pytest.mark.statistical
@pytest.mark.parametrize("power", [-10, -5])
def test_usable_repeats_of_the_laplace_sanitizer_are_those_of_the_paper(power: int) -> None:
    n, pi, epsilon = 1000, 0.15, math.exp(power)
    draws = Draws(3, (1, power + 100))
    s = draws.at(0).binomial(n, pi, 20_000)

    x = laws.laplace_sanitizer(draws.at(1), s, n, epsilon, 10)[0]

    usable = float(np.mean((x > 0) & (x < n)))
    chance, printed = _usable(n, pi, epsilon), PRINTED[pi, n][power + 10]
    assert usable == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 20_000))
    assert printed == pytest.approx(chance, abs=3 * math.sqrt(chance * (1 - chance) / REPEATS))


def test_md_is_the_most_biased_and_the_laplace_sanitizer_the_least(found: Any) -> None:
    bias = {m.label: abs(found[m.label, 1000, 0.15, 1]["bias"]) for m in laws.SYNTHESIZERS}

    assert max(bias, key=lambda m: bias[m]) == "MD"
    assert bias["MD"] > 0.25
    assert bias["MD"] > bias["DP-prior"] > 10 * bias["modips, clipped"]
    assert bias["Laplace sanitizer"] < 0.005


def test_dp_prior_fails_to_cover_away_from_one_half(found: Any) -> None:
    away = [found["DP-prior", 1000, 0.15, p]["coverage"] for p in (-5, -2, 1, 6)]
    half = [found["DP-prior", 1000, 0.5, p]["coverage"] for p in (-5, -2, 1)]

    assert max(away[:3]) < 0.05
    assert away[3] < 0.88  # nor with a budget that hides nothing: the interval takes q as known
    assert min(half) > 0.85


def test_modips_with_clipping_is_nearest_to_nominal_coverage(found: Any) -> None:
    """Among the paper's methods, by the worst scenario of each."""
    paper = (
        "modips, clipped",
        "modips, truncated as printed",
        "Laplace sanitizer",
        "MD",
        "DP-prior",
    )
    far = {
        method: max(
            abs((row["coverage"] or 0.0) - 0.95)
            for (label, *_), row in found.items()
            if label == method
        )
        for method in paper
    }

    assert min(far, key=lambda m: far[m]) == "modips, clipped"
    assert far["modips, clipped"] < 0.45
    assert min(v for m, v in far.items() if m != "modips, clipped") > 0.8


def test_coverage_of_the_original_records_is_that_of_wald_intervals(found: Any) -> None:
    n, pi = 1000, 0.15
    s = np.arange(n + 1)
    half = stats.norm.ppf(0.975) * np.sqrt(s / n * (1 - s / n) / n)
    exact = float(stats.binom.pmf(s, n, pi)[np.abs(s / n - pi) <= half].sum())

    assert found[ORIGINAL, n, pi, 1]["coverage"] == pytest.approx(exact, abs=4 * 0.0159)


def test_with_a_large_budget_modips_is_multiple_synthesis(found: Any) -> None:
    one, two = (found[m, 1000, 0.15, 6] for m in ("modips, clipped", "MS, no noise"))

    assert one["rmse"] == pytest.approx(two["rmse"], rel=0.15)
    assert one["width"] == pytest.approx(two["width"], rel=0.02)
    assert one["coverage"] > 0.9


def test_truncation_costs_1_49_where_1_is_charged() -> None:
    wide = 10**6

    assert laws.truncated_laplace_loss(1.0, wide) == pytest.approx(math.log(2 * math.e - 1))
    assert laws.truncated_laplace_loss(1.0, wide) == pytest.approx(1.49, abs=5e-4)


@pytest.mark.parametrize(("budget", "n", "scale"), [(1.0, 10**6, 1.6126), (0.1, 40, 19.44)])
def test_the_corrected_scale_costs_the_budget(budget: float, n: int, scale: float) -> None:
    found = laws.truncated_laplace_scale(budget, n)

    assert found == pytest.approx(scale, rel=1e-4)
    assert laws.truncated_laplace_loss(found, n) == pytest.approx(budget, abs=1e-9)


@pytest.mark.parametrize(("scale", "n"), [(1.0, 5), (4.0, 12), (50.0, 7)])
def test_the_cost_of_truncation_is_the_largest_ratio_of_densities(scale: float, n: int) -> None:
    y = np.linspace(0, n, 2001)
    density = [
        np.exp(-np.abs(y - s) / scale)
        / (stats.laplace(s, scale).cdf(n) - stats.laplace(s, scale).cdf(0))
        for s in range(n + 1)
    ]

    worst = max(
        float(np.abs(np.log(a / b)).max()) for a, b in zip(density, density[1:], strict=False)
    )

    assert laws.truncated_laplace_loss(scale, n) == pytest.approx(worst, abs=1e-9)


@pytest.mark.statistical
def test_truncated_noise_follows_its_law_and_not_that_of_another_scale() -> None:
    """Kolmogorov-Smirnov at 1e-4; at a tenth more scale the test must fail."""
    s, n, scale = np.full(20_000, 3.0), 20, 4.0

    y = laws._truncated(Draws(5, (1,)), s, n, scale, 1)[0]

    def cdf(b: float) -> Any:
        law = stats.laplace(3.0, b)
        return lambda v: (law.cdf(v) - law.cdf(0)) / (law.cdf(n) - law.cdf(0))

    assert stats.kstest(y, cdf(scale)).pvalue > 1e-4
    assert stats.kstest(y, cdf(1.1 * scale)).pvalue < 1e-4


def test_no_method_that_is_charged_truly_costs_more_except_truncation_as_printed(
    found: Any,
) -> None:
    over = {
        label for (label, *_), row in found.items()
        if row["true_epsilon"] is not None and row["true_epsilon"] > row["epsilon"] * (1 + 1e-9)
    }  # fmt: skip

    assert over == {"modips, truncated as printed"}
    assert found["modips, truncated as printed", 1000, 0.15, -10]["true_epsilon"] == pytest.approx(
        2 * math.exp(-10), rel=0.01
    )


def _usable(n: int, pi: float, epsilon: float) -> float:
    """Chance that s + Lap(1 / epsilon), clipped and rounded, is neither 0 nor n."""
    s = np.arange(n + 1)
    law = stats.laplace(scale=1 / epsilon)
    inside = law.cdf(n - 0.5 - s) - law.cdf(0.5 - s)
    return float((stats.binom.pmf(s, n, pi) * inside).sum())


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_rows_drawn_from_a_sanitized_share_follow_their_law(factor: float) -> None:
    """Two ones of five records, epsilon 1/2: the binomial law mixed over clipped noise, at 1e-6."""
    s, n, epsilon = np.full(20_000, 2.0), 5, 0.5
    noise = stats.laplace(scale=factor / epsilon)
    middle = (np.arange(200_000) + 0.5) / 200_000
    share = np.clip(2 + noise.ppf(middle), 0, n) / n
    law = np.array([stats.binom.pmf(x, n, share).mean() for x in range(n + 1)])

    x = laws.laplace_drawn(Draws(9, (1,)), s, n, epsilon, 1)[0]

    found = stats.chisquare(np.bincount(x.astype(int), minlength=n + 1), law * len(s))
    assert bool(found.pvalue > 1e-6) is (factor == 1.0)


def test_drawing_rows_of_a_single_set_doubles_its_variance_and_no_interval_knows(
    found: Any,
) -> None:
    """P(|z| < 1.96 / sqrt 2) = .834 where noise has gone; rounded counts cover as the records do."""
    rounded, drawn = (
        found[m, 1000, 0.15, 6] for m in ("Laplace sanitizer", "Laplace sanitizer, drawn rows")
    )
    error = 4 * math.sqrt(0.834 * 0.166 / 100)

    assert drawn["rmse"] / rounded["rmse"] == pytest.approx(math.sqrt(2), rel=0.3)
    assert drawn["coverage"] == pytest.approx(0.834, abs=error)
    assert rounded["coverage"] == found[ORIGINAL, 1000, 0.15, 6]["coverage"]
