"""Counts of levels that discovery bought and the method inside uses: what they are, and that they help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import gibbous as gb
from gibbous.contract.saboteurs import patched
from gibbous.core.column import Column
from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import KnownCounts
from gibbous.encode.cell_text import column_numbers, lenient_codes
from gibbous.mechanisms import _bought_schema, adaptive_gibbs
from gibbous.mechanisms._bought_schema import bought_schema
from gibbous.mechanisms._discovery_parts import Parts
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import Gaussian, gaussian_for
from gibbous.privacy.text_curator import TextCurator
from gibbous.structure.contexts import margins
from gibbous.structure.known_counts import counts_of_levels, with_known_counts
from gibbous.structure.smoothing import Components, added
from tests.adaptive_gibbs.made import chain_rows, rounds_of, schema_of
from tests.discovery.conftest import PLENTY, engine_of

ALPHA = 1e-6


def told(frame: pl.DataFrame, rho: float) -> tuple[Schema, dict[str, KnownCounts], Curator]:
    """What so much buys: the schema and its known counts, and the coded records behind them."""
    known = Discovery(tuple(frame.columns), Unit())
    curator = TextCurator(engine_of(frame, known), PLENTY, known.schema(), relation="add_remove")
    parts = Parts(Fraction(rho), Fraction(1, 10**9), known, "add_remove")
    schema, counts = bought_schema(curator, known, parts)
    return schema, counts, curator.coded(schema, lenient_codes, column_numbers)


def off(frame: pl.DataFrame, rho: float, runs: int) -> np.ndarray:
    """Errors of all known counts against the codes of the records, in standard deviations."""
    found = []
    for _ in range(runs):
        schema, counts, view = told(frame, rho)
        exact = view.noisy_counts(
            margins(schema), gaussian_for(Fraction(10**6), len(schema), "add_remove", 1)
        )
        for name, one in counts.items():
            own = np.isfinite(one.variances)
            true = exact[schema.names.index(name)].cells.values.ravel()
            found.append((one.values - true)[own] / np.sqrt(one.variances[own]))
    return np.concatenate(found)


def within(errors: np.ndarray) -> bool:
    """Whether a sum of squares is that of standard normal errors, at level ALPHA."""
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], len(errors))
    return bool(low < float((errors**2).sum()) < high)


def table(rows: int = 3000) -> pl.DataFrame:
    """Columns of levels: with others, without, of whole numbers; each level far above any threshold."""
    draw = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "sex": draw.choice(["F", "M", "X"], rows, p=[0.5, 0.3, 0.2]),
            "ward": [
                f"w{v}" if v < 5 else f"note {i}" for i, v in enumerate(draw.integers(0, 6, rows))
            ],
            "score": [str(v) for v in draw.integers(0, 6, rows)],
        }
    )


@pytest.mark.slow
def test_known_counts_are_those_of_the_codes_with_the_noise_that_is_stated() -> None:
    errors = off(table(), 0.05, 40)

    assert len(errors) > 300
    assert within(errors)


@pytest.mark.slow
def test_the_law_catches_counts_without_noise() -> None:
    with patched(Gaussian, "add", value=lambda _, cells, **more: cells):
        assert not within(off(table(), 0.05, 40))


def test_a_level_that_stands_for_other_cells_too_is_not_known() -> None:
    kept, numbers = {"a": 50, "b": 30, "c": 9}, {"3": 50, "4": 30, "5": 9}

    def variances(column: Column, counts: Mapping[str, int]) -> list[float]:
        return counts_of_levels(column, counts, 2.0).variances.tolist()

    inf = np.inf
    alone = Column("x", "nominal", ("a", "b", "c"))
    assert variances(alone, kept) == [inf, 4, 4]
    beside = Column("x", "nominal", ("a", "b", "c"), other="other", missing=True)
    assert variances(beside, kept) == [4, 4, 4, inf, inf]
    assert variances(Column("x", "ordinal", (3, 4, 5)), numbers) == [inf, 4, inf]
    assert variances(Column("x", "binary", (3, 4)), numbers) == [inf, inf]
    assert variances(alone, {"b": 30}) == [inf, 4, inf]
    assert counts_of_levels(beside, kept, 2.0).values[:3].tolist() == [50, 30, 9]


def measured(seed: int = 0) -> tuple[Components, np.ndarray, KnownCounts]:
    """Two noisy columns, the true counts of the first, and known counts of some of its cells."""
    draw = np.random.default_rng(seed)
    true, other = np.array([500.0, 30.0, 70.0, 900.0]), np.array([1000.0, 500.0])
    tables = [
        ((0,), true + draw.normal(0, 10, 4), 100.0),
        ((1,), other + draw.normal(0, 10, 2), 100.0),
    ]
    variances = np.array([np.inf, 9.0, 16.0, 400.0])
    noise = draw.normal(0, np.sqrt(np.where(np.isinf(variances), 1e12, variances)))
    return added(Components(), tables), true, KnownCounts(true + noise, variances)


def test_the_estimate_is_that_of_dense_least_squares() -> None:
    before, true, known = measured()
    own, rows, size = before.found[(0,)], before.found[()], len(true)
    apart = np.eye(size) - 1 / size
    weights = 1 / known.variances
    information = own.precision * apart + rows.precision + np.diag(weights)
    seen = own.total + rows.total + weights * np.where(weights > 0, known.values, 0)
    spread = np.linalg.inv(information)
    expected = apart @ spread @ seen
    precision = (size - 1) / np.trace(apart @ spread @ apart)

    after = with_known_counts(before, {0: known})

    assert after.found[(0,)].precision == pytest.approx(precision)
    assert after.found[(0,)].total / precision == pytest.approx(expected)
    assert after.found[()] is rows
    assert after.found[(1,)] is before.found[(1,)]
    assert with_known_counts(before, {}).found == before.found


def test_the_stated_precision_is_that_of_repeated_noise() -> None:
    errors, precision = [], 0.0
    for seed in range(2000):
        before, true, known = measured(seed)
        one = with_known_counts(before, {0: known}).found[(0,)]
        errors.append(one.total / one.precision - (true - true.mean()))
        precision = one.precision
    variance = np.mean(np.square(errors)) * 4 / 3

    assert variance * precision == pytest.approx(1, abs=0.1)  # 6,000 degrees, but not of one size
    assert variance < 0.5 * 100


ROUNDS = gb.AdaptiveGibbs(cells=rounds_of(3, 4, 2, 5, 3))


def curator_of(known: Mapping[int, KnownCounts], sizes: tuple[int, ...], rows: int) -> Curator:
    from gibbous.contract.cases import secret
    from gibbous.disintegrate.records import LocalEngine

    schema = schema_of(*sizes)
    curator = Curator(
        LocalEngine.from_codes(secret(schema, chain_rows(sizes, rows))),
        ROUNDS.plan(schema, None).total,
        schema,
        relation="add_remove",
    )
    curator._known = known
    return curator


def batches(known: Mapping[int, KnownCounts]) -> tuple[list[list[int]], Fraction]:
    """Which columns a run buys single, purchase by purchase, and what all of it costs."""
    found: list[list[int]] = []
    honest = Curator.noisy_counts

    def noted(self: Curator, contexts: Any, noise: Any) -> Any:
        if all(len(one.columns) == 1 for one in contexts):
            found.append([one.columns[0] for one in contexts])
        return honest(self, contexts, noise)

    curator = curator_of(known, (3, 4, 2, 5, 3), 2000)
    with patched(Curator, "noisy_counts", value=noted):
        ROUNDS.run(curator, None)
    paid = sum((one.mu_squared for one in curator.spent), Fraction(0))
    curator.close()
    return found, paid


@pytest.mark.slow
def test_columns_that_are_known_are_not_bought_again_and_all_is_spent() -> None:
    sizes, rows = (3, 4, 2, 5, 3), chain_rows((3, 4, 2, 5, 3), 2000)
    exactly = {
        j: KnownCounts(np.bincount(rows[:, j], minlength=sizes[j]) * 1.0, np.ones(sizes[j]))
        for j in (1, 3)
    }
    nothing = {j: KnownCounts(np.zeros(sizes[j]), np.full(sizes[j], np.inf)) for j in (1, 3)}
    whole = ROUNDS.plan(schema_of(*sizes), None).total.mu_squared

    for known, again in (({}, [0, 1, 2, 3, 4]), (nothing, [0, 1, 2, 3, 4]), (exactly, [0, 2, 4])):
        found, paid = batches(known)
        assert found == [[0, 1, 2, 3, 4], again]
        assert whole * (1 - Fraction(1, 10**8)) < paid <= whole


def test_a_view_has_known_counts_of_columns_that_stay_and_a_part_or_noise_of_its_own_has_none() -> (
    None
):
    from gibbous.core.recode import Groups

    known = {j: KnownCounts(np.zeros(4), np.ones(4)) for j in (0, 1)}
    curator = curator_of(known, (4, 4), 50)

    assert curator.known_counts == known
    assert list(curator.recoded({0: Groups(np.array([0, 0, 1, 1]))}).known_counts) == [1]
    assert curator.recoded({}, known=None).known_counts == {}
    assert [one.known_counts for one in curator.split(2)] == [{}, {}]
    curator.close()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "shared"), [("adaptive_gibbs", True), ("per_set", False)])
def test_sets_with_noise_of_their_own_share_no_known_counts(method: str, shared: bool) -> None:
    seen: list[set[int]] = []

    def watched(known: Any, counts: Mapping[int, KnownCounts]) -> Any:
        seen.append(set(counts))
        return known

    counted: set[int] = set()
    honest: Callable[..., KnownCounts] = _bought_schema.counts_of_levels

    def counting(column: gb.Column, *given: Any) -> KnownCounts:
        counted.add(frame.columns.index(column.name))
        return honest(column, *given)

    asked: Any = gb.AdaptiveGibbs(epsilon=3, delta=1e-6)
    if method == "per_set":
        asked = gb.PerSet(asked)
    frame = table()
    with (
        patched(adaptive_gibbs, "reckoned", value=watched),
        patched(_bought_schema, "counts_of_levels", value=counting),
    ):
        gb.synthesize(
            frame, Discovery.of(frame, Unit()), asked, sets=2, ledger=gb.Ledger.ephemeral()
        )

    # Of scores once in about forty runs noise hides that they are levels: nothing is counted of them then.
    assert counted in ({0, 1}, {0, 1, 2})
    assert seen == ([counted] if shared else [set(), set()])
