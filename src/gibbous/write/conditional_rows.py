"""Rows drawn to go with given columns: a release and a few known columns in, a release folder out.

What is given stands in the output as it is, so no guarantee covers it; what is drawn is
post-processing of the public tables. The folder says both: certificate, METHODS.md, `verify`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.codes import joined
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.release import Release
from gibbous.core.request import Output
from gibbous.core.schema import Schema
from gibbous.core.tables import LogLinear, Tables
from gibbous.read.schema_write import schema_toml
from gibbous.write import durable_files, manifest, partial
from gibbous.write.certificate import Facts, assumptions, facts_of, guarantee, versions
from gibbous.write.kept_rules import rules_of_receipt
from gibbous.write.load import load
from gibbous.write.partial import drawn_seed
from gibbous.write.release_digest import digest_of
from gibbous.write.release_texts import release_texts
from gibbous.write.sampled_rows import paid_rows
from gibbous.write.sampler import Given, drawn, encoded, part_of, unusable
from gibbous.write.sets import Sets
from gibbous.write.table_files import write_tables

if TYPE_CHECKING:
    from gibbous.core.protocols import Progress
    from gibbous.read.source import ReadOptions


def read_given(path: Path, schema: Schema, options: ReadOptions | None = None) -> Given:
    """Given columns from a CSV or Parquet file: one or more columns of the schema, but not all of them.

    Raises:
        UsageError: a column that the schema does not have, or none that is left to draw.
        SchemaMismatch: a value is outside the schema, or missing where the column has none.
        InputRejected, ResourceLimit: as for any input.
    """
    from gibbous.read.source import probe, read_columns

    names = probe(path, options=options).names
    part = part_of(schema, names)
    if len(part) == len(schema):
        raise unusable(
            "all columns of the release",
            "At least one column is left to draw.",
            "Leave out of the given file what is to be drawn.",
        )
    try:
        frame = read_columns(path, schema=part, options=options)
        return encoded(schema, frame)
    except SchemaMismatch as error:
        wrong = error.wrong.replace("The data do not fit the schema", "", 1).lstrip(": ")
    # Without `from`: what it was made of is not for the log. The schema of a release is what it is.
    raise SchemaMismatch(
        "GIVEN",
        f"The given rows do not fit the schema of the release: {wrong}",
        "Given values are among the levels and within the bounds in its schema.toml.",
        "Correct the given file, or leave the column out: it is drawn then.",
    )


def model_tables(release: Release) -> Tables:
    """The tables of a release that can be drawn from with some columns given.

    Raises:
        PrivacyRefused: the release has no public tables.
        UsageError: its tables have no log-linear model.
    """
    tables = release.tables
    if tables is None:
        raise paid_rows()
    if any(not isinstance(tables.of_set(at).model, LogLinear) for at in range(tables.noisings)):
        name = release.receipt["method"]["name"]
        raise UsageError(
            "GIVEN",
            f"Rows were asked for with some columns given, of a release of {name}.",
            "Only a log-linear model can be drawn from that way: releases of adaptive_gibbs, and of "
            "per_set around it.",
            "Make the release with adaptive_gibbs, or draw whole rows with --rows.",
        )
    return tables


def write_conditional(
    source: Path | Release,
    known: Path,
    target: Path,
    output: Output,
    *,
    options: ReadOptions | None = None,
    progress: Progress,
) -> Release:
    """Draw one row for each given row and write a release folder of them: no further cost.

    A release in which every set has noise of its own gives as many sets, each with every given row.

    Args:
        source: a release of a log-linear model, or its folder.
        known: file of the given columns.
        target: what `check_output` returned.
        output: seed (the same seed gives the same bytes) and format; rows are those of `known`.
        progress: told ("rows", done, rows of all sets).
    Returns:
        The release that was written; its receipt has the entry "given".
    Raises:
        UsageError, SchemaMismatch, InputRejected: the given columns cannot be used. Nothing is
            written then.
        OutputNotWritten, ResourceLimit: it cannot be written.
    """
    release = source if isinstance(source, Release) else load(source)
    tables = model_tables(release)
    given = read_given(known, release.schema, options)
    sets = tables.noisings
    _check_size(len(release.schema), given.rows * sets)
    progress("rows", 0, given.rows * sets)
    seed = drawn_seed() if output.seed is None else output.seed
    output = replace(output, rows=given.rows, sets=sets, seed=seed)
    each = [drawn(tables, given, seed=seed, set_index=at) for at in range(sets)]
    rows, changed = joined([one.codes for one in each]), tuple(one.changed for one in each)
    names = tuple(release.schema.names[place] for place in sorted(given.codes))
    # Quickly drawn again: a killed run is swept, not taken up.
    request = partial.fresh_name().encode()
    growing = partial.acquire(target, request, seed)
    try:
        written = Sets(rows, digest_of(tables), output, growing)
        written.write(progress)
        amended = rules_of_receipt(release.schema, changed)
        _describe(growing.package, release, tables, written, names, amended)
        manifest.seal(growing.package, known=written.sums, sign=output.sign)
        durable_files.move_into_place(
            growing.package, target, overwrite=output.overwrite, mode=output.mode
        )
    finally:
        growing.remove()
    return load(target)


def _check_size(columns: int, rows: int) -> None:
    from gibbous.core.machine import check_memory, default_limit

    # Codes of at most 4 bytes, the chains' copy of them, and the numbers of given columns.
    check_memory(rows * columns * 16, default_limit())


def _describe(
    folder: Path,
    release: Release,
    tables: Tables,
    written: Sets,
    names: tuple[str, ...],
    rules: dict[str, Any],
) -> None:
    """Everything but the rows: tables as released, and texts that name what was given."""
    receipt, job = release.receipt.to_json(), written.job
    facts = facts_of(receipt, release.schema)
    facts = replace(facts, plan=replace(release.plan, rows=job.rows, sets=job.output.sets))
    fresh = (
        receipt
        | _amended(facts, names)
        | rules
        | {
            "rows": [job.rows] * job.output.sets,
            "sets": job.output.sets,
            "seed": job.seed,
            "files": written.described(),
        }
    )
    durable_files.write_bytes(folder / "schema.toml", schema_toml(release.schema).encode())
    write_tables(tables, folder / "tables")
    durable_files.write_json(folder / "ledger.json", fresh)
    for name, text in release_texts(fresh, release.schema, tables, written.sums).items():
        durable_files.write_bytes(folder / name, text)


def _amended(facts: Facts, given: tuple[str, ...]) -> dict[str, Any]:
    """What a certificate says otherwise; price, method and ledger entry stay those of the release."""
    return {
        "guarantee": guarantee(facts.plan, facts.schema, facts.uncovered, given),
        "differentially_private": False,
        "given": {"columns": list(given), "covered": False},
        "assumptions": assumptions(facts.schema, facts.plan, given),
        "plan": facts.plan.to_json(),
        "rows_from": "given rows",
        "versions": versions(),
    }
