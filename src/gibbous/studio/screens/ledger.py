"""Screen 10: every data set that was ever charged, by nickname, and what was not finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbous.studio import accounts, commands
from gibbous.studio.screens.screen import Screen, needed_data

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    data, reading = studio.place.data(), studio.place.reading()
    shown = commands.account(data or "DATA", reading)
    return {
        "accounts": accounts.table(studio),
        "unfinished": accounts.unfinished(studio),
        "data": data,
        "jobs": studio.jobs.all()[:20],
        "job": studio.jobs.newest("ledger", "name"),
        "confidential": True,
        "command": shown.shell,
        "python": shown.python,
    }


def _name(studio: Studio, form: Form) -> str:
    from gibbous.privacy.ledger.datasets import checked_nickname

    data, reading = needed_data(studio), studio.place.reading()
    nickname = form.text("nickname", 100)
    checked_nickname((), b"", nickname)  # the job checks that it is free
    command = commands.named(data, nickname, reading)
    then = commands.account(data, reading)
    studio.jobs.start(command, "ledger", form.get("once", ""), then=then)
    return "ledger"


def _again(studio: Studio, form: Form) -> str:
    command = commands.account(needed_data(studio), studio.place.reading())
    studio.jobs.start(command, "ledger", form.get("once", ""))
    return "ledger"


SCREEN = Screen("ledger", _show, {"name": _name, "read": _again})
