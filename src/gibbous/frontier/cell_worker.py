"""One process of a study: the data once, then run after run, each a few rows of figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.finding import Finding
from gibbous.core.plan import Plan
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.evaluation import metrics
from gibbous.evaluation.measure import NOTHING, Options
from gibbous.evaluation.tables import Side, Subject, number, permutation, plain, side
from gibbous.frontier.grid import REFERENCES, Cell
from gibbous.frontier.runner import BROKE

if TYPE_CHECKING:
    import polars as pl

    from gibbous.flows import Geography

DELTA = Fraction(1, 10**9)  # at which a zCDP claim is put on an epsilon axis
NO_ROWS = "The noisy number of rows was 0: there is nothing to measure."
_KEY = bytes(32)  # a study keeps no fingerprint: the scan's is thrown away


@dataclass(frozen=True, slots=True)
class Job:
    """What every process of a study is told. Holds paths, or a frame as bytes in memory.

    Attributes:
        source: path, or bytes of an Arrow file.
        holdout: share of rows kept apart (by seed), a path, bytes, or None.
        rows: rows of one synthetic set; None for the noisy number, or the public one.
        seed: of splits, references and rows from public tables.
        ledger: path of the ledger that each run is charged to; None charges nothing, because no
            synthetic set leaves the process.
        geography: of flows, whose records are counts of pairs; None for a table of rows.
    """

    source: str | bytes
    schema: Schema
    holdout: float | str | bytes | None = None
    rows: int | None = None
    metrics: tuple[str, ...] = ()
    options: Options = NOTHING
    seed: int = 0
    ledger: str | None = None
    reading: Any = None
    geography: Geography | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What one run made: a table in the form that is measured, its rows, and what it cost."""

    table: Any
    rows: int
    cost: dict[str, Any]


class Worker:
    """Holds the data of one process; `run` makes the figures of one cell."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.declared = plain(job.schema)
        self.records, spare = _split(job)
        real = side(self.records, self.declared, options=job.reading)
        self.changes = real.cuts()
        self.real = real.cut(self.changes)
        self.schema = self.real.schema
        self.holdout = None if spare is None else self._side(spare)

    def run(self, cell: Cell) -> list[dict[str, Any]]:
        """Figures of one run: one row a finding; one row with `failed` where the run was refused."""
        return figures(cell, self._made, self._measured)

    def _measured(self, made: Any, repeat: int) -> Sequence[Finding]:
        subject = Subject(self.schema, self.real, (made,), self.holdout, self.job.seed + repeat, ())
        return metrics.compute(subject, self.job.options, self.job.metrics)[0]

    def _made(self, cell: Cell) -> Made:
        if not cell.arm.method:
            name = {"resampled records": "bootstrap", "independent columns": "independent"}
            seed = number(self.job.seed, cell.repeat, REFERENCES.index(cell.arm.label))
            whole = Subject(self.schema, self.real, (self.real,), seed=seed)
            table = whole.reference(name[cell.arm.label])
            assert table is not None
            return Made(table, table.rows, {})
        side, cost = self._synthetic(cell)
        return Made(side, side.rows, cost)

    def _synthetic(self, cell: Cell) -> tuple[Side, dict[str, Any]]:
        from gibbous.evaluation.tables import typed
        from gibbous.pipeline import plan, synthesize

        mechanism = cell.arm.mechanism()
        rows = self._rows(mechanism)
        settings: dict[str, Any] = {"rows": rows, "accept_inferred": True, "understand": True}
        planned = plan(self.job.schema, mechanism, **settings)
        cost = budget(planned.claim, planned.total) | {"memory_planned": planned.memory_bytes}
        seed = number(self.job.seed, 7, cell.repeat)
        if self.job.ledger is not None:
            release = synthesize(
                self.records,
                self.job.schema,
                mechanism,
                seed=seed,
                ledger=self.job.ledger,
                fresh=True,  # every cell has noise of its own
                options=self.job.reading,
                **settings,
            )
            return self._side(release.sets[0]), cost
        codes = self._codes(mechanism, planned, rows, seed)
        from gibbous.encode.decode import decode

        frame = decode(codes, seed=seed)
        if self.changes or codes.schema.sizes != self.schema.sizes:  # a method may buy other bins
            return self._side(frame), cost
        codes = Codes(self.schema, codes.values, numbers=codes.numbers)
        return Side(codes, typed(frame, codes)), cost

    def _side(self, source: Any) -> Side:
        """A table in the bins of this study."""
        return side(source, self.declared, options=self.job.reading).cut(self.changes)

    def _codes(self, mechanism: Any, planned: Plan, rows: int | None, seed: int) -> Codes:
        from gibbous.disintegrate import engine

        holder = engine("local", self.job.reading, threads=1)
        holder.scan(self.records, self.job.schema, key=_KEY, numbers=planned.numbers)
        return drawn(self.job, mechanism, planned, rows, seed, holder)

    def _rows(self, mechanism: Any) -> int | None:
        if self.job.rows is None and mechanism.about.releases == "rows":
            return self.real.rows
        return self.job.rows


def figures(
    cell: Cell, make: Callable[[Cell], Made], measure: Callable[[Any, int], Sequence[Finding]]
) -> list[dict[str, Any]]:
    """The rows of one cell: what it cost, and one row a finding; one with `failed` where it was refused."""
    begun, used = time.perf_counter(), time.process_time()
    facts: dict[str, Any] = {
        "label": cell.arm.label,
        "mechanism": cell.arm.method,
        "repeat": cell.repeat,
        **{k: v for k, v in cell.arm.params if k in ("epsilon", "delta", "l")},
    }
    try:
        made = make(cell)
    except GibbousError as error:
        return [{**facts, "metric": "", "failed": f"{error.code}: {error.wrong}"}]
    except Exception as error:  # noqa: BLE001 - anybody's method; its message may hold a record
        why = f"{BROKE}: {type(error).__name__} inside the method {cell.arm.method}."
        return [{**facts, "metric": "", "failed": why}]
    if not made.rows:
        return [{**facts, **made.cost, "metric": "", "failed": NO_ROWS}]
    facts |= made.cost | {
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - used,
        "rows": made.rows,
    }
    return [{**facts, **_row(one)} for one in measure(made.table, cell.repeat)]


def drawn(
    job: Job, mechanism: Any, planned: Plan, rows: int | None, seed: int, holder: Any
) -> Codes:
    """Rows of one set, which no ledger is charged for: they stay in this process."""
    from gibbous.privacy.spend import spend
    from gibbous.promise import privacy_of
    from gibbous.sampling.sample import sample

    privacy = privacy_of(job.schema, mechanism, accept_inferred=True)
    released = spend(privacy, planned, holder)
    if isinstance(released, Tables):
        size = released.noisy_rows() if rows is None else rows
        return sample(released, size, seed=seed, threads=1)
    assert isinstance(released, Codes)
    return released


def budget(claim: Claim, total: Claim) -> dict[str, Any]:
    """The axes of a map: the claim of one unit, and what the whole file is proven to cost.

    Returns:
        kind, unit, epsilon_claimed (of one unit: what the papers plot), epsilon_proven and
        delta_proven (of everything released), l. Without a claim both epsilons are infinite; so is
        epsilon_proven of a claim that is published or heuristic alone.
    """
    if not total.is_dp:
        l_value = float(total.l) if total.kind == "l_diversity" else None
        return {
            "kind": total.kind,
            "unit": claim.unit,
            "epsilon_claimed": float("inf"),
            "epsilon_proven": float("inf"),
            "delta_proven": 0.0,
            "l": l_value,
        }
    whole = _bounded(total)
    return {
        "kind": total.kind,
        "unit": claim.unit,
        "epsilon_claimed": float(_bounded(claim).epsilon),
        "epsilon_proven": float(whole.epsilon) if total.basis == "proven" else float("inf"),
        "delta_proven": float(whole.delta),
    }


def _bounded(claim: Claim) -> Claim:
    """The claim with an epsilon: of zCDP or Gaussian DP that at DELTA."""
    from gibbous.privacy.accountant import as_approximate

    return as_approximate(claim, DELTA) if claim.kind in ("zcdp", "gdp") else claim


def _row(finding: Finding) -> dict[str, Any]:
    low, high = finding.interval or (None, None)
    named = {
        name: getattr(finding, name) for name in ("title", "group", "better", "ideal", "value")
    }
    ends = {"subject": ", ".join(finding.subject), "low": low, "high": high}
    return {"metric": finding.name} | named | ends


def _split(job: Job) -> tuple[pl.DataFrame, Any]:
    """The records a synthesizer sees, and what is kept apart from it."""
    records = _frame(job.source, job)
    if not isinstance(job.holdout, float):
        return records, None if job.holdout is None else _frame(job.holdout, job)
    order = permutation(records.height, job.seed, 5)
    cut = round(records.height * job.holdout)
    return records[np.sort(order[cut:])], records[np.sort(order[:cut])]


def _frame(source: str | bytes, job: Job) -> pl.DataFrame:
    import polars as pl

    from gibbous.read.source import read_columns

    if isinstance(source, bytes):
        return pl.read_ipc(BytesIO(source))
    return read_columns(Path(source), schema=plain(job.schema), options=job.reading)
