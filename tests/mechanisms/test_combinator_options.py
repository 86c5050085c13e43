"""Options of a combinator: for the method inside, and never a budget that nobody would charge."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.errors import ParameterError
from gibbous.core.params import as_json
from gibbous.core.schema import Column, Schema


@pytest.mark.parametrize("combinator", [gb.PerSet, gb.Parallel, gb.PaidBins])
@pytest.mark.parametrize(
    "option",
    [{"epsilon": 9.0}, {"delta": 1e-9}, {"relation": "replace_one"}],
    ids=lambda o: next(iter(o)),
)
def test_a_budget_among_the_options_is_refused(combinator: type, option: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=f"names {next(iter(option))}") as caught:
        combinator("modips", options=option)

    assert "beside options=" in caught.value.fix


def test_a_budget_of_the_mechanism_given_is_taken_over() -> None:
    found = gb.Parallel(gb.Modips(epsilon=3, noise="gaussian", delta=1e-9))

    assert (found.epsilon, found.delta) == (3.0, 1e-9)
    assert dict(found.options) == {"noise": "gaussian"}


@pytest.mark.parametrize(
    ("make", "epsilon", "delta"),
    [
        (lambda: gb.Parallel("per_set", options={"method": "laplace"}), 1.0, None),
        (lambda: gb.PaidBins("per_set", options={"method": "laplace"}), 1.0, None),
        (lambda: gb.PaidBins("per_set", epsilon=2, options={"method": "laplace"}), 2.0, None),
        (lambda: gb.PaidBins("parallel", options={"method": "noisy_pegs"}), 1.0, 1e-6),
        (lambda: gb.PaidBins(gb.Parallel(gb.PerSet(gb.Laplace(epsilon=3)))), 3.0, None),
    ],
)
def test_a_combinator_by_name_has_the_budget_of_the_method_inside_of_it(
    make: Any, epsilon: float, delta: float | None
) -> None:
    schema = Schema((Column("x", "numeric", edges=(0.0, 1.0)),))

    found = make()
    again = type(found)(**json.loads(json.dumps(as_json(found))))

    assert (found.epsilon, found.delta, found.relation) == (epsilon, delta, "add_remove")
    assert again == found
    assert float(found.plan(schema, None, 2).total.epsilon) == epsilon


def test_options_are_kept_as_the_method_inside_writes_them() -> None:
    """A mapping in the options, its items from JSON, and a mechanism are one request."""
    weights = {"age": 2, ("age", "sex"): 3}
    made = gb.PerSet(gb.AdaptiveGibbs(epsilon=1, delta=1e-9, weights=weights))
    named = gb.PerSet("adaptive_gibbs", epsilon=1, delta=1e-9, options={"weights": weights})
    diverse = gb.PerSet("noisy_pegs", epsilon=1, delta=1e-9, options={"diverse": {"ill": 2}})

    assert made == named == gb.PerSet(**json.loads(json.dumps(as_json(named))))
    assert dict(named.options) == {"weights": ("age=2", "age*sex=3")}
    assert diverse == gb.PerSet(gb.NoisyPegs(epsilon=1, delta=1e-9, diverse={"ill": 2}))
    with pytest.raises(ParameterError, match="twice"):
        gb.PerSet("adaptive_gibbs", options={"weights": (("age", 2), ("age", 3))})
