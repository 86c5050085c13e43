"""From a confidential table to a verified release: plan, check, reserve, count, noise, write, commit, draw."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import BudgetExhausted, PrivacyRefused, UsageError
from gibbous.core.exact import Number, exact
from gibbous.core.params import as_json
from gibbous.core.plan import Plan
from gibbous.core.protocols import Engine, Mechanism, Progress, silent
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.mechanisms import limits, registry
from gibbous.privacy.curator import Curator
from gibbous.privacy.ledger import Ledger

DEFAULT_METHOD = "noisy_pegs"


def load_schema(schema: Schema | str | Path) -> Schema:
    """A schema as it is, or read from a TOML file."""
    return schema if isinstance(schema, Schema) else Schema.load(schema)


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
        understand: allow an epsilon outside [1e-6, 100] and a delta above 1/rows.
        budget: the most that everything together may cost (epsilon).
    Returns:
        The plan.
    Raises:
        PrivacyRefused: a parameter or a claim is refused.
        BudgetExhausted: the total is above `budget`.
    """
    schema = load_schema(schema)
    mechanism = _mechanism(method)
    if sets < 1 or (rows is not None and rows < 0):
        raise UsageError(
            "ROWS",
            f"rows={rows} and sets={sets} were asked for.",
            "rows >= 0 and sets >= 1.",
            "Correct --rows or --sets.",
        )
    found = mechanism.plan(schema, rows, sets)
    _check_unit(schema, found)
    if found.total.is_dp and schema.inferred() and not accept_inferred:
        raise _inferred(schema)
    limits.check_budget(found, rows, understand=understand)
    if budget is not None and found.total.is_dp and found.total.epsilon > exact(budget):
        raise BudgetExhausted(
            "BUDGET",
            f"This run costs more than the budget: {found.headline()}.",
            f"The budget given is epsilon = {budget}.",
            "Ask for fewer rows or sets, a smaller epsilon, or a method whose rows are free "
            "after its tables (noisy_pegs, sbhg).",
        )
    return found


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
    engine: Engine | str = "local",
    accept_inferred: bool = False,
    understand: bool = False,
    budget: Number | None = None,
    csv_raw: bool = False,
    options: Any = None,
    progress: Progress = silent,
) -> Release:
    """Spend a claim on a confidential table and return (and write) a synthetic release.

    Args:
        source: a path (CSV, Parquet) or a frame (pandas, polars, pyarrow).
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
        engine: "local" (compiled) or "numpy".
        accept_inferred, understand, budget: see `plan`.
        csv_raw: write CSV text cells without the guard against spreadsheet formulas.
        options: reading options (separator, encoding, limits).
        progress: called with (stage, done, total).
    Returns:
        The release: sets, claim, tables, receipt.
    Guarantee:
        `release.claim`, for everything that is written, charged to the ledger before counting.
    Raises:
        GibbousError: one class an exit code; see gibbous.core.errors.
    """
    from gibbous import disintegrate
    from gibbous.write import package

    schema = load_schema(schema)
    mechanism = _mechanism(method)
    planned = plan(
        schema,
        mechanism,
        rows=rows,
        sets=sets,
        accept_inferred=accept_inferred,
        understand=understand,
        budget=budget,
    )
    target = package.check_output(out, overwrite=overwrite, source=source) if out else None
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(Path(ledger) if ledger else None)
    worker = disintegrate.engine(engine) if isinstance(engine, str) else engine
    raise NotImplementedError
