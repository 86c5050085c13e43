"""Documentation is tested: snippets run, links lead somewhere, every mechanism has its page."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.frame.tree import DOCS, ROOT, blocks, mechanism_names, pages, sources

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
LATER = ("docs/studies/", "docs/concepts/", "docs/reference/")  # they wait for a slow run
RUNNABLE = [page for page in pages() if page.exists() and blocks(page, "python run")]


def test_the_readme_has_a_snippet_that_runs() -> None:
    assert ROOT / "README.md" in RUNNABLE


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=pytest.mark.slow if name.startswith(LATER) else ())
        for page in RUNNABLE
        for name in [page.relative_to(ROOT).as_posix()]
    ],
)
def test_snippets_of_the_page_run_in_order(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Blocks marked `python run` are one program a page, run in an empty folder; a warning ends it.

    It runs in this process: importing the libraries anew for each page took twice as long.
    """
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks(page, "python run")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(script), run_name="__main__")

    shown = _squeezed(capsys.readouterr().out)
    for expected in blocks(page, "text output"):
        assert _squeezed(expected) in shown


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page: Path) -> None:
    broken = [
        target
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:|#", target)
        and not (page.parent / target.partition("#")[0]).exists()
    ]

    assert not broken


def test_pages_named_in_the_code_exist() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), page)
        for path in sources()
        for page in re.findall(r"\bdocs/[\w/.-]+\.md", path.read_text(encoding="utf-8"))
    }

    assert not {(path, page) for path, page in named if not (ROOT / page).exists()}


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    linked = {(DOCS / t.partition("#")[0]).resolve() for t in LINK.findall(index.read_text())}

    lost = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.resolve() not in linked}

    assert lost == {"README.md"}


@pytest.mark.parametrize("name", mechanism_names())
def test_mechanism_has_a_page_and_a_row_in_the_readme(name: str) -> None:
    page = DOCS / "mechanisms" / f"{name}.md"

    assert page.exists()
    assert f"(docs/mechanisms/{name}.md)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", mechanism_names())
def test_mechanism_with_a_proven_claim_links_its_proof(name: str) -> None:
    from gibbous.mechanisms import registry

    about = registry.load(name).about
    if about.kind in ("none", "l_diversity"):
        pytest.skip("no claim of differential privacy, hence no proof")
    proofs = re.findall(
        r"\((\.\./proofs/[\w-]+\.md)", (DOCS / "mechanisms" / f"{name}.md").read_text()
    )

    assert proofs
    assert all((DOCS / "mechanisms" / proof).exists() for proof in proofs)


def test_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    listed = subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True)

    named = set(re.findall(r"\./dev (\w+)", text))

    assert {"demo", "test"} <= named
    assert all(f"./dev {verb}" in listed.stdout for verb in named)


def test_verbs_in_the_documentation_exist() -> None:
    from typer.main import get_command

    from gibbous.cli.app import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    named = {
        (page.relative_to(ROOT).as_posix(), verb)
        for page in pages()
        for block in re.findall(
            r"^```(?:sh|console|bash)\n(.*?)^```", page.read_text(), re.S | re.M
        )
        for verb in re.findall(r"^(?:\$ )?gibbous (\w+)", block, re.M)
    }

    assert not {(page, verb) for page, verb in named if verb not in known}


def test_decisions_are_numbered_without_gaps_and_have_three_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [int(page.name[:3]) for page in decisions]

    assert numbers == list(range(1, len(decisions) + 1))
    for page in decisions:
        headings = re.findall(r"^## (.+)$", page.read_text(), re.M)
        assert headings == ["Context", "Choice", "Consequence"], page.name
        assert len(page.read_text().split()) < 600, page.name


def test_words_that_promise_too_much_are_not_used() -> None:
    """A claim is stated with kind, unit, relation, epsilon, delta and basis, or not at all."""
    promise = re.compile(
        r"state[- ]of[- ]the[- ]art|privacy-preserving|fully private|completely anonymous|"
        r"GDPR[- ]compliant|HIPAA[- ]compliant|the (first|only|best) (package|tool|library|implementation)",
        re.IGNORECASE,
    )

    found = {
        page.relative_to(ROOT).as_posix(): promise.findall(page.read_text()) for page in pages()
    }

    assert not {page: hits for page, hits in found.items() if hits}


def test_the_changelog_has_an_unreleased_part() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()


def test_llms_txt_names_pages_that_exist() -> None:
    targets = LINK.findall((ROOT / "llms.txt").read_text())

    assert len(targets) > 5
    assert all((ROOT / target).exists() for target in targets)


def _squeezed(text: str) -> str:
    return " ".join(text.split())
