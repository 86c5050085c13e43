"""V_s by drawing the noise again: the law of the noise, the size of V_s, and what it leaves alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import UsageError
from gibbous.core.tables import Dense, LogLinear, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.noise_replicates import noise, noise_variance, redrawn
from gibbous.evaluation.inference.release_facts import Facts
from tests.infer.made import cross, share_of_first

COUNTS = np.array([300, 200, 260, 240])  # of (c0, c1); share of c0 = yes: .5


@pytest.mark.parametrize(
    "info",
    [
        NoiseInfo("geometric", 0.5),
        NoiseInfo("geometric", 7.0),
        NoiseInfo("gaussian", 0.4),
        NoiseInfo("gaussian", 9.0),
        NoiseInfo("gaussian", 3e4),
    ],
    ids=lambda i: f"{i.law} {i.scale:g}",
)
def test_noise_has_the_published_variance_and_no_other(info: NoiseInfo) -> None:
    """n = 200,000: the variance is known within 1 % (three standard errors), so 5 % is seen."""
    draws = noise(info, 200_000, key=5).astype(np.float64)
    want = _exact_variance(info)

    assert abs(draws.mean()) < 4 * math.sqrt(want / len(draws))
    assert draws.var() == pytest.approx(want, rel=0.025)
    assert draws.var() != pytest.approx(
        _exact_variance(replace(info, scale=1.1 * info.scale)), rel=0.025
    )
    assert draws.var() != pytest.approx(
        _exact_variance(replace(info, scale=0.9 * info.scale)), rel=0.025
    )


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_noise_follows_its_law_cell_by_cell(law: str) -> None:
    """Frequencies of -6..6 against the exact law, 4 standard errors each."""
    info = NoiseInfo(law, 2.0)  # type: ignore[arg-type]
    draws = noise(info, 200_000, key=8)
    support, shares = _law(info)

    for value in range(-6, 7):
        want = float(shares[support == value][0])
        assert abs((draws == value).mean() - want) < 4 * math.sqrt(want * (1 - want) / len(draws))


def test_v_s_of_a_share_is_its_closed_form() -> None:
    """The share of a full table without clipped cells, R = 250: V_s is known within 9 % (1 s.e.)."""
    tables = cross(COUNTS, scale=6.0)
    cell = tables.items[0].noise.variance
    total = COUNTS.sum()
    want = 4 * cell * 0.5 * 0.5 / total**2

    found = noise_variance(tables, share_of_first, seed=3, replicates=250)

    assert found.variance[0] == pytest.approx(want, rel=0.3)
    assert found.df == 249


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_v_s_follows_the_scale(factor: float) -> None:
    one = noise_variance(cross(COUNTS, 6.0), share_of_first, seed=3, replicates=120)
    other = noise_variance(cross(COUNTS, 6.0 * factor), share_of_first, seed=3, replicates=120)

    assert other.variance[0] / one.variance[0] == pytest.approx(factor**2, rel=0.3)


def test_v_s_does_not_hold_the_randomness_of_the_rows() -> None:
    """With next to no noise V_s is next to nothing, however few rows a half has."""
    tables = cross(COUNTS, scale=0.05)

    found = noise_variance(tables, share_of_first, seed=3, replicates=100, rows=200)

    assert found.variance[0] < 1e-6  # rows alone: .25 / 200 = 1.25e-3


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    tables = cross(COUNTS, scale=6.0)

    one, same, other = (
        noise_variance(tables, share_of_first, seed=s, replicates=20).variance for s in (1, 1, 2)
    )

    assert one.tobytes() == same.tobytes()
    assert one.tobytes() != other.tobytes()


def test_a_thresholded_table_keeps_what_exceeds_its_threshold_again() -> None:
    context = Context((0,), (), (4,), (), support="seen")
    cells = Sparse(
        np.zeros(3, dtype=np.uint64),
        np.array([0, 1, 3], dtype=np.uint64),
        np.array([500, 21, 22], dtype=np.int64),
    )
    tables = replace(
        cross(COUNTS, 1.0), items=(Table(context, cells, NoiseInfo("geometric", 8.0, 20)),)
    )

    found = [redrawn(tables, 1, replicate).items[0].cells for replicate in range(40)]

    assert all(isinstance(c, Sparse) and (c.values > 20).all() for c in found)
    assert all(set(c.levels.tolist()) <= {0, 1, 3} for c in found)
    assert {len(c.values) for c in found} > {2}


def test_noise_is_fresh_in_every_table_and_replicate() -> None:
    tables = cross(np.zeros(256), scale=3.0)
    tables = replace(tables, extra=tables.items)

    drawn = [
        table.cells.values.tobytes()
        for replicate in range(3)
        for again in [redrawn(tables, 7, replicate)]
        for table in again.items + again.extra
    ]

    assert len(set(drawn)) == 6


def test_intervals_allow_for_a_noise_variance_of_ten_replicates() -> None:
    """20,000 estimates; noise and the rows' own part both as large as everything else together.

    V_s is cut to 0 for one in sixteen. A coverage is known within .0015: without its standard error
    in the degrees of freedom .938, with it .953.
    """
    rng = np.random.default_rng(4)
    count, replicates = 20_000, 10
    shared = rng.normal(size=(1 + replicates, 1, count))
    halves = iter((shared + rng.normal(size=(1 + replicates, 2, count))).reshape(-1, count))

    found = noise_variance(
        cross(COUNTS, 6.0), lambda _: next(halves), seed=1, replicates=replicates, rows=10
    )
    each = combine(
        np.sqrt(3.0) * rng.normal(size=(1, count)),
        np.ones((1, count)),
        release=Facts(sets=1, rows=1e6, records=1e6, sanitized="once"),
        noise_variance=found,
    )

    assert found.error is not None
    assert np.mean(found.error**2) == pytest.approx((2**2 + 1) / 9, rel=0.15)
    assert (found.variance == 0).mean() == pytest.approx(0.06, abs=0.01)
    assert np.mean((each.low < 0) & (each.high > 0)) > 0.945


def test_an_estimate_that_few_replicates_have_is_not_a_number_and_is_said() -> None:
    calls = iter(range(10_000))

    def estimator(codes: Codes) -> np.ndarray:
        missing = next(calls) % 3 == 0
        return np.array([math.nan if missing else codes.by_column[0].mean(), 1.0 * codes.rows])

    found = noise_variance(cross(COUNTS, 6.0), estimator, seed=1, replicates=30)

    assert math.isnan(found.variance[0])
    assert found.variance[1] == 0
    assert any("do not exist" in text for text in found.notes)


@pytest.mark.slow
def test_the_shift_by_clipping_is_found_and_without_clipping_there_is_none() -> None:
    """Noise can only add to empty cells: E max(g, 0) is half of E|g|, for each of the four of c0."""
    rare = np.array([2_000, 0, 0, 0, 0, 0, 0, 0])
    scale = 20.0

    clipped = noise_variance(cross(rare, scale), share_of_first, seed=1, replicates=120)
    whole = noise_variance(cross(10 * COUNTS, 6.0), share_of_first, seed=1, replicates=120)

    assert clipped.shift is not None
    assert whole.shift is not None
    assert clipped.shift[0] == pytest.approx(4 * scale / 2 / (2_000 + 7 * scale / 2), rel=0.25)
    assert abs(whole.shift[0]) < 4 * math.sqrt(whole.variance[0] / 120)


def test_a_model_saved_beside_its_tables_is_fitted_again() -> None:
    tables = cross(COUNTS, 6.0)
    seen: list[int] = []

    def refit(fresh: Tables) -> Tables:
        seen.append(1)
        return replace(fresh, model=None)

    found = noise_variance(
        replace(tables, model=LogLinear((2, 2), (), ())),
        share_of_first,
        seed=1,
        replicates=20,
        refit=refit,
    )

    assert len(seen) == 20
    assert found.variance[0] > 0


def test_a_model_that_cannot_be_fitted_again_leaves_v_s_unknown() -> None:
    """Its clique of three columns is in none of the tables."""
    theta = np.zeros((2, 2, 2))
    wide = cross(np.zeros(8), 6.0)
    tables = replace(
        cross(COUNTS, 6.0),
        schema=wide.schema,
        recipe=Recipe("loglinear", ()),
        model=LogLinear((2, 2, 2), ((0, 1, 2),), (theta,)),
    )

    found = noise_variance(tables, share_of_first, seed=1)

    assert np.isnan(found.variance).all()
    assert any("fitted again" in text for text in found.notes)


def test_one_replicate_is_refused() -> None:
    with pytest.raises(UsageError, match="two or more"):
        noise_variance(cross(COUNTS, 6.0), share_of_first, replicates=1)


def test_published_tables_are_not_changed() -> None:
    tables = cross(COUNTS, 6.0)

    noise_variance(tables, share_of_first, replicates=5)

    cells = tables.items[0].cells
    assert isinstance(cells, Dense)
    assert cells.values.reshape(-1).tolist() == COUNTS.tolist()


def _law(info: NoiseInfo) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(40 * info.scale) + 2
    support = np.arange(-reach, reach + 1)
    if info.law == "geometric":
        weights = np.exp(-np.abs(support) / info.scale)
    else:
        weights = np.exp(-(support**2) / (2 * info.scale**2))
    return support, weights / weights.sum()


def _exact_variance(info: NoiseInfo) -> float:
    support, shares = _law(info)
    return float((shares * support.astype(np.float64) ** 2).sum())
