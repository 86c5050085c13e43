"""The structural zeros that follow from the rules of a schema, for models that can leave them out.

A condition and what follows, an order of two columns and forbidden pairs are left out of models. What ties
two columns to each other (a map, an equality, a short list) is not: a chain that draws one column at a time
could never leave a pair. All rules are kept when rows are decoded, whatever is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gibbous.core.column import Column
from gibbous.core.rule_laws import Law, laws_of
from gibbous.core.rule_tests import Among, Between, Combined, is_whole, level_values
from gibbous.core.schema import Impossible, Schema, impossible_mask
from gibbous.core.stream import stream_key, words_at

_WIDEST = 128  # codes of a column; levels of wider ones may be merged
_MOST = 64  # zeros that one rule may come to
_LEAST = 0.125  # of the domain that they leave
_TRIED = 4096

Place = tuple[int, np.ndarray]
"""A column, and which of its codes take part."""


def with_zeros(schema: Schema) -> Schema:
    """The schema with what its rules make impossible among its structural zeros.

    Rules that come to too many, or leave little of the domain, are left to the decoding of rows. Records
    are never checked against them.
    """
    zeros: list[Impossible] = []
    if schema.rules:
        for law in laws_of(schema.columns, schema.rules).laws:
            mine = [_zero(schema, where) for where in _of_law(schema.columns, law)]
            zeros += [zero for zero in mine if zero] if len(mine) <= _MOST else []
    if not zeros:
        return schema
    ruled = replace(schema, impossible=(*schema.impossible, *zeros))
    return ruled if _possible_share(ruled) >= _LEAST else schema


def _possible_share(schema: Schema) -> float:
    """Share of a few thousand uniform rows that are possible; the same for all who ask."""
    names = np.arange(_TRIED, dtype=np.uint64)
    words = [words_at(stream_key(0, place), names) for place in range(len(schema))]
    codes = [word % np.uint64(size) for word, size in zip(words, schema.sizes, strict=True)]
    return 1.0 - float(impossible_mask(schema, np.stack(codes, axis=1)).mean())


def _zero(schema: Schema, where: Sequence[Place]) -> Impossible | None:
    held: dict[int, np.ndarray] = {}
    for place, codes in where:
        held[place] = held[place] & codes if place in held else codes
    wide = any(len(codes) > _WIDEST for codes in held.values())
    if wide or len(held) < 2 or not all(codes.any() for codes in held.values()):
        return None
    return Impossible(
        tuple(
            (schema.names[p], tuple(int(c) for c in np.flatnonzero(codes)))
            for p, codes in sorted(held.items())
        )
    )


def _of_law(columns: Sequence[Column], law: Law) -> Iterator[list[Place]]:
    """Combinations of codes all of whose rows meet the condition and break what follows from it."""
    when: list[Place] = []
    for test in law.when:
        if isinstance(test, Between) and len(test.terms) > 1:
            return
        when += _meeting(columns, test)
    for broken in _breaking(columns, law):
        yield [*when, *broken]


def _meeting(columns: Sequence[Column], test: Among | Between) -> list[Place]:
    if isinstance(test, Among):
        return [(test.place, test.codes)]
    low, high = _spans(columns, test)[0]
    return [(test.terms[0][0], (low >= test.low) & (high <= test.high))]


def _breaking(columns: Sequence[Column], law: Law) -> Iterator[list[Place]]:
    test = law.then
    if isinstance(test, Among):
        yield [(test.place, ~test.codes)]
    elif isinstance(test, Combined) and len(test.places) == 2:
        if 2 * test.possible.sum() > test.possible.size:
            yield from _pairs(test.places, ~test.possible)
    elif not isinstance(test, Between) or test.low == test.high:
        return
    elif len(test.terms) == 1:
        low, high = _spans(columns, test)[0]
        yield [(test.terms[0][0], (low > test.high) | (high < test.low))]
    elif len(test.terms) == 2:
        (low, high), (low2, high2) = _spans(columns, test)
        least, most = low[:, None] + low2[None, :], high[:, None] + high2[None, :]
        apart = (least > test.high) | (most < test.low)
        yield from _pairs((test.terms[0][0], test.terms[1][0]), apart)


def _pairs(places: tuple[int, ...], bad: np.ndarray) -> Iterator[list[Place]]:
    """Impossible pairs, the codes of the first column with the same partners together."""
    rows, which = np.unique(bad, axis=0, return_inverse=True)
    for number, row in enumerate(rows):
        if row.any():
            yield [(places[0], which.reshape(-1) == number), (places[1], row)]


def _spans(columns: Sequence[Column], test: Between) -> list[tuple[np.ndarray, np.ndarray]]:
    """Least and most that each code of each term adds; nan of codes without a value."""
    spans = []
    for place, times in test.terms:
        column = columns[place]
        low = high = level_values(column) if not column.binned else np.full(column.size, np.nan)
        if column.binned:
            edges = np.array([float(edge) for edge in column.edges])
            high = low.copy()
            low[: column.bins], high[: column.bins] = edges[:-1], edges[1:]
            if is_whole(column):
                high[: column.bins - 1] -= 1
        low, high = sorted((times * low, times * high), key=np.nansum)
        spans.append((low, high))
    return spans
