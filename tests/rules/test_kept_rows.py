"""Rows that keep rules: every kind of rule against Polars, which knows nothing of ours."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.rules import Rule
from gibbous.core.schema import Column, Schema
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode
from gibbous.encode.ruled_rows import check_rules, rows_that_break, ruled

DAYS = tuple(datetime.date(2015 + i, 1, 1).toordinal() for i in range(11))
TOWNS = tuple(f"t{i}" for i in range(24))
STATE = {town: "NESW"[i % 4] for i, town in enumerate(TOWNS)}
YEARS = {"none": 0, "school": 9, "college": 14}


def numeric(name: str, top: int = 100, **more: object) -> Column:
    return Column(name, "numeric", edges=tuple(range(0, top + 1, top // 10)), **more)  # type: ignore[arg-type]


COLUMNS = (
    numeric("age", integer=True, missing=True),
    Column("marital", "nominal", levels=("never", "married", "widowed"), missing=True),
    numeric("wage", 1000, decimals=2),
    numeric("bonus", 1000, decimals=2, missing=True),
    numeric("pay", 1500, decimals=2),
    numeric("low"),
    numeric("high"),
    Column("start", "date", edges=DAYS),
    Column("end", "date", edges=DAYS, missing=True),
    Column("town", "nominal", levels=TOWNS),
    Column("state", "nominal", levels=("N", "E", "S", "W")),
    Column("school", "ordinal", levels=("none", "school", "college"), missing=True),
    numeric("years", 20, integer=True),
    Column("rank", "ordinal", levels=(1, 2, 3, 4, 5)),
    Column("top rank", "ordinal", levels=(1, 2, 3, 4, 5)),
    Column("flag", "binary", levels=(False, True)),
)
age, marital, state, school = (pl.col(n) for n in ("age", "marital", "state", "school"))
long = (pl.col("end") - pl.col("start")).dt.total_days()
TWELVE: dict[str, tuple[Rule, pl.Expr]] = {
    "an order of numbers": (Rule("low < high"), pl.col("low") < pl.col("high")),
    "an order of days": (Rule("start <= end"), pl.col("start") <= pl.col("end")),
    "a difference of days": (Rule("0 <= end - start <= 365"), long.is_between(0, 365)),
    "an order of levels": (Rule("rank <= `top rank`"), pl.col("rank") <= pl.col("top rank")),
    "a constant and a day": (
        Rule("age >= 18 and start >= '2017-03-05'"),
        (age >= 18).fill_null(value=True) & (pl.col("start") >= datetime.date(2017, 3, 5)),
    ),
    "a sum": (
        Rule("pay = wage + bonus"),
        (pl.col("pay") - pl.col("wage") - pl.col("bonus")).abs() < 0.001,
    ),
    "a map to levels": (
        Rule(detail="town", group="state", map=STATE),
        pl.col("town").replace_strict(STATE) == state,
    ),
    "a map to numbers": (
        Rule(detail="school", group="years", map=YEARS),
        school.replace_strict(YEARS) == pl.col("years"),
    ),
    "then missing": (
        Rule(when="age < 15", then="end is missing"),
        pl.col("end").is_null() | ~(age < 15),
    ),
    "then not missing": (
        Rule(when="marital == 'married' and flag == True", then="school is not missing"),
        school.is_not_null() | ~((marital == "married") & pl.col("flag")),
    ),
    "then a level": (
        Rule(when="15 > age", then="marital in ['never']"),
        (marital == "never") | ~(age < 15),
    ),
    "forbidden combinations": (
        Rule(columns=("state", "marital"), forbidden=(("N", "widowed"), ("E", "never"))),
        ~(((state == "N") & (marital == "widowed")) | ((state == "E") & (marital == "never"))),
    ),
    "allowed combinations": (
        Rule(columns=("state", "flag", "rank"), allowed=(("N", True, 1), ("S", False, 5))),
        ((state == "N") & pl.col("flag") & (pl.col("rank") == 1))
        | ((state == "S") & ~pl.col("flag") & (pl.col("rank") == 5)),
    ),
}
TOGETHER = tuple(rule for name, (rule, _) in TWELVE.items() if name != "allowed combinations")


def drawn(rules: tuple[Rule, ...], rows: int) -> Codes:
    """Rows that know nothing of the rules: every code of every column alike."""
    schema, generator = Schema(COLUMNS, rules=rules), np.random.default_rng(7)
    values = np.empty((len(COLUMNS), rows), dtype=schema.code_dtype())
    for at, column in enumerate(COLUMNS):
        values[at] = generator.integers(0, column.size, rows)
    return Codes(schema, values.T)


def violations(frame: pl.DataFrame, holds: pl.Expr) -> int:
    """A comparison with a missing value holds."""
    return int((~frame.select(holds.fill_null(value=True)).to_series()).sum())


@pytest.mark.parametrize("name", TWELVE)
def test_no_row_breaks_a_rule(name: str) -> None:
    rule, holds = TWELVE[name]
    codes = drawn((rule,), 20_000)
    assert violations(decode(replace(codes, schema=Schema(COLUMNS)), seed=1), holds)

    assert violations(decode(codes, seed=1), holds) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", TWELVE)
def test_no_row_of_a_million_breaks_a_rule(name: str) -> None:
    rule, holds = TWELVE[name]

    assert violations(decode(drawn((rule,), 1_000_000), seed=2), holds) == 0


def test_rules_hold_together() -> None:
    frame = decode(drawn(TOGETHER, 20_000), seed=3)

    for rule, holds in (TWELVE[n] for n in TWELVE if n != "allowed combinations"):
        assert violations(frame, holds) == 0, rule.words()


def test_rows_that_keep_the_rules_stay_as_they_are() -> None:
    codes = drawn((TWELVE["an order of days"][0], TWELVE["then a level"][0]), 5_000)
    plain = decode(replace(codes, schema=Schema(COLUMNS)), seed=4)
    kept = plain.select(
        TWELVE["an order of days"][1].fill_null(value=True)
        & TWELVE["then a level"][1].fill_null(value=True)
    ).to_series()

    after = decode(codes, seed=4)

    assert after.filter(kept).equals(plain.filter(kept))
    assert ruled(codes, seed=4).changed[0] == violations(plain, TWELVE["an order of days"][1])


def test_rows_do_not_hang_on_how_they_are_cut() -> None:
    codes = drawn(TOGETHER, 3_000)
    whole = decode(codes, seed=5, set_index=2)

    cuts = ((0, 1), (1, 900), (900, 3_000))
    parts = [
        decode(codes.part(slice(a, b)), seed=5, set_index=2, start_row=a, dictionary=False)
        for a, b in cuts
    ]

    assert pl.concat(parts).equals(whole)


def test_rows_that_were_made_to_keep_rules_are_encoded_and_decoded_as_they_are() -> None:
    kept = ruled(drawn(TOGETHER, 2_000), seed=6)

    again = ruled(kept.codes, seed=9)

    assert sum(again.changed) == 0
    assert rows_that_break(kept.codes).sum() == 0
    frame = decode(kept.codes, seed=6)
    assert np.array_equal(encode(frame, Schema(COLUMNS)).values, kept.codes.values)


def test_within_a_bin_an_order_is_drawn_and_not_clamped() -> None:
    """Two even numbers of one bin, given their order: densities 2 (1 - x) and 2 x, means 1/3 and 2/3."""
    one = (Column("a", "numeric", edges=(0.0, 1.0)), Column("b", "numeric", edges=(0.0, 1.0)))
    schema = Schema(one, rules=(Rule("a <= b"),))
    codes = Codes(schema, np.zeros((2, 200_000), dtype=np.uint8).T)

    frame = decode(codes, seed=8)

    # 5 standard errors of a mean of 200,000 rows: 5 * sqrt(1/18 / 200,000) = 0.0026, and the rows
    # that eight draws left (1/256) add at most 0.002.
    assert frame["a"].mean() == pytest.approx(1 / 3, abs=0.005)
    assert frame["b"].mean() == pytest.approx(2 / 3, abs=0.005)
    assert (frame["a"] == frame["b"]).sum() == 0


def test_columns_that_are_fixed_stay() -> None:
    codes = drawn((TWELVE["then a level"][0], TWELVE["a sum"][0]), 3_000)
    place = codes.schema.index("marital")

    found = ruled(codes, seed=1, fixed=frozenset({place})).codes

    assert np.array_equal(found.by_column[place], codes.by_column[place])
    assert rows_that_break(found).sum() == 0
    with pytest.raises(GibbousError, match="leave no row that keeps the rule"):
        ruled(codes, seed=1, fixed=frozenset(range(len(COLUMNS))))


SAYS = {
    "a < b and the other way": (("low < high", "high < low"), "No row keeps these rules together"),
    "a circle of three": (("low < rank", "rank < years", "years < low"), "No row keeps these"),
    "outside the bounds": (("low > 100",), "No row keeps the rule (low > 100)"),
    "more than the bounds": (("low + years > 120",), "No row keeps the rule"),
    "its own part": (("pay = pay + wage",), "as its own part"),
    "a circle of sums": (("pay = wage + bonus", "wage = pay + low"), "from itself"),
    "computed twice": (("pay = wage + bonus", "pay = low + high"), "which another rule computes"),
    "no such column": (("wagee > 3",), "Did you mean 'wage'?"),
    "no such level": (("marital == 'maried'",), "Did you mean 'married'?"),
    "days and numbers": (("start <= 5",), "mixes days and numbers"),
    "no day": (("start <= 'spring'",), "Days are written"),
    "text in a sum": (("marital + 1 <= 3",), "holds text"),
    "no order": (("marital < 'widowed'",), "has no order"),
    "never missing": (("low is missing",), "which it never is"),
    "not a comparison": (("exit()",), "cannot be read"),
    "a power": (("low ** 2 < 3",), "cannot be read"),
}


@pytest.mark.parametrize("name", SAYS)
def test_rules_that_cannot_hold_are_refused_in_a_sentence(name: str) -> None:
    import re

    texts, sentence = SAYS[name]

    with pytest.raises(GibbousError) as refusal:
        check_rules(Schema(COLUMNS, rules=tuple(Rule(text) for text in texts)))

    parts = [sentence] if "|" not in sentence else sentence.split("|")
    assert any(re.search(re.escape(part), str(refusal.value)) for part in parts)


def test_d8_other_rules_that_cannot_hold() -> None:
    with pytest.raises(GibbousError, match="has no map"):
        Rule(detail="town", group="state")
    with pytest.raises(GibbousError, match="without level 't23'"):
        Schema(
            COLUMNS, rules=(Rule(detail="town", group="state", map=dict(list(STATE.items())[:-1])),)
        )
    with pytest.raises(GibbousError, match="none of the forms"):
        Rule(when="low < 3")
    none = Rule(
        columns=("state", "flag"), forbidden=tuple((s, f) for s in "NESW" for f in (True, False))
    )
    with pytest.raises(GibbousError, match="No row keeps the rule"):
        check_rules(Schema(COLUMNS, rules=(none,)))
