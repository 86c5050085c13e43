"""Progress goes to stderr, only on a terminal, only after a moment, and says what is left."""

from __future__ import annotations

import time

import pytest

from gibbous.cli import progress


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bars() as bars:
        bars("noise", 1, 2)

    assert capsys.readouterr() == ("", "")


def test_a_short_run_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bars(show=True) as bars:
        bars("noise", 1, 2)

    assert capsys.readouterr() == ("", "")


def test_a_long_run_draws_stage_share_and_time_left_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)

    with progress.Bars(show=True) as bars:
        bars("noise", 1, 4)
        time.sleep(0.4)  # the bar is drawn by its own thread, ten times a second
        bars("noise", 3, 4)
        bars("[red]draw", 0, 0)
        time.sleep(0.3)

    text = capsys.readouterr()
    assert text.out == ""
    assert "adding noise" in text.err
    assert "75%" in text.err
    assert "left" in text.err


def test_quiet_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bars(quiet=True, show=True) as bars:
        bars("noise", 1, 2)

    assert capsys.readouterr() == ("", "")
