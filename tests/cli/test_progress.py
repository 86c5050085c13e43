"""Progress goes to stderr, only on a terminal, only after a moment, and says what is left."""

from __future__ import annotations

import json
import time

import pytest

from gibbous.cli import progress

# As the program has them; the fixture of all tests silences both.
HALF_MINUTE, TWO_SECONDS = progress.BETWEEN, progress.BETWEEN_JSON


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bars() as bars:
        bars("noise", 1, 2)

    assert capsys.readouterr() == ("", "")


def test_a_short_run_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bars(show=True) as bars:
        bars("noise", 1, 2)

    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
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


def test_without_a_terminal_a_long_run_says_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BETWEEN", HALF_MINUTE)
    seconds = iter([0.0, 0.0, 20.0, 40.0, 50.0])

    with progress.Bars(show=False, clock=lambda: next(seconds)) as bars:
        for done in (0, 1_000, 2_000, 3_000):
            bars("rows", done, 10_000)

    assert capsys.readouterr().err == "gibbous: drawing rows, 2,000 of 10,000, about 3 min left\n"


def test_lines_of_json_take_the_place_of_bars_beside_machine_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BETWEEN_JSON", TWO_SECONDS)
    seconds = iter([0.0, 0.0, 11.0, 12.0])

    with progress.Bars(json=True, clock=lambda: next(seconds)) as bars:
        for done in (0, 1_000, 2_000):
            bars("write", done, 10_000)

    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert told == [{"stage": "write", "done": 1_000, "total": 10_000, "seconds": 11.0}]
