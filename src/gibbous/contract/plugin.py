"""Pytest option of the contract: `pytest --pyargs gibbous.contract --mechanism my_mech`."""

from __future__ import annotations

from typing import Any

COUPLED = "coupled audit"
"""Name under which a test notes (runs, worst ratio) for the summary."""


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
    config.addinivalue_line("markers", "slow: takes more than half a second")
    config.addinivalue_line("markers", "statistical: has a stated level and power; takes a minute")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line about all coupled runs of this session."""
    noted = [
        value
        for group in ("passed", "failed")
        for report in terminalreporter.stats.get(group, ())
        for name, value in getattr(report, "user_properties", ())
        if name == COUPLED and report.when == "call"
    ]
    if noted:
        runs, worst = sum(value[0] for value in noted), max(value[1] for value in noted)
        terminalreporter.write_line(
            f"coupled audit: {runs:,} runs, worst loss / price {worst:.12f}"
        )
