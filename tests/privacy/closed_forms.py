"""Closed forms of the papers that no method uses: second opinions on the prices that methods pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.exact import Number, up
from gibbous.privacy.calibrate.gibbs import alpha_from_eps0, draws, eps0_from_alpha, pegs_zcdp
from gibbous.privacy.calibrate.rounding import positive, probability, smallest
from gibbous.privacy.calibrate.scales import l1_sensitivity, l2_squared, steps
from gibbous.privacy.calibrate.stable import refused_threshold, too_large_delta
from gibbous.privacy.calibrate.tails import normal_tail
from gibbous.privacy.calibrate.zcdp import range_to_zcdp, rho_from_approx


def pegs_pure(alpha: Number, count: int, max_rows: int = 1) -> Fraction:
    """Pure cost of `count` draws, both relations: count ln(1 + k / alpha), rounded up."""
    return count * eps0_from_alpha(alpha, max_rows)


def pegs_alpha(
    epsilon: Number, columns: int, sweeps: int = 1, rows: int = 1, max_rows: int = 1
) -> Fraction:
    """Alpha with which `rows` rows together cost at most epsilon (pure, both relations)."""
    return alpha_from_eps0(positive("epsilon", epsilon) / draws(rows, columns, sweeps), max_rows)


def pegs_alpha_zcdp(
    rho: Number, count: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Alpha with which `count` draws together cost at most rho in zCDP."""
    budget = positive("rho", rho)
    # A draw costs between eps0^2 / 8 and eps0^2 / 2 (or eps0, where it is large).
    least = Fraction(math.sqrt(2 * float(budget / count))) * Fraction(99, 100)
    most = (3 * least + budget / count) * 2
    return smallest(
        lambda alpha: pegs_zcdp(alpha, count, relation, max_rows) <= budget,
        alpha_from_eps0(min(most, Fraction(700)), max_rows),
        alpha_from_eps0(least, max_rows),
        12,
    )


def block_zcdp(
    alpha: Number, sizes: Sequence[int], relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """zCDP cost of one block, rounded up: p k^2 eps0^2 / 8, under replace_one four times as much."""
    eps0 = eps0_from_alpha(alpha)
    return up(len(sizes) * (max_rows * steps(relation)) ** 2 * range_to_zcdp(eps0), 24)


def tilt_zcdp(
    epsilon: Number, count: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """zCDP cost of the same, from the range of the log-ratio: (k epsilon)^2 / 8, R1 four times that."""
    one = max_rows * steps(relation) * positive("epsilon", epsilon)
    return count * range_to_zcdp(one)


def pmi_alpha(epsilon: Number, count: int) -> Fraction:
    """Alpha of the perturbed model (p^ + alpha) / (1 + C alpha) with p^ any number in [0, 1].

    Each draw costs ln(1 + 1/alpha) between any two data sets, hence in any relation.

    Source:
        [park2014, s3.5].
    """
    return alpha_from_eps0(positive("epsilon", epsilon) / count)


def beta_from_alpha(alpha: np.ndarray, totals: np.ndarray, levels: int) -> np.ndarray:
    """Share of the uniform law when alpha virtual records are added: C alpha / (N + C alpha)."""
    virtual = levels * np.asarray(alpha, dtype=np.float64)
    whole = np.asarray(totals) + virtual
    finite = np.isfinite(whole) & (whole > 0)
    out = np.ones(np.shape(whole))
    np.divide(virtual, whole, out=out, where=finite)
    return out


def l_from_fraction_published(share: float, levels: int) -> float:
    """l for the fraction of the largest entropy that park2013 writes as log l: levels ** share."""
    return float(levels**share)


def sba_delta(
    epsilon: Number, scale: float, threshold: float, relation: Relation = "replace_one"
) -> float:
    """Exact delta at epsilon of one table with continuous Laplace noise kept above a threshold.

    The supremum over neighbors of the hockey-stick divergence, for epsilon >= L1 / scale and
    threshold >= 1: the chance that a cell of one record survives.

    Raises:
        ParameterError: epsilon is below L1 / scale, or the threshold below 1.
    """
    if float(positive("epsilon", epsilon)) * scale < l1_sensitivity(1, relation) * (1 - 1e-12):
        raise refused_threshold(f"scale {scale:g} is too small for epsilon")
    if threshold < 1.0:
        raise refused_threshold("a threshold below 1 keeps most cells of one record")
    unique = 0.5 * math.exp(-(threshold - 1.0) / scale)
    # The other direction: everything dropped for certain against dropped with 1 - unique.
    other = 1.0 - math.exp(float(positive("epsilon", epsilon))) * (1.0 - unique)
    return max(unique, other)


def laplace_threshold(
    epsilon: Number, delta: Number, tables: int = 1, relation: Relation = "add_remove"
) -> tuple[float, float]:
    """Scale and threshold of continuous Laplace noise on `tables` histograms, one row a unit.

    b = L1 / epsilon, q = 1 - (1 - delta)^(1/p), t = 1 + b ln(1 / (2 q)). For one table this is
    1 + b ln(1 / (2 delta)), exactly delta.

    Returns:
        (b, t) in counts. For p = 13 and (1, 1e-6): t = 204.9, under replace_one 408.9.
    Raises:
        ParameterError: q > 1 - e^(-1/b): the proof does not reach so large a delta.
    """
    scale = l1_sensitivity(tables, relation) / float(positive("epsilon", epsilon))
    share = -math.expm1(math.log1p(-float(probability("delta", delta))) / tables)
    if share > -math.expm1(-1.0 / scale):
        raise too_large_delta()
    return scale, 1.0 + scale * math.log(1.0 / (2.0 * share))


def gaussian_threshold(
    epsilon: Number,
    delta: Number,
    tables: int = 1,
    relation: Relation = "add_remove",
    *,
    delta_noise: Number | None = None,
) -> tuple[float, float]:
    """Sigma and threshold of continuous Gaussian noise on `tables` histograms, one row a unit.

    sigma from (epsilon, delta_noise) through zCDP, d = (delta - delta_noise) / (1 + e^epsilon),
    t = sigma Phi^-1((1 - d)^(1/p)).

    Args:
        delta_noise: the part of delta that pays for the noise; half of it when None.
    Returns:
        (sigma, t) in counts. For p = 13 and (1, 1e-6): (16.83, 94.4), under replace_one (23.81, 133.5).
    """
    goal = probability("delta", delta)
    part = goal / 2 if delta_noise is None else probability("delta_noise", delta_noise)
    if part >= goal:
        raise too_large_delta()
    target = positive("epsilon", epsilon)
    sigma = math.sqrt(l2_squared(tables, relation) / (2 * float(rho_from_approx(target, part))))
    rest = float(goal - part) / (1.0 + math.exp(float(target)))
    tail = -math.expm1(math.log1p(-rest) / tables)
    return sigma, sigma * _normal_quantile_up(tail)


def _normal_quantile_up(tail: float) -> float:
    """The value with P(Z > value) = tail, by bisection; for tails down to 1e-300."""
    low, high = -40.0, 40.0
    for _ in range(90):
        middle = (low + high) / 2
        if normal_tail(middle) > tail:
            low = middle
        else:
            high = middle
    return high
