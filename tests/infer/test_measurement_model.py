"""Shares by the law of what was released: brute force over tiny tables, calibration, and both doors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, binomtest

import gibbous as gb
from gibbous.core.errors import UsageError
from gibbous.core.tables import NoiseInfo
from gibbous.evaluation.inference import measurement_model as model
from gibbous.evaluation.inference import released_tables
from gibbous.evaluation.inference.analysis import Analysis
from gibbous.evaluation.inference.noise_replicates import noise
from gibbous.evaluation.inference.released_tables import Reading
from tests.infer import made

BINARY = gb.Schema((gb.Column("ill", "binary", levels=("no", "yes")),))
FOUR = gb.Schema(
    (
        gb.Column("ill", "binary", levels=("no", "yes")),
        gb.Column("sex", "binary", levels=("f", "m")),
    )
)


def drawn(method: Any, schema: gb.Schema, rows: int, sets: int) -> Any:
    """As much of a release as the law of its rows needs."""
    receipt = {
        "method": {"name": method.about.name, "params": {"epsilon": method.epsilon}},
        "rows": [rows] * sets,
    }
    return SimpleNamespace(schema=schema, tables=None, receipt=receipt)


def read(release: Any, counted: Any, n: int, place: int = 0) -> model.Likelihood:
    """The likelihood of one combination of the first column."""
    known = model.likelihoods(release, (0,), counted, n)
    assert known is not None
    return known[1](place)


def agrees(found: model.Likelihood, weight: Callable[[float], float]) -> None:
    """The interval and the mean are those of the law whose density over a share is given, up to a constant.

    Args:
        weight: P(released | share); the Jeffreys law is even in the angle with sin^2 = share.
    """

    def mass(high: float, power: int = 0) -> float:
        top = math.asin(math.sqrt(high))
        law = (lambda t: weight(math.sin(t) ** 2) * math.sin(t) ** (2 * power), 0, top)
        return float(quad(*law, limit=400, epsabs=0, epsrel=1e-10)[0])

    mean, sd, low, high, _ = model.summed(found, 0.9)

    whole = mass(1.0)
    assert mean == pytest.approx(mass(1.0, 1) / whole, rel=1e-6)
    assert sd**2 == pytest.approx(mass(1.0, 2) / whole - (mass(1.0, 1) / whole) ** 2, rel=1e-5)
    assert mass(low) / whole == pytest.approx(0.05, abs=1e-6)
    assert mass(high) / whole == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize("method", [gb.Dirichlet(epsilon=2), gb.DpPrior(epsilon=3)])
def test_rows_of_an_urn_have_the_likelihood_that_enumeration_gives(method: Any) -> None:
    """3 records in two of four cells that are ill, 3 rows in each of two sets: every sequence of cells."""
    rows, n, seen = 3, 3, (1, 2)
    alpha = method.posterior(FOUR, rows, len(seen)).effective
    put_back = 1 if method.about.name == "dirichlet" else 0

    def of_set(records: tuple[int, ...], ill: int) -> Fraction:
        total = Fraction(0)
        for cells in itertools.product(range(4), repeat=rows):
            if sum(cell >= 2 for cell in cells) != ill:
                continue
            chance = Fraction(1)
            for t, cell in enumerate(cells):
                balls = records[cell] + alpha + put_back * cells[:t].count(cell)
                chance *= balls / (n + 4 * alpha + put_back * t)
            total += chance
        return total

    # However the records lie within ill and well, the rows say the same of them.
    split = {a: (n - a, 0, a // 2, a - a // 2) for a in range(n + 1)}
    law = [math.prod(float(of_set(split[a], x)) for x in seen) for a in range(n + 1)]
    counted = np.array([[rows - x, x] for x in seen], dtype=float)
    found = read(drawn(method, FOUR, rows, 2), counted, n, place=1)

    assert np.exp(found.log - found.log[0]) == pytest.approx(np.array(law) / law[0], rel=1e-9)
    agrees(found, lambda p: float(binom.pmf(range(n + 1), n, p) @ law))


@pytest.mark.parametrize("scale", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("cells", [1, 2, 5])
def test_the_law_of_summed_noise_is_the_convolution(scale: float, cells: int) -> None:
    reach = math.ceil(36 * scale) + 40
    support = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(support) / scale)
    brute = one
    for _ in range(cells - 1):
        brute = np.convolve(brute, one)
    at = np.arange(-math.ceil(8 * scale), math.ceil(8 * scale) + 1)
    brute = np.log(brute[len(brute) // 2 + at])

    found = model.log_noise(NoiseInfo("geometric", scale), cells, at.astype(float))

    shift = len(at) // 2
    assert found - found[shift] == pytest.approx(brute - brute[shift], abs=1e-6)


@pytest.mark.parametrize("stated", [True, False])
def test_noisy_tables_have_the_likelihood_of_their_noise(stated: bool) -> None:
    """Six cells in three combinations; a share that noise put below zero. Sums to 60 records by hand."""
    info, counts, n = NoiseInfo("geometric", 1.5), np.array([-2.0, 9.0, 4.0]), 12
    support = np.arange(-300, 301)
    one = np.exp(-np.abs(support) / 1.5)
    two = np.convolve(one, one)
    four = np.convolve(two, two)

    def log_pair(a: int, r: int) -> float:
        inside = two[len(two) // 2 + int(counts[0]) - a]
        return float(inside * four[len(four) // 2 + int(counts[1:].sum()) - r])

    pairs = [
        (a, r) for a in range(61) for r in range(61) if (a + r == n if stated else a + r <= 60)
    ]
    weights = np.array([log_pair(a, r) for a, r in pairs])
    a, total = np.array([a for a, _ in pairs]), np.array([a + r for a, r in pairs])
    found = model._of_table([Reading(counts, 2, info)], 0, n if stated else None)

    agrees(found, lambda p: float(binom.pmf(a, total, p) @ weights))


@pytest.mark.parametrize("most", [8, math.inf])
def test_noise_that_was_drawn_again_is_weighed_as_such(most: float) -> None:
    """P(y | a) = q^|y - a| / sum over 0 <= y <= most: summed by hand for each a."""
    info, counts = NoiseInfo("geometric", 3.0), np.array([0.0, 7.0])
    q = math.exp(-1 / 3)
    found = model._of_table([Reading(counts, 1, info)], 0, 8, most)

    def chance(y: float, a: float) -> float:
        return float(q ** abs(y - a) / sum(q ** abs(z - a) for z in range(min(most, 400) + 1)))

    law = np.array([chance(0, a) * chance(7, 8 - a) for a in range(9)])

    assert found.inside.tolist() == list(range(9))
    assert np.exp(found.log - found.log[0]) == pytest.approx(law / law[0], rel=1e-9)


@pytest.mark.parametrize("around", ["", "per_set"])
def test_a_release_says_between_which_bounds_its_counts_were_drawn_again(around: str) -> None:
    """Through the receipt, also of a method inside another: P(y | a) over 0 <= y <= 40, by hand."""
    own = {"outside": "truncate", "records": 40}
    method = (
        gb.PerSet(method="modips", options=own, epsilon=0.5)
        if around
        else gb.Modips(epsilon=0.5, **own)
    )
    release = gb.synthesize(
        made.records(40).select("ill"),
        BINARY,
        method,
        rows=40,
        seed=1,
        ledger=gb.Ledger.ephemeral(),
    )
    found = read(release, np.zeros((1, 2)), 40)
    assert release.tables is not None
    table = released_tables.readings(release.tables, (0,))[0]
    y, q = table.counts, math.exp(-1 / table.noise.scale)

    def chance(y: float, a: float) -> float:
        return float(q ** abs(y - a) / sum(q ** abs(z - a) for z in range(41)))

    law = np.array([chance(y[0], a) * chance(y[1], 40 - a) for a in found.inside])

    assert len(law) > 20
    assert np.exp(found.log - found.log[0]) == pytest.approx(law / law[0], rel=1e-9)


RUNS = 1_500


def coverage(release: Callable[[float, np.random.Generator], model.Likelihood]) -> int:
    """How often a share drawn from the Jeffreys law lies in its interval."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(RUNS):
        share = rng.beta(0.5, 0.5)
        _, _, low, high, _ = model.summed(release(share, rng), 0.95)
        held += low <= share <= high
    return held


def of_dirichlet(share: float, rng: np.random.Generator, *, told: float = 2.0) -> model.Likelihood:
    """150 records, 100 rows at epsilon 2; the likelihood believes in `told`."""
    a = rng.binomial(150, share)
    alpha = float(gb.Dirichlet(epsilon=2).posterior(BINARY, 100, 1).effective or 0)
    x = rng.binomial(100, rng.beta(a + alpha, 150 - a + alpha))
    release = drawn(gb.Dirichlet(epsilon=told), BINARY, 100, 1)
    return read(release, np.array([[x, 100.0 - x]]), 150)


def of_table(share: float, rng: np.random.Generator, *, told: float = 6.0) -> model.Likelihood:
    """150 records, geometric noise of scale 6 in two cells; the likelihood believes in `told`."""
    a = rng.binomial(150, share)
    added = noise(NoiseInfo("geometric", 6.0), 2, int(rng.integers(1 << 62)))
    counts = np.array([a, 150 - a]) + added
    reading = Reading(counts.astype(float), 1, NoiseInfo("geometric", told))
    return model._of_table([reading], 0, 150)


@pytest.mark.parametrize("law", [of_dirichlet, of_table])
@pytest.mark.slow
def test_intervals_hold_as_many_shares_of_the_prior_law_as_they_say(law: Any) -> None:
    """Exact whatever the noise: not rejected at 1e-4."""
    assert binomtest(coverage(law), RUNS, 0.95).pvalue > 1e-4


@pytest.mark.parametrize(
    "law",
    [
        lambda share, rng: of_dirichlet(share, rng, told=6.0),
        lambda share, rng: of_table(share, rng, told=2.0),
    ],
)
@pytest.mark.slow
def test_a_likelihood_that_believes_in_less_noise_is_caught(law: Any) -> None:
    assert binomtest(coverage(law), RUNS, 0.95).pvalue < 1e-4


def test_rows_pulled_toward_uniform_are_read_by_their_law_without_being_asked() -> None:
    release = gb.synthesize(
        made.records(400), made.SCHEMA, gb.Dirichlet(epsilon=4), rows=100, seed=1,
        ledger=gb.Ledger.ephemeral(), understand=True,
    )  # fmt: skip
    by_law = Analysis(release, 400).table(["ill"])
    by_rule = Analysis(release, 400).table(["ill"], rule="unified")

    assert by_law.combined.rule == "measurement"
    assert by_law.combined.warnings == ()  # the pull is in the interval, no longer beside it
    assert any(text.startswith("Perturbation:") for text in by_rule.combined.warnings)
    with pytest.raises(UsageError, match="number of records is not known"):
        Analysis(release).table(["ill"], rule="measurement")


def test_a_released_table_is_summed_over_where_asked() -> None:
    analysis = Analysis(made.release("laplace", sets=1))
    by_law, by_table = analysis.table(["sex"], rule="measurement"), analysis.table(["sex"])

    assert by_table.combined.rule == "released table"
    assert by_law.combined.estimate == pytest.approx(by_table.combined.estimate, abs=0.01)
    assert by_law.combined.se == pytest.approx(by_table.combined.se, rel=0.1)
    assert by_law.combined.estimate.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", ["pegs", "sbhg"])
def test_a_law_that_is_not_known_is_refused(method: str) -> None:
    with pytest.raises(UsageError, match=r"law of this release .* is not known"):
        Analysis(made.release(method, sets=1), 1_500).table(["ill", "age"], rule="measurement")


def test_several_truncated_cells_of_one_count_are_refused() -> None:
    release = gb.synthesize(
        made.records(300).select("ill", "sex"), FOUR, gb.Modips(epsilon=1, outside="truncate"),
        rows=300, seed=1, ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    with pytest.raises(UsageError, match="truncated"):
        Analysis(release).table(["ill"], rule="measurement")


def test_equal_counts_are_summed_once_and_every_combination_keeps_its_own(monkeypatch: Any) -> None:
    asked: list[model.Likelihood] = []
    honest = model.summed

    def counted(one: model.Likelihood, level: float) -> tuple[float, float, float, float, float]:
        asked.append(one)
        return honest(one, level)

    monkeypatch.setattr(model, "summed", counted)
    analysis = Analysis(made.release("laplace", sets=1))
    found = analysis.table(["ill", "age"], rule="measurement")
    tables = analysis.release.tables
    assert tables is not None
    counts = released_tables.readings(tables, (0, 2))[0].counts

    assert len(asked) == len(set(counts.tolist())) <= len(found.levels) == 18
    order = np.argsort(counts, kind="stable")
    assert (np.diff(found.combined.estimate[order]) >= 0).all()
