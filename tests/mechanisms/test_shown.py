"""`gibbous methods NAME`: what a method without a claim says of claims, and parameters without a default."""

from __future__ import annotations

import re

import pytest

from gibbous.cli import methods_verb


def _shown(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    methods_verb.run(name, None, json=False)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bootstrap", "rows; no claim\n"),
        ("pegs", "rows; one claim per row\n"),
        ("diverse_pegs", "rows; one claim per row\n"),
    ],
)
def test_claims_are_counted_where_there_are_any(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in _shown(name, capsys)


def test_an_empty_default_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    told = _shown("onthemap", capsys)

    for name in ("destination", "keep", "level"):
        assert re.search(rf"^  {name} +- ", told, re.M)
    assert "''" not in told
    assert "()" not in told
