"""The site: what gathers its sources, and one strict build that is opened from a file in a browser."""

from __future__ import annotations

import ast
import fcntl
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest

import gibbous
from gibbous.encode.faults import ORDER
from tests.frame.tree import DOCS, ROOT, SRC
from tests.needs import BROWSERS, builder, need, program

WEBSITE = ROOT / "website"
ADDRESS = re.compile(r"""(?:src|href|url)\s*[=(]\s*["']?(https?:)?//[^"')\s>]+""")


@pytest.fixture(scope="module")
def site() -> Iterator[ModuleType]:
    """website/stage.py as a module, with the others beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(WEBSITE))
        yield importlib.import_module("stage")


def test_every_public_name_has_a_place_in_the_api(site: ModuleType) -> None:
    text = "".join(text for _, text in site.api.pages().values())

    assert {f"::: gibbous.{name}\n" for name in gibbous.__all__} <= set(
        text.splitlines(keepends=True)
    )


@pytest.mark.slow
def test_every_code_in_the_source_is_on_the_page_of_errors(site: ModuleType) -> None:
    """Against a search that knows nothing of calls: constants in capitals that begin a list of sentences."""
    page = site.errors.page(SRC)
    found = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) >= 4:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found |= {first.value} & set(re.findall(r"[A-Z][A-Z0-9_]{2,}", first.value))

    assert len(found) > 200
    assert not {code for code in found if not re.search(rf"^### GB\d+-{code}$", page, re.MULTILINE)}
    assert {f"### GB4-{code}" for code, *_ in ORDER} <= set(page.splitlines())
    assert {"### GB3-OUTSIDE", "### GB5-L", "### GB6-BUDGET"} <= set(page.splitlines())


def test_an_error_that_a_helper_makes_is_found_with_its_sentences(
    site: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text(
        "def bad(name, what):\n    return UsageError(name, f'{what} is wrong.', 'A.', 'Do B.')\n"
        "def check(x):\n    raise bad('ODD', f'The number {x}')\n"
    )

    fault = site.errors.faults(tmp_path)[0]

    assert (fault.kind, fault.code, fault.path) == ("UsageError", "ODD", "a.py")
    assert fault.said["allowed"] == "A."
    assert fault.said["fix"] == "Do B."


def test_links_lead_to_where_things_lie_on_the_site(site: ModuleType) -> None:
    fetched: list[Path] = []
    text = "[a](../src/gibbous/pipeline.py) [b](README.md#methods) [c](../SECURITY.md) [d](https://x.org)\n"
    code = "```python\n[x](y.md)\n```\n"

    led = site.relinked(text + code, "docs/ARCHITECTURE.md", fetched.append)

    assert led == (
        "[a](source/src/gibbous/pipeline.py.md) [b](contents.md#methods) [c](project/security.md) "
        "[d](https://x.org)\n" + code
    )
    assert fetched == [ROOT / "src" / "gibbous" / "pipeline.py"]


def test_the_four_parts_hold_every_page_of_the_index(site: ModuleType) -> None:
    nav = site._nav({"API": [], "Notebooks": []})
    shown = set(re.findall(r"'([\w/-]+\.md)'", str(nav)))

    assert [title for part in nav for title in part] == [
        "gibbous", "Start", "How to", "Understand", "Reference", "Project",
    ]  # fmt: skip
    assert {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")} - shown == {"README.md"}


def test_the_menu_names_mechanisms_as_they_are_typed(site: ModuleType) -> None:
    nav = site._nav({"API": [], "Notebooks": []})
    reference = next(part["Reference"] for part in nav if "Reference" in part)
    menu = next(one["Mechanisms"] for one in reference if "Mechanisms" in one)

    assert {name for entry in menu for name in entry} == {about.name for about in gibbous.methods()}


def test_the_proof_book_holds_every_proof_once_in_whole_sentences(site: ModuleType) -> None:
    book = site.proof_book.page()
    order = [name for _, group in site.proof_book.chapters() for name in group]
    plain = re.sub(r"\[(`[^`]+`)\]\([^)]*\)", r"\1", book)

    assert sorted(order) == sorted(p.stem for p in (DOCS / "proofs").glob("*.md"))
    assert len(re.findall(r"\{ #proof-[a-z-]+ \}", book)) >= len(order)
    for name in order:
        for line in (DOCS / "proofs" / f"{name}.md").read_text().splitlines():
            if line and not line.startswith(("#", "```")) and "](" not in line:
                assert line in plain or line in book, (name, line)
    assert order.index("noise") < order.index("accounting") < order.index("noisy_pegs")


def test_a_mark_for_tests_does_not_keep_a_block_from_being_code(
    site: ModuleType, tmp_path: Path
) -> None:
    site._write(tmp_path, "docs/x.md", "```python run\n1\n```\n```text output\n1\n```\n")

    assert (tmp_path / "x.md").read_text() == "```python\n1\n```\n```text\n1\n```\n"


def test_figures_of_the_readme_are_those_of_the_bench(site: ModuleType) -> None:
    import json

    readme = " ".join((ROOT / "README.md").read_text().split())
    lines = {
        line.name: line.means for line in site.figures.accuracy.lines("adult") if line.epsilon == 1
    }
    ours, theirs = lines["adaptive_gibbs"], lines["dpmm-aim 0.1.9"]
    rows = (ROOT / "bench" / "results" / "inference_coverage.jsonl").read_text().splitlines()
    held = [
        n / row["runs"]
        for row in map(json.loads, rows)
        if row["method"] == "adaptive_gibbs"
        for n in row["held"]
    ]
    methods = len(list(gibbous.methods()))

    assert f"differ by {ours['tv2']:.3f} on average" in readme
    assert f"reaches {theirs['tv2']:.3f} with" in readme
    # 796 s on a quiet machine, 1,740 beside other work: the page says so, and the README takes the less.
    assert "more than 60 times the CPU time" in readme
    assert min(796.0, theirs["cpu_seconds"]) / ours["cpu_seconds"] > 60
    assert f"in {100 * min(held):.1f} to {100 * max(held):.1f} % of 2,000" in readme
    assert f"{methods} methods, each" in readme
    assert "264 MB" in (DOCS / "reference" / "benchmarks.md").read_text()


def test_the_picture_of_the_readme_has_a_line_a_method_that_a_phone_shows_readably(
    site: ModuleType,
) -> None:
    """Letters of 10 pixels and more in a column of 328, which a phone of 360 has; nothing is cut."""
    lines = site.figures.accuracy.lines("adult")
    found = {line.name: line.means for line in lines if line.epsilon == 1}
    del found["resampled"]

    for name in ("reference/beside-other-tools.svg", "mechanisms/adaptive_gibbs.svg"):
        picture = (DOCS / name).read_text(encoding="utf-8")
        texts = re.findall(r">([^<>]+)</text>", picture)
        width = float(re.search(r'<svg[^>]* width="(\d+)"', picture)[1])  # type: ignore[index]

        assert min(map(float, re.findall(r'font-size="([\d.]+)px"', picture))) * 328 / width >= 10
        for method, means in found.items():
            assert any(text.rstrip("*") == method.split(",")[0] for text in texts), method
            assert f"{means['tv2']:.3f}" in texts
            assert f"{float(format(means['cpu_seconds'], '.3g')):,g}" in texts


def test_functions_of_the_tour_exist() -> None:
    page = (DOCS / "concepts" / "a-records-day.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)

    assert len(named) > 12
    for path, name in named:
        assert re.search(rf"^ *def {name}\(", (SRC / path).read_text(), re.MULTILINE), (path, name)


@pytest.fixture(scope="module")
def built(site: ModuleType) -> Path:
    """The site that `./dev docs` made, or made here as it does; skips where the builder is not installed."""
    return _built(site)


@pytest.mark.slow
def test_the_site_builds_strictly_and_asks_nothing_of_the_network(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    asked = {
        (page.name, hit.group())
        for page in pages
        for hit in ADDRESS.finditer(page.read_text(encoding="utf-8"))
        if not hit.group().startswith("href")
    }

    assert len(pages) > 180
    assert not asked
    assert (built / "reference" / "errors.html").exists()
    assert 'id="gibbous.synthesize"' in (built / "reference/api/plan-and-release.html").read_text()


# Words of tables that stand on two lines, and boxes that scroll and that no keyboard reaches.
TORN = r"""() => [...document.querySelectorAll(".md-typeset td, .md-typeset th")].flatMap(cell => {
  const found = [], range = document.createRange();
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) for (const word of texts.currentNode.textContent.matchAll(/\w+/g)) {
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].filter(r => r.width).map(r => Math.round(r.top))).size > 1)
      found.push(word[0]);
  }
  return found;
}).concat([...document.querySelectorAll(".md-typeset__scrollwrap")].filter(
  box => box.scrollWidth > box.clientWidth + 1 && box.tabIndex).map(() => "no keyboard reaches a box"))"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_names_in_tables_are_whole_and_axe_finds_nothing(
    built: Path, scheme: Literal["light", "dark"]
) -> None:
    need("Chromium")
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    from tests.studio.test_browser import serious

    pages = ("index", "how-to/studio", "how-to/discover", "mechanisms/adaptive_gibbs")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program(*BROWSERS), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        failed: list[str] = []
        page.on(
            "requestfailed",  # axe asks again for what a page has, as xhr, which a file refuses
            lambda asked: asked.resource_type == "xhr" or failed.append(asked.url),
        )
        found = []
        for name in pages:
            page.goto((built / f"{name}.html").as_uri())
            page.locator(".md-typeset__scrollwrap").first.wait_for(state="attached")
            assert page.locator(".md-typeset td").count() > 5
            found += page.evaluate(TORN) + serious(page, Axe(), name)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()

    assert found == []
    assert failed == []


def _built(stage: ModuleType) -> Path:
    need("the builder of the site")
    folder, wanted = ROOT / ".cache" / "site", stage.digest()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes test it
        for site in (ROOT / "build" / "site", folder / "website" / "site"):
            if (made := site / stage.MADE_FROM).is_file() and made.read_text() == wanted:
                return site
        _build(folder / "website")
    return folder / "website" / "site"


def _build(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WEBSITE / "stage.py"), str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    done = subprocess.run(
        [str(builder()), "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-5000:]
    # Strict mode lets the reader of docstrings (griffe) complain; ./dev docs and this test do not.
    assert not re.findall(r".*(?:griffe:|[Ww]arning).*", said)
