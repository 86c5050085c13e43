"""Notebooks of docs/notebooks run from top to bottom, and show what their readers are promised."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.frame.tree import DOCS, ROOT

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))
SHOWN = {
    "01_first_release": ("epsilon = 1", "of those who do not smoke", "<table"),
    "02_a_stewards_day": ("GB5-", "GB6-", "commit", "METHODS.md"),
    "03_inference_from_several_sets": ("treated", "sampling", "noise"),
    "04_comparing_mechanisms": ("laplace", "![What the cell drew]"),
    "05_flows_and_a_map": ("epsilon = 4.6", "![What the cell drew]"),
    "06_a_papers_figure": ("rmse", "![What the cell drew]"),
    "07_adding_a_mechanism": ("epsilon = 1", "GB5-OVERSPEND"),
    "08_spark": (),
}


@pytest.fixture
def runner() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "website"))
        yield importlib.import_module("notebooks")


def test_every_notebook_says_what_it_shows() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(SHOWN)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs_and_shows_its_results(
    path: Path, runner: ModuleType, tmp_path: Path
) -> None:
    page = runner.run(path, tmp_path)

    outputs = page.split("```python")
    assert outputs[0].startswith("# ")
    for words in SHOWN[path.stem]:
        assert any(words in part.partition("```")[2] for part in outputs), words


def test_a_cell_that_fails_ends_the_run(runner: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("# %% [markdown]\n# # T\n\n# %%\n1 / 0\n\n# %%\nprint('late')\n")

    with pytest.raises(ZeroDivisionError):
        runner.run(path, tmp_path)


def test_a_page_shows_text_code_and_the_last_value(runner: ModuleType, tmp_path: Path) -> None:
    path = ROOT / "docs" / "notebooks" / "x.py"
    held = tmp_path / "x.py"
    held.write_text("# %% [markdown]\n# # T\n\n# %%\nprint('a')\n6 * 7\n")

    found = list(runner.cells(held))

    assert found == [(True, "# T"), (False, "print('a')\n6 * 7")]
    assert runner._shown(runner._execute(found[1][1], {}, path), tmp_path / "i.svg") == (
        "```text\na\n```\n\n```text\n42\n```"
    )
