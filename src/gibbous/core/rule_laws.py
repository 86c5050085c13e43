"""All rules of a schema as laws: a condition and what follows from it, in positions of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from gibbous.core.column import Column
from gibbous.core.rule_reading import Reading
from gibbous.core.rule_tests import Among, Between, Mapped, Test, level_values, of
from gibbous.core.rules import Rule, refused


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Rows that meet all of `when` meet `then`; `rule` is the position of its rule."""

    rule: int
    when: tuple[Among | Between, ...]
    then: Test


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """All rules of a schema.

    Attributes:
        laws: in the order of the rules.
        places: of the columns that they name.
        values: by position, of columns of levels that are compared: a number a code; nan: none.
    """

    laws: tuple[Law, ...]
    places: tuple[int, ...]
    values: dict[int, np.ndarray]


@lru_cache(maxsize=64)
def laws_of(columns: tuple[Column, ...], rules: tuple[Rule, ...]) -> Laws:
    """Read rules against columns.

    Raises:
        UsageError: a rule names a column or level that is not there, compares what cannot be
            compared, or computes a column from itself.
    """
    laws: list[Law] = []
    for number, rule in enumerate(rules):
        when, then = Reading(columns, rule.words()).tests(rule)
        laws += [Law(number, when, test) for test in then]
    laws = _substituted(laws, columns, rules)
    places = sorted({place for law in laws for test in (*law.when, law.then) for place in of(test)})
    summed = {
        p for law in laws for t in (*law.when, law.then) if isinstance(t, Between) for p in of(t)
    }
    values = {p: level_values(columns[p]) for p in summed if not columns[p].binned}
    return Laws(tuple(laws), tuple(places), values)


def _substituted(laws: list[Law], columns: Sequence[Column], rules: Sequence[Rule]) -> list[Law]:
    """What is asked of a column that is computed is asked of what it is computed from."""
    sums: dict[int, tuple[Law, Between]] = {}
    maps = {law.then.group: law.then for law in laws if isinstance(law.then, Mapped)}
    for law in laws:
        if not law.when and isinstance(law.then, Between) and law.then.target is not None:
            target = law.then.target
            if target in sums or target in maps:
                raise refused(
                    rules[law.rule].words(),
                    f"computes {columns[target].name!r}, which another rule computes, too",
                    "One rule computes a column",
                    "Keep one of them, or write the other as <= and >=",
                )
            sums[target] = (law, law.then)
    return [replace(law, then=_open(law, sums, maps, columns, rules)) for law in laws]


def _open(
    law: Law,
    sums: dict[int, tuple[Law, Between]],
    maps: dict[int, Mapped],
    columns: Sequence[Column],
    rules: Sequence[Rule],
) -> Test:
    if isinstance(law.then, Among):
        return _by_detail(law.then, maps, columns)
    if not isinstance(law.then, Between):
        return law.then
    test, target = law.then, law.then.target
    times = dict(test.terms).get(target, 0) if target is not None else 0
    for _ in range(len(sums) + 1):
        inner = [place for place, _ in test.terms if place in sums and place != target]
        if not inner:
            return test
        name = columns[inner[0]].name
        test = _replaced(test, inner[0], sums[inner[0]][1])
        if target is not None and dict(test.terms).get(target) != times:
            break
    raise refused(
        rules[law.rule].words(),
        f"computes {name!r} from itself",
        "A column is computed from others",
        "Break the circle",
    )


def _by_detail(test: Among, maps: dict[int, Mapped], columns: Sequence[Column]) -> Among:
    """What is asked of a group, asked of the detail that determines it."""
    seen: set[int] = set()
    while test.place in maps and test.place not in seen and not columns[test.place].binned:
        seen.add(test.place)
        by = maps[test.place]
        held = np.where(np.isnan(by.values), 0, by.values).astype(int)
        test = Among(by.detail, test.codes[held] | np.isnan(by.values))
    return test


def _replaced(test: Between, place: int, definition: Between) -> Between:
    """A sum with one of its columns written out, which is (bound - rest) / its times."""
    own = dict(definition.terms)[place]  # 1 or -1
    times = dict(test.terms)[place]
    sums = {p: t for p, t in test.terms if p != place}
    for other, part in definition.terms:
        if other != place:
            sums[other] = sums.get(other, 0) - times * part * own
    shift = times * definition.low * own
    terms = tuple((p, t) for p, t in sums.items() if t)
    return replace(test, terms=terms, low=test.low - shift, high=test.high - shift)
