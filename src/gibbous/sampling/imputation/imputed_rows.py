"""Rows drawn from full conditionals by cryptographic words: as they are, or with a floor under each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from gibbous.core.claim import Claim, Relation, no_claim, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.kernel import kernel
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.sampling.exact_draws import draw_levels
from gibbous.sampling.imputation.records import records_of
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals
from gibbous.sampling.structural_zeros import Rule, allowed_levels, rules_of, uniform_rows

PARTS = 1 << 20
"""Parts that a fitted probability is counted in: each law is whole numbers that sum to it."""

WIDEST = 1 << 11
"""Levels of a column up to which weights of PARTS parts and their virtual records fit 62 bits."""

_CHUNK = 1 << 21  # weights of one batch
USUAL = Fit()


class Floor(Protocol):
    """Virtual records a level, as `perturb.Add` has them; the PARTS of a law are its records."""

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Exact integer weights of each level of each law."""
        ...

    def loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of one draw, if max_rows records differ."""
        ...


@dataclass(frozen=True, slots=True)
class ImputedRows:
    """Each row: a fresh public uniform seed row, then `sweeps` passes; each visit draws a column.

    A visited column is drawn from its regression on the rest of the row, fitted to the records:
    Q(v) = (p(v) + alpha) / (1 + C alpha), or p itself without a floor.

    Guarantee:
        With a floor of alpha * PARTS virtual records among PARTS: pure epsilon-DP, ln(1 + 1/alpha)
        a draw between any two tables, so under both relations and for units of any size; rows x
        sweeps x columns of them. Without one: none. Proven: docs/proofs/perturbed_imputation.md.
    Source:
        [park2014, s3.5].

    Attributes:
        floor: virtual records, or None.
        posterior: sets that each have regressions of their own, fitted to records drawn anew with
            replacement; 0 for one fit that serves all rows.
    """

    floor: Floor | None
    sweeps: int = 1
    fit: Fit = USUAL
    posterior: int = 0

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows together, from public facts alone."""
        if self.floor is None:
            return no_claim(unit="dataset", relation=relation, source="park2014, s3.5")
        sizes = [size for c in contexts for size in c.parent_sizes + c.target_sizes]
        # Two laws differ in at most all their parts, however many records differ.
        each = sum((self.floor.loss(size, relation, PARTS) for size in sizes), Fraction(0))
        return pure(
            each * rows * self.sweeps,
            unit="dataset",
            relation=relation,
            source="docs/proofs/perturbed_imputation.md",
        )

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Fit to the joint table of all columns, then draw the rows of all sets, each as many."""
        records, rules, states = records_of(counts[0], schema), rules_of(schema), []
        for _ in range(self.posterior or 1):
            seen = records.resampled(words) if self.posterior else records
            models = conditionals(seen, self.fit) if rows else ()
            state = uniform_rows(schema, rows // (self.posterior or 1), words)
            for _ in range(self.sweeps):
                for model in models:
                    redraw(model, state, rules, words, self.floor)
            states.append(state)
        return Codes(schema, np.concatenate(states, axis=1).T)


def redraw(
    model: Conditional,
    state: np.ndarray,
    rules: tuple[Rule, ...],
    words: Words64,
    floor: Floor | None,
) -> None:
    """Draw the model's column of all rows anew, in place; state (columns, rows)."""
    allowed = allowed_levels(rules, state, model.target, model.levels)
    step, table = max(1, _CHUNK // model.levels), np.ascontiguousarray(model.table)
    for low in range(0, state.shape[1], step):
        high = min(low + step, state.shape[1])
        logs = np.tile(model.base, (high - low, 1))
        add_scores(state, low, model.others, model.starts, table, logs)
        possible = None if allowed is None else allowed[low:high]
        weights = parts(logs, possible).astype(np.int64)
        whole = weights.astype(np.uint64) if floor is None else floor.weights(weights)
        if possible is not None:
            whole = whole * possible.astype(np.uint64)
        sums = np.cumsum(whole, axis=1, dtype=np.uint64)
        state[model.target, low:high] = draw_levels(sums, np.arange(high - low), words)


@kernel()
def add_scores(
    state: np.ndarray,
    low: int,
    others: np.ndarray,
    starts: np.ndarray,
    table: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Add the scores of rows low..low+len(logs) of state (columns, rows) to their log weights."""
    for i in range(len(logs)):
        for k in range(len(others)):
            at = starts[k] + np.int64(state[others[k], low + i])
            for v in range(logs.shape[1]):
                logs[i, v] += table[at, v]


def scores(model: Conditional, state: np.ndarray) -> np.ndarray:
    """Log weights float64 (rows, levels) of all rows: the definition that `add_scores` equals."""
    found: np.ndarray = np.tile(model.base, (state.shape[1], 1))
    for column, start in zip(model.others, model.starts, strict=True):
        found += model.table[start + state[column].astype(np.int64)]
    return found


def parts(logs: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """Laws in whole parts.

    Args:
        logs: log weights float64 (rows, levels); any number, -inf and nan included.
        allowed: bool (rows, levels): possible levels, at least one a row; None for all.
    Returns:
        uint64 (rows, levels): >= 0, 0 where not allowed, and each row sums to PARTS exactly. Parts are
        rounded down and what is missing goes to the likeliest level; a row that is not a law (all -inf,
        or not a number) is uniform.
    """
    held = logs if allowed is None else np.where(allowed, logs, -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        odds = np.exp(held - held.max(axis=1, keepdims=True))
        shares = odds / odds.sum(axis=1, keepdims=True)
    broken = ~np.isfinite(shares).all(axis=1)
    if broken.any():
        spread = np.ones(logs.shape) if allowed is None else allowed.astype(np.float64)
        shares[broken] = (spread / spread.sum(axis=1, keepdims=True))[broken]
    # Rounded down, parts are together at most PARTS: their exact sum is below PARTS + 1.
    whole: np.ndarray = np.floor(shares * PARTS).astype(np.uint64)
    lines, likeliest = np.arange(len(whole)), shares.argmax(axis=1)
    whole[lines, likeliest] += np.uint64(PARTS) - whole.sum(axis=1)
    return whole
