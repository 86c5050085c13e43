"""Fixtures of all parts."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the repository; the test skips where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the data sets beside the repository (../shared/data) are absent")
    return folder
