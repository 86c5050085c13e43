"""Numbers and days among text: ages up to 90+, laboratory values below a limit, dates that are not known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.column import Column
from gibbous.encode.cell_text import column_codes, column_numbers, moved
from gibbous.schema_discovery import missed
from gibbous.structure.bought_columns import usual_after_all, usual_instead
from gibbous.structure.column_outlines import AMOUNTS, CLASSES, Outline, outline
from tests.discovery.conftest import bought

ROWS = 4_000


def counts(**cells: int) -> np.ndarray:
    found = np.zeros(len(CLASSES))
    for name, number in cells.items():
        words = name.replace("amounts_", "amounts, ").replace("_", " ")
        found[CLASSES.index(words)] = number
    return found


def mixed(**cells: int) -> Outline:
    made = counts(**cells)
    return outline("x", made, sigma=5.0, rows=float(made.sum()))


def kept(texts: str, rows: int) -> dict[str, int]:
    return dict.fromkeys(texts.split(), rows)


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    """Ages of 90 and more, amounts below .5, and one of ten days are text; codes have letters, too."""
    draw = np.random.default_rng(6)
    age = np.where(draw.random(ROWS) < 0.06, 92, draw.triangular(0, 40, 90, ROWS).astype(int))
    crp = draw.gamma(1, 4, ROWS)
    day = np.datetime64("2015-01-01") + draw.integers(0, 2_000, ROWS).astype("timedelta64[D]")
    cost, share = draw.gamma(1, 3_000, ROWS), draw.integers(0, 4, ROWS) * 25
    usual = draw.choice(["428", "414.01", "786.5", "V57", "38.9"], ROWS)
    rare = [f"{code}.{draw.integers(100)}" for code in draw.integers(100, 999, ROWS)]
    return pl.DataFrame(
        {
            "age": ["90+" if v >= 90 else str(v) for v in age],
            "crp": ["<0.50" if v < 0.5 else f"{v:.2f}" for v in crp],
            "day": np.where(draw.random(ROWS) < 0.1, "not known", day.astype(str)),
            "cost": [f"${v:,.2f}" if v >= 10 else "waived" for v in cost],
            "count": [f"{v:,.0f}" for v in cost],
            "share": [f"{v} %" for v in share],
            "code": np.where(draw.random(ROWS) < 0.5, usual, rare),
        }
    )


@pytest.fixture(scope="module")
def schema(frame: pl.DataFrame) -> gb.Schema:
    return bought(frame, rho=0.04)


@pytest.mark.parametrize("name", ["age", "crp"])
def test_mostly_numbers_are_numbers_where_levels_would_lose_most(
    schema: gb.Schema, name: str
) -> None:
    column = schema[name]

    assert (column.kind, column.missing, column.other) == ("numeric", True, None)
    assert (column.integer, column.decimals) == {"age": (True, None), "crp": (False, 2)}[name]
    assert column.source("kind") == column.source("bounds") == "discovered"
    word = {"age": "'90+'", "crp": "'<0.50'"}[name]
    assert column.note == (
        f"Most cells are numbers. Those that are not, such as {word}, count as missing."
    )


@pytest.mark.parametrize(("name", "places"), [("cost", 2), ("count", None)])
def test_amounts_are_numbers_where_levels_would_lose_most(
    frame: pl.DataFrame, schema: gb.Schema, name: str, places: int | None
) -> None:
    column = schema[name]

    assert (column.kind, column.integer, column.decimals) == ("numeric", places is None, places)
    assert (column.note or "").startswith("Signs are left out: $1,234.50 is read as 1234.50")
    assert "Most cells" not in (column.note or "")
    numbers = column_numbers(frame[name], column)
    plain = frame[name].str.replace_all("[$,]", "").cast(pl.Float64, strict=False)
    low, high = column.edges[0], column.edges[-1]
    assert numbers.tolist() == plain.fill_null(low).clip(low, high).to_list()
    assert high > 8_000


def test_few_amounts_stay_levels_as_they_are_written(schema: gb.Schema) -> None:
    assert schema["share"].kind == "nominal"
    assert set(schema["share"].levels) == {"0 %", "25 %", "50 %", "75 %"}


def test_amounts_in_a_short_range_are_the_levels_that_they_name() -> None:
    """Too few rows for levels as texts: whole numbers from about 0 to 29 are, and cells have their code."""
    shares = np.random.default_rng(2).integers(0, 30, 800)
    frame = pl.DataFrame({"x": [f"{v}%" for v in shares], "y": ["a", "b"] * 400})

    # One purchase in twenty leaves the column out.
    column = next(
        one["x"] for one in (bought(frame, rho=0.01) for _ in range(6)) if "x" in one.names
    )

    texts, plain = (pl.Series([f"{v}{sign}" for v in range(10, 20)]) for sign in (" %", ""))
    codes = column_codes(texts, column)
    assert codes.tolist() == column_codes(plain, column).tolist()
    assert column.kind == "numeric" or (np.diff(codes) == 1).all()
    assert not moved(texts, column, codes).any()


def test_amounts_say_how_they_are_read_and_text_beside_them_what_becomes_of_it() -> None:
    """Without text no cell is missing; numbers without a sign beside amounts are no codes."""
    alone = mixed(whole=2_000, amounts_whole=2_000)
    beside = mixed(whole=1_800, amounts_whole=1_800, text=400)
    texts = kept("950 120 480 $1,200 waived", 50)

    found = [usual_after_all(plan, texts, 5.0) for plan in (alone, beside)]

    words = "Most cells are numbers. Those that are not, such as 'waived', count as missing."
    assert [(one.missing, one.integer, one.note) for one in found if one] == [
        (False, True, AMOUNTS),
        (True, True, f"{AMOUNTS} {words}"),
    ]
    assert mixed(whole=3_990, amounts_whole=10).kind == "numeric"  # noise, for all that is known
    assert mixed(decimals_2=3_990, amounts_whole=10).decimals == 2


def test_mostly_days_are_days_and_the_rest_is_missing(schema: gb.Schema) -> None:
    assert (schema["day"].kind, schema["day"].missing) == ("date", True)
    assert schema["day"].note == "Most cells are days. Those that are not count as missing."


def test_codes_that_lie_far_apart_stay_levels(schema: gb.Schema) -> None:
    column = schema["code"]

    assert (column.kind, column.other, column.note) == ("nominal", "other", None)
    assert {"428", "414.01", "V57"} <= set(column.levels)


@pytest.mark.slow
def test_a_release_says_how_many_cells_were_text(frame: pl.DataFrame) -> None:
    known = gb.Discovery(["age", "crp"], gb.Unit())

    found = gb.synthesize(
        frame.select("age", "crp"), known, "adaptive_gibbs", epsilon=1, delta=1e-6,
        rows=2_000, ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    ages = found.sets[0]["age"]
    assert ages.null_count() / 2_000 == pytest.approx(0.06, abs=0.04)
    assert ages.mean() == pytest.approx(43, abs=4)
    said = [line for line in missed(found) if "rows are missing" in line and "age" in line]
    assert len(said) == 1
    assert "rows are missing. Most cells are numbers." in said[0]
    assert "If these are codes, state their levels (--levels)." in said[0]


@pytest.mark.parametrize(
    ("texts", "rows", "numbers"),
    [
        ("41 48 49 54 56 90+", 100, True),  # next to each other: ages
        ("50000 40000 60000 55000 Refused", 100, True),  # far apart, but rounded: incomes
        ("428 414 786 other", 100, False),
        ("427 428 429 V57", 100, False),
        ("90+", 100, True),
        ("30 43 52 90+", 100, True),
        ("<5", 100, True),
        ("unknown", 100, False),  # no number stands out, as of many codes
        ("41 48 49 54 56 90+", 500, False),  # levels lose 1,000 cells, numbers 300
        ("", 0, False),
        ("41 42 43 44 45 46 90+", 580, False),  # levels lose hardly any
    ],
)
def test_levels_stay_where_they_hold_most_cells_or_look_like_codes(
    texts: str, rows: int, *, numbers: bool
) -> None:
    plan = mixed(whole=3_700, text=300)

    found = usual_after_all(plan, kept(texts, rows), 5.0)

    assert plan.kind == "levels"
    assert (found is not None) is numbers
    assert found is None or (found.kind, found.integer, found.missing) == ("numeric", True, True)


@pytest.mark.parametrize(("whole", "numbers"), [(200, True), (1_500, False)])
def test_decimals_of_which_none_stands_out_are_numbers_unless_many_are_whole(
    whole: int, *, numbers: bool
) -> None:
    plan = outline(
        "x",
        counts(whole=whole, decimals_1=1_000, decimals_2=2_700 - whole, text=300),
        sigma=5.0,
        rows=4_000.0,
    )

    assert (usual_after_all(plan, {}, 5.0) is not None) is numbers


@pytest.mark.parametrize(
    "cells",
    [
        {"whole": 2_000, "text": 1_950},  # as much is lost with the text as with the levels
        {"whole": 3_000, "padded": 300, "text": 300},  # 007: no number
        {"text": 4_000},
    ],
)
def test_other_columns_of_text_have_levels(cells: dict[str, int]) -> None:
    assert usual_after_all(mixed(**cells), kept("41 48 x", 90), 5.0) is None


def test_a_kind_that_is_stated_is_not_looked_at_again() -> None:
    made = counts(whole=3_700, text=300)

    assert outline("x", made, sigma=5.0, rows=4_000.0, stated="levels").otherwise is None
    assert isinstance(bought(pl.DataFrame({"x": ["1", "2+"] * 500}), rho=1)["x"], Column)


ODD = [
    "x" * 6_000,
    "1" * 400,
    "$" + "1" * 400,
    "-" + " " * 5_000 + "5",
    "--5",
    "a\n\x00\u202e",
    "٣٤٥",
]


@pytest.mark.parametrize(
    ("odd", "numbers"),
    [(odd, numbers) for odd in ODD for numbers in ("4 5 6 8 9 11", "5.1 5.2 5.4 5.5 5.6")]
    + [("07", "4 5 6 8 9 11"), ("-0", "4 5 6 8 9 11")],
)
def test_no_text_beside_numbers_ends_a_run_that_was_charged(odd: str, numbers: str) -> None:
    """A note of 6,000 characters is refused, --5 is no number, and 400 digits are infinite as a float."""
    whole = "." not in numbers
    plans = {"x": mixed(**{"whole" if whole else "decimals_1": 3_700, "text": 300})}
    texts = {"x": kept(numbers, 100) | {odd: 150}}

    assert usual_instead(plans, texts, "x", 5.0)

    found = plans["x"]
    assert found.note is not None
    assert all(str(int(text)) == text for text in texts["x"])
    assert Column("x", "numeric", edges=(0, 99), note=found.note).note == found.note
    assert len(found.note) < 150
