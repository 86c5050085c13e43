"""Schema files: what they say, what they refuse, and that nothing is lost on the way."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.core.column_texts import LENGTHS
from gibbous.core.errors import UsageError
from gibbous.core.schema import FACTS, Column, Impossible, Schema, Unit
from gibbous.read.edges import calendar, equal_width
from gibbous.read.schema_file import (
    load_schema,
    parse_schema,
    schema_from_json,
    schema_json,
    schema_toml,
)
from tests.read.refusal import refused

HEAD = 'format = "gibbous-schema/1"\n[unit]\nkind = "row"\n'
AGE = (
    '[[column]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 99\nbins = 10\ninteger = true\n'
)
SEX = '[[column]]\nname = "sex"\nkind = "nominal"\nlevels = ["F", "M"]\nmissing = true\n'
DAY = '[[column]]\nname = "day"\nkind = "date"\nlower = 2020-01-01\nupper = "2020-12-31"\n'

words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
levels = st.one_of(
    words,
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
sources = st.lists(
    st.tuples(st.sampled_from(FACTS), st.sampled_from(["inferred", "discovered", "declared"])),
    max_size=4,
    unique_by=lambda pair: pair[0],
).map(tuple)


lines = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=30)
texts = st.fixed_dictionaries({key: st.none() | lines for key in LENGTHS})


def unique_levels(values: list[object]) -> bool:
    pairs = [(type(v) is bool, v) for v in values]
    return len(set(pairs)) == len(pairs) == len({str(v) for v in values})


@st.composite
def level_columns(draw: st.DrawFn) -> Column:
    values = draw(st.lists(levels, min_size=1, max_size=6).filter(unique_levels))
    other = draw(st.none() | words.filter(lambda w: w not in map(str, values)))
    kind = draw(st.sampled_from(["nominal", "ordinal"]))
    missing, source = draw(st.booleans()), draw(sources)
    named = tuple((v, draw(lines)) for v in values if draw(st.booleans()))
    facts = {"missing": missing, "other": other, "sources": source, "level_labels": named}
    return Column(draw(words), kind, tuple(values), **facts, **draw(texts))


@st.composite
def binned_columns(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["numeric", "whole", "date"]))
    numbers = {
        "numeric": st.floats(allow_nan=False, allow_infinity=False, width=32),
        "whole": st.integers(-(2**63), 2**63 - 1),
        "date": st.integers(1, date.max.toordinal()),
    }[kind]
    edges = sorted(draw(st.lists(numbers, min_size=2, max_size=6, unique=True)))
    if edges[0] == edges[-1]:  # -0.0 and 0.0
        edges = [0.0, 1.0]
    edges = sorted(set(edges))
    decimals = draw(st.none() | st.integers(0, 15)) if kind == "numeric" else None
    form = draw(st.sampled_from([None, "%d/%m/%Y"])) if kind == "date" else None
    return Column(
        draw(words),
        "date" if kind == "date" else "numeric",
        edges=tuple(edges),
        integer=kind == "whole",
        decimals=decimals,
        clamp=draw(st.booleans()),
        missing=draw(st.booleans()),
        date_format=form,
        sources=draw(sources),
        **draw(texts),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = draw(
        st.lists(
            level_columns() | binned_columns(), min_size=1, max_size=4, unique_by=lambda c: c.name
        )
    )
    rules = []
    # One code of one column with at least two, and never every code: some row stays possible.
    for column in columns:
        if column.size > 1 and draw(st.booleans()):
            codes = draw(st.sets(st.integers(1, column.size - 1), min_size=1))
            rules.append(Impossible(((column.name, tuple(sorted(codes))),)))
    person = draw(words.filter(lambda w: w not in {c.name for c in columns}))
    most = draw(st.integers(1, 9))
    unit = draw(st.sampled_from([None, Unit(), Unit("person", person, most)]))
    ignore = tuple(draw(st.lists(words, max_size=3)))
    return Schema(
        tuple(columns),
        unit,
        tuple(rules),
        draw(st.just("") | words),
        ignore,
        draw(words),
        draw(lines),
    )


@given(schemas())
@pytest.mark.slow
def test_a_schema_survives_toml_and_json_exactly(schema: Schema) -> None:
    through_toml = parse_schema(schema_toml(schema))
    through_json = schema_from_json(json.loads(json.dumps(schema_json(schema))))

    assert through_toml == schema
    assert through_json == schema
    assert [tuple(map(type, c.levels)) for c in through_toml] == [
        tuple(map(type, c.levels)) for c in schema
    ]


def test_a_schema_file_reads_as_its_page_says(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    rule = '[[impossible]]\nage = {lower = 0, upper = 9}\nsex = ["M", "(missing)"]\n'
    path.write_text(HEAD + AGE + SEX + DAY + 'by = "month"\n' + rule, encoding="utf-8")

    schema = load_schema(path)

    assert schema["age"].edges == (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)
    assert schema["day"].bins == 12
    assert schema["day"].edges[1] == date(2020, 2, 1).toordinal()
    assert schema.impossible == (Impossible((("age", (0,)), ("sex", (1, 2)))),)
    assert schema.unit == Unit()


LABELED = """[[column]]
name = "smokes"
kind = "nominal"
label = "Smoking, self-reported"
measured_in = "answers"
levels = [1, 2, true]
labels = {1 = "never", true = "daily"}
"""


def test_texts_of_a_column_are_read_and_change_no_code() -> None:
    schema = parse_schema(HEAD + LABELED)

    column = schema["smokes"]
    assert (column.label, column.measured_in) == ("Smoking, self-reported", "answers")
    assert column.level_labels == ((1, "never"), (True, "daily"))
    assert column.labels() == ("1", "2", "True")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('labels = {9 = "weekly"}', "not a level"),
        ('labels = {1 = ""}', "is empty"),
        ("labels = {1 = 2}", "is not text"),
        ('labels = ["never"]', "not a table"),
        ('label = "a\\u001b[2Jb"', "control characters"),
        (f'note = "{"x" * 5_001}"', "5,001 characters"),
        ('lable = "Smoking"', "'label'"),
    ],
)
def test_texts_that_are_wrong_are_refused(wrong: str, says: str) -> None:
    plain = '[[column]]\nname = "smokes"\nkind = "nominal"\nlevels = [1, 2]\n'

    with refused(2) as caught:
        parse_schema(HEAD + plain + wrong + "\n")

    assert says in caught.text


def test_equal_width_bins_of_whole_numbers_differ_by_at_most_one_value() -> None:
    for lower, upper, bins in (
        (0, 99, 10),
        (17, 90, 8),
        (0, 10, 3),
        (-5, 5, 10),
        (2**62, 2**63 - 1, 7),
    ):
        edges = equal_width(lower, upper, bins, whole=True)
        sizes = [b - a for a, b in zip(edges, edges[1:], strict=False)]
        sizes[-1] += 1

        assert edges[0] == lower
        assert edges[-1] == upper
        assert max(sizes) - min(sizes) <= 1


def test_equal_width_bins_of_numbers_are_the_nearest_floats() -> None:
    assert equal_width(0.0, 1.0, 10, whole=False) == tuple(i / 10 for i in range(11))


def test_calendar_bins_start_with_the_month_and_the_year() -> None:
    low, high = date(2019, 11, 15).toordinal(), date(2021, 2, 3).toordinal()

    months = [date.fromordinal(int(e)) for e in calendar(low, high, "month")]
    years = [date.fromordinal(int(e)) for e in calendar(low, high, "year")]

    assert months[1:-1] == [date(2019, 12, 1)] + [date(2020, m, 1) for m in range(1, 13)] + [
        date(2021, 1, 1),
        date(2021, 2, 1),
    ]
    assert years == [date(2019, 11, 15), date(2020, 1, 1), date(2021, 1, 1), date(2021, 2, 3)]


WRONG = {
    "no format": (SEX, "format"),
    "no unit": ('format = "gibbous-schema/1"\n' + SEX, "[unit]"),
    "person without max_rows": (HEAD.replace('"row"', '"person"\ncolumn = "id"') + SEX, "max_rows"),
    "person column described": (
        HEAD.replace('"row"', '"person"\ncolumn = "sex"\nmax_rows = 2') + SEX,
        "identifier",
    ),
    "no columns": (HEAD, "[[column]]"),
    "levels missing": (HEAD + '[[column]]\nname = "a"\nkind = "nominal"\n', "levels"),
    "level twice": (HEAD + SEX.replace('"M"', '"F"'), "twice"),
    "bounds reversed (C11)": (HEAD + AGE.replace("upper = 99", "upper = -1"), "lower"),
    "bounds equal (C11)": (
        HEAD + AGE.replace("99", "0").replace("integer = true\n", ""),
        "increase",
    ),
    "bounds nan (C11)": (HEAD + AGE.replace("99", "nan"), "finite"),
    "bound is text": (HEAD + AGE.replace("99", '"99"'), "finite"),
    "bounds beyond 64 bits": (HEAD + AGE.replace("99", str(2**63)), "64"),
    "cuts and bins": (HEAD + AGE + "cuts = [5]\n", "One of"),
    "too many bins": (HEAD + AGE.replace("bins = 10", "bins = 100"), "At most 99"),
    "missing is text": (HEAD + SEX.replace("true", '"yes"'), "true or false"),
    "ambiguous date format": (HEAD + DAY + 'format = "%d/%m/%y"\n', "%Y"),
    "not a day": (HEAD + DAY.replace("2020-01-01", '"1.1.2020"'), "ISO"),
    "rule on half a bin": (
        HEAD + AGE + SEX + "[[impossible]]\nage = {lower = 0, upper = 10}\n",
        "bin",
    ),
    "not TOML": (HEAD + "= 3\n", "line 4"),
    "key twice (D2)": (HEAD + SEX + 'kind = "nominal"\n', "no key twice"),
    "a YAML bomb (D2)": ("a: &a [x,x]\nb: &b [*a,*a]\n", "TOML"),
    "a YAML object (D2)": ("!!python/object/apply:os.system ['true']\n", "TOML"),
    "deep nesting (D2)": (HEAD + "a = " + "[" * 5000 + "]" * 5000 + "\n", "TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_schema_file_is_refused_with_advice(case: str) -> None:
    text, says = WRONG[case]

    with refused(2) as caught:
        parse_schema(text)

    assert says in caught.text


NEAR = {
    "epsilom": (HEAD.replace("[unit]", "nul = ''\n[unit]") + SEX, "'null'"),
    "column key": (HEAD + AGE.replace("lower", "lowr"), "'lower'"),
    "kind": (HEAD + AGE.replace('"numeric"', '"numerical"'), "'numeric'"),
    "other tools' word": (HEAD + SEX.replace("levels", "categories"), "'levels'"),
    "level in a rule": (HEAD + SEX + '[[impossible]]\nsex = ["MM"]\n', "'M'"),
    "column in a rule": (HEAD + SEX + '[[impossible]]\nsxe = ["M"]\n', "'sex'"),
    "source": (HEAD + SEX + 'source = "infered"\n', "'inferred'"),
    "fact": (HEAD + SEX + 'sources = {level = "inferred"}\n', "'levels'"),
    "unit": (HEAD.replace("row", "rows") + SEX, "'row'"),
}


@pytest.mark.parametrize("case", NEAR)
def test_d3_an_unknown_key_is_answered_with_the_nearest_one(case: str) -> None:
    text, near = NEAR[case]

    with refused(2) as caught:
        parse_schema(text)

    assert f"Did you mean {near}?" in caught.text


def test_d2_a_huge_schema_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(50_000_000)

    with refused(2, "SCHEMAFILE"):
        load_schema(path)


def test_d2_a_directory_or_a_missing_file_is_no_schema(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.toml", Path("nul\0l")):
        with refused(2, "SCHEMAFILE"):
            load_schema(path)


def test_d5_a_newer_format_names_the_version_it_needs() -> None:
    with refused(2, "NEWERSCHEMA") as caught:
        parse_schema(HEAD.replace("/1", "/2") + SEX)

    assert "gibbous-schema/2" in caught.text
    assert "gibbous-schema/1" in caught.text


def test_d7_rules_that_leave_no_row_are_refused() -> None:
    rules = '[[impossible]]\nsex = ["F"]\n[[impossible]]\nsex = ["M", "(missing)"]\n'

    with refused(4, "NOROWPOSSIBLE"):
        parse_schema(HEAD + SEX + AGE + rules)


def test_d8_rules_that_cannot_hold_together_are_refused_before_any_charge() -> None:
    rules = "".join(
        f"[[impossible]]\nsex = {sex}\nage = {{lower = {low}, upper = {high}}}\n"
        for sex in ('["F"]', '["M"]', '"(missing)"')
        for low, high in ((0, 49), (50, 99))
    )

    with refused(4, "NOROWPOSSIBLE"):
        parse_schema(HEAD + SEX + AGE + rules)


def test_an_undeclared_unit_is_written_and_read_as_undeclared() -> None:
    schema = Schema((Column("a", "nominal", ("x",)),), None)

    text = schema_toml(schema)

    assert 'kind = "undeclared"' in text
    assert "declare kind" in text
    assert parse_schema(text).unit is None


def test_a_draft_says_what_to_review_and_a_declared_schema_does_not() -> None:
    inferred = tuple((fact, "inferred") for fact in ("kind", "levels", "missing"))
    draft = Schema((Column("a", "nominal", ("x",), sources=inferred),))

    assert "list every level" in schema_toml(draft)
    assert 'source = "inferred"' in schema_toml(draft)
    assert "#" not in schema_toml(Schema((Column("a", "nominal", ("x",)),)))


def test_a_rule_over_other_and_missing_of_confusing_names_survives() -> None:
    column = Column("a", "nominal", ("(missing)", "x"), missing=True, other="else")
    schema = Schema((column,), impossible=(Impossible((("a", (0, 2, 3)),)),))

    assert parse_schema(schema_toml(schema)) == schema


def test_a25_hostile_names_are_plain_text() -> None:
    names = [
        'a"; drop table t; --',
        "x" * 10_000,
        "🌖",
        "\u202eabc",
        "__proto__",
        "<script>",
        "a\nb",
    ]
    schema = Schema(tuple(Column(n, "nominal", (n, "]]")) for n in names))

    assert parse_schema(schema_toml(schema)) == schema


def test_text_that_no_file_can_hold_is_refused() -> None:
    with refused(2, "SCHEMATEXT"):
        schema_toml(Schema((Column("a", "nominal", ("\ud800",)),)))


@pytest.mark.parametrize("lower", ["2020-01-31", date(2020, 1, 31)])
def test_bounds_alone_are_given_by_name_and_stay_when_a_column_is_changed(lower: Any) -> None:
    day = Column("d", "date", lower=lower, upper="2020-12-31")
    pay = Column("pay", "numeric", lower=0, upper=99.5, decimals=2)

    assert day.edges == (737455.0, 737790.0)
    assert replace(pay, clamp=True).edges == pay.edges == (0, 99.5)
    document = tomllib.loads(schema_toml(Schema((day, pay), Unit())))
    assert str(document["column"][0]["lower"]) == "2020-01-31"
    assert document["column"][1]["upper"] == 99.5


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("numeric", {"lower": 0}, "has both"),
        ("numeric", {"lower": 0, "upper": 9, "edges": (0, 9)}, "has both"),
        ("nominal", {"lower": 0, "upper": 9}, "has both"),
        ("date", {"lower": "1 May", "upper": "2 May"}, "not a day"),
        ("date", {"lower": 3, "upper": 4}, "not a day"),
        ("numeric", {"lower": "0", "upper": "9"}, "do not increase"),
    ],
)
def test_bounds_that_are_none_are_refused(kind: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Column("x", kind, **more)
