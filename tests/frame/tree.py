"""The repository as the frame tests see it: source files, their syntax trees, tracked text."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "gibbous"
DOCS = ROOT / "docs"
NOT_OURS = {
    "__pycache__",
    "build",
    "demo-release",
    "demo-release-internal",
    "dist",
    "gibbous-demo",
    "gibbous-demo-internal",
}


@functools.cache
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def mechanism_names() -> list[str]:
    """Names of the built-in mechanisms, as registered."""
    return sorted(project()["project"]["entry-points"]["gibbous.mechanisms"])


def sources() -> list[Path]:
    """All Python files of the package."""
    return sorted(SRC.rglob("*.py"))


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree of one file: a walk takes longer than the tests that look at it."""
    return tuple(ast.walk(tree(path)))


@functools.cache
def calls() -> tuple[tuple[Path, ast.Call], ...]:
    """Every call in the package."""
    return tuple(
        (path, node) for path in sources() for node in nodes(path) if isinstance(node, ast.Call)
    )


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Modules that a file imports when it runs, anywhere in it: (dotted name, line)."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    dynamic = "import_module" in path.read_text(encoding="utf-8")
    for node in _running(tree(path), dynamic):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node).endswith("import_module"):
            yield from (
                (str(a.value), node.lineno) for a in node.args if isinstance(a, ast.Constant)
            )


def _running(node: ast.AST, expressions: bool) -> Iterator[ast.AST]:
    """Every node that runs; without `expressions` statements alone, which are few."""
    left = [node]
    while left:
        for child in ast.iter_child_nodes(left.pop()):
            if isinstance(child, ast.If) and dotted(child.test).endswith("TYPE_CHECKING"):
                continue
            if isinstance(child, ast.expr) and not expressions:
                continue
            yield child
            left.append(child)


def called(node: ast.Call) -> str:
    """Dotted name of what is called, or ""."""
    return dotted(node.func)


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text, or "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def where(path: Path, line: int) -> str:
    """`src/gibbous/x.py:12`."""
    return f"{path.relative_to(ROOT)}:{line}"


@functools.cache
def tracked_text() -> dict[Path, str]:
    """Every text file that is, or would be, committed."""
    found = {}
    for path in _tracked():
        try:
            found[path] = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
    return found


def pages() -> list[Path]:
    """README and every page of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")]


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page that begin with exactly this info string, for example "python run"."""
    fenced = re.compile(rf"^```{re.escape(language)}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return fenced.findall(page.read_text(encoding="utf-8"))


def _tracked() -> list[Path]:
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        if listed.returncode == 0:
            names = listed.stdout.decode().split("\0")
            return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and _ours(path.relative_to(ROOT))]


def _ours(path: Path) -> bool:
    hidden = any(
        part.startswith(".") and part not in (".ci", ".github") for part in path.parts[:-1]
    )
    return not hidden and not NOT_OURS & set(path.parts)
