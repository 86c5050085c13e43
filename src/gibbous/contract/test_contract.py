"""The contract as pytest tests: every registered mechanism against every check, audit and saboteur."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gibbous.contract.checks import Named, all_checks
from gibbous.contract.plugin import COUPLED
from gibbous.contract.random_pairs import trials
from gibbous.contract.residuals import residuals
from gibbous.contract.runs import relations
from gibbous.contract.saboteur_audits import applicable, at_epsilon_one, audited, caught
from gibbous.mechanisms import registry

COUPLED_RUNS = 120  # of one mechanism; over 2,000 for the built-in ones together
LONG = ("cdf", "imputation", "paid_bins", "parallel", "per_set", "perturbed_imputation")
"""Built-in mechanisms whose checks take some seconds together; most run other mechanisms inside."""


def pytest_generate_tests(metafunc: Any) -> None:
    """One test a mechanism (and check, or saboteur)."""
    if "mechanism" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--mechanism", default=[])
    names = chosen or [about.name for about in registry.methods()]
    kinds = [registry.load(name) for name in names]
    ids = [kind.about.name for kind in kinds]
    if "saboteur" in metafunc.fixturenames:
        pairs = [(k, s) for k in kinds for s in applicable(k)]
        metafunc.parametrize(
            ("mechanism", "saboteur"), pairs, ids=[f"{k.about.name}-{s.name}" for k, s in pairs]
        )
    else:
        slow = [[pytest.mark.slow] if name in LONG else [] for name in ids]
        each = [pytest.param(kind, marks=m) for kind, m in zip(kinds, slow, strict=True)]
        metafunc.parametrize("mechanism", each, ids=ids)


@pytest.mark.parametrize("check", list(all_checks()), ids=lambda c: f"{c.group}-{c.name}")
def test_contract(mechanism: type[Any], check: Named) -> None:
    """The mechanism keeps this part of the contract."""
    check.run(mechanism)


@pytest.mark.slow
def test_every_purchase_covers_random_neighbors(
    mechanism: type[Any], record_property: Callable[[str, object], None]
) -> None:
    """The coupled audit: no statistics, and no false alarm. The summary of the run shows the worst ratio."""
    found = [(trial, trial.run()) for trial in trials(mechanism, COUPLED_RUNS)]
    record_property(COUPLED, (len(found), max((one.ratio for _, one in found), default=0.0)))

    for trial, one in found:
        assert not one.words, f"{trial.mechanism} on {trial.one.schema}: {one.words}"


@pytest.mark.statistical
def test_the_noise_in_the_tables_is_the_noise_that_was_paid_for(mechanism: type[Any]) -> None:
    """Residuals against exact counts on a constructed table; false alarm below 1e-8."""
    for relation in relations(mechanism):
        found = residuals(mechanism, at_epsilon_one(mechanism, relation))
        assert found is None or found.holds, found


@pytest.mark.statistical
def test_audit_finds_no_violation(mechanism: type[Any]) -> None:
    """Black-box audit on pairs of neighbors, under every relation the mechanism offers.

    Level 1e-5 a pair: about 40 pairs for the built-in methods, a false alarm in 2,500 runs.
    """
    for verdict in audited(mechanism):
        assert verdict.holds, verdict


@pytest.mark.statistical
def test_audit_catches_the_saboteur(mechanism: type[Any], saboteur: Any) -> None:
    """The same audit on a broken build must find a violation."""
    with saboteur.apply():
        assert caught(mechanism)
