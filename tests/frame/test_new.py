"""`./dev new`: what it writes into a copy of the repository passes the tests that built-in ones pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.tree import ROOT

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "__pycache__", ".*_cache", "*.jsonl", "corpus"
)


def _python(*words: str, cwd: Path, path: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{cwd}"}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "words", [[], ["mechanism"], ["widget", "abc"], ["metric", "Not-a-name"], ["verb", "My"]]
)
def test_wrong_words_are_told_what_is_right(words: list[str]) -> None:
    done = _python("website/new.py", *words, cwd=ROOT, path=ROOT / "src")

    assert done.returncode == 2
    assert "mechanism|metric|verb NAME" in done.stderr


def test_a_verb_is_one_word() -> None:
    done = _python("website/new.py", "verb", "set_rows", cwd=ROOT, path=ROOT / "src")

    assert done.returncode == 2
    assert "one word" in done.stderr
    assert not list((ROOT / "src/gibbous/cli").glob("set_rows*"))


def test_nothing_is_overwritten() -> None:
    before = (ROOT / "src/gibbous/mechanisms/laplace.py").read_bytes()

    done = _python("website/new.py", "mechanism", "laplace", cwd=ROOT, path=ROOT / "src")

    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert (ROOT / "src/gibbous/mechanisms/laplace.py").read_bytes() == before


@pytest.mark.slow
def test_what_is_begun_passes_its_tests_the_listings_and_the_contract(tmp_path: Path) -> None:
    copy, site = tmp_path / "copy", tmp_path / "site"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    for words in (["mechanism", "new_margins"], ["metric", "largest_gap"], ["verb", "tallies"]):
        done = _python("website/new.py", *words, cwd=copy, path=copy / "src")
        assert done.returncode == 0, done.stderr
    done = _python(
        "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--target", str(site), str(copy), cwd=tmp_path, path=site,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]

    done = _python(
        "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "-k",
        "new_margins or largest or scale_is or every_set or no_release or every_verb",
        "-m", "not slow and not statistical", "tests/mechanisms/test_new_margins.py",
        "tests/mechanisms/test_registry.py", "tests/evaluate/test_largest_gap.py",
        "tests/cli/test_tallies_verb.py", "tests/cli/test_mistakes.py",
        str(site / "gibbous" / "contract"), cwd=copy, path=site,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) > 20
