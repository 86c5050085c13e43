"""The grid of a study: every method at each of its budgets, references beside, names that identify."""

from __future__ import annotations

import pytest

import gibbous as gb
from gibbous.core.errors import ParameterError, UsageError
from gibbous.frontier.grid import REFERENCES, Arm, Cell, arms, cells


def test_each_method_runs_at_each_of_its_budgets_and_no_other() -> None:
    found = arms({"a": gb.NoisyPegs(), "b": gb.DiversePegs(), "c": gb.Bootstrap()})

    grid = cells(found, epsilon=[0.5, 1], l=[2.0, 3.0, 4.0], repeats=2)

    runs = [
        (c.arm.label, dict(c.arm.params).get("epsilon"), dict(c.arm.params).get("l")) for c in grid
    ]
    first = runs[: len(runs) // 2]
    assert runs == first * 2
    assert [r for r in first if r[0] == "a"] == [("a", 0.5, None), ("a", 1, None)]
    assert [r[2] for r in first if r[0] == "b"] == [2.0, 3.0, 4.0]
    assert len([r for r in first if r[0] == "c"]) == 1
    assert [r[0] for r in first[:2]] == list(REFERENCES)


def test_without_values_a_method_runs_as_it_is() -> None:
    grid = cells(arms([gb.Sbhg(epsilon=3.0, delta=1e-7)]), epsilon=[], l=[], repeats=1)

    assert dict(grid[-1].arm.params)["epsilon"] == 3.0


def test_cells_have_names_that_say_what_was_run() -> None:
    one = Arm("a", "sbhg", (("epsilon", 1),))

    names = {
        Cell(one, 0).name,
        Cell(one, 1).name,
        Cell(Arm("a", "sbhg", (("epsilon", 2),)), 0).name,
    }

    assert len(names) == 3
    assert Cell(one, 0).name == Cell(Arm("a", "sbhg", (("epsilon", 1),)), 0).name


@pytest.mark.parametrize(
    "methods",
    [[], ["sbhg", "sbhg"], ["no_such_method"], [object()], [gb.Sbhg], {REFERENCES[0]: "sbhg"}],
    ids=["none", "twice", "unknown", "no method", "a class", "a reference's label"],
)
def test_what_is_no_set_of_methods_is_refused(methods: object) -> None:
    with pytest.raises(UsageError):
        arms(methods)  # type: ignore[arg-type]


def test_a_wrong_budget_is_refused_before_anything_runs() -> None:
    grid = cells(arms(["sbhg"]), epsilon=[-1], l=[], repeats=1)

    with pytest.raises(ParameterError):
        grid[-1].arm.mechanism()
