"""The shipped contract, run on our own mechanisms: checks are fast; audits and saboteurs are statistical."""

from __future__ import annotations

from typing import Any

import pytest

from gibbous.contract.audits import applicable, audited
from gibbous.contract.checks import all_checks
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
        verdicts = audited(kind)

    assert any(not verdict.holds for verdict in verdicts), [v.lower for v in verdicts]
