"""compare(): mechanisms x budgets x repeats on one table, in several processes, resumable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.evaluation.evaluation import checked
from gibbous.evaluation.flows import wanted as flow_findings
from gibbous.evaluation.measure import NOTHING, Options
from gibbous.evaluation.tables import plain
from gibbous.flows import Geography, flow_schema
from gibbous.frontier.cell_worker import Job, Worker
from gibbous.frontier.flow_worker import METRICS as FLOW_METRICS
from gibbous.frontier.flow_worker import FlowWorker, method_at, seen
from gibbous.frontier.grid import Cell, arms, cells
from gibbous.frontier.runner import Store, digest, run_cells
from gibbous.frontier.study import Study

METRICS = ("tv1", "tv2", "tv3")
Names = str | Sequence[str] | None


@guarded
@answering
def compare(
    source: Any,
    schema: Schema | Geography | str | Path,
    methods: Mapping[str, Any] | Sequence[Any],
    *,
    epsilon: Sequence[Any] = (),
    l: Sequence[Any] = (),  # noqa: E741 - the parameter's name
    repeats: int = 3,
    rows: int | None = None,
    metrics: Sequence[str] = METRICS,
    keys: Names = (),
    sensitive: Names = None,
    targets: Names = (),
    formulas: Names = (),
    given: Names = (),
    fraction: float | None = None,
    holdout: float | str | Path | Any = None,
    seed: int = 0,
    workers: int | None = None,
    resume: str | Path | None = None,
    public_data: bool = False,
    ledger: str | Path | None = None,
    options: Any = None,
    progress: Progress = silent,
) -> Study:
    """Run methods side by side and measure what comes out: an internal study.

    No synthetic set leaves it, so nothing is charged unless a ledger is given. Its figures are
    computed against the records, and are confidential unless the data are public.

    Args:
        source, schema: a table as for `evaluate`; its schema or that one's path; of flows the geography.
        methods: names, mechanisms, or a mapping from labels to these.
        epsilon, l: values for every method with such a parameter; empty leaves each as it is.
        repeats, rows: runs of each; rows of a set, None for the noisy number, or as many as records.
        metrics: names of findings (docs/reference/metrics.md; of flows docs/how-to/flows.md).
        keys, sensitive, targets, formulas, given, fraction: as for `evaluate`.
        holdout: a share of the records to keep apart (by seed), or a table of further records.
        seed, workers: of splits, references and rows; processes, None for all cores.
        resume: folder in which finished runs are kept; the same call goes on where it stopped.
        public_data: the records are public: the study is then not marked confidential.
        ledger, options: charge each run here (None charges nothing); how text files are read.
        progress: called with ("runs", done, total).
    Returns:
        The study: frame(), points(), ru_map(), front(), write().
    Raises:
        UsageError: an unknown method, column or finding, or a folder of another study.
        InputRejected, SchemaMismatch: the data do not fit.
    """
    _positive(repeats, workers)
    named = {"keys": keys, "sensitive": sensitive, "targets": targets, "formulas": formulas}
    chosen = Options.of(fraction, **named, given=given, only=metrics)
    declared, wanted, flows = _declared(schema, chosen, holdout)
    kept = None if flows else plain(declared)
    job = Job(
        _portable(source, kept, options), declared, _spare(holdout, kept, options), rows, wanted,
        replace(chosen, only=()), seed, None if ledger is None else str(ledger), options, flows,
    )  # fmt: skip
    grid = cells(arms(methods), epsilon=epsilon, l=l, repeats=repeats)
    return _study(grid, job, public_data, resume, workers, progress)


def _positive(repeats: int, workers: int | None) -> None:
    if repeats < 1 or (workers is not None and workers < 1):
        raise UsageError(
            "REPEATS",
            f"repeats={repeats} and workers={workers} were asked for.",
            "Both are whole numbers >= 1.",
            "Correct them.",
        )


def _study(
    grid: Sequence[Cell],
    job: Job,
    public_data: bool,
    resume: str | Path | None,
    workers: int | None,
    progress: Progress,
) -> Study:
    for cell in grid:
        if not cell.arm.method:
            continue
        if job.geography is not None:
            method_at(cell.arm, seen(job.geography))
        else:
            cell.arm.mechanism()  # refuses a wrong parameter before the first run
    facts = _facts(job, public_data)
    store = Store(None if resume is None else Path(resume), facts)
    begin = partial(Worker if job.geography is None else FlowWorker, job)
    rows = run_cells(grid, begin, store, workers=workers, progress=progress)
    return Study(tuple(rows), facts)


def _declared(
    schema: Schema | Geography | str | Path, chosen: Options, holdout: Any
) -> tuple[Schema, tuple[str, ...], Geography | None]:
    """The schema of a record, the findings that are computed, and the geography of flows."""
    if isinstance(schema, Geography):
        return flow_schema(seen(schema)), _of_flows(schema, chosen, holdout), schema
    declared = Schema.load(schema) if isinstance(schema, str | Path) else schema
    return declared, checked(declared, chosen), None


def _of_flows(geography: Geography, options: Options, holdout: Any) -> tuple[str, ...]:
    """Findings of a study of flows: those that are named, or the usual ones.

    Raises:
        UsageError: an unknown finding, or an option of tables of rows.
    """
    if holdout is not None or replace(options, only=()) != NOTHING:
        raise UsageError(
            "FLOWSTUDY",
            "A study of flows was given keys, sensitive or other columns, or a holdout.",
            "These belong to findings about tables of rows.",
            "Leave them out; metrics names findings about flows.",
        )
    if options.only != METRICS:
        return flow_findings(options.only)
    located = geography.origins.located and geography.destinations.located
    return FLOW_METRICS if located else FLOW_METRICS[:-1]


def _facts(job: Job, public_data: bool) -> dict[str, Any]:
    """What the figures depend on. Sources by digest: a folder is not resumed with other data."""
    from gibbous import __version__
    from gibbous.read.schema_write import schema_json

    optional: dict[str, Any] = {} if job.reading is None else {"reading": asdict(job.reading)}
    if job.geography is not None:
        places = job.geography.origins, job.geography.destinations, job.geography.earlier
        told = [None if one is None else one.to_json() for one in places]
        optional["geography"] = [*told, job.geography.reach, job.geography.cuts]
    return {
        "version": __version__,
        "data": digest(job.source),
        "holdout": job.holdout
        if job.holdout is None or isinstance(job.holdout, float)
        else digest(job.holdout),
        "schema": schema_json(job.schema),
        "rows": job.rows,
        "metrics": list(job.metrics),
        "options": {k: v for k, v in asdict(job.options).items() if k != "only"},
        "seed": job.seed,
        "charged": job.ledger is not None,
        "public_data": public_data,
    } | optional


def _portable(source: Any, schema: Schema | None, options: Any) -> str | bytes:
    """The path of one file stays one; what else is read becomes bytes that another process can read."""
    from io import BytesIO

    from gibbous.read.source import is_one_file, read_columns

    if is_one_file(source):
        return str(Path(source).absolute())
    buffer = BytesIO()
    read_columns(source, schema=schema, options=options).write_ipc(buffer)
    return buffer.getvalue()


def _spare(holdout: Any, schema: Schema | None, options: Any) -> float | str | bytes | None:
    if holdout is None:
        return None
    if isinstance(holdout, float):
        if 0 < holdout < 1:
            return holdout
        raise UsageError(
            "HOLDOUT",
            f"The holdout is {holdout}.",
            "As a share it is > 0 and < 1; otherwise it is a table.",
            "Use for example holdout=0.2.",
        )
    return _portable(holdout, schema, options)
