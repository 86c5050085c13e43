"""Options of a combinator: for the method inside, and never a budget that nobody would charge."""

from __future__ import annotations

import pytest

import gibbous as gb
from gibbous.core.errors import ParameterError


@pytest.mark.parametrize("combinator", [gb.PerSet, gb.Parallel])
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
