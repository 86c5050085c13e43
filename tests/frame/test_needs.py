"""What tests need beyond a bare clone is one list, and the page shows it."""

from __future__ import annotations

import ast
import importlib.metadata

import pytest
from packaging.requirements import Requirement

from tests.frame.tree import ROOT, project
from tests.needs import NEEDS, PAGE, need, table, users


@pytest.mark.slow
def test_A_the_page_lists_what_tests_need() -> None:
    """Paste what `python -c "from tests.needs import table; print(table())"` prints."""
    assert table() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NEEDS)
def test_A_what_is_listed_is_needed(name: str) -> None:
    assert users(name)


def test_A_a_test_that_lacks_something_skips_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(pytest.skip.Exception, match="needs Java 17"):
        need("Java 17")


@pytest.mark.slow
def test_A_no_test_needs_what_is_not_listed() -> None:
    """A skip for want of something goes through `need`; a module may be missing that no extra installs."""
    wrong = []
    installed = _installed()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or path.name == "needs.py":
                continue
            name = ast.unparse(node.func)
            words = " ".join(a.value for a in ast.walk(node) if _is_text(a))
            asks = words.startswith("needs ") or "not installed" in words or "absent" in words
            if (name == "pytest.skip" and asks) or name.endswith("mark.skipif"):
                wrong.append((path.relative_to(ROOT).as_posix(), node.lineno))
            if name.endswith("importorskip") and words.split(".")[0].split()[0] not in installed:
                wrong.append((path.relative_to(ROOT).as_posix(), node.lineno))

    assert not wrong


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _installed() -> set[str]:
    """Modules of the packages that ./dev test installs, and gibbous itself."""
    extras = project()["project"]["optional-dependencies"]
    names = {"dev", "test", "contract", "demo", "duckdb", "evaluate", "pandas", "postgresql"}
    asked = [line for name in (*names, "report") for line in extras[name]]
    asked += project()["project"]["dependencies"]
    packages = {Requirement(line).name.replace("_", "-").lower() for line in asked}
    modules = importlib.metadata.packages_distributions()
    return {"gibbous"} | {
        m for m, d in modules.items() if {n.replace("_", "-").lower() for n in d} & packages
    }
