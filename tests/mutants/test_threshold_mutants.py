"""Mutants of the stability threshold: one too low, or computed for twice the delta."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.contract import checks, privacy_checks
from gibbous.contract.cases import cases
from gibbous.contract.residuals import residuals
from gibbous.core.context import Context
from gibbous.core.errors import PrivacyRefused
from gibbous.core.tables import Dense, Sparse
from gibbous.mechanisms import registry
from gibbous.mechanisms.sba import Sba
from gibbous.privacy import curator, noise
from gibbous.privacy.calibrate import stable
from gibbous.structure.contexts import joint
from tests.mutants.broken_builds import faults, killed
from tests.mutants.test_noise_mutants import covered
from tests.privacy import test_stable_thresholds as f8

METHODS = [("sba", {}), ("sbhg", {"noise": "geometric"})]


def plans(name: str, given: dict[str, Any]) -> None:
    checks.default(registry.load(name), delta=0.01, **given).plan(cases()[0].schema, None)


def one_lower(*given: Any) -> tuple[Fraction, int]:
    scale, threshold = HONEST(*given)
    return scale, threshold - 1


def twice_delta(epsilon: Any, delta: Any, *rest: Any) -> tuple[Fraction, int]:
    return HONEST(epsilon, 2 * Fraction(delta), *rest)


HONEST = stable.stable_geometric
BUILDERS = pytest.mark.parametrize("build", [one_lower, twice_delta], ids=["m05", "m06"])


@BUILDERS
@pytest.mark.parametrize(("name", "given"), METHODS, ids=["sba", "sbhg"])
def test_m05_m06_a_low_threshold_is_above_the_budget_of_its_own_price(
    name: str, given: dict[str, Any], build: Any
) -> None:
    killed(lambda: plans(name, given), faults((noise, "stable_geometric", build)))


@BUILDERS
def test_m05_m06_the_curator_refuses_a_threshold_that_nobody_checked(build: Any) -> None:
    """The price comes from scale and threshold, not from the delta that was asked for."""
    case = cases()[0]

    def buys(threshold_of: Any) -> None:
        method = Sba(delta=0.01)
        scale, threshold = threshold_of(Fraction(1), Fraction("0.01"), 1, "add_remove", 1)
        total = method.plan(case.schema, None).total
        engine = privacy_checks.LocalEngine.from_codes(case.codes())
        held = curator.Curator(engine, total, case.schema, relation="add_remove")
        law = noise.Thresholded(noise.Geometric(scale), threshold)
        held.noisy_counts((joint(case.schema, "seen"),), law)

    buys(HONEST)
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        buys(build)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_m06_a_price_that_is_half_the_truth_is_not_the_exact_one(relation: str) -> None:
    """Builder and price are wrong together: brute force, and real neighbors, show it."""
    honest = stable._geometric_delta
    half = (stable, "_geometric_delta", lambda *given: honest(*given) / 2)

    killed(
        lambda: f8.test_f8_price_of_thresholded_geometric_noise_is_the_exact_one(1, relation),
        faults(half),
    )
    killed(lambda: covered("sba", relation), faults(half))


def test_m05_a_cell_kept_at_the_threshold_is_seen() -> None:
    """`>=` in place of `>`: a kept cell that is not above the stated threshold, in 40 cells at t."""
    law = noise.Thresholded(noise.Geometric(Fraction(2)), 12)
    at = np.arange(40, dtype=np.uint64)
    crowd = Sparse(at, np.zeros(40, dtype=np.uint64), np.full(40, 12, dtype=np.int64))

    def check() -> None:
        assert (law.add(crowd).values > law.threshold).all()

    killed(check, faults((noise.Thresholded, "add", at_or_above)))


def at_or_above(self: Any, cells: Any, *, progress: Any = None) -> Any:
    values = self.base.add(Dense(cells.values), progress=lambda *_: None).values
    kept = values >= self.threshold
    return Sparse(cells.keys[kept], cells.levels[kept], values[kept])


def test_m05_the_audit_of_tables_sees_a_cell_below_the_threshold() -> None:
    honest = noise.Thresholded.info

    def boasts(self: Any) -> Any:
        return replace(honest(self), threshold=self.threshold + 700)

    def check() -> None:
        found = residuals(Sba, Sba(delta=0.01), fits=5)
        assert found is not None
        assert found.holds, found

    killed(check, faults((noise.Thresholded, "info", boasts)))


def test_a_context_is_one_histogram() -> None:
    """What all thresholds rest on: a record is in one cell of each counted table."""
    case = cases()[0]
    context = Context((0,), (1, 2), (case.schema.sizes[0],), case.schema.sizes[1:3])
    engine = privacy_checks.LocalEngine.from_codes(case.codes())

    (counts,) = engine.tally([context])

    assert counts.cells.values.sum() == len(case.values)
