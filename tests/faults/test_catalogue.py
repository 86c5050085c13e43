"""Every case of the catalogue of faults is run by a test that exists, or says why none runs it."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections import Counter

import pytest

from tests.faults.catalogue import GROUPS, PAGE, Case, cases, page
from tests.frame.tree import ROOT

CASES = cases()
SIZES = dict(zip(GROUPS, (26, 10, 18, 10, 14, 15, 8, 15, 14, 12, 10, 16, 10, 9), strict=True))
LEAST = 181  # of 187 are run


@functools.cache
def functions(file: str) -> dict[str, str]:
    """Tests of a file, with what stands before and in them."""
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    return {n.name: text for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}


def test_every_case_is_there_once() -> None:
    assert Counter(case.id[0] for case in CASES) == SIZES
    assert len({case.id for case in CASES}) == len(CASES) == 187


def test_nearly_all_are_run() -> None:
    assert sum(bool(case.tests) for case in CASES) >= LEAST
    assert all(bool(case.tests) != bool(case.why) for case in CASES)


@pytest.mark.parametrize("case", [c for c in CASES if c.tests], ids=lambda case: case.id)
def test_what_runs_a_case_exists(case: Case) -> None:
    for named in case.tests:
        file, _, test = named.partition("::")
        name, _, chosen = test.partition("[")

        assert name in functions(file), named
        assert not chosen or f'"{chosen.removesuffix("]")}"' in functions(file)[name], named


def test_the_page_is_that_of_the_catalogue() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.faults.catalogue"


@pytest.mark.slow
def test_what_runs_a_case_is_collected() -> None:
    wanted = sorted({f"tests/{named}" for case in CASES for named in case.tests})
    files = sorted({named.partition("::")[0] for named in wanted})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--collect-only",
    ]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    collected = {line for line in done.stdout.splitlines() if "::" in line}
    plain = {line.partition("[")[0] for line in collected}

    assert not [name for name in wanted if name not in collected | plain]
