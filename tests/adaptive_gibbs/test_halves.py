"""Rows below and above the middles of two ordered columns: what is bought, what it costs, what it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm, spearmanr

from gibbous.contract.runs import described
from gibbous.contract.saboteurs import patched
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import LogLinear
from gibbous.mechanisms import _adaptive_margins, adaptive_gibbs
from gibbous.mechanisms._adaptive_margins import HALVES, SIDES_BLURRED, measure_halves
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.noise import Gaussian
from gibbous.structure.rank_moments import halves
from gibbous.write.release_digest import model_arrays
from tests.adaptive_gibbs.made import paid, ran, rounds_of, schema_of
from tests.blinded import blinded

ALPHA = 1e-6


def ordered(columns: int, levels: int = 16, *, missing: bool = False) -> Schema:
    return Schema(
        tuple(
            Column(f"c{j}", "ordinal", levels=tuple(range(levels)), missing=missing)
            for j in range(columns)
        )
    )


def normal_rows(rows: int, columns: int, correlation: float, levels: int = 16) -> np.ndarray:
    """Levels of equal mass of normal numbers with one correlation."""
    draw = np.random.default_rng(3)
    common, own = draw.normal(size=(rows, 1)), draw.normal(size=(rows, columns))
    numbers = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return np.minimum((norm.cdf(numbers) * levels).astype(np.int64), levels - 1)


class Enough(Exception):
    """Ends a run after its purchase."""


@contextmanager
def noted(found: list[Any], *, alone: bool = False) -> Iterator[None]:
    """What each run bought: what is known afterwards, what was left before and after."""

    def watched(curator: Any, known: Any, split: Any, left: Fraction) -> Any:
        after = measure_halves(curator, known, split, left)
        found.append((after[0], split, left, after[1]))
        if alone:
            raise Enough
        return after

    with patched(adaptive_gibbs, "measure_halves", value=watched):
        yield


def errors(runs: int) -> np.ndarray:
    """Of all pairs: noisy covariance less that of the records, in standard deviations as stated."""
    schema, rows = ordered(6), normal_rows(4000, 6, 0.5)
    bought: list[Any] = []
    with noted(bought, alone=True):
        for _ in range(runs):
            with suppress(Enough):
                ran(AdaptiveGibbs(epsilon=10.0), schema, rows)
    found = []
    for known, *_ in bought:
        for (i, j), (noisy, error) in known.halves.items():
            own = [known.shares[k] for k in (i, j)]
            above = [halves(one, 16) == 1 for one in own]
            means = [float(one[side].sum()) for one, side in zip(own, above, strict=True)]
            sides = [
                side[rows[:, k]] - mean for side, k, mean in zip(above, (i, j), means, strict=True)
            ]
            true = float((sides[0] * sides[1]).sum())
            found.append((noisy - true / known.rows) / error)
    return np.array(found)


def within(found: np.ndarray) -> bool:
    """Whether a sum of squares is that of standard normal errors, at level ALPHA."""
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], len(found))
    return bool(low < float((found**2).sum()) < high)


@pytest.mark.slow
def test_the_covariance_is_that_of_the_records_with_the_error_that_is_stated() -> None:
    found = errors(20)

    assert len(found) == 20 * 15
    assert within(found)


@pytest.mark.slow
def test_the_law_of_the_error_catches_counts_of_other_noise() -> None:
    honest = Gaussian.add

    def twice(self: Gaussian, cells: Any, **more: Any) -> Any:
        noisy = honest(self, cells, **more)
        return type(noisy)(2 * noisy.values - cells.values)

    with patched(Gaussian, "add", value=twice):
        assert not within(errors(20))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [4000, 40_000])
def test_they_cost_a_fiftieth_at_most_and_all_is_spent(rows: int) -> None:
    bought: list[Any] = []
    schema = ordered(4)
    method = AdaptiveGibbs(epsilon=10.0, cells=rounds_of(*schema.sizes))
    with noted(bought):
        _, curator = ran(method, schema, normal_rows(rows, 4, 0.3))
    ((known, split, before, after),) = bought

    assert len(known.halves) == 6
    price = before - after
    assert price <= split.rho * HALVES
    assert (price < split.rho * HALVES / 2) == (rows == 40_000)  # no more than their use is worth
    assert all(error < SIDES_BLURRED / 8 for _, error in known.halves.values())
    whole = method.plan(schema, None).total.mu_squared
    assert whole * (1 - Fraction(1, 10**8)) < paid(curator) <= whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "rows"),
    [(ordered(4), 300), (schema_of(16, 16, 16, 16), 20_000), (ordered(4, 2), 20_000)],
    ids=["few records", "no order", "two levels"],
)
def test_nothing_is_bought_where_it_tells_nothing(schema: Schema, rows: int) -> None:
    bought: list[Any] = []
    levels = schema.sizes[0]
    with noted(bought):
        ran(AdaptiveGibbs(epsilon=1.0), schema, normal_rows(rows, 4, 0.3, levels))

    assert all(known.halves == {} and before == after for known, _, before, after in bought)


def cut_on_records(rows: np.ndarray) -> AbstractContextManager[None]:
    """A broken build: the middles are those of the records."""

    def cut(own: np.ndarray, levels: int) -> np.ndarray:
        middle = max(1, int(np.median(rows)))
        return np.array([0] * middle + [1] * (levels - middle) + [2] * (len(own) - levels))

    return patched(_adaptive_margins, "halves", value=cut)


def told(rows: np.ndarray) -> tuple[object, ...]:
    """All that a blind run says."""
    schema = ordered(3, missing=True)
    with blinded():
        tables, _ = ran(AdaptiveGibbs(epsilon=20.0, cells=rounds_of(*schema.sizes)), schema, rows)
    assert isinstance(tables.model, LogLinear)
    arrays = {name: one.tobytes() for name, one in model_arrays(tables.model).items()}
    return (*described(tables), arrays)


@pytest.mark.parametrize(
    ("build", "same"), [(lambda _: nullcontext(), True), (cut_on_records, False)]
)
@pytest.mark.slow
def test_cutting_where_the_records_have_their_middle_is_caught(
    build: Callable[[np.ndarray], AbstractContextManager[None]], same: bool
) -> None:
    found = []
    for rows in (normal_rows(900, 3, 0.3), np.minimum(normal_rows(900, 3, 0.3), 4)):
        with build(rows):
            found.append(told(rows))

    assert (found[0] == found[1]) is same


def apart(rows: np.ndarray) -> float:
    """Root mean square change of the Spearman correlations, of one release."""
    from gibbous.sampling.loglinear.model_rows import ModelRows, ready

    tables, _ = ran(AdaptiveGibbs(epsilon=0.5), ordered(rows.shape[1]), rows)
    assert isinstance(tables.model, LogLinear)
    found = ready(tables.schema, tables.model, tables.recipe.sweeps)
    drawn = ModelRows(found, 5, 0).rows(0, len(rows), 1).values
    change = spearmanr(rows).statistic - spearmanr(drawn).statistic
    return float(np.sqrt(np.mean(change[np.triu_indices(rows.shape[1], 1)] ** 2)))


@pytest.mark.slow
def test_rank_correlations_survive_where_no_table_of_the_pair_is_bought() -> None:
    """Sixteen columns in strongly tied pairs, which the method buys first; weak ties between all."""
    draw = np.random.default_rng(5)
    common, tied, own = (draw.normal(size=(50_000, n)) for n in (1, 8, 16))
    numbers = (
        np.sqrt(0.12) * common + np.sqrt(0.78) * tied[:, np.arange(16) // 2] + np.sqrt(0.1) * own
    )
    rows = np.minimum((norm.cdf(numbers) * 16).astype(np.int64), 15)

    with patched(adaptive_gibbs, "measure_halves", value=lambda _c, known, _s, left: (known, left)):
        without = apart(rows)

    assert apart(rows) < 0.7 * without  # five runs each: .052 to .058, and .108 to .109
