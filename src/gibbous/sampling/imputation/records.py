"""Records for a regression: the distinct rows of a joint table with their counts, and one-hot designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gibbous.core.extras import need
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, words
from gibbous.core.tables import Counts
from gibbous.sampling.exact_draws import bounded
from gibbous.sampling.urn_rows import occupied

_STREAM = 0x696D70  # "imp"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """The distinct rows of the confidential table. Secret: cannot be printed or pickled.

    Attributes:
        codes: int32 (columns, distinct).
        counts: int64 (distinct,): records with each; > 0.
    """

    codes: np.ndarray
    counts: np.ndarray
    sizes: tuple[int, ...]

    def __repr__(self) -> str:
        return "<Records, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential records are never pickled")

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def margin(self, column: int) -> np.ndarray:
        """Records at each code of one column, int64 (levels,)."""
        found = np.zeros(self.sizes[column], dtype=np.int64)
        np.add.at(found, self.codes[column], self.counts)
        return found

    def others(self, column: int) -> tuple[int, ...]:
        """Columns that one column is regressed on: all others with more than one level."""
        return tuple(j for j, size in enumerate(self.sizes) if j != column and size > 1)

    def listed(self, most: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Distinct-row numbers with weights that stand for all records: no weight above 1.

        The step of a stochastic solver is set for weights of 1, and a heavier line would make it
        diverge; far lighter lines would slow it down. So a row is listed several times.

        Args:
            most: up to this many records, each has a line of its own.
        Returns:
            int64 (lines,) row numbers, float64 (lines,) weights, and the records of a weight of 1.
        """
        unit = max(1.0, self.total / most)
        copies = np.ceil(self.counts / unit).astype(np.int64)
        lines = np.repeat(np.arange(len(copies)), copies)
        return lines, (self.counts / (copies * unit))[lines], unit

    def resampled(self, words: Words64) -> Records:
        """As many records, drawn from these with replacement: what another sample might have been."""
        total = np.full(self.total, self.total, dtype=np.uint64)
        place = bounded(total, words).astype(np.int64)
        rows = np.searchsorted(np.cumsum(self.counts), place, side="right")
        counts = np.bincount(rows, minlength=len(self.counts))
        kept = counts > 0
        return Records(self.codes[:, kept], counts[kept], self.sizes)

    def sampled(self, most: int, seed: int) -> np.ndarray:
        """Distinct-row numbers of at most `most` records, in random order, int64.

        A record is drawn without replacement; a row that several records hold may come several times.
        """
        order = np.argsort(words(stream_key(seed, _STREAM), 0, self.total), kind="stable")[:most]
        return np.searchsorted(np.cumsum(self.counts), order, side="right")


def records_of(counts: Counts, schema: Schema) -> Records:
    """The rows behind a joint table with exact keys: every combination that occurs, with its count."""
    codes, values = occupied(counts, schema)
    return Records(codes.astype(np.int32), values.astype(np.int64), schema.sizes)


def design(records: Records, columns: tuple[int, ...]) -> Any:
    """One indicator a level of each column: scipy CSR (distinct, levels of all columns together)."""
    sparse = need("scipy.sparse", "evaluate")
    starts = starts_of(records.sizes, columns)
    rows = records.codes.shape[1]
    places = records.codes[list(columns)].T + starts[:-1].astype(np.int32)
    index = np.arange(0, rows * len(columns) + 1, max(len(columns), 1), dtype=np.int32)
    if not columns:
        index = np.zeros(rows + 1, dtype=np.int32)
    ones = np.ones(places.size)
    return sparse.csr_matrix((ones, places.ravel(), index), shape=(rows, int(starts[-1])))


def starts_of(sizes: tuple[int, ...], columns: tuple[int, ...]) -> np.ndarray:
    """First indicator of each column, and their number: int64 (columns + 1,)."""
    widths = [sizes[column] for column in columns]
    return np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int64)
