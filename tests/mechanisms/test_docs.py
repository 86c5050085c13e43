"""Each mechanism has a page whose first example runs, and whose proof exists."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from gibbous.core.params import describe
from gibbous.mechanisms import registry

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "mechanisms").glob("*.md"))


@pytest.mark.parametrize(
    "name", [n for n in registry.names() if registry.load(n).__module__.startswith("gibbous.")]
)
def test_every_built_in_method_has_a_page(name: str) -> None:
    text = (DOCS / "mechanisms" / f"{name}.md").read_text()

    kind = registry.load(name)

    assert text.startswith(f"# {name}: ")
    assert "| the paper claims | proven here | audited by |" in text
    for info in describe(kind):
        assert f"`{info.name}`" in text, info.name


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_first_example_runs_and_prints_what_it_says(page: Path) -> None:
    text = page.read_text()
    code = text.split("```python\n", 1)[1].split("```", 1)[0]
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(compile(code, page.name, "exec"), {})

    assert text.index("```python") < 120
    for line in re.findall(r"^# (.*)$", code, re.M):
        assert line.split("...")[0] in printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).is_file(), target


@pytest.mark.parametrize(
    "name", ["sba", "sbhg", "noisy_pegs", "laplace", "contingency", "bootstrap"]
)
def test_proofs_link_to_pages_that_exist(name: str) -> None:
    page = DOCS / "proofs" / f"{name}.md"

    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).is_file(), target


def test_claims_point_at_proof_pages() -> None:
    sources = (DOCS.parent / "src" / "gibbous" / "mechanisms").glob("*.py")
    for path in sources:
        for target in re.findall(r"docs/proofs/\w+\.md", path.read_text()):
            assert (DOCS.parent / target).is_file(), f"{path.name}: {target}"
