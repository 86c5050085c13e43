"""compare(): mechanisms x budgets x repeats on one table, in several processes, resumable."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from gibbous.core.cores import usable_cores, workers_died
from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.frontier.grid import Cell, arms, cells
from gibbous.frontier.store import Store, digest
from gibbous.frontier.study import Study
from gibbous.frontier.work import Job, Worker, broke, start, step

METRICS = ("tv1", "tv2", "tv3")
Names = str | Sequence[str] | None


@answering
def compare(
    source: Any,
    schema: Schema | str | Path,
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

    No synthetic set leaves it: each is measured and thrown away, so nothing is charged unless a
    ledger is given. Its figures are computed against the records, and are confidential unless the
    data are public.

    Args:
        source: a path or a frame.
        schema: its schema, or the path of the schema file.
        methods: names, mechanisms, or a mapping from labels to these.
        epsilon: values for every method that has such a parameter; empty leaves each as it is.
        l: the same for methods with a parameter l.
        repeats: runs of each method at each value.
        rows: rows of each set; None for the noisy number (methods that pay by the row: the number of
            records that is compared with).
        metrics: names of findings (docs/reference/metrics.md).
        keys, sensitive, targets, formulas, given, fraction: as for `evaluate`.
        holdout: a share of the records to keep apart (by seed), or a table of further records.
        seed: of splits, references and rows from public tables.
        workers: processes; None for all cores.
        resume: folder in which finished runs are kept; the same call goes on where it stopped.
        public_data: the records are public: the study is then not marked confidential.
        ledger: charge each run here; None charges nothing.
        options: how text files are read.
        progress: called with ("runs", done, total).
    Returns:
        The study: frame(), points(), ru_map(), front(), write().
    Raises:
        UsageError: an unknown method, column or finding, or a folder of another study.
        InputRejected, SchemaMismatch: the data do not fit.
    """
    if repeats < 1 or (workers is not None and workers < 1):
        raise UsageError(
            "REPEATS",
            f"repeats={repeats} and workers={workers} were asked for.",
            "Both are whole numbers >= 1.",
            "Correct them.",
        )
    declared = Schema.load(schema) if isinstance(schema, str | Path) else schema
    chosen = {
        "keys": _listed(keys),
        "sensitive": _listed(sensitive),
        "targets": _listed(targets),
        "formulas": _listed(formulas),
        "given": _listed(given),
        "fraction": fraction,
    }
    names = _checked(declared, chosen, metrics)
    job = Job(
        source=_portable(source),
        schema=declared,
        holdout=_spare(holdout),
        rows=rows,
        metrics=names,
        options=chosen,
        seed=seed,
        ledger=None if ledger is None else str(ledger),
        reading=options,
    )
    todo = cells(arms(methods), epsilon=epsilon, l=l, repeats=repeats)
    for cell in todo:
        if cell.arm.method:
            cell.arm.mechanism()  # refuses a wrong parameter before the first run
    facts = _facts(job, public_data)
    store = Store(None if resume is None else Path(resume), facts)
    _run(todo, job, store, workers or usable_cores(), progress)
    found = [row for cell in todo for row in store.get(cell) or ()]
    return Study(tuple(found), facts)


def _run(todo: Sequence[Cell], job: Job, store: Store, workers: int, progress: Progress) -> None:
    left = [cell for cell in todo if store.get(cell) is None]
    done = len(todo) - len(left)
    progress("runs", done, len(todo))
    if not left:
        return
    if workers == 1 or len(left) == 1:
        worker = Worker(job)
        for cell in left:
            rows = worker.run(cell)
            store.put(cell, rows, lasting=not broke(rows))
            done += 1
            progress("runs", done, len(todo))
        return
    # Started afresh, not forked: a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(
        min(workers, len(left)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        initargs=(job,),
    )
    with pool:
        Worker(job)  # a fault of the data is raised here, with its own words
        futures = {pool.submit(step, cell): cell for cell in left}
        try:
            for future in as_completed(futures):
                rows = future.result()
                store.put(futures[future], rows, lasting=not broke(rows))
                done += 1
                progress("runs", done, len(todo))
        except BrokenProcessPool:
            raise workers_died() from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _checked(schema: Schema, chosen: Mapping[str, Any], metrics: Sequence[str]) -> tuple[str, ...]:
    from gibbous.evaluate.run import checked

    return checked(schema, chosen, _listed(metrics))


def _facts(job: Job, public_data: bool) -> dict[str, Any]:
    """What the figures depend on. Sources by digest: a folder is not resumed with other data."""
    from gibbous import __version__
    from gibbous.read.schema_write import schema_json

    return {
        "version": __version__,
        "data": digest(job.source),
        "holdout": job.holdout
        if job.holdout is None or isinstance(job.holdout, float)
        else digest(job.holdout),
        "schema": schema_json(job.schema),
        "rows": job.rows,
        "metrics": list(job.metrics),
        "options": {k: list(v) if isinstance(v, tuple) else v for k, v in job.options.items()},
        "seed": job.seed,
        "charged": job.ledger is not None,
        "public_data": public_data,
    }


def _portable(source: Any) -> str | bytes:
    """A path stays a path; a frame becomes bytes that another process can read."""
    if isinstance(source, str | os.PathLike):
        return str(Path(source).absolute())
    from io import BytesIO

    from gibbous.read.frames import from_frame
    from gibbous.read.source import ReadOptions

    buffer = BytesIO()
    frame = from_frame(source, max_columns=ReadOptions().max_columns, skip=frozenset())
    frame.write_ipc(buffer)
    return buffer.getvalue()


def _spare(holdout: Any) -> float | str | bytes | None:
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
    return _portable(holdout)


def _listed(value: Names) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
