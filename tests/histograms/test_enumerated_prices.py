"""Exact privacy loss of tiny tables, by enumeration, equals the stated price; and the closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.perturb.posterior import Posterior
from gibbous.perturb.smoothed import Smoothed
from gibbous.privacy.calibrate import dirichlet
from tests.histograms import exact_laws

RELATIONS = ("add_remove", "replace_one")
SHAPES = [(2, 1), (2, 3), (3, 2)]  # cells, draws


# --- tight: the loss by enumeration is the price


@pytest.mark.parametrize(("cells", "draws"), SHAPES)
@pytest.mark.parametrize("epsilon", ["0.2", "4"])
def test_dirichlet_rows_cost_epsilon_exactly_under_replace_one(
    cells: int, draws: int, epsilon: str
) -> None:
    posterior = Posterior(dirichlet.dirichlet_alpha(epsilon, draws), cells)

    found = exact_laws.worst(
        lambda n: exact_laws.urn(n, posterior.effective or Fraction(0), draws),
        cells,
        2,
        "replace_one",
    )

    price = float(posterior.urn_loss(draws))
    assert found == pytest.approx(price, abs=1e-12)
    assert price <= float(epsilon) < price * (1 + 1e-6)


@pytest.mark.parametrize(("cells", "draws"), SHAPES)
def test_dirichlet_rows_cost_at_most_epsilon_under_add_remove_and_near_it(
    cells: int, draws: int
) -> None:
    posterior = Posterior(dirichlet.dirichlet_alpha(1, draws), cells)
    alpha = posterior.effective or Fraction(0)

    small = exact_laws.worst(lambda n: exact_laws.urn(n, alpha, draws), cells, 4, "add_remove")
    crowd = (10**7,) + (0,) * (cells - 1)
    lone = (10**7, 1) + (0,) * (cells - 2)
    all_lone = (0, draws) + (0,) * (cells - 2)
    ratio = (
        exact_laws.urn(lone, alpha, draws)[all_lone] / exact_laws.urn(crowd, alpha, draws)[all_lone]
    )

    price = float(posterior.urn_loss(draws))
    assert small <= price
    assert math.log(ratio) <= price
    assert math.log(ratio) == pytest.approx(price, abs=1e-5)


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(3, 2)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_person_with_several_rows_costs_several_times_as_much(
    alpha: Fraction, relation: Any
) -> None:
    price = float(dirichlet.dirichlet_loss(alpha, 2, 2))

    found = exact_laws.worst(lambda n: exact_laws.urn(n, alpha, 2), 3, 2, relation, 2)

    assert 0.5 * price < found <= price


def test_rows_of_a_person_do_not_get_cheaper_in_a_cell_of_their_own() -> None:
    # Two rows in two empty cells show more than two in one, where the second costs less.
    alpha, draws = Fraction(1, 10), 10
    empty, apart, together = (
        exact_laws.urn(n, alpha, draws) for n in ((9, 0, 0), (7, 1, 1), (7, 2, 0))
    )

    apart_loss = math.log(apart[(0, 5, 5)] / empty[(0, 5, 5)])
    together_loss = math.log(together[(0, 10, 0)] / empty[(0, 10, 0)])

    assert apart_loss > together_loss + 0.5
    assert apart_loss <= float(dirichlet.dirichlet_loss(alpha, draws, 2))


@pytest.mark.parametrize(("cells", "draws"), SHAPES)
@pytest.mark.parametrize("rows", [1, 2])
def test_dp_prior_rows_cost_epsilon_exactly_under_replace_one(
    cells: int, draws: int, rows: int
) -> None:
    posterior = Posterior(dirichlet.prior_alpha(1, draws, rows), cells)
    alpha = posterior.effective or Fraction(0)

    found = exact_laws.worst(
        lambda n: exact_laws.prior(n, alpha, draws), cells, 2, "replace_one", rows
    )
    other = exact_laws.worst(
        lambda n: exact_laws.prior(n, alpha, draws), cells, 3, "add_remove", rows
    )

    price = float(posterior.fixed_loss(draws, rows))
    assert found == pytest.approx(price, abs=1e-12)
    assert price == pytest.approx(1, rel=1e-6)
    assert other <= price


@pytest.mark.parametrize(("cells", "draws"), SHAPES)
@pytest.mark.parametrize("records", [1, 3])
def test_the_smoothed_histogram_costs_epsilon_exactly_under_replace_one(
    cells: int, draws: int, records: int
) -> None:
    mixture = Smoothed(dirichlet.smoothed_share(1, cells, records, draws), cells, records)
    share = mixture.effective

    found = exact_laws.worst(
        lambda n: exact_laws.smoothed(n, share, records, draws), cells, 4, "replace_one"
    )

    price = float(mixture.loss(draws))
    assert found == pytest.approx(price, abs=1e-12)
    assert price == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_smoothed_histogram_holds_for_any_number_of_records_under_add_remove(
    records: int, rows: int
) -> None:
    share = dirichlet.smoothed_share(1, 3, records, 2, rows)

    found = exact_laws.worst(
        lambda n: exact_laws.smoothed(n, share, records, 2), 3, 5, "add_remove", rows
    )

    assert 0.2 < found <= float(dirichlet.smoothed_loss(share, 3, records, 2, rows))


def test_without_the_filling_up_few_records_would_cost_more() -> None:
    # The paper's mixture for n = 20, on a table that has lost all records but one.
    share = dirichlet.smoothed_share(1, 2, 20, 20)
    one, none = (
        [(1 - share) * f + share / 2 for f in law] for law in ((1, 0), (Fraction(1, 2),) * 2)
    )

    loss = 20 * abs(math.log(none[1] / one[1]))

    assert loss > 8  # at a claim of 1


# --- a tenth less is too little


@pytest.mark.parametrize("draws", [1, 3])
def test_a_tenth_less_alpha_breaks_the_claim(draws: int) -> None:
    for alpha, law in (
        (dirichlet.dirichlet_alpha(1, draws), exact_laws.urn),
        (dirichlet.prior_alpha(1, draws), exact_laws.prior),
    ):
        less = alpha * Fraction(9, 10)

        found = exact_laws.worst(lambda n, a=less, f=law: f(n, a, draws), 2, 2, "replace_one")  # type: ignore[misc]

        assert found > 1.03


def test_a_tenth_less_lambda_breaks_the_claim() -> None:
    share = dirichlet.smoothed_share(1, 3, 3, 3) * Fraction(9, 10)

    found = exact_laws.worst(lambda n: exact_laws.smoothed(n, share, 3, 3), 3, 3, "replace_one")

    assert found > 1.03


# --- closed forms against mpmath


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "1", "7", "60"])
@pytest.mark.parametrize("draws", [1, 20, 10**6])
def test_priors_agree_with_forty_digits(epsilon: str, draws: int) -> None:
    with mp.workdps(40):
        exact = mp.mpf(epsilon)
        wanted = {
            "md": draws / mp.expm1(exact),
            "prior": 1 / mp.expm1(exact / draws),
        }

        found = {
            "md": dirichlet.dirichlet_alpha(epsilon, draws),
            "prior": dirichlet.prior_alpha(epsilon, draws),
        }

        for name, value in found.items():
            ratio = mp.mpf(value.numerator) / value.denominator / wanted[name]
            assert 1 <= ratio <= 1 + mp.mpf("1e-10"), name


@pytest.mark.parametrize("epsilon", ["1e-6", "0.5", "1", "30"])
@pytest.mark.parametrize(("bins", "rows", "draws"), [(7, 40, 40), (21, 1000, 1), (384, 100, 700)])
def test_the_mixture_agrees_with_forty_digits(
    epsilon: str, bins: int, rows: int, draws: int
) -> None:
    with mp.workdps(40):
        wanted = bins / (bins + rows * mp.expm1(mp.mpf(epsilon) / draws))

        found = dirichlet.smoothed_share(epsilon, bins, rows, draws)

        ratio = mp.mpf(found.numerator) / found.denominator / wanted
        assert 1 <= ratio <= 1 + mp.mpf("1e-13")


# --- truncated noise


@pytest.mark.parametrize("width", [4, 9, None])
@pytest.mark.parametrize("scale", ["0.5", "1", "3", "20"])
@pytest.mark.parametrize("moved", [1, 3])
def test_the_cost_of_redrawn_noise_is_its_exact_loss(
    scale: str, width: int | None, moved: int
) -> None:
    top = width if width is not None else 900
    law = np.exp(-np.abs(np.subtract.outer(np.arange(top + 1), np.arange(top + 1))) / float(scale))
    law = law[: min(top, 60) + 1] / law[: min(top, 60) + 1].sum(axis=1, keepdims=True)

    pairs = [(a, b) for a in range(len(law)) for b in range(len(law)) if 0 < abs(a - b) <= moved]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = max(float(np.nanmax(np.log(law[a, :200] / law[b, :200]))) for a, b in pairs)

    assert found == pytest.approx(
        float(dirichlet.truncated_geometric_epsilon(scale, moved, width)), abs=1e-9
    )


def test_redrawn_noise_at_the_usual_scale_costs_half_as_much_again() -> None:
    fine = float(dirichlet.truncated_geometric_epsilon(10**6, 10**6))

    assert fine == pytest.approx(math.log(2 * math.e - 1), abs=1e-5)
    assert fine == pytest.approx(1.49, abs=0.005)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
@pytest.mark.parametrize("width", [50, None])
def test_the_scale_of_redrawn_noise_is_the_least(epsilon: str, width: int | None) -> None:
    scale = dirichlet.truncated_geometric_scale(epsilon, 3, width)

    cost, less = (
        float(dirichlet.truncated_geometric_epsilon(scale * f, 3, width))
        for f in (1, Fraction(99, 100))
    )

    assert cost <= float(epsilon) < less


# --- splits


def test_the_optimal_split_has_the_least_variance_of_all_splits() -> None:
    sizes = (1, 8, 27)
    best = dirichlet.optimal_split(1, sizes)

    at_best = exact_laws.variance(best, sizes)

    assert [float(b * 14) for b in best] == pytest.approx([1, 4, 9])
    assert Fraction(999, 1000) < sum(best) <= 1
    for i in range(3):
        for step in (Fraction(1, 100), Fraction(-1, 100)):
            other = list(best)
            other[i] += step
            other[(i + 1) % 3] -= step
            assert exact_laws.variance(other, sizes) > at_best
    assert exact_laws.variance(dirichlet.equal_split(1, 3), sizes) > at_best


@pytest.mark.parametrize(
    "bad",
    [
        lambda: dirichlet.equal_split(1, 0),
        lambda: dirichlet.optimal_split(1, ()),
        lambda: dirichlet.optimal_split(1, (1, 0)),
        lambda: dirichlet.truncated_geometric_epsilon(1, 5, 4),
        lambda: dirichlet.dirichlet_alpha(0, 5),
        lambda: dirichlet.smoothed_loss(0, 3, 3, 3),
        lambda: Posterior(Fraction(0), 3),
        lambda: Smoothed(Fraction(2), 3, 3),
    ],
)
def test_bad_numbers_give_a_complete_message(bad: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        bad()

    assert caught.value.wrong
    assert caught.value.allowed
    assert caught.value.fix


# --- the integers that are used


@pytest.mark.parametrize(
    "alpha", [Fraction(1, 10**12), Fraction(1, 3), Fraction(913), Fraction(10**9)]
)
@pytest.mark.parametrize("cells", [2, 384, 1 << 40, 1 << 60])
def test_balls_fit_and_hold_at_least_alpha(alpha: Fraction, cells: int) -> None:
    posterior = Posterior(alpha, cells)

    ones, unit = posterior.balls

    assert ones * cells + unit * ((1 << 32) + (1 << 31)) < 1 << 63 or unit == 0
    assert posterior.effective is None or posterior.effective >= alpha
    if unit and alpha >= 1 and cells <= 384:
        assert posterior.effective <= alpha * (1 + Fraction(1, 10**8))


def test_a_prior_that_drowns_every_record_costs_nothing() -> None:
    posterior = Posterior(Fraction(10**9), 1 << 60)

    assert posterior.effective is None
    assert posterior.urn_loss(100) == 0
