"""What committed text must never hold: places on somebody's machine, package hosts, stray bytes."""

from __future__ import annotations

import re

import pytest

from tests.frame.tree import ROOT, tracked_text

# Written in two halves, so that this file does not hold what it forbids.
FORBIDDEN = {
    "a home folder": "/" + r"(root|home/\w+|Users/\w+)/",
    "the checkout of a machine": "/wo" + r"rk/",
    "a scratch folder of a person": "/tmp/" + r"[vw]/",
    "a package host": "(pypi|pytho" + r"nhosted)\.org|file:/" + "//",
    "an address inside a network": r"\b(?<!=0\.)(10|192\.168|172\.(1[6-9]|2\d|3[01]))(\.\d{1,3}){2,3}\b",
    "a mail address": r"\b[\w.]+@[\w-]+\.(com|org|net|edu|gov|io)\b",
    "a merge conflict": r"^(<{7}|>{7}) ",
    "a private key": "BEGIN [A-Z ]*PRIV" + "ATE KEY",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_text_names(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)

    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}"
        for path, text in tracked_text().items()
        if path.name != "LICENSE"
        for hit in pattern.finditer(text)
    ]

    assert not found


def test_text_files_end_with_a_newline_and_use_unix_line_ends() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path, text in tracked_text().items()
        if text
        and ("\r\n" in text or not text.endswith("\n"))
        and "tests/fuzz/corpus/" not in path.as_posix()  # bytes as somebody sent them
    ]

    assert not found


def test_nothing_large_is_tracked() -> None:
    found = [
        str(path.relative_to(ROOT)) for path in tracked_text() if path.stat().st_size > 400_000
    ]

    assert not found
