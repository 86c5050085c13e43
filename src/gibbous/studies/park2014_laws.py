"""The laws of PeGS, Block PeGS with reset and perturbed imputation as printed, from seeded streams.

Contexts are ranked on the raw records and seeds may be records, as the papers have it: nothing here
protects anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from gibbous.privacy.calibrate.diversity import conditional, diverse_beta, mixed_with_uniform
from gibbous.privacy.calibrate.gibbs import pegs_alpha_published as alpha_printed
from gibbous.sampling.imputation.records import Records
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals
from gibbous.studies.park2014_data import Microdata
from gibbous.studies.sbhg_conditionals import Floats, Hashed, Ints, drawn
from gibbous.studies.sbhg_laws import Noised
from gibbous.studies.seeded_draws import Draws

__all__ = ["Imputer", "added", "alpha_printed", "blocks", "diverse", "imputer", "seeds", "tilted"]


def added(tables: Sequence[Hashed], alpha: float) -> Noised:
    """(n + alpha) / (N + C alpha), as running sums [park2014, eq. 5]."""
    sums = tuple(
        np.cumsum((t.counts + alpha) / (t.counts.sum(axis=1, keepdims=True) + t.levels * alpha), 1)
        for t in tables
    )
    return Noised(tuple(tables), sums)


def diverse(tables: Sequence[Hashed], share: float) -> Noised:
    """The least mixture with the uniform law whose entropy is a share of the largest [park2013, def. 1]."""
    sums = []
    for t in tables:
        law = conditional(t.counts)
        if share > 0 and t.levels > 1:
            law = mixed_with_uniform(law, diverse_beta(t.counts, exp(share * log(t.levels))))
        sums.append(np.cumsum(law, axis=1))
    return Noised(tuple(tables), tuple(sums))


def tilted(tables: Sequence[Hashed], epsilon: float | None) -> Noised:
    """exp(epsilon n) over its sum [park2013, def. 2]; None: n / N, the paper's "infinity"."""
    sums = []
    for t in tables:
        if epsilon is None:
            law = conditional(t.counts)
        else:
            law = np.exp(epsilon * (t.counts - t.counts.max(axis=1, keepdims=True)))
        sums.append(np.cumsum(law, axis=1))
    return Noised(tuple(tables), tuple(sums))


def seeds(table: Microdata, rows: int, draws: Draws, *, records: bool) -> Ints:
    """Seed rows: records of the table, or uniform over the public levels."""
    if records:
        return table.codes[(draws.uniform(rows) * table.rows).astype(np.int64)].copy()
    rows_drawn: Ints = (draws.uniform(rows, len(table.sizes)) * np.array(table.sizes)).astype(
        np.int64
    )
    return rows_drawn


def blocks(conditionals: Noised, start: Ints, draws: Draws, *, block: int) -> Ints:
    """Chains of rows; a conditional is uniform from its second visit in a chain on.

    Args:
        start: seed row of each chain, int64 (chains, columns).
        block: rows a chain.
    Returns:
        int64 (chains * block, columns).
    Source:
        [park2014, s3.4].
    """
    chains = np.arange(len(start))
    used = [np.zeros((len(start), len(t.counts)), dtype=bool) for t in conditionals.tables]
    state, out = start.copy(), []
    for row in range(block):
        for j, (table, sums) in enumerate(
            zip(conditionals.tables, conditionals.cumulative, strict=True)
        ):
            lines, unit = table.lines(state), draws.at(row, j).uniform(len(start))
            level, _ = drawn(sums, lines, unit)
            uniform = (unit * table.levels).astype(np.int64)
            state[:, table.target] = np.where(used[j][chains, lines], uniform, level)
            used[j][chains, lines] = True
        out.append(state.copy())
    return np.concatenate(out)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Imputer:
    """Full conditionals by elastic-net multinomial regression.

    Attributes:
        models: one a column.
        alpha: added to each fitted probability.
    """

    models: tuple[Conditional, ...]
    alpha: float

    def rows(self, start: Ints, draws: Draws) -> Ints:
        """One pass over the columns from the seed rows [park2014, s3.5]."""
        from gibbous.sampling.imputation.imputed_rows import scores

        state = start.copy()
        for model in self.models:
            logs = scores(model, state.T)
            odds = np.exp(logs - logs.max(axis=1, keepdims=True))
            law = odds / odds.sum(axis=1, keepdims=True) + self.alpha
            unit = draws.at(model.target).uniform(len(state))
            sums: Floats = np.cumsum(law, axis=1)
            state[:, model.target], _ = drawn(sums, np.arange(len(state)), unit)
        return state


def imputer(table: Microdata, most: int) -> tuple[Conditional, ...]:
    """Fit the regressions to at most so many records, penalties by cross-validation."""
    codes, counts = np.unique(table.codes[:most], axis=0, return_counts=True)
    columns = np.ascontiguousarray(codes.T.astype(np.int32))
    return conditionals(Records(columns, counts.astype(np.int64), table.sizes), Fit())
