"""Numbers for people: enough digits, and bounds that are never rounded in our favor."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.reporting.labels import percent, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"), (20_190, "20,190"), (1e-6, "1e-06"), (-0.25, "−0.25"), (0.0, "0"),
        (-2.7e-05, "−2.7e-05"),
        (12_345.6, "12,346"), (math.nan, "not defined"), (None, "not defined"), (True, "yes"),
        (math.inf, "∞"), ("text", "text"), (-3, "−3"),
    ],
)  # fmt: skip
def test_a_number_has_the_digits_that_mean_something(value: object, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.3712, "37.1 %"), (0.00004, "0.004 %"), (0.0, "0 %"), (1.0, "100 %"), (0.5, "50 %"),
     (0.99966, "99.966 %"), (math.nan, "not defined")],
)  # fmt: skip
def test_a_share_near_all_is_as_precise_as_one_near_nothing(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.floats(1e-9, 1 - 1e-9))
def test_a_bound_is_rounded_away_from_what_it_bounds(share: float) -> None:
    up, down = (float(percent(share, way).removesuffix(" %")) / 100 for way in ("up", "down"))  # type: ignore[arg-type]

    assert down <= share * (1 + 1e-9)
    assert up >= share * (1 - 1e-9)
    assert up - down <= 0.11 * min(share, 1 - share) + 1e-12
