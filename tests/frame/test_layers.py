"""Imports go one way, heavy libraries stay with their owners, and `import gibbous` stays light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.tree import ROOT, SRC, imports, nodes, project, sources, tree, where

# Which files may import which library; a folder stands for all files in it.
OWNERS = {
    "opendp": ("privacy/entropy.py",),
    "numba": ("core/compiled.py",),
    "llvmlite": ("core/kernel.py",),
    "duckdb": ("read/databases",),
    "ibis": ("read/databases",),
    "adbc_driver_postgresql": ("read/databases",),
    "pyspark": ("disintegrate/spark",),
    "polars": (
        "read",
        "encode",
        "write",
        "disintegrate",
        "evaluation",
        "frontier",
        "studies",
        "flows",
        "data",
        "coming_from/smartnoise.py",
        "contract/printed_guarantee.py",
        "reporting/flow_map_files.py",
        "core/release.py",
        "studio/histogram.py",
        "studio/screens/release.py",
    ),
    "pandas": ("read", "data", "evaluation", "write/pandas_frames.py"),
    "pyarrow": ("read", "disintegrate/spark", "write/arrow_frames.py"),
    "statsmodels": ("data", "cli", "evaluation"),
    "typer": ("cli",),
    "rich": ("cli",),
    "pytest": ("contract",),
    "scipy": ("contract", "evaluation", "studies"),
    "sklearn": ("evaluation", "estimator.py"),
    "formulaic": ("evaluation",),
    "altair": ("reporting", "studies"),
    "jinja2": ("write", "studio/pages.py"),
    "starlette": ("studio",),
    "uvicorn": ("studio/server.py",),
    "markdown_it": ("studio/rendered.py",),
    "vl_convert": ("reporting",),
}
HEAVY = [
    "duckdb",
    "ibis",
    "llvmlite",
    "numba",
    "opendp",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "rich",
    "scipy",
    "typer",
]
# Imports by text to a higher layer that are still there; the list only gets shorter.
UPWARD = {
    ("write/verify.py", "gibbous.reporting.check"),
}


def test_layers_hold() -> None:
    # In a process of its own: import-linter writes to the terminal past pytest's capture.
    code = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_layers_contract_names_every_part() -> None:
    layers = project()["tool"]["importlinter"]["contracts"][0]["layers"]
    named = {part.strip(" ()") for layer in layers for part in layer.split("|")}

    parts = {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()}

    assert parts - named <= {"data"}


def test_no_layer_imports_a_higher_one_by_its_name_as_text() -> None:
    """import-linter reads import statements; a name handed to `import_module` goes past it."""
    layers = project()["tool"]["importlinter"]["contracts"][0]["layers"]
    height = {part.strip(): -i for i, layer in enumerate(layers) for part in layer.split("|")}
    calls = [path for path in sources() if re.search("import_module|__import__", path.read_text())]

    strays = {
        (path.relative_to(SRC).as_posix(), node.value)
        for path in calls
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"gibbous(\.\w+)+\.?", node.value)
        and height.get(path.relative_to(SRC).parts[0].removesuffix(".py"), 1)
        < height.get(node.value.split(".")[1], -len(layers))
    }

    assert strays <= UPWARD


@pytest.mark.parametrize("library", OWNERS)
def test_library_is_imported_by_its_owners_only(library: str) -> None:
    strays = [
        where(path, line)
        for path in sources()
        for name, line in imports(path)
        if name.split(".")[0] == library and not _owned(path, OWNERS[library])
    ]

    assert not strays


def test_every_library_in_the_sources_is_declared_and_has_an_owner() -> None:
    known = set(sys.stdlib_module_names) | {"gibbous", "numpy", *OWNERS}

    unknown = {
        where(path, line)
        for path in sources()
        for name, line in imports(path)
        if name.split(".")[0] not in known
    }

    assert not unknown


def test_heavy_libraries_are_not_imported_at_the_top_of_core_or_the_package() -> None:
    light = [SRC / "__init__.py", SRC / "__main__.py", *(SRC / "core").glob("*.py")]

    strays = [
        where(path, node.lineno)
        for path in light
        if path.exists()
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
        if name and name.split(".")[0] in HEAVY
    ]

    assert not strays


def test_importing_gibbous_loads_no_heavy_library() -> None:
    loaded = _modules_after("import gibbous")

    assert not set(HEAVY) & loaded


def test_naming_a_schema_loads_no_heavy_library() -> None:
    loaded = _modules_after("import gibbous; gibbous.Schema, gibbous.Claim, gibbous.Plan")

    assert not set(HEAVY) & loaded


@pytest.mark.slow
def test_g6_importing_every_module_leaves_global_random_state_alone() -> None:
    code = (
        "import importlib, pkgutil, random, numpy\n"
        "before = (random.getstate(), repr(numpy.random.get_state()))\n"
        "import gibbous\n"
        "for module in pkgutil.walk_packages(gibbous.__path__, 'gibbous.'):\n"
        "    if '__main__' not in module.name and '.test_' not in module.name:\n"
        "        importlib.import_module(module.name)\n"
        "assert before == (random.getstate(), repr(numpy.random.get_state()))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def _owned(path: Path, owners: tuple[str, ...]) -> bool:
    inside = path.relative_to(SRC).as_posix()
    return any(inside == owner or inside.startswith(f"{owner}/") for owner in owners)


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))
