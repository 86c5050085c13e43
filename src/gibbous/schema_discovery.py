"""Paid facts alone: a table without a schema in, a schema that was bought out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.boundary import guarded
from gibbous.core.claim import Relation
from gibbous.core.column import Column, edge_text
from gibbous.core.discovery import Discovery
from gibbous.core.exact import Number, exact
from gibbous.core.keywords import answering
from gibbous.core.plan import Plan
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.request import Output, Privacy, Request
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.engines import records_in, text_engine
from gibbous.mechanisms._discovery import SchemaAlone
from gibbous.pipeline import IN_THIS_PROCESS
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.files import make_private_folder
from gibbous.privacy.spend import Charge, curator_of
from gibbous.promise import ledger_of, planned
from gibbous.read.schema_write import schema_toml
from gibbous.structure.fine_bins import VALUES, just_above, unit_of
from gibbous.structure.grid_ends import YEARS
from gibbous.structure.narrow_bins import narrow_edges
from gibbous.write.durable_files import replace_file, sha256_of
from gibbous.write.in_memory import InMemory
from gibbous.write.purchases import SHORT, folder_beside

MOST = 0.5  # share of rows in 'other' from which on a column may rather be one of numbers
NUMBERS = "If they are numbers, say so (--numeric); if their levels are public, too (--levels)."
SEEN = 0.005  # share of rows from which on it is said where they went
FEW, SKEWED = 0.01, 0.25  # of the rows, and the share of a sum from which on they are named
NEAR = 1e-4  # 0, as cut points go: ten times the last power of the grid of bounds
NARROW = 256  # bins of a column, as paid_bins counts them
CLOSE = 4  # narrow bins, of which the parts are too many to show how numbers lie within them
PILED = 2  # times as many rows as its neighbor: an end of whole numbers that others may have been moved to


def plan_discovery(
    known: Discovery, *, epsilon: Number, delta: Number, relation: Relation = "add_remove"
) -> Plan:
    """What `discover_schema` would cost and miss: from names alone, without data, spending nothing.

    Its spends are what is paid for; its errors say how many rows a level needs to be found.
    """
    return planned(_promise(known, epsilon, delta, relation)[1], Output())


def _promise(
    known: Discovery,
    epsilon: Number,
    delta: Number,
    relation: Relation,
    ledger: Ledger | str | Path | None = None,
) -> tuple[SchemaAlone, Privacy]:
    paid = SchemaAlone(known, exact(epsilon), exact(delta), relation)
    return paid, Privacy(known.schema(), paid, ledger=ledger)


@guarded
@answering
def discover_schema(
    source: Any,
    known: Discovery,
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation = "add_remove",
    ledger: Ledger | str | Path | None = None,
    options: Any = None,
    fresh: bool = False,
    progress: Progress = silent,
) -> Schema:
    """Spend a claim on the schema of a table alone: kinds, levels, bounds and cut points.

    Args:
        source, ledger, options, progress: as for `synthesize`.
        known: what is public; its share is not used.
        epsilon, delta, relation: of everything that is bought.
        fresh: charge again, for new noise, where the same was bought of the same records before: what
            was bought is kept beside the ledger and returned at no cost otherwise.
    Guarantee:
        (epsilon, delta)-DP, charged to the ledger before counting. Proven: docs/proofs/discovery.md.
    Raises:
        GibbousError: one class an exit code; see gibbous.core.errors.
    """
    paid, privacy = _promise(known, epsilon, delta, relation, ledger)
    costs, charged = planned(privacy, Output()), ledger_of(privacy)
    engine = text_engine(IN_THIS_PROCESS, source, options)
    draft, request = InMemory(Output()), Request(source, privacy, options=options)
    draft.label = "schema"
    public = known.to_json() | {"names": known.names, "protects": privacy.protects}
    asked = {"known": public, "epsilon": str(paid.epsilon), "delta": str(paid.delta)}

    def place(dataset: bytes) -> Path | None:
        if charged.path is None:
            return None
        facts = json.dumps(asked | {"relation": relation, "dataset": dataset.hex()}, sort_keys=True)
        digest = hashlib.sha256(facts.encode()).hexdigest()
        return folder_beside(charged.path) / f"schema-{digest[:SHORT]}.toml"

    def bought_before(dataset: bytes) -> bool:
        kept = None if fresh else place(dataset)
        return kept is not None and kept.is_file() and _paid_for(charged, dataset, kept)

    with records_in(request, costs, charged, engine, progress, bought_before) as dataset:
        kept = place(dataset)
        if kept is not None and bought_before(dataset):
            progress("bought", 1, 1)
            return Schema.load(kept)
        charge = Charge(charged, dataset, draft)
        hold = draft.hold(charged, lambda: charge.reserve(privacy, costs, engine))
        with curator_of(privacy, costs, engine, progress=progress) as curator:
            schema = paid.bought(curator)
        text = schema_toml(schema).encode()
        if kept is not None:
            make_private_folder(kept.parent)
            replace_file(kept, text)
        hold.commit(hashlib.sha256(text).hexdigest())
    return schema


def _paid_for(ledger: Ledger, dataset: bytes, kept: Path) -> bool:
    """Whether the ledger holds the digest of a file: whoever may write the file may not write the ledger."""
    digest = sha256_of(kept)
    return any(entry.sha256 == digest for entry in ledger.entries(dataset))


def missed(release: Release) -> Iterator[str]:
    """What noise hides of a bought schema, and of numbers: from noisy tables and the schema alone."""
    schema = release.schema
    if any(c.source("kind") == "discovered" for c in schema):
        yield from left_out(schema, release.plan.params.get("discovery"))
        yield from _lacks(schema, release.tables)
    for column in schema:
        if (most := _sum_of_few(column)) >= SKEWED:
            found = column.source("bounds") == "discovered"
            yield f"{column.name}: a hundredth of the rows hold {most:.0%} of its sum. " + (
                f"Those beyond {edge_text(column, column.edges[-1])}, the bound that was found, became it. "
                "Its mean may be far too small: state wider bounds (--bounds)."
                if found
                else "Noise hides single ones of them, and its mean may be far off: where bounds are wider "
                "than they need be, declare narrower ones."
            )


def _lacks(schema: Schema, tables: Tables | None) -> Iterator[str]:
    """What a schema that was bought lacks, column by column."""
    for j, column in enumerate(schema):
        share = 0.0 if tables is None else _share(tables, j, column.other_code)
        if share >= SEEN:
            more = f" {NUMBERS}" if share >= MOST else ""
            yield f"{column.name}: about {share:.1%} of rows are in {column.other!r} (rare levels).{more}"
        if column.source("levels") == "discovered" and column.size == 1:
            yield (
                f"{column.name}: every row has {column.levels[0]}. Other values are too few to be found, or "
                "there are none: state what is known (--bounds, --levels)."
            )
        numbers = column.binned or column.source("levels") == "discovered"  # or days
        bought = column.source("missing") == "discovered"
        stated = numbers and bought and column.source("kind") == "declared"
        absent = 0.0 if tables is None else _share(tables, j, column.missing_code)
        if bought and column.note and absent >= SEEN:
            codes = (
                ""
                if column.kind == "date"
                else " If these are codes, state their levels (--levels)."
            )
            yield f"{column.name}: about {absent:.1%} of rows are missing. {column.note}{codes}"
        elif stated and absent >= SEEN:
            yield (
                f"{column.name}: about {absent:.1%} of rows are missing; cells that do not read as "
                f"{'days' if column.kind == 'date' else 'numbers'} count among them."
            )
        found = column.kind == "numeric" and column.source("bounds") == "discovered"
        if found and max(map(abs, column.edges[1:-1]), default=1) < NEAR:
            yield f"{column.name}: numbers are too close to 0 for bounds that are bought: state --bounds."
        if ends := _close_together(column):
            yield (
                f"{column.name}: nearly all numbers lie between {edge_text(column, ends[0])} and "
                f"{edge_text(column, ends[1])}, a small part of the bounds that were found. They may be "
                "spread too evenly there, and a few lie far off: state narrower bounds (--bounds)."
            )
        for bound, share in (*_at_bounds(column), *_at_ends(column, tables, j)):
            yield (
                f"{column.name}: about {share:.1%} of rows have {edge_text(column, bound)}, which is a bound "
                f"that was found. What lies beyond became it: unless many have it, {_wider(column)}."
            )


def left_out(schema: Schema, known: object) -> Iterator[str]:
    """The columns that paid discovery found too little about, and what to do; `known` as in a plan."""
    facts, rest = known if isinstance(known, dict) else {}, schema.ignore
    first, last = YEARS[0], YEARS[-1] - 1
    for kind, cells, form in (
        ("numeric", "numbers below 1e15", "12.50 or $1,234.50 (3,5 with --decimal ',')"),
        ("date", f"days from {first} to {last}", "2024-01-31, or in another form that is read"),
    ):
        named = [name for name in rest if name in facts.get(kind, ())]
        rest = tuple(name for name in rest if name not in named)
        if named:
            yield (
                f"left out, since too few of their cells read as {cells}, as was stated: "
                f"{', '.join(named)}. Write them as {form}; or declare a schema."
            )
    if rest:
        yield (
            f"left out, since no levels or bounds that enough rows share were found: {', '.join(rest)}. "
            "State what is known (--numeric, --days, --levels), or declare a schema, as for days before "
            f"{first} or after {last}."
        )


def _wider(column: Column) -> str:
    """What to do where a bound that was found is too narrow."""
    if column.kind != "date":
        return "state wider bounds (--bounds)"
    return (
        "declare wider bounds in a schema, or recode such days (those before "
        f"{YEARS[0]} or after {YEARS[-1] - 1} are never found)"
    )


def _sum_of_few(column: Column) -> float:
    """Share of the sum of bought numbers, by the paid law, that FEW of the rows hold: the largest ones."""
    law = column.within
    near = max(map(abs, column.edges[1:-1]), default=1.0) < NEAR
    if law is None or column.kind != "numeric" or near or column.source("bins") != "discovered":
        return 0.0
    edges, weights = (np.array(one, dtype=np.float64) for one in (law.edges, law.weights))
    sizes = np.abs(edges[1:] + edges[:-1]) / 2
    order = np.argsort(-sizes)
    shares, sizes = weights[order] / weights.sum(), sizes[order]
    few = np.diff(np.minimum(np.cumsum(shares), FEW), prepend=0.0)
    return float(few @ sizes) / max(float(shares @ sizes), 1e-300)


def _close_together(column: Column) -> tuple[float, float] | None:
    """Between which numbers nearly all lie, by the paid law, where few bins of many values hold them."""
    law = column.within
    if law is None or column.kind != "numeric" or column.source("bounds") != "discovered":
        return None
    below = np.cumsum(law.weights) / sum(law.weights)
    first, last = (int(np.searchsorted(below, share)) for share in (FEW / 2, 1 - FEW / 2))
    low, high = float(law.edges[first]), float(law.edges[last + 1])
    bounds = replace(column, edges=(column.edges[0], column.edges[-1]), within=None)
    narrow = np.array(narrow_edges(bounds, "auto", NARROW))
    start, end = np.searchsorted(narrow, low, "right") - 1, np.searchsorted(narrow, high)
    held = narrow[start : end + 1]
    many = (held[-1] - held[0]) / (len(held) - 1) > VALUES * float(unit_of(column))
    odd = high <= just_above(column, low) or max(abs(low), abs(high)) < NEAR
    return (low, high) if len(held) - 1 <= CLOSE and many and not odd else None


def _at_bounds(column: Column) -> Iterator[tuple[float, float]]:
    """The outer bounds that were bought and hold far more rows than is beside them, by the paid law."""
    law = column.within
    if law is None or len(law.weights) < 2 or column.source("bounds") != "discovered":
        return
    low, high = law.edges[0], law.edges[-1]
    step, whole = just_above(column, low) - low, sum(law.weights)
    # Counts begin at 0 or 1.
    single = {0: low not in (0, 1) and law.edges[1] == low + step, -1: law.edges[-2] == high}
    for place, beside in ((0, 1), (-1, -2)):
        share = law.weights[place] / whole
        width = abs(law.edges[2 * beside - place] - law.edges[beside]) / step
        near = law.weights[beside] / whole / max(1.0, width)
        if single[place] and share >= max(SEEN, PILED * near):
            yield float(law.edges[place]), share


def _at_ends(column: Column, tables: Tables | None, place: int) -> Iterator[tuple[float, float]]:
    """The first and the last of bought whole numbers, where far more rows have it than its neighbor."""
    numbers = column.kind == "ordinal" and all(type(level) is int for level in column.levels)
    if tables is None or not numbers or column.source("levels") != "discovered":
        return
    for end, beside in ((0, 1), (column.bins - 1, column.bins - 2)):
        share = _share(tables, place, end)
        natural = end == 0 and column.levels[0] in (0, 1)  # where codes and counts begin
        if not natural and share >= max(SEEN, PILED * _share(tables, place, beside)):
            yield float(str(column.levels[end])), share


def _share(tables: Tables, place: int, code: int | None) -> float:
    """Noisy share of a code in its column; 0 where no table says."""
    held = [one for one in tables.published() if place in one.context.columns]
    if code is None or not held:
        return 0.0
    table = min(held, key=lambda one: one.context.cells)
    context, cells = table.context, table.cells.values
    shape, axis = context.parent_sizes + context.target_sizes, context.columns.index(place)
    if context.cells != cells.size or code >= shape[axis]:
        return 0.0
    values = np.moveaxis(cells.reshape(shape), axis, 0).reshape(shape[axis], -1).sum(axis=1)
    return min(1.0, float(values[code] / max(1, values.sum())))
