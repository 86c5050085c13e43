"""The codebook of a release: every column and code, for people, made from the public schema alone."""

from __future__ import annotations

import re
from html import unescape

import pytest

from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.write import codebook
from gibbous.write.codebook import codebook_html

SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("ward", "nominal", levels=("01", "02"), other="elsewhere", missing=True),
        Column(
            "age",
            "numeric",
            edges=(0, 18, 65, 110),
            integer=True,
            sources=(("bounds", "inferred"),),
        ),
    ),
    unit=Unit("person", "patient", 3),
    impossible=(Impossible((("sex", (1,)), ("ward", (0, 1)))),),
    name="stays",
)


def cells(page: str) -> list[list[str]]:
    """The rows of all tables, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.replace("<bdi>", "").replace("</bdi>", ""))
    return [[unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_a_codebook_lists_every_column_with_its_codes_and_what_was_not_declared() -> None:
    page = codebook_html(SCHEMA)

    found = cells(page)
    assert [
        "ward",
        "",
        "nominal",
        "4",
        "01, 02; elsewhere: all others",
        "a level of its own",
        "-",
    ] in found
    assert ["age", "", "numeric", "3", "[0, 110] in 3 bins", "none", "bounds (inferred)"] in found
    assert [row for row in found if row[0].isdigit()] == [
        ["0", "f"], ["1", "m"],
        ["0", "01"], ["1", "02"], ["2", "elsewhere"], ["3", "(missing)"],
        ["0", "[0, 18)"], ["1", "[18, 65)"], ["2", "[65, 110]"],
    ]  # fmt: skip
    assert ["sex is m and ward is 01 or 02"] in found
    assert "one person (patient), at most 3 rows" in page


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '" onload="x', "a\n\0\x1b[2J", "\u202e\ud800"]
)
def test_k9_names_and_levels_are_text_and_nothing_else(name: str) -> None:
    schema = Schema((Column(name, "nominal", levels=(name, "&lt;")),), name=name)

    page = codebook_html(schema)

    page.encode()  # no half of a character is left
    assert set(re.findall(r"<(\w+)", page)) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "bdi", "div", "table", "thead",
        "tbody", "tr", "th", "td", "details", "summary",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]|onload=\"", page)
    assert "&amp;lt;" in page
    assert "default-src 'none'" in page


def test_a_codebook_stays_small_and_says_where_the_rest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codebook, "MOST", 4)

    page = codebook_html(SCHEMA)

    assert "ward</bdi>: 4 codes, listed in schema.toml." in page
    assert len(page) < 5_000
