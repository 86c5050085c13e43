"""From a confidential table to a verified release: plan, reserve, count, noise, write, commit, draw."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from gibbous import asked
from gibbous.core.claim import Claim, Relation
from gibbous.core.codes import Codes
from gibbous.core.dataset import DataSet
from gibbous.core.errors import BudgetExhausted, GibbousError, UsageError
from gibbous.core.exact import Number, exact
from gibbous.core.forked import refuse_forked
from gibbous.core.imprint import NONE_GIVEN, Imprint
from gibbous.core.keywords import answering
from gibbous.core.memory import check_memory, default_limit
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Mechanism, Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables
from gibbous.encode.decode import decode
from gibbous.mechanisms import limits
from gibbous.privacy.accountant import as_approximate
from gibbous.privacy.curator import Curator
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.privacy.ledger_datasets import file_place, file_stamp
from gibbous.privacy.rehearsal import rehearse
from gibbous.read.files import changed
from gibbous.synthesize.sample import stream
from gibbous.write import package
from gibbous.write.certificate import Facts, certify
from gibbous.write.further import write_further
from gibbous.write.like import frame_kind, together
from gibbous.write.more import draw as draw_more
from gibbous.write.package import check_output
from gibbous.write.set_files import checked_part_rows

DEFAULT_METHOD = "adaptive_gibbs"


class InputChanged(UserWarning):
    """The input file changed after it was read, while the run went on."""

    def __init__(self) -> None:
        super().__init__(
            "The input changed after it was read. The release, and its charge, are of the records as "
            "they were before; what is in the file now is another data set."
        )


def load_schema(schema: Schema | str | Path) -> Schema:
    """A schema as it is, or read from a TOML file.

    Args:
        schema: a Schema, or the path of a schema file (docs/reference/schema.md).
    Raises:
        UsageError: it is neither, or the file is not a schema.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    raise UsageError(
        "NOSCHEMA",
        f"The schema given is a {type(schema).__name__}.",
        "It is a Schema, or the path of a schema file.",
        "Load one with gibbous.Schema.load, or draft one with gibbous.Schema.infer.",
    )


@answering
def plan(
    schema: Schema | str | Path,
    method: Mechanism | str | None = None,
    *,
    rows: int | None = None,
    sets: int = 1,
    accept_inferred: bool = False,
    understand: bool = False,
    budget: Number | None = None,
) -> Plan:
    """What a run would cost and need, from the schema alone. Opens no record.

    Args:
        schema: a Schema, or a path to a schema file.
        method: a mechanism, a registered name, or None for the default.
        rows: rows a set; None means the noisy number of rows.
        sets: synthetic sets, >= 1.
        accept_inferred: allow a claim over facts that were read off the data (they are then named
            as not covered).
        understand: allow an epsilon outside [1e-6, 100] and a delta above 1/rows (1e-3 without rows).
        budget: the most that everything together may cost (epsilon).
    Returns:
        The plan.
    Raises:
        PrivacyRefused: a parameter or a claim is refused.
        BudgetExhausted: the total is above `budget`.
    """
    schema = settled(load_schema(schema), accept_inferred=accept_inferred)
    mechanism = asked.mechanism(method or DEFAULT_METHOD)
    rows, sets = asked.sizes(rows, sets)
    found: Plan = mechanism.plan(schema, rows, sets)
    if found.total.is_dp and schema.inferred() and not accept_inferred:
        raise asked.inferred(schema)
    if found.total.is_dp and schema.unit is None:
        raise asked.undeclared_unit()
    limits.check_budget(found, rows, understand=understand)
    if budget is not None:
        limits.check_dp(found)
    if budget is not None and found.total.is_dp and _epsilon(found.total) > exact(budget):
        raise BudgetExhausted(
            "BUDGET",
            f"This run costs more than the budget: {found.headline()}.",
            f"The budget given is epsilon = {budget}.",
            "Ask for fewer rows or sets, a smaller epsilon, or a method whose rows are free "
            "after its tables (noisy_pegs, sbhg).",
        )
    return found


@answering
def synthesize(
    source: Any,
    schema: Schema | str | Path,
    method: Mechanism | str | None = None,
    *,
    rows: int | None = None,
    sets: int = 1,
    seed: int | None = None,
    out: str | Path | None = None,
    format: str = "parquet",
    overwrite: bool = False,
    ledger: Ledger | str | Path | None = None,
    new_data: str | None = None,
    engine: Engine | str | Callable[[], Engine] | None = None,
    partitions: int | None = None,
    part_rows: int | None = None,
    accept_inferred: bool = False,
    understand: bool = False,
    budget: Number | None = None,
    strict: bool = False,
    csv_raw: bool = False,
    imprint: Imprint = NONE_GIVEN,
    options: Any = None,
    progress: Progress = silent,
) -> Release:
    """Spend a claim on a confidential table and return (and write) a synthetic release.

    Args:
        source: a path (CSV, or Parquet: a file, a folder, a pattern), a frame (pandas, polars,
            pyarrow, Spark), an Ibis table, or the address of a table (docs/how-to/duckdb.md).
        schema: its declared schema, or a path to the schema file.
        method: a mechanism, a registered name, or None for the default.
        rows: rows a set; None means the noisy number of rows.
        sets: synthetic sets, >= 1.
        seed: seeds sampling from public tables only; noise has no seed. None draws one and
            records it.
        out: folder of the release package; None keeps the release in memory.
        format: "parquet", or "csv" for CSV beside it.
        overwrite: replace an existing `out`.
        ledger: the ledger, its path, or None for this user's default.
        new_data: why these are data of other people than those of a capped account that was read
            from the same path or has the same columns; recorded in the ledger.
        engine: "local" (compiled), "duckdb", "spark", "numpy", one that `gibbous.engine` made, or a
            function that makes one once everything else was checked; None for the one that fits
            the source. Results do not depend on it.
        partitions: into how many parts a cluster cuts the work.
        part_rows: most rows of one file of a set; larger sets are folders of such files.
        accept_inferred, understand, budget: see `plan`.
        strict: charge again where an earlier run of the same request was killed after its
            reservation and before its tables were complete; otherwise that reservation pays.
        csv_raw: write CSV text cells without the guard against spreadsheet formulas.
        imprint: issuer, contact, date and license: public text for certificate, METHODS.md and report.
        options: reading options (separator, encoding, limits).
        progress: called with (stage, done, total).
    Returns:
        The release: sets, claim, tables, receipt.
    Guarantee:
        `release.claim`, for everything that is written, charged to the ledger before counting.
    Raises:
        GibbousError: one class an exit code; see gibbous.core.errors.
    """
    refuse_forked()
    schema = settled(load_schema(schema), accept_inferred=accept_inferred)
    mechanism = asked.mechanism(method or DEFAULT_METHOD)
    planned = plan(
        schema,
        mechanism,
        rows=rows,
        sets=sets,
        accept_inferred=accept_inferred,
        understand=understand,
        budget=budget,
    )
    asked.check_choices(seed, format)
    part_rows = checked_part_rows(part_rows)
    seed = None if seed is None else int(seed)
    check_memory(planned.memory_bytes, _limit(engine))
    target = check_output(out, overwrite=overwrite, source=source) if out else None
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(Path(ledger) if ledger else None)
    worker = asked.engine(engine, options, source, partitions)
    job = _Job(source, schema, mechanism, planned, seed, book, worker, imprint, progress, new_data)
    frames = frame_kind(source)
    if target is None:
        return frames.release(_in_memory(job))
    shape = _Shape(target, format, csv_raw, part_rows, overwrite, strict)
    return frames.release(_packaged(job, shape))


@answering
def sample_more(
    release: str | Path | Release,
    rows: int,
    *,
    seed: int | None = None,
    out: str | Path,
    format: str = "parquet",
    csv_raw: bool = False,
    engine: Engine | str | None = None,
    partitions: int | None = None,
    part_rows: int | None = None,
    progress: Progress = silent,
) -> Path:
    """Draw more rows from the public tables of a release: post-processing, no cost.

    Args:
        release: a release, or the folder of one.
        rows: number of rows, >= 0.
        seed: sampling seed; None draws one.
        out: a file if its name has an ending, else a folder that `verify` accepts; it must not exist.
        format: "parquet" or "csv".
        csv_raw: write CSV text cells without the guard against spreadsheet formulas.
        engine: "spark" draws and writes the parts of a folder on a cluster; None is this process.
        partitions, part_rows: as for `synthesize`.
    Returns:
        The path that was written.
    Raises:
        PrivacyRefused: the release has no tables: its rows were paid for one by one.
        OutputNotWritten: `out` exists or cannot be written.
    """
    from gibbous.write.load import load

    refuse_forked()
    found = release if isinstance(release, Release) else load(Path(release))
    asked.check_choices(seed, format)
    target = check_output(out, overwrite=False, source=None)
    worker = None if engine is None else asked.engine(engine, None, None, partitions)
    with _workers(worker) as workers:
        if worker is not None:
            worker.close()
        return write_further(
            found,
            rows,
            target,
            seed=package.drawn_seed() if seed is None else int(seed),
            format=format,
            csv_raw=csv_raw,
            part_rows=checked_part_rows(part_rows),
            workers=workers,
            progress=progress,
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Job:
    """One run's inputs."""

    source: Any
    schema: Schema
    mechanism: Any
    plan: Plan
    seed: int | None
    ledger: Ledger
    engine: Engine
    imprint: Imprint
    progress: Progress
    new_data: str | None = None

    @contextmanager
    def records(self) -> Iterator[tuple[Engine, DataSet]]:
        """Step 0b: open, validate and encode the records; they are forgotten at the end.

        A file that the ledger knows is held against its cap before it is opened. Whose account is
        charged, its records alone decide.
        """
        key = self.ledger.key
        place = file_place(self.source, key)
        stamp = file_stamp(self.source, key)
        known = self.ledger.recall(stamp)
        if known is not None:
            self.ledger.check(known, self.plan.total, protects=self._protects())
        engine = self.engine
        try:
            found = engine.scan(
                self.source, self.schema, key=key, progress=self.progress, numbers=self.plan.numbers
            )
            if file_stamp(self.source, key) != stamp:
                raise changed()
            yield engine, DataSet.of(found).read_from(place, stamp)
            if file_stamp(self.source, key) != stamp:
                warnings.warn(InputChanged(), stacklevel=4)
        finally:
            engine.close()

    def reserve(self, engine: Engine, dataset: bytes, request: bytes, label: str) -> Hold:
        """Step 1: the ledger entry, before anything is counted, of a run whose tables fit the engine."""
        relation = _relation(self.mechanism)
        rehearse(self.mechanism, engine, self.schema, relation=relation, plan=self.plan)
        return self.ledger.reserve(
            dataset,
            self.plan.total,
            mechanism=self.plan.mechanism,
            request=request,
            rows=self.plan.rows,
            protects=self._protects(),
            label=label,
            new_data=self.new_data,
        )

    def _protects(self) -> str:
        return self.schema.unit.words() if self.schema.unit else "one row"

    def release(self, engine: Engine) -> Tables | Codes:
        """Steps 2 and 3: count once, add noise once; the curator is closed when this returns."""
        curator = Curator(
            engine,
            self.plan.total,
            self.schema,
            relation=_relation(self.mechanism),
            progress=self.progress,
        )
        try:
            drawn: Tables | Codes = self.mechanism.run(curator, self.plan.rows, self.plan.sets)
            return drawn
        finally:
            curator.close()

    def facts(self, schema: Schema) -> Facts:
        """What the certificate says.

        Args:
            schema: what was released, which is coarser than the one given where bins were paid for.
        """
        return Facts(
            schema=schema,
            plan=self.plan,
            about=self.mechanism.about,
            relation=_relation(self.mechanism),
            uncovered=schema.inferred() if self.plan.total.is_dp else (),
            imprint=self.imprint,
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the package is written."""

    target: Path
    format: str
    csv_raw: bool
    part_rows: int
    overwrite: bool
    strict: bool


def _packaged(job: _Job, shape: _Shape) -> Release:
    target, written = shape.target, ("format", "csv_raw", "part_rows")
    with job.records() as (engine, dataset), _workers(engine) as workers:
        request = package.request_digest(
            dataset=dataset,
            schema=job.schema,
            plan=job.plan,
            seed=job.seed,
            target=target,
            extra={name: getattr(shape, name) for name in written},
        )
        with package.begin(
            target, request=request, seed=job.seed, overwrite=shape.overwrite
        ) as draft:
            if draft.made is not None:  # by a run that was killed after the folder had its name
                return draft.made
            draft.hold(
                job.ledger,
                lambda: job.reserve(engine, dataset, request, target.name),
                strict=shape.strict,
            )
            if not draft.drawn:  # else: a run that was killed after its draw became visible
                drawn = job.release(engine)
                if isinstance(drawn, Tables):
                    draft.tables(drawn)
                else:
                    draft.rows(drawn)
            engine.close()  # the read barrier: nothing raw can be consulted from here on
            result = draft.drawn_result(job.schema)
            draft.commit()
            draft.write_sets(
                job.plan.sets,
                job.plan.rows,
                format=shape.format,
                csv_raw=shape.csv_raw,
                part_rows=shape.part_rows,
                workers=workers,
                progress=job.progress,
            )
            return draft.finish(job.facts(result.schema))


def _in_memory(job: _Job) -> Release:
    with job.records() as (engine, dataset):
        request = os.urandom(32)
        hold = job.reserve(engine, dataset, request, "in memory")
        try:
            result = job.release(engine)
        except GibbousError as error:
            hold.explain(error)
            raise
    hold.commit(package.digest_of(result))
    seed = package.drawn_seed() if job.seed is None else job.seed
    sets = []
    for index in range(job.plan.sets):
        start, frames = 0, []
        for codes in _batches(result, job.plan, index, seed, job.progress):
            frames.append(decode(codes, seed=seed, set_index=index, start_row=start))
            start += codes.rows
        sets.append(together(frames, result.schema))
    receipt = certify(
        job.facts(result.schema),
        hold,
        seed=seed,
        rows=tuple(len(frame) for frame in sets),
        digest=package.digest_of(result),
        tables=result if isinstance(result, Tables) else None,
        numbers=tuple(p for p, _ in result.numbers) if isinstance(result, Codes) else (),
    )
    return Release(
        sets=tuple(sets),
        schema=result.schema,
        claim=job.plan.total,
        plan=job.plan,
        tables=result if isinstance(result, Tables) else None,
        receipt=receipt,
        sampler=draw_more,
    )


def _batches(
    result: Tables | Codes, planned: Plan, index: int, seed: int, progress: Progress
) -> Iterator[Codes]:
    """Step 7: rows of one set; from public tables by the sampling seed, or the rows that were paid for."""
    if isinstance(result, Tables):
        rows = planned.rows if planned.rows is not None else result.noisy_rows()
        yield from stream(result, rows, seed=seed, set_index=index, progress=progress)
        return
    share = result.rows // planned.sets
    yield result.part(slice(index * share, (index + 1) * share))


@contextmanager
def _workers(engine: Engine | None) -> Iterator[Workers | None]:
    """Who draws and writes rows for an engine of a cluster: they hold no record, and outlive it."""
    made = engine.workers() if engine is not None else None
    try:
        yield made
    finally:
        if made is not None:
            made.close()


def _limit(engine: Any) -> int:
    """Bytes that a run may use: this machine's share, or more where an engine was made with more."""
    return max(default_limit(), engine.memory_limit if isinstance(engine, Engine) else 0)


def _relation(mechanism: Any) -> Relation:
    found: Relation = getattr(mechanism, "relation", "add_remove")
    return found


def settled(schema: Schema, *, accept_inferred: bool) -> Schema:
    """The schema, with a privacy unit that is marked inferred where there is none.

    A draft that was inferred has no unit. Whoever accepts inferred facts gets one row, and reads it
    among the facts that the guarantee does not cover.
    """
    if schema.unit is not None or not accept_inferred:
        return schema
    return replace(schema, unit=Unit(source="inferred"))


def _epsilon(total: Claim) -> Fraction:
    """Epsilon of a total; of one that is stated in zCDP, at delta 1e-6."""
    return (as_approximate(total, Fraction(1, 10**6)) if total.kind == "zcdp" else total).epsilon
