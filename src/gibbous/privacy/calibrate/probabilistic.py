"""Probabilistic DP of multinomial-Dirichlet draws: virtual records from (epsilon, delta) and back.

One destination has n records; x of them are in an origin's cell, which has a virtual records of
|a| in all. m people are drawn from the Dirichlet-multinomial law with weights n + a, so that the
cell's count is beta-binomial. A disclosure needs a count above f(x) = c (a + max(x - 1, 0)) with
c = e^epsilon - 1 (theorem 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.tails import beta_binomial_tail, log_beta_binomial

_LARGEST = 700.0  # nats beyond which exp overflows
_STEP = 1.02
_MOST = 1 << 17  # tails of one bound
_SAFE = 1 + 1e-9  # covers the rounding of lgamma, against us


def odds(epsilon: float) -> float:
    """c = e^epsilon - 1, rounded down; epsilon in nats, > 0."""
    return math.expm1(min(epsilon, _LARGEST)) * (1 - 1e-15)


def disclosure_limit(x: np.ndarray, a: np.ndarray | float, c: float) -> np.ndarray:
    """f(x) = c (a + max(x - 1, 0)): the largest synthetic count that cannot disclose.

    Source:
        [onthemap, theorem 4.3].
    """
    limit: np.ndarray = c * (a + np.maximum(np.asarray(x, dtype=float) - 1, 0.0))
    return limit


def may_disclose(synthetic: np.ndarray, records: np.ndarray, a: np.ndarray, c: float) -> np.ndarray:
    """Cells whose synthetic count is above the limit of theorem 4.3, bool; the rest cannot disclose.

    Args:
        synthetic, records, a: counts and virtual records of the same cells, any shape.
        c: e^epsilon - 1.
    """
    above: np.ndarray = np.asarray(synthetic) > disclosure_limit(records, a, c)
    return above


def reference_zero_sample(n: int, m: int, a1: float, a2: float, c: float) -> float:
    """The largest probability, over x in [0, n), of the count f(x) = min(m, c (a1 + max(x - 1, 0))).

    The count need not be whole: factorials are gamma functions.

    Args:
        n, m: records and synthetic people of the destination.
        a1: least number of virtual records of an origin; a2: those of all others.
        c: e^epsilon - 1.
    Source:
        [onthemap, definition 7].
    """
    # Where f is m the probability grows with x: of those only the last can be the largest.
    first = max(0, min(n, math.floor(m / c - a1 + 1) + 2))
    x = np.unique(np.append(np.arange(first), n - 1)).astype(float)
    f = np.minimum(float(m), disclosure_limit(x, a1, c))
    return float(np.exp(log_beta_binomial(f, float(m), x + a1, n - x + a2).max()))


def theorem44_limit(epsilon: float, delta: float, k: float) -> float:
    """The largest reference 0-sample that theorem 4.4 allows: delta (e^eps - 2) / (2 k e^eps).

    Raises:
        ParameterError: epsilon is not above ln 3, where the theorem says nothing.
    """
    _above_ln3(epsilon)
    return delta * (1 - 2 * math.exp(-epsilon)) / (2 * k)


def exact_delta(
    n: int,
    m: int,
    a: float,
    c: float,
    *,
    cells: np.ndarray | float,
    ratios: np.ndarray | None = None,
    others: float,
) -> float:
    """Bound on the probability that any origin of one destination discloses, from exact tails.

    Sum over cells without records, and n max over x of tail(x) / x for cells with x of them: at
    most n / x cells have x records.

    Args:
        n, m: records and synthetic people.
        a: least number of virtual records of a cell.
        c: e^epsilon - 1.
        cells: how many cells (expected, under shrinking) have each ratio; a number for one ratio.
        ratios: float64 (2, blocks): least and largest a_i / a of each block of cells; None for 1.
        others: virtual records of all cells but one, at least: those beside the least cell.
    Returns:
        Upper bound of the disclosure probability, at most 1.
    Source:
        [onthemap, theorem 4.4], with the tail itself in place of its bound.
    """
    low, high = (np.ones(1), np.ones(1)) if ratios is None else ratios
    count = np.atleast_1d(np.asarray(cells, dtype=float))
    total = others + a
    top = max(0, min(n, math.floor(m / c - a + 1) + 1))
    if top * len(low) > _MOST:
        return 1.0  # too many tails to add up: a larger alpha needs fewer, m / c none
    x = np.arange(top + 1, dtype=float)
    law = (high * a)[:, None]
    limit = disclosure_limit(x[None, :], (low * a)[:, None], c)
    rest = np.maximum(n - x[None, :] + np.maximum(total - law, 0.0), 0.0)
    tails = beta_binomial_tail(limit, m, x[None, :] + law, rest)
    empty = float((count * tails[:, 0]).sum())
    held = float((tails[:, 1:] / x[1:]).max(initial=0.0)) * n
    return min(1.0, (empty + held) * _SAFE)


def pure_alpha(m: int, c: float) -> float:
    """m / (e^epsilon - 1), rounded up: with it no output discloses (theorem 4.1)."""
    return m / c * (1 + 1e-12)


@lru_cache(maxsize=4096)
def alpha_printed(n: int, k: int, epsilon: float, delta: float) -> float:
    """Least virtual records of an origin by theorem 4.4 as it is printed (m = n, equal origins).

    Raises:
        ParameterError: epsilon <= ln 3, or no alpha passes.
    """
    limit, c = theorem44_limit(epsilon, delta, k), odds(epsilon)
    largest = max(1.0, pure_alpha(n, c))

    def passes(a: float) -> bool:
        return reference_zero_sample(n, n, a, (k - 1) * a, c) <= limit

    if not passes(largest):
        raise ParameterError(
            "NOALPHA",
            f"Theorem 4.4 as printed has no alpha for a destination of {n} records.",
            "Its reference 0-sample counts the event that all synthetic people are in one origin "
            "also where that cannot disclose; with 1 or 2 records that event is never rare enough.",
            "Use bound='exact', which counts only outputs that can disclose, or merge the "
            "destination with others.",
        )
    return last_failure(passes, largest)


def near_alpha(passes: Callable[[float], bool], largest: float, start: float | None) -> float:
    """An alpha that passes, while about 2 % less does not.

    The bound need not be monotone in alpha, so what counts is that the value returned was tested.

    Args:
        passes: whether an alpha is enough.
        largest: an alpha that is known to pass.
        start: where to look first, for example the answer for a similar destination.
    """
    best = largest if start is None else min(start, largest)
    step = 2.0 if start is None else _STEP
    if best >= largest or passes(best):
        while best > 1e-15 and passes(best / step):
            best, step = best / step, min(step * step, 4.0)
        return _between(passes, best / step, best, _STEP)
    fails = best
    while True:
        best = min(best * step, largest)
        if best >= largest or passes(best):
            return _between(passes, fails, best, _STEP)
        fails, step = best, min(step * step, 4.0)


def shrunken_loss(
    largest_alpha: float, n: int, m: int, least_kept: float, *, sharp: bool = True
) -> float:
    """Nats that algorithm 2 costs beyond epsilon: ln(1/f) + what |a| can change by.

    Args:
        largest_alpha: of one origin.
        n, m: records and synthetic people; m <= n.
        least_kept: the least probability f to keep an origin, in (0, 1].
        sharp: min(ceil(a) ln 2, a m / n) instead of the printed ceil(a) ln 2.
    Raises:
        ParameterError: f is not in (0, 1], or m > n, where nothing is proven.
    Source:
        [onthemap, theorem 5.2].
    """
    check_kept(least_kept)
    if m > n:
        raise ParameterError(
            "SHRINK",
            "Shrinking the domain was asked for with more synthetic people than records.",
            "Theorem 5.2 is proven for at most as many.",
            "Leave out the number of rows: each destination then keeps its own.",
        )
    size = math.ceil(largest_alpha) * math.log(2)
    if sharp and n:
        size = min(size, largest_alpha * m / n)
    return math.log(1 / least_kept) + size


def check_kept(least: float) -> None:
    """Refuse a probability function of algorithm 2 that is 0 somewhere, or not a probability.

    Raises:
        ParameterError: f is not in (0, 1].
    """
    if not 0 < least <= 1:
        raise ParameterError(
            "KEPT",
            f"keep has a probability of {least!r}.",
            "Each origin is kept with a public probability above 0 and at most 1: an origin that "
            "is never kept, yet occurs, gives its worker away.",
            "Give every distance a probability, for example ((0, 1.0), (10, 0.05)).",
        )


def kept_mass(kept: np.ndarray, n: int, delta: float) -> float:
    """Origins without records that shrinking keeps, at least, except with probability delta.

    Chernoff's lower bound for independent choices, without the n + 1 likeliest origins: those may
    be the ones with records, and the one that is asked about.

    Args:
        kept: f of every origin, float64 (origins,).
        n: records.
        delta: probability that the bound fails.
    """
    if len(kept) <= n + 1:
        return 0.0
    top = float(kept.max())
    if np.count_nonzero(kept == top) > n:
        first = (n + 1) * top  # many are alike: nothing to sort
    else:
        first = float(np.partition(kept, len(kept) - n - 1)[-(n + 1) :].sum())
    mean = float(kept.sum()) - first
    share = math.sqrt(2 * math.log(1 / delta) / mean) if mean > 0 else 1.0
    return max(0.0, (1 - share) * mean * (1 - 1e-9))


def good_odds(epsilon: float, delta: float) -> float:
    """gamma of accept/reject: ln((gamma + 1) / (1 - delta)) = epsilon, p = delta.

    Raises:
        ParameterError: epsilon is too small for that delta.
    Source:
        [onthemap, lemma 5.2], with the logarithm that its proof gives.
    """
    gamma = (math.expm1(min(epsilon, _LARGEST)) - delta * math.exp(min(epsilon, _LARGEST))) * (
        1 - 1e-15
    )
    if gamma <= 0:
        raise ParameterError(
            "GOOD",
            f"epsilon = {epsilon:g} leaves nothing after delta = {delta:g}.",
            "Accept/reject needs epsilon above -ln(1 - delta).",
            "Use a larger epsilon or a smaller delta.",
        )
    return gamma


def is_good(synthetic: np.ndarray, records: np.ndarray, a: np.ndarray, gamma: float) -> bool:
    """Whether an output is gamma-representative of the records or of a neighbor of theirs.

    Args:
        synthetic, records, a: of every cell with records or people of one destination.
        gamma: an output is representative if m_i <= gamma (a_i + max(n_i - 1, 0)) in all cells.
    """
    wrong = np.flatnonzero(may_disclose(synthetic, records, a, gamma))
    if len(wrong) == 0:
        return True
    if len(wrong) > 1 or records[wrong[0]] < 1:
        return False  # one record moves into one cell, and the first one there changes nothing
    more = np.array(records)
    more[wrong[0]] += 1
    if may_disclose(synthetic, more, a, gamma)[wrong[0]]:
        return False
    fewer = np.maximum(records - 1, 0)
    spare = (records >= 1) & ~may_disclose(synthetic, fewer, a, gamma)
    spare[wrong[0]] = False
    return bool(spare.any())


def last_failure(passes: Callable[[float], bool], largest: float) -> float:
    """The alpha above which everything down from `largest` passes, on a fine ladder, then bisected."""
    trial, step = largest, 1.01
    while trial > 1e-12 and passes(trial / step):
        trial /= step
    return _between(passes, trial / step, trial)


def _between(
    passes: Callable[[float], bool], fails: float, holds: float, close: float = 1 + 1e-9
) -> float:
    while holds / fails > close:
        middle = math.sqrt(fails * holds)
        fails, holds = (fails, middle) if passes(middle) else (middle, holds)
    return holds


def _above_ln3(epsilon: float) -> None:
    if not epsilon > math.log(3):
        raise ParameterError(
            "LN3",
            f"epsilon = {epsilon:g} was given to theorem 4.4.",
            "The theorem is stated for epsilon above ln 3 = 1.0986.",
            "Use a larger epsilon, or bound='exact', which has no such limit.",
        )
