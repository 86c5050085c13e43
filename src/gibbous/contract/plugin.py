"""Pytest option of the contract: `pytest --pyargs gibbous.contract --mechanism my_mech`."""

from __future__ import annotations

from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add --mechanism NAME (may be given several times; default: all that are registered)."""
    group = parser.getgroup("gibbous")
    group.addoption(
        "--mechanism",
        action="append",
        default=[],
        metavar="NAME",
        help="run the gibbous contract for this registered mechanism only",
    )


def pytest_configure(config: Any) -> None:
    """Name the mark of the tests that take a minute, so that `-m "not statistical"` leaves them out."""
    config.addinivalue_line("markers", "statistical: has a stated level and power; takes a minute")
