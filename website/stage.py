"""The sources of the site, gathered in one folder: pages of docs/, generated pages, and files they link to.

    python website/stage.py build/website

docs/README.md is the index: its four parts are the four parts of the site, its links the order. A link that
leaves docs/ leads to a copy: of a page among the pages, of any other file under `source/`. So whatever works
in the repository works on the site, and the site needs no other address.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import api
import errors
import figures
import notebooks
import proof_book
import versions
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^)\s]+)(\))")
IMAGE = re.compile(r"""(<img src=")([^"]+)(")""")
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.DOTALL | re.MULTILINE)
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    **{f"{name}.md": f"project/{name.lower()}.md" for name in
       ("CONTRIBUTING", "SECURITY", "CHANGELOG", "CODE_OF_CONDUCT", "ROADMAP")},
}  # fmt: skip
FOLDERS = {
    "mechanisms": "Mechanisms",
    "proofs": "Proofs",
    "decisions": "Decisions",
    "studies": "Studies",
}
ALSO = [
    {"Errors by code": "reference/errors.md"},
    {"Figures beside other tools": "reference/figures.md"},
    {"The proof book": "proofs/book.md"},
]
MADE_FROM = "assets/made-from.txt"
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"
LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".yml": "yaml", ".sh": "sh"}


def main(target: Path) -> None:
    """Fill an empty folder with docs/ and mkdocs.yml."""
    shutil.rmtree(target, ignore_errors=True)
    pages = target / "docs"
    for path in [*sorted(DOCS.rglob("*")), *(ROOT / name for name in MOVED)]:
        if path.is_file() and path.parent.name != "notebooks":
            _copy(path, pages)
    generated = _generated(pages)
    config = (ROOT / "website" / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_dump({"nav": _nav(generated)}, allow_unicode=True, sort_keys=False)
    for word, value in (
        ("SRC", str(ROOT / "src")),
        ("WEBSITE", str(ROOT / "website")),
        ("VERSION", versions.version()),
    ):
        config = config.replace(word, value)
    (target / "mkdocs.yml").write_text(config + nav, encoding="utf-8")
    shutil.copytree(ROOT / "website" / "assets", pages / "assets")
    (pages / MADE_FROM).write_text(digest(), encoding="utf-8")


def digest() -> str:
    """Of everything that the site is made from: with the same, a site need not be built again."""
    found = hashlib.sha256()
    for folder in (DOCS, ROOT / "src", ROOT / "website"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)} {path.stat().st_size} ".encode())
                found.update(path.read_bytes())
    for name in MOVED:
        found.update((ROOT / name).read_bytes())
    return found.hexdigest()


def _generated(pages: Path) -> dict[str, list[tuple[str, str]]]:
    """Write the pages that nobody writes by hand; (title, place) of each, by where they belong."""
    found: dict[str, list[tuple[str, str]]] = {"API": [], "Notebooks": []}
    _write(pages, "docs/reference/errors.md", errors.page(ROOT / "src" / "gibbous"))
    _write(pages, "docs/reference/figures.md", figures.page())
    # A search finds each proof on its own page, not a second time here.
    _write(pages, "docs/proofs/book.md", UNSEARCHED + proof_book.page())
    for name, (title, text) in api.pages().items():
        _write(pages, f"docs/reference/api/{name}", text)
        found["API"].append((title, f"reference/api/{name}"))
    for name, (title, text) in notebooks.pages(pages / "notebooks").items():
        _write(pages, f"docs/notebooks/{name}", text)
        found["Notebooks"].append((title, f"notebooks/{name}"))
    return found


def _copy(path: Path, pages: Path) -> None:
    home = path.relative_to(ROOT).as_posix()
    if path.suffix == ".md":
        _write(pages, home, path.read_text(encoding="utf-8"))
    else:
        place = pages / _place(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


def _place(home: str) -> str:
    """Where a file of the repository lies on the site."""
    if home in MOVED:
        return MOVED[home]
    if home.startswith("docs/notebooks/") and home.endswith(".py"):
        home = home.removesuffix(".py") + ".md"
    return home.removeprefix("docs/") if home.startswith("docs/") else f"source/{home}.md"


def _write(pages: Path, home: str, text: str) -> None:
    """Write one page as if it lay at `home` in the repository, its links led to where things lie here."""
    place = pages / _place(home)
    place.parent.mkdir(parents=True, exist_ok=True)
    text = re.sub(
        r"^( *```\w+) (run|output|sdv|snsql|sdmetrics|anonymeter)$", r"\1", text, flags=re.MULTILINE
    )  # marks of tests
    place.write_text(relinked(text, home, lambda path: _source(path, pages)), encoding="utf-8")


def relinked(text: str, home: str, fetch: Callable[[Path], None]) -> str:
    """The text with links from `home` turned into links from its place on the site; code stays as it is."""
    here = Path(_place(home)).parent

    def lead(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = Path(os.path.normpath(ROOT / Path(home).parent / target))
        if not path.is_relative_to(ROOT):
            raise SystemExit(f"{home}: the link {match[2]} leaves the repository")
        place = _place(path.relative_to(ROOT).as_posix())
        if place.startswith("source/"):
            fetch(path)
        led = Path(os.path.relpath(place, here)).as_posix()
        return f"{match[1]}{led}{'#' + anchor if anchor else ''}{match[3]}"

    parts = FENCE.split(text)
    parts[::2] = (IMAGE.sub(lead, LINK.sub(lead, part)) for part in parts[::2])
    return "".join(parts)


def _source(path: Path, pages: Path) -> None:
    """A page that shows a file of the repository, or lists a folder of it."""
    home = path.relative_to(ROOT).as_posix()
    place = pages / "source" / f"{home}.md"
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        body = "\n".join(f"- `{child.name}`" for child in sorted(path.iterdir()))
    else:
        text = path.read_text(encoding="utf-8").replace("\n```", "\n\u200b```")
        body = f"````{LANGUAGES.get(path.suffix, 'text')}\n{text}````"
    place.write_text(
        f"{UNSEARCHED}# `{home}`\n\nThe file as it is in the repository.\n\n{body}\n",
        encoding="utf-8",
    )


def _nav(generated: dict[str, list[tuple[str, str]]]) -> list[object]:
    """The four parts of the index, each link once; the API and the notebooks beside them."""
    seen: set[str] = set()
    parts: list[object] = [{"gibbous": "index.md"}]
    for title, text in _parts():
        entries: list[object] = []
        groups: dict[str, list[object]] = {}
        for label, place in _links(text):
            if place in seen:
                continue
            seen.add(place)
            folder = FOLDERS.get(place.split("/")[0])
            if folder and folder not in groups:
                groups[folder] = []
                entries.append({folder: groups[folder]})
            (groups[folder] if folder else entries).append({label: place})
        if title == "Reference":
            entries = [{"Python API": [{t: p} for t, p in generated["API"]]}, *ALSO, *entries]
        if title == "How to":
            entries.append({"Notebooks": [{t: p} for t, p in generated["Notebooks"]]})
        parts.append({title: entries})
    rest = [{name.removesuffix(".md").replace("_", " ").capitalize(): place}
            for name, place in MOVED.items() if place.startswith("project/")]  # fmt: skip
    return [*parts, {"Project": [*rest, {"All pages": "contents.md"}]}]


def _parts() -> Iterator[tuple[str, str]]:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _links(text: str) -> Iterator[tuple[str, str]]:
    for label, target in re.findall(r"\[([^\]]*)\]\(([^)\s#]+)", text):
        path = Path(os.path.normpath(DOCS / target))
        place = _place(path.relative_to(ROOT).as_posix())
        if place.startswith("notebooks/"):
            continue
        label = " ".join(label.split())
        # A mechanism and a study are shown as their names are typed.
        typed = place.startswith(("mechanisms/", "studies/"))
        yield label if typed else label[:1].upper() + label[1:], place


if __name__ == "__main__":
    main(Path(sys.argv[1]))
