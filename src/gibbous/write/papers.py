"""The papers of a release: its certificate, schema and tables in; METHODS.md and codebook.html out.

They follow from these alone, so that whoever has a release can write them again and compare.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gibbous.core.about import About
from gibbous.core.claim import Claim
from gibbous.core.documents import read_bytes
from gibbous.core.imprint import Imprint
from gibbous.core.plan import Plan, Spend
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.write.certificate import Facts, claim_of, versions
from gibbous.write.codebook import codebook_html
from gibbous.write.files import rejected, untrusted
from gibbous.write.methods_text import methods_text
from gibbous.write.read_sets import part_rows_of

MAX_METHODS = 4 << 20  # bytes


def papers(receipt: Mapping[str, Any], schema: Schema, tables: Tables | None) -> dict[str, bytes]:
    """What is written for people, by file name.

    Args:
        receipt: the certificate, as it stands in ledger.json.
        schema: of the release.
        tables: the published tables; None when the rows were what was paid for.
    """
    kept = receipt["files"]
    text = methods_text(
        facts_of(receipt, schema),
        tables,
        sets=receipt["sets"],
        csv=kept["csv"],
        raw=kept["csv_raw"],
        in_parts=max(receipt["rows"]) > part_rows_of(receipt),
        given=tuple(receipt.get("given", {}).get("columns", ())),
    )
    made = {"METHODS.md": text, "codebook.html": codebook_html(schema)}
    return {name: text.encode("utf-8", "replace") for name, text in made.items()}


def check_papers(
    folder: Path, receipt: Mapping[str, Any], schema: Schema, tables: Tables | None
) -> str:
    """Compare the papers of a release with those that follow from the rest of it.

    Returns:
        What could not be compared, as a sentence; "" where nothing is left.
    Raises:
        ModelRejected: this version of gibbous wrote the release, and would have written other papers.
    """
    if os.path.lexists(folder / "METHODS.md"):
        with untrusted("METHODS.md", "SIZE"):
            read_bytes(folder / "METHODS.md", MAX_METHODS)
    differ = [
        n for n, made in papers(receipt, schema, tables).items() if not same(folder / n, made)
    ]
    if not differ:
        return ""
    writer, here = receipt["versions"].get("gibbous", "unknown"), versions()["gibbous"]
    if writer == here:
        raise rejected(
            "PAPERS", f"{differ[0]} is not what its certificate, its schema and its tables give"
        )
    return (
        f"texts could not be regenerated (written by gibbous {writer[:40]!r}, this is {here}): "
        f"{' and '.join(differ)} may say anything; read ledger.json and schema.toml instead"
    )


def same(path: Path, wanted: bytes) -> bool:
    """Whether a file holds these bytes; one of another size is not read."""
    try:
        return path.stat().st_size == len(wanted) and path.read_bytes() == wanted
    except OSError:
        return False


def facts_of(receipt: Mapping[str, Any], schema: Schema) -> Facts:
    """What the run knew, as far as the certificate says it."""
    return Facts(
        schema=schema,
        plan=plan_of(receipt["plan"]),
        about=_about(receipt),
        relation=receipt["relation"],
        uncovered=tuple(receipt["uncovered"]),
        imprint=Imprint.from_json(receipt.get("imprint", {})),
    )


def plan_of(data: Mapping[str, Any]) -> Plan:
    """The plan of a certificate.

    Raises:
        ValueError, KeyError, TypeError: it is not one.
    """
    return Plan(
        mechanism=str(data["mechanism"]),
        params=dict(data["params"]),
        rows=data["rows"],
        sets=int(data["sets"]),
        claim=claim_of(dict(data), "claim"),
        total=claim_of(dict(data), "total"),
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


def _about(receipt: Mapping[str, Any]) -> About:
    """The card of the method, as the certificate states it."""
    told, claim = receipt["method"], claim_of(dict(receipt), "claim")
    return About(
        name=told["name"],
        title=told["title"],
        paper=told["paper"],
        unit=claim.unit,
        kind=claim.kind,
        releases="rows" if receipt["tables"] is None else "tables",
        claimed=told["claimed"],
        proven=told["proven"],
        audited=told["audited"],
    )
