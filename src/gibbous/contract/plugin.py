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
