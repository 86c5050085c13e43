"""Rows of several parts mixed: which rows of a set each part gives, the same for any chunks and threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, words
from gibbous.core.tables import Tables

PATTERN = 1 << 16  # rows after which the order of the parts repeats
_STREAM = 0x70617274  # "part": apart from the streams of the parts' own rows


class Rows(Protocol):
    """The rows of one set, by their numbers."""

    def rows(self, start: int, rows: int, threads: int) -> Codes:
        """Rows start..start + rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """Parts prepared for drawing rows, and the share of the rows that each gives, float64 (parts,)."""

    schema: Schema
    members: tuple[Any, ...]
    shares: np.ndarray


def part_shares(tables: Tables) -> np.ndarray:
    """Share of the rows that each part gives: public shares, or the noisy totals; equal if all are 0."""
    if tables.shares:
        given = np.array(tables.shares, dtype=np.float64)
    else:
        given = np.array([part.noisy_rows() for part in tables.parts], dtype=np.float64)
    if not given.sum() > 0:
        given = np.ones(len(tables.parts))
    return np.asarray(given / given.sum())


def part_seed(seed: int, part: int) -> int:
    """Sampling seed of one part: its streams are apart from those of the others."""
    return stream_key(seed, _STREAM, 1, part)


class PartedRows:
    """The rows of one set, each from one part.

    The order of the parts is a seeded permutation of PATTERN places, of which each part has its share
    to within one place; it repeats. So the rows of a stretch are a stretch of each part's rows.
    """

    def __init__(self, found: Parted, runs: Sequence[Rows], seed: int, set_index: int) -> None:
        self.found, self.runs = found, tuple(runs)
        quotas = places(found.shares)
        mixed = np.argsort(words(stream_key(seed, _STREAM, 0, set_index), 0, PATTERN))
        self.pattern = np.repeat(np.arange(len(quotas)), quotas)[mixed]
        self.quotas = quotas

    def rows(self, start: int, rows: int, threads: int) -> Codes:
        """Rows start..start + rows of the set, mixed."""
        schema = self.found.schema
        chosen = self.pattern[np.arange(start, start + rows) % PATTERN]
        state = np.zeros((len(schema), rows), dtype=schema.code_dtype())
        numbers: dict[int, np.ndarray] = {}
        for part, run in enumerate(self.runs):
            here = np.flatnonzero(chosen == part)
            drawn = run.rows(self._before(part, start), len(here), threads)
            state[:, here] = drawn.by_column
            for column, values in drawn.numbers:
                numbers.setdefault(column, np.zeros(rows))[here] = values
        return Codes(schema, state.T, numbers=tuple(sorted(numbers.items())))

    def _before(self, part: int, row: int) -> int:
        """How many of the rows before one come from a part."""
        whole, rest = divmod(row, PATTERN)
        return whole * int(self.quotas[part]) + int((self.pattern[:rest] == part).sum())


def places(shares: np.ndarray) -> np.ndarray:
    """Places of the pattern for each part: int64 (parts,), sum PATTERN, by largest remainders."""
    wanted = shares * PATTERN
    found: np.ndarray = np.floor(wanted).astype(np.int64)
    order = np.argsort(-(wanted - found), kind="stable")
    found[order[: PATTERN - int(found.sum())]] += 1
    return found
