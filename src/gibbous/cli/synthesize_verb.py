"""`gibbous synthesize`: one call of the pipeline, and one honest last line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import request_of, resolve
from gibbous.cli.flags import (
    ConsentFlags,
    EngineFlags,
    LedgerFlags,
    OutputFlags,
    RequestFlags,
    SignFlags,
    keyed,
    unkeyed,
)
from gibbous.cli.parameters import number
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.release import Release

if TYPE_CHECKING:
    from gibbous.cli.flags import ReadingFlags, ScreenFlags

Flags = tuple[RequestFlags, OutputFlags, LedgerFlags, ConsentFlags, EngineFlags, SignFlags]


def run(data: str | None, flags: Flags, reading: ReadingFlags, screen: ScreenFlags) -> None:
    """Spend the budget of a request on its data and write the release.

    Raises:
        GibbousError: one class an exit code.
    """
    asked, charging = flags[0], flags[2]
    values = resolve(asked.config, asked.setting or [], keyed(*flags) | {"data": data})
    if "data" not in values:
        raise UsageError(
            "NODATA",
            "No data was given.",
            "synthesize reads CSV or Parquet, or a table of its engine.",
            "Pass it first: gibbous synthesize DATA --schema FILE ...",
        )
    out = folder_of(values.get("output.path"))
    if charging.budget is not None:
        number("budget", charging.budget)  # refused here if it is none; passed on as it was written
    request = request_of(values, reading.options(), **unkeyed(*flags[1:]))
    if request.output.sign is not None:
        from gibbous.cli.keys_verb import opened

        key = opened(replace(flags[5], sign=request.output.sign))
        request = replace(request, output=replace(request.output, sign=key))
    from gibbous.pipeline import release

    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        if request.performance.engine in (None, "local"):
            bars.compiling()
        finished = release(request, bars)
    finish(finished, out, screen)


def finish(release: Release, out: Path, screen: ScreenFlags) -> None:
    """Say what was released: the last line states the total cost first."""
    plan = release.plan
    uncovered = release.schema.inferred() if plan.total.is_dp else ()
    rows = list(release.receipt["rows"])
    if screen.json:
        show.as_json(
            {
                "path": str(out),
                "plan": plan.to_json(),
                "claim": release.claim.to_json(),
                "rows": rows,
                "uncovered": list(uncovered),
                "receipt": release.receipt.to_json(),
            }
        )
        return
    if not screen.quiet:
        show.line(f"{out}:")
        show.folder(out)
        for warning in plan.warnings:
            show.line(f"  warning: {warning}")
        show.line(f"  next: gibbous verify {show.quoted(out)}")
    show.line(f"total cost: {show.cost_words(plan, uncovered)}. {_sets(rows)} in {out}.")


def _sets(rows: list[int]) -> str:
    return f"{show.counted(len(rows), 'set')} of {show.counted(rows[0], 'row')}"


def folder_of(out: Path | None) -> Path:
    """The output that was named.

    Raises:
        UsageError: none was.
    """
    if out is None:
        raise UsageError(
            "NOOUT",
            "No output folder was given.",
            "A release is a new folder.",
            "Pass --out FOLDER (short: -o).",
        )
    return out
