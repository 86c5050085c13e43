"""One process of a study of flows: the pairs once, then run after run, each a few rows of figures."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from gibbous.core.params import build
from gibbous.evaluation.flows import measured
from gibbous.evaluation.flows_trips import resampled, shuffled
from gibbous.evaluation.tables import number
from gibbous.flows import (
    FlowEngine,
    Flows,
    Geography,
    coarse,
    collected,
    flows_of,
    placed,
    read_flows,
    to_regions,
)
from gibbous.frontier.cell_worker import Job, Made, budget, drawn, figures
from gibbous.frontier.grid import REFERENCES, Arm, Cell
from gibbous.mechanisms import registry

if TYPE_CHECKING:
    from gibbous.core.finding import Finding

METRICS = ("origin_given", "origin_margin", "new_pairs", "commute_error")
"""Measured where none is named; the last needs coordinates."""


class FlowWorker:
    """Holds the flows of one process; `run` makes the figures of one cell."""

    def __init__(self, job: Job) -> None:
        assert job.geography is not None
        self.job, whole = job, job.geography
        self.geography = seen(whole)
        source: Any = BytesIO(job.source) if isinstance(job.source, bytes) else job.source
        if isinstance(source, BytesIO):
            import polars as pl

            source = pl.read_ipc(source)
        flows, self.records = read_flows(source, whole, options=job.reading)
        self.flows = to_regions(flows, whole, whole.level) if whole.level else flows

    def run(self, cell: Cell) -> list[dict[str, Any]]:
        """Figures of one run: one row a finding; one row with `failed` where the run was refused."""
        return figures(cell, self._made, self._measured)

    def _made(self, cell: Cell) -> Made:
        if cell.arm.method:
            flows, cost = self._synthetic(cell)
            return Made(flows, flows.records, cost)
        place = REFERENCES.index(cell.arm.label)
        seed = number(self.job.seed, cell.repeat, place)
        flows = (resampled, shuffled)[place](self.flows, seed)
        return Made(flows, flows.records, {})

    def _measured(self, made: Any, repeat: int) -> tuple[Finding, ...]:
        del repeat  # nothing is drawn to measure flows
        return measured(self.flows, made, self.geography, self.job.metrics)

    def _synthetic(self, cell: Cell) -> tuple[Flows, dict[str, Any]]:
        from gibbous.pipeline import plan, synthesize

        mechanism, schema = method_at(cell.arm, self.geography), self.job.schema
        rows = self.job.rows
        if rows is None and mechanism.about.releases == "rows" and cell.arm.method != "onthemap":
            rows = self.flows.records  # onthemap draws as many as each destination has
        planned = plan(schema, mechanism, rows=rows, accept_inferred=True, understand=True)
        cost = budget(planned.claim, planned.total) | {"memory_planned": planned.memory_bytes}
        seed = number(self.job.seed, 7, cell.repeat)
        if self.job.ledger is not None:
            whole = self.job.geography
            assert whole is not None
            release = synthesize(
                self.records,
                schema,
                mechanism,
                rows=rows,
                seed=seed,
                engine=FlowEngine(whole, self.job.reading, level=whole.level),
                ledger=self.job.ledger,
                fresh=True,
                accept_inferred=True,
                understand=True,
            )
            return flows_of(release.sets[0], self.geography), cost
        engine = FlowEngine.holding(self.geography, self.flows, schema)
        codes = drawn(self.job, mechanism, planned, rows, seed, engine)
        return collected(codes.by_column[0], codes.by_column[1]), cost


def seen(geography: Geography) -> Geography:
    """The geography whose origins are counted: the regions of its level, where it asks for one."""
    return coarse(geography, geography.level) if geography.level else geography


def method_at(arm: Arm, geography: Geography) -> Any:
    """The method of an arm with the places that it takes.

    Raises:
        UsageError, ParameterError: a parameter is not known, or does not fit the places.
    """
    kind, given = registry.load(arm.method), dict(arm.params)
    return build(kind, given, **placed(kind, given, geography))
