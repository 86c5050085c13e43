"""Pages: self-contained, escaped, twice the same bytes, and with a JSON twin of all that is shown."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.evaluation.findings import Findings
from gibbous.reporting import html_page
from gibbous.reporting.internal_report import internal_page
from gibbous.reporting.page_parts import SHOWN, Page
from gibbous.reporting.public_report import opened, public_page
from tests.report import hostile_findings

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Tags, attributes and texts of a page; fails where tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


@pytest.fixture(scope="module")
def pages(nasty: Path) -> dict[str, Page]:
    release = opened(nasty)
    return {
        "public": public_page(release),
        "internal": internal_page(hostile_findings.findings(), release, hostile_findings.study()),
    }


@pytest.mark.parametrize("audience", ["public", "internal"])
def test_a_page_asks_for_nothing_outside_itself(pages: dict[str, Page], audience: str) -> None:
    text = html_page.html(pages[audience])
    found = Reader(text)

    addresses = set(re.findall(r"[a-z]+://[^\s\"'<>]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    for tag, attributes in found.tags:
        assert tag not in {"script", "iframe", "object", "embed", "img", "link", "base", "form"}
        assert not {"src", "srcset", "action", "background"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)|expression\(", text)
    policy = [a for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in str(policy[0]["content"])


@pytest.mark.slow
@pytest.mark.parametrize("audience", ["public", "internal"])
def test_hostile_names_are_shown_as_they_are(pages: dict[str, Page], audience: str) -> None:
    text = html_page.html(pages[audience])
    shown = " ".join(Reader(text).texts)

    for name in hostile_findings.NASTY:
        assert name in shown
    assert str(7919 * 7919) not in text  # templates of a name are not run
    assert hostile_findings.SCRIPT not in text


@pytest.mark.parametrize("audience", ["public", "internal"])
def test_a_page_can_be_walked_by_heading_table_and_key(
    pages: dict[str, Page], audience: str
) -> None:
    found = Reader(html_page.html(pages[audience])).tags

    names = [a["id"] for _, a in found if "id" in a]
    assert len(names) == len(set(names))
    targets = {str(a["href"])[1:] for t, a in found if t == "a"}
    assert targets <= set(names)
    levels = [int(t[1]) for t, _ in found if re.fullmatch("h[1-6]", t)]
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    kinds = [t for t, _ in found]
    assert kinds.count("table") == kinds.count("caption")
    assert kinds.count("figure") == kinds.count("figcaption") > 2
    assert kinds.count("main") == kinds.count("header") == kinds.count("nav") == 1
    for tag, attributes in found:
        if tag == "th":
            assert attributes.get("scope") in ("col", "row")
        if attributes.get("role") == "img":
            assert attributes["aria-label"]
        if tag == "svg":
            assert attributes["aria-hidden"] == "true"


@pytest.mark.parametrize("audience", ["public", "internal"])
def test_the_twin_holds_everything_that_is_shown(pages: dict[str, Page], audience: str) -> None:
    made_page = pages[audience]

    data = json.loads(html_page.twin(made_page), parse_constant=pytest.fail)

    assert data["audience"] == audience
    assert [s["title"] for s in data["sections"]] == [s.title for s in made_page.sections]
    inside = _strings(data)
    frame = {"Contents", "CONFIDENTIAL", "Skip to the content", f"gibbous · {audience} report"}
    lines = [t for text in Reader(html_page.html(made_page)).texts for t in text.split("\n")]
    for words in map(str.strip, lines):
        known = words in inside or any(words in one for one in inside)
        number = re.fullmatch(r"[−\d.,e∞+-]+|not defined|yes|no", words)
        drawn = words.endswith("…") or re.fullmatch(r"[−\d.,% ]+", words)
        if words and not (known or number or drawn or words in frame):
            assert words in html_page.INTERNAL or _of_a_chart(words), words


def _of_a_chart(words: str) -> bool:
    fixed = (
        "This file ", ". Do not publish", "belief", "at most", "at least", "no change", "share",
        "columns counted", "mean distance", "estimate with", "real records", "synthetic",
        "bootstrap", "holdout", "independent", "epsilon_proven", "tv2",
    )  # fmt: skip
    return words.startswith(fixed)


def _strings(value: object) -> set[str]:
    if isinstance(value, dict):
        return set().union(*(_strings(v) for v in value.values()), map(str, value))
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    return {str(value)}


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(nasty: Path) -> None:
    texts = [
        (html_page.html(made_page), html_page.twin(made_page))
        for _ in range(2)
        for made_page in (public_page(opened(nasty)),)
    ]
    again = [html_page.html(internal_page(hostile_findings.few())) for _ in range(2)]
    slower = Findings(
        hostile_findings.few().items, {**hostile_findings.few().facts, "elapsed_s": {"all": 99.0}}
    )

    assert texts[0] == texts[1]
    assert again[0] == again[1]
    assert html_page.twin(internal_page(slower)) == html_page.twin(
        internal_page(hostile_findings.few())
    )


@pytest.mark.slow
def test_fifty_columns_stay_under_three_megabytes() -> None:
    names = [f"a column with quite a long name {j}" for j in range(50)]
    items = (
        hostile_findings.finding("tv1", 0.01, detail=hostile_findings.overlay(50)),
        hostile_findings.finding("association", 0.1, detail=hostile_findings.pairs(names)),
    )

    made_page = internal_page(Findings(items))

    text = html_page.html(made_page)
    assert len(text.encode()) < 3_000_000
    assert text.count('class="panel"') == 24 + 3 + 2
    assert len(json.loads(html_page.twin(made_page))["findings"][1]["detail"]) == 1225


def test_a_long_table_is_cut_on_the_page_and_whole_in_the_twin() -> None:
    detail = tuple({"cell": f"cell-{i}", "value": float(i)} for i in range(SHOWN + 20))
    many = internal_page(Findings((hostile_findings.finding("tv2", 0.1, detail=detail),)))

    text = html_page.html(many)

    assert f"cell-{SHOWN - 1}<" in text
    assert f"cell-{SHOWN}<" not in text
    assert "20 more rows are in the JSON twin" in text
    assert f'"cell-{SHOWN + 19}"' in html_page.twin(many)


def test_numbers_without_an_end_break_no_chart() -> None:
    endless = hostile_findings.finding(
        "tv2", math.inf, null=(("bootstrap", math.inf), ("holdout", math.nan))
    )
    pairs = ({"first": "a", "second": "b", "real": math.nan, "synthetic": 1.0},) * 3
    more = hostile_findings.finding("association", 1.0, null=(("holdout", math.inf),), detail=pairs)

    made_page = internal_page(Findings((endless, more)))

    assert Reader(html_page.html(made_page)).tags
    json.loads(html_page.twin(made_page), parse_constant=pytest.fail)


def test_no_findings_make_a_page_that_says_so() -> None:
    text = html_page.html(internal_page(Findings(())))

    assert "Nothing was measured." in text
    assert Reader(text).tags


def test_findings_without_numbers_are_in_the_table_and_in_no_figure() -> None:
    lost = hostile_findings.finding(
        "tv2", math.nan, interval=None, null=(), note="No pair of columns."
    )

    text = html_page.html(internal_page(Findings((lost,))))

    assert "not defined" in text
    assert "No pair of columns." in text
    assert "Not defined, and in the table alone: 1." in text


def test_a_report_is_written_once_with_its_twin_for_its_owner_alone(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    empty = internal_page(Findings(()))

    html_page.write(empty, target)

    assert {p.name for p in tmp_path.iterdir()} == {"report.html", "report.json"}
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}
    with pytest.raises(OutputNotWritten, match="exists"):
        html_page.write(empty, target)
    html_page.write(empty, target, overwrite=True)


def test_a_name_or_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="html"):
        html_page.check_path(tmp_path / "report.pdf")
    with pytest.raises(OutputNotWritten, match="does not exist"):
        html_page.check_path(tmp_path / "nowhere" / "report.html")
