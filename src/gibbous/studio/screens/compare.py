"""Screen 8, internal: methods at several budgets on these records, as a map of risk and utility."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from gibbous.studio import commands
from gibbous.studio.screens import arms
from gibbous.studio.screens.budget import budget_of
from gibbous.studio.screens.parameters import BUDGET, forgotten
from gibbous.studio.screens.screen import Screen, needed_data, needed_schema
from gibbous.studio.words import refusal
from gibbous.studio.words import words as words_of
from gibbous.studio.workplace import RUNS, STUDY, aside, write

if TYPE_CHECKING:
    from pathlib import Path

    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

METRICS = ("tv1", "tv2", "tv3", "association", "correlation", "pmse_ratio", "outside_support")
OF_KEYS = ("population_unique", "replicated_unique")
OF_BOTH = ("intruder_mode", "disco")
USUAL = ("tv1", "tv2")
EPSILONS, REPEATS = (0.5, 2), 3
ACROSS = ("epsilon_proven", "epsilon", "seconds")
NAMED = ("keys", "sensitive")
LEFT, RIGHT, TOP, BOTTOM = 60, 620, 20, 330
SHAPES = (
    "M-6,0A6,6 0 1 0 6,0A6,6 0 1 0 -6,0Z", "M-5.5,-5.5H5.5V5.5H-5.5Z", "M0,-7L6.5,5H-6.5Z",
    "M0,-7L7,0L0,7L-7,0Z", "M0,7L6.5,-5H-6.5Z", "M-6,-6L6,6M6,-6L-6,6",
)  # fmt: skip


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    needed_data(studio)
    needed_schema(studio)
    study = arms.document(studio.place.folder / STUDY)
    job = studio.jobs.newest("compare")
    answer = studio.jobs.answer(job) or {}
    points = [p for p in answer.get("points", []) if isinstance(p, dict)]
    made, offered = commands.compared(), _offered(studio)
    measured = [name for name in (*METRICS, *OF_KEYS, *OF_BOTH) if any(name in p for p in points)]
    x, y = form.get("x", ""), form.get("y", "")
    x = x if x in ACROSS else ACROSS[0]
    y = y if y in measured else "tv2" if "tv2" in measured else (measured or [""])[0]
    return {
        **arms.fields(study, form),
        **_settings(study, form),
        "job": job,
        **_drawn(points, x, y),
        "x": x,
        "y": y,
        "across": ACROSS,
        "measured": measured,
        "table": [_row(point, measured) for point in points],
        "offered": offered,
        "confidential": True,
        "command": made.shell,
        "python": made.python,
    }


def _settings(study: dict[str, Any], form: Form) -> dict[str, Any]:
    """What is measured, how often, and at which budgets: as it was typed, as the file says, or as usual."""
    said = study.get("study", {})
    numbers = [n for n in said.get("epsilon", EPSILONS) if isinstance(n, int | float)]
    return {
        "epsilons": form.get("epsilons", " ".join(f"{number:g}" for number in numbers)),
        "repeats": form.get("repeats", said.get("repeats", REPEATS)),
        "wanted": form.many.get("metrics", said.get("metrics", USUAL)),
    }


def _offered(studio: Studio) -> tuple[str, ...]:
    """Findings that can be measured: some need keys, or sensitive columns, which are chosen on Assess."""
    keys, sensitive = (bool(studio.place.value(f"evaluate.{name}", [])) for name in NAMED)
    return (*METRICS, *(OF_KEYS if keys else ()), *(OF_BOTH if keys and sensitive else ()))


def _row(point: dict[str, Any], measured: list[str]) -> dict[str, Any]:
    numbers = [point.get(name) for name in (*ACROSS, *measured)]
    epsilon = point.get("epsilon")
    return {
        "label": str(point.get("label", "")),
        "method": str(point.get("mechanism") or "") if isinstance(epsilon, int | float) else "",
        "epsilon": epsilon,
        "cells": [f"{n:.4g}" if isinstance(n, int | float) else "" for n in numbers],
    }


def _drawn(points: list[dict[str, Any]], x: str, y: str) -> dict[str, Any]:
    """The map: one number to the right on a logarithmic axis, a finding upward from 0."""
    shown = [
        p for p in points if all(isinstance(p.get(a), int | float) for a in (x, y)) and p[x] > 0
    ]
    if not shown:
        return {"drawn": [], "xticks": [], "yticks": [], "series": [], "lines": []}
    labels = list(dict.fromkeys(str(p["label"]) for p in shown))
    low, high = log10(min(p[x] for p in shown)) - 0.1, log10(max(p[x] for p in shown)) + 0.1
    among = [p[y] for p in points if isinstance(p.get(y), int | float)]
    top = 1.1 * max(among) or 1.0
    across = [LEFT + (RIGHT - LEFT) * (log10(p[x]) - low) / (high - low) for p in shown]
    up = [BOTTOM - (BOTTOM - TOP) * p[y] / top for p in shown]
    named, metrics = words_of()["compare"], words_of()["metrics"]
    drawn = []
    for p, px, py in zip(shown, across, up, strict=True):
        series = labels.index(str(p["label"]))
        words = f"{p['label']}: {named[x]} {p[x]:.4g}, {metrics[y]} {p[y]:.4g}"
        drawn.append({"x": round(px, 1), "y": round(py, 1), "words": words, "color": color(series),
                      "path": SHAPES[series % len(SHAPES)]})  # fmt: skip
    return {
        "drawn": drawn,
        "lines": _lines(points, y, top, drawn),
        "series": [
            {"label": label, "path": SHAPES[i % len(SHAPES)], "color": color(i)}
            for i, label in enumerate(labels)
        ],
        "xticks": _ticks([p[x] for p in shown], across),
        "yticks": [
            (round(BOTTOM - (BOTTOM - TOP) * share, 1), f"{top * share:.2g}")
            for share in (0, 0.25, 0.5, 0.75, 1)
        ],
    }


def color(series: int) -> int:
    """Which color a label has: after as many labels as there are shapes, each shape has another one."""
    return (series + series // len(SHAPES)) % len(SHAPES)


def _lines(
    points: list[dict[str, Any]], y: str, top: float, marks: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """References, which have no budget, as lines across; no label over another one, or over a mark."""
    found: list[dict[str, Any]] = []
    of = [p for p in points if not p.get("mechanism") and isinstance(p.get(y), int | float)]
    for one in sorted(of, key=lambda p: -p[y]):
        place = round(BOTTOM - (BOTTOM - TOP) * one[y] / top, 1)
        near = bool(found) and place - found[-1]["y"] < 14
        found.append({"y": place, "words": "" if near else str(one["label"])})
        if near:
            found[-2]["words"] += f", {one['label']}"
    for one in found:
        half = 3.5 * len(one["words"]) + 8
        free = (
            x
            for x in (RIGHT - half, (LEFT + RIGHT) / 2, LEFT + half, (3 * LEFT + RIGHT) / 4)
            if not any(abs(m["x"] - x) < half and -26 < m["y"] - one["y"] < 8 for m in marks)
        )
        one["x"] = round(next(free, RIGHT - half), 1)
    return found


def _ticks(values: list[float], places: list[float]) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    for place, value in sorted(zip(places, values, strict=True)):
        if not found or place - found[-1][0] >= 36:
            found.append((round(place, 1), f"{value:.3g}"))
    return found


def _take(studio: Studio, form: Form) -> str:
    """A point of the map becomes the method and the budget of the request, with the parameters it had."""
    name, epsilon = form.text("method", 60), form.number("epsilon")
    job = studio.jobs.newest("compare")
    ran = arms.document(_copy(studio, job.id)) if job else {}
    ran = ran or arms.document(studio.place.folder / STUDY)
    drew = [a.given for a in arms.kept(ran) if (a.method, a.called) == (name, form.text("label"))]
    if not drew:
        raise refusal("STUDY_point")
    studio.place.save(forgotten(studio))
    taken = {f"privacy.{k}" if k in BUDGET else f"mechanism.{k}": v for k, v in drew[0].items()}
    delta = budget_of(studio, name)["privacy.delta"]
    usual = {"privacy.delta": delta, "mechanism.name": name, "privacy.epsilon": float(epsilon)}
    studio.place.save(usual | taken)
    return "budget"


def _copy(studio: Studio, job: str) -> Path:
    return studio.place.scratch / "jobs" / job / STUDY


def _asked(studio: Studio, form: Form) -> str:
    from gibbous.read.schema_write import pair

    data, place = needed_data(studio), studio.place
    needed_schema(studio)
    budgets = [float(word) for word in form.numbers("epsilons")] or [*EPSILONS]
    chosen = arms.asked(studio, form)
    wanted = [name for name in form.many.get("metrics", USUAL) if name in _offered(studio)]
    study = arms.document(place.folder / STUDY).get("study", {}) | {
        "epsilon": budgets,
        "repeats": form.whole("repeats", usual=REPEATS),
        "metrics": wanted or list(USUAL),
    }
    named = {name: place.value(f"evaluate.{name}", []) for name in NAMED}
    asked = {name: columns for name, columns in named.items() if columns and {*wanted} - {*METRICS}}
    lines = [pair("data", data), pair("schema", place.short(place.schema_file))]
    for section, said in (("reading", place.read()), ("study", study), ("evaluate", asked)):
        if said:
            lines += ["", f"[{section}]", *(pair(name, value) for name, value in said.items())]
    for arm in chosen:
        told = {"name": arm.method, **({} if arm.usual else {"label": arm.called}), **arm.given}
        lines += ["", "[[methods]]", *(pair(name, value) for name, value in told.items())]
    return "\n".join(lines) + "\n"


def _write(studio: Studio, text: str) -> None:
    """Write study.toml; one of flows, or that cannot be read, is kept beside it."""
    path = studio.place.folder / STUDY
    if not arms.document(path):
        aside(path)
    write(path, text)


def _keep(studio: Studio, form: Form) -> str:
    _write(studio, _asked(studio, form))
    return "compare#ask"


def _add(studio: Studio, form: Form) -> str:
    _write(studio, _asked(studio, form))
    return "compare?" + urlencode({"add": form.text("more", 60)}) + "#own"


def _start(studio: Studio, form: Form) -> str:
    """Write study.toml, and run it; the sets are measured and thrown away."""
    text = _asked(studio, form)
    if "\n[[methods]]\n" not in text or not form.numbers("epsilons"):
        raise refusal("STUDY")
    _write(studio, text)
    before = studio.jobs.newest("compare")
    if before is not None and before.error[0].endswith("OTHERSTUDY"):
        aside(studio.place.folder / RUNS)  # another schema, or other records: its figures are kept
    job = studio.jobs.start(commands.compared(), "compare", form.get("once", ""))
    if not _copy(studio, job).exists():  # of a study that another tab started
        write(_copy(studio, job), text)
    return "compare"


SCREEN = Screen("compare", _show, {"start": _start, "take": _take, "keep": _keep, "add": _add})
