"""The shipped contract runs on our own mechanisms (testpaths); here: no saboteur is left untried."""

from __future__ import annotations

from gibbous.contract.audits import applicable
from gibbous.contract.saboteurs import saboteurs
from gibbous.mechanisms import registry


def test_every_saboteur_is_tried_on_some_mechanism() -> None:
    kinds = [registry.load(about.name) for about in registry.methods()]
    tried = {saboteur.name for kind in kinds for saboteur in applicable(kind)}

    assert tried == {saboteur.name for saboteur in saboteurs()}
