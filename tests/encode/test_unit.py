"""The person unit: nobody has more rows than declared, and which rows stay is uniform."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import SchemaMismatch
from gibbous.core.schema import Column, Schema, Unit
from gibbous.encode.encode import encode
from gibbous.encode.persons import bounded
from gibbous.read.conform import check_types
from tests.read.refusal import refused


def words_from(seed: int):  # type: ignore[no-untyped-def]
    made = np.random.default_rng(seed)
    return lambda count: made.integers(0, 2**64, count, dtype=np.uint64)


def no_words(count: int) -> np.ndarray:
    raise AssertionError("no words are needed when nobody has too many rows")


def test_c14_nobody_keeps_more_rows_than_declared() -> None:
    people = pl.Series("who", ["a"] * 5 + ["b"] * 2 + ["c"] + ["a"] * 3)

    keep = bounded(people, 3, words_from(1))

    assert keep is not None
    assert pl.Series(people.filter(pl.Series(keep))).value_counts().sort("who").rows() == [
        ("a", 3),
        ("b", 2),
        ("c", 1),
    ]


def test_no_words_are_drawn_when_nobody_has_too_many_rows() -> None:
    assert bounded(pl.Series("who", [1, 2, 2]), 2, no_words) is None
    assert bounded(pl.Series("who", [], dtype=pl.Int64), 2, no_words) is None


@pytest.mark.statistical
def test_c14_every_choice_of_rows_is_equally_likely() -> None:
    """Chi-square over the 10 pairs of 5 rows, level 1e-6; a first-rows rule scores 9 x trials."""
    trials, people = 5_000, pl.Series("who", ["a"] * 5 + ["b"])
    words = words_from(7)

    kept = [tuple(np.flatnonzero(bounded(people, 2, words))[:-1].tolist()) for _ in range(trials)]

    counts = np.array([kept.count(pair) for pair in itertools.combinations(range(5), 2)])
    expected = trials / 10
    assert counts.sum() == trials
    assert ((counts - expected) ** 2 / expected).sum() < 45.1  # chi-square, 9 degrees, 1 - 1e-6


def test_c15_a_row_without_a_person_is_refused() -> None:
    schema = Schema((Column("a", "nominal", ("x",)),), Unit("person", "who", 1))

    for people in (["p", None], [1.0, float("nan")]):
        with refused(4, "NULLID") as caught:
            encode(pl.DataFrame({"a": ["x", "x"], "who": people}), schema)
        assert "missing, first in data row 2" in caught.text


def test_the_rows_that_stay_keep_their_order_and_values() -> None:
    schema = Schema((Column("a", "ordinal", tuple(range(9))),), Unit("person", "who", 1))
    frame = pl.DataFrame({"a": list(range(9)), "who": [0, 1, 2] * 3})

    values = encode(frame, schema, words=words_from(3)).values[:, 0].tolist()

    assert sorted(v % 3 for v in values) == [0, 1, 2]
    assert values == sorted(values)


def test_leading_zeros_and_case_tell_persons_apart() -> None:
    assert bounded(pl.Series("who", ["7", "07", "x", "X"]), 1, no_words) is None


def test_an_identifier_in_two_unicode_forms_is_one_person() -> None:
    keep = bounded(pl.Series("who", ["e\u0301", "\u00e9 "] * 3 + ["e"]), 2, words_from(1))

    assert keep is not None
    assert keep.sum() == 3
    assert keep[-1]


def test_decimals_that_no_source_reads_are_refused_by_their_own_digits() -> None:
    with pytest.raises(SchemaMismatch, match="decimal of 30 digits"):
        check_types({"c": pl.Decimal(30, 0)})


def test_the_words_of_the_operating_system_are_the_default() -> None:
    schema = Schema((Column("a", "nominal", ("x",)),), Unit("person", "who", 1))

    assert encode(pl.DataFrame({"a": ["x"] * 3, "who": [1, 1, 2]}), schema).rows == 2
