"""Errors of methods that release rows: they say what pays, and never call a baseline's rows paid for."""

from __future__ import annotations

import pytest

import gibbous as gb
from gibbous.core.errors import ParameterError

SCHEMA = gb.Schema((gb.Column("sex", "binary", levels=("f", "m")),))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (gb.Pegs(epsilon=1), "Each drawn row is what costs, so"),
        (gb.BlockPegs(epsilon=1), "Each drawn block is what costs, so"),
        (gb.Cdf(epsilon=1), "The file of drawn rows is what costs, so"),
        (gb.MultipleSynthesis(), "drawn from the records, and their number is published, so"),
        (gb.Imputation(), "drawn from the records, and their number is published, so"),
    ],
    ids=["pegs", "block_pegs", "cdf", "multiple_synthesis", "imputation"],
)
def test_a_method_without_a_number_of_rows_says_what_pays(method: object, words: str) -> None:
    with pytest.raises(ParameterError, match="without a number of rows") as caught:
        gb.plan(SCHEMA, method)

    assert words in caught.value.allowed


def test_per_set_says_what_the_method_inside_must_be() -> None:
    with pytest.raises(ParameterError) as caught:
        gb.plan(SCHEMA, gb.PerSet("imputation"), rows=4, sets=2)

    assert caught.value.allowed.startswith("It must be a method that releases tables")
