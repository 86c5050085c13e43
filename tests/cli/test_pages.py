"""The pages about the command line say what the program does."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from typer.main import get_command

from gibbous.cli.app import app
from tests.cli import manual
from tests.cli.reference import page

ROOT = Path(__file__).resolve().parents[2]
LEAST = {"README.md": 12, "docs/how-to/steward.md": 12, "docs/tutorials/first-release.md": 5}


def _commands(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", text, re.S | re.M)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`(gibbous [a-z][^`]*)`", text)
    return [line for line in lines + inline if line.startswith("gibbous ")]


def _is_only_named(words: list[str], command: Any) -> bool:
    """Whether a sentence only names a verb: `gibbous verify`, `gibbous report ... --study FOLDER`."""
    needs_more = hasattr(command, "commands") or any(p.required for p in command.params)
    return needs_more and (not words or "..." in words or words == ["--json"])


def test_the_reference_page_is_the_programs_own() -> None:
    shown = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")

    assert shown == page(), "run: python -m tests.cli.reference > docs/reference/cli.md"


def test_the_manual_page_is_the_programs_own_and_reads_without_a_warning() -> None:
    path = ROOT / "docs/reference/gibbous.1"

    assert path.read_text(encoding="utf-8") == manual.page(), "run: python -m tests.cli.manual"
    if (groff := shutil.which("groff")) is not None:
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww", str(path)], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
        for words in ("ledger cap DATA", "--epsilon, -e", "5 privacy parameter or claim refused"):
            assert words in " ".join(plain.replace("\u2010", "-").split())


def test_every_command_line_of_the_documentation_is_accepted_by_the_parser() -> None:
    top, counted, refused = get_command(app), dict.fromkeys(LEAST, 0), []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        for line in _commands(path):
            command: Any = top
            shown = re.split(r" [|>&]", line, maxsplit=1)[0]
            words = shlex.split(shown, comments=True)[1:]
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]
            counted[name] = counted.get(name, 0) + 1
            try:
                if not _is_only_named(words, command):
                    command.make_context("gibbous", words)
            except Exception as error:  # noqa: BLE001 - the parser's class moved between its versions
                refused.append((name, line, type(error).__name__))

    assert not refused
    assert all(counted[name] >= least for name, least in LEAST.items())
    assert sum(counted.values()) > 100


def test_the_configuration_on_the_stewards_page_is_read(tmp_path: Path) -> None:
    from gibbous.cli.config import resolve

    text = (ROOT / "docs/how-to/steward.md").read_text(encoding="utf-8")
    (tmp_path / "release.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.S)[0])

    found = resolve(tmp_path / "release.toml", [], {})

    assert (found["mechanism.name"], found["output.rows"], found["output.sets"]) == (
        "noisy_pegs",
        60_000,
        5,
    )
