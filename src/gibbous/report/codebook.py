"""The codebook: every column with its kind, levels or bins, bounds, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.schema import Column, Schema
from gibbous.report.blocks import Block, Grid, Text

FIRST = 6  # levels in the overview


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
    yield Grid(
        "Columns",
        ("column", "kind", "levels", "first levels or bounds", "missing", "facts read off the data"),
        tuple(
            (c.name, c.kind, c.size, _first(c), "a level of its own" if c.missing else "refused",
             _inferred(c.name, inferred))
            for c in schema
        ),
    )  # fmt: skip
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
            tuple(
                (" and ".join(_these(schema, name, codes) for name, codes in rule.where),)
                for rule in schema.impossible
            ),
        )


def _first(column: Column) -> str:
    labels = column.labels()
    if column.binned:
        bins = labels[: column.bins]
        whole = f"{bins[0].split(',')[0]},{bins[-1].rsplit(',', 1)[-1]}"
        clamp = "; values outside are moved to the bound" if column.clamp else ""
        return f"{whole} in {len(bins)} bins{clamp}"
    shown = ", ".join(labels[:FIRST])
    return shown + (f", and {len(labels) - FIRST} more" if len(labels) > FIRST else "")


def _inferred(name: str, facts: tuple[str, ...]) -> str:
    found = [fact.removeprefix(f"{name}: ") for fact in facts if fact.startswith(f"{name}: ")]
    return ", ".join(found) or "none"


def _these(schema: Schema, name: str, codes: tuple[int, ...]) -> str:
    labels = schema[name].labels()
    shown = [labels[code] for code in codes[:FIRST]]
    more = f" or {len(codes) - FIRST} more" if len(codes) > FIRST else ""
    return f"{name} is {' or '.join(shown)}{more}"
