"""Screen 4: how rows are made, what was claimed, proven and audited of it, and what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.studio import commands
from gibbous.studio.screens import arms
from gibbous.studio.screens.budget import budget_of, plan_of
from gibbous.studio.screens.parameters import forgotten, parameters, set_parameters, shown
from gibbous.studio.screens.run import took_before
from gibbous.studio.screens.screen import Screen, needed_schema

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

RECOMMENDED = arms.USUAL
KEPT = 200  # plans


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    from gibbous.mechanisms.registry import methods

    schema, values = needed_schema(studio), studio.place.request()
    chosen = str(values.get("mechanism.name", DEFAULT_METHOD))
    cards = {about.name: about for about in methods()}
    first = [_card(studio, cards[name]) for name in RECOMMENDED]
    if chosen not in RECOMMENDED and chosen in cards:
        first.append(_card(studio, cards[chosen]))
    planned = commands.planned(values, accept=bool(schema.inferred()))
    return {
        "first": first,
        "rest": [_card(studio, a) for a in cards.values() if a.name not in (*RECOMMENDED, chosen)],
        "chosen": chosen,
        "parameters": [shown(p, values, form) for p in parameters(chosen)],
        "command": planned.shell,
        "python": planned.python,
    }


def _card(studio: Studio, about: Any) -> dict[str, Any]:
    values = studio.place.request()
    changes = {"mechanism.name": about.name}
    if "privacy.epsilon" not in values:
        changes["privacy.epsilon"] = 1.0
    name = (about.name, repr(values), studio.place.schema_file.stat().st_mtime_ns)
    if name not in studio.plans:
        if len(studio.plans) > KEPT:
            studio.plans.clear()
        studio.plans[name] = plan_of(studio, changes)
    made, problem = studio.plans[name]
    return {
        "took": took_before(studio, made) if made else None,
        "about": about,
        "compared": about.kind in arms.KINDS,
        "memory_mb": None if made is None else max(1, round(made.memory_bytes / 1e6)),
        "cells": None if made is None else made.cells,
        "cost": "" if made is None else made.headline(),
        "problem": problem,
    }


def _choose(studio: Studio, form: Form) -> str:
    """Take a method; the parameters of another one are forgotten."""
    from gibbous.mechanisms.registry import load

    name = form.text("method", 60)
    load(name)
    delta = budget_of(studio, name)["privacy.delta"]
    studio.place.save(forgotten(studio) | {"mechanism.name": name, "privacy.delta": delta})
    return "method"


SCREEN = Screen("method", _show, {"choose": _choose, "set": set_parameters})
