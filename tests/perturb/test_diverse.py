"""Diverse: the criterion holds, the perturbation is the least one, and q* is the table of numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Literal

import mpmath
import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.perturb.diverse import Diverse
from gibbous.sampling.exact_draws import accumulate

COUNTS = np.array([[9, 0, 0, 0], [5, 4, 0, 0], [3, 3, 3, 3], [0, 0, 0, 0], [1000, 1, 1, 1]])


def entropy(row: np.ndarray) -> float:
    held = row[row > 0]
    return float(-(held * np.log(held)).sum())


@pytest.mark.parametrize("l", ["1.2", "2", "3.5", "4"])
def test_every_key_reaches_the_entropy(l: str) -> None:
    drawn = Diverse(Fraction(l)).weights(COUNTS)

    assert drawn.sum(axis=1) == pytest.approx(1)
    assert all(entropy(row) >= math.log(float(l)) - 1e-12 for row in drawn)


def test_the_perturbation_is_the_least_one() -> None:
    drawn = Diverse(Fraction(2)).weights(COUNTS)
    touched = [0, 4]

    assert [entropy(drawn[i]) for i in touched] == pytest.approx([math.log(2)] * 2, abs=1e-9)
    assert drawn[2] == pytest.approx(0.25)
    assert Diverse(Fraction(3, 2)).weights(COUNTS)[1] == pytest.approx([5 / 9, 4 / 9, 0, 0])


def test_both_forms_are_one_law_with_two_strengths() -> None:
    by_alpha, by_mix = Diverse(Fraction(2), "alpha"), Diverse(Fraction(2), "mix")
    alpha, beta = by_alpha.strengths(COUNTS), by_mix.strengths(COUNTS)

    assert (by_alpha.weights(COUNTS) == by_mix.weights(COUNTS)).all()
    keys = [0, 1, 4]
    counts, alpha = COUNTS[keys], alpha[keys]
    totals = counts.sum(axis=1) + 4 * alpha
    assert (counts + alpha[:, None]) / totals[:, None] == pytest.approx(
        by_alpha.weights(COUNTS)[keys]
    )
    assert beta[keys] == pytest.approx(4 * alpha / totals)


def test_alpha_is_infinite_where_the_law_must_be_uniform() -> None:
    assert np.isinf(Diverse(Fraction(4)).strengths(COUNTS[:1])).all()


@pytest.mark.parametrize("l", ["1.5", "2", "3.9"])
def test_the_stricter_criterion_caps_every_probability(l: str) -> None:
    drawn = Diverse(Fraction(l), criterion="max_probability").weights(COUNTS)

    assert drawn.max(axis=1) == pytest.approx(np.minimum(1 / float(l), drawn.max(axis=1)))
    assert drawn[0].max() == pytest.approx(1 / float(l))


def test_l_of_one_copies_and_an_empty_key_is_uniform() -> None:
    drawn = Diverse(Fraction(1)).weights(COUNTS)

    assert drawn[0] == pytest.approx([1, 0, 0, 0])
    assert drawn[3] == pytest.approx(0.25)


@pytest.mark.parametrize("l", ["1.01", "2", "3.999"])
@pytest.mark.parametrize("criterion", ["entropy", "max_probability"])
def test_the_criterion_holds_exactly_for_the_weights_that_are_drawn_from(
    l: str, criterion: Literal["entropy", "max_probability"]
) -> None:
    """Weights are multiples of 2**-52: no rounding may take what was promised."""
    drawn = accumulate(Diverse(Fraction(l), criterion=criterion).weights(COUNTS))

    for sums in drawn.tolist():
        weights = [b - a for a, b in itertools.pairwise([0, *sums])]
        shares = [Fraction(w, sums[-1]) for w in weights]
        if criterion == "max_probability":
            assert max(shares) <= 1 / Fraction(l)
        else:
            with mpmath.workdps(50):
                held = [mpmath.mpf(s.numerator) / s.denominator for s in shares if s]
                assert -mpmath.fsum(p * mpmath.log(p) for p in held) >= mpmath.log(mpmath.mpf(l))


@pytest.mark.parametrize("criterion", ["entropy", "max_probability"])
def test_no_law_exceeds_q_star_and_one_reaches_it(
    criterion: Literal["entropy", "max_probability"],
) -> None:
    diverse = Diverse(Fraction(5, 2), criterion=criterion)
    q = diverse.largest_probability(4)

    worst = diverse.weights(np.array([[10**9, 0, 0, 0], [7, 1, 2, 0], [4, 0, 0, 1]])).max()

    assert worst <= q + 1e-9
    assert worst == pytest.approx(q, abs=1e-6)


def test_more_diversity_than_levels_is_refused_and_one_level_is_let_through() -> None:
    with pytest.raises(ParameterError, match="a column has 2 levels"):
        Diverse(Fraction(5, 2)).weights(np.array([[3, 1]]))
    assert Diverse(Fraction(5, 2)).weights(np.array([[3], [0]])) == pytest.approx(1)
    assert Diverse(Fraction(5, 2)).largest_probability(1) == 1


@pytest.mark.parametrize("share", ["0.1", "0.5", "0.83", "1"])
@pytest.mark.parametrize("levels", [2, 3, 7])
def test_a_share_is_the_least_mixing_whose_entropy_is_that_part_of_the_largest(
    share: str, levels: int
) -> None:
    """Against a walk over beta in small steps, and the entropy itself."""
    counts = np.eye(1, levels, dtype=np.int64) * 5 + np.eye(1, levels, 1, dtype=np.int64) * 2
    steps = np.linspace(0, 1, 20_001)
    goal = float(share) * math.log(levels)
    mixed = [(1 - beta) * counts[0] / 7 + beta / levels for beta in steps]
    least = next(row for row in mixed if entropy(row) >= goal - 1e-12)

    drawn = Diverse(share=Fraction(share)).weights(counts)[0]

    assert drawn == pytest.approx(least, abs=1e-4)
    assert entropy(drawn) >= goal - 1e-11
    assert Diverse(share=Fraction(share)).diversity(levels) <= levels


def test_a_share_of_one_is_uniform_and_l_with_a_share_is_refused() -> None:
    whole = Diverse(share=Fraction(1))

    assert (whole.diversity(20_011), whole.diversity(2)) == (20_011, 2)
    assert whole.weights(COUNTS) == pytest.approx(0.25)
    for share, l in ((Fraction(1, 2), 2), (Fraction(0), 1), (Fraction(11, 10), 1)):
        with pytest.raises(ParameterError, match="share above 0 and at most 1"):
            Diverse(Fraction(l), share=share)


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterError, match="l is a fraction >= 1"):
        Diverse(Fraction(1, 2))
    with pytest.raises(ParameterError, match="form 'alpha' or 'mix'"):
        Diverse(Fraction(2), "both")  # type: ignore[arg-type]
