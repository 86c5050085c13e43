"""A study that was run in, one HTML page out: printed numbers beside ours, figures, tables, settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gibbous.core.json_values import plain
from gibbous.reporting.html_page import html
from gibbous.reporting.labels import short
from gibbous.reporting.page_parts import Code, Figure, Grid, Page, Panel, Section, Text
from gibbous.reporting.svg_drawing import svg, unchecked
from gibbous.studies import study_parts
from gibbous.studies.panels import compact
from gibbous.studies.study_parts import Printed, Row, Settings, Study, Verdict, summary

if TYPE_CHECKING:
    from gibbous.studies.study_run import Ran

_MARKS: Mapping[Verdict, str] = {
    "agrees": "✓\N{NO-BREAK SPACE}agrees",
    "differs": "✗\N{NO-BREAK SPACE}differs",
    "not in this run": "– not in this run",
}


def page_of(ran: Ran) -> bytes:
    """The page; it asks for nothing outside itself, and is marked confidential where its table is.

    Raises:
        EngineFailure: the extra "report" is not installed.
    """
    study, settings, printed = ran.study, ran.settings, ran.printed()
    data = source(study, ran.rows, settings)
    sections = (
        Section("printed", "What the paper prints, and ours", _beside(printed)),
        Section("figures", "Figures", tuple(map(_figure, ran.figures()))),
        Section("tables", "Tables", tuple(
            Grid(t.title, t.headers, t.rows, folded=True) for t in ran.tables())),
        Section("run", "How it was run", _settings(study, settings)),
    )  # fmt: skip
    page = Page(
        audience="internal" if ran.confidential else "public",
        title=f"{study.title} ({data})",
        subtitle=f"{study.paper}. {study.reproduces}",
        headline=summary(printed),
        facts=(("Study", study.name), ("Data", data), ("Setting", _extent(study, settings)),
               ("Seed", str(settings.seed))),
        sections=sections,
        foot="Numbers in full are in tables.json and rows.parquet beside this page.",
    )  # fmt: skip
    return html(page).encode("utf-8", "replace")


def source(study: Study, rows: tuple[Row, ...], settings: Settings) -> str:
    """The data of a run, in words: given, public, or constructed."""
    if settings.data is not None:
        return f"{settings.data.name}, as given"
    known = str(rows[0].get("table", "")) if study.takes_data else ""
    if "constructed like" in known:
        return f"a stand-in {known}"
    return f"public table {known.removesuffix('.parquet')}" if known else "constructed data"


def _beside(printed: tuple[Printed, ...]) -> tuple[Any, ...]:
    """A table a place of the paper, with the verdict where a telephone shows it, too."""
    places: dict[str, list[tuple[str, ...]]] = {}
    for row in printed:
        ours = "" if row.ours is None else short(row.ours)
        line = (row.quantity, _MARKS[row.verdict], _as_printed(row), ours)
        places.setdefault(row.place, []).append(line)
    words = (
        "A row agrees where ours is no further from the printed number than the tolerance "
        "behind ±; a statement of the paper is a difference with a sign, and may miss it by the "
        "tolerance. The verdict is computed from these numbers."
    )
    head = ("what", "verdict", "printed", "ours")
    return Text(words), *(
        Grid(place[:1].upper() + place[1:], head, tuple(lines)) for place, lines in places.items()
    )


def _as_printed(row: Printed) -> str:
    """All its digits, but of what no paper prints in full; and how far ours may be away."""
    sign = {"near": "", "above": "≥ ", "below": "≤ "}[row.side]
    full = f"{row.value:,.6g}".replace("-", "−")
    away = f" ± {short(row.tolerance)}" if row.tolerance else ""
    return f"{sign}{full if abs(row.value) < 1e6 else short(row.value)}{away}"


def _figure(figure: study_parts.Figure) -> Figure:
    """A small drawing a panel: they stand side by side on a wide screen, below each other on a telephone."""
    panels = []
    with unchecked():
        for place, (title, chart) in enumerate(figure.chart.parts().items()):
            name = f"{figure.name}-{place}"
            panels.append(Panel(title, compact(svg(chart, name), name)))
    lines = ", ".join(figure.chart.names)
    alt = f"{figure.title}. Panels: {'; '.join(p.title for p in panels)}. Lines: {lines}."
    title = figure.title[:1].upper() + figure.title[1:]
    return Figure(figure.name, title, f"Also in {figure.name}.svg.", alt, tuple(panels), None,
                  key=figure.chart.key, layout="pair")  # fmt: skip


def _settings(study: Study, settings: Settings) -> tuple[Any, ...]:
    words = ["gibbous", "study", study.name, *(["--quick"] if settings.quick else [])]
    words += ["--reps", str(settings.reps), "--seed", str(settings.seed)]
    for option, file in (("--data", settings.data), ("--schema", settings.schema)):
        words += [option, file.name] if file else []
    values = tuple((name, str(plain(value))) for name, value in settings.values.items())
    return (
        Code((" ".join([*words, "--out", "study/"]),)),
        Grid("Settings of the study", ("setting", "value"), values),
    )


def _extent(study: Study, settings: Settings) -> str:
    full, reps = int(study.full.get("reps", 1)), settings.reps
    shown = f"{reps:,} repeat{'' if reps == 1 else 's'}"
    if settings.quick:
        return f"quick: {shown}"
    return f"full: {shown}" if reps == full else f"full grid, {shown} (full: {full:,})"
