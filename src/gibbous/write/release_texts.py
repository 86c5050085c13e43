"""Certificate, schema and tables in; METHODS.md, codebook.html and descriptions for programs out.

They follow from these alone, so that whoever has a release can write them again and compare.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import exp, sqrt
from pathlib import Path
from typing import Any

from gibbous.core.cell_model import CellModel
from gibbous.core.documents import read_bytes
from gibbous.core.schema import Schema, Unit, fact_words
from gibbous.core.tables import Table, Tables
from gibbous.read.schema_write import schema_toml
from gibbous.write import glossary, manifest
from gibbous.write.certificate import (
    Facts,
    assumptions,
    bought_before,
    discovered,
    facts_of,
    guarantee,
    versions,
)
from gibbous.write.codebook import codebook_html
from gibbous.write.durable_files import rejected, untrusted
from gibbous.write.kept_rules import changed_words
from gibbous.write.rendering import render
from gibbous.write.set_files import part_rows_of
from gibbous.write.sidecars import sidecars

MAX_METHODS = 4 << 20  # bytes


def release_texts(
    receipt: Mapping[str, Any], schema: Schema, tables: Tables | None, sums: Mapping[str, str]
) -> dict[str, bytes]:
    """What is written for people, by file name.

    Args:
        receipt: the certificate, as it stands in ledger.json.
        tables: the published tables; None when the rows were what was paid for.
        sums: file of a set -> its digest (SHA-256, hex).
    """
    methods = methods_text(
        facts_of(receipt, schema),
        tables,
        sets=receipt["sets"],
        files=receipt["files"],
        in_parts=max(receipt["rows"]) > part_rows_of(receipt),
        given=tuple(receipt.get("given", {}).get("columns", ())),
        rules=changed_words(receipt.get("rules", ()), receipt["rows"]),
    )
    return {"METHODS.md": methods.encode("utf-8", "replace")} | described(receipt, schema, sums)


def described(
    receipt: Mapping[str, Any], schema: Schema, sums: Mapping[str, str]
) -> dict[str, bytes]:
    """Codebook and descriptions for other programs, of a release or of further rows, by file name."""
    known = receipt if "guarantee" in receipt else {**receipt, **receipt["release"]}
    texts = {"codebook.html": codebook_html(schema)} | sidecars(known, schema, sums)
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def methods_text(
    facts: Facts,
    tables: Tables | None,
    *,
    sets: int,
    files: Mapping[str, Any],
    in_parts: bool = False,
    given: tuple[str, ...] = (),
    rules: Sequence[tuple[str, str]] = (),
) -> str:
    """The text of METHODS.md; it depends on public facts only.

    Args:
        tables: the published tables; None when the rows were what was paid for.
        files: what the certificate says of the files of the sets.
        in_parts: whether a set is a folder of files.
        given: columns that were not drawn, but given by whoever ran it.
    """
    plan, schema, total = facts.plan, facts.schema, facts.plan.total
    first = _listed_first(tables)
    listed = first.items + first.extra if first else ()
    model = first.model if first else None
    inferred, before = facts.uncovered or schema.inferred(), bought_before(schema, plan)
    paid = [fact for fact in discovered(schema) if fact not in before]
    text = render(
        "gibbous.write",
        "METHODS.md",
        facts=facts,
        plan=plan,
        schema=schema,
        total=total,
        tables=tables,
        tabled=tables is not None,
        sets=sets,
        csv=files.get("csv"),
        labelled=files.get("labelled", {}).get("format"),
        raw=files.get("csv_raw"),
        in_parts=in_parts,
        given=given,
        rules=rules,
        headline=guarantee(plan, schema, facts.uncovered, given),
        assumptions=assumptions(schema, plan, given),
        inferred=fact_words(inferred).split("; ") if inferred else [],
        found=any(column.source("missing") == "discovered" for column in schema),
        discovered=fact_words(paid).split("; ") if paid else [],
        before=fact_words(before).split("; ") if before else [],
        unit=schema.unit or Unit(),
        normal=isinstance(model, CellModel) if first else bool(plan.numbers),
        stepped=any(column.within is not None for column in schema),
        epsilon=float(total.epsilon),
        delta=float(total.delta),
        odds=exp(min(float(total.epsilon), 700.0)),
        sums=len(model.sums) if isinstance(model, CellModel) else 0,
        noise=[_noise_row(table, schema) for table in listed],
        gap=getattr(model, "gap", None),
        thresholds=any(table.noise.threshold is not None for table in listed),
        words=glossary,
    )
    return text.rstrip() + "\n"


def check_texts(
    folder: Path,
    receipt: Mapping[str, Any],
    schema: Schema,
    made: Callable[[dict[str, str]], dict[str, bytes]],
) -> str:
    """Compare the texts of a folder with those that follow from the rest of it.

    Args:
        schema: as read from it: what its file says beside that, in comments, is refused.
        made: the texts, from the digests of all files.
    Returns:
        What could not be compared, as a sentence; "" where nothing is left.
    Raises:
        ModelRejected: this version of gibbous wrote the release, and would have written other texts.
    """
    if os.path.lexists(folder / "METHODS.md"):
        with untrusted("METHODS.md", "SIZE"):
            read_bytes(folder / "METHODS.md", MAX_METHODS)
    texts = {"schema.toml": schema_toml(schema).encode()} | made(manifest.digests(folder))
    differ = [name for name, text in texts.items() if not holds(folder / name, text)]
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


def holds(path: Path, content: bytes) -> bool:
    """Whether a file holds these bytes; one of another size is not read."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _noise_row(table: Table, schema: Schema) -> tuple[str, str, str, str]:
    """Columns that are counted, columns given, standard deviation, which counts are kept."""
    context, noise = table.context, table.noise
    targets, parents = (
        ", ".join(schema.names[column] for column in group)
        for group in (context.targets, context.parents)
    )
    key = type(context.key).__name__.lower()
    if parents and key != "radix":
        parents += f" ({key}, {context.keys} keys)"
    kept = "all" if noise.threshold is None else f"noisy counts above {noise.threshold}"
    return targets, parents, f"{sqrt(noise.variance):.4g} ({noise.law})", kept


def _listed_first(tables: Tables | None) -> Tables | None:
    """The tables of the first set and its first part, which are listed."""
    first = None if tables is None else tables.of_set(0)
    return first.parts[0] if first and first.parts else first
