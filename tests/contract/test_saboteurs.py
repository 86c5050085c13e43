"""The shipped contract runs on our own mechanisms (testpaths); here: what its audits are made of."""

from __future__ import annotations

from typing import Any

from gibbous.contract.audit import Fits, audit
from gibbous.contract.cases import neighbors
from gibbous.contract.runs import release
from gibbous.contract.saboteur_audits import applicable
from gibbous.contract.saboteurs import saboteurs
from gibbous.core.claim import Relation
from gibbous.mechanisms import registry
from gibbous.mechanisms.laplace import Laplace


def test_every_saboteur_is_tried_on_some_mechanism() -> None:
    kinds = [registry.load(about.name) for about in registry.methods()]
    tried = {saboteur.name for kind in kinds for saboteur in applicable(kind)}

    assert tried == {saboteur.name for saboteur in saboteurs()}


def test_pairs_share_the_fits_of_a_table_that_both_have_and_no_other() -> None:
    """Each pair is still judged by as many fits of its own two tables as it asks for."""
    relations: tuple[Relation, ...] = ("add_remove", "replace_one")
    for relation in relations:
        fitted: list[bytes] = []
        made: Fits = {}

        def run(one: Any, schema: Any, table: Any, *rest: Any, out: list[bytes] = fitted) -> Any:
            out.append(table.tobytes())
            return release(one, schema, table, *rest)

        for pair in neighbors(relation, 60):
            audit(Laplace(epsilon=1.0, relation=relation), pair, runs=20, run=run, made=made)

        tables = {t.tobytes() for pair in neighbors(relation, 60) for t in (pair.one, pair.two)}
        assert len(tables) == 3
        assert {table: fitted.count(table) for table in tables} == dict.fromkeys(tables, 20)
        assert {table: len(fits) for table, fits in made.items()} == dict.fromkeys(tables, 20)
