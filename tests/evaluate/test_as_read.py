"""Means and moved cells, against numbers written down by hand."""

from __future__ import annotations

import math

import polars as pl
import pytest

from gibbous.core.schema import Column, Schema
from gibbous.evaluation.tables import subject
from gibbous.evaluation.utility.as_read import findings

FOUND = (("bounds", "discovered"), ("missing", "discovered"))
SCHEMA = Schema(
    (
        Column("pay", "numeric", edges=(0, 10), clamp=True, sources=FOUND),
        Column("days", "ordinal", (1, 2, 3), sources=(("levels", "discovered"), *FOUND[1:])),
        Column("day", "date", edges=(737425, 737455), clamp=True, sources=FOUND),
        Column("ward", "nominal", ("a", "b")),
        Column("even", "numeric", edges=(0, 10)),
    )
)
REAL = pl.DataFrame(
    {
        "pay": [0.0, 4.0, 8.0, 28.0],
        "days": [1, 2, 3, 9],
        "day": ["2020-01-01", "2020-01-03", "2020-01-05", "2020-01-07"],
        "ward": ["a", "a", "b", "b"],
        "even": [5.0] * 4,
    }
)
DRAWN = REAL.with_columns(pay=pl.Series([0.0, 4.0, 8.0, 8.0]), days=pl.Series([1, 2, 3, 3]))


def test_means_are_of_the_numbers_as_they_were_read() -> None:
    means, moved = findings(subject(REAL, DRAWN, SCHEMA))

    pay, days = (
        math.sqrt((100 + 36 + 4 + 324) / 4),
        math.sqrt((7.5625 + 3.0625 + 0.5625 + 27.5625) / 4),
    )
    by_hand = {"pay": (5 - 10) / pay, "days": (2.25 - 3.75) / days, "day": 0.0}
    assert {row["column"]: row["difference"] for row in means.detail} == pytest.approx(by_hand)
    assert means.value == pytest.approx(sum(map(abs, by_hand.values())) / 3)
    assert [(row["real"], row["synthetic"]) for row in means.detail][:2] == [
        (10.0, 5.0),
        (3.75, 2.25),
    ]
    assert [*moved.detail] == [{"column": "pay", "share": 0.25}, {"column": "days", "share": 0.25}]
    assert moved.value == pytest.approx(0.1)
    assert moved.null == ()


def test_without_numbers_there_are_no_means() -> None:
    wards = Schema((SCHEMA.columns[3],))

    means, moved = findings(subject(REAL[["ward"]], DRAWN[["ward"]], wards))

    assert math.isnan(means.value)
    assert "No column has numbers" in means.note
    assert moved.value == 0.0
