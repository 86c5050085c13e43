"""One rule read against the columns of a schema: names, levels and days become positions and numbers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibbous.core.column import Column
from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.core.rule_tests import (
    Among,
    Between,
    Combined,
    Mapped,
    Test,
    code_of,
    ends,
    is_whole,
    level_values,
)
from gibbous.core.rule_text import MISSING, Comparison, Side, comparisons
from gibbous.core.rules import Rule, refused

CELLS = 1_000_000  # combinations that one rule may name
_EXACT = 2.0**53
_CLOSE = 1e-9
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Reading:
    """One rule against the columns."""

    def __init__(self, columns: Sequence[Column], words: str) -> None:
        self._columns, self._words = columns, words
        self._names = [column.name for column in columns]

    def tests(self, rule: Rule) -> tuple[tuple[Among | Between, ...], tuple[Test, ...]]:
        """The condition of a rule, and what rows meet that meet it."""
        if rule.require or rule.when:
            when = self._tests(rule.when, then=False) if rule.when else ()
            return when, self._tests(rule.require or rule.then, then=True)
        if rule.bought:
            self._check_sizes(rule)
        if rule.to_buy:
            return (), ()
        return (), (self._mapped(rule) if rule.detail else self._combined(rule),)

    def error(self, wrong: str, allowed: str, fix: str) -> UsageError:
        """The error for this rule."""
        return refused(self._words, wrong, allowed, fix)

    def place(self, name: str) -> int:
        """Position of a column."""
        if name in self._names:
            return self._names.index(name)
        shown = ", ".join(self._names[:20])
        raise self.error(
            f"names {name!r}, which is not a column",
            f"Columns are {shown}; text and days stand in quotes",
            did_you_mean(name, self._names, "Correct the name"),
        )

    def code(self, place: int, value: object) -> int:
        """Code of a level."""
        column = self._columns[place]
        code = None if column.binned else code_of(column, value)
        if code is None:
            shown = ", ".join(map(repr, column.labels()[:20]))
            raise self.error(
                f"names {value!r}, which column {column.name!r} does not have",
                f"Its levels are {shown}" if not column.binned else "It holds numbers, not levels",
                did_you_mean(str(value), column.labels(), "Correct the level"),
            )
        return code

    def _tests(self, text: str, *, then: bool) -> tuple[Among | Between, ...]:
        merged: list[Among | Between] = []
        for one in comparisons(text, self._words):
            test = self._test(one, then=then)
            before = merged[-1] if merged else None
            if (
                isinstance(test, Between)
                and isinstance(before, Between)
                and test.terms == before.terms
            ):
                merged[-1] = _both(before, test)
            else:
                merged.append(test)
        return tuple(merged)

    def _test(self, one: Comparison, *, then: bool) -> Among | Between:
        if not one.left.terms and one.right.terms and one.sign not in ("in", "not in"):
            one = Comparison(one.right, _TURNED.get(one.sign, one.sign), one.left)
        name, right = one.left.column, one.right
        if one.sign in ("is", "is not") and name and right.column == MISSING:
            return self._missing(self.place(name), missing=one.sign == "is")
        if name and not right.terms and not self._columns[self.place(name)].binned:
            return self._level(self.place(name), one.sign, right, then=then)
        if one.sign in _TURNED or one.sign == "==":
            return self._between(one)
        raise self.error(
            f"uses {one.sign!r} where it cannot stand",
            "'is' goes with missing; 'in', 'not in' and '!=' with a column of levels; numbers and days "
            "are compared by <, <=, ==, >= and >",
            "Write a range, or two rules",
        )

    def _missing(self, place: int, *, missing: bool) -> Among:
        column = self._columns[place]
        if column.missing_code is None:
            raise self.error(
                f"asks whether {column.name!r} is missing, which it never is",
                "A column that can be missing is declared with missing = true",
                "Declare it",
            )
        codes = np.full(column.size, not missing)
        codes[column.missing_code] = missing
        return Among(place, codes)

    def _level(self, place: int, sign: str, right: Side, *, then: bool) -> Among:
        column = self._columns[place]
        given = right.members or (right.constant if right.literal is None else right.literal,)
        named = [self.code(place, value) for value in given]
        codes = np.zeros(column.size, dtype=bool)
        if sign in _TURNED and column.kind != "nominal" and right.members is None:
            values = level_values(column)
            bound = values[named[0]]
            with np.errstate(invalid="ignore"):
                codes = {
                    "<": values < bound, "<=": values <= bound,
                    ">": values > bound, ">=": values >= bound,
                }[sign]  # fmt: skip
        elif sign in ("==", "in", "!=", "not in"):
            codes[named] = True
            codes = codes if sign in ("==", "in") else ~codes
        else:
            raise self.error(
                f"orders {column.name!r}, which has no order",
                "Columns of kind ordinal, numeric and date have one",
                "Declare kind = 'ordinal', or name the levels",
            )
        if column.missing_code is not None and column.missing_code not in named:
            codes = codes.copy()
            codes[column.missing_code] = then
        if not codes[: column.bins + (column.other is not None)].any() and not codes[named].any():
            raise self.error(
                f"leaves no level of {column.name!r}",
                "At least one stays",
                "Correct the comparison",
            )
        return Among(place, codes)

    def _between(self, one: Comparison) -> Between:
        left, right = (self._dated(side) for side in (one.left, one.right))
        twice = sorted({name for name, _ in left.terms} & {name for name, _ in right.terms})
        if twice:
            raise self.error(
                f"has {twice[0]!r} on both sides, as its own part",
                "A column stands on one side",
                "Correct the comparison",
            )
        sums = dict(left.terms)
        for name, times in right.terms:
            sums[name] = sums.get(name, 0) - times
        terms = tuple((self.place(name), times) for name, times in sums.items() if times)
        bound = float(right.constant - left.constant)
        self._check_terms(terms, one)
        columns = [self._columns[place] for place, _ in terms]
        whole = all(map(is_whole, columns))
        if one.sign == "==":
            alone = left.column or right.column
            reach = max(max(abs(end) for end in ends(column)) for column in columns)
            close = 0.0 if whole else _CLOSE * max(1.0, reach)
            target = self.place(alone) if alone and len(terms) > 1 else None
            return Between(terms, bound, bound, target=target, close=close)
        strict = one.sign in "<>"
        if one.sign in ("<", "<="):
            high = (math.ceil(bound) - 1 if strict else math.floor(bound)) if whole else bound
            return Between(terms, high=high, open=(False, strict and not whole))
        low = (math.floor(bound) + 1 if strict else math.ceil(bound)) if whole else bound
        return Between(terms, low=low, open=(strict and not whole, False))

    def _dated(self, side: Side) -> Side:
        """A side whose text is a day as the number of that day."""
        if not isinstance(side.literal, str):
            return side
        try:
            return Side(constant=datetime.date.fromisoformat(side.literal).toordinal())
        except ValueError:
            raise self.error(
                f"compares numbers with the text {side.literal!r}",
                "Days are written '2020-01-31', numbers without quotes",
                "Correct the text",
            ) from None

    def _check_terms(self, terms: tuple[tuple[int, int], ...], one: Comparison) -> None:
        columns = [self._columns[place] for place, _ in terms]
        days = sum(times for (_, times), c in zip(terms, columns, strict=True) if c.kind == "date")
        days += isinstance(one.left.literal, str) - isinstance(one.right.literal, str)
        text = [
            c
            for c in columns
            if not c.binned and not all(type(v) in (int, float) for v in c.levels)
        ]
        alike = len(columns) == 2 and all(c.kind == "ordinal" for c in columns)
        alike = alike and columns[0].levels == columns[1].levels
        wide = [c for c in columns if max(abs(end) for end in ends(c)) > _EXACT]
        for wrong, unfit in (
            ("compares nothing that varies", not terms),
            (
                f"computes with {text[0].name!r}, which holds text" if text else "",
                text and not alike,
            ),
            ("mixes days and numbers", days != 0 and not text),
            (f"compares {wide[0].name!r}, whose bounds are beyond 2^53" if wide else "", wide),
        ):
            if unfit:
                raise self.error(
                    wrong,
                    "Numbers are compared with numbers, days with days in quotes or columns of days; "
                    "a difference of days is a number; columns of text only if ordinal, with the same "
                    "levels",
                    "Correct the comparison",
                )

    def _mapped(self, rule: Rule) -> Mapped:
        detail, group = self.place(rule.detail), self.place(rule.group)
        if detail == group:
            raise self.error("determines itself", "Two columns are named", "Correct group")
        fine, coarse = self._columns[detail], self._columns[group]
        values = np.full(fine.size, np.nan)
        for one, other in dict(rule.map).items():
            values[self.code(detail, one)] = self._group_value(group, other)
        if np.isnan(values[: fine.bins]).any():
            without = fine.labels()[int(np.isnan(values[: fine.bins]).argmax())]
            raise self.error(
                f"has a map without level {without!r} of {fine.name!r}",
                "The map says which group each level belongs to",
                f"Add it to the map; groups are values of {coarse.name!r},",
            )
        return Mapped(detail, group, values)

    def _check_sizes(self, rule: Rule) -> None:
        columns = [self._columns[self.place(name)] for name in (rule.detail, rule.group)]
        cells = math.prod(column.size for column in columns)
        if rule.detail == rule.group or any(column.binned for column in columns) or cells > CELLS:
            raise self.error(
                f"is to be bought as a table of {cells:,} cells",
                f"A map is bought from one column of levels to another, of at most {CELLS:,} combinations",
                "Correct detail and group, or give a public map",
            )

    def _group_value(self, place: int, value: object) -> float:
        column = self._columns[place]
        if not column.binned:
            return self.code(place, value)
        if column.kind == "date":
            number = self._dated(Side(literal=str(value))).constant
        else:
            try:
                number = float(str(value))
            except ValueError:
                number = math.nan
        number = number if column.decimals is None else round(number, column.decimals)
        if not column.edges[0] <= number <= column.edges[-1] or (is_whole(column) and number % 1):
            raise self.error(
                f"maps to {value!r}, which column {column.name!r} cannot be",
                "Groups are values within its bounds",
                "Correct the map",
            )
        return number

    def _combined(self, rule: Rule) -> Combined:
        places = tuple(self.place(name) for name in rule.columns)
        listed = rule.allowed or rule.forbidden
        columns = [self._columns[place] for place in places]
        shape = tuple(column.size for column in columns)
        if len(set(places)) < 2 or len(set(places)) < len(places) or any(c.binned for c in columns):
            raise self.error(
                "does not name two or more different columns of levels",
                "Combinations are of levels; ranges of numbers go into a rule with if and then",
                "Correct columns",
            )
        if math.prod(shape) > CELLS or any(len(one) != len(places) for one in listed):
            raise self.error(
                f"does not list one level for each of its columns, or has over {CELLS:,} combinations",
                "Each combination has a level of each column, in their order",
                "Correct the list; large hierarchies are a rule with detail, group and map",
            )
        named = np.zeros(shape, dtype=bool)
        for combination in listed:
            codes = (self.code(p, level) for p, level in zip(places, combination, strict=True))
            named[tuple(codes)] = True
        return Combined(places, named if rule.allowed else ~named)


def _both(one: Between, other: Between) -> Between:
    low, high = max(one.low, other.low), min(one.high, other.high)
    ends = (
        any(t.open[0] and t.low == low for t in (one, other)),
        any(t.open[1] and t.high == high for t in (one, other)),
    )
    return replace(one, low=low, high=high, open=ends)
