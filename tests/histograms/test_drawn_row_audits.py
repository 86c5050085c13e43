"""Audits of the drawn rows and of the choice: each honest build holds, each saboteur is caught."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.contract.audit import audit, lower_bound
from gibbous.contract.cases import Neighbors, secret
from gibbous.contract.saboteurs import patched
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.cdf import Cdf
from gibbous.perturb.posterior import Posterior
from gibbous.perturb.smoothed import Smoothed
from gibbous.privacy.calibrate.dirichlet import dirichlet_alpha, prior_alpha, smoothed_share
from gibbous.sampling import cdf_rows, urn_rows
from gibbous.sampling.urn_rows import PriorRows, SmoothedRows, UrnRows
from gibbous.structure.contexts import joint
from tests.histograms import exact_laws

SMALL = Schema(
    (Column("x", "binary", levels=(0, 1)), Column("y", "nominal", levels=("a", "b", "c")))
)


def sabotaged_urn() -> Any:
    """Draws with a tenth of the alpha that is priced."""
    honest = urn_rows.origins

    def less(posterior: Posterior, *args: Any, **named: Any) -> Any:
        return honest(Posterior(posterior.alpha / 10, posterior.cells), *args, **named)

    return patched(urn_rows, "origins", value=less)


def sabotaged_mixture() -> Any:
    """Rows from the uniform law a tenth as often as is priced."""
    honest = urn_rows.uniform_share

    def less(smoothed: Any, draws: int, words: Any) -> np.ndarray:
        tenth: np.ndarray = honest(smoothed, draws, words) & (words(draws) % np.uint64(10) == 0)
        return tenth

    return patched(urn_rows, "uniform_share", value=less)


def sabotaged_choice() -> Any:
    """A choice that is ten times as sure as is priced."""
    honest = cdf_rows.bands

    def surer(grid: Any, counts: np.ndarray, epsilon: Fraction) -> Any:
        return honest(grid, counts, 10 * epsilon)

    return patched(cdf_rows, "bands", value=surer)


TABLES = (np.array([[0, 0]] * 3 + [[1, 2]]), np.array([[0, 0]] * 3 + [[0, 1]]))


def both_unique(draw: Any, table: np.ndarray, pairs: int, seed: int) -> int:
    """How often two rows that are priced together both equal the record that differs."""
    engine = LocalEngine.from_codes(secret(SMALL, table))
    counts = engine.tally((joint(SMALL, "seen"),))
    rows = draw(counts, SMALL, 2 * pairs, exact_laws.seeded(seed)).values.reshape(pairs, 2, 2)
    return int((rows == [1, 2]).all(axis=(1, 2)).sum())


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "price", "sabotaged"),
    [
        (
            UrnRows(Posterior(dirichlet_alpha(1, 2), 6), 20_000),
            lambda d: d.posterior.urn_loss(2),
            sabotaged_urn,
        ),
        (
            PriorRows(Posterior(prior_alpha(1, 2), 6)),
            lambda d: d.posterior.fixed_loss(2),
            sabotaged_urn,
        ),
        (
            SmoothedRows(Smoothed(smoothed_share(1, 6, 4, 2), 6, 4)),
            lambda d: d.smoothed.loss(2),
            sabotaged_mixture,
        ),
    ],
    ids=["dirichlet", "dp_prior", "smoothed"],
)
def test_the_audit_of_drawn_rows_is_tight_and_catches_the_saboteur(
    draw: Any, price: Any, sabotaged: Any
) -> None:
    # 20,000 pairs of rows a side, Clopper-Pearson at 1e-5: the honest build is at 1 exactly.
    def lower() -> float:
        hits = [both_unique(draw, table, 20_000, seed) for seed, table in enumerate(TABLES)]
        return lower_bound(hits[0], hits[1], 20_000, 0.0, 1e-5)

    honest = lower()
    with sabotaged():
        broken = lower()

    assert price(draw) <= 1
    assert 0.5 < honest <= 1
    assert broken > 1.5


@pytest.mark.statistical
def test_the_audit_of_the_choice_passes_the_honest_build_and_catches_the_saboteur() -> None:
    # Level 1e-5, 500 runs a side.
    schema = Schema((Column("x", "binary", levels=(0, 1)),))
    tables = (np.array([[0]] * 4), np.array([[0]] * 3 + [[1]]))
    pair = Neighbors("one of four", schema, "replace_one", *tables)
    one = Cdf(epsilon=1, relation="replace_one")

    honest = audit(one, pair, runs=500, rows=40, level=1e-5)
    with sabotaged_choice():
        broken = audit(one, pair, runs=500, rows=40, level=1e-5)

    assert honest.holds
    assert broken.bound > 1
