"""`gibbous synthesize`: one call of the pipeline, and one honest last line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import request_of, resolve
from gibbous.cli.flags import ConsentFlags, EngineFlags, LedgerFlags, RequestFlags, keyed, unkeyed
from gibbous.cli.output_flags import OutputFlags, SignFlags
from gibbous.cli.parameters import number
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.release import Release

if TYPE_CHECKING:
    from gibbous.cli.discovery_flags import DiscoveryFlags
    from gibbous.cli.flags import ReadingFlags, ScreenFlags

FILES = (".csv", ".dta", ".gz", ".parquet", ".sav", ".tar", ".tsv", ".xlsx", ".zip")
NO_ROWS = "no rows: the noisy number of records is 0. Use a larger epsilon, or declare a schema."
Flags = tuple[RequestFlags, OutputFlags, LedgerFlags, ConsentFlags, EngineFlags, SignFlags]


def run(
    data: str | None,
    flags: Flags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    public: DiscoveryFlags,
) -> None:
    """Spend the budget of a request on its data and write the release."""
    asked, charging = flags[0], flags[2]
    told = keyed(*flags) | {"data": data}
    values = resolve(asked.config, asked.setting or [], told, bought=public.given)
    if "data" not in values:
        raise UsageError(
            "NODATA",
            "No data was given.",
            "synthesize reads CSV or Parquet, or a table of its engine.",
            "Pass it first: gibbous synthesize DATA --schema FILE ...",
        )
    out = release_folder(values.get("output.path"))
    if charging.budget is not None:
        number("budget", charging.budget)  # refused here if it is none; passed on as it was written
    if public.given:
        values["schema"] = public.discovery(values["data"], reading.options())
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
    from gibbous.schema_discovery import missed

    plan = release.plan
    uncovered = release.schema.inferred() if plan.total.is_dp else ()
    rows = list(release.receipt["rows"])
    told = [*([] if any(rows) else [NO_ROWS]), *missed(release)]
    if screen.json:
        show.as_json(
            {
                "path": str(out),
                "plan": plan.to_json(),
                "claim": release.claim.to_json(),
                "rows": rows,
                "bought_before": release.bought_before,
                "bought_from": release.bought_from,
                "uncovered": list(uncovered),
                "warnings": told,
                "receipt": release.receipt.to_json(),
            }
        )
        return
    if not screen.quiet:
        show.line(f"{out}:")
        show.folder(out)
        for warning in (*plan.warnings, *told):
            show.line(f"  warning: {warning}")
        show.line(f"  next: gibbous verify {show.quoted(out)}")
    whose = f" ({release.bought_from})" if release.bought_from else ""
    paid = f"; paid for by an earlier run{whose}, this one is free" if release.bought_before else ""
    paid = "; nothing was charged here" if plan.total.basis == "stated" else paid
    cost = show.cost_words(plan, release.schema, uncovered)
    show.line(f"total cost: {cost}{paid}. {_sets(rows)} in {out}.")


def _sets(rows: list[int]) -> str:
    return f"{show.counted(len(rows), 'set')} of {show.counted(rows[0], 'row')}"


def release_folder(out: Path | None) -> Path:
    """The folder of a release that was named; rows alone may go to a file.

    Raises:
        UsageError: none was, or it is called like a file.
    """
    folder = folder_of(out)
    if folder.suffix.lower() in FILES and not folder.is_dir():
        plain = folder
        while plain.suffix.lower() in FILES:  # x.csv.gz
            plain = plain.with_suffix("")
        raise UsageError(
            "FOLDER",
            f"The output {str(folder)!r} is called like a file.",
            "A release is a new folder; --format says what its sets are, and any program can pack it then.",
            f"For example --out {show.quoted(plain)}.",
        )
    return folder


def folder_of(out: Path | None) -> Path:
    """The output that was named; UsageError if none was."""
    if out is None:
        raise UsageError(
            "NOOUT",
            "No output folder was given.",
            "A release is a new folder.",
            "Pass --out FOLDER (short: -o).",
        )
    return out
