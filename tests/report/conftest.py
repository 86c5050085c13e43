"""Releases that several tests of reports read; none of them writes into these."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.report import hostile_findings


@pytest.fixture(scope="session")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release with hostile names."""
    folder = tmp_path_factory.mktemp("nasty") / "release"
    hostile_findings.nasty_release(folder)
    return folder


@pytest.fixture
def release(nasty: Path, tmp_path: Path) -> Path:
    """A copy of it to write into."""
    return Path(shutil.copytree(nasty, tmp_path / "release"))
