"""The rules against their formulas on numbers small enough for a desk, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbous.evaluation.inference import combining_rules

Q = np.array([[1.0], [1.4], [0.9]])  # mean 1.1, B = 0.07
V = np.array([[0.04], [0.05], [0.06]])  # W = 0.05


def test_spread_is_mean_within_and_between() -> None:
    found = combining_rules.spread(Q, V)

    assert found.sets[0] == 3
    assert found.mean[0] == pytest.approx(1.1)
    assert found.within[0] == pytest.approx(0.05)
    assert found.between[0] == pytest.approx(0.07)


def test_between_of_one_set_is_not_a_number() -> None:
    assert math.isnan(combining_rules.spread(Q[:1], V[:1]).between[0])


def test_a_set_without_the_estimate_is_left_out() -> None:
    q, v = Q.copy(), V.copy()
    q[1] = np.nan

    found = combining_rules.spread(q, v)

    assert found.sets[0] == 2
    assert found.mean[0] == pytest.approx(0.95)
    assert found.within[0] == pytest.approx(0.05)
    assert found.between[0] == pytest.approx(0.005)


def test_reiter2003() -> None:
    found = combining_rules.reiter2003(combining_rules.spread(Q, V))

    assert found.total[0] == pytest.approx(0.05 + 0.07 / 3)
    assert found.df[0] == pytest.approx(2 * (1 + 3 * 0.05 / 0.07) ** 2)


def test_raghunathan2003() -> None:
    found = combining_rules.raghunathan2003(combining_rules.spread(Q, V), 0.5)

    assert found.total[0] == pytest.approx(4 / 3 * 0.07 - 0.05)
    assert found.df[0] == pytest.approx(2 * (1 - 0.05 / (4 / 3 * 0.07)) ** 2)
    assert not found.floored[0]


def test_raghunathan2003_is_floored_at_the_sampling_variance() -> None:
    found = combining_rules.raghunathan2003(combining_rules.spread(Q, V), 2.0)

    assert found.total[0] == pytest.approx(2.0 * 0.05)
    assert found.df[0] == math.inf
    assert found.floored[0]


def test_raghunathan2003_without_sizes_is_as_printed_even_below_zero() -> None:
    found = combining_rules.raghunathan2003(combining_rules.spread(Q, 3 * V), math.nan)

    assert found.total[0] == pytest.approx(4 / 3 * 0.07 - 0.15)


def test_raab2016() -> None:
    spread = combining_rules.spread(Q, V)

    assert combining_rules.raab2016(spread, 0.5).total[0] == pytest.approx(0.05 * (0.5 + 1 / 3))
    assert combining_rules.raab2016(spread, 0.5, draws="posterior").total[0] == pytest.approx(
        0.05 * (0.5 + 1.5 / 3)
    )


@pytest.mark.parametrize("draws", ["fitted", "posterior"])
def test_unified_without_noise_is_raab2016(draws: combining_rules.Draws) -> None:
    spread = combining_rules.spread(Q, V)

    found = combining_rules.unified(
        spread, 0.7, combining_rules.Noise(np.zeros(1)), records=50, draws=draws
    )

    assert found.total == pytest.approx(combining_rules.raab2016(spread, 0.7, draws=draws).total)
    assert found.df[0] == pytest.approx(49)


def test_unified_counts_noise_once_or_for_each_set() -> None:
    spread, noise = combining_rules.spread(Q, V), combining_rules.Noise(np.array([0.3]))

    once = combining_rules.unified(spread, 1.0, noise, records=50)
    each = combining_rules.unified(spread, 1.0, noise, records=50, sanitized="per_set")

    assert once.total[0] == pytest.approx(0.05 + 0.3 + 0.05 / 3)
    assert each.total[0] == pytest.approx(0.05 + 0.1 + 0.05 / 3)
    assert once.noise[0] == pytest.approx(0.3)


def test_unified_degrees_of_freedom_are_those_of_its_uncertain_parts() -> None:
    noise = combining_rules.Noise(np.array([0.2]), df=9)
    found = combining_rules.unified(combining_rules.spread(Q, V), 1.0, noise, records=21)
    known = 0.05 + 0.05 / 3

    assert found.df[0] == pytest.approx((known + 0.2) ** 2 / (known**2 / 20 + 0.2**2 / 9))


@pytest.mark.parametrize(("sanitized", "shared"), [("once", 1), ("per_set", 3)])
def test_noise_that_came_out_at_nothing_still_costs_degrees_of_freedom(
    sanitized: combining_rules.Sanitized, shared: int
) -> None:
    found = combining_rules.unified(
        combining_rules.spread(Q, V),
        1.0,
        combining_rules.Noise(np.array([0.0]), error=np.array([0.06])),
        records=21,
        sanitized=sanitized,
    )
    known = 0.05 + 0.05 / 3

    assert found.total[0] == pytest.approx(known)
    assert found.df[0] == pytest.approx(known**2 / (known**2 / 20 + (0.06 / shared) ** 2 / 2))


def test_measured_between_variance_stands_for_all_that_differs_between_sets() -> None:
    found = combining_rules.unified_measured(combining_rules.spread(Q, V), 0.5, records=11)
    sampling, between = 0.025, 0.07 / 3

    assert found.total[0] == pytest.approx(sampling + between)
    assert found.df[0] == pytest.approx(
        (sampling + between) ** 2 / (sampling**2 / 10 + between**2 / 2)
    )


def test_an_estimate_of_one_set_takes_what_is_expected_between_sets() -> None:
    q = np.hstack([Q, [[1.0], [np.nan], [np.nan]]])
    spread = combining_rules.spread(q, np.hstack([V, V]))

    fitted = combining_rules.unified_measured(spread, 0.5, records=11)
    posterior = combining_rules.unified_measured(spread, 0.5, records=11, draws="posterior")

    assert fitted.total[0] == pytest.approx(0.025 + 0.07 / 3)
    assert fitted.total[1] == pytest.approx(0.02 + 0.04)
    assert posterior.total[1] == pytest.approx(0.02 + 0.06)


@settings(max_examples=40)
@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=6),
    st.floats(0.01, 9),
    st.floats(0.1, 5),
    st.floats(0, 3),
)
def test_parts_add_up_to_the_total(q: list[float], v: float, ratio: float, noise: float) -> None:
    estimates = np.array(q)[:, None]
    spread = combining_rules.spread(estimates, np.full_like(estimates, v))

    for found in (
        combining_rules.unified(
            spread, ratio, combining_rules.Noise(np.array([noise])), records=30
        ),
        combining_rules.unified_measured(spread, ratio, records=30),
        combining_rules.reiter2003(spread),
        combining_rules.raghunathan2003(spread, ratio),
        combining_rules.raab2016(spread, ratio),
    ):
        assert found.sampling + found.synthesis + found.noise == pytest.approx(found.total)
        assert (found.total > 0).all()
        assert (found.df >= 0).all()


def test_rules_take_many_estimates_at_once() -> None:
    both = combining_rules.spread(np.hstack([Q, 2 * Q]), np.hstack([V, 4 * V]))

    assert combining_rules.reiter2003(both).total[1] == pytest.approx(
        4 * combining_rules.reiter2003(both).total[0]
    )


@pytest.mark.parametrize(("sets", "rows", "df"), [(1, 3, 2.0), (2, 3, 4.0), (3, 200, 100.0)])
def test_within_of_few_rows_has_the_degrees_of_freedom_of_these(
    sets: int, rows: int, df: float
) -> None:
    """Before: n - 1 of the records, whatever the number of rows; of 3 rows, intervals covered .82."""
    spread = combining_rules.spread(np.zeros((sets, 1)), np.full((sets, 1), 0.1))
    noise = combining_rules.Noise(np.zeros(1))

    found = combining_rules.unified(spread, rows / 101, noise, records=101)

    assert found.df[0] == pytest.approx(df)
