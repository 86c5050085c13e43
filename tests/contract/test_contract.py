"""The shipped contract, run on our own mechanisms: checks are fast; audits and saboteurs are statistical."""

from __future__ import annotations

from typing import Any

import pytest

from gibbous.contract.audits import applicable, at_epsilon_one, audited, caught, relations
from gibbous.contract.checks import all_checks
from gibbous.contract.residuals import residuals
from gibbous.contract.saboteurs import saboteurs
from gibbous.mechanisms import registry

KINDS = [registry.load(about.name) for about in registry.methods()]
PAIRS = [(kind, saboteur) for kind in KINDS for saboteur in applicable(kind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.about.name)
@pytest.mark.parametrize("check", list(all_checks()), ids=lambda c: c.name.replace(" ", "-"))
def test_every_mechanism_keeps_the_contract(kind: type[Any], check: Any) -> None:
    check.run(kind)


def test_every_saboteur_is_tried_on_some_mechanism() -> None:
    tried = {saboteur.name for _, saboteur in PAIRS}

    assert tried == {saboteur.name for saboteur in saboteurs()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.about.name)
def test_the_noise_in_the_tables_is_the_noise_that_was_paid_for(kind: type[Any]) -> None:
    """Residuals against exact counts on a constructed table; false alarm below 1e-8."""
    for relation in relations(kind):
        found = residuals(kind, at_epsilon_one(kind, relation))
        assert found is None or found.holds, found


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.about.name)
def test_audits_find_no_violation(kind: type[Any]) -> None:
    """Level 1e-5 a pair: about 40 pairs, one false alarm in 2,500 runs of the suite."""
    for verdict in audited(kind):
        assert verdict.holds, verdict


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "saboteur"),
    PAIRS,
    ids=[f"{k.about.name}-{s.name.replace(' ', '-')}" for k, s in PAIRS],
)
def test_the_audit_catches_the_saboteur(kind: type[Any], saboteur: Any) -> None:
    with saboteur.apply():
        assert caught(kind)
