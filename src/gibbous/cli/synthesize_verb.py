"""`gibbous synthesize`: one call of the pipeline, and one honest last line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import request_of, resolve
from gibbous.cli.flags import ConsentFlags, EngineFlags, LedgerFlags, RequestFlags, keyed, unkeyed
from gibbous.cli.output_flags import OutputFlags, SignFlags
from gibbous.cli.parameters import number
from gibbous.cli.progress import Bars
from gibbous.core.column import Column
from gibbous.core.errors import UsageError
from gibbous.core.release import Release
from gibbous.core.tables import Tables
from gibbous.structure.fine_bins import just_above

if TYPE_CHECKING:
    from gibbous.cli.discovery_flags import DiscoveryFlags
    from gibbous.cli.flags import ReadingFlags, ScreenFlags

FILES = (".csv", ".dta", ".gz", ".parquet", ".sav", ".tar", ".tsv", ".xlsx", ".zip")
PILED = 2  # times as many rows as its neighbor: an end of whole numbers that others may have been moved to

Flags = tuple[RequestFlags, OutputFlags, LedgerFlags, ConsentFlags, EngineFlags, SignFlags]


def run(
    data: str | None,
    flags: Flags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    public: DiscoveryFlags,
) -> None:
    """Spend the budget of a request on its data and write the release.

    Raises:
        GibbousError: one class an exit code.
    """
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
                "bought_before": release.bought_before,
                "bought_from": release.bought_from,
                "uncovered": list(uncovered),
                "receipt": release.receipt.to_json(),
            }
        )
        return
    if not screen.quiet:
        show.line(f"{out}:")
        show.folder(out)
        for warning in (*plan.warnings, *_not_found(release)):
            show.line(f"  warning: {warning}")
        show.line(f"  next: gibbous verify {show.quoted(out)}")
    whose = f" ({release.bought_from})" if release.bought_from else ""
    paid = f"; paid for by an earlier run{whose}, this one is free" if release.bought_before else ""
    paid = "; nothing was charged here" if plan.total.basis == "stated" else paid
    cost = show.cost_words(plan, release.schema, uncovered)
    show.line(f"total cost: {cost}{paid}. {_sets(rows)} in {out}.")


def _not_found(release: Release) -> Iterator[str]:
    """What a schema that was bought lacks, from public things alone."""
    schema = release.schema
    if not any(
        source == "discovered" for c in schema for fact, source in c.sources if fact == "kind"
    ):
        return
    if schema.ignore:
        yield show.left_out(schema)
    tables = release.tables
    for j, column in enumerate(schema):
        share = 0.0 if tables is None else _share(tables, j, column.other_code)
        if share >= 0.005:
            yield f"{column.name}: about {share:.1%} of rows are in {column.other!r} (rare levels)."
        for bound, share in (*_at_bounds(column), *_at_ends(column, tables, j)):
            yield (
                f"{column.name}: about {share:.1%} of rows have the number {bound:,.10g}, which is a bound "
                "that was found. Numbers beyond it became it: unless many have that number, declare wider "
                "bounds."
            )


def _at_bounds(column: Column) -> Iterator[tuple[float, float]]:
    """The outer bounds that were bought and have half a percent of rows or more, by the paid law."""
    law = column.within
    if law is None or column.source("bounds") != "discovered":
        return
    low, high = law.edges[0], law.edges[-1]
    single = {0: low < 0 and law.edges[1] == just_above(column, low), -1: law.edges[-2] == high}
    for place, one in single.items():
        share = law.weights[place] / sum(law.weights)
        if one and share >= 0.005:
            yield float(law.edges[place]), share


def _at_ends(column: Column, tables: Tables | None, place: int) -> Iterator[tuple[float, float]]:
    """The first and the last of bought whole numbers, where far more rows have it than its neighbor."""
    numbers = column.kind == "ordinal" and all(type(level) is int for level in column.levels)
    if tables is None or not numbers or column.source("levels") != "discovered":
        return
    for end, beside in ((0, 1), (column.bins - 1, column.bins - 2)):
        share = _share(tables, place, end)
        if share >= max(0.005, PILED * _share(tables, place, beside)):
            yield float(str(column.levels[end])), share


def _share(tables: Tables, place: int, code: int | None) -> float:
    """Noisy share of a code in its column; 0 where no table says."""
    for table in tables.published():
        values = table.cells.values.ravel()
        if code is not None and table.context.columns == (place,) and code < len(values):
            return float(values[code] / max(1, values.sum()))
    return 0.0


def _sets(rows: list[int]) -> str:
    return f"{show.counted(len(rows), 'set')} of {show.counted(rows[0], 'row')}"


def release_folder(out: Path | None) -> Path:
    """The folder of a release that was named; rows alone may go to a file.

    Raises:
        UsageError: none was, or it is called like a file.
    """
    folder = folder_of(out)
    if folder.suffix.lower() in FILES and not folder.is_dir():
        raise UsageError(
            "FOLDER",
            f"The output {str(folder)!r} is called like a file.",
            "A release is a new folder; --format says what its sets are, and any program can pack it then.",
            f"For example --out {show.quoted(folder.with_suffix(''))}.",
        )
    return folder


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
