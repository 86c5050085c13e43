"""The table of guarantees: every promise names code and a test, and both exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.frame.tree import DOCS, ROOT, SRC

PAGE = DOCS / "reference" / "guarantees.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not re.match(r"\|(-|\s*promise)", line)
]


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_the_promise_names_code_and_tests_that_exist(row: list[str]) -> None:
    promise, code, tests = row
    files = re.findall(r"`([^`]+)`", code)
    named = re.findall(r"`([^`]+)::([^`]+)`", tests)

    assert promise
    assert files
    assert named
    assert [f for f in files if not (SRC / f).is_file()] == []
    assert [(f, name) for f, name in named if name not in functions(f)] == []


def functions(path: str) -> set[str]:
    """Names of the tests of one file."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(body) if isinstance(n, ast.FunctionDef)}
