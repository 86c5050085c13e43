"""From a confidential table to a verified release: plan, reserve, count, noise, write, commit, draw."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.discovery import Discovery
from gibbous.core.exact import Number
from gibbous.core.keywords import answering
from gibbous.core.machine import at_most, check_memory, check_rows
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Mechanism, Progress, silent
from gibbous.core.release import Release
from gibbous.core.request import (
    NONE_GIVEN,
    PART_ROWS,
    PRIVATE,
    Imprint,
    Output,
    Performance,
    Privacy,
    Request,
)
from gibbous.core.schema import Schema
from gibbous.engines import engine_of, memory_limit, records_in, text_engine, workers_of
from gibbous.mechanisms import limits
from gibbous.mechanisms._discovery import Discovering
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.spend import Charge, spend
from gibbous.promise import ledger_of, planned, privacy_of
from gibbous.write.certificate import Facts
from gibbous.write.frame_kinds import frame_kind
from gibbous.write.kept import Drafts
from gibbous.write.labelled_files import written_by
from gibbous.write.output_path import check_levels, check_output
from gibbous.write.sampled_rows import write_sampled
from gibbous.write.signature import SigningKey, signing_key

IN_THIS_PROCESS = Performance("local")


@answering
def plan(
    schema: Schema | Discovery | str | Path,
    method: Mechanism | str | None = None,
    *,
    rows: int | None = None,
    sets: int = 1,
    accept_inferred: bool = False,
    understand: bool = False,
    budget: Number | None = None,
    risk: str | None = None,
    **parameters: Any,
) -> Plan:
    """What a run would cost and need, from the schema alone. Opens no record.

    Args:
        schema: a Schema, a path to a schema file, or a Discovery: names and unit of a table whose
            schema is to be bought.
        method: a mechanism, a registered name, or None for the default.
        rows: rows a set; None means the noisy number of rows.
        sets: synthetic sets, >= 1.
        accept_inferred: allow a claim over facts that were read off the data (they are then named
            as not covered).
        understand: allow an epsilon outside [1e-6, 100] and a delta above 1/rows (1e-3 without rows).
        budget: the most that everything together may cost (epsilon).
        risk: in place of an epsilon, the most that a membership test may find, for example "tpr@1%=3%".
        parameters: epsilon, delta and others of a method that is named: the rest are its defaults.
    Returns:
        The plan.
    Raises:
        PrivacyRefused: a parameter or a claim is refused.
        BudgetExhausted: the total is above `budget`.
    """
    privacy = privacy_of(
        schema,
        method,
        parameters,
        keywords=_keywords(plan),
        accept_inferred=accept_inferred,
        understand=understand,
        budget=budget,
        risk=risk,
    )
    return planned(privacy, Output(rows=rows, sets=sets))


@guarded
@answering
def synthesize(
    source: Any,
    schema: Schema | Discovery | str | Path | None = None,
    method: Mechanism | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rows: int | None = None,
    sets: int = 1,
    seed: int | None = None,
    out: str | Path | None = None,
    format: str = "parquet",
    mode: int | str = PRIVATE,
    overwrite: bool = False,
    ledger: Ledger | str | Path | None = None,
    new_data: str | None = None,
    engine: Engine | str | Callable[[], Engine] | None = None,
    partitions: int | None = None,
    part_rows: int | None = None,
    accept_inferred: bool = False,
    understand: bool = False,
    budget: Number | None = None,
    risk: str | None = None,
    strict: bool = False,
    fresh: bool = False,
    csv_raw: bool = False,
    imprint: Imprint = NONE_GIVEN,
    sign: SigningKey | str | Path | None = None,
    options: Any = None,
    progress: Progress = silent,
    **parameters: Any,
) -> Release:
    """Spend a claim on a confidential table and return (and write) a synthetic release.

    Args:
        source: a path (CSV, or Parquet: a file, a folder, a pattern), a frame (pandas, polars,
            pyarrow, Spark), an Ibis table, or the address of a table (docs/how-to/duckdb.md).
        schema: its declared schema, a path to the schema file, or a Discovery: kinds, levels and
            bounds are then bought with a share of the budget.
        method: a mechanism, a registered name, or None for the default.
        epsilon, delta, parameters: of a method that is named; what is spent is stated, never assumed.
        rows: rows a set; None means the noisy number of rows.
        sets: synthetic sets, >= 1.
        seed: seeds sampling from public tables only; noise has no seed. None draws one and
            records it.
        out: folder of the release package; None keeps it beside the ledger (`releases` lists it). The
            same request on the same data, in whatever folder, draws from its tables at no cost.
        format: "parquet", or what stands beside it: "csv", "sav" (SPSS), "dta" (Stata) or "xlsx".
        mode: permissions of its files: 0o600, or 0o640 for a group that reads them.
        overwrite: replace an existing `out`.
        ledger: the ledger, its path, or None for this user's default.
        new_data: why these are data of other people than those of a capped account that was read
            from the same path or has the same columns; recorded in the ledger.
        engine: "local" (compiled), "duckdb", "spark", "numpy", one that `gibbous.engine` made, or a
            function that makes one once everything else was checked; None for the one that fits
            the source. Results do not depend on it.
        partitions: into how many parts a cluster cuts the work.
        part_rows: most rows of one file of a set; larger sets are folders of such files.
        accept_inferred, understand, budget, risk: see `plan`.
        strict: charge again where an earlier run of the same request was killed after its
            reservation and before its tables were complete; otherwise that reservation pays.
        fresh: charge again, for new noise, where a release answers the request already.
        csv_raw: write CSV text cells without the guard against spreadsheet formulas.
        imprint: issuer, contact, date and license: public text for certificate, METHODS.md and report.
        sign: the private key that signs the release, or the path of one without a passphrase.
        options: reading options (separator, encoding, limits).
        progress: called with (stage, done, total).
    Returns:
        The release: sets, claim, tables, receipt.
    Guarantee:
        `release.claim`, for everything that is written, charged to the ledger before counting.
    Raises:
        GibbousError: one class an exit code; see gibbous.core.errors.
    """
    privacy = privacy_of(
        schema,
        method,
        {"epsilon": epsilon, "delta": delta} | parameters,
        keywords=_keywords(synthesize),
        budget=budget,
        risk=risk,
        accept_inferred=accept_inferred,
        understand=understand,
        ledger=ledger,
        new_data=new_data,
        strict=strict,
        fresh=fresh,
    )
    output = Output(
        rows,
        sets,
        seed,
        format,
        csv_raw,
        PART_ROWS if part_rows is None else part_rows,
        overwrite,
        out,
        imprint,
        signing_key(sign),
        mode=mode,
    )
    performance = Performance(engine, partitions)
    return release(Request(source, privacy, output, performance, options), progress)


@guarded
def release(request: Request, progress: Progress = silent) -> Release:
    """Spend what a request promises, and write its release: one stage a line; see `synthesize`."""
    privacy, source = request.privacy, request.source
    costs = planned(privacy, request.output)
    limits.refuse_assumed(costs, privacy)
    frames, key = frame_kind(source, _untyped(privacy)), signing_key(request.output.sign)
    output = replace(request.output, sign=key, types=frames.types)
    request = replace(request, output=output)
    written_by(output.format)  # its library is there, before anything is spent
    check_levels(privacy.schema, output)
    check_memory(costs.memory_bytes, memory_limit(request.performance))
    if not output.out:
        values = (output.rows or 0) * output.sets * len(privacy.schema)
        check_rows(values, memory_limit(request.performance))
    target = None
    if output.out:
        target = check_output(output.out, overwrite=output.overwrite, source=source)
    ledger = ledger_of(privacy)
    made = text_engine if isinstance(privacy.method, Discovering) else engine_of
    engine = made(request.performance, source, request.options)
    drafts = Drafts(request, costs, ledger, target)
    with (
        at_most(request.performance.threads),
        records_in(request, costs, ledger, engine, progress, drafts.paid) as dataset,
        workers_of(engine) as workers,
        drafts.begin(dataset) as draft,
    ):
        if draft.release is None:
            charge = Charge(ledger, dataset, draft)
            result = spend(privacy, costs, engine, charge=charge, progress=progress)
            engine.close()  # the read barrier: nothing raw can be consulted from here on
            draft.commit()
            draft.write_sets(workers if target else None, progress)
            draft.release = draft.finish(_facts(request, costs, result.schema))
        if draft.bought:
            progress("bought", 1, 1)
        taken: dict[str, Any] = {"bought_before": draft.bought, "bought_from": draft.bought_from}
        release = replace(draft.release, **taken)
        return (frames if target else replace(frames, read=None)).release(release)


def _untyped(privacy: Privacy) -> frozenset[str]:
    """Columns whose types in the source are data: they are to be bought, or were, and nobody stated them."""
    if isinstance(privacy.method, Discovering):
        known = privacy.method.known
        return frozenset() if known.types_are_public else frozenset(known.names)
    return frozenset(c.name for c in privacy.schema if c.source("missing") == "discovered")


@guarded
def sample_more(
    release: Release,
    output: Output,
    performance: Performance = IN_THIS_PROCESS,
    progress: Progress = silent,
) -> Path:
    """Draw more rows from the public tables of a release: post-processing, no cost.

    Args:
        output: how many rows, and `out`: a file if its name has an ending, else a folder that
            `verify` accepts; it must not exist.
        performance: the engine "spark" draws and writes the parts of a folder on a cluster.
    Returns:
        The path that was written.
    Raises:
        PrivacyRefused: the release has no tables: its rows were paid for one by one.
        OutputNotWritten: `out` exists or cannot be written.
    """
    target, _ = check_output(output.out or ""), written_by(output.format)
    check_levels(release.schema, output)
    output = replace(output, sign=signing_key(output.sign))
    with at_most(performance.threads):
        engine = engine_of(performance)
        with workers_of(engine) as workers:
            engine.close()
            return write_sampled(release, output, target, workers=workers, progress=progress)


def _facts(request: Request, planned: Plan, schema: Schema) -> Facts:
    """What the certificate says of a released schema, which is coarser where bins were paid for."""
    method = request.privacy.method
    if isinstance(method, Discovering):  # the parts of the cost, on the schema that was bought
        planned = method.plan(schema, planned.rows, planned.sets)
    return Facts(
        schema=schema,
        plan=planned,
        about=method.about,
        relation=request.privacy.relation,
        uncovered=schema.inferred() if planned.total.is_dp else (),
        imprint=request.output.imprint,
    )


def _keywords(function: Callable[..., object]) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(function).parameters if name != "parameters")
