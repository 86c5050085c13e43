"""`gibbous synthesize`: one call of the pipeline, and one honest last line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import Request, method_of, number
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.release import Release

if TYPE_CHECKING:
    from gibbous.core.protocols import Engine, Mechanism
    from gibbous.core.schema import Schema
    from gibbous.read.source import ReadOptions


@dataclass(frozen=True, slots=True)
class Run:
    """How to run: nothing here changes what is promised.

    Attributes:
        options: makes the reading options; late, because the reader is a heavy import.
        budget: the most epsilon the release may cost in total, decimal text.
        new_data: why the data are no other content of a capped data set.
        strict: a killed run that left a charge and no tables is charged again.
    """

    csv_raw: bool
    overwrite: bool
    ledger: Path | None
    budget: str | None
    accept_inferred: bool
    understand: bool
    threads: int | None
    scratch: Path | None
    options: Callable[[], ReadOptions]
    json: bool
    quiet: bool
    strict: bool = False
    new_data: str | None = None


def run(request: Request, how: Run) -> None:
    """Spend the budget of a request on its data and write the release.

    Raises:
        GibbousError: one class an exit code.
    """
    if request.data is None:
        raise UsageError(
            "NODATA",
            "No data was given.",
            "synthesize reads CSV or Parquet, or a table of its engine.",
            "Pass it first: gibbous synthesize DATA --schema FILE ...",
        )
    out = output(request.out)
    if how.budget is not None:
        number("budget", how.budget)  # refused here if it is none; passed on as it was written
    schema, method, engine = _parts(request, how)
    from gibbous.pipeline import synthesize

    with at_most(how.threads), Bars(quiet=how.quiet, json=how.json) as bars:
        if request.engine.name in (None, "local"):
            bars.compiling()
        release = synthesize(
            request.data,
            schema,
            method,
            rows=request.rows,
            sets=request.sets,
            seed=request.seed,
            out=out,
            format=request.format,
            overwrite=how.overwrite,
            ledger=how.ledger,
            new_data=how.new_data,
            engine=engine,
            part_rows=request.part_rows,
            accept_inferred=how.accept_inferred,
            understand=how.understand,
            budget=how.budget,
            strict=how.strict,
            csv_raw=how.csv_raw,
            imprint=request.imprint,
            options=how.options(),
            progress=bars,
        )
    finish(release, out, how.json, how.quiet)


def _parts(
    request: Request, how: Run
) -> tuple[Schema | Path, Mechanism, Engine | Callable[[], Engine]]:
    """Schema, method and engine: of records, or of flows where a geography was given.

    The engine of records is made later: a cluster takes long to answer, a typing error does not.
    """
    if request.geography is None:
        return request.schema, method_of(request), partial(engine_of, request, how)
    from gibbous.cli.flow_request import flow_request

    flows = flow_request(request.geography, request)
    return flows.schema, flows.method, flows.engine(how.options())


def engine_of(request: Request, how: Run) -> Engine:
    """The engine of a request, with its settings.

    Raises:
        UsageError: there is no such engine, or it does not have a setting that was given.
        EngineFailure: the extra of the engine is missing.
    """
    from gibbous.disintegrate import engine

    asked = request.engine
    return engine(
        asked.name,
        how.options(),
        source=request.data,
        partitions=asked.partitions,
        master=asked.master,
        conf=dict(asked.conf),
        scratch=how.scratch,
    )


def finish(release: Release, out: Path, json: bool, quiet: bool) -> None:
    """Say what was released: the last line states the total cost first."""
    plan = release.plan
    uncovered = release.schema.inferred() if plan.total.is_dp else ()
    rows = list(release.receipt["rows"])
    if json:
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
    if not quiet:
        show.line(f"{out}:")
        show.folder(out)
        for warning in plan.warnings:
            show.line(f"  warning: {warning}")
        show.line(f"  next: gibbous verify {show.quoted(out)}")
    show.line(f"total cost: {show.cost_words(plan, uncovered)}. {_sets(rows)} in {out}.")


def _sets(rows: list[int]) -> str:
    return f"{show.counted(len(rows), 'set')} of {show.counted(rows[0], 'row')}"


def output(out: Path | None) -> Path:
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


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Within it, engines see no more than `threads` cores; results never depend on it."""
    if threads is None:
        yield
        return
    # Read when polars is first imported; ours count the cores this process may use.
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
