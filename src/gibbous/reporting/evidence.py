"""Figures and tables out of findings: what their details show, whatever metrics are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from gibbous.core.finding import Finding
from gibbous.core.json_values import plain
from gibbous.evaluation.findings import Findings
from gibbous.evaluation.tables import REFERENCES
from gibbous.reporting import charts, theme
from gibbous.reporting.labels import finite, short
from gibbous.reporting.margins import axes
from gibbous.reporting.page_parts import Block, Cell, Figure, Grid, Panel, Terms, panel

DRAWN: Final = 24  # columns with a chart of their own; the numbers of all are in the table
NAMED: Final = 5  # columns in the title of a finding
TERMS: Final = 40  # coefficients in one chart
BETTER: Final = {"lower": "lower is better", "higher": "higher is better"}


def glance(findings: Sequence[Finding], caption: str) -> Grid:
    """All findings, one a row, with their intervals and references."""
    there = _references(findings)
    names = [name for name in REFERENCES if name in there]
    others = [name for name in there if name not in names]
    head = ("finding", "value", "interval", "better", *names, *(["others"] if others else []))
    rows = []
    for f in findings:
        null = dict(f.null)
        more = "; ".join(f"{name} {short(_number(null[name]))}" for name in others if name in null)
        rows.append((
            titled(f), _number(f.value), interval(f),
            f"near {short(f.ideal)}" if f.better == "near" else f.better,
            *(_number(null.get(name)) for name in names), *([more] if others else []),
        ))  # fmt: skip
    return Grid(caption, head, tuple(rows))


def strips(findings: Sequence[Finding], name: str, title: str, caption: str) -> Figure:
    """Each finding on an axis of its own, beside its references."""
    panels = []
    drawn = [f for f in findings if finite(f.value)]
    for i, f in enumerate(drawn):
        low, high = f.interval or (None, None)
        row = {
            "value": f.value,
            "low": low,
            "high": high,
            "ideal": f.ideal,
            "null": {name: v for name, v in f.null if finite(v)},
        }
        head = f"{titled(f)}: {short(_number(f.value))}"
        panels.append(panel(f"{name}-{i}", partial(charts.strip, row), title=head, note=_under(f)))
    key = [(theme.MAIN, "bar", "synthetic sets"), (theme.INK, "line", "interval")]
    if any(f.ideal is not None for f in findings):
        key.append((theme.INK, "tick", "ideal"))
    for reference in _references(findings):
        color, shape, _ = theme.REFERENCES.get(reference, theme.OTHER)
        key.append((color, shape, reference))
    words = "; ".join(str(f) for f in findings)
    lost = len(findings) - len(drawn)
    more = f" Not defined, and in the table alone: {lost}." if lost else ""
    return Figure(
        name, title, caption + more, f"{len(panels)} bars with reference marks. {words}", tuple(panels),
        glance(findings, "The numbers"), tuple(key),
    )  # fmt: skip


def overlays(finding: Finding, sets: int) -> Figure | None:
    """Real and synthetic shares of every level (the detail of tv1), the columns that differ most first."""
    rows = [r for r in finding.detail if {"column", "level", "real", "synthetic"} <= r.keys()]
    if not rows:
        return None
    columns = {k: list(v) for k, v in groupby(rows, key=lambda r: str(r["column"]))}
    gaps = {k: sum(abs(r["real"] - r["synthetic"]) for r in v) / 2 for k, v in columns.items()}
    order = sorted(columns, key=lambda k: -gaps[k])
    bars = [
        [{"level": r["level"], "base": r["real"], "main": r["synthetic"]} for r in columns[name]]
        for name in order[:DRAWN]
    ]
    ends, scale = axes(bars)
    panels = []
    for i, name in enumerate(order[:DRAWN]):
        note = f"distance {short(gaps[name])}"
        draw = partial(charts.margins, bars[i], end=ends[i])
        panels.append(panel(f"overlay-{i}", draw, title=name, note=note, small=True))
    worst = order[0]
    more = (
        f" The {DRAWN} of {len(order)} columns that differ most are drawn."
        if (len(order) > DRAWN)
        else ""
    )
    which = " The first synthetic set is shown." if sets > 1 else ""
    return Figure(
        "overlays",
        "One-way shares, real and synthetic",
        f"Shares of every level, the columns that differ most first.{which}{more} Distance: half "
        f"the sum of the absolute differences. {scale}",
        f"One chart a column with a bar for the real and a dot for the synthetic share of each "
        f"level. Column {worst} differs most: {short(gaps[worst])}.",
        tuple(panels),
        Grid("Real and synthetic shares", ("column", "level", "real", "synthetic", "difference"),
             tuple((r["column"], r["level"], r["real"], r["synthetic"],
                    r["synthetic"] - r["real"]) for k in order for r in columns[k])),
        ((theme.BASE, "bar", "real records"), (theme.MAIN, "dot", "synthetic rows")),
        "grid",
    )  # fmt: skip


def by_order(findings: Findings) -> Figure | None:
    """Distances of one- to four-way margins with what the references score."""
    orders = [(k, f) for k in range(1, 5) for f in findings.named(f"tv{k}")]
    if len(orders) < 2:
        return None
    rows: list[dict[str, Any]] = []
    for k, f in orders:
        low, high = f.interval or (None, None)
        rows.append({"who": "synthetic", "order": k, "value": f.value, "low": low, "high": high})
        rows += [{"who": n, "order": k, "value": v} for n, v in f.null]
    rows = [r for r in rows if finite(r["value"])]
    words = ", ".join(f"{k}-way {short(f.value)}" for k, f in orders)
    return Figure(
        "orders",
        "Distance by number of columns",
        "Mean total variation distance from the real margins, over the number of columns counted "
        "together. Zero is the real table itself; bootstrap is a resample of the records.",
        f"Lines over one to four columns; synthetic: {words}.",
        (panel("orders", partial(charts.by_order, rows)),),
        glance([f for _, f in orders], "Distances by number of columns"),
    )


def associations(finding: Finding) -> Figure | None:
    """Association of all pairs: real, synthetic, and their difference."""
    pairs = [r for r in finding.detail if {"first", "second", "real", "synthetic"} <= r.keys()]
    pairs = [r for r in pairs if finite(r["real"]) and finite(r["synthetic"])]
    if len(pairs) < 2:
        return None
    columns = list(dict.fromkeys(str(n) for r in pairs for n in (r["first"], r["second"])))
    place = {name: i for i, name in enumerate(columns)}
    signed = any(r[side] < 0 for r in pairs for side in ("real", "synthetic"))
    panels: list[Panel] = []
    for title, key in (("real", "real"), ("synthetic", "synthetic"), ("synthetic − real", None)):
        cells = [
            {
                "row": max(place[r["first"]], place[r["second"]]),
                "column": min(place[r["first"]], place[r["second"]]),
                "value": r["synthetic"] - r["real"] if key is None else r[key],
            }
            for r in pairs
        ]
        diverging = key is None or signed
        limit = max([abs(c["value"]) for c in cells] + [0.05]) if key is None else 1.0
        draw = partial(
            charts.heat_map, cells, columns, limit=limit,
            scale="diverging" if diverging else "sequential",
        )  # fmt: skip
        small = len(columns) <= 16
        panels.append(panel(f"{finding.name}-{len(panels)}", draw, title=title, small=small))
    ranked = sorted(pairs, key=lambda r: -abs(r["synthetic"] - r["real"]))
    worst = ranked[0]
    keys = [k for k in ranked[0] if k not in ("first", "second", "real", "synthetic")]
    rows = tuple(
        (r["first"], r["second"], r["real"], r["synthetic"], r["synthetic"] - r["real"],
         *(r.get(k) for k in keys))
        for r in ranked
    )  # fmt: skip
    return Figure(
        finding.name,
        finding.title,
        f"{finding.title}: {short(finding.value)} on average over {len(pairs)} pairs. The color "
        "scale of the difference ends at the largest one.",
        f"Three triangles of colored squares. The largest difference is that of {worst['first']} and "
        f"{worst['second']}: real {short(worst['real'])}, synthetic {short(worst['synthetic'])}.",
        tuple(panels),
        Grid("Pairs of columns", ("first", "second", "real", "synthetic", "difference", *keys),
             rows),
        layout="pair" if len(columns) <= 16 else "wide",
    )  # fmt: skip


def coefficients(findings: Findings) -> Iterator[Figure]:
    """Estimates on both sides with intervals, one figure a model."""
    for i, finding in enumerate(findings.named("coefficients")):
        rows = [r for r in finding.detail if {"term", "real", "synthetic"} <= r.keys()]
        rows = [r for r in rows if _known(r["real"]) or _known(r["synthetic"])]
        if not rows:
            continue
        shown = [
            {k: plain(v) for k, v in {**dict.fromkeys(_ENDS), **r}.items()}
            | {"term": f"{r.get('level') or ''} {r['term']}".strip()}
            for r in rows[:TERMS]
        ]
        more = f" The first {TERMS} of {len(rows)} are drawn." if len(rows) > TERMS else ""
        head = tuple(k for k in rows[0] if any(r.get(k) not in ("", None) for r in rows))
        yield Figure(
            f"coefficients-{i}",
            f"Regression coefficients of {finding.subject[0] if finding.subject else 'a model'}",
            f"Coefficients of {finding.note or finding.title}{more} Intervals that lie apart mean "
            "that the two tables would lead to other conclusions. Those of synthetic rows leave out the "
            "noise of the release, which `gibbous infer` adds.",
            f"{len(shown)} coefficients with intervals, real above synthetic. {finding}",
            (panel(f"coefficients-{i}", partial(charts.coefficients, shown)),),
            Grid("Coefficients", head, tuple(tuple(plain(r.get(k)) for k in head) for r in rows)),
        )


def details(findings: Sequence[Finding], *, without: Sequence[str] = ()) -> Iterator[Block]:
    """The tables behind findings that no figure shows, folded."""
    for finding in findings:
        if finding.name in without or not finding.detail:
            continue
        groups = [list(rows) for _, rows in groupby(finding.detail, key=tuple)]
        for number, rows in enumerate(groups, 1):
            part = f", part {number}" if len(groups) > 1 else ""
            head = tuple(str(k) for k in rows[0])
            cells = tuple(tuple(table_cell(row[k]) for k in rows[0]) for row in rows)
            yield Grid(f"{titled(finding)}: behind it{part}", head, cells, folded=True)


def notes(findings: Sequence[Finding]) -> Iterator[Block]:
    """What must be read with the numbers; findings with the same note together."""
    together: dict[str, list[str]] = {}
    for finding in findings:
        if finding.note:
            together.setdefault(finding.note, []).append(titled(finding))
    if together:
        rows = tuple(("; ".join(titles), note) for note, titles in together.items())
        yield Grid("To be read with the numbers", ("finding", "note"), rows)


def definitions(findings: Sequence[Finding]) -> Terms:
    """Each metric once: definition, direction, interval, source."""
    once: dict[str, Finding] = {}
    for finding in findings:
        once.setdefault(f"{finding.title} ({finding.name})", finding)
    return Terms(tuple((term, tuple(_defined(f))) for term, f in once.items()))


def _defined(finding: Finding) -> Iterator[str]:
    yield finding.definition
    better = BETTER.get(finding.better, "near its ideal is better")
    yield f"{better[:1].upper()}{better[1:]}. Interval: {finding.interval_of or 'none'}."
    yield f"Source: {finding.source}."


def titled(finding: Finding) -> str:
    """A finding with the columns that it is about."""
    names = finding.subject
    if not names:
        return finding.title
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED + 1 else ""
    return f"{finding.title} ({', '.join(names[:NAMED] if more else names)}{more})"


def interval(finding: Finding) -> Cell:
    """An interval for a table."""
    if finding.interval is None:
        return None
    return f"{short(float(finding.interval[0]))} to {short(float(finding.interval[1]))}"


_ENDS: Final = (
    "real", "real_low", "real_high", "synthetic", "synthetic_low", "synthetic_high",
)  # fmt: skip


def _under(finding: Finding) -> str:
    words = [BETTER.get(finding.better, f"better near {short(finding.ideal)}")]
    if finding.interval:
        words.append(f"interval {interval(finding)}")
    words += [f"{name} {short(float(value))}" for name, value in finding.null]
    return "; ".join(words)


def _references(findings: Sequence[Finding]) -> list[str]:
    there = {name for f in findings for name, _ in f.null}
    known = [name for name in theme.REFERENCES if name in there]
    return known + sorted(there - set(known))


def _number(value: float | None) -> Cell:
    return None if value is None else float(value)


def _known(value: object) -> bool:
    value = plain(value)
    return isinstance(value, int | float)


def table_cell(value: object) -> Cell:
    """A value as a table shows it."""
    shown = plain(value)
    if shown is None and value is not None:
        return "not defined"
    if isinstance(shown, Mapping | list):
        return str(shown)
    return shown if shown is None or isinstance(shown, str | int | float) else str(shown)
