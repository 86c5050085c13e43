"""The pages about the command line say what the program does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from gibbous.cli.app import app
from gibbous.cli.reference import page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/how-to/steward.md",
    ROOT / "docs/tutorials/first-release.md",
]


def _commands(path: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M)
    inline = re.findall(r"`(gibbous [a-z][^`]*)`", path.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines + inline if line.startswith("gibbous ")]


def test_the_reference_page_is_the_programs_own() -> None:
    shown = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")

    assert shown == page(), "run: python -m gibbous.cli.reference > docs/reference/cli.md"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_command_line_on_the_page_is_accepted_by_the_parser(path: Path) -> None:
    commands = _commands(path)

    assert commands
    for line in commands:
        command, words = get_command(app), shlex.split(line, comments=True)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        if not words and hasattr(command, "commands"):
            continue  # a bare verb in a sentence
        if not words and any(p.required for p in command.params):
            continue  # `gibbous verify` in a sentence
        command.make_context("gibbous", words)  # raises on an unknown flag


def test_the_configuration_on_the_stewards_page_is_read(tmp_path: Path) -> None:
    from gibbous.cli.config import resolve

    text = (ROOT / "docs/how-to/steward.md").read_text(encoding="utf-8")
    (tmp_path / "release.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.S)[0])

    found = resolve(tmp_path / "release.toml", [], {})

    assert (found.method, found.rows, found.sets) == ("noisy_pegs", 60_000, 5)
