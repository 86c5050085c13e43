"""The checklist of docs/reference/releasing.md, as far as a machine decides it; files that publish."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import gibbous
from tests.frame.tree import DOCS, ROOT, SRC, project

WORKFLOWS = ROOT / ".github" / "workflows"


def test_1_the_version_is_the_same_everywhere() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)

    assert cited is not None
    assert cited[1] == gibbous.__version__ == project()["project"]["version"]


def test_2_the_changelog_says_what_will_be_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()

    assert f"What will be {gibbous.__version__}" in text or f"## {gibbous.__version__} (" in text
    assert "*Privacy*" in text


@pytest.mark.slow
def test_5_the_wheel_holds_what_the_source_holds_and_no_test(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    source = {
        f"gibbous/{path.relative_to(SRC).as_posix()}"
        for path in SRC.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert source <= held
    beside = {name for name in held - source if ".dist-info/" not in name}
    assert {name.partition(".data/")[2] for name in beside} == {"data/share/man/man1/gibbous.1"}
    assert any(name.endswith("licenses/LICENSE") for name in held)
    assert "gibbous/py.typed" in held


def test_6_the_matrix_has_every_python_that_the_package_names() -> None:
    matrix = _workflow("wheel")["jobs"]["bare"]["strategy"]["matrix"]
    named = {
        line.rsplit(" ", 1)[1]
        for line in project()["project"]["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    }

    assert named <= set(matrix["python"])
    assert {"3.11", "3.12", "3.13", "3.14"} <= set(matrix["python"])
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_8_publishing_needs_no_secret_and_attests_what_it_publishes() -> None:
    text = (WORKFLOWS / "publish.yml").read_text()
    publish = _workflow("publish")["jobs"]["publish"]
    used = " ".join(step.get("uses", "") for step in publish["steps"])

    assert publish["needs"] == "wheel"
    assert _workflow("publish")["jobs"]["wheel"]["with"] == {"publishing": True}
    supply = [step for step in _workflow("wheel")["jobs"]["build"]["steps"] if "env" in step]
    assert "inputs.publishing && 'required'" in supply[0]["env"]["GIBBOUS_AUDIT"]
    assert publish["permissions"]["id-token"] == "write"
    assert "attest-build-provenance" in used
    assert "attest-sbom" in used
    assert "secrets." not in text
    assert "password" not in text


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda p: p.name)
def test_a_workflow_may_read_the_code_alone_and_runs_commands_that_exist(path: Path) -> None:
    found = yaml.safe_load(path.read_text())
    runs = re.findall(r"(?:\./dev|\.ci/)[\w. /]*", path.read_text())
    listed = subprocess.run([str(ROOT / "dev"), "help"], capture_output=True, text=True, check=True)

    assert found["permissions"] == {"contents": "read"}
    for words in runs:
        first, _, rest = words.strip().partition(" ")
        assert (ROOT / first).exists() or first == ".ci/", words
        if first == "./dev":
            assert f"./dev {rest.split()[0]}" in listed.stdout


def test_the_container_runs_without_root_and_without_a_network() -> None:
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    last = "\n".join(lines).rsplit("\nFROM ", 1)[1]

    assert re.search(r"^USER gibbous$", last, re.MULTILINE)
    assert last.index("USER gibbous") < last.index("ENTRYPOINT")
    assert "--require-hashes" in text
    for flag in ("--read-only", "--network none", "--cap-drop ALL", "no-new-privileges"):
        assert flag in text
    for name in re.findall(r"requirements/[\w.]+", text):
        assert (ROOT / name).exists()


def test_templates_and_hooks_are_files_that_their_readers_parse() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert isinstance(yaml.safe_load(path.read_text()), dict), path.name
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    named = [word for hook in hooks for word in hook["entry"].split() if word.startswith(".ci/")]

    assert len(hooks) == 3
    assert all((ROOT / name).exists() for name in named)


def test_the_page_has_the_steps_that_are_tested_here() -> None:
    page = (DOCS / "reference" / "releasing.md").read_text()

    assert [int(n) for n in re.findall(r"^(\d)\. \*\*", page, re.MULTILINE)] == list(range(1, 10))


def _workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text())
    return found
