"""`gibbous report`: the public report of a release, or the internal one with real data beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gibbous.cli import show
from gibbous.cli.evaluate_verb import CONFIDENTIAL, compared
from gibbous.cli.keys_verb import opened
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.extras import require

if TYPE_CHECKING:
    from gibbous.cli.flags import ReadingFlags, ScreenFlags
    from gibbous.cli.measuring_verbs import ReportFlags
    from gibbous.cli.output_flags import SignFlags
    from gibbous.evaluation.findings import Findings
    from gibbous.reporting.evaluate_and_report import Audience

LIBRARIES = ("altair", "vl_convert")


@dataclass(frozen=True, slots=True)
class Page:
    """The page that is written; without `out` the public report goes into the release itself."""

    release: Path
    audience: str
    out: Path | None
    overwrite: bool
    signing: SignFlags


def run(page: Page, reported: ReportFlags, reading: ReadingFlags, screen: ScreenFlags) -> None:
    """Write a report and its JSON twin."""
    require(LIBRARIES, "report")
    _check(page, reported)
    from gibbous.reporting import evaluate_and_report

    maps = _maps(reported, reading)
    with Bars(quiet=screen.silent) as bars:
        more: dict[str, Any] = {"sign": opened(page.signing)}
        if page.audience == "internal":
            more |= _study(reported.study) | {"findings": _findings(page, reported, reading, bars)}
        bars("report", 0, 1)
        path = evaluate_and_report.report(
            page.release,
            cast("Audience", page.audience),
            page.out,
            overwrite=page.overwrite,
            **maps,
            **more,
        )
    _said(path, page, screen, "and public places " if maps else "")


def _maps(reported: ReportFlags, reading: ReadingFlags) -> dict[str, Any]:
    """What draws maps of flows; the records are drawn only in an internal report."""
    if reported.geography is None and not reported.destination:
        return {}
    destinations = tuple(reported.destination or ())
    maps: dict[str, Any] = {"geography": reported.geography, "destinations": destinations}
    if reported.real is not None:
        maps |= {"flows": reported.real, "options": reading.options()}
    return maps


def _said(path: Path, page: Page, screen: ScreenFlags, more: str) -> None:
    twin = path.with_suffix(".json")
    if screen.json:
        show.as_json({"path": str(path), "twin": str(twin), "audience": page.audience})
        return
    if not screen.quiet:
        show.line(f"{path}: open it in a browser; it asks for nothing from the network.")
        show.line(f"{twin}: the same content for programs.")
        if page.audience == "public" and page.out is None:
            show.line("The release was sealed again with both; `gibbous verify` covers them.")
    if page.audience == "internal":
        show.line(f"{CONFIDENTIAL} {path}")
    else:
        show.line(f"Public: made from the release {more}alone. {path}")


def _check(page: Page, reported: ReportFlags) -> None:
    audience = page.audience
    if audience not in ("public", "internal"):
        raise UsageError(
            "AUDIENCE",
            f"There is no audience {audience!r}.",
            "Audiences are 'public' and 'internal'.",
            "Correct --audience.",
        )
    named = ("real", "findings", "holdout", "keys", "sensitive", "targets", "formula", "study")
    given = [f"--{name}" for name in named if getattr(reported, name)]
    if audience == "public" and given:
        raise UsageError(
            "AUDIENCE",
            f"{', '.join(given)} was given for a public report.",
            "A public report is made from the release alone; comparisons with real records are internal.",
            "Leave these out, or pass --audience internal.",
        )
    if audience == "internal" and (
        page.out is None or (reported.real is None) == (reported.findings is None)
    ):
        raise UsageError(
            "FINDINGS",
            "An internal report needs --out, and either --real or --findings.",
            "--real FILE evaluates now; --findings FILE takes what gibbous evaluate wrote.",
            "Pass --out report.internal.html and one of the two.",
        )
    beside = [f for f in given if f not in ("--findings", "--study")]
    if reported.findings is not None and beside:
        raise UsageError(
            "FINDINGS",
            f"{', '.join(beside)} was given together with --findings.",
            "The findings of a file are shown as they are.",
            "Leave the other flags out, or pass --real to evaluate again.",
        )


def _study(folder: Path | None) -> dict[str, Any]:
    """A study and the axes of its map: pairs where they were measured, else its first finding."""
    if folder is None:
        return {}
    from gibbous.frontier.study import Study

    study = Study.load(folder)
    y = "tv2" if "tv2" in study.metrics() else study.metrics()[0]
    return {"study": study, "axes": ("epsilon_proven", y)}


def _findings(
    page: Page, reported: ReportFlags, reading: ReadingFlags, bars: Bars
) -> Findings | Path:
    if reported.findings is not None:
        return reported.findings
    from gibbous.reporting.html_page import check_path

    assert page.out is not None, "checked before"
    assert reported.real is not None, "checked before"
    check_path(page.out, overwrite=page.overwrite)
    own = reported.schema or page.release / "schema.toml"
    return compared(reported.real, page.release, replace(reported, schema=own), reading, bars)
