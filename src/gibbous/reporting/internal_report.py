"""The internal report: comparisons with the confidential records, marked as such on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gibbous.core.errors import UsageError
from gibbous.core.finding import Finding
from gibbous.core.release import Release
from gibbous.evaluation.findings import Findings
from gibbous.reporting import evidence, html_page
from gibbous.reporting.flow_map import Mapped, flow_blocks
from gibbous.reporting.html_page import PACKAGE
from gibbous.reporting.labels import percent, short
from gibbous.reporting.page_parts import Block, Grid, Notice, Page, Section, Text
from gibbous.reporting.public_figures import spends
from gibbous.reporting.public_report import opened
from gibbous.reporting.risk_utility import ru_map_figure
from gibbous.write.codebook import TEXTS
from gibbous.write.rendering import paragraphs

WARNING = (
    "The numbers in this file were computed against confidential records. No guarantee covers them: "
    "to publish one of them is a release of its own. They are for the holder of the data and for a "
    "review board that may see them. The certificate of the synthetic data is not affected by them."
)
RISK = (
    "Each risk on an axis of its own, beside what others score: a value near that of outsiders, or of "
    "rows without association, does not come from single records being in the data."
)
MOST = 10  # columns, and pairs, that stand first
WORST = (
    ("marginal_distance", ("column",), "Columns"),
    ("tv2", ("first", "second"), "Pairs of columns"),
)  # finding, its keys, what they are
CARDS = (
    ("tv1", "Distance of columns"),
    ("tv2", "Distance of pairs"),
    ("tstr", "Train on synthetic rows, test on records"),
    ("membership_distance", "Membership test"),
)
REFERENCES = ("real", "bootstrap", "holdout", "independent")
DRAWN = ("tv1", "association", "correlation", "coefficients", "ci_overlap")  # details with a figure


def internal_report(
    findings: Findings,
    path: str | Path,
    *,
    release: Release | str | Path | None = None,
    study: Any = None,
    axes: tuple[str, str] = ("epsilon_proven", "tv2"),
    mapped: Mapped | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the internal report and its JSON twin.

    Args:
        release: what was evaluated, or its folder: its guarantee is stated first.
        study: points of a risk-utility map: the study of `gibbous.compare`, or a frame or dictionaries
            with a column "mechanism" (or "label") and the two axes.
        mapped: geography and confidential flows, for maps of a release of flows.
    Raises:
        UsageError: the file would lie inside the release.
        OutputNotWritten: one of the files exists or cannot be written.
        EngineFailure: the extra "report" is not installed.
    """
    target = Path(path)
    _check_outside(release, target)
    html_page.check_path(target, overwrite=overwrite)
    opened_release = None if release is None else opened(release)
    return html_page.write(
        internal_page(findings, opened_release, study, axes, mapped), target, overwrite=overwrite
    )


def internal_page(
    findings: Findings,
    release: Release | None = None,
    study: Any = None,
    axes: tuple[str, str] = ("epsilon_proven", "tv2"),
    mapped: Mapped | None = None,
) -> Page:
    """Everything that the internal report shows."""
    name = release.schema.name if release is not None else str(findings.facts.get("name") or "")
    groups = {g: [f for f in findings if f.group == g] for g in ("utility", "risk")}
    other = [f for f in findings if f.group not in groups]
    sections = [
        Section("summary", "Summary", tuple(_summary(findings))),
        Section("worst", "Worst columns and pairs", tuple(_worst(findings))),
        Section("glance", "All findings", tuple(_glance(findings, groups, other))),
        _folded("utility", "Utility", _utility(findings, groups["utility"])),
        _folded(
            "risk", "Risk", _strips("risk", "Risk beside its references", groups["risk"], RISK)
        ),
        _folded(
            "more",
            "Inference and flows",
            _strips("other", "Other findings", other, "Each finding on an axis of its own."),
        ),
        Section("flows", "Maps of flows", tuple(_flows(release, mapped))),
        Section("map", "Risk-utility map", tuple(_map(study, axes))),
        Section("release", "What was released", tuple(_release(release))),
        _folded("definitions", "Definitions", [evidence.definitions(findings.items)]),
        Section("facts", "What was compared", tuple(_facts(findings))),
    ]
    headline = (
        "No guarantee is attached to what this file shows."
        if release is None
        else f"The release itself: {release.receipt['guarantee']}. This file is not covered by it."
    )
    return Page(
        audience="internal",
        title=f"Evaluation of the synthetic data of {name}" if name else "Evaluation",
        subtitle="Synthetic rows beside the confidential records: utility and risk",
        headline=headline,
        facts=tuple(_top(findings)),
        sections=tuple(s for s in sections if s.blocks),
        twin={**findings.to_json(), "facts": dict(_lasting(findings))},
        foot="CONFIDENTIAL. Delete this file when the decision it was made for is taken.",
    )


def _folded(name: str, title: str, blocks: Iterable[Block]) -> Section:
    """A long section, behind a heading that opens it and says what is there."""
    found = tuple(blocks)
    kinds = (("figure", "figures"), ("table", "tables"), ("terms", "definitions"))
    sizes = [(b.kind, len(b.items) if b.kind == "terms" else 1) for b in found]
    counts = [(sum(n for own, n in sizes if own == kind), words) for kind, words in kinds]
    said = ", ".join(f"{n} {words if n > 1 else words[:-1]}" for n, words in counts if n)
    return Section(name, title, found, f"Open {said or 'this part'}")


def _worst(findings: Findings) -> Iterator[Block]:
    for name, keys, title in WORST:
        rows = [row for finding in findings.named(name)[:1] for row in finding.detail or ()]
        rows = [row for row in rows if isinstance(row.get("distance"), int | float)]
        rows.sort(key=lambda row: -row["distance"])
        cells = tuple(
            tuple(row.get(key) for key in (*keys, "distance", "bootstrap", "independent"))
            for row in rows[:MOST]
        )
        if cells:
            head = (*keys, "distance", "records resampled", "unrelated columns")
            shown = (
                f"the {MOST} furthest of {len(rows)}" if len(rows) > MOST else "the furthest first"
            )
            yield Grid(f"{title}: {shown}", head, cells)


def _check_outside(release: Release | str | Path | None, target: Path) -> None:
    folder = release.path if isinstance(release, Release) else release
    if folder is not None and Path(folder).resolve() in target.resolve().parents:
        raise UsageError(
            "INSIDE",
            "The internal report would lie inside the release.",
            "Everything in a release may be published; the internal report may not.",
            "Choose a file outside it.",
        )


def _lasting(findings: Findings) -> Iterator[tuple[str, Any]]:
    """Facts that do not change when the same evaluation is run again: all but how long it took."""
    yield from ((k, v) for k, v in findings.facts.items() if k not in ("elapsed_s", "notice"))


def _top(findings: Findings) -> Iterator[tuple[str, str]]:
    rows = findings.facts.get("rows")
    if isinstance(rows, Mapping):
        for name in ("real", "synthetic", "holdout"):
            counts = rows.get(name)
            if counts is not None:
                each = counts if isinstance(counts, list) else [counts]
                alike = len(each) > 2 and len(set(each)) == 1
                words = f"{len(each)} sets of {each[0]:,}" if alike else ""
                yield f"{name.capitalize()} rows", words or " + ".join(f"{int(n):,}" for n in each)
    if isinstance(findings.facts.get("columns"), list):
        yield "Columns", str(len(findings.facts["columns"]))
    for name in ("keys", "sensitive", "targets"):
        if findings.facts.get(name):
            yield name.capitalize(), _shown(findings.facts[name])
    yield "Findings", str(len(findings))
    for name, title in CARDS:
        for finding in findings.named(name)[:1]:
            if not math.isnan(finding.value):
                null = dict(finding.null)
                kept = [f"{k} {short(null[k])}" for k in REFERENCES if null.get(k) is not None]
                yield title, short(finding.value) + (f" ({', '.join(kept)})" if kept else "")


def _summary(findings: Findings) -> Iterator[Block]:
    yield Notice(WARNING, "Confidential.")
    for strong, words in summary(findings):
        yield Text(words, strong)
    alone = [f for f in findings.named("population_unique") if dict(f.null).get("records") == 1]
    if alone:
        yield Notice(
            f"Every record is unique on the keys ({', '.join(alone[0].subject)}): whoever knows them "
            "knows whose record it is. Judge each risk below with that in mind.",
            "Uniqueness 100 %.",
        )


def _glance(
    findings: Findings, groups: Mapping[str, list[Finding]], other: list[Finding]
) -> Iterator[Block]:
    named = {"Utility": groups["utility"], "Risk": groups["risk"], "Inference and flows": other}
    for name, group in named.items():
        if group:
            yield evidence.glance(group, f"{name}: value, interval and references")
    if not len(findings):
        yield Text("Nothing was measured.")


def _utility(findings: Findings, group: list[Finding]) -> Iterator[Block]:
    if not group:
        return
    orders = evidence.by_order(findings)
    if orders is not None:
        yield orders
    rest = [f for f in group if f.name not in ("tv1", "tv2", "tv3", "tv4") or orders is None]
    if rest:
        yield evidence.strips(
            rest,
            "utility-strips",
            "Utility beside its references",
            "Each finding on an axis of its own, beside its references.",
        )
    figures = [
        *(evidence.overlays(finding, len(finding.sets)) for finding in findings.named("tv1")),
        *map(evidence.associations, findings.named("association") + findings.named("correlation")),
    ]
    yield from (figure for figure in figures if figure is not None)
    yield from evidence.coefficients(findings)
    yield from evidence.notes(group)
    yield from evidence.details(group, without=DRAWN)


def _strips(name: str, title: str, group: list[Finding], caption: str) -> Iterator[Block]:
    """Findings, each on an axis of its own, and what is behind them."""
    if group:
        yield evidence.strips(group, f"{name}-strips", title, caption)
        yield from evidence.notes(group)
        yield from evidence.details(group)


def _flows(release: Release | None, mapped: Mapped | None) -> Iterator[Block]:
    if release is not None and mapped is not None:
        yield from flow_blocks(release, mapped)


def _map(study: Any, axes: tuple[str, str]) -> Iterator[Block]:
    if study is None:
        return
    if hasattr(study, "ru_map"):
        drawn = study.ru_map(*axes)
        figure = ru_map_figure(drawn.points, axes, drawn.better)
    else:
        figure = ru_map_figure(study, axes)
    if figure is not None:
        yield figure


def _release(release: Release | None) -> Iterator[Block]:
    if release is None:
        return
    receipt = release.receipt
    yield Text(
        f"{receipt['method']['title']} ({receipt['method']['name']}); reservation "
        f"{receipt['ledger']['reservation']}. The public report of the release has the rest."
    )
    figure = spends(release.plan)
    if figure is not None and release.plan.total.is_dp:
        yield figure


def _facts(findings: Findings) -> Iterator[Block]:
    said = {
        "labels": ("What columns and levels mean", ("column", "level", "label")),
        "texts": ("What is said of columns", TEXTS),
    }
    for name, (title, head) in said.items():
        found = findings.facts.get(name)
        if isinstance(found, list):
            meant = tuple(tuple(map(str, one)) for one in found if isinstance(one, list))
            meant = tuple(one for one in meant if len(one) == len(head))
            yield Grid(title, head, meant, folded=len(meant) > 12)
    rows = tuple((k.replace("_", " "), _shown(v)) for k, v in _lasting(findings) if k not in said)
    rows = tuple((k, v) for k, v in rows if v)
    if rows:
        yield Grid("Facts of the evaluation", ("fact", "value"), rows)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {_shown(v)}" for k, v in value.items() if v is not None)
    if isinstance(value, list | tuple):
        return ", ".join(_shown(v) for v in value)
    return "" if value is None else short(value)


def summary(findings: Findings) -> list[tuple[str, str]]:
    """(start in bold, rest) of each part; only what was measured is mentioned."""

    def known(*names: str) -> list[Finding]:
        every = (finding for name in names for finding in findings.named(name))
        return [finding for finding in every if not math.isnan(finding.value)]

    return paragraphs(
        PACKAGE,
        "internal_summary.md",
        findings=findings,
        known=known,
        beside=_beside,
        fewer=_fewer(findings.facts.get("rows")),
        number=short,
        percent=percent,
    )


def _beside(finding: Finding, form: str, resample: str, apart: str) -> list[str]:
    """What references score, each in a form of two fields: its name, its value."""
    null = dict(finding.null)
    named = (("bootstrap", resample), ("independent", apart))
    return [form % (words, short(null[name])) for name, words in named if name in null]


def _fewer(rows: object) -> str:
    """A caution where the holdout is the smaller table: it lies farther away by chance alone."""
    if not isinstance(rows, Mapping) or not rows.get("holdout") or not rows.get("synthetic"):
        return ""
    held, drawn = rows["holdout"], min(rows["synthetic"])
    if held >= drawn:
        return ""
    return f" (only {held:,}: fewer rows than {drawn:,} lie farther away by chance alone)"
