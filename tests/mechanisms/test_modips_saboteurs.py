"""Broken builds of modips, and the audit that catches each; the sound build passes all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from gibbous.contract.saboteurs import patched
from gibbous.core.cell_model import CellModel
from gibbous.core.claim import Claim, Relation
from gibbous.core.codes import Codes
from gibbous.core.moment import Moment
from gibbous.core.protocols import MomentNoise, Progress, silent
from gibbous.core.tables import Cells, Dense, NoiseInfo, Table
from gibbous.mechanisms.modips import Modips
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.write.release_digest import digest_of
from tests.blinded import blinded
from tests.mechanisms.numeric_records import people, ran
from tests.mechanisms.sums_audit import covered, energy, shown

RECORDS = people(300)
BUILDS = {
    "laplace": Modips(),
    "gaussian": Modips(noise="gaussian", delta=1e-4),
    "replaced": Modips(relation="replace_one"),
    "replaced, gaussian": Modips(relation="replace_one", noise="gaussian", delta=1e-4),
    "a covariance each": Modips(covariance="cells", split="equal"),
    "one scale": Modips(split="nonsplit"),
}


@dataclass(frozen=True)
class Half:
    """Noise that tells the price of one scale and adds half of it."""

    told: MomentNoise

    def moment_cost(self, moment: Moment, relation: Relation, max_rows: int) -> Claim:
        return self.told.moment_cost(moment, relation, max_rows)

    def info(self) -> NoiseInfo:
        return self.told.info()

    def add(self, cells: Cells, *, progress: Progress = silent) -> Dense:
        info = self.told.info()
        make = entropy.geometric if info.law == "geometric" else entropy.gaussian
        return Dense(make(cells.values, Fraction(info.scale) / 2))


@contextmanager
def half_the_noise() -> Iterator[None]:
    honest = Curator.noisy_moments

    def noisy_moments(
        self: Curator, moments: Sequence[Moment], noises: Sequence[MomentNoise]
    ) -> tuple[Table, ...]:
        return honest(self, moments, [Half(noise) for noise in noises])

    with patched(Curator, "noisy_moments", value=noisy_moments):
        yield


@contextmanager
def priced_without_bound() -> Iterator[None]:
    """A sum is priced as a count."""

    def l1(self: Moment, relation: Relation, max_rows: int) -> int:
        return max_rows * (1 if relation == "add_remove" else 2)

    def l2_squared(self: Moment, relation: Relation, max_rows: int) -> int:
        return max_rows**2 * (1 if relation == "add_remove" else 4)

    with (
        patched(Moment, "l1", value=l1),
        patched(Moment, "l2_squared", value=l2_squared),
    ):
        yield


@contextmanager
def undivided() -> Iterator[None]:
    """Each statistic is given the whole budget, and nobody counts."""
    from gibbous.mechanisms import modips
    from gibbous.privacy.curator import Purse

    def whole(budget: Fraction, sensitivities: Sequence[Any], *given: Any) -> tuple[Fraction, ...]:
        return (budget,) * len(sensitivities)

    with (
        patched(modips, "divided", value=whole),
        patched(Purse, "pay", value=lambda self, price: True),
    ):
        yield


@pytest.mark.parametrize("name", BUILDS)
def test_a_sound_build_covers_one_extreme_record(name: str) -> None:
    assert covered(BUILDS[name])


def blind(mechanism: Any, records: Codes) -> str:
    """Digest of a release whose noisy answers do not look at the records."""
    with blinded():
        return digest_of(ran(mechanism, records)[0])


@pytest.mark.parametrize("name", BUILDS)
def test_records_reach_a_release_only_through_noise(name: str) -> None:
    """With fixed answers in place of noisy ones, other records and another order change nothing."""
    whole = blind(BUILDS[name], RECORDS)

    assert blind(BUILDS[name], people(250, seed=9)) == whole
    assert blind(BUILDS[name], RECORDS.part(np.arange(299, -1, -1))) == whole


def test_a_model_that_looks_at_the_records_is_seen_in_a_blind_run() -> None:
    from gibbous.mechanisms import modips

    honest, seen = modips.fitted, [0]

    def leaky(*given: Any, **named: Any) -> CellModel:
        model = honest(*given, **named)
        seen[0] += 1
        return replace(model, counts=model.counts + seen[0])

    with patched(modips, "fitted", value=leaky):
        assert blind(BUILDS["laplace"], RECORDS) != blind(BUILDS["laplace"], RECORDS)


def test_the_noise_is_not_more_than_one_extreme_record_needs() -> None:
    """All bounds are attained at once, so a build with 0.99 of the scales would be caught."""
    seen = sum(claim.epsilon for claim in shown(BUILDS["laplace"]))

    assert Fraction(999, 1000) < seen <= 1


@pytest.mark.parametrize("name", BUILDS)
def test_a_sum_priced_without_its_bound_is_caught(name: str) -> None:
    with priced_without_bound():
        assert not covered(BUILDS[name])


@pytest.mark.parametrize("name", BUILDS)
def test_an_undivided_budget_is_caught(name: str) -> None:
    with undivided():
        assert not covered(BUILDS[name])


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_is_as_stated_and_half_of_it_is_caught(noise: Any) -> None:
    """Squared noise of every table over 40 runs: 6 standard errors, a false alarm in 1e7 or rarer."""
    one = Modips(noise=noise, covariance="cells")

    assert energy(one, RECORDS) > -6
    with half_the_noise():
        assert energy(one, RECORDS) < -6


def test_both_relations_are_audited() -> None:
    assert {one.relation for one in BUILDS.values()} == set(get_args(Relation))
