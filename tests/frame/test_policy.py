"""Rules about the tests themselves."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.frame.tree import ROOT, dotted, nodes, tree

TESTS = ROOT / "tests"


def test_statistical_tests_state_their_level() -> None:
    """In the docstring of the test or of its file, or in a comment beside the tests."""
    silent = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path, function in _functions()
        if _marked(path, function, "statistical")
        and not re.search(
            r"level|power|alarm|sigma|quantile",
            path.read_text(),
            re.IGNORECASE,
        )
    ]

    assert not silent


def test_every_folder_of_tests_is_a_package() -> None:
    missing = {
        path.parent.relative_to(ROOT).as_posix()
        for path in TESTS.rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    }

    assert not missing


def test_no_test_is_retried_or_mocks_our_own_code() -> None:
    banned = re.compile(r"flaky|unittest\.mock|mocker\b")

    found = [
        f"{path.relative_to(ROOT)}: {hit.group()}"
        for path in TESTS.rglob("*.py")
        if path.name != Path(__file__).name
        for hit in banned.finditer(path.read_text())
    ]

    assert not found


def test_names_of_tests_are_unique_within_a_file() -> None:
    found = []
    for path in TESTS.rglob("test_*.py"):
        body = tree(path).body
        names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        found += [
            f"{path.relative_to(ROOT)}: {n}" for n in sorted(set(names)) if names.count(n) > 1
        ]

    assert not found


def _functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path, node


def _marked(path: Path, function: ast.FunctionDef, mark: str) -> bool:
    names = [dotted(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
    return f"pytest.mark.{mark}" in names or _marked_as_a_whole(path, mark)


@functools.cache
def _marked_as_a_whole(path: Path, mark: str) -> bool:
    return bool(re.search(rf"^pytestmark = .*\b{mark}\b", path.read_text(), re.MULTILINE))
