"""The list of words that pages and messages do not use: it finds what it is for, and nothing of ours."""

from __future__ import annotations

import ast
import runpy

import pytest

from tests.frame.tree import ROOT

WORDS = runpy.run_path(str(ROOT / ".ci" / "words.py"))


def test_pages_use_none_of_the_words() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), *hit)
        for path in WORDS["pages"]()
        for hit in WORDS["found"](path.read_text(encoding="utf-8"))
    }

    assert not found


@pytest.mark.slow
def test_messages_and_docstrings_use_none_of_the_words() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), *hit)
        for path in WORDS["sources"]()
        for hit in WORDS["found_in"](path)
    }

    assert not found


@pytest.mark.parametrize(
    "code",
    [
        'raise Wrong("A value that is no number.")',
        'raise Wrong(f"{name} was to be read.")',
        'raise Wrong("The names of the "\n"file: nobody said that.")',
        'def f():\n    """What must be held\n    against its cap."""',
    ],
)
def test_a_message_in_riddles_is_found_wherever_it_is_written(code: str) -> None:
    said = list(WORDS["texts"](ast.parse(code)))

    assert [hit for _, text in said for hit in WORDS["found"](text, spoken=True)]


def test_names_and_code_of_a_module_are_not_read() -> None:
    assert not list(WORDS["texts"](ast.parse("held_against = shall(no_word)  # for ever")))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("*Pays* is what pays\nonce: an artifact", 1),
        ("To tell two values of a unit known to be present apart, the exponent is 2 epsilon", 1),
        ("first\nA value that a catch-all or clamping takes in becomes that level", 2),
        ("You can simply run it", 1),
        ("In order to run", 1),
    ],
)
def test_riddles_and_empty_words_are_found(text: str, line: int) -> None:
    assert [hit[0] for hit in WORDS["found"](text)] == [line]


def test_code_is_not_read() -> None:
    assert not list(WORDS["found"]("```sh\nsimply\n```\n`simply` [x](simply.md)\n"))


def test_every_word_has_a_better_one() -> None:
    assert all(better for better in (WORDS["BETTER"] | WORDS["SPOKEN"]).values())
