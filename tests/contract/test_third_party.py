"""A mechanism in a separate package, found by its entry point, passes the shipped contract."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "crescent"
version = "0.0.1"
dependencies = ["gibbous"]

[project.entry-points."gibbous.mechanisms"]
{name} = "crescent.{name}:{cls}"

[tool.hatch.build.targets.wheel]
packages = ["crescent"]
"""


@pytest.mark.slow
def test_a_scaffolded_mechanism_in_its_own_package_passes_the_contract(tmp_path: Path) -> None:
    source = subprocess.run(
        [sys.executable, "-m", "gibbous", "methods", "--scaffold", "crescent_margins"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    package = tmp_path / "project" / "crescent"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "crescent_margins.py").write_text(source)
    project = PYPROJECT.format(name="crescent_margins", cls="CrescentMargins")
    (package.parent / "pyproject.toml").write_text(project)
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--target", str(site), str(package.parent)],
        check=True,
    )  # fmt: skip

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
         "--pyargs", "gibbous.contract", "--mechanism", "crescent_margins"],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "crescent_margins" not in done.stderr
    assert " passed" in done.stdout
