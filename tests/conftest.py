"""Fixtures of all parts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gibbous.cli import progress
from tests.needs import need

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that takes long, on a busy machine or with cold kernels, says so on stderr: not in tests."""
    monkeypatch.setattr(progress, "BETWEEN", math.inf)
    monkeypatch.setattr(progress, "BETWEEN_JSON", math.inf)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the repository; the test skips where it is absent."""
    need("data sets")
    return SHARED / "data"
