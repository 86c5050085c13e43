"""Help and the list of methods start fast: no heavy library is imported for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "numba", "llvmlite", "polars", "pyarrow", "pandas", "duckdb", "opendp", "scipy", "rich",
    "statsmodels", "sklearn",
}  # fmt: skip
PROGRAM = """
import sys
from gibbous.cli import main
code = main({args!r})
print(code, *sorted({{m.split('.')[0] for m in sys.modules}}), file=sys.stderr)
"""


def _modules(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(args=list(args))],
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stderr.split()
    assert code == "0"
    return set(modules)


@pytest.mark.parametrize("args", [["--help"], ["synthesize", "--help"]])
def test_help_imports_no_numerics_at_all(args: list[str]) -> None:
    assert not _modules(*args) & (HEAVY | {"numpy"})


@pytest.mark.slow
@pytest.mark.parametrize("args", [["methods"], ["methods", "sbhg", "--json"]])
def test_methods_imports_nothing_heavier_than_numpy(args: list[str]) -> None:
    assert not _modules(*args) & HEAVY


def test_a_scaffold_is_printed_without_numerics() -> None:
    assert not _modules("methods", "--scaffold", "my_mech") & (HEAVY | {"numpy"})
