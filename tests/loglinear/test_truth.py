"""The model is what it says: fitted to maximum entropy, drawn from its law, conditionals included.

Statistical tests have fixed seeds and level 3e-5 (see `made.unlikely`); a law tilted by a tenth is
noticed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbous.core.errors import UsageError
from gibbous.core.schema import impossible_mask
from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear import (
    Schedule,
    Target,
    fit,
    independent,
    laws,
    margins,
    model_rows,
    start,
    sweep,
    with_cliques,
)
from gibbous.sampling.loglinear.chains import Chains
from gibbous.sampling.loglinear.fit import blocks_of
from gibbous.sampling.sample import sample
from tests.loglinear import made

BINARY = (2, 2, 2, 2)
LOOP = ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2, 3))
MIXED = (2, 3, 2, 4)
CHAINS = 30_000


@pytest.fixture
def by_monte_carlo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models take the way of large ones."""
    monkeypatch.setattr(laws, "MOST_CELLS", 0)


def _fitted_to(shares: np.ndarray, cliques: tuple[tuple[int, ...], ...], schema: object = None):  # type: ignore[no-untyped-def]
    given = schema or made.schema(shares.shape)
    every = [(j,) for j in range(shares.ndim)] + list(cliques)
    targets = [Target(c, made.margin(shares, c)) for c in every]
    ones = [t.shares for t in targets[: shares.ndim]]
    model = independent(ones)
    chains = start(model, given, ones, CHAINS, seed=1)  # type: ignore[arg-type]
    chains = sweep(model, chains, 3)
    model, chains = fit(model, chains, targets, Schedule(steps=20, sweeps=3))
    last = Schedule(steps=30, sweeps=2, fall=0)
    return *fit(model, chains, targets, last), targets


def _gaps(model: LogLinear, targets: list[Target]) -> list[float]:
    law = made.law(model)
    return [float(np.abs(made.margin(law, t.columns) - t.shares).sum() / 2) for t in targets]


def _wanted(shares: np.ndarray, targets: list[Target], possible: np.ndarray) -> np.ndarray:
    return made.maximum_entropy(possible, [(t.columns, t.shares) for t in targets])


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [1, 2])
def test_fitted_by_chains_is_the_maximum_entropy_law(seed: int, by_monte_carlo: None) -> None:
    truth = made.law(made.model(BINARY, (tuple(range(4)),), seed))

    model, _, targets = _fitted_to(truth, LOOP)

    wanted = _wanted(truth, targets, np.ones(BINARY))
    found = made.law(model)
    # Fifty steps of 30,000 chains: a cell of share p is off by far less than its error of one sample.
    error = np.sqrt(wanted * (1 - wanted) / CHAINS)
    assert (np.abs(found - wanted) < 2.5 * error).all()
    assert np.abs(wanted - truth).max() > 5 * error.max(), "or the cliques say everything"
    assert max(_gaps(model, targets)) < 0.01


def test_fitted_exactly_is_the_maximum_entropy_law() -> None:
    truth = made.law(made.model(MIXED, (tuple(range(4)),), 3))

    model, _, targets = _fitted_to(truth, LOOP)

    assert np.allclose(made.law(model), _wanted(truth, targets, np.ones(MIXED)), atol=1e-7)
    assert max(_gaps(model, targets)) < 1e-7


@pytest.mark.statistical
def test_fitted_under_structural_zeros_stays_inside_them(by_monte_carlo: None) -> None:
    schema = made.schema(MIXED, {0: (1,), 1: (2,)}, {1: (0,), 2: (1,), 3: (3,)})
    truth = made.law(made.model(MIXED, (tuple(range(4)),), 5), schema)

    model, chains, targets = _fitted_to(truth, LOOP, schema)

    wanted = _wanted(truth, targets, (truth > 0).astype(float))
    found = made.law(model, schema)
    error = np.sqrt(wanted * (1 - wanted) / CHAINS) + 1e-9
    assert (np.abs(found - wanted) < 2.5 * error).all()
    assert not impossible_mask(schema, chains.state.T).any()


@pytest.mark.parametrize("way", ["chains", "at once"])
def test_fitting_on_and_on_to_cells_of_share_zero_undoes_nothing(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "chains":
        monkeypatch.setattr(laws, "MOST_CELLS", 0)
    shares = np.array([[0.3, 0.1, 0.0], [0.0, 0.2, 0.4], [0.0, 0.0, 0.0]])
    ones = [made.margin(shares, (j,)) for j in (0, 1)]
    targets = [Target((0,), ones[0]), Target((1,), ones[1]), Target((0, 1), shares)]
    model = independent(ones)
    chains = start(model, made.schema((3, 3)), ones, 20_000, seed=1)

    for _ in range(6):
        model, chains = fit(model, chains, targets, Schedule(steps=20, sweeps=1))

    assert np.abs(made.law(model) - shares).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("way", ["chains", "at once"])
def test_targets_that_contradict_each_other_do_not_drive_theta_away(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "chains":
        monkeypatch.setattr(laws, "MOST_CELLS", 0)
    truth = made.law(made.model((2, 3, 2), ((0, 1, 2),), 4))
    tilt = np.where(np.indices((2, 3)).sum(axis=0) % 2, 0.02, -0.02)
    ones = [made.margin(truth, (j,)) for j in range(3)]
    targets = [Target((j,), one) for j, one in enumerate(ones)]
    targets += [
        Target((0, 1), made.margin(truth, (0, 1)) + tilt, 0.02),
        Target((0, 1, 2), truth, 0.02),
    ]
    model = independent(ones)
    chains = start(model, made.schema((2, 3, 2)), ones, 20_000, seed=1)

    for _ in range(8):
        model, chains = fit(model, chains, targets, Schedule(steps=20, sweeps=1))

    assert np.abs(made.law(model) - truth).max() < 0.02
    assert max(np.abs(theta).max() for theta in model.theta) < 8.0


def test_a_ridge_stops_short_of_the_target() -> None:
    truth = made.law(made.model((3, 4), ((0, 1),), 2))
    ones = [made.margin(truth, (j,)) for j in (0, 1)]
    model = independent(ones)
    chains = start(model, made.schema((3, 4)), ones, 10, seed=1)
    tilt = np.array([[-1, 1, -1, 1], [1, -1, 1, -1], [0, 0, 0, 0]])
    noisy = truth + 0.05 * tilt
    target = Target((0, 1), noisy, sigma=0.02, ridge=0.02)

    model, _ = fit(model, chains, [Target((j,), ones[j]) for j in (0, 1)] + [target])

    theta = dict(zip(model.cliques, model.theta, strict=True))[0, 1]
    met = made.law(model) + 0.02 * theta
    assert noisy.min() < 0, "targets may be negative"
    assert np.allclose(met, noisy, atol=1e-5)
    assert abs(theta.mean()) < 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("blocks", [(), ((0, 1), (2, 3))], ids=["one by one", "together"])
@pytest.mark.parametrize("ruled", [False, True], ids=["free", "structural zeros"])
def test_sweeps_reach_the_law(blocks: tuple[tuple[int, int], ...], ruled: bool) -> None:
    rules = [{0: (1,), 1: (2,)}, {1: (0,), 2: (1,), 3: (3,)}] if ruled else []
    schema = made.schema(MIXED, *rules)
    model = made.model(MIXED, (*LOOP, (1,)), 8, blocks=blocks)
    ones = [np.ones(size) for size in MIXED]

    chains = sweep(model, start(model, schema, ones, 40_000, seed=3), 25)

    seen = margins(chains, MIXED, [(0, 1, 2, 3)])[0]
    assert not made.unlikely(seen, made.law(model, schema))
    tilted = made.model(MIXED, (*LOOP, (1,)), 8, spread=0.88)
    assert made.unlikely(seen, made.law(tilted, schema)), "thetas of 1.1 times the size are noticed"


@pytest.mark.statistical
@pytest.mark.parametrize("way", ["chains", "at once"])
@pytest.mark.parametrize("fixed", [(0,), (1, 3), (0, 2)], ids=str)
def test_rows_given_some_columns_follow_the_conditional_law(
    way: str, fixed: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = (2, 2, 2, 2, 2)
    schema = made.schema(sizes, {0: (1,), 4: (1,)})
    model = made.model(sizes, (*LOOP, (3, 4), (0, 4)), 11, blocks=((0, 1),))
    if way == "chains":
        monkeypatch.setattr(laws, "MOST_CELLS", 0)
    truth = made.law(model, schema)
    count = 30_000

    for codes in itertools.product(*(range(sizes[j]) for j in fixed)):
        given = dict(zip(fixed, codes, strict=True))
        drawn = sample(made.tables(schema, model, 25), count, seed=2, given=given).by_column
        assert all((drawn[j] == code).all() for j, code in given.items())

        seen = margins(np.ascontiguousarray(drawn), sizes, [tuple(range(5))])[0]
        inside = tuple(given.get(j, slice(None)) for j in range(5))
        conditional = truth[inside] / truth[inside].sum()
        assert not made.unlikely(seen[inside], conditional)


@pytest.mark.statistical
@pytest.mark.parametrize("way", ["chains", "at once"])
def test_given_columns_may_differ_from_row_to_row(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, model = made.schema(MIXED), made.model(MIXED, LOOP, 3)
    if way == "chains":
        monkeypatch.setattr(laws, "MOST_CELLS", 0)
    column = np.arange(40_000) % 4

    drawn = sample(made.tables(schema, model, 25), 40_000, seed=2, given={3: column}).by_column

    assert np.array_equal(drawn[3], column)
    seen = margins(np.ascontiguousarray(drawn), MIXED, [(0, 1, 2, 3)])[0]
    truth = made.law(model, schema)
    for code in range(4):
        conditional = truth[..., code] / truth[..., code].sum()
        assert not made.unlikely(seen[..., code], conditional)
        assert made.unlikely(seen[..., code], truth.sum(axis=3)), "the other rows' codes show"


def test_refuses_given_columns_that_leave_no_possible_row() -> None:
    schema = made.schema((2, 2), {0: (1,), 1: (0, 1)})
    found = model_rows.ready(schema, made.model((2, 2), ((0, 1),)), 2)

    with pytest.raises(UsageError, match="no possible row"):
        model_rows.ModelRows(found, 1, 0).given({0: np.array(1)}, 0, 5, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({9: 0}, "column number 9"),
        ({0: 2}, "outside its levels"),
        ({0: np.zeros(3, dtype=int)}, "one a row"),
        ({0: 0.5}, "whole number"),
    ],
    ids=["no such column", "no such code", "other number of rows", "not whole"],
)
def test_refuses_given_codes_that_do_not_fit(given: dict[int, object], words: str) -> None:
    tables = made.tables(made.schema((2, 2)), made.model((2, 2), ((0, 1),)))

    with pytest.raises(UsageError, match=words):
        sample(tables, 5, seed=1, given=given)  # type: ignore[arg-type]


def test_tied_columns_are_found_and_mix() -> None:
    same = np.diag([0.4, 0.3, 0.3])
    apart = np.outer([0.5, 0.5], [0.2, 0.3, 0.5])

    tied = [Target((0, 1), same), Target((1, 2), apart.T)]
    assert blocks_of((3, 3, 2), tied) == ((0, 1),)
    near = np.full((3, 3), 1e-4) + same
    model = with_cliques(made.model((3, 3), ((0, 1),)), [])
    theta = np.log(near / near.sum())
    alone = type(model)((3, 3), ((0, 1),), (theta,))
    together = type(model)((3, 3), ((0, 1),), (theta,), blocks=((0, 1),))
    first = Chains(np.zeros((2, 20_000), dtype=np.uint8), (), 1)
    moved = [float((sweep(one, first, 4).state[0] != 0).mean()) for one in (alone, together)]

    assert moved[0] < 0.02
    assert abs(moved[1] - 0.6) < 0.02
