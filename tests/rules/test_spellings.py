"""Other spellings of rules are read as ours; what names suggest is for a person to confirm."""

from __future__ import annotations

from pathlib import Path

import pytest

import gibbous as gb
from gibbous.cli import main
from gibbous.core.rule_laws import laws_of
from gibbous.core.rule_text import comparisons
from gibbous.read.rule_suggestions import rule_suggestions

ALIKE = [
    ("end - start in 0..365", "0 <= end - start <= 365"),
    ("x in -3 .. 2.5 and y in 1..2", "-3 <= x <= 2.5 and 1 <= y <= 2"),
    ("`a b` - c in 0..5", "0 <= `a b` - c <= 5"),
    ("start in 2020-01-01..2020-12-31", "'2020-01-01' <= start <= '2020-12-31'"),
    ("start in '2020-01-01'..'2020-12-31'", "'2020-01-01' <= start <= '2020-12-31'"),
    ("start >= 2020-06-01", "start >= '2020-06-01'"),
    ("age < 15 and y missing", "age < 15 and y is missing"),
    ("y not missing", "y is not missing"),
    ("y is missing", "y is missing"),
]


@pytest.mark.parametrize(("spelling", "ours"), ALIKE)
def test_another_spelling_says_the_same(spelling: str, ours: str) -> None:
    assert comparisons(spelling, "it") == comparisons(ours, "it")


def test_text_in_quotes_is_no_spelling() -> None:
    (one,) = comparisons("""sex == 'x in 1..2 missing 2020-01-01'""", "it")

    assert one.right.literal == "x in 1..2 missing 2020-01-01"


COLUMNS = (
    gb.Column("start_date", "date", lower="2020-01-01", upper="2020-12-31"),
    gb.Column("end_date", "date", lower="2020-01-01", upper="2020-12-31"),
    gb.Column("end_age", "numeric", lower=0, upper=9),
    gb.Column("cost total", "numeric", lower=0, upper=99),
    gb.Column("cost_drugs", "numeric", lower=0, upper=9),
    gb.Column("CostRoom", "numeric", lower=0, upper=9),
    gb.Column("age", "numeric", lower=0, upper=9),
    gb.Column("zip", "nominal", levels=("01", "02", "03")),
    gb.Column("state", "nominal", levels=("a", "b", "c")),
    gb.Column("birth_state", "nominal", levels=("a", "b", "c")),
    gb.Column("icd_code", "nominal", levels=("a", "b", "c")),
    gb.Column("icd_chapter", "nominal", levels=("1", "2", "3")),
    gb.Column("sex", "binary", levels=("f", "m")),
)
SUGGESTED = [
    "start_date <= end_date",
    "`cost total` == cost_drugs + CostRoom",
    "zip determines state",
    "icd_code determines icd_chapter",
]


def test_names_suggest_rules_which_can_be_read() -> None:
    schema = gb.Schema(COLUMNS)
    rules = rule_suggestions(schema)

    assert [rule.words() for rule in rules] == SUGGESTED
    laws_of(COLUMNS, tuple(rules))
    assert rule_suggestions(gb.Schema(COLUMNS, rules=tuple(rules[:1]))) == rules[1:]


def test_what_is_accepted_stands_in_comments_and_holds_once_these_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    gb.Schema(COLUMNS, gb.Unit("row")).save(path)

    assert main(["schema", "suggest", str(path)]) == 0
    said = capsys.readouterr().out
    assert main(["schema", "suggest", str(path), "--accept"]) == 0
    assert main(["schema", "suggest", str(path), "--accept"]) == 0
    text = path.read_text()

    assert all(f"rule: {words} (from names alone: to be confirmed)" in said for words in SUGGESTED)
    assert text.count("# [[rule]]") == len(SUGGESTED)
    assert gb.Schema.load(path).rules == ()
    head, _, rest = text.partition("# Suggested by the names")
    path.write_text(head + rest.partition("\n")[2].replace("# ", ""))
    assert [rule.words() for rule in gb.Schema.load(path).rules] == SUGGESTED
