"""park2014 by its laws: PeGS, Block PeGS with reset and perturbed imputation as printed; utility and risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import numpy.typing as npt

from gibbous.core.context import located
from gibbous.privacy.calibrate.diversity import conditional, diverse_beta, mixed_with_uniform
from gibbous.privacy.calibrate.gibbs import pegs_alpha_published as alpha_printed
from gibbous.sampling.imputation.records import Records
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals
from gibbous.studies.park2014_data import Microdata
from gibbous.studies.sbhg_conditionals import Floats, Hashed, Ints, drawn, mixed
from gibbous.studies.sbhg_laws import Noised
from gibbous.studies.seeded_draws import Draws

__all__ = ["Imputer", "added", "alpha_printed", "blocks", "diverse", "imputer", "seeds", "tilted"]
_RIDGE = 1e-6  # keeps the logistic fit finite where a synthetic table separates


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
    """Full conditionals by elastic-net multinomial regression, alpha added to each fitted probability."""

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


def marginal_distance(table: Microdata, rows: Ints) -> float:
    """Mean over columns of half the L1 distance of the shares; the printed formula is lost."""
    distances = [
        _distance(table.codes[:, j], rows[:, j], size) for j, size in enumerate(table.sizes)
    ]
    return float(np.mean(distances))


def conditional_distance(table: Microdata, rows: Ints, given: str) -> float:
    """The same within each level of a column, weighted by its real share; 1 where no row has it."""
    at = table.index(given)
    total = 0.0
    for level in range(table.sizes[at]):
        real = table.codes[table.codes[:, at] == level]
        made = rows[rows[:, at] == level]
        if not len(real):
            continue
        others = [j for j in range(len(table.sizes)) if j != at]
        far = [
            _distance(real[:, j], made[:, j], table.sizes[j]) if len(made) else 1.0 for j in others
        ]
        total += len(real) / table.rows * float(np.mean(far))
    return total


def linear(table: Microdata, rows: Ints, target: str, terms: Sequence[str]) -> Floats:
    """Coefficients of least squares, intercept first; terms in real standard deviations."""
    x, y = _design(table, rows, terms), table.numbers(target, rows[:, table.index(target)])
    kept = np.isfinite(y)
    return np.asarray(np.linalg.lstsq(x[kept], y[kept], rcond=None)[0], dtype=np.float64)


def logistic(table: Microdata, rows: Ints, target: str, terms: Sequence[str]) -> Floats:
    """Coefficients of a logistic regression of the second level of a column, by Newton steps."""
    x = _design(table, rows, terms)
    y = (rows[:, table.index(target)] == 1).astype(np.float64)
    b: Floats = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ b, -30, 30)))
        slope = x.T @ (y - p) - _RIDGE * len(y) * b
        bend = (x * (p * (1 - p))[:, None]).T @ x + _RIDGE * len(y) * np.eye(len(b))
        step = np.linalg.solve(bend, slope)
        b += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break
    return b


def attack(
    table: Microdata, rows: Ints, known: Sequence[str], sensitive: str, targets: Ints
) -> float:
    """Share of targets whose sensitive level is not the likeliest among rows with their key, or among all."""
    at = [table.index(name) for name in known]
    levels = table.sizes[table.index(sensitive)]
    guess = _Counted(rows, at, table, table.index(sensitive), levels)(targets)
    return float(np.mean(guess.argmax(axis=1) != targets[:, table.index(sensitive)]))


def guessed_number(
    table: Microdata, rows: Ints, known: Sequence[str], sensitive: str, targets: Ints
) -> float:
    """Mean distance of a target's number from the mean among rows with its key."""
    at, column = [table.index(name) for name in known], table.index(sensitive)
    levels = table.sizes[column]
    counts = _Counted(rows, at, table, column, levels)(targets)
    values = table.numbers(sensitive, np.arange(levels))
    guess = counts @ values / counts.sum(axis=1)
    return float(np.mean(np.abs(guess - values[targets[:, column]])))


def unique(table: Microdata, rows: Ints, known: Sequence[str]) -> int:
    """Rows that no other row shares the key with."""
    at = [table.index(name) for name in known]
    keys = mixed(rows[:, at], [table.sizes[c] for c in at])
    return int((np.unique(keys, return_counts=True)[1] == 1).sum())


class _Counted:
    """Levels of a column among the rows with the key of each target; of all rows where none has."""

    def __init__(
        self, rows: Ints, at: Sequence[int], table: Microdata, column: int, levels: int
    ) -> None:
        self._at, self._radices = list(at), [table.sizes[c] for c in at]
        self._keys, lines = np.unique(mixed(rows[:, self._at], self._radices), return_inverse=True)
        self._counts = np.zeros((len(self._keys) + 1, levels))
        np.add.at(self._counts, (lines, rows[:, column]), 1.0)
        self._counts[-1] = self._counts[:-1].sum(axis=0)

    def __call__(self, targets: Ints) -> Floats:
        keys = mixed(targets[:, self._at], self._radices)
        place, hit = located(self._keys, keys)
        return self._counts[np.where(hit, place, -1)]


def _design(table: Microdata, rows: Ints, terms: Sequence[str]) -> Floats:
    columns = [np.ones(len(rows))]
    for name in terms:
        at = table.index(name)
        values = table.numbers(name, np.arange(table.sizes[at]))
        if not np.isfinite(values).all():
            values = np.arange(table.sizes[at], dtype=np.float64)
        real = values[table.codes[:, at]]
        columns.append((values[rows[:, at]] - real.mean()) / (real.std() or 1.0))
    return np.stack(columns, axis=1)


def _distance(a: Ints, b: Ints, levels: int) -> float:
    return float(np.abs(shares(a, levels) - shares(b, levels)).sum() / 2)


def shares(codes: npt.NDArray[np.int64], levels: int) -> Floats:
    """Share of each level, float64 (levels,)."""
    return np.asarray(np.bincount(codes, minlength=levels) / max(len(codes), 1))
