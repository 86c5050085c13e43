"""Random neighbors for the coupled audit: a number in, a method, a schema and two tables out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from gibbous.contract.coupled import Coupled, coupled
from gibbous.contract.runs import default, relations
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.params import describe
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Column, Impossible, Schema, Unit, impossible_mask
from gibbous.core.stream import stream_key, words

T = TypeVar("T")
MOST_CELLS = 6_000  # of a plan; noise is what takes time
TRIES = 40  # methods and schemas until one fits the other
INSIDE = ("laplace", "noisy_pegs", "sbhg", "modips", "sba", "privbayes", "pegs", "dirichlet")


@dataclass(frozen=True, slots=True)
class Trial:
    """A random run: a method with random parameters on two neighbors, shared records first."""

    mechanism: Mechanism
    one: Codes
    two: Codes
    rows: int | None
    sets: int
    rare: bool

    def run(self) -> Coupled:
        """The coupled run."""
        return coupled(
            self.mechanism, self.one, self.two, self.rows, sets=self.sets, rare=self.rare
        )


def trials(kind: type[Any], runs: int, seed: int = 1) -> Iterator[Trial]:
    """Random runs of a mechanism class; none of one that makes no claim of differential privacy."""
    claims = kind.about.kind not in ("none", "l_diversity")
    for number in range(runs if claims else 0):
        dice = Dice(stream_key(seed, number))
        for _ in range(TRIES):
            trial = _trial(kind, dice)
            if trial is not None:
                yield trial
                break


class Dice:
    """Public choices, the same for the same key."""

    def __init__(self, key: int) -> None:
        self._words = itertools.count()
        self._key = key

    def below(self, top: int) -> int:
        """A whole number from 0 to top - 1."""
        return int(words(self._key, next(self._words), 1)[0] % np.uint64(top))

    def often(self, percent: int) -> bool:
        """True so often in a hundred."""
        return self.below(100) < percent

    def pick(self, of: Sequence[T]) -> T:
        """One of them."""
        return of[self.below(len(of))]


def _trial(kind: type[Any], dice: Dice) -> Trial | None:
    """One attempt; None where the method refuses the schema, the unit or the parameters."""
    relation = dice.pick(relations(kind))
    sets = dice.pick((1, 1, 2))
    schema = random_schema(dice)
    try:
        mechanism = _random_method(kind, relation, dice)
        rows = None if mechanism.about.releases == "tables" else dice.pick((3, 4, 6))
        plan = mechanism.plan(schema, rows, sets)
    except GibbousError:
        return None
    if plan.cells > MOST_CELLS or not plan.total.is_dp:
        return None
    one, two = random_neighbors(schema, relation, dice)
    return Trial(mechanism, one, two, rows, sets, dice.often(50))


def _random_method(kind: type[Any], relation: Relation, dice: Dice) -> Any:
    """An instance with a random budget, and random words where a parameter is a choice of words."""
    given: dict[str, Any] = {"relation": relation, "epsilon": dice.pick((0.1, 1.0, 4.0))}
    given["delta"] = 1e-6 if kind.about.kind == "probabilistic" else dice.pick((1e-6, 0.01))
    hints = get_type_hints(kind)
    for info in describe(kind):
        hint = hints[info.name]
        if info.name == "method":
            given["method"] = dice.pick(INSIDE)
        elif info.name != "relation" and get_origin(hint) is Literal and dice.often(40):
            given[info.name] = dice.pick(get_args(hint))
    try:
        return default(kind, **given)
    except GibbousError:  # words that do not go together
        plain = ("relation", "epsilon", "delta", "method")
        return default(kind, **{k: v for k, v in given.items() if k in plain})


def random_schema(dice: Dice) -> Schema:
    """One to four columns of every kind, with missing, other, one level, many levels and rules; a unit."""
    columns = [_column(f"x{j}", dice) for j in range(dice.pick((1, 2, 3, 3, 4)))]
    if dice.often(15):
        levels = tuple(range(dice.pick((130, 300))))
        columns[0] = Column("wide", "nominal", levels=levels, missing=dice.often(50))
    unit = Unit("person", "who", dice.pick((2, 3))) if dice.often(30) else Unit()
    schema = Schema(tuple(columns), unit=unit)
    large = [column for column in columns if column.size > 1]
    if len(large) > 1 and dice.often(25):
        where = tuple(sorted((c.name, (dice.below(c.size),)) for c in large[:2]))
        return replace(schema, impossible=(Impossible(where),))
    return schema


def _column(name: str, dice: Dice) -> Column:
    kind: Any = dice.pick(("binary", "nominal", "ordinal", "numeric", "numeric", "date", "flat"))
    facts: dict[str, Any] = {"missing": dice.often(30)}
    if kind == "flat":
        kind, facts = "nominal", {"levels": ("only",)}
    elif kind == "binary":
        facts |= {"levels": ("no", "yes")}
    elif kind == "nominal":
        facts |= {"levels": tuple("abcde"[: 2 + dice.below(4)]), "other": dice.pick((None, "z"))}
    elif kind == "ordinal":
        facts |= {"levels": tuple(range(2 + dice.below(3)))}
    elif kind == "date":
        facts |= {"edges": (737060.0, 737425.0, 737790.0)}
    else:
        edges = ((0.0, 10.0), (0.0, 18.0, 40.0, 99.0), (-7.0, 0.0, 1.0), (0.0, 1e9))
        facts |= {"edges": dice.pick(edges), "integer": dice.often(40), "clamp": True}
        facts |= {"decimals": None if facts["integer"] else dice.pick((None, 1))}
    return Column(name, kind, **facts)


def random_neighbors(schema: Schema, relation: Relation, dice: Dice) -> tuple[Codes, Codes]:
    """Two tables that differ by one privacy unit, whose rows come last; in either order."""
    shared = _rows(schema, dice.pick((0, 1, 2, 5, 20, 60)), dice)
    most = schema.unit.max_rows if schema.unit else 1
    mine = _rows(schema, 1 + dice.below(most), dice)
    other = _rows(schema, 1 + dice.below(most), dice)
    if relation == "add_remove":
        tables = [shared, _joined(shared, mine)]
    else:
        tables = [_joined(shared, mine), _joined(shared, other)]
    one, two = tables if dice.often(50) else tables[::-1]
    return _codes(schema, one), _codes(schema, two)


Rows = tuple[np.ndarray, np.ndarray]
"""Codes int64 (rows, columns), and numbers float64 of the same shape."""


def _rows(schema: Schema, count: int, dice: Dice) -> Rows:
    """Rows that are random, all alike, or at the ends of every column; none breaks a rule."""
    style = dice.pick(("random", "alike", "ends"))
    codes = np.zeros((count, len(schema)), dtype=np.int64)
    numbers = np.zeros((count, len(schema)))
    for place, column in enumerate(schema):
        same, end = dice.below(column.size), dice.pick((0, column.size - 1))
        for row in range(count):
            free = dice.below(column.size) if style == "random" else 0
            codes[row, place] = {"random": free, "alike": same, "ends": end}[style]
    for rule in schema.impossible:
        (name, held), *_ = rule.where
        place = schema.index(name)
        bad = impossible_mask(replace(schema, impossible=(rule,)), codes)
        codes[bad, place] = (held[0] + 1) % schema.sizes[place]
    for place, column in enumerate(schema):
        if column.binned:
            ways = [dice.below(4) for _ in range(count)]
            numbers[:, place] = [
                _number(column, int(code), way)
                for code, way in zip(codes[:, place], ways, strict=True)
            ]
    return codes, numbers


def _number(column: Column, code: int, way: int) -> float:
    """A number of a bin: its ends, its middle, or, in the outer bins, far outside the bounds."""
    if code >= column.bins:
        return float(column.edges[0])
    low, high = float(column.edges[code]), float(column.edges[code + 1])
    last = high if code == column.bins - 1 else np.nextafter(high, low)
    if column.integer or column.kind == "date":
        last = high if code == column.bins - 1 else high - 1
    beyond = -1e15 if code == 0 else 1e15 if code == column.bins - 1 else low
    return float((low, last, low + np.floor((high - low) / 2), beyond)[way])


def _joined(one: Rows, two: Rows) -> Rows:
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])


def _codes(schema: Schema, rows: Rows) -> Codes:
    values = np.ascontiguousarray(rows[0].astype(schema.code_dtype()).T).T
    numbers = tuple(
        (place, np.ascontiguousarray(rows[1][:, place]))
        for place, column in enumerate(schema)
        if column.binned
    )
    return Codes(schema, values, secret=True, numbers=numbers)
