"""Rows drawn from an urn of records and virtual records: each number is whole, each draw is exact.

Three laws over the cells of one cross table: Polya's urn (draws from Dirichlet probabilities), the
posterior mean, and a mixture with the uniform law. No probability is ever computed in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context, radix_digits
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema, impossible_mask
from gibbous.core.tables import Counts
from gibbous.privacy.calibrate.dirichlet import MOST_RECORDS, WHOLE
from gibbous.sampling.exact_draws import bounded
from gibbous.sampling.structural_zeros import uniform_rows

UNIFORM, RECORD, EARLIER = 0, 1, 2  # where a value comes from


class Posterior(Protocol):
    """Virtual records beside those of a table: `perturb.posterior.Posterior`."""

    @property
    def cells(self) -> int:
        """Cells of the public cross table."""
        ...

    @property
    def balls(self) -> tuple[int, int]:
        """Whole weights: (prior of one cell, one record); a record of 0 is never drawn."""
        ...

    def urn_loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values of one urn."""
        ...

    def fixed_loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values that are not put back."""
        ...


class Mixture(Protocol):
    """A histogram mixed with the uniform law: `perturb.smoothed.Smoothed`."""

    @property
    def parts(self) -> int:
        """Share of the uniform law, in units of 1 / dips.WHOLE."""
        ...

    @property
    def bins(self) -> int:
        """Cells that share the uniform part."""
        ...

    @property
    def records(self) -> int:
        """Public number of records to which a smaller table is filled up."""
        ...

    def loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values."""
        ...


@dataclass(frozen=True, slots=True)
class UrnRows:
    """Sets of rows, each from an urn of its own: Dirichlet probabilities, drawn anew for each set.

    Guarantee:
        Pure epsilon-DP, the sum over sets of the loss of one urn; both relations.
        Proven: docs/proofs/dirichlet.md.
    Source:
        [bowen2016, s3.1.2], [onthemap, thm. 4.1].

    Attributes:
        sets: the rows are this many sets of equal size.
    """

    posterior: Posterior
    sets: int = 1

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows of all sets together, from public facts alone."""
        _covers(self.posterior.cells, contexts)
        loss = self.sets * self.posterior.urn_loss(-(-rows // self.sets), max_rows)
        return pure(loss, unit="dataset", relation=relation, source="docs/proofs/dirichlet.md")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows of all sets, public codes (rows, columns), from one context over all columns."""
        records = Records(counts, schema)
        length = -(-rows // self.sets)
        kind, number = origins(self.posterior, records.total, rows, words, length=length)
        return _codes(records, schema, kind, number, words)


@dataclass(frozen=True, slots=True)
class PriorRows:
    """Rows with P = (n + alpha) / (N + C alpha) each, apart from one another.

    Guarantee:
        Pure epsilon-DP, rows times the loss of one; both relations. Proven: docs/proofs/dp_prior.md.
    Source:
        [bowen2016, s3.1.2] (DP-prior), after McClure and Reiter (2012).
    """

    posterior: Posterior

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows of all sets together, from public facts alone."""
        _covers(self.posterior.cells, contexts)
        loss = self.posterior.fixed_loss(rows, max_rows)
        return pure(loss, unit="dataset", relation=relation, source="docs/proofs/dp_prior.md")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows."""
        records = Records(counts, schema)
        kind, number = origins(self.posterior, records.total, rows, words, length=1)
        return _codes(records, schema, kind, number, words)


@dataclass(frozen=True, slots=True)
class SmoothedRows:
    """Rows from a histogram mixed with the uniform law, apart from one another.

    Guarantee:
        Pure epsilon-DP; both relations. Proven: docs/proofs/smoothed_histogram.md.
    Source:
        [bowen2016, eq. 5 and 6].
    """

    smoothed: Mixture

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows of all sets together, from public facts alone."""
        _covers(self.smoothed.bins, contexts)
        loss = self.smoothed.loss(rows, max_rows)
        source = "docs/proofs/smoothed_histogram.md"
        return pure(loss, unit="dataset", relation=relation, source=source)

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows."""
        records = Records(counts, schema)
        places = max(records.total, self.smoothed.records)
        place = bounded(np.full(rows, places, dtype=np.uint64), words)
        own = ~uniform_share(self.smoothed, rows, words) & (place < np.uint64(records.total))
        state = uniform_rows(schema, rows, words)
        state[:, own] = records.rows(place[own])
        return Codes(schema, state.T)


class Records:
    """The records of one cross table, numbered cell after cell. Secret."""

    __slots__ = ("_codes", "_sums", "total")

    def __init__(self, counts: Sequence[Counts], schema: Schema) -> None:
        if len(counts) != 1 or sorted(counts[0].context.columns) != list(range(len(schema))):
            raise ValueError("one context over all columns")
        codes, values = occupied(counts[0], schema)
        if schema.impossible:  # such records are no part of the public domain
            kept = ~impossible_mask(schema, codes.T)
            codes, values = codes[:, kept], values[kept]
        # Of more than 2**32 records the first in cell order: a record that comes or goes then
        # replaces another at most, which the price covers.
        held = np.minimum(np.cumsum(np.minimum(values, MOST_RECORDS)), MOST_RECORDS)
        self._codes, self._sums = codes, held
        self.total = int(held[-1]) if len(held) else 0

    def __repr__(self) -> str:
        return "<Records, secret>"

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Codes (columns, draws) of records by number."""
        cell = np.searchsorted(self._sums, numbers.astype(np.int64), side="right")
        found: np.ndarray = self._codes[:, cell]
        return found


def origins(
    posterior: Posterior, records: int, draws: int, words: Words64, *, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where each value of some urns comes from.

    Args:
        records: N, in every urn at its start; secret.
        length: values of one urn; each adds a record of its own for those after it.
    Returns:
        UNIFORM, RECORD or EARLIER for each value, int8 (draws,), and the number of the record or of
        the earlier value, int64 (draws,).
    """
    ones, unit = posterior.balls
    prior = ones * posterior.cells
    if unit == 0:  # the prior drowns every record: uniform, whatever the number of cells
        return np.zeros(draws, dtype=np.int8), np.zeros(draws, dtype=np.int64)
    place = np.arange(draws)
    before = place % max(length, 1)
    totals = np.uint64(prior) + np.uint64(unit) * (np.uint64(records) + before.astype(np.uint64))
    points = bounded(totals, words)
    ball = (points - np.minimum(points, np.uint64(prior))) // np.uint64(unit)
    number = ball.astype(np.int64)
    kind = np.where(number < records, RECORD, EARLIER).astype(np.int8)
    kind[points < np.uint64(prior)] = UNIFORM
    return kind, np.where(kind == EARLIER, number - records + place - before, number)


def uniform_share(smoothed: Mixture, draws: int, words: Words64) -> np.ndarray:
    """Which values come from the uniform law: each with probability lambda, exactly; bool (draws,)."""
    mixed = bounded(np.full(draws, WHOLE, dtype=np.uint64), words)
    found: np.ndarray = mixed < np.uint64(smoothed.parts)
    return found


def _codes(
    records: Records, schema: Schema, kind: np.ndarray, number: np.ndarray, words: Words64
) -> Codes:
    state = uniform_rows(schema, len(kind), words)
    own = kind == RECORD
    state[:, own] = records.rows(number[own])
    # A value that repeats an earlier one points at it; following the pointers ends at a first one.
    source = np.where(kind == EARLIER, number, np.arange(len(kind)))
    while True:
        further = source[source]
        if np.array_equal(further, source):
            return Codes(schema, np.ascontiguousarray(state[:, source]).T)
        source = further


def _covers(cells: int, contexts: Sequence[Context]) -> None:
    """Refuse a prior that is spread over more cells than it was priced for: each would get less."""
    if any(context.cells > cells for context in contexts):
        raise ValueError("the prior is priced for fewer cells than the table has")


def occupied(one: Counts, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Codes (columns, cells) and counts of the cells with records."""
    context, cells = one.context, one.occupied()
    codes = np.zeros((len(schema), len(cells.values)), dtype=schema.code_dtype())
    for places, columns, sizes in (
        (cells.keys, context.parents, context.parent_sizes),
        (cells.levels, context.targets, context.target_sizes),
    ):
        digits = radix_digits(places.astype(np.uint64), sizes)
        for column, own in zip(columns, digits, strict=True):
            codes[column] = own
    return codes, cells.values
