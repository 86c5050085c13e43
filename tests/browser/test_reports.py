"""Both reports in headless Chromium, from disk: figures, keyboard, narrow and dark screens, print."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gibbous.reporting.internal_report import internal_report
from gibbous.reporting.public_report import public_report
from tests.needs import BROWSERS, need, program
from tests.report import hostile_findings

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NARROW = {"width": 390, "height": 844}
BOTH = pytest.mark.parametrize("audience", ["public", "internal"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium; skips where there is none."""
    need("Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program(*BROWSERS), args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both reports of a release with hostile names, on disk."""
    folder = tmp_path_factory.mktemp("reports")
    release = hostile_findings.nasty_release(folder / "release")
    return {
        "public": public_report(release, folder / "report.public.html"),
        "internal": internal_report(
            hostile_findings.findings(),
            folder / "report.internal.html",
            release=release,
            study=hostile_findings.study(),
        ),
    }


class Visit:
    """A page that is open, with what it asked for and complained about."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())

    def _route(self, route: Any) -> None:
        self.asked.append(route.request.url)
        route.continue_()

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@BOTH
def test_a_report_opens_from_disk_and_asks_for_nothing_else(
    browser: Any, reports: dict[str, Path], audience: str
) -> None:
    with Visit(browser, reports[audience]) as visit:
        visit.page.wait_for_load_state("networkidle")

        assert visit.asked == [reports[audience].as_uri()]
        assert visit.said == []
        assert visit.page.evaluate("document.scripts.length") == 0


@BOTH
def test_every_figure_is_drawn_and_has_its_numbers(
    browser: Any, reports: dict[str, Path], audience: str
) -> None:
    with Visit(browser, reports[audience]) as visit:
        visit.page.evaluate("document.querySelectorAll('.part').forEach(d => { d.open = true })")
        figures = visit.page.query_selector_all("figure")

        assert len(figures) >= 3
        for figure in figures:
            drawn = [s for s in figure.query_selector_all(".panels svg") if s.is_visible()]
            assert drawn
            for one in drawn:
                box = one.bounding_box()
                assert box["width"] > 100
                assert box["height"] > 20
                assert one.query_selector("path, line, text") is not None
            figure.query_selector("summary").click()
            assert figure.query_selector("details table").is_visible()
        names = visit.page.inner_text("body")
        assert hostile_findings.SCRIPT in names
        assert hostile_findings.HEBREW in names


@BOTH
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_telephone(
    browser: Any, reports: dict[str, Path], audience: str, scheme: str
) -> None:
    with Visit(browser, reports[audience], viewport=NARROW, color_scheme=scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")

        width = visit.page.evaluate("document.documentElement.scrollWidth")
        wide = visit.page.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => "
            "e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre, svg'))"
            ".map(e => e.outerHTML.slice(0, 120))"
        )

        assert width == NARROW["width"]
        assert wide == []


@BOTH
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(
    browser: Any, reports: dict[str, Path], audience: str, scheme: str
) -> None:
    """Contrast of 4.5 to 1 (WCAG AA) for words, in tables, captions and charts, on both grounds."""
    with Visit(browser, reports[audience], color_scheme=scheme) as visit:
        page = visit.page
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        inks = {
            page.evaluate("e => getComputedStyle(e).color", e)
            for e in page.query_selector_all("main p, td, th, figcaption, .caption, summary, dt")
            if "notice" not in (e.get_attribute("class") or "")
        }
        labels = page.evaluate(
            "[...document.querySelectorAll('.panels svg text')].filter(t => "
            "!['#fefefe', '#1c2025'].includes(t.getAttribute('fill')))"
            ".map(t => getComputedStyle(t).fill)"
        )

    assert len(inks) >= 3
    for ink in inks:
        assert _contrast(ink, ground) >= 4.5, ink
    for ink in set(labels):
        assert _contrast(ink, ground) >= 3.0, ink


@BOTH
def test_the_keyboard_reaches_the_content_and_its_numbers(
    browser: Any, reports: dict[str, Path], audience: str
) -> None:
    with Visit(browser, reports[audience]) as visit:
        page = visit.page
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.className")
        page.keyboard.press("Enter")
        there = page.evaluate("document.activeElement.id")
        opened = False
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "SUMMARY":
                page.keyboard.press("Enter")
                opened = page.evaluate("document.activeElement.parentElement.open")
                break

    assert first == "skip"
    assert there == "content"
    assert opened


def test_the_banner_stays_in_sight_and_covers_no_target(
    browser: Any, reports: dict[str, Path]
) -> None:
    with Visit(browser, reports["internal"]) as visit:
        visit.page.click("nav a[href='#risk']")
        visit.page.wait_for_timeout(900)  # the page scrolls smoothly

        banner = visit.page.query_selector(".banner")
        heading = visit.page.query_selector("#risk-title")

        assert "CONFIDENTIAL" in banner.inner_text()
        assert banner.bounding_box()["y"] == 0
        assert heading.bounding_box()["y"] >= banner.bounding_box()["height"]


def test_the_internal_report_prints_short_until_its_parts_are_opened(
    browser: Any, reports: dict[str, Path]
) -> None:
    with Visit(browser, reports["internal"]) as visit:
        short = _pages(visit.page.pdf(format="A4", print_background=True))
        order = visit.page.evaluate("[...document.querySelectorAll('section')].map(s => s.id)")
        visit.page.evaluate("document.querySelectorAll('.part').forEach(d => { d.open = true })")
        long = _pages(visit.page.pdf(format="A4", print_background=True))

    assert len(short) <= 8 < len(long)
    assert order[:3] == ["summary", "worst", "glance"]


def test_the_watermark_is_on_every_printed_page(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    with Visit(browser, reports["internal"]) as visit:
        marked = _pages(visit.page.pdf(format="A4", print_background=True))
        visit.page.evaluate(
            "for (const s of ['.watermark', '.banner']) document.querySelector(s).remove();"
            "document.body.className = ''"
        )
        bare = _pages(visit.page.pdf(format="A4", print_background=True))
    with Visit(browser, reports["public"]) as visit:
        public = _pages(visit.page.pdf(format="A4", print_background=True))

    assert len(marked) > 3
    assert all(slanted for slanted in marked), marked
    assert not any(bare)
    assert not any(public)


def _pages(pdf: bytes) -> list[int]:
    """Of each page the number of transforms that turn by 30 degrees: the watermark's lines."""
    objects = dict(re.findall(rb"(?s)(\d+) 0 obj\s(.*?)endobj", pdf))
    out = []
    for body in objects.values():
        place = re.search(rb"/Contents (\d+) 0 R", body)
        if not place or not re.search(rb"/Type\s*/Page\b", body):
            continue
        text = _stream(objects[place[1]])
        names = dict(re.findall(rb"/(X\d+) (\d+) 0 R", body))
        # What is drawn with an opacity of its own is a form that the page invokes.
        text += b"".join(_stream(objects[names[name]]) for name in re.findall(rb"/(X\d+) Do", text))
        turned = re.findall(rb"(-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) \S+ \S+ cm", text)
        out.append(sum(_slanted([float(v) for v in t]) for t in turned))
    return out


def _stream(body: bytes) -> bytes:
    found = re.search(rb"stream\r?\n", body)
    if found is None or b"/FlateDecode" not in body:
        return b""
    # The stream ends by itself: its last byte may look like the line end before "endstream".
    return zlib.decompressobj().decompress(body[found.end() :])


def _slanted(matrix: list[float]) -> bool:
    a, b, c, d = matrix
    return (
        abs(abs(a) - abs(d)) < 1e-3
        and abs(abs(b) - abs(c)) < 1e-3
        and abs(a) > 0
        and abs(abs(b) / abs(a) - 3**-0.5) < 1e-3
    )


def _contrast(ink: str, ground: str) -> float:
    """Contrast of two colors as browsers state them, by the formula of WCAG 2."""
    light = sorted(_luminance(color) for color in (ink, ground))
    return (light[1] + 0.05) / (light[0] + 0.05)


def _luminance(color: str) -> float:
    parts = [float(v) / 255 for v in re.findall(r"[\d.]+", color)[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
