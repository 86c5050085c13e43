"""The command of the repository, its pins, and the floor under the number of tests."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.frame.commands import commands
from tests.frame.tree import ROOT, project
from tests.needs import need

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


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
    for verb in (
        "setup",
        "demo",
        "test",
        "test --all",
        "lint",
        "fix",
        "lock",
        "docs",
        "new",
        "supply",
        "fuzz",
        "bench",
    ):
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


def test_locks_hold_hashes_of_exactly_the_pinned_versions_and_name_no_host() -> None:
    """`./dev lock` writes them; a version that is changed in constraints.txt alone fails here."""
    lines = (lock.read_text() for lock in LOCKS if not lock.with_suffix(".in").exists())
    locked = re.findall(r"^([a-z0-9-]+==[\w.]+)", "".join(lines), re.MULTILINE)
    everything = "".join(lock.read_text() for lock in LOCKS)
    bare = [
        entry
        for entry in re.split(r"\n(?=\S)", everything)
        if "==" in entry and "sha256:" not in entry
    ]

    assert sorted(locked) == sorted(_constraints())
    assert not bare
    assert "://" not in everything
    assert set(re.findall(r"--hash=(\w+):", everything)) == {"sha256"}


@pytest.mark.parametrize("verb", ["lock", "supply", "docs"])
def test_the_set_up_takes_no_package_without_its_hash(verb: str) -> None:
    """The one call of pip that may go without a hash is that for the package itself, from its folder."""
    text = (ROOT / "dev").read_text()

    assert "pip_install --require-hashes --no-deps" in text
    assert re.findall(r"^ +pip_install (.*)", text, re.MULTILINE) == [
        "--no-build-isolation --no-index --no-deps --editable .",
        '--require-hashes --no-deps "$@"',
    ]
    assert f"./dev {verb}" in text


@pytest.mark.slow
def test_a_package_with_one_other_byte_is_refused_at_set_up(tmp_path: Path) -> None:
    """The real ./dev setup, with one local package in its lock; the same lock takes the package as it was."""
    root, wheels = tmp_path / "root", tmp_path / "wheels"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "dev", root / "dev")
    (root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    wheel = _tiny_wheel(wheels)
    whole = wheel.read_bytes()
    for name in ("core", "extras", "dev"):
        line = f"tiny==1.0 --hash=sha256:{hashlib.sha256(whole).hexdigest()}\n"
        (root / "requirements" / f"{name}.txt").write_text(line if name == "core" else "")

    def setup() -> tuple[bool, str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
        env |= {"GIBBOUS_PYTHON": sys.executable, "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run(
            [str(root / "dev"), "setup"], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0  # the folder itself is no package that could be built
        installed = list((root / ".venv").glob("lib/*/site-packages/tiny.py"))
        return bool(installed), done.stderr

    wheel.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    tampered, words = setup()
    wheel.write_bytes(whole)
    taken, _ = setup()

    assert not tampered
    assert "DO NOT MATCH THE HASHES" in words
    assert taken


def _tiny_wheel(folder: Path) -> Path:
    folder.mkdir()
    path, info = folder / "tiny-1.0-py3-none-any.whl", "tiny-1.0.dist-info"
    facts = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", facts)
        file.writestr(
            f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return path


def test_an_audit_that_was_not_made_does_not_pass_for_one() -> None:
    """What pip-audit prints where no service knows the packages: exit code 0, and nothing looked at."""
    supply = runpy.run_path(str(ROOT / ".ci" / "supply.py"))
    clean = {"name": "a", "version": "1", "vulns": []}
    faulty = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-2026-1"}]}
    skipped = {"name": "c", "skip_reason": "Dependency not found"}

    def judged(*packages: object, asked: int | None = None) -> tuple[list[str], int]:
        answer = json.dumps({"dependencies": packages})
        found: tuple[list[str], int] = supply["judged"](answer, asked or len(packages))
        return found

    assert judged(clean) == ([], 0)
    assert judged(clean, faulty) == (["b 2 has the known fault PYSEC-2026-1"], 0)
    assert judged(clean, skipped) == (["1 of 2 packages were not audited"], 1)
    assert judged(clean, asked=3) == (["2 of 3 packages were not audited"], 2)
    assert supply["judged"]("no JSON", 3) == (["pip-audit gave no answer"], 3)


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


@pytest.mark.slow
def test_a_run_with_too_few_tests_fails(tmp_path: Path) -> None:
    (tmp_path / "test_lonely.py").write_text("def test_passes() -> None:\n    assert True\n")

    done = _pytest("--floor", "fast", "--confcutdir", str(ROOT), str(tmp_path / "test_lonely.py"))

    assert done.returncode == 1
    assert "TOO FEW TESTS: 1 passed" in done.stdout
    assert "1 passed" in done.stdout.splitlines()[-1]


@pytest.mark.slow
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


@pytest.mark.slow
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
