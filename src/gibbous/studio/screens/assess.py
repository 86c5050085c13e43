"""Screen 7, internal: the release beside the real records; what it shows never leaves this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.studio import commands
from gibbous.studio.screens.screen import Screen, needed_data, needed_release, needed_schema
from gibbous.studio.workplace import INTERNAL

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

CARDS = 6


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    release, data = needed_release(studio), needed_data(studio)
    schema, job = needed_schema(studio), studio.jobs.newest("evaluate")
    chosen = {
        name: [c for c in studio.place.value(f"evaluate.{name}", []) if c in schema.names]
        for name in ("keys", "sensitive", "targets")
    }
    holdout = str(studio.place.value("evaluate.holdout"))
    command = commands.evaluated(data, release, chosen, holdout, studio.place.reading())
    answer = studio.jobs.answer(job)
    return {
        "columns": schema.names,
        "picked": chosen,
        "holdout": holdout,
        "job": job,
        "cards": _cards(answer),
        "ready": studio.place.inside(INTERNAL, "report.internal.html") is not None,
        "findings": studio.place.inside(INTERNAL, "findings.json") is not None,
        "confidential": True,
        "command": command.shell,
        "python": command.python,
    }


def _cards(answer: Any) -> list[dict[str, Any]]:
    """The findings that stand for the whole, each beside what other tables score."""
    found = []
    for one in (answer or {}).get("findings", []):
        value = one.get("value")
        if isinstance(value, int | float):
            beside = [(n, v) for n, v in one.get("null", {}).items() if isinstance(v, int | float)]
            found.append({"title": one.get("title") or one.get("name"), "value": value,
                          "beside": beside, "words": one.get("definition", "")})  # fmt: skip
    return found[:CARDS]


def _evaluate(studio: Studio, form: Form) -> str:
    """Compare, with the choice of keys and of a holdout kept in the request."""
    place, schema = studio.place, needed_schema(studio)
    release, data = needed_release(studio), needed_data(studio)
    chosen = {
        name: [c for c in form.many.get(name, []) if c in schema.names]
        for name in ("keys", "sensitive", "targets")
    }
    holdout = form.text("holdout")
    if holdout and not (place.folder / holdout).exists():
        raise UsageError(
            "HOLDOUT", "There is no such file of held-out records.",
            "It is a file of this machine with the same columns.", "Check its name.",
        )  # fmt: skip
    before = place.folder / INTERNAL
    if before.exists() and not studio.jobs.running():
        number = 1 + len(list(place.folder.glob(f"{INTERNAL}-before-*")))
        before.rename(place.folder / f"{INTERNAL}-before-{number}")
    place.save(
        {f"evaluate.{name}": value for name, value in (chosen | {"holdout": holdout}).items()}
    )
    command = commands.evaluated(data, release, chosen, holdout, place.reading())
    studio.jobs.start(command, "assess", form.get("once", ""))
    return "assess"


SCREEN = Screen("assess", _show, {"evaluate": _evaluate})
