"""Whole numbers that no float holds, and some that Python refuses to write: a sentence, never a traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gibbous as gb

HUGE = pytest.mark.parametrize("huge", [10**400, 10**5000], ids=["400 digits", "5,000 digits"])
SCHEMA = gb.Schema((gb.Column("a", "nominal", levels=(0, 1)),), unit=gb.Unit())
GIVEN: dict[str, Callable[[int], object]] = {
    "epsilon": lambda huge: gb.Laplace(epsilon=huge),
    "delta": lambda huge: gb.AdaptiveGibbs(epsilon=1, delta=huge),
    "a whole parameter": lambda huge: gb.AdaptiveGibbs(epsilon=1, cells=huge),
    "a share": lambda huge: gb.AdaptiveGibbs(epsilon=1, choice=huge),
    "a weight": lambda huge: gb.AdaptiveGibbs(epsilon=1, weights={"a": huge}),  # type: ignore[arg-type]
    "a bound": lambda huge: gb.Column("a", "numeric", edges=(0, huge)),
    "rows": lambda huge: gb.plan(SCHEMA, "laplace", epsilon=1, rows=huge),
    "sets": lambda huge: gb.plan(SCHEMA, "laplace", epsilon=1, rows=1, sets=huge),
    "rows of a person": lambda huge: gb.Unit("person", "p", huge),
    "the share of discovery": lambda huge: gb.Discovery(names=("a",), unit=gb.Unit(), share=huge),
}


@HUGE
@pytest.mark.parametrize("what", GIVEN)
def test_a_number_beyond_floats_is_refused_in_a_sentence(what: str, huge: int) -> None:
    with pytest.raises(gb.GibbousError) as refused:
        GIVEN[what](huge)

    assert len(str(refused.value)) < 600


def test_a_level_that_python_does_not_write_is_refused() -> None:
    with pytest.raises(gb.GibbousError, match="thousands of digits"):
        gb.Column("a", "nominal", levels=(10**5000,))
