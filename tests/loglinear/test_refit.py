"""A released model fitted again: what it says of its tables, where a fit ends, and V_s of whole releases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.cases import secret
from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed
from gibbous.core.schema import Schema
from gibbous.core.tables import (
    Dense,
    LogLinear,
    Merged,
    NoiseInfo,
    Recipe,
    Sparse,
    Table,
    Tables,
)
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combining_rules import Noise
from gibbous.evaluation.inference.noise_replicates import noise_variance
from gibbous.evaluation.inference.release_facts import Facts
from gibbous.privacy.curator import Curator
from gibbous.sampling.loglinear import laws, prepared, refitted
from gibbous.sampling.sample import sample
from tests.loglinear import made

SIZES = (3, 2, 4, 2)
CLIQUES = ((0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 2, 3))
LAW = made.law(made.model(SIZES, CLIQUES, seed=4, spread=0.5))
RECORDS = 50_000
LITTLE = NoiseInfo("gaussian", 0.5)
MERGED = Merged(np.array([0, 0, 1, 2]), np.array([0.25, 0.75, 1.0, 1.0]))


def counted(columns: tuple[int, ...], shares: np.ndarray, noise: NoiseInfo = LITTLE) -> Table:
    """A table of RECORDS times some shares, an axis a column in the order given; the last is the target."""
    context = Context(columns[-1:], columns[:-1], shares.shape[-1:], shares.shape[:-1])
    cells = np.rint(RECORDS * shares).astype(np.int64).reshape(context.keys, -1)
    return Table(context, Dense(cells), noise)


def released(law: np.ndarray, schema: Schema | None = None, noise: NoiseInfo = LITTLE) -> Tables:
    """Tables of all cliques of a law, and the model that has it."""
    tables = tuple(counted(c, made.margin(law, c), noise) for c in CLIQUES)
    theta = np.log(np.maximum(law, 1e-12))
    every = tuple(range(law.ndim))
    model = LogLinear(law.shape, (every,), (theta,), made.goals(law, *CLIQUES[:6]), closed=8_000)
    cross = (counted(every, law, noise),)
    given = schema or made.schema(law.shape)
    return Tables(given, tables + cross, Recipe("loglinear", (), sweeps=20), model=model)


@pytest.fixture
def by_monte_carlo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models take the way of large ones."""
    monkeypatch.setattr(laws, "MOST_CELLS", 0)


def test_expected_tables_are_what_the_model_says_in_the_order_of_their_axes() -> None:
    wanted = made.margin(LAW, (1, 2)).T
    tables = released(LAW)
    turned = replace(tables, extra=(counted((2, 1), np.full((4, 2), 1 / 8)),))

    start = prepared(turned, seed=1)

    assert start is not None
    total = turned.noisy_rows()
    seen = start.expected.extra[0].cells.values.reshape(4, 2)
    assert seen == pytest.approx(total * wanted, rel=1e-9)
    cross = start.expected.items[-1].cells.values.reshape(SIZES)
    assert cross == pytest.approx(total * LAW, rel=1e-9)


def test_expected_tables_of_merged_levels_are_spread_by_their_shares() -> None:
    tables = merged_tables()

    start = prepared(tables, seed=1)

    assert start is not None
    fine, pair = (t.cells.values / tables.noisy_rows() for t in start.expected.items[:2])
    groups = made.margin(group_law(), (0,))
    assert fine.ravel() == pytest.approx([0.25 * groups[0], 0.75 * groups[0], groups[1], groups[2]])
    assert pair.reshape(3, 2) == pytest.approx(group_law())


def test_merged_levels_are_shared_out_again_by_the_new_counts() -> None:
    tables = merged_tables()
    start = prepared(tables, seed=1)
    assert start is not None
    fine = counted((0,), np.array([0.3, 0.1, 0.2, 0.4]))

    again = refitted(start, replace(tables, items=(fine, *tables.items[1:]))).model

    assert isinstance(again, LogLinear)
    assert again.merged[0] is not None
    assert again.merged[0].shares == pytest.approx([0.75, 0.25, 1.0, 1.0], abs=1e-3)
    assert again.merged[0].groups.tolist() == MERGED.groups.tolist()


def test_fitted_again_to_what_it_says_a_model_stays() -> None:
    start = prepared(released(LAW), seed=1)
    assert start is not None

    again = refitted(start, start.expected).model

    assert isinstance(again, LogLinear)
    assert np.abs(laws.law(again, ()) - LAW).sum() / 2 < 0.003


@pytest.mark.statistical
def test_fitted_again_by_chains_it_follows_other_counts(by_monte_carlo: None) -> None:
    """20,000 chains, seeded: a margin is off by about .01; the two laws are .1 apart on the pairs."""
    other = made.law(made.model(SIZES, CLIQUES, seed=5, spread=0.5))
    other = 0.6 * LAW + 0.4 * other
    tables = pairwise(LAW)
    start = prepared(tables, seed=1)
    assert start is not None

    again = refitted(start, pairwise(other)).model

    assert isinstance(again, LogLinear)
    moved = made.law(again)
    for clique in CLIQUES[4:6]:
        before, wanted = made.margin(LAW, clique), made.margin(other, clique)
        assert np.abs(before - wanted).sum() / 2 > 0.05
        assert np.abs(made.margin(moved, clique) - wanted).sum() / 2 < 0.015
        goal = next(g for g in again.goals if g.columns == clique)
        assert np.abs(goal.shares - wanted).sum() / 2 < 0.015
    assert made.margin(again.goals[0].shares, (0,)) == pytest.approx(
        made.margin(other, (0,)), abs=2e-3
    )


def test_structural_zeros_stay_zero() -> None:
    barred = made.schema(SIZES, {0: (1,), 1: (0,)})
    law = made.law(made.model(SIZES, CLIQUES, seed=4, spread=0.5), barred)
    start = prepared(released(law, barred), seed=1)
    assert start is not None
    noisy = replace(
        start.tables, items=tuple(counted(t.context.columns, shares_of(t, 0.002)) for t in start.tables.items)
    )  # fmt: skip

    again = refitted(start, noisy).model

    assert isinstance(again, LogLinear)
    assert made.law(again, barred)[1, 0].sum() == 0
    goal = next(g for g in again.goals if g.columns == (0, 1))
    assert goal.shares[1, 0] < 1e-9


@pytest.mark.parametrize(
    "change", ["thresholded", "hashed", "of other codes", "without a clique", "without a column"]
)
def test_a_model_that_is_not_of_its_tables_is_not_fitted_again(change: str) -> None:
    tables = released(LAW)
    items = list(tables.items)
    if change == "thresholded":
        none = np.zeros(0, dtype=np.uint64)
        items[4] = replace(items[4], cells=Sparse(none, none, none.astype(np.int64)))
    elif change == "hashed":
        items[4] = replace(items[4], context=replace(items[4].context, key=Hashed(4)))
    elif change == "of other codes":
        items[0] = counted((0,), np.array([0.5, 0.5]))
    elif change == "without a clique":
        items = items[:-1]
    else:
        model = made.model((*SIZES, 2), CLIQUES)
        tables = replace(tables, schema=made.schema((*SIZES, 2)), model=model)

    assert prepared(replace(tables, items=tuple(items)), seed=1) is None


# V_s in whole releases: a share, and a difference of shares.

SMALL = (2, 2, 3)
SETS = 2
TRUTH = np.array([0.5, 0.5])  # P(c1 = 0), and P(c1 = 0 | c0 = 0) - P(c1 = 0 | c0 = 1)


@dataclass(frozen=True)
class Simulated:
    """Releases of fresh records: estimates, V_s, and what the combining rule needs, (releases, 2) each."""

    sets: np.ndarray
    within: np.ndarray
    noise: np.ndarray
    records: np.ndarray

    def coverage(self, factor: float) -> np.ndarray:
        """Of both intervals at 95 %, V_s taken times a factor."""
        held = []
        for q, v, noise, records in zip(
            self.sets, self.within, self.noise, self.records, strict=True
        ):
            facts = Facts(SETS, 8_000.0, records, sanitized="once")
            found = combine(q, v, release=facts, noise_variance=Noise(factor * noise, df=7))
            held.append((found.low <= TRUTH) & (found.high >= TRUTH))
        return np.mean(held, axis=0)


def simulated(releases: int, records: int) -> Simulated:
    """Column 1 copies column 0 half of the time, so does column 2 column 1; noise by the Curator."""
    schema, rng, found = made.schema(SMALL), np.random.default_rng(3), []
    method = gb.AdaptiveGibbs(epsilon=0.02)
    for number in range(releases):
        values = rng.integers(0, SMALL, (records, 3))
        for j in (1, 2):
            copied = rng.random(records) < 0.5
            values[copied, j] = values[copied, j - 1]
        engine = LocalEngine.from_codes(secret(schema, values))
        curator = Curator(engine, method.plan(schema, None).total, schema, relation="add_remove")
        tables = method.run(curator, None)
        curator.close()
        sets = [two_shares(sample(tables, records, seed=number, set_index=s)) for s in range(SETS)]
        noise = noise_variance(
            tables, lambda c: two_shares(c)[0], seed=number, replicates=8, rows=3_000
        )
        q, v = (np.array(part) for part in zip(*sets, strict=True))
        found.append((q, v, noise.variance, float(tables.noisy_rows())))
    return Simulated(*(np.array(part) for part in zip(*found, strict=True)))


def two_shares(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """The estimates of TRUTH and their variances."""
    first, second = (codes.by_column[j] == 0 for j in (0, 1))
    share, one, other = second.mean(), second[first].mean(), second[~first].mean()
    parts = [
        p * (1 - p) / n
        for p, n in ((share, codes.rows), (one, first.sum()), (other, (~first).sum()))
    ]
    return np.array([share, one - other]), np.array([parts[0], parts[1] + parts[2]])


@pytest.mark.statistical
@pytest.mark.slow
def test_intervals_of_shares_have_their_level_and_v_s_is_the_variance_of_the_noise() -> None:
    """320 releases of 8,000 fresh records at epsilon .02; the noise has no seed.

    Each buys the table of all columns with geometric noise. 160 releases held the share in .944 and the
    difference in .894 of the intervals, and the variance was .95 and .87 of the truth. A share of
    intervals has a standard error of .018 at most here: .82 is four of them away; intervals without V_s
    held .59 and .51.
    Double the noise's scale makes the variance 3.3 times the truth.
    """
    found = simulated(320, 8_000)
    sampling = found.within.mean(axis=(0, 1))
    true = found.sets.mean(axis=1).var(axis=0, ddof=1)

    assert (found.coverage(1.0) > 0.82).all()
    assert (found.coverage(0.0) < (0.86, 0.65)).all()
    ratio = (found.noise.mean(axis=0) + sampling) / true
    assert ((ratio > 1 / 1.9) & (ratio < 1.9)).all()
    assert ((found.noise.mean(axis=0) * 4 + sampling) / true > 1.9).all()


def pairwise(law: np.ndarray) -> Tables:
    """1-way tables and two pairs of a law, and a log-linear model of just these that has them."""
    cliques = CLIQUES[:6]
    whole = made.maximum_entropy(np.ones(SIZES), [(c, made.margin(law, c)) for c in cliques])
    a, b, c = (made.margin(whole, clique) for clique in ((0, 1), (1, 2), (1,)))
    theta = tuple(
        {(0, 1): np.log(a), (1, 2): np.log(b), (1,): -np.log(c), (3,): np.log(made.margin(whole, (3,)))}
        .get(clique, np.zeros([SIZES[j] for j in clique]))
        for clique in cliques
    )  # fmt: skip
    model = LogLinear(SIZES, cliques, theta, made.goals(whole, *cliques), closed=8_000)
    tables = tuple(counted(c, made.margin(whole, c)) for c in cliques)
    return Tables(made.schema(SIZES), tables, Recipe("loglinear", (), sweeps=20), model=model)


def group_law() -> np.ndarray:
    """Of the merged column's three groups, and another column."""
    return np.array([[0.2, 0.1], [0.1, 0.3], [0.05, 0.25]])


def merged_tables() -> Tables:
    """A 1-way table of four levels, a pair over their three groups, and the model of the groups."""
    law = group_law()
    model = LogLinear((3, 2), ((0, 1),), (np.log(law),), merged=(MERGED, None))
    levels = law.sum(axis=1)[MERGED.groups] * MERGED.shares
    items = (counted((0,), levels), counted((0, 1), law), counted((1,), law.sum(axis=0)))
    return Tables(made.schema((4, 2)), items, Recipe("loglinear", (), sweeps=5), model=model)


def shares_of(table: Table, shift: float) -> np.ndarray:
    """Shares of a table, cells moved up and down in turn as noise would."""
    sizes = table.context.parent_sizes + table.context.target_sizes
    values = np.asarray(table.cells.values, dtype=np.float64).reshape(sizes) / RECORDS
    return values + shift * np.where(np.arange(values.size) % 2, 1.0, -1.0).reshape(sizes)
