"""The cards of the methods are kept between processes, and only while nothing has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gibbous.cli import cards
from gibbous.core.about import About
from gibbous.mechanisms import registry
from tests.needs import need

PROGRAM = """
import sys
from gibbous.cli import main
code = main({args!r})
print(code, "numpy" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where cards are kept in this test."""
    monkeypatch.setattr(cards, "cache_folder", lambda: tmp_path)
    return tmp_path


def _listed(*args: str, home: Path) -> tuple[str, str]:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(args=list(args))],
        capture_output=True,
        text=True,
        check=True,
        env=env | {"GIBBOUS_HOME": str(home)},
    )
    return done.stdout, done.stderr.split()[1]


def test_a_second_listing_says_the_same_without_numpy(tmp_path: Path) -> None:
    first, with_numpy = _listed("methods", "--json", home=tmp_path)

    second, without = _listed("methods", "--json", home=tmp_path)

    assert (with_numpy, without) == ("True", "False")
    assert second == first


def test_kept_cards_are_those_of_the_classes(folder: Path) -> None:
    made = cards.cards()

    kept = cards.cards()

    assert kept == made
    assert [card["name"] for card in kept] == list(registry.names())
    for card in kept:
        about: About = registry.load(card["name"]).about
        assert (card["title"], card["kind"], card["proven"]) == (
            about.title,
            about.kind,
            about.proven,
        )


@pytest.mark.parametrize("changed", ["time of a source file", "folders", "python"])
def test_cards_are_made_anew_when_what_made_them_changed(folder: Path, changed: str) -> None:
    made = cards.cards()
    path = folder / cards.NAME
    found = json.loads(path.read_text())
    found["cards"] = []
    if changed == "time of a source file":
        source = next(n for n in found["files"] if n.endswith("mechanisms/pegs.py"))
        found["files"][source][0] -= 1
    elif changed == "folders":
        found["python"][2].append("/nowhere")
    else:
        found["python"][0] = "2.7"
    path.write_text(json.dumps(found))

    again = cards.cards()

    assert again == made


def test_kept_cards_are_used_while_nothing_changed(folder: Path) -> None:
    cards.cards()
    path = folder / cards.NAME
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"cards": []}))

    again = cards.cards()

    assert again == []


@pytest.mark.parametrize("broken", ["{", "[]", '{"files": {}}', "\xff"])
def test_a_damaged_file_is_made_anew(folder: Path, broken: str) -> None:
    (folder / cards.NAME).write_text(broken, encoding="latin-1")

    made = cards.cards()

    assert made
    assert json.loads((folder / cards.NAME).read_text())["cards"] == made


def test_a_file_that_others_can_write_is_not_believed(folder: Path) -> None:
    need("POSIX")
    cards.cards()
    path = folder / cards.NAME
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"cards": []}))
    path.chmod(0o620)

    again = cards.cards()

    assert again
    assert path.stat().st_mode & 0o077 == 0


def test_without_a_private_folder_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "cache_folder", lambda: None)
    monkeypatch.chdir(tmp_path)

    made = cards.cards()

    assert made
    assert not list(tmp_path.iterdir())
