"""Small public schemas and constructed tables that every check runs on; nothing here is real data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.stream import stream_key, words


@dataclass(frozen=True, slots=True)
class Case:
    """A named table: schema and codes (rows, columns)."""

    name: str
    schema: Schema
    values: np.ndarray

    def codes(self) -> Codes:
        """As the secret codes that an engine would hold."""
        return secret(self.schema, self.values)


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Two tables that differ by one record under `relation`."""

    name: str
    schema: Schema
    relation: Relation
    one: np.ndarray
    two: np.ndarray


def secret(schema: Schema, values: np.ndarray) -> Codes:
    """Codes marked secret, in the layout that engines use."""
    by_column = np.ascontiguousarray(np.asarray(values, dtype=schema.code_dtype()).T)
    numbers = tuple(
        (place, _numbers(column, by_column[place]))
        for place, column in enumerate(schema)
        if column.binned
    )
    return Codes(schema, by_column.T, secret=True, numbers=numbers)


def _numbers(column: Column, codes: np.ndarray) -> np.ndarray:
    """A number for each code of a numeric column: the middle of its bin, or the lower bound if missing."""
    edges = np.array([float(edge) for edge in column.edges])
    middle = (
        np.floor((edges[:-1] + edges[1:]) / 2) if column.integer else (edges[:-1] + edges[1:]) / 2
    )
    return np.asarray(np.append(middle, [edges[0]] * (column.size - column.bins))[codes])


def binary_schema(columns: int = 3) -> Schema:
    return Schema(tuple(Column(f"x{j}", "binary", levels=("no", "yes")) for j in range(columns)))


def mixed_schema() -> Schema:
    """One column of each kind, with missing and a catch-all level."""
    return Schema(
        (
            Column("region", "nominal", levels=("01", "02", "NA"), other="elsewhere"),
            Column("grade", "ordinal", levels=(1, 2, 3, 4)),
            Column("member", "binary", levels=(False, True), missing=True),
            Column("age", "numeric", edges=(0.0, 18.0, 40.0, 65.0, 99.0), integer=True),
            Column("seen", "date", edges=(737060.0, 737425.0, 737790.0)),
        )
    )


def cases() -> tuple[Case, ...]:
    """Ordinary and degenerate tables: typical, one row, one column, one level, empty, all equal."""
    mixed = mixed_schema()
    base = _digits(0, 400, 4)
    rows = np.stack(
        [(base + _digits(j + 1, 400, 2)) % s for j, s in enumerate(mixed.sizes)], axis=1
    )
    single = Schema((Column("only", "nominal", levels=("a", "b", "c")),))
    constant = Schema(
        (Column("flat", "nominal", levels=("same",)), Column("x", "binary", levels=(0, 1)))
    )
    return (
        Case("typical", mixed, rows),
        Case("one row", mixed, rows[:1]),
        Case("no rows", mixed, rows[:0]),
        Case("all rows equal", mixed, np.repeat(rows[:1], 50, axis=0)),
        Case("one column", single, _digits(7, 60, 3)[:, None]),
        Case("a column with one level", constant, np.stack([np.zeros(40), _digits(8, 40, 2)], 1)),
    )


def typical() -> Case:
    return next(case for case in cases() if case.name == "typical")


def _digits(stream: int, count: int, below: int) -> np.ndarray:
    return (words(stream_key(20260101, stream), 0, count) % np.uint64(below)).astype(np.int64)


def neighbors(relation: Relation, crowd_size: int = 4) -> tuple[Neighbors, ...]:
    """Pairs that differ by one record: alone in every cell, and in a crowd.

    Args:
        relation: add or remove one, or replace one.
        crowd_size: equal records beside it; above the threshold of a thresholded mechanism, so that
            its noise is seen.
    """
    schema = binary_schema(3)
    crowd = np.zeros((crowd_size, 3), dtype=np.int64)
    common, unique, other = (
        np.vstack([crowd, row]) for row in (crowd[:1], [[1, 1, 1]], [[0, 1, 1]])
    )
    if relation == "add_remove":
        return (
            Neighbors("a unique record is added", schema, relation, crowd, unique),
            Neighbors("a common record is added", schema, relation, crowd, common),
        )
    return (
        Neighbors("a common record becomes unique", schema, relation, common, unique),
        Neighbors("a unique record becomes another", schema, relation, unique, other),
    )


def uneven(relation: Relation) -> Neighbors:
    """A pair in which neither columns nor records are alike: what hangs on their order shows."""
    schema = binary_schema(3)
    rows = np.array([[0, 0, 0]] * 4 + [[0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=np.int64)
    last = np.array([[1, 0, 0]], dtype=np.int64)
    two = np.vstack([rows, last])
    if relation == "add_remove":
        return Neighbors("a record unlike the others is added", schema, relation, rows, two)
    one = np.vstack([rows, np.array([[0, 1, 1]], dtype=np.int64)])
    return Neighbors("a record becomes one unlike the others", schema, relation, one, two)


def priced_pairs(relation: Relation, person_rows: int = 3) -> Iterator[Neighbors]:
    """Pairs of rows and of persons at which prices are attained: alone, in crowds, and where nobody is."""
    yield from neighbors(relation, 60)
    plain = binary_schema(3)
    schema = replace(plain, unit=Unit("person", "who", person_rows))
    crowd = np.zeros((60, 3), dtype=np.int64)
    mine, other = (np.repeat([row], person_rows, axis=0) for row in ([1, 1, 1], [0, 1, 0]))
    lone = "a person whose rows are all alike"
    if relation == "add_remove":
        yield Neighbors(f"{lone}, added", schema, relation, crowd, np.vstack([crowd, mine]))
        return
    both = np.vstack([crowd, 1 - crowd])
    for name, place in (("another crowd", [1, 1, 1]), ("where nobody is", [0, 1, 0])):
        one, two = np.vstack([both[1:], both[:1]]), np.vstack([both[1:], [place]])
        yield Neighbors(f"a record moves to {name}", plain, relation, one, two)
    one, two = np.vstack([crowd, mine]), np.vstack([crowd, other])
    yield Neighbors(f"{lone}, replaced", schema, relation, one, two)
