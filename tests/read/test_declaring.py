"""Facts declared one by one: the file says them afterwards, and everything else in it stays."""

from __future__ import annotations

import polars as pl
import pytest

from gibbous.read.declaring import Declared, declare, declared_of, next_steps, progress
from gibbous.read.edges import facts as facts_of
from gibbous.read.infer import propose
from gibbous.read.public_lists import LISTS, suggestions
from gibbous.read.schema_file import parse_schema
from tests.read.refusal import refused

DRAFT = """# ours: asked the ward on Monday
format = "gibbous-schema/1"

[unit]
kind = "row"  # one stay

[[column]]
name = "age"
kind = "numeric"
# the oldest patient, not public
lower = 3
upper = 97
cuts = [
    20,  # adults
    60,
]
integer = true
source = "inferred"

# the ward, from the register
[[column]]
name = "ward"
kind = "nominal"
levels = ["01", "02"]
sources = {kind = "inferred", levels = "inferred"}
[column.labels]
01 = "surgery"

[[impossible]]
ward = ["01"]
age = {lower = 3, upper = 19}
"""


def test_bounds_are_declared_and_the_rest_of_the_file_stays() -> None:
    plain = DRAFT[: DRAFT.index("\n[[impossible]]")]

    text, schema = declare(plain, "age", Declared(lower="0", upper="110"))

    assert schema["age"].edges == (0, 110)
    assert schema["age"].source("bounds") == "declared"
    assert schema["age"].source("kind") == "inferred"
    for line in plain.split("\n"):
        gone = ("lower", "upper", "cuts", "    20", "    60", "]", "source = ")
        assert line.startswith(gone) or line in text.split("\n")
    assert "# the oldest patient, not public" in text
    assert schema["ward"] == parse_schema(plain)["ward"]


def test_a_rule_that_no_longer_fits_is_refused_and_named() -> None:
    with refused(2) as caught:
        declare(DRAFT, "age", Declared(lower="0", upper="110"))

    assert "impossible 1" in caught.text


def test_levels_are_declared_and_labels_of_levels_that_went_away_go() -> None:
    text, schema = declare(DRAFT, "ward", Declared(levels=("01", "02", "17")))

    assert schema["ward"].levels == ("01", "02", "17")
    assert schema["ward"].source("levels") == "declared"
    assert schema["ward"].level_labels == ()
    assert "# the ward, from the register" in text


def test_labels_after_the_other_keys_stay_where_they_are() -> None:
    text, schema = declare(DRAFT, "ward", Declared(kind="ordinal", missing=True))

    assert schema["ward"].level_labels == (("01", "surgery"),)
    assert (schema["ward"].kind, schema["ward"].missing) == ("ordinal", True)
    assert text.index("missing = true") < text.index("[column.labels]")


def test_a_draft_can_be_declared_to_the_end() -> None:
    data = pl.DataFrame(
        {"age": list(range(40)) * 2, "sex": ["F", "M"] * 40, "score": [0.5, 1.5] * 40}
    )
    text = propose(data).toml().replace('kind = "undeclared"', 'kind = "row"')
    before = progress(parse_schema(text))

    schema = parse_schema(text)
    for _ in range(20):
        steps = next_steps(schema)
        if not steps:
            break
        column = schema[steps[0][0]]
        facts = declared_of(column)
        declared = Declared(
            facts.kind, facts.levels, lower=facts.lower, upper=facts.upper, missing=column.missing
        )
        text, schema = declare(text, column.name, declared)

    total = 1 + sum(len(facts_of(c.binned)) for c in schema)
    assert before == (total - len(schema.columns) * 3 - sum(c.binned for c in schema), total)
    assert progress(schema) == (total, total)
    assert schema.inferred() == ()


@pytest.mark.parametrize(
    "facts",
    [
        Declared(lower="abc"),
        Declared(lower="9", upper="1"),
        Declared(kind="nominal"),
        Declared(levels=("a", "a")),
    ],
    ids=["no number", "crossed", "a kind without levels", "a level twice"],
)
def test_facts_that_do_not_fit_are_refused(facts: Declared) -> None:
    with refused(2):
        declare(DRAFT, "age", facts)


def test_each_public_list_is_a_column() -> None:
    plain = DRAFT[: DRAFT.index("\n[[impossible]]")]

    for entry in LISTS:
        for facts in entry.facts:
            _, schema = declare(plain, "age", facts)
            assert schema["age"].source("kind") == "declared"
    assert len({len(f.levels) for e in LISTS if "iso" in e.name for f in e.facts} & {249}) == 1


def test_a_name_alone_is_declared_and_a_choice_by_the_data_is_not() -> None:
    data = pl.DataFrame({"age": list(range(40)) * 2, "sex": ["F", "M"] * 40, "x": [1, 2] * 40})

    found = {s.column: s for s in suggestions(propose(data).schema)}

    assert set(found) == {"age", "sex"}
    assert found["age"].by_name
    assert not found["sex"].by_name
    assert found["sex"].facts.levels == ("F", "M")


def test_likely_keys_are_demography_place_and_days_by_whole_words() -> None:
    from gibbous.core.schema import Column, Schema
    from gibbous.read.public_lists import likely_keys

    keys = ("age", "Sex", "zip_code", "home_region", "year_of_birth", "marital", "county5", "educ")
    others = ("wage", "unisex2x", "status", "estate", "income", "visits", "cityscape", "package")
    columns = [Column(name, "nominal", levels=("x",)) for name in (*keys, *others)]
    day = Column("admitted", "date", edges=(738000.0, 739000.0))

    assert likely_keys(Schema((*columns, day))) == (*keys, "admitted")
