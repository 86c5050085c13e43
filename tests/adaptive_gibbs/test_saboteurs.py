"""Broken builds of this method, and the check that catches each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.contract.saboteurs import Underpriced, patched
from gibbous.core.context import Context
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Noise
from gibbous.core.tables import Dense, Table
from gibbous.mechanisms._budget import Budget
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy import entropy
from gibbous.privacy.calibrate.gdp import square_of_choice
from gibbous.privacy.curator import Curator
from tests.adaptive_gibbs.made import chain_rows, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3)
ROWS = chain_rows(SIZES, 1500)
METHOD = AdaptiveGibbs(epsilon=1.0, cells=rounds_of(*SIZES))


def unpaid_choices() -> int:
    """Draws of the exponential mechanism beyond those on the books at their own price."""
    honest, drawn = entropy.exponential_choice, []

    def choice(scores: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int) -> int:
        drawn.append(square_of_choice(epsilon))
        return honest(scores, epsilon=epsilon, sensitivity=sensitivity)

    with patched(entropy, "exponential_choice", value=choice):
        _, curator = ran(METHOD, schema_of(*SIZES), ROWS)
    books = [claim.mu_squared for claim in curator.spent if "exponential" in claim.source]
    return len(drawn) - sum(price in drawn for price in books)


def unpaid() -> AbstractContextManager[None]:
    """Choices that are made without being charged."""
    from gibbous.privacy.curator import Curator as Real

    def choose(
        self: Real, contexts: Sequence[Context], score: Callable[..., Any], **given: Any
    ) -> int:
        scores = score(self._count(contexts, keep=True))
        return entropy.exponential_choice(
            given.get("among", np.array)(scores),
            epsilon=given["epsilon"],
            sensitivity=Fraction(given["sensitivity"]),
        )

    return patched(Curator, "choose", value=choose)


def test_every_choice_is_charged() -> None:
    assert unpaid_choices() == 0


def test_a_choice_that_is_not_charged_is_caught() -> None:
    with unpaid():
        assert unpaid_choices() > 5


def spread_over_stated() -> float:
    """Root mean square of (noisy - exact) / stated sigma over the cells of all pairs and triples."""
    tables, _ = ran(METHOD, schema_of(*SIZES), ROWS)
    parts = []
    for table in tables.items:
        columns = table.context.columns
        exact = np.zeros(tuple(SIZES[c] for c in columns))
        np.add.at(exact, tuple(ROWS[:, c] for c in columns), 1)
        assert isinstance(table.cells, Dense)
        noise = table.cells.values.ravel() - exact.ravel()
        parts.append(noise / table.noise.scale)
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2)))


def halved() -> AbstractContextManager[None]:
    """Half the noise that is paid for."""
    honest = Curator.noisy_counts

    def noisy_counts(self: Curator, contexts: Sequence[Context], noise: Noise) -> tuple[Table, ...]:
        return honest(self, contexts, Underpriced(noise, Fraction(1, 2)))

    return patched(Curator, "noisy_counts", value=noisy_counts)


@pytest.mark.statistical
@pytest.mark.parametrize(("build", "honest"), [(nullcontext, True), (halved, False)])
def test_the_noise_of_every_round_has_the_scale_that_was_paid_for(
    build: Callable[[], AbstractContextManager[None]], honest: bool
) -> None:
    # At least 400 cells: the root mean square of honest noise has sd below 0.036; 0.2 is 5.6 of them
    # (level 2e-8), and half the noise lies at 0.5, 8 of its own away.
    with build():
        found = spread_over_stated()

    assert (0.8 < found < 1.2) is honest


@pytest.mark.parametrize("more", [Fraction(101, 100), Fraction(2)])
def test_a_last_round_that_spends_more_than_is_left_is_refused(more: Fraction) -> None:
    honest = Budget.noise

    def noise(self: Budget, share: Fraction, tables: int = 1) -> Noise:
        return honest(self, share * more, tables)

    with (
        patched(Budget, "noise", value=noise),
        patched(Budget, "cost", value=lambda self, noise, tables: Fraction(0)),
        pytest.raises(PrivacyRefused, match="more than it planned"),
    ):
        ran(METHOD, schema_of(*SIZES), ROWS)
