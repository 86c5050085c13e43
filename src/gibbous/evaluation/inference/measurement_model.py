"""Shares by the law of what was released: drawing and noise in the likelihood, every true count summed over.

A combination of levels splits the records into a inside and r outside of it. With the Jeffreys law for
its share, and P(released | a, r) known exactly, the law of the share given the release is a mixture of
Beta(a + 1/2, r + 1/2) laws, whose weights are sums: no sampler and no approximation by a variance.
Source: Charest (2011), J. Privacy and Confidentiality 2(2); docs/reference/combining-rules.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.release import Release
from gibbous.core.tables import NoiseInfo
from gibbous.evaluation.inference import released_tables
from gibbous.evaluation.inference.combined_estimate import Combined
from gibbous.evaluation.inference.combining_rules import Floats, Rule
from gibbous.evaluation.inference.release_facts import CLUSTERS, Facts
from gibbous.evaluation.inference.released_tables import Reading

PRIOR = 0.5
"""Of Beta(1/2, 1/2), the Jeffreys law of a share: intervals cover about as often as they say."""
POINTS, POINTS_IN_ALL = 101, 2_001  # grid of one unknown count beside another, and alone
REACH = 12  # standard deviations of noise that are summed over: what lies beyond is below 1e-7
LEAST = 1e-8  # of the largest weight; smaller ones are left out
MANY = 64  # cells whose summed noise is normal to the digits used here
WIDEST = 1 << 19  # counts on either side of a law that is summed by Fourier transform
TableRule = Rule | Literal["measurement"]
DRAWN = ("dirichlet", "dp_prior")
"""Methods whose rows have a law that is known given the records."""


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """P(what was released | a records inside a combination and r outside), on a grid of true counts.

    Attributes:
        inside, outside: a and r, float64 (points,); the grid has one step for each of them.
        log: of the probability, up to a constant.
    """

    inside: Floats
    outside: Floats
    log: Floats


def summed(one: Likelihood, level: float) -> tuple[float, float, float, float, float]:
    """Mean, standard deviation and interval of a share, and how much of its variance is sampling.

    Returns:
        mean, sd, low, high (equal tails); the mean of p (1 - p) / n over the variance, in [0, 1].
    """
    special, optimize = need("scipy.special", "evaluate"), need("scipy.optimize", "evaluate")
    log = one.log + _of_counts(one.inside, one.outside)
    weights = np.exp(log - log.max())
    kept = weights > LEAST
    weights = weights[kept] / weights[kept].sum()
    a, b = one.inside[kept] + PRIOR, one.outside[kept] + PRIOR
    mean = float(weights @ (a / (a + b)))
    inner = weights @ (a * b / ((a + b) ** 2 * (a + b + 1)))
    variance = float(inner + weights @ (a / (a + b) - mean) ** 2)

    def beyond(share: float, below: float) -> float:
        return float(weights @ special.betainc(a, b, share)) - below

    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = (optimize.brentq(beyond, 0.0, 1.0, args=(tail,), xtol=1e-10) for tail in tails)
    return mean, math.sqrt(variance), low, high, min(float(inner) / variance, 1.0)


def by_law(
    release: Release,
    columns: tuple[int, ...],
    counted: Sequence[Floats],
    *,
    facts: Facts,
    rule: TableRule,
    level: float,
    names: Sequence[str],
) -> Combined | None:
    """Shares of the combinations of some columns, where the release says their law and the rule asks for it.

    Args:
        rule: "measurement" sums over true counts, and so does "auto" for rows of known law; "auto" and
            "unified" read shares off released tables, unbiased.
    Returns:
        None where rows are to be combined.
    Raises:
        UsageError: rule = "measurement", and the law is not known.
    """
    tables = release.tables
    if rule == "measurement" or (rule == "auto" and tables is None):
        found = _measured(release, columns, counted, facts, level, names)
        if found is None and rule == "measurement":
            raise _unknown(facts)
        return found
    if tables is None or rule not in ("auto", "unified"):
        return None
    return released_tables.read_off(tables, columns, facts, level, names)


def _measured(
    release: Release,
    columns: tuple[int, ...],
    counted: Sequence[Floats],
    facts: Facts,
    level: float,
    names: Sequence[str],
) -> Combined | None:
    stated = facts.records if facts.records_from == "given" else None
    known = likelihoods(release, columns, counted, stated)
    if known is None:
        return None
    evidence, of = known  # equal evidence is summed once: most cells of a large table have few rows
    _, first, places = np.unique(evidence, axis=1, return_index=True, return_inverse=True)
    each = np.array([summed(of(int(place)), level) for place in first])
    mean, sd, low, high, sampling = each[places.reshape(-1)].T
    what = "rows" if release.tables is None else "noisy tables"
    total = "summed over, too" if stated is None else f"{stated:,.0f} (given)"
    nothing = np.zeros_like(mean)
    parts = (1 - sampling, nothing) if release.tables is None else (nothing, 1 - sampling)
    return Combined(
        mean, sd, np.full_like(mean, np.inf), low, high, level, "measurement",
        f"The law of the {what} given the records is known, and weighs every count of records that may be "
        f"behind them, beside the Jeffreys law of each share; n, the number of records: {total}.",
        sampling, *parts, np.full_like(mean, len(release.sets)), facts.rows, facts.records, tuple(names),
        tuple(text for text in facts.biases if text.startswith(CLUSTERS)),
    )  # fmt: skip


def likelihoods(
    release: Release, columns: tuple[int, ...], counted: Sequence[Floats], records: float | None
) -> tuple[Floats, Callable[[int], Likelihood]] | None:
    """What is known of each combination of some columns, in their row-major order, and its likelihood.

    Args:
        counted: rows of each set in each combination, for a method whose rows are what it releases.
        records: n where it is stated; rows that were drawn need it, tables have noisy totals.
    Returns:
        Counts, float64 (sets or tables, combinations), and the likelihood by a combination's position;
        None where the law of what was released is not known given two counts alone.
    """
    schema, method = release.schema, release.receipt["method"]
    if schema.impossible or schema.cells < 2:
        return None  # virtual records are then not spread evenly over the combinations
    if release.tables is None:
        if method["name"] not in DRAWN or records is None:
            return None
        return np.array(counted), _of_rows(release, np.array(counted), round(records))
    readings = released_tables.readings(release.tables, columns)
    most = _most(method.get("params") or {})
    if not readings or readings[0].counts.size < 2:
        return None
    if most is not None and readings[0].cells * (readings[0].counts.size - 1) > 1:
        return None  # of several cells, truncated apart, the sum of counts does not say the law
    n = None if records is None else round(records)
    evidence = np.array([one.counts for one in readings])
    return evidence, lambda place: _of_table(readings, place, n, most)


def _of_rows(release: Release, counted: Floats, n: int) -> Callable[[int], Likelihood]:
    """Of rows with Dirichlet probabilities, anew for each set, or with their posterior mean."""
    from gibbous.core.params import build
    from gibbous.mechanisms.registry import load

    receipt, betaln = release.receipt, need("scipy.special", "evaluate").betaln
    method = build(load(receipt["method"]["name"]), receipt["method"]["params"])
    alpha = method.posterior(release.schema, receipt["rows"][0], len(counted)).effective
    virtual = None if alpha is None else float(alpha * release.schema.cells)
    rows = counted.sum(axis=1)

    def of(place: int) -> Likelihood:
        x = counted[:, place]

        def log(a: Floats) -> Floats:
            if virtual is None:  # rows say nothing of the records
                return np.zeros_like(a)
            inside = (a + virtual / counted.shape[1])[:, None]
            outside = n + virtual - inside
            if method.about.name == "dirichlet":
                each = betaln(x + inside, rows - x + outside) - betaln(inside, outside)
            else:
                each = x * np.log(inside) + (rows - x) * np.log(outside)
            return np.asarray(each.sum(axis=1))

        return _found(log, n)

    return of


def _most(params: Mapping[str, Any]) -> float | None:
    """The upper bound of counts that were drawn again where they came out beyond it or negative.

    Inf for 0 as the only bound; None for counts as the noise left them. Also inside a combinator.
    """
    for one in (params, dict(params.get("options") or ())):
        if one.get("outside") == "truncate":
            return float(one.get("records") or math.inf)
    return None


def _found(log: Callable[[Floats], Floats], n: int) -> Likelihood:
    """The likelihood of 0 to n records inside, on a grid that is refined where it is not negligible."""
    low, high = 0, n
    while True:
        step = -(-(high - low + 1) // POINTS_IN_ALL)
        a = np.arange(low, high + 1, step, dtype=np.float64)
        one = Likelihood(a, n - a, log(a))
        whole = one.log + _of_counts(one.inside, one.outside)
        there = np.flatnonzero(whole > whole.max() + math.log(LEAST))
        first, last = max(int(a[there[0]]) - step, low), min(int(a[there[-1]]) + step, high)
        if step == 1 or last - first > 0.8 * (high - low):
            return one
        low, high = first, last


def _of_table(
    readings: Sequence[Reading], place: int, n: int | None, most: float | None = None
) -> Likelihood:
    """Of noisy counts of a combination and of the rest, in every table that holds them."""
    best = min(readings, key=lambda one: one.noise.variance * one.cells)
    y, others = best.counts[place], best.counts.sum() - best.counts[place]
    in_rest = best.cells * (best.counts.size - 1)
    a = _window(y, best.noise, best.cells, POINTS if n is None else POINTS_IN_ALL)
    if n is None:
        r = _window(others, best.noise, in_rest, POINTS)
        inside, outside = (grid.reshape(-1) for grid in np.meshgrid(a, r, indexing="ij"))
    else:
        inside = a[a <= n] if (a <= n).any() else np.array([float(n)])
        outside = n - inside
    log = np.zeros_like(inside)
    for one in readings:
        y, rest = one.counts[place], one.counts.sum() - one.counts[place]
        log += _noisy(y, inside, one.noise, one.cells, most)
        log += _noisy(rest, outside, one.noise, one.cells * (one.counts.size - 1), most)
    return Likelihood(inside, outside, log)


def _window(noisy: float, noise: NoiseInfo, cells: int, points: int) -> Floats:
    """True counts that a noisy one leaves possible, each of them or evenly spaced."""
    reach = math.ceil(REACH * math.sqrt(noise.variance * cells)) + 2
    low, high = max(0, round(noisy) - reach), max(0, round(noisy) + reach)
    step = -(-(high - low + 1) // points)
    return np.arange(low, high + 1, step, dtype=np.float64)


def _noisy(noisy: float, true: Floats, noise: NoiseInfo, cells: int, most: float | None) -> Floats:
    """log P(sum of noisy counts of so many cells | sum of their true counts)."""
    if most is None:
        return log_noise(noise, cells, noisy - true)
    # drawn again until it is within 0 and `most`: the normalizer hangs on the true count
    rate, true = -1.0 / noise.scale, np.minimum(true, most)
    lost = np.exp(rate * (true + 1)) + np.exp(rate * (most - true + 1))
    return log_noise(noise, cells, noisy - true) - np.log1p(-lost / (1 + math.exp(rate)))


def log_noise(noise: NoiseInfo, cells: int, at: Floats) -> Floats:
    """log of the law of the sum of the noise of some cells, up to a constant; float64, the shape of `at`.

    Exact for one cell of geometric noise; for several by Fourier transform, to 1e-15 of its peak. A
    discrete Gaussian, or the sum of more than 64 cells, is read off the normal density.
    """
    variance = noise.variance * cells
    if noise.law == "geometric" and cells == 1:
        return np.asarray(-np.abs(at) / noise.scale)
    reach = math.ceil(2 * REACH * math.sqrt(variance)) + 64
    if noise.law == "gaussian" or cells > MANY:
        return np.asarray(-(at**2) / (2 * variance))
    unit = max(1.0, reach / WIDEST)  # of a wide law the shape is what counts
    size = 1 << math.ceil(math.log2(2 * reach / unit))
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    rate = -unit / noise.scale
    # (1 - q)^2 / ((1 - q)^2 + 4 q sin^2(t / 2)), without a difference of numbers near 1
    gap = math.expm1(rate) ** 2
    wave = (gap / (gap + 4 * math.exp(rate) * np.sin(angle / 2) ** 2)) ** cells
    law = np.fft.fftshift(np.fft.irfft(wave, size))
    law = np.log(np.maximum(law, 1e-17 * law.max()))
    places = np.arange(size) - size // 2
    return np.asarray(np.interp(np.asarray(at) / unit, places, law))


def _of_counts(a: Floats, r: Floats) -> Any:
    """log P(a of a + r records inside) where the share has the Jeffreys law."""
    betaln = need("scipy.special", "evaluate").betaln
    return betaln(a + PRIOR, r + PRIOR) - betaln(a + 1, r + 1) - np.log(a + r + 1)


def _unknown(facts: Facts) -> UsageError:
    return UsageError(
        "LAW",
        f"The law of this release of {facts.method or 'rows'}, given two counts, is not known.",
        "It is for rows of dirichlet and dp_prior, and for columns that one released table without a "
        "threshold holds together; not with impossible combinations, nor where several cells of a count "
        "were truncated.",
        "Use rule='auto'.",
    )
