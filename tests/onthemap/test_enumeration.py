"""Theorems 4.3, 5.2 and lemma 5.2 against every output of every small table."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.mechanisms.onthemap import Onthemap
from gibbous.privacy.calibrate.probabilistic import (
    exact_delta,
    good_odds,
    is_good,
    may_disclose,
    odds,
    reference_zero_sample,
    shrunken_loss,
)
from gibbous.sampling.flows.scheme import Scheme, alpha_for, profile, shrunken_alpha
from gibbous.structure.regions import places
from tests.onthemap.laws import (
    Counts,
    apart,
    compositions,
    disclosing,
    law,
    neighbors,
    shrunken_law,
)

N = 4
TABLES = {k: list(compositions(N, k)) for k in (2, 3)}
PRIORS = {2: (0.3, 0.7), 3: (0.2, 0.5, 1.1)}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [1.2, 1.8, 2.5])
def test_outputs_within_theorem_43_never_disclose(k: int, epsilon: float) -> None:
    a, c = np.array(PRIORS[k]), odds(epsilon)
    laws = {x: law(x, a, N) for x in TABLES[k]}

    worst = [
        loss
        for x in TABLES[k]
        for s, loss in disclosing(x, laws).items()
        if not may_disclose(np.array(s), np.array(x), a, c).any()
    ]

    assert len(worst) >= 5
    assert max(worst) <= epsilon + 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_twice_the_limit_of_theorem_43_lets_disclosures_through(k: int) -> None:
    a, epsilon = np.array(PRIORS[k]), 1.5
    laws = {x: law(x, a, N) for x in TABLES[k]}

    worst = max(
        loss
        for x in TABLES[k]
        for s, loss in disclosing(x, laws).items()
        if not may_disclose(np.array(s), np.array(x), a, 2 * odds(epsilon)).any()
    )

    assert worst > epsilon


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [1.5, 2.5, 3.5])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_the_exact_delta_covers_the_disclosure_set(k: int, epsilon: float, alpha: float) -> None:
    a = np.full(k, alpha)
    laws = {x: law(x, a, N) for x in TABLES[k]}

    truth = max(
        sum(laws[x][s] for s, loss in disclosing(x, laws).items() if loss > epsilon + 1e-9)
        for x in TABLES[k]
    )

    bound = exact_delta(N, N, alpha, odds(epsilon), cells=float(k), others=(k - 1) * alpha)
    printed = (
        reference_zero_sample(N, N, alpha, (k - 1) * alpha, odds(epsilon))
        * 2
        * k
        / (1 - 2 * math.exp(-epsilon))
    )
    assert truth <= bound + 1e-12
    assert truth <= printed + 1e-12


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_the_exact_delta_covers_shaped_priors(spread: float) -> None:
    epsilon, density = 2.0, np.array([0.0, 1.0, 5.0])
    scheme = Scheme(epsilon, 0.05, spread=spread, origins=places(list("abc"), density=density))
    weights = scheme.weights(3)
    assert weights is not None
    found = profile(weights, 3)

    trial = alpha_for(scheme, found, N, N)

    least = found.effective(trial, N, N)
    a = least * weights / weights.min()
    laws = {x: law(x, a, N) for x in TABLES[3]}
    truth = max(
        sum(laws[x][s] for s, loss in disclosing(x, laws).items() if loss > epsilon + 1e-9)
        for x in TABLES[3]
    )
    bound = found.delta(N, N, least, odds(epsilon), found.weight / found.least - 1)
    assert truth <= bound <= 0.05


@pytest.mark.parametrize("kept", [(0.5, 0.2, 0.8), (0.1, 0.1, 0.1)])
def test_shrinking_costs_no_more_than_the_sharper_bound(kept: tuple[float, ...]) -> None:
    a, f, epsilon = np.array(PRIORS[3]), np.array(kept), 1.5
    laws = {x: shrunken_law(x, a, N, f) for x in TABLES[3]}

    worst = [
        loss
        for x in TABLES[3]
        for s, loss in disclosing(x, laws).items()
        if not may_disclose(np.array(s), np.array(x), a, odds(epsilon)).any() and laws[x][s] > 0
    ]

    assert max(worst) <= epsilon + shrunken_loss(float(a.max()), N, N, float(f.min())) + 1e-9
    assert max(worst) > epsilon  # shrinking does cost


def _good(x: Counts, s: Counts, a: np.ndarray, gamma: float) -> bool:
    return any(
        not may_disclose(np.array(s), np.array(y), a, gamma).any() for y in set(neighbors(x))
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.5])
def test_good_is_the_union_of_what_represents_a_neighbor(k: int, gamma: float) -> None:
    a = np.array(PRIORS[k])

    for x in TABLES[k]:
        for s in TABLES[k]:
            found = is_good(np.array(s), np.array(x), a, gamma)
            assert found == _good(x, s, a, gamma), (x, s)


def _accepted(x: Counts, a: np.ndarray, keep: object) -> dict[Counts, float]:
    drawn = law(x, a, N)
    some = {s: p if keep(x, s) else 0.0 for s, p in drawn.items()}  # type: ignore[operator]
    total = sum(some.values())
    return {s: p / total for s, p in some.items()}


@pytest.mark.parametrize(("gamma", "alpha"), [(4.0, 0.4), (2.5, 0.9), (1.6, 2.0)])
def test_good_keeps_its_epsilon_and_delta(gamma: float, alpha: float) -> None:
    a = np.full(3, alpha)
    plain = {x: law(x, a, N) for x in TABLES[3]}
    missed = {
        x: sum(
            p for s, p in plain[x].items() if may_disclose(np.array(s), np.array(x), a, gamma).any()
        )
        for x in TABLES[3]
    }
    p = max(missed.values())
    assert 0 < p < 1
    epsilon = math.log((gamma + 1) / (1 - p))
    laws = {x: _accepted(x, a, lambda x, s: _good(x, s, a, gamma)) for x in TABLES[3]}

    delta = max(
        sum(laws[x][s] for s, loss in disclosing(x, laws).items() if loss > epsilon + 1e-9)
        for x in TABLES[3]
    )

    assert delta <= p + 1e-12
    assert good_odds(epsilon, p) == pytest.approx(gamma)
    outside = max(
        sum(laws[x][s] for s in laws[x] if may_disclose(np.array(s), np.array(x), a, gamma).any())
        for x in TABLES[3]
    )
    assert outside <= p + 1e-12


def test_rejecting_by_rep_makes_outputs_that_only_one_neighbor_has() -> None:
    gamma, a = 4.0, np.full(3, 0.4)

    laws = {
        x: _accepted(x, a, lambda x, s: not may_disclose(np.array(s), np.array(x), a, gamma).any())
        for x in TABLES[3]
    }

    endless = [
        (x, y, s)
        for x in TABLES[3]
        for y in set(neighbors(x))
        if apart(x, y) == 1
        for s in laws[x]
        if laws[x][s] > 0 and laws[y][s] == 0
    ]
    assert endless
    with pytest.raises(ParameterError, match="one record"):
        Onthemap(accept="rep")


SINGLETON = {"k": 10_000, "n": 50, "alpha": 0.3, "f": 0.01, "epsilon": 3.0}


def _singleton(a: float, epsilon_total: float) -> float:
    """P(a destination of 50 lone workers discloses one of them) under shrinking, from below.

    Worker 1 is alone in origin 1. Moved to an occupied origin without synthetic people, the law
    changes by (a + t) / (a f) for t people in origin 1, exactly: all other origins' choices cancel.
    """
    k, n, f = SINGLETON["k"], SINGLETON["n"], SINGLETON["f"]
    t = math.floor(math.exp(epsilon_total) * f * a - a) + 1
    total = 0.0
    for kept in range(400):
        share = math.exp(
            math.lgamma(k - n + 1)
            - math.lgamma(kept + 1)
            - math.lgamma(k - n - kept + 1)
            + kept * math.log(f)
            + (k - n - kept) * math.log1p(-f)
        )
        rest = n - 1 + (n - 1 + kept) * a
        tail = 0.0
        for j in range(t, 40):
            tail += comb(n, j) * math.exp(
                math.lgamma(1 + a + j)
                - math.lgamma(1 + a)
                + math.lgamma(rest + n - j)
                - math.lgamma(rest)
                + math.lgamma(1 + a + rest)
                - math.lgamma(1 + a + rest + n)
            )
        total += share * tail
    return total


def test_the_printed_theorem_52_breaks_its_delta() -> None:
    s = SINGLETON
    c, k = odds(s["epsilon"]), int(s["k"])
    stated = (
        reference_zero_sample(50, 50, s["alpha"], s["alpha"] * (k - 1), c)
        * 2
        * k
        / (1 - 2 * math.exp(-s["epsilon"]))
    )
    epsilon_total = s["epsilon"] + shrunken_loss(s["alpha"], 50, 50, s["f"], sharp=False)

    truth = _singleton(s["alpha"], epsilon_total)

    assert stated == pytest.approx(1.76e-6, rel=0.01)
    assert truth > 1.4 * stated  # at least 2.67e-6, of 1.76e-6 stated
    assert truth == pytest.approx(2.67e-6, rel=0.05)


def test_our_calibration_for_the_shrunken_domain_keeps_that_delta() -> None:
    s = SINGLETON
    epsilon_total = s["epsilon"] + shrunken_loss(s["alpha"], 50, 50, s["f"], sharp=False)
    scheme = Scheme(epsilon_total, 1.76e-6, keep=((0.0, s["f"]),))

    a = shrunken_alpha(scheme, np.full(int(s["k"]), s["f"]), None, 50, 50)

    assert _singleton(a, epsilon_total) <= 1.76e-6


FAR = list(compositions(N, 4))  # three origins within reach of the destination, one beyond


def _missed(laws: dict[Counts, dict[Counts, float]], epsilon: float) -> float:
    """The largest probability of an output that discloses more than epsilon."""
    return max(
        sum(laws[x][s] for s, loss in disclosing(x, laws).items() if loss > epsilon + 1e-9)
        for x in laws
    )


def _replaced(x: Counts, law_of: dict[Counts, dict[Counts, float]]) -> dict[Counts, float]:
    """The law where each record beyond reach is one of a random origin within it."""
    out = dict.fromkeys(TABLES[3], 0.0)
    for t in compositions(x[3], 3):
        ways = math.factorial(x[3]) / math.prod(map(math.factorial, t)) / 3 ** x[3]
        for s, p in law_of[x[0] + t[0], x[1] + t[1], x[2] + t[2]].items():
            out[s] += ways * p
    return out


def test_records_beyond_reach_at_the_nearest_origin_disclose_no_more_than_others() -> None:
    epsilon, delta = 1.0, 0.2
    found = profile(None, 3)
    alpha = found.effective(alpha_for(Scheme(epsilon, delta), found, N, N), N, N)
    within = {x: law(x, np.full(3, alpha), N) for x in TABLES[3]}
    nearest = {x: within[x[0], x[1], x[2] + x[3]] for x in FAR}
    random = {x: _replaced(x, within) for x in FAR}

    plain = _missed(within, epsilon)

    assert _missed(nearest, epsilon) == pytest.approx(plain)
    assert 0 < plain <= delta
    # Saboteur: a random origin in its place. A mixture of laws does not keep the delta of each.
    assert _missed(random, epsilon) > 2 * plain
    # Saboteur: left out. Totals differ, so that every output tells the two tables apart.
    fewer = {x: law(x[:3], np.full(3, alpha), N - x[3]) for x in FAR}
    one, other = fewer[3, 1, 0, 0], fewer[3, 0, 0, 1]
    assert not set(one) & set(other)
