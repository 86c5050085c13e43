"""What the tests of the command line share: runs in this process and in their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gibbous.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    """One finished run: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger folder of its own, in tmp_path/home; the working directory is tmp_path/work."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GIBBOUS_HOME", str(folder))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run the command line in this process."""

    def run(*args: object) -> Done:
        capsys.readouterr()
        code = main([str(a) for a in args])
        text = capsys.readouterr()
        return Done(code, text.out, text.err)

    return run


@pytest.fixture
def program(home: Path) -> Cli:
    """Run the command line as its own process, without a terminal."""

    def run(*args: object) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "gibbous", *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=dict(os.environ),
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run
