"""The codebook: every column with its kind, levels or bins, bounds, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.schema import Schema
from gibbous.report.blocks import Block, Grid, Text
from gibbous.write.codebook import COLUMNS, combinations, overview


def blocks(schema: Schema) -> Iterator[Block]:
    """The schema for people."""
    inferred = schema.inferred()
    yield Text(
        f"{len(schema)} columns. "
        + (
            "Every fact was declared, which means known without looking at the data."
            if not inferred
            else f"{len(inferred)} facts were read off the data (inferred); all others were declared."
        )
    )
    yield Grid("Columns", COLUMNS, tuple(overview(schema)))
    yield Grid(
        "All levels and bins",
        ("column", "code", "level or bin"),
        tuple((c.name, k, label) for c in schema for k, label in enumerate(c.labels())),
        folded=True,
    )
    if schema.impossible:
        yield Grid(
            "Declared impossible combinations: public facts that never occur in the output",
            ("combination",),
            tuple((sentence,) for sentence in combinations(schema)),
        )
