"""Read a release package back: every byte that is used is checked first, and nothing is run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import Claim
from gibbous.core.errors import GibbousError
from gibbous.core.plan import Plan, Spend
from gibbous.core.release import Lazy, Receipt, Release
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.read.schema_file import load_schema
from gibbous.write import manifest
from gibbous.write.certificate import FORMAT, claim_of
from gibbous.write.digest import digest_of
from gibbous.write.files import read_json, refusing, rejected
from gibbous.write.more import draw
from gibbous.write.parquet_guard import guarded_read
from gibbous.write.table_files import listed_files, read_tables

if TYPE_CHECKING:
    import polars as pl


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
    sums = manifest.digests(folder)
    readers = [
        partial(_read_set, folder, f"synthetic_{number}.parquet", sums)
        for number in range(1, receipt["sets"] + 1)
    ]
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        total, plan = claim_of(receipt, "total"), _plan(receipt["plan"])
    sampler = draw if tables is not None else None
    return Release(
        Lazy(readers), schema, total, plan, tables, Receipt(receipt), folder.absolute(), sampler
    )


def read_receipt(folder: Path) -> dict[str, Any]:
    """The certificate of a package.

    Raises:
        ModelRejected: it is missing, of another version, or its parts are of the wrong kind.
    """
    receipt = read_json(folder / "ledger.json")
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        if receipt["format"] != FORMAT:
            raise rejected(
                "VERSION",
                f"its certificate has the format {str(receipt['format'])[:40]!r}, this gibbous reads "
                f"{FORMAT!r}",
            )
        rows = receipt["rows"]
        whole = type(receipt["sets"]) is int and all(type(r) is int and r >= 0 for r in rows)
        if not whole or len(rows) != receipt["sets"] or not 1 <= len(rows) <= manifest.MAX_FILES:
            raise rejected("RECEIPT", "the numbers of sets and rows in ledger.json do not fit")
        return dict(receipt)


def read_schema(folder: Path) -> Schema:
    """The public schema of a package.

    Raises:
        ModelRejected: it is not one.
    """
    try:
        return load_schema(folder / "schema.toml")
    except GibbousError as error:
        why = error.wrong.rstrip(".")
    raise rejected("SCHEMA", f"schema.toml is not a schema ({why})")


def released_tables(folder: Path, schema: Schema, receipt: dict[str, Any]) -> Tables | None:
    """The public tables, if the release has them; they are the ones that were committed.

    Raises:
        ModelRejected: they are damaged, or not those of the certificate.
    """
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


def _read_set(folder: Path, name: str, sums: dict[str, str]) -> pl.DataFrame:
    if name not in sums or not (folder / name).is_file():
        raise rejected("MISSING", f"{name} is missing")
    manifest.check_file(folder, name, sums[name])
    return guarded_read(folder / name)


def _plan(data: dict[str, Any]) -> Plan:
    return Plan(
        mechanism=str(data["mechanism"]),
        params=dict(data["params"]),
        rows=data["rows"],
        sets=int(data["sets"]),
        claim=claim_of(data, "claim"),
        total=claim_of(data, "total"),
        published=str(data["published"]),
        spends=tuple(
            Spend(str(s["what"]), Claim.from_json(s["claim"]), str(s["detail"]))
            for s in data["spends"]
        ),
        cells=int(data["cells"]),
        memory_bytes=int(data["memory_bytes"]),
        errors=tuple((str(k), float(v)) for k, v in data["errors"].items()),
        warnings=tuple(str(w) for w in data["warnings"]),
    )
