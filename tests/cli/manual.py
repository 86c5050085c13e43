"""The manual page docs/reference/gibbous.1, made from the app itself: `python -m tests.cli.manual`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.cli.reference import HEADER

TOP = """\
.\\" Made by `python -m tests.cli.manual`; a test fails when program and page differ.
.TH GIBBOUS 1 "" "gibbous" "User commands"
.SH NAME
gibbous \\- synthetic microdata with stated, end-to-end disclosure guarantees
.SH SYNOPSIS
.B gibbous
.I VERB
.RI [ ARGUMENT " ...] [" OPTION " ...]"
.SH DESCRIPTION
Reads confidential records, spends a privacy budget on noisy tables of them, and writes synthetic
rows with a receipt that anybody can verify without the records.
.B gibbous demo
shows the whole way. Each verb has
.BR \\-\\-help .
"""


def page() -> str:
    """The whole page, roff."""
    from typer.main import get_command

    from gibbous.cli.app import app

    verbs = "".join(_command(get_command(app), ""))
    return f"{TOP}.SH VERBS\n{verbs}.SH CONVENTIONS\n{''.join(_conventions())}"


def _command(command: Any, path: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name in inner:
            yield from _command(inner[name], f"{path} {name}".strip())
        return
    given = [p for p in command.params if p.param_type_name == "argument"]
    named = " ".join(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in given)
    yield f".SS {_text(f'{path} {named}'.strip())}\n{_line(command.help)}"
    for parameter in command.params:
        words = parameter.name.upper()
        if parameter not in given:
            words = ", ".join(sorted(parameter.opts, key=len, reverse=True))
        yield f".TP\n.B {_text(words)}\n{_line(parameter.help) or '.br' + chr(10)}"


def _conventions() -> Iterator[str]:
    for item in re.split(r"\n- ", HEADER.partition("## Conventions\n")[2])[1:]:
        yield f".IP \\(bu 2\n{_line(item)}"


def _line(words: str | None) -> str:
    """Text on a line of its own, which no program takes for a request."""
    text = _text(" ".join((words or "").replace("`", "").split()))
    return f"\\&{text}\n" if text else ""


def _text(words: str) -> str:
    return words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


if __name__ == "__main__":
    print(page(), end="")
