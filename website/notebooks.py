"""Notebooks: Python files with cells (`# %%`), run from top to bottom; their pages show code and output.

    python website/notebooks.py docs/notebooks/first_release.py     # runs one, prints its page

The form is jupytext's percent format, so that Jupyter and editors open the files as notebooks. A cell that
fails ends the run. Each notebook runs in an empty folder and with a ledger of its own.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "notebooks"
CELL = re.compile(r"^# %%[ ]*(\[markdown\])?.*\n", re.MULTILINE)


class Skipped(Exception):
    """A notebook that needs what this machine lacks; the sentence says what."""


def pages(images: Path) -> dict[str, tuple[str, str]]:
    """File name -> (title, page) of every notebook, in the order of their names; each is run."""
    found = {}
    for path in sorted(SOURCES.glob("*.py")):
        page = run(path, images)
        title = re.search(r"^# (.+)$", page, re.MULTILINE)
        assert title is not None, f"{path.name} has no title"
        found[f"{path.stem}.md"] = (title[1], page)
    return found


def run(path: Path, images: Path) -> str:
    """The page of one notebook, Markdown: text, code, and what the code showed."""
    names: dict[str, Any] = {"__name__": "__main__", "skip": _skip}
    parts: list[str] = []
    with _empty_folder():
        for number, (is_text, source) in enumerate(cells(path)):
            if is_text:
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            try:
                shown = _shown(_execute(source, names, path), images / f"{path.stem}-{number}.svg")
            except Skipped as reason:
                parts.append(f"> The rest was not run here: {reason}")
                break
            parts += [shown] if shown else []
    link = f"This page is the output of `{path.relative_to(ROOT).as_posix()}`, which Jupyter opens through jupytext."
    return "\n\n".join([*parts, link]) + "\n"


def _skip(reason: str) -> None:
    raise Skipped(reason)


def cells(path: Path) -> Iterator[tuple[bool, str]]:
    """(whether it is text, source) of each cell."""
    text = path.read_text(encoding="utf-8")
    marks = list(CELL.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        body = text[mark.end() : following.start() if following else len(text)].strip("\n")
        if mark[1]:
            body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        if body:
            yield bool(mark[1]), body


def _execute(source: str, names: dict[str, Any], path: Path) -> tuple[str, Any]:
    """What a cell printed, and the value of its last line if that is an expression."""
    tree = ast.parse(source, str(path))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out, value = io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, str(path), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
    return out.getvalue(), value


def _shown(result: tuple[str, Any], image: Path) -> str:
    printed, value = result
    parts = [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
    if hasattr(value, "to_dict") and hasattr(value, "mark_point"):  # a chart of altair
        image.parent.mkdir(parents=True, exist_ok=True)
        value.save(str(image))
        parts.append(f"![What the cell drew]({image.name})")
    elif hasattr(value, "_repr_html_"):
        html = re.sub(r"<style.*?</style>", "", value._repr_html_(), flags=re.DOTALL)
        parts.append('<div class="shown" markdown="0">' + re.sub(r"\n\s*", "", html) + "</div>")
    elif value is not None:
        parts.append(f"```text\n{value!r}\n```")
    return "\n\n".join(parts)


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    """A working folder and a home of gibbous that are gone afterwards."""
    before, home = Path.cwd(), os.environ.get("GIBBOUS_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GIBBOUS_HOME"] = f"{folder}/home"
        work = Path(folder, "work")
        work.mkdir()
        os.chdir(work)
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("GIBBOUS_HOME")
            if home is not None:
                os.environ["GIBBOUS_HOME"] = home


if __name__ == "__main__":
    print(run(Path(sys.argv[1]).resolve(), Path(tempfile.mkdtemp())))
