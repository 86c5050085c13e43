"""The command of the repository, its pins, and the floor under the number of tests."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.frame.commands import commands
from tests.frame.tree import ROOT, project
from tests.needs import need


@pytest.mark.parametrize("script", ["dev", ".ci/run", ".ci/bare"])
def test_script_is_executable_and_parses(script: str) -> None:
    done = subprocess.run(["sh", "-n", script], cwd=ROOT, capture_output=True, check=False)

    assert os.access(ROOT / script, os.X_OK)
    assert done.returncode == 0, done.stderr


def test_help_works_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "dev"), "help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    for verb in ("setup", "demo", "test", "test --all", "lint", "fix", "fuzz", "bench"):
        assert f"./dev {verb}" in done.stdout


def test_unknown_verb_is_a_usage_error() -> None:
    done = subprocess.run(
        [str(ROOT / "dev"), "tset"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "tset" in done.stderr


def test_constraints_are_names_and_exact_versions_only() -> None:
    lines = [line for line in _constraints() if not re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", line)]

    assert not lines


def test_constraints_pin_all_that_setup_installs() -> None:
    pinned = {line.partition("==")[0] for line in _constraints()}

    assert not _closure() - pinned


def test_lower_bounds_allow_the_pinned_versions() -> None:
    pinned = dict(line.split("==") for line in _constraints())
    lines = project()["project"]["dependencies"] + [
        line for extra in project()["project"]["optional-dependencies"].values() for line in extra
    ]

    wrong = [
        line
        for line in lines
        if (name := canonicalize_name(Requirement(line).name)) in pinned
        and not Requirement(line).specifier.contains(pinned[name])
    ]

    assert not wrong


def test_a_run_with_too_few_tests_fails(tmp_path: Path) -> None:
    (tmp_path / "test_lonely.py").write_text("def test_passes() -> None:\n    assert True\n")

    done = _pytest("--floor", "fast", "--confcutdir", str(ROOT), str(tmp_path / "test_lonely.py"))

    assert done.returncode == 1
    assert "TOO FEW TESTS: 1 passed" in done.stdout
    assert "1 passed" in done.stdout.splitlines()[-1]


def test_a_run_without_tests_fails(tmp_path: Path) -> None:
    done = _pytest(str(tmp_path))

    assert done.returncode == 5


def test_no_test_sees_the_home_of_whoever_runs_it(tmp_path: Path) -> None:
    home = Path(os.environ["GIBBOUS_HOME"])

    assert home.name.startswith("gibbous-test-home-")
    assert home.is_dir()


def _pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-c",
        "pyproject.toml",
    ]
    return subprocess.run(
        [*command, "-p", "conftest", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def _constraints() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _requires(name: str) -> list[str]:
    """What a package needs; nothing of one that only some machines have (Spark, a database driver)."""
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _closure() -> set[str]:
    extras = project()["project"]["optional-dependencies"]
    waiting = [Requirement(line) for line in project()["project"]["dependencies"]]
    waiting += [Requirement(line) for extra in extras.values() for line in extra]
    found: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in found or key[0] == "gibbous":
            continue
        found.add(key)
        for line in _requires(key[0]):
            inner = Requirement(line)
            wanted = requirement.extras or {""}
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in wanted):
                waiting.append(inner)
    return {name for name, _ in found}


def test_A_a_bare_clone_runs_the_commands_of_the_readme() -> None:
    run, bare = (ROOT / ".ci" / "run").read_text(), (ROOT / ".ci" / "bare").read_text()
    shown = [c for c in commands(ROOT / "README.md") if c.startswith("./dev")]

    assert sorted(shown) == ["./dev demo", "./dev test"]
    assert "[ $# -gt 0 ] || set -- './dev test' './dev demo'\n" in bare
    assert "minutes=70\n" in run
    assert run.index("\n.ci/bare\n") < run.index("apt-get install -y -qq chromium")
    assert run.rstrip().endswith("./dev test --all")


def test_A_a_bare_clone_has_python_and_little_else(tmp_path: Path) -> None:
    need("git")
    folder = tmp_path / "temporary"
    folder.mkdir()
    lacks = "for p in java chromium psql postgres cc git pip; do if command -v $p; then exit 1; fi; done"

    done = _bare(folder, "./dev help", lacks, "python3 -m pip --version", "[ ! -e $HOME/.gibbous ]")
    failed = _bare(folder, "exit 3")

    assert done.returncode == 0, done.stderr
    assert "./dev setup" in done.stdout
    assert failed.returncode == 1
    assert "'exit 3' failed (exit code 3)" in failed.stderr
    assert not list(folder.iterdir())


def _bare(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / ".ci" / "bare"), *commands],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
