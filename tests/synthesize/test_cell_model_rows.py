"""Rows of a cell model: the stated law, the same bytes however they are cut, and values in their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous.core.cell_model import CellModel, Draws
from gibbous.core.codes import Codes
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Column, Impossible, Schema, impossible_mask
from gibbous.core.tables import Recipe, Tables
from gibbous.sampling.cells import cell_rows as rows
from gibbous.sampling.cells.cell_index import bins_of, settled
from gibbous.sampling.cells.cell_rows import ready_cells
from gibbous.sampling.cells.parameters import parameters
from gibbous.sampling.sample import sample, stream
from tests.mechanisms.numeric_records import AGE, AREA, COST, SEX

SMALL = Schema((SEX, AGE, COST))


def model(draws: Draws = "fitted", **changes: Any) -> CellModel:
    """Four cells of SMALL: sex, cost missing; a covariance each."""
    spread = (
        np.array([[[100.0, 60.0], [60.0, 400.0]]] * 4) * np.array([1, 1, 0.25, 1])[:, None, None]
    )
    found = CellModel(
        sizes=(2, 1, 2),
        numbers=(1, 2),
        counts=np.array([50.0, 10.0, 30.0, 10.0]),
        prior=0.0,
        means=np.array([[30.0, 200.0], [35.0, 0.0], [60.0, 300.0], [65.0, 0.0]]),
        support=np.array([50.0, 10.0, 30.0, 10.0]),
        covariances=spread,
        freedom=np.array([49.0, 9.0, 29.0, 9.0]),
        draws=draws,
    )
    return replace(found, **changes)


def rows_of(found: CellModel, schema: Schema = SMALL, rows: int = 40_000) -> Codes:
    return sample(Tables(schema, (), Recipe("cells", ()), model=found), rows, seed=3)


def cells_of(codes: Codes) -> np.ndarray:
    gone = codes.values[:, 2] == COST.missing_code
    return np.asarray(codes.values[:, 0].astype(int) * 2 + gone)


@pytest.mark.statistical
def test_cells_come_with_their_shares_and_not_with_others() -> None:
    """Chi-square at 1e-6."""
    seen = np.bincount(cells_of(rows_of(model())), minlength=4)

    assert stats.chisquare(seen, np.array([0.5, 0.1, 0.3, 0.1]) * 40_000).pvalue > 1e-6
    assert stats.chisquare(seen, np.array([0.48, 0.12, 0.3, 0.1]) * 40_000).pvalue < 1e-6


@pytest.mark.statistical
def test_numbers_of_a_cell_are_normal_with_its_mean_and_covariance() -> None:
    """KS at 1e-6 of both whitened numbers; a spread 12 % larger is refused."""
    found = model()
    codes = rows_of(found, rows=60_000)

    for cell in (0, 2):
        own = cells_of(codes) == cell
        both = np.stack([codes.number(1)[own], codes.number(2)[own]])
        # Ages are whole numbers: spread over their rounding by the uniform part of the cost's digits.
        both[0] += (both[1] * 10 * 0.618) % 1 - 0.5
        apart = both - found.means[cell][:, None]
        white = np.linalg.solve(np.linalg.cholesky(found.covariances[cell]), apart)
        for one in white:
            assert stats.kstest(one, "norm").pvalue > 1e-6
            assert stats.kstest(one / 1.12, "norm").pvalue < 1e-6


def test_rows_are_the_same_however_they_are_cut() -> None:
    tables = Tables(SMALL, (), Recipe("cells", ()), model=model("posterior"))
    whole = sample(tables, 40_000, seed=5, set_index=2, threads=1)

    for other in (
        sample(tables, 40_000, seed=5, set_index=2, threads=4),
        *stream(tables, 40_000, seed=5, set_index=2, chunk=40_000),
    ):
        assert np.array_equal(whole.values, other.values)
    start = 0
    for part in stream(tables, 40_000, seed=5, set_index=2, chunk=7_777):
        stop = start + part.rows
        assert np.array_equal(whole.values[start:stop], part.values)
        for place in (1, 2):
            assert np.array_equal(whole.number(place)[start:stop], part.number(place))
        start = stop


def test_seeds_and_sets_change_rows() -> None:
    tables = Tables(SMALL, (), Recipe("cells", ()), model=model())

    drawn = [
        sample(tables, 50, seed=s, set_index=i).number(1).tolist()
        for s, i in ((1, 0), (1, 1), (2, 0))
    ]

    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_numbers_lie_in_their_bounds_on_their_grid_and_in_the_bin_of_their_code() -> None:
    wide = model(covariances=np.array([np.eye(2) * 1e5] * 4))

    codes = rows_of(wide, rows=5_000)

    for place, column in ((1, AGE), (2, COST)):
        kept = codes.values[:, place] < column.bins
        numbers = codes.number(place)[kept]
        assert numbers.min() == column.edges[0]
        assert numbers.max() == column.edges[-1]
        assert np.array_equal(bins_of(column, numbers), codes.values[kept, place])
        assert np.array_equal(settled(column, numbers), numbers)
    assert (codes.number(1) % 1 == 0).all()


def test_a_missing_number_is_a_missing_code() -> None:
    codes = rows_of(model(counts=np.array([0.0, 1.0, 0.0, 1.0])), rows=500)

    assert (codes.values[:, 2] == COST.missing_code).all()


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (
            Column("x", "numeric", edges=(0.05, 0.95), decimals=1),
            [-3.0, 0.26, 7.0],
            [0.1, 0.3, 0.9],
        ),
        (Column("x", "numeric", edges=(0.5, 9.5), integer=False), [0.1, 3.3], [0.5, 3.3]),
        (Column("x", "numeric", edges=(0, 9), integer=True), [-1.0, 3.6, 12.0], [0, 4, 9]),
        (Column("x", "date", edges=(700000, 700100)), [700000.4, 900000.0], [700000, 700100]),
    ],
    ids=["decimals", "real", "integer", "date"],
)
def test_numbers_settle_on_values_that_the_column_can_have(
    column: Column, values: list[float], expected: list[float]
) -> None:
    assert settled(column, np.array(values)).tolist() == expected


def test_fitted_sets_share_parameters_and_posterior_sets_do_not() -> None:
    fixed = [parameters(SMALL, model("fitted"), 1, i) for i in (0, 1)]
    drawn = [parameters(SMALL, model("posterior"), 1, i) for i in (0, 1)]

    assert np.array_equal(fixed[0].shares, fixed[1].shares)
    assert np.array_equal(fixed[0].means, model().means)
    assert not np.array_equal(drawn[0].shares, drawn[1].shares)
    assert not np.array_equal(drawn[0].means, drawn[1].means)
    assert not np.array_equal(drawn[0].roots, drawn[1].roots)


def refused(values: np.ndarray, law: Any) -> bool:
    return bool(stats.kstest(values, law.cdf).pvalue < 1e-6)


@pytest.mark.statistical
def test_posterior_shares_are_dirichlet_with_the_prior_in_them() -> None:
    """600 sets, KS at 1e-6; four times the records are refused, and so is another prior."""
    found = CellModel(
        (2,),
        (),
        np.array([50.0, 30.0]),
        8.0,
        np.zeros((2, 0)),
        np.ones(2),
        np.zeros((1, 0, 0)),
        np.ones(1),
    )
    first = np.array([parameters(Schema((SEX,)), found, 8, i).shares[0] for i in range(600)])

    assert not refused(first, stats.beta(54, 34))
    assert refused(first, stats.beta(54 * 4, 34 * 4))
    assert refused(first, stats.beta(54 + 12, 34))


@pytest.mark.statistical
def test_posterior_spreads_and_means_are_inverse_wishart_and_normal() -> None:
    """2,000 equal cells of one set, KS at 1e-6 against scipy; 30 % other spreads are refused."""
    cells, spread = 2000, np.array([[100.0, 60.0], [60.0, 400.0]])
    schema = Schema(
        (Column("c", "nominal", levels=tuple(range(cells))), AGE, replace(AGE, name="b"))
    )
    found = CellModel(
        (cells, 1, 1),
        (1, 2),
        np.ones(cells),
        0.0,
        np.tile([60.0, 30.0], (cells, 1)),
        np.full(cells, 30.0),
        np.tile(spread, (cells, 1, 1)),
        np.full(cells, 29.0),
    )

    own = parameters(schema, found, 8, 0)

    spreads = own.roots @ own.roots.transpose(0, 2, 1)
    # A marginal of inverse-Wishart(f, f S) of 2 columns: inverse-gamma((f - 1) / 2, f S_jj / 2).
    for place in (0, 1):
        values, variance = spreads[:, place, place], spread[place, place]
        assert not refused(values, stats.invgamma(14, scale=29 * variance / 2))
        assert refused(values, stats.invgamma(14 * 1.6, scale=29 * 1.6 * variance / 2))
        # A mean is t with f - 1 degrees of freedom around its estimate.
        law = {"loc": found.means[0, place], "scale": np.sqrt(variance * 29 / 28 / 30)}
        assert not refused(own.means[:, place], stats.t(28, **law))
        assert refused(own.means[:, place], stats.t(28, **law | {"scale": law["scale"] * 1.3}))
    slope = spreads[:, 0, 1] / spreads[:, 0, 0]
    assert abs(slope.mean() - 0.6) < 4 * slope.std() / np.sqrt(cells)


def test_a_model_of_nothing_draws_all_cells() -> None:
    for draws in ("fitted", "posterior"):
        codes = rows_of(model(draws, counts=np.zeros(4)), rows=400)  # type: ignore[arg-type]

        assert len(np.unique(cells_of(codes))) > (3 if draws == "fitted" else 0)


def test_structural_zeros_hold_for_cells_and_for_bins() -> None:
    schema = replace(
        SMALL,
        impossible=(
            Impossible((("sex", (0,)), ("cost", (COST.size - 1,)))),
            Impossible((("sex", (1,)), ("age", (1,)))),
        ),
    )

    codes = rows_of(model(), schema, rows=20_000)

    assert not impossible_mask(schema, codes.values).any()
    assert parameters(schema, model(), 1, 0).shares[1] == 0
    young = codes.number(1)[codes.values[:, 0] == 1]
    assert len(young) > 10
    assert (young < 40).all()


def test_rows_that_stay_impossible_are_drawn_uniformly() -> None:
    schema = replace(SMALL, impossible=(Impossible((("age", (0,)),)),))
    stuck = model(means=np.zeros((4, 2)), covariances=np.array([np.eye(2) * 1e-6] * 4))

    codes = rows_of(stuck, schema, rows=300)

    assert (codes.number(1) >= 40).all()
    assert codes.number(1).std() > 10


def test_categories_alone_are_drawn_without_numbers() -> None:
    only = CellModel(
        (2, 3),
        (),
        np.array([1.0, 0, 0, 0, 0, 3.0]),
        0.0,
        np.zeros((6, 0)),
        np.ones(6),
        np.zeros((1, 0, 0)),
        np.ones(1),
        "fitted",
    )

    codes = rows_of(only, Schema((SEX, AREA)), rows=1000)

    assert {tuple(row) for row in codes.values.tolist()} == {(0, 0), (1, 2)}
    assert codes.numbers == ()


def test_a_model_that_is_too_large_is_refused_with_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "MOST", 27)

    with pytest.raises(ResourceLimit, match="4 cells has 28 parameters"):
        ready_cells(SMALL, model())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": np.ones(3)}, "count"),
        ({"means": np.ones((4, 1))}, "mean"),
        ({"covariances": np.ones((2, 2, 2))}, "covariance"),
        ({"freedom": np.ones(1)}, "degrees"),
        ({"numbers": (2, 1)}, "increase"),
    ],
    ids=["counts", "means", "covariances", "freedom", "numbers"],
)
def test_a_model_of_wrong_shape_is_a_mistake_of_the_code(changes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model(**changes)
