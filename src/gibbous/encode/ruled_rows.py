"""Drawn rows in, rows that keep every rule out: a function of the row, its number and the seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.column import Column
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.rule_laws import Law, laws_of
from gibbous.core.rule_tests import Between, of
from gibbous.core.rules import Rule
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, words_at
from gibbous.encode.placing import STREAM, placed
from gibbous.encode.rule_moves import compute, mend
from gibbous.encode.rule_rows import RuleRows

_RULES = 0x72756C  # "rul": keeps these streams apart from all others
_AGAIN = 8  # times that numbers are drawn again within their bins
_ROUNDS = 16  # times that all rules are gone through
_TRIED = 2048  # rows among which one is looked for that keeps all rules


@dataclass(frozen=True, slots=True, eq=False)
class Ruled:
    """Rows that keep all rules.

    Attributes:
        codes: with the numbers of the columns that the rules name.
        changed: of each rule, how many rows broke it as they were drawn.
    """

    codes: Codes
    changed: tuple[int, ...]


def ruled(
    codes: Codes,
    *,
    seed: int,
    set_index: int = 0,
    start_row: int = 0,
    fixed: frozenset[int] = frozenset(),
) -> Ruled:
    """Make rows keep the rules of their schema. Rows that do are left as they are.

    Args:
        codes: public codes; columns that have numbers keep them unless a rule is broken.
        seed, set_index, start_row: as for `decode`.
        fixed: positions of columns that are not changed.
    Raises:
        UsageError: fixed columns leave no value of the others that keeps a rule.
    Guarantee:
        Post-processing: nothing but the rows and public facts is looked at.
    """
    schema = codes.schema
    if not schema.rules:
        return Ruled(codes, ())
    laws = laws_of(schema.columns, schema.rules)
    names = np.arange(start_row, start_row + codes.rows, dtype=np.uint64)
    values, known = codes.by_column.copy(), dict(codes.numbers)
    held = {place: values[place] for place in laws.places}
    numbers = {}
    for place in laws.places:
        column = schema.columns[place]
        if column.binned:
            key = (seed, STREAM, set_index, place)
            fresh = known[place] if place in known else placed(column, held[place], names, key)
            numbers[place] = fresh.astype(np.float64)
            if column.missing:
                numbers[place][held[place] == column.missing_code] = np.nan
    rows = RuleRows(schema.columns, laws, held, numbers, names, (seed, _RULES, set_index))
    broken = _by_rule(rows, len(schema.rules))
    bad = np.flatnonzero(broken.any(axis=0))
    if len(bad) > codes.rows / 8:  # most rows of a column that is computed: all of them at once
        compute(rows, fixed)
        bad = _left(rows, np.arange(codes.rows))
    if len(bad):
        part = rows.part(bad)
        left = _keep(part, fixed, frozenset(known))
        if len(left):
            if fixed:
                raise _no_room(schema, part, left, bad)
            _replace(part, left, kept_row(schema.columns, schema.rules))
        _store(rows, bad, part)
    for place, found in numbers.items():
        found[np.isnan(found)] = float(schema.columns[place].edges[0])  # where missing: any number
    together = tuple(sorted((known | numbers).items()))
    kept = replace(codes, values=values.T, numbers=together)
    return Ruled(kept, tuple(int(one.sum()) for one in broken))


def rows_that_break(codes: Codes) -> np.ndarray:
    """How many rows break each rule of their schema; numbers of the columns they name are known."""
    schema = codes.schema
    laws = laws_of(schema.columns, schema.rules)
    held = {place: codes.by_column[place] for place in laws.places}
    numbers = {}
    for place in laws.places:
        column = schema.columns[place]
        if column.binned:
            missing = held[place] == column.missing_code if column.missing else False
            numbers[place] = np.where(missing, np.nan, codes.number(place))
    names = np.zeros(codes.rows, dtype=np.uint64)
    rows = RuleRows(schema.columns, laws, held, numbers, names, ())
    counts: np.ndarray = _by_rule(rows, len(schema.rules)).sum(axis=1)
    return counts


def check_rules(schema: Schema) -> Schema:
    """The schema; SchemaMismatch with the fewest rules that leave no row, if there are such."""
    if schema.rules:
        kept_row(schema.columns, schema.rules)
    return schema


@lru_cache(maxsize=64)
def kept_row(columns: tuple[Column, ...], rules: tuple[Rule, ...]) -> RuleRows:
    """One row that keeps all rules, the same for all who ask; SchemaMismatch if none was found."""
    row = _search(columns, rules)
    if row is not None:
        return row
    few = list(rules)
    for rule in rules:
        rest = [one for one in few if one is not rule]
        if rest and _search(columns, tuple(rest)) is None:
            few = rest
    said = "; ".join(f"({rule.words()})" for rule in few)
    raise SchemaMismatch(
        "NOROWPOSSIBLE",
        f"No row keeps {'the rule' if len(few) == 1 else 'these rules together:'} {said}.",
        "Within the levels and bounds of the columns, some row keeps all rules.",
        "Correct or remove one of them, or widen the levels or bounds.",
    )


def _search(columns: tuple[Column, ...], rules: tuple[Rule, ...]) -> RuleRows | None:
    laws = laws_of(columns, rules)
    names = np.arange(_TRIED, dtype=np.uint64)
    codes, numbers = {}, {}
    for place in laws.places:
        column = columns[place]
        words = words_at(stream_key(0, _RULES, place), names) >> np.uint64(32)
        codes[place] = ((words * np.uint64(column.size)) >> np.uint64(32)).astype(np.uint32)
        if column.binned:
            numbers[place] = placed(column, codes[place], names, (0, _RULES, place, 1)).astype(
                float
            )
            numbers[place][codes[place] == column.missing_code] = np.nan
    rows = RuleRows(columns, laws, codes, numbers, names, (0, _RULES))
    broken = np.zeros(_TRIED, dtype=bool)
    broken[_keep(rows, frozenset(), frozenset())] = True
    return None if broken.all() else rows.part(np.array([int(broken.argmin())]))


def _by_rule(rows: RuleRows, rules: int) -> np.ndarray:
    """Which rows break which rule, bool (rules, rows)."""
    broken = np.zeros((rules, len(rows.names)), dtype=bool)
    for law in rows.laws.laws:
        broken[law.rule] |= rows.broken(law)
    return broken


def _left(rows: RuleRows, at: np.ndarray) -> np.ndarray:
    part = rows.part(at)
    broken = np.zeros(len(at), dtype=bool)
    for law in rows.laws.laws:
        broken |= part.broken(law)
    return at[broken]


def _keep(rows: RuleRows, fixed: frozenset[int], known: frozenset[int]) -> np.ndarray:
    """Change rows in place until they keep all rules; returns the positions of those that do not."""
    at = np.arange(len(rows.names))
    for attempt in range(_AGAIN):
        at = _drawn_again(rows, at, fixed | known, attempt)
        if not len(at):
            break
    at = _left(rows, np.arange(len(rows.names)))
    for turn in range(_ROUNDS):
        if not len(at):
            break
        for number, law in enumerate(rows.laws.laws):
            part = rows.part(at)
            hit = at[part.broken(law)]
            if len(hit):
                part = rows.part(hit)
                mend(part, law, fixed, (1, turn, number))
                _store(rows, hit, part)
        at = _left(rows, at)
    return at


def _drawn_again(rows: RuleRows, at: np.ndarray, fixed: frozenset[int], attempt: int) -> np.ndarray:
    """Draw numbers that are compared with each other again, within their bins; returns who may go on."""
    part, again = rows.part(at), np.zeros(len(at), dtype=bool)
    for law in rows.laws.laws:
        moving = _moving(rows, law, fixed)
        if not moving:
            continue
        hit = np.flatnonzero(part.broken(law))
        again[hit] = True
        few = part.part(hit)
        for place in moving:
            key = (*rows.stream, 0, attempt, place)
            fresh = placed(rows.columns[place], few.codes[place], few.names, key)
            part.numbers[place][hit] = fresh
    _store(rows, at, part)
    return at[again]


def _moving(rows: RuleRows, law: Law, fixed: frozenset[int]) -> list[int]:
    if not isinstance(law.then, Between) or law.then.target is not None or len(law.then.terms) < 2:
        return []
    return [place for place in of(law.then) if place in rows.numbers and place not in fixed]


def _store(rows: RuleRows, at: np.ndarray, part: RuleRows) -> None:
    for place, array in part.codes.items():
        rows.codes[place][at] = array
    for place, array in part.numbers.items():
        rows.numbers[place][at] = array


def _replace(rows: RuleRows, at: np.ndarray, row: RuleRows) -> None:
    for place in rows.codes:
        rows.codes[place][at] = row.codes[place][0]
    for place in rows.numbers:
        rows.numbers[place][at] = row.numbers[place][0]


def _no_room(schema: Schema, rows: RuleRows, left: np.ndarray, bad: np.ndarray) -> UsageError:
    part = rows.part(left)
    law: Law = next(law for law in rows.laws.laws if part.broken(law).any())
    first = int(bad[left[int(part.broken(law).argmax())]]) + 1
    return UsageError(
        "GIVEN",
        f"The given values leave no row that keeps the rule ({schema.rules[law.rule].words()}), "
        f"first in row {first:,}.",
        "Given values stand as they are; the other columns are drawn so that all rules hold.",
        "Check the given values against [[rule]] in the schema, or leave a column out.",
    )
