"""Structural zeros as masks inside a conditional: which levels a row may take, given its other columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.protocols import Words64
from gibbous.core.rule_laws import laws_of
from gibbous.core.rule_tests import Mapped
from gibbous.core.schema import Schema, impossible_mask
from gibbous.sampling.exact_draws import accumulate, draw_levels, uniform_levels

ATTEMPTS = 1000

Seeds = tuple[tuple[int, ...], ...]
"""Public weights of each column's levels; () where every level weighs the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One impossible combination.

    Attributes:
        columns: positions that it names.
        hits: per column bool (levels,): the codes that take part in it.
    """

    columns: tuple[int, ...]
    hits: tuple[np.ndarray, ...]


def rules_of(schema: Schema) -> tuple[Rule, ...]:
    """The structural zeros of a schema with positions and lookups."""
    found = []
    for rule in schema.impossible:
        columns = tuple(schema.index(name) for name, _ in rule.where)
        hits = []
        for name, codes in rule.where:
            hit = np.zeros(schema[name].size, dtype=bool)
            hit[list(codes)] = True
            hits.append(hit)
        found.append(Rule(columns, tuple(hits)))
    return tuple(found)


def allowed_levels(
    rules: tuple[Rule, ...], by_column: np.ndarray, column: int, levels: int
) -> np.ndarray | None:
    """Which levels of one column are possible given the other columns of each row.

    Args:
        rules: those to respect; rules that do not name the column are skipped.
        by_column: (columns, rows) codes.
    Returns:
        bool (rows, levels), or None when no rule names the column.
    """
    touching = [r for r in rules if column in r.columns]
    if not touching:
        return None
    allowed = np.ones((by_column.shape[1], levels), dtype=bool)
    for rule in touching:
        applies = np.ones(by_column.shape[1], dtype=bool)
        own = np.ones(levels, dtype=bool)
        for place, hit in zip(rule.columns, rule.hits, strict=True):
            if place == column:
                own &= hit
            else:
                applies &= hit[by_column[place]]
        allowed[applies] &= ~own
    return allowed


def maps_of(schema: Schema, order: Sequence[int]) -> dict[int, list[Mapped]]:
    """The public maps of each column whose group of levels is drawn before it in every pass."""
    found: dict[int, list[Mapped]] = {}
    turn = {column: at for at, column in enumerate(order)}
    for law in laws_of(schema.columns, schema.rules).laws if schema.rules else ():
        test = law.then
        if not isinstance(test, Mapped) or law.when or schema.columns[test.group].binned:
            continue
        if turn.get(test.group, len(turn)) < turn.get(test.detail, -1):
            found.setdefault(test.detail, []).append(test)
    return found


def within_groups(
    maps: Sequence[Mapped], by_column: np.ndarray, allowed: np.ndarray | None
) -> np.ndarray | None:
    """Levels of a column that belong to the group of each row; all where the group has none of them.

    Args:
        maps: of this column.
        by_column: (columns, rows) codes.
        allowed: what is possible already, bool (rows, levels); None for all levels.
    """
    for test in maps:
        own = test.values[None, :] == by_column[test.group][:, None]
        own |= np.isnan(test.values)
        if allowed is not None:
            own &= allowed
        stuck = ~own.any(axis=1)
        own[stuck] = True if allowed is None else allowed[stuck]
        allowed = own
    return allowed


def possible_cells(schema: Schema, columns: tuple[int, ...]) -> np.ndarray:
    """1 where a cell of these columns may hold rows, 0 where a structural zero covers all of it."""
    mask = np.ones(tuple(schema.sizes[j] for j in columns))
    for rule in rules_of(schema):
        if set(rule.columns) <= set(columns):
            hits = dict(zip(rule.columns, rule.hits, strict=True))
            every = [hits.get(j, np.ones(schema.sizes[j], dtype=bool)) for j in columns]
            mask[np.ix_(*every)] = 0.0
    return mask


def uniform_rows(schema: Schema, rows: int, words: Words64, weights: Seeds = ()) -> np.ndarray:
    """Rows drawn uniformly from the public domain, structural zeros left out; no record is looked at.

    With `weights`, each column is drawn by its own in place of uniformly; one without any is uniform.

    Returns:
        (columns, rows) codes.
    Raises:
        UsageError: the structural zeros leave (almost) nothing.
    """

    def fresh(count: int) -> np.ndarray:
        if weights:
            sums = [accumulate(np.array([own], dtype=np.uint64)) for own in weights]
            drawn = [draw_levels(one, np.zeros(count, dtype=np.int64), words) for one in sums]
        else:
            drawn = [uniform_levels(size, count, words) for size in schema.sizes]
        return np.stack(drawn).astype(schema.code_dtype())

    state = fresh(rows)
    return possible(schema, state, lambda attempt, bad: fresh(len(bad)))


def possible(
    schema: Schema, state: np.ndarray, again: Callable[[int, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Draw impossible rows again until none is left; see `redrawn`."""
    if not schema.impossible:
        return state
    return redrawn(lambda rows: impossible_mask(schema, rows.T), state, again)


def redrawn(
    bad: Callable[[np.ndarray], np.ndarray],
    state: np.ndarray,
    again: Callable[[int, np.ndarray], np.ndarray],
    attempts: int = ATTEMPTS,
) -> np.ndarray:
    """Draw bad rows again until none is left.

    Args:
        bad: of codes (columns, rows), which rows are impossible, bool (rows,).
        state: (columns, rows) codes; changed in place.
        again: again(attempt, positions) -> new codes (columns, positions).
        attempts: at most.
    Raises:
        UsageError: rows stay impossible: the structural zeros leave (almost) nothing.
    """
    left = np.flatnonzero(bad(state))
    for attempt in range(1, attempts):
        if not len(left):
            return state
        state[:, left] = again(attempt, left)
        left = left[bad(state[:, left])]
    if len(left):
        raise UsageError(
            "IMPOSSIBLE",
            f"No possible row was found in {attempts} attempts.",
            "The structural zeros of a schema leave a fair share of all combinations possible.",
            "Check [[impossible]] in the schema.",
        )
    return state
