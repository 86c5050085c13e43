"""Screen 7, internal: the release beside the real records; what it shows never leaves this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gibbous.read.databases.sources import address_of
from gibbous.read.public_lists import likely_keys
from gibbous.reporting.labels import clipped
from gibbous.studio import commands
from gibbous.studio.looking import write_down
from gibbous.studio.screens.folders import beside
from gibbous.studio.screens.screen import Screen, needed_data, needed_release, needed_schema
from gibbous.studio.two_way import crossed
from gibbous.studio.words import refusal
from gibbous.studio.workplace import INTERNAL, aside

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

CARDS = 6
CLEAR = 0.25  # of the larger: independent columns and records drawn anew are that far apart
PANELS = ("real", "synthetic", "difference")
COLUMNS = 10
PAIRS = 8  # offered, the furthest from the records first


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
    tables = [name for name in beside(studio.place, data) if name != data]
    likely = likely_keys(schema)
    if form.get("suggest"):
        chosen |= {"keys": [name for name in schema.names if name in {*chosen["keys"], *likely}]}
    return {
        "columns": schema.names,
        "picked": chosen,
        "likely": [name for name in likely if name not in chosen["keys"]],
        "holdout": holdout,
        "job": job,
        "cards": {group: _cards(answer, group) for group in ("utility", "risk")},
        "furthest": _columns(answer),
        "tables": tables,
        "ready": studio.place.inside(INTERNAL, "report.internal.html") is not None,
        "findings": studio.place.inside(INTERNAL, "findings.json") is not None,
        "pairs": _worst(answer, schema.names),
        "first": form.get("first", ""),
        "second": form.get("second", ""),
        "drawn": _drawn(studio.crossed.get((form.get("first", ""), form.get("second", "")))),
        "confidential": True,
        "command": command.shell,
        "python": command.python,
    }


def _cards(answer: Any, group: str) -> list[dict[str, Any]]:
    """The findings of a group that stand for the whole, each beside what other tables score."""
    found = []
    for one in (answer or {}).get("findings", []):
        value = one.get("value")
        if isinstance(value, int | float) and one.get("group") == group:
            beside = [(n, v) for n, v in one.get("null", {}).items() if isinstance(v, int | float)]
            found.append(
                {
                    "title": one.get("title") or one.get("name"),
                    "value": value,
                    "beside": beside,
                    "words": one.get("definition", ""),
                    "verdict": _verdict(value, dict(beside), one.get("better", "")),
                }
            )
    return found[:CARDS]


def _verdict(value: float, beside: dict[str, float], better: str = "lower") -> str:
    """Whether a figure is no better than independent columns, or as good as records drawn anew; else "".

    Figures that do not tell the two apart say nothing.
    """
    anew, apart = beside.get("bootstrap"), beside.get("independent")
    if anew is None or apart is None or better not in ("lower", "higher"):
        return ""
    gap = (apart - anew) * (1 if better == "lower" else -1)
    if gap <= CLEAR * max(abs(anew), abs(apart)):
        return ""
    best = (apart - value) / (apart - anew)  # 0: as independent columns; 1: as records drawn anew
    return "nobetter" if best <= 0.05 else "anew" if best >= 0.95 else ""


def _columns(answer: Any) -> list[tuple[str, ...]]:
    """Single columns, those furthest from the records first, beside chance."""
    return [
        (str(one.get("column", "")), f"{one['distance']:.4f}", _share(one.get("bootstrap")))
        for one in _furthest(answer, "marginal_distance")[:COLUMNS]
    ]


def _share(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else ""


def _worst(answer: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Pairs of columns, those furthest from the records first; none before a comparison."""
    pairs = _furthest(answer, "tv2")
    return [one for one in pairs if {one.get("first"), one.get("second")} <= set(names)][:PAIRS]


def _furthest(answer: Any, name: str) -> list[dict[str, Any]]:
    found = [one for one in (answer or {}).get("findings", []) if one.get("name") == name]
    rows = (found[0].get("detail") or []) if found else []
    known = [one for one in rows if isinstance(one.get("distance"), int | float)]
    return sorted(known, key=lambda one: -one["distance"])


def _drawn(found: Any) -> dict[str, Any] | None:
    """Three panels of cells on one scale, and their numbers, the largest difference first."""
    if found is None:
        return None
    cells = [
        {
            "row": i,
            "column": j,
            "level": f"{row} · {column}",
            "real": real,
            "synthetic": synthetic,
            "difference": synthetic - real,
        }
        for i, row in enumerate(found["rows"])
        for j, column in enumerate(found["columns"])
        for real, synthetic in [(found["real"][i][j], found["synthetic"][i][j])]
    ]
    top = max(max(one["real"], one["synthetic"]) for one in cells) or 1.0
    apart = max(abs(one["difference"]) for one in cells) or 1.0
    for one in cells:
        one |= {name: _cell(one[name], apart if name == "difference" else top) for name in PANELS}
    order = sorted(cells, key=lambda one: -one["difference"]["strength"])
    return {
        "panels": PANELS,
        "rows": [clipped(label, 16) for label in found["rows"]],
        "columns": [clipped(label, 16) for label in found["columns"]],
        "cells": cells,
        "numbers": [(one["level"], *(one[name]["words"] for name in PANELS)) for one in order],
        "foot": 20 + 6 * max(len(clipped(label, 16)) for label in found["columns"]),
        "apart": f"{100 * apart:.2f} %",
        "distance": found["distance"],
    }


def _cell(share: float, most: float) -> dict[str, Any]:
    return {
        "words": f"{100 * share:.2f} %",
        "strength": round(abs(share) / most, 3),
        "side": "less" if share < 0 else "more",
    }


def _cross(studio: Studio, form: Form) -> str:
    """Cross two columns of the records and of the synthetic rows: confidential, logged, not written."""
    from urllib.parse import urlencode

    place, schema = studio.place, needed_schema(studio)
    release, data = needed_release(studio), needed_data(studio)
    pair = (form.text("first", 300), form.text("second", 300))
    if pair[0] == pair[1] or not set(pair) <= set(schema.names):
        raise refusal("PAIR")
    write_down(studio, data, pair)
    studio.crossed[pair] = crossed(place.folder, data, release, pair, place.reading())
    return "assess?" + urlencode({"first": pair[0], "second": pair[1]}) + "#crossed"


def _evaluate(studio: Studio, form: Form) -> str:
    place, schema = studio.place, needed_schema(studio)
    release, data = needed_release(studio), needed_data(studio)
    chosen = {
        name: [c for c in form.many.get(name, []) if c in schema.names]
        for name in ("keys", "sensitive", "targets")
    }
    holdout = form.text("path") or form.text("holdout")
    if holdout and address_of(holdout) is None and not (place.folder / holdout).exists():
        raise refusal("HOLDOUT")
    if not studio.jobs.running():
        aside(place.folder / INTERNAL)
    place.save(
        {f"evaluate.{name}": value for name, value in (chosen | {"holdout": holdout}).items()}
    )
    command = commands.evaluated(data, release, chosen, holdout, place.reading())
    studio.jobs.start(command, "assess", form.get("once", ""))
    return "assess"


SCREEN = Screen("assess", _show, {"evaluate": _evaluate, "cross": _cross})
