"""Evaluate: real records, synthetic sets and a schema in; every finding that the options allow out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.schema import Column, Schema
from gibbous.evaluation import metrics
from gibbous.evaluation.findings import Findings
from gibbous.evaluation.measure import Options
from gibbous.evaluation.tables import Subject, opened, plain, subject

NOTICE = (
    "Computed against confidential records: whoever publishes a figure of it makes a release of its own, "
    "which no ledger has charged."
)
LIBRARIES = ("gibbous", "numpy", "polars", "scipy", "scikit-learn", "statsmodels")


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path | None,
    options: Options,
    holdout: Any = None,
    seed: int = 0,
    progress: Progress = silent,
    reading: Any = None,
) -> Findings:
    """As `gibbous.evaluate`, without a report.

    Returns:
        Findings, utility first; `facts["left_out"]` names those that need an option that was not given.
    """
    began = time.perf_counter()
    sources = opened(synthetic)
    releases = [source for source in sources if isinstance(source, Release)]
    if schema is None:
        schema = _own(releases)
    declared = plain(Schema.load(schema) if isinstance(schema, str | Path) else schema)
    declared = _with_bought_bins(declared, releases)
    wanted = checked(declared, options)
    for release in releases:
        _check_release(release, declared)
    progress("read", 0, 1)
    tables = subject(real, sources, declared, holdout=holdout, seed=seed, options=reading)
    progress("read", 1, 1)
    findings, seconds = metrics.compute(tables, options, wanted, progress)
    left = metrics.left_out(wanted, declared, options)
    computed = {finding.name for finding in findings} | set(left)
    left |= {name: "columns that it applies to" for name in wanted if name not in computed}
    facts = _facts(tables, sources, options, left) | {
        "elapsed_s": {"all": round(time.perf_counter() - began, 2)} | seconds
    }
    return Findings(tuple(findings), facts)


def _own(releases: Sequence[Release]) -> Schema:
    if releases:
        return releases[0].schema
    raise UsageError(
        "NOSCHEMA",
        "No schema was given, and what is compared is no release.",
        "A release has its schema with it; other tables are compared under the one that is given.",
        "Pass schema=, a Schema or the path of its file.",
    )


def write_findings(findings: Findings, path: Path) -> Path:
    """Write findings as JSON to a new file that its owner alone may read.

    Raises:
        OutputNotWritten: the file exists or cannot be written.
    """
    from gibbous.write.durable_files import write_bytes

    text = json.dumps(findings.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode("utf-8", "replace") + b"\n")
    return path


def checked(schema: Schema, options: Options) -> tuple[str, ...]:
    """Check options against a schema, and name the findings that will be computed.

    Raises:
        UsageError: an unknown column, finding or formula, or a finding whose option is missing.
    """
    for option in ("keys", "sensitive", "targets", "given"):
        columns = getattr(options, option)
        absent = [name for name in columns if name not in schema.names]
        if absent:
            raise UsageError(
                "NOCOLUMN",
                f"{option}: there is no column {', '.join(map(repr, absent))}.",
                f"Columns are {', '.join(schema.names)}.",
                did_you_mean(absent[0], schema.names, "Check the spelling."),
            )
        twice = sorted({name for name in columns if columns.count(name) > 1})
        if twice:
            raise UsageError(
                "TWICE",
                f"{option}: {', '.join(map(repr, twice))} is named more than once.",
                "Each column comes once.",
                "Remove one.",
            )
    both = [name for name in options.keys if name in options.sensitive]
    if both:
        raise UsageError(
            "KEYS",
            f"Column {', '.join(map(repr, both))} is among keys and sensitive.",
            "An intruder knows the keys and wants the sensitive columns: a column is one of these.",
            "Leave it out of one.",
        )
    if options.fraction is not None and not 0 < options.fraction <= 1:
        raise UsageError(
            "FRACTION",
            f"The sampling fraction is {options.fraction}.",
            "It is above 0 and at most 1: the share of the population that is in the real table.",
            "Correct it, or leave it out where the table is the population.",
        )
    if options.formulas:
        from gibbous.evaluation.utility.model_rows import parse

        for text in options.formulas:
            parse(text, schema)
    return metrics.selected(options.only or None, schema, options)


def _with_bought_bins(schema: Schema, releases: Sequence[Release]) -> Schema:
    """Columns that were declared by their bounds alone get the bins that the first release bought."""
    bought = {column.name: column for column in releases[0].schema} if releases else {}

    def binned(column: Column) -> Column:
        own = bought.get(column.name)
        if own is None or len(column.edges) != 2 or _ends(own) != _ends(column):
            return column
        return replace(column, edges=own.edges, sources=own.sources)

    return replace(schema, columns=tuple(map(binned, schema)))


def _check_release(release: Release, schema: Schema) -> None:
    theirs = plain(release.schema)
    differences = {
        "not in the release": [name for name in schema.names if name not in theirs.names],
        "only in the release": [name for name in theirs.names if name not in schema.names],
        "of another kind, or with other levels, bounds, bins or missing": [
            column.name
            for column in schema
            if column.name in theirs.names and _domain(column) != _domain(theirs[column.name])
        ],
    }
    parts = [
        f"{what}: {', '.join(map(repr, names))}" for what, names in differences.items() if names
    ]
    if parts:
        raise SchemaMismatch(
            "SCHEMA",
            f"The schema of the release and the schema given differ; {'; '.join(parts)}.",
            "A release is compared under the schema that it was made with.",
            "Give that schema: schema.toml in the folder of the release has its public facts.",
        )


def _domain(column: Column) -> tuple[Any, ...]:
    bought = column.source("bins") == "discovered"
    edges = _ends(column) if bought else column.edges
    return column.kind, column.levels, edges, column.missing, column.other


def _ends(column: Column) -> tuple[float, ...]:
    return column.edges[:1] + column.edges[-1:]


def _labels(schema: Schema) -> dict[str, Any]:
    """(column, level or "", what it means), where labels were declared; and what else is said of columns."""
    found = [[c.name, "", c.label] for c in schema if c.label]
    found += [[c.name, str(level), text] for c in schema for level, text in c.level_labels]
    said = [[c.name, c.description or "", c.measured_in or "", c.note or ""] for c in schema]
    said = [one for one in said if any(one[1:])]
    return ({"labels": found} if found else {}) | ({"texts": said} if said else {})


def _facts(
    tables: Subject, sources: Sequence[Any], options: Options, left: Mapping[str, str]
) -> dict[str, Any]:
    roles = ("keys", "sensitive", "targets", "formulas", "given")
    return {
        "notice": NOTICE,
        "name": tables.schema.name,
        "rows": {
            "real": tables.real.rows,
            "synthetic": [table.rows for table in tables.sets],
            "holdout": tables.holdout.rows if tables.holdout else None,
        },
        "columns": list(tables.schema.names),
        **_labels(tables.schema),
        "sets": len(tables.sets),
        "seed": tables.seed,
        **{role: list(getattr(options, role)) for role in roles},
        "fraction": options.fraction,
        "left_out": dict(left),
        "releases": [
            {
                "method": source.plan.mechanism,
                "claim": source.claim.to_json(),
                "words": source.claim.words(),
            }
            for source in sources
            if isinstance(source, Release)
        ],
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue  # the extra is not installed, and nothing used it
    return versions
