"""Noisy tables made elsewhere in, a release drawn from them out: no record is read, nothing is charged."""

from __future__ import annotations

from pathlib import Path

from gibbous.core.errors import ModelRejected, UsageError
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.request import PRIVATE, Output, Performance, Privacy, Request
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.encode.noisy_tables import read_noisy_tables
from gibbous.engines import NoRecords
from gibbous.mechanisms._given_tables import GivenTables
from gibbous.pipeline import release
from gibbous.privacy.ledger import Ledger
from gibbous.promise import load_schema
from gibbous.write.certificate_check import check_price


@answering
def from_tables(
    tables: str | Path,
    schema: Schema | str | Path,
    *,
    rows: int | None = None,
    sets: int = 1,
    seed: int | None = None,
    out: str | Path | None = None,
    format: str = "parquet",
    mode: int | str = PRIVATE,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Release:
    """Rows from noisy tables that somebody else made and published.

    Args:
        tables: a folder: tables.toml and CSV files (docs/how-to/from-tables.md).
        schema: declared, with its privacy unit: levels and bins are those of the tables.
        rows, sets, seed, out, format, mode, overwrite, progress: as for `synthesize`.
    Returns:
        A release whose claim is the one that came with the tables, `stated`: rows are
        post-processing. Nothing is charged to a ledger.
    Raises:
        UsageError: the tables do not fit the schema, are not complete, or have too little noise for the
            price that is stated.
    """
    output = Output(rows, sets, seed, format, overwrite=overwrite, out=out, mode=mode)
    return released(tables, load_schema(schema), output, progress)


def released(
    tables: str | Path, schema: Schema, output: Output, progress: Progress = silent
) -> Release:
    """The same, from a request's parts; the price that is stated is checked against the noise first."""
    given = read_noisy_tables(tables, schema)
    alone = Tables(schema, given.tables, Recipe("loglinear", ()))
    try:
        check_price(alone, given.claim, schema.unit.max_rows if schema.unit else 1)
    except ModelRejected:
        raise UsageError(
            "STATEDPRICE",
            f"The noise in the tables is too small for the price that is stated: {given.claim.words()}.",
            "Tables of one record each, with this noise, cost more.",
            "Ask their maker which is wrong, scale, price or relation, and correct tables.toml.",
        ) from None
    privacy = Privacy(schema, GivenTables(given), ledger=Ledger.ephemeral())
    performance = Performance(NoRecords(given.digest))
    return release(Request(None, privacy, output, performance), progress)
