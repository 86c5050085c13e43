"""Random tables under random schemas, contexts over them, and one digest of all their counts."""

from __future__ import annotations

import datetime
import hashlib

import numpy as np
import polars as pl

from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.protocols import Engine
from gibbous.core.schema import Column, Impossible, Schema, impossible_mask
from gibbous.core.tables import Dense

KEY = bytes(range(32))
ROWS = 700
DENSE = 20_000  # cells up to which a context is asked for whole
KINDS = ("nominal", "ordinal", "binary", "numbers", "flags", "whole", "real", "date")
KEYS: tuple[Key, ...] = (
    Radix(),
    Hashed(1),
    Hashed(64, 3),
    Hashed(1 << 34, 5),
    MinHash(2, 32, 1),
    MinHash(3, 1 << 40, 2),
)


def problem(seed: int, rows: int = ROWS) -> tuple[Schema, pl.DataFrame, list[Context]]:
    """A schema, a table that fits it, and contexts of all keys and supports."""
    rng = np.random.default_rng([7, seed])
    columns = tuple(_column(f"x {i}", rng) for i in range(int(rng.integers(3, 8))))
    schema = Schema(columns, impossible=_rules(columns, rng), null="NA")
    codes = np.stack([rng.integers(0, c.size, 2 * rows) for c in columns], axis=1)
    codes = codes[~impossible_mask(schema, codes)][:rows]
    frame = pl.DataFrame([_values(c, codes[:, i], rng) for i, c in enumerate(columns)])
    return schema, frame, _contexts(schema, rng)


def digest(engine: Engine, contexts: list[Context]) -> str:
    """SHA-256 of the tables of an engine: keys, levels and counts with their types and shapes."""
    out = hashlib.sha256()
    for counts in engine.tally(contexts):
        cells = counts.cells
        parts = [cells.values] if isinstance(cells, Dense) else [cells.keys, cells.levels]
        for array in (*parts, cells.values):
            out.update(f"{array.dtype}{array.shape}".encode())
            out.update(np.ascontiguousarray(array).tobytes())
    return out.hexdigest()


def _column(name: str, rng: np.random.Generator) -> Column:
    kind = KINDS[int(rng.integers(len(KINDS)))]
    missing, size = bool(rng.integers(2)), int(rng.choice([1, 2, 3, 9, 40, 300]))
    if kind in ("nominal", "ordinal"):
        texts = tuple(f"{name}/{i}" for i in range(size))
        other = "the rest" if rng.integers(2) else None
        return (
            Column(name, "nominal", levels=texts, missing=missing, other=other)
            if (kind == "nominal")
            else Column(name, "ordinal", levels=texts, missing=missing)
        )
    if kind == "binary":
        return Column(name, "binary", levels=("no", "yes"), missing=missing)
    if kind == "flags":
        return Column(name, "binary", levels=(False, True), missing=missing)
    if kind == "numbers":
        return Column(name, "nominal", levels=tuple(range(-2, size)), missing=missing)
    if kind == "date":
        edges = tuple(float(730_000 + 7 * i) for i in range(size + 1))
        return Column(name, "date", edges=edges, missing=missing)
    edges = tuple(float(3 * i - 5) for i in range(size + 1))
    return Column(name, "numeric", edges=edges, integer=kind == "whole", missing=missing)


def _rules(columns: tuple[Column, ...], rng: np.random.Generator) -> tuple[Impossible, ...]:
    wide = [c for c in columns if c.size > 2]
    if len(wide) < 2 or rng.integers(2):
        return ()
    where = tuple((c.name, (0, 1)) for c in wide[:2])
    return (Impossible(where),)


def _values(column: Column, codes: np.ndarray, rng: np.random.Generator) -> pl.Series:
    return pl.Series(column.name, [_value(column, int(code), rng) for code in codes])


def _value(column: Column, code: int, rng: np.random.Generator) -> object:
    if code == column.missing_code:
        return None
    if code == column.other_code:
        return f"unheard of {rng.integers(3)}"
    if not column.binned:
        return column.levels[code]
    low, high = column.edges[code], column.edges[code + 1]
    if column.kind == "date":
        return datetime.date.fromordinal(int(rng.integers(int(low), int(high))))
    if column.integer:
        return int(rng.integers(int(low), int(high)))
    return float(low + (high - low) * rng.random())


def _contexts(schema: Schema, rng: np.random.Generator) -> list[Context]:
    out = []
    for key in KEYS:
        for support in ("dense", "seen"):
            order = rng.permutation(len(schema)).tolist()
            cut = int(rng.integers(1, 3))
            targets = tuple(order[:cut])
            parents = tuple(order[cut : int(rng.integers(cut, len(order) + 1))])
            context = _context(schema, targets, parents, key, support)
            whole = support == "dense" and context.cells <= DENSE
            out.append(context if whole else _context(schema, targets, parents, key, "seen"))
    return out


def _context(
    schema: Schema, targets: tuple[int, ...], parents: tuple[int, ...], key: Key, support: str
) -> Context:
    sizes = schema.sizes
    return Context(
        targets,
        parents,
        tuple(sizes[c] for c in targets),
        tuple(sizes[c] for c in parents),
        key,
        "dense" if support == "dense" else "seen",
    )
