"""Read a release package back: every byte that is used is checked first, and nothing is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.errors import GibbousError
from gibbous.core.keywords import answering
from gibbous.core.release import Receipt, Release
from gibbous.core.request import Imprint
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.read.schema_file import load_schema
from gibbous.write import manifest
from gibbous.write.certificate import FORMAT, claim_of, plan_of
from gibbous.write.copied import save_from
from gibbous.write.durable_files import check_format, read_json, refusing, rejected
from gibbous.write.receipt_fields import check_fields
from gibbous.write.release_digest import digest_of
from gibbous.write.sampled_rows import FORMAT as FURTHER_FORMAT
from gibbous.write.sampler import sampler_of
from gibbous.write.set_files import lazy_sets
from gibbous.write.table_files import listed_files, read_tables


@guarded
@answering
def load(path: str | Path) -> Release:
    """Read a release package. Sets are read, and checked, when they are first asked for.

    Args:
        path: the folder.
    Returns:
        The release; `sample` draws more rows if it has public tables.
    Raises:
        ModelRejected: it is not an intact release.
    """
    folder = Path(path)
    manifest.check(folder, skip_sets=True)
    receipt = read_receipt(folder)
    schema = read_schema(folder)
    tables = released_tables(folder, schema, receipt)
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        total, plan = claim_of(receipt, "total"), plan_of(receipt["plan"])
    place = folder.absolute()
    sets, sampler = lazy_sets(place, receipt, schema), sampler_of(tables, receipt)
    return Release(
        sets, schema, total, plan, tables, Receipt(receipt), place, sampler, save_from(place)
    )


def read_receipt(folder: Path) -> dict[str, Any]:
    """The certificate of a package; ModelRejected if it is missing, or not one of this version."""
    if os.path.lexists(folder / manifest.FURTHER):
        raise rejected("FURTHER", "these are further rows of a release, without a certificate")
    receipt = read_json(folder / "ledger.json")
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        check_format(receipt["format"], FORMAT, "its certificate has")
        check_fields(receipt)
        _check_sizes(receipt, "ledger.json")
        Imprint.from_json(receipt.get("imprint", {}))
        return dict(receipt)


def read_origin(folder: Path) -> dict[str, Any]:
    """What a folder of further rows says about itself; ModelRejected if it is not one of this version."""
    origin = read_json(folder / manifest.FURTHER)
    with refusing("ROWS", f"{manifest.FURTHER} does not say which release its rows are from"):
        check_format(origin["format"], FURTHER_FORMAT, "its rows have")
        if os.path.lexists(folder / "ledger.json") or os.path.lexists(folder / "tables"):
            raise rejected("ROWS", "it has a certificate or tables beside further rows")
        _check_sizes(origin, manifest.FURTHER)
        Imprint.from_json(origin.get("imprint", {}))
        return dict(origin)


def _check_sizes(document: dict[str, Any], name: str) -> None:
    rows = document["rows"]
    whole = type(document["sets"]) is int and all(type(r) is int and r >= 0 for r in rows)
    if not whole or len(rows) != document["sets"] or not 1 <= len(rows) <= manifest.MAX_FILES:
        raise rejected("RECEIPT", f"the numbers of sets and rows in {name} do not fit")


def read_schema(folder: Path) -> Schema:
    """The public schema of a package; else ModelRejected."""
    try:
        return load_schema(folder / "schema.toml", alone=True)
    except GibbousError as error:
        why = error.wrong.rstrip(".")
    raise rejected("SCHEMA", f"schema.toml is not a schema ({why})")


def released_tables(folder: Path, schema: Schema, receipt: dict[str, Any]) -> Tables | None:
    """The committed public tables, if the release has them; ModelRejected if they are others, or damaged."""
    if receipt.get("tables") is None:
        if (folder / "tables").exists():
            raise rejected("TABLES", "it has tables, which its certificate does not know")
        return None
    listed = {f"tables/{name}" for name in listed_files(folder / "tables")}
    if listed != {name for name in manifest.found(folder) if name.startswith("tables/")}:
        raise rejected("TABLES", "tables.json does not list the tables that are there")
    tables = read_tables(folder / "tables", schema)
    if len(tables.published()) != receipt["tables"]:
        raise rejected("TABLES", "it has another number of tables than its certificate says")
    if tables.noisings not in (1, receipt["sets"]):
        raise rejected("TABLES", "it has tables for another number of sets than there are")
    if receipt["sanitized"] != ("per set" if tables.noisings > 1 else "once"):
        raise rejected("TABLES", "its certificate does not say which sets share their noise")
    if digest_of(tables) != receipt.get("digest"):
        raise rejected("TABLES", "its tables are not those that its certificate was made for")
    return tables
