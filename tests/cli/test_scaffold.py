"""A scaffolded mechanism is a correct one: it passes every check of the contract as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from gibbous.cli.scaffold import mechanism_file
from gibbous.contract.checks import Named, all_checks
from gibbous.core.schema import Column, Schema, Unit


@pytest.fixture
def scaffolded() -> Iterator[type[Any]]:
    module = ModuleType("my_mech")
    sys.modules["my_mech"] = module
    exec(compile(mechanism_file("my_mech"), "my_mech.py", "exec"), module.__dict__)
    yield module.MyMech
    del sys.modules["my_mech"]


@pytest.mark.parametrize("check", list(all_checks()), ids=lambda c: c.name)
def test_the_scaffold_passes(check: Named, scaffolded: type[Any]) -> None:
    check.run(scaffolded)


@pytest.mark.parametrize(("relation", "factor"), [("add_remove", 1), ("replace_one", 2)])
def test_the_scaffold_splits_its_budget_over_columns_and_rows_of_a_person(
    scaffolded: type[Any], relation: str, factor: int
) -> None:
    """Closed form: scale = columns * max_rows * factor / epsilon, and the cost is epsilon."""
    columns = tuple(Column(n, "binary", levels=(0, 1)) for n in "abc")
    schema = Schema(columns, Unit("person", "id", 4))
    one = scaffolded(epsilon=0.5, relation=relation)

    scale = one._noise(schema).info().scale
    total = one.plan(schema, 10, 5).total

    assert scale == pytest.approx(3 * 4 * factor / 0.5)
    assert (total.kind, total.epsilon, total.relation) == ("pure", Fraction(1, 2), relation)


def test_a_scaffold_is_one_file_named_as_it_is_registered() -> None:
    text = mechanism_file("two_words")

    assert "class TwoWords:" in text
    assert 'name="two_words"' in text
    assert 'two_words = "your_package.two_words:TwoWords"' in text
    assert "__" not in text.replace("__future__", "").replace("__post_init__", "")
