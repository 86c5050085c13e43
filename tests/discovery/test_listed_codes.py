"""Codes that are written as those that were kept: found when they are rarer, at the same price."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.discovery import Discovery
from gibbous.core.schema import Unit
from gibbous.mechanisms._discovery_parts import Parts
from gibbous.privacy.noise import Gaussian, Thresholded
from gibbous.privacy.text_curator import TextCurator
from gibbous.read.public_lists import text_lists
from gibbous.structure.code_lists import code_list, numbers_beside
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
    """Noise of about 13 in the second look: 60 codes of 40 to 260 rows, of which one look shows few."""
    numbers = np.arange(100, 160)
    rows = np.linspace(40, 260, 60).astype(int)
    codes = [str(code) for code in np.repeat(numbers, rows)] + ["V10"] * 400
    frame = pl.DataFrame({"code": [f"x{code}" if code[0] != "V" else code for code in codes]})

    schema = bought(frame, rho=0.003 / 0.68)

    column = schema["code"]
    found = {level for level in column.levels if level in set(frame["code"])}
    assert len(found) > 52  # about 59 are above two standard deviations; 45 are above the threshold
    assert "V10" in found
    assert column.other == "other"


@pytest.mark.parametrize(("sigma", "kept"), [(13, 110)])
def test_without_a_list_as_many_rows_would_not_be_enough(sigma: int, kept: int) -> None:
    """What the test above compares with: the threshold of the second look at that price."""
    known = Discovery(("code",), Unit())
    parts = Parts(Fraction(3, 1000) / Fraction(675, 1000), Fraction(1, 10**9), known, "add_remove")

    second = parts.selecting(1, parts.divided([1.0], 0)[1][0])

    assert abs(second.info().scale - sigma) < 1
    assert second.threshold > 0.7 * kept


@pytest.mark.slow
def test_rare_whole_numbers_are_levels_beside_frequent_ones_and_seldom_by_noise_alone() -> None:
    """30 tables of 1 to 6 with 60 rows in 4, 5 and 6 each: noise of 20 in the second look, threshold 110."""
    rows = {1: 4_000, 2: 900, 3: 600, 4: 60, 5: 60, 6: 60}
    frame = pl.DataFrame({"code": np.repeat(list(rows), list(rows.values())).astype(str)})
    found = [bought(frame, rho=0.00125 / 0.68)["code"].levels for _ in range(30)]

    held = sum(level in levels for levels in found for level in (4, 5, 6))
    false = sum(level not in rows for levels in found for level in levels)

    # Noise makes whole numbers look like decimals once in 10^4.
    assert sum({1, 2, 3} <= set(levels) for levels in found) >= 28
    # A table is asked again with about .87; then each is above one standard deviation with .98.
    assert held > 52  # mean 76, deviation 5.5; without a list about 1
    assert (
        false < 45
    )  # 5 numbers that are counted are not there: each is above with .16; any sign would give 65


@pytest.mark.slow
def test_answers_of_0_and_1_seldom_get_another_number_by_noise_alone() -> None:
    """12 columns of 3,000 rows, bought 20 times at the noise of epsilon 1.

    In 960 columns .07 had a 3, or a 5; before, .35.
    """
    draw, false = np.random.default_rng(3), 0
    shares = np.linspace(0.08, 0.5, 12)
    frame = pl.DataFrame(
        {f"c{j}": (draw.random(3_000) < p).astype(int).astype(str) for j, p in enumerate(shares)}
    )

    for _ in range(20):
        schema = bought(frame, rho=0.0047)
        false += sum(not set(column.levels) <= {0, 1} for column in schema)

    assert false < 40  # of 240


@pytest.mark.parametrize(
    ("kept", "listed"),
    [
        (("1", "2"), range(7)),
        (("0", "99"), (*range(5), *range(95, 104))),
        (("-1", "1"), range(-5, 6)),
        (tuple(map(str, range(21))), ()),
        ((), ()),
    ],
)
def test_whole_numbers_near_those_that_were_kept_are_listed(
    kept: tuple[str, ...], listed: Iterable[int]
) -> None:
    assert numbers_beside(kept, 20) == tuple(map(str, listed))


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


def test_states_that_few_rows_have_are_levels_where_others_show_the_list() -> None:
    """Noise of about 13 in the second look, threshold 80: 20 states of 60 rows beside six of 600."""
    often, seldom = ("CA", "TX", "NY", "FL", "OH", "WA"), text_lists()[7][:20]
    states = [state for state in often for _ in range(600)]
    states += [state for state in seldom if state not in often for _ in range(60)]

    found = set(bought(pl.DataFrame({"state": states}), rho=0.003 / 0.68)["state"].levels)

    assert found >= set(often)
    assert (
        len(found.intersection(seldom)) > 15
    )  # 60 rows are above two standard deviations with .997
    assert len(found.difference(states)) < 8  # 29 others are counted: each is above with .023
    assert set(code_list(["CA", "TX", "NY", "FL", "far", "near"])) == set()


@pytest.mark.parametrize(
    ("kept", "beside", "number"),
    [
        (("United-States", "Mexico"), {"Dominican-Republic", "El-Salvador", "Cuba"}, 243),
        (("UNITED STATES", "MEXICO"), {"DOMINICAN REPUBLIC"}, 243),
        (("new_york", "ohio", "elsewhere", "iowa", "utah"), {"new_jersey", "maine"}, 51),
        (("Monday", "Friday"), {"Sunday"}, 7),
        (("USA", "MEX", "CAN", "DEU", "FRA"), {"JPN"}, 249),
        (("USA", "MEX", "CAN", "DEU"), set(), 0),  # four short texts may be anything
        (("Mexico", "Madam", "Monsieur"), set(), 0),
        (("Mexico", "Canada", "Unknown", "other"), {"Cuba"}, 243),
        (("unknown", "other"), set(), 0),
    ],
)
def test_a_public_list_is_taken_as_its_texts_are_written(
    kept: tuple[str, ...], beside: set[str], number: int
) -> None:
    found = code_list(kept)

    assert set(found) >= beside
    assert len(found) == len(set(found)) == number


def test_countries_that_few_rows_have_are_levels_where_two_names_show_the_list() -> None:
    """Noise of about 13 in the second look, threshold 80: 20 countries of 60 rows beside two."""
    countries = next(names for names in text_lists() if "Puerto Rico" in names)
    seldom = [name.replace(" ", "-") for name in countries[100:120]]
    rows = (
        ["United-States"] * 6000 + ["Mexico"] * 900 + [name for name in seldom for _ in range(60)]
    )

    found = set(bought(pl.DataFrame({"born": rows}), rho=0.003 / 0.68)["born"].levels)

    assert len(found.intersection(seldom)) > 15  # each is above two standard deviations with .997
    assert len(found.difference(rows)) < 18  # 221 others are counted: each is above with .023
