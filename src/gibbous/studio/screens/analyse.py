"""Screen 9: a model on the release, combined over its sets; nothing is spent."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from gibbous.studio import commands
from gibbous.studio.accounts import json_of
from gibbous.studio.screens.screen import Screen, needed_release
from gibbous.studio.words import refusal

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

HEADERS = ("name", "estimate", "se", "df", "low", "high")
ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"
}  # fmt: skip


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    from gibbous.evaluation.inference.models import Family
    from gibbous.read.schema_file import load_schema

    release = needed_release(studio)
    job = studio.jobs.newest("infer")
    early = studio.jobs.provisional(job)
    answer = early or studio.jobs.answer(job)
    schema = load_schema(studio.place.release / "schema.toml")
    formula = job.words[-1] if job else ""
    family = job.words[2] if job else "gaussian"
    chosen = _chosen(job.words[3:-3]) if job else []
    command = commands.inferred(release, formula or "y ~ a + b", family, chosen)
    compared = (answer or {}).get("references", {})
    rows = _rows(answer)
    return {
        "release": release,
        "families": get_args(Family),
        "columns": [
            (c.name, c.kind, [str(v) for v in c.levels[:60]], _quoted(c.name)) for c in schema
        ],
        "job": job,
        "formula": formula,
        "family": family,
        "references": [
            (
                c.name,
                [(level, f"{c.name}={level}") for level in map(str, c.levels)],
                compared[c.name],
            )
            for c in schema
            if c.name in compared and "=" not in c.name  # which ends the name in a command
        ],
        "answer": answer,
        "early": early is not None,
        "apart": _apart(studio, formula, schema.names) if answer else [],
        "heads": HEADERS,
        "rows": rows,
        "csv": _csv(rows),
        "latex": _latex(rows),
        "command": command.shell,
        "python": command.python,
    }


def _apart(studio: Studio, formula: str, names: Sequence[str]) -> list[str]:
    """Columns on the right that no released table holds together with one on the left."""
    said = json_of(studio.place.release / "tables" / "tables.json")
    try:
        held = [{*one["context"]["targets"], *one["context"]["parents"]} for one in said["items"]]
    except (KeyError, TypeError):
        held = []
    left, right = (_places(side, names) for side in formula.split("~", 1))
    if not held or not left:
        return []
    return [names[one] for one in right if not any(one in t and left & t for t in held)]


def _places(side: str, names: Sequence[str]) -> set[int]:
    words = set(re.findall(r"`([^`]+)`|(\w+)", side))
    found = {quoted or plain for quoted, plain in words}
    return {place for place, name in enumerate(names) if name in found}


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f"`{name}`"


def _chosen(words: Sequence[str]) -> list[tuple[str, str]]:
    pairs = (word.partition("=") for word in words if "=" in word)
    return [(name, level) for name, _, level in pairs]


def _rows(answer: Any) -> list[list[str]]:
    return [[_figure(one.get(h)) for h in HEADERS] for one in (answer or {}).get("estimates", [])]


def exported(studio: Studio, form: str) -> str | None:
    """The last estimates as a file, "csv" or "tex"; None where there are none."""
    rows = _rows(studio.jobs.answer(studio.jobs.newest("infer")))
    return (_csv(rows) if form == "csv" else _latex(rows)) if rows else None


def _figure(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADERS)
    table.writerows(rows)
    return text.getvalue()


def _latex(rows: list[list[str]]) -> str:
    shown = [["".join(ESCAPED.get(c, c) for c in cell) for cell in row] for row in rows]
    lines = [" & ".join(row) + r" \\" for row in [list(HEADERS), *shown]]
    return "\n".join([r"\begin{tabular}{lrrrrr}", *lines, r"\end{tabular}"]) + "\n"


def _fit(studio: Studio, form: Form) -> str:
    release, formula = needed_release(studio), form.text("formula", 1000)
    if "~" not in formula:
        raise refusal("FORMULA")
    family = form.text("family", 20) or "gaussian"
    chosen = [(n, level) for n, level in _chosen(form.many.get("reference", [])) if n in formula]
    command = commands.inferred(release, formula, family, chosen)
    studio.jobs.start(command, "analyse", form.get("once", ""))
    return "analyse"


SCREEN = Screen("analyse", _show, {"fit": _fit})
