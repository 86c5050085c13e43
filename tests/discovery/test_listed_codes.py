"""Codes that are written as those that were kept: found when they are rarer, at the same price."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.discovery import Discovery
from gibbous.core.schema import Unit
from gibbous.mechanisms._bought_schema import Parts
from gibbous.privacy.noise import Gaussian, Thresholded
from gibbous.privacy.text_curator import TextCurator
from tests.discovery.conftest import PLENTY, bought, engine_of


def as_written(_: str, texts: Any) -> Any:
    return texts


def test_texts_of_a_list_are_counted_whether_they_occur_or_not_and_cost_nothing_more() -> None:
    """Noise of 5: a number is off by 50 once in 10^22."""
    codes = ["414"] * 300 + ["416"] * 60 + ["lone"] + ["usual"] * 400
    known = Discovery(("code",), Unit())
    curator = TextCurator(
        engine_of(pl.DataFrame({"code": codes}), known),
        PLENTY,
        known.schema(),
        relation="add_remove",
    )
    noise = Thresholded(Gaussian(Fraction(5)), 80)

    alone = curator.noisy_texts(["code"], noise, as_written)[0]
    found = curator.noisy_texts(["code"], noise, as_written, {"code": ("414", "415", "416")})[0]

    assert set(alone) == {"414", "usual"}
    assert set(found) == {"414", "415", "416", "usual"}
    true = {"414": 300, "415": 0, "416": 60, "usual": 400}
    assert all(abs(found[text] - number) < 50 for text, number in true.items())
    assert curator.spent[0] == curator.spent[1]


def test_rare_codes_are_levels_where_frequent_ones_are_written_alike() -> None:
    """Noise of about 16 in the second look: 60 codes of 40 to 200 rows, of which one look shows few."""
    numbers = np.arange(100, 160)
    rows = np.linspace(40, 200, 60).astype(int)
    codes = [str(code) for code in np.repeat(numbers, rows)] + ["V10"] * 400
    frame = pl.DataFrame({"code": [f"x{code}" if code[0] != "V" else code for code in codes]})

    schema = bought(frame, rho=0.002 / 0.64)

    column = schema["code"]
    found = {level for level in column.levels if level in set(frame["code"])}
    assert len(found) > 45  # about 57 are above two standard deviations; 25 are above the threshold
    assert "V10" in found
    assert column.other == "other"


@pytest.mark.parametrize(("sigma", "kept"), [(16, 130)])
def test_without_a_list_as_many_rows_would_not_be_enough(sigma: int, kept: int) -> None:
    """What the test above compares with: the threshold of the second look at that price."""
    known = Discovery(("code",), Unit())
    parts = Parts(Fraction(2, 1000) / Fraction(64, 100), Fraction(1, 10**9), known, "add_remove")

    second = parts.divided(1, 0, 0).selecting(1, "much")

    assert abs(second.info().scale - sigma) < 1
    assert second.threshold > 0.7 * kept


def test_numbers_with_some_text_are_codes_where_a_few_of_them_hold_many_rows() -> None:
    """Two in a hundred cells are letters and digits; noise of the classes hides a part of them."""
    draw = np.random.default_rng(4)
    codes = draw.choice(["414", "428", "786", "250.01", "410", "486", "427.5"], 20_000).astype(
        object
    )
    codes[:400] = "V45"
    whole = draw.normal(50, 9, 20_000)
    frame = pl.DataFrame({"code": codes.tolist(), "weight": [f"{v:.2f}" for v in whole]})

    schema = bought(frame, rho=0.01)

    assert schema["code"].kind == "nominal"
    assert {"414", "427.5", "250.01"} <= set(schema["code"].levels)
    assert schema["weight"].kind == "numeric"
