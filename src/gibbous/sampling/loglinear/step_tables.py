"""Layout: a log-linear model in, flat whole-number tables out, one set a step, as the kernels read them.

A step redraws one column, or two tied ones together, given all others. Its conditional is a sum
over the cliques that hold the column. They are folded into few joint tables first (the same model:
their sum is looked up at once instead of one by one), each with the step's own axis last, so that
one look-up finds a contiguous run of levels. Logits
are whole numbers, in units of 2**-16 of a doubling: sums of them are exact in any order, so the
drawn bytes do not depend on how a kernel is vectorized.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema
from gibbous.core.tables import LogLinear
from gibbous.sampling.structural_zeros import Rule, rules_of

BITS = 14
UNIT = 1 << BITS  # logit units a doubling
MOST = 96 * UNIT  # bound of what one table says: columns cancel much of what others say of them
FARTHEST = 2 * MOST  # of one theta: sums over a hundred of them stay within int32
PIECES_MOST = 300  # tables of one column; MOST * PIECES_MOST stays above NEVER
FOLD = 1 << 12  # cells up to which cliques of a column are folded into one table
LANES = 8  # levels are padded to a multiple of it (to 2 or 4 for few levels)
NEVER = -(1 << 29)  # logit of padding and of impossible levels
WIDEST = 1 << 16  # levels of a column

# Fields of a step's row in `steps`. A level of two columns is first code x SECOND_SIZE + second code.
FIRST, SECOND, SECOND_SIZE, LEVELS, WIDTH, AT_PIECE, PIECES, AT_RULE, RULES = range(9)
FIELDS = 9
# Fields of a piece's row in `pieces`.
AT_TABLE, AT_TERM, TERMS = range(3)
# Fields of a rule's row in `rules`: the step's own hits, and the other columns.
AT_OWN, AT_OTHER, OTHERS = range(3)


class Flat(NamedTuple):
    """A model as the kernels read it.

    Attributes:
        steps: int64 (columns + blocks, FIELDS): see the fields above; step j redraws column j.
        pieces: int64 (pieces, 3): folded tables; offset, first term, number of terms. A step has
            at least one; padding is impossible in its first one.
        terms: int64 (terms, 2): column, stride in `cells`.
        cells: int32: folded tables of all steps, padded to WIDTH; the largest of a run is 0.
        rules: int64 (rules, 3): structural zeros, one row for each step they bear on.
        others: int64 (entries, 2): column, offset of its hits.
        hits: uint8: 1 where a code takes part in a rule.
    """

    steps: np.ndarray
    pieces: np.ndarray
    terms: np.ndarray
    cells: np.ndarray
    rules: np.ndarray
    others: np.ndarray
    hits: np.ndarray


def flatten(model: LogLinear, rules: tuple[Rule, ...]) -> Flat:
    """Lay a model out for the kernels.

    Args:
        model: cliques and theta.
        rules: structural zeros in codes of the model.
    Raises:
        ResourceLimit: a column has too many levels, or the tables too many cells.
    """
    build = _Builder(model)
    for step in planned(model.cliques, model.sizes, model.blocks):
        build.step(step, rules)
    return build.flat()


class _Builder:
    """Appends step after step."""

    def __init__(self, model: LogLinear) -> None:
        self.model = model
        self.logits = [to_units(theta) for theta in model.theta]
        self.steps: list[tuple[int, ...]] = []
        self.pieces: list[tuple[int, ...]] = []
        self.terms: list[tuple[int, ...]] = []
        self.cells: list[np.ndarray] = []
        self.held = 0
        self.rules: list[tuple[int, ...]] = []
        self.others: list[tuple[int, ...]] = []
        self.hits: list[np.ndarray] = []
        self.marked = 0

    def step(self, planned: Step, rules: tuple[Rule, ...]) -> None:
        columns, sizes = planned.columns, self.model.sizes
        first, first_rule = len(self.pieces), len(self.rules)
        for number, group in enumerate(planned.groups):
            self._piece(group.axes, joint(planned, group, self.logits, sizes), number == 0)
        for rule in rules:
            if set(columns) & set(rule.columns):
                self._rule(columns, rule)
        second, size = (columns[1], sizes[columns[1]]) if len(columns) > 1 else (-1, 1)
        pieces, ruled = len(self.pieces) - first, len(self.rules) - first_rule
        levels = planned.levels
        self.steps.append(
            (columns[0], second, size, levels, padded(levels), first, pieces, first_rule, ruled)
        )

    def _piece(self, axes: tuple[int, ...], table: np.ndarray, first: bool) -> None:
        """Enter a table; padding is impossible in the first one of a step."""
        width = padded(table.shape[-1])
        table = np.maximum(table - table.max(axis=-1, keepdims=True), -MOST)
        wide = np.full((*table.shape[:-1], width), NEVER if first else 0, dtype=np.int32)
        wide[..., : table.shape[-1]] = table
        self.pieces.append((self._put(wide), len(self.terms), len(axes)))
        step = width
        for axis in reversed(axes):
            self.terms.append((axis, step))
            step *= self.model.sizes[axis]

    def _put(self, table: np.ndarray) -> int:
        at = self.held
        self.cells.append(table.ravel())
        self.held += table.size
        if self.held >= 1 << 31:
            raise ResourceLimit(
                "CELLS",
                "The cliques of a log-linear model have more than 2**31 cells.",
                "Cliques are kept below a limit of cells.",
                "Use fewer or smaller cliques.",
            )
        return at

    def _rule(self, columns: tuple[int, ...], rule: Rule) -> None:
        own, first = np.ones(1, dtype=bool), len(self.others)
        hits = dict(zip(rule.columns, rule.hits, strict=True))
        for column in columns:
            every = np.ones(self.model.sizes[column], dtype=bool)
            own = np.logical_and.outer(own, hits.pop(column, every)).ravel()
        at_own = self._mark(own)
        self.others += [(column, self._mark(hit)) for column, hit in hits.items()]
        self.rules.append((at_own, first, len(self.others) - first))

    def _mark(self, hit: np.ndarray) -> int:
        at = self.marked
        self.hits.append(hit.astype(np.uint8))
        self.marked += len(hit)
        return at

    def flat(self) -> Flat:
        return Flat(
            np.array(self.steps, dtype=np.int64).reshape(-1, FIELDS),
            np.array(self.pieces, dtype=np.int64).reshape(-1, 3),
            np.array(self.terms, dtype=np.int64).reshape(-1, 2),
            np.concatenate(self.cells).astype(np.int32),
            np.array(self.rules, dtype=np.int64).reshape(-1, 3),
            np.array(self.others, dtype=np.int64).reshape(-1, 2),
            np.concatenate(self.hits) if self.hits else np.zeros(1, dtype=np.uint8),
        )


def to_units(theta: np.ndarray) -> np.ndarray:
    """Natural logarithms as whole logit units, int32: 0 for the largest, none below -FARTHEST."""
    scaled = (theta - theta.max()) * (UNIT / math.log(2.0))
    whole: np.ndarray = np.rint(np.maximum(scaled, -FARTHEST)).astype(np.int32)
    return whole


def padded(levels: int) -> int:
    """Levels and padding."""
    if levels <= 4:
        return 2 if levels <= 2 else 4
    return -(-levels // LANES) * LANES


@dataclass(frozen=True, slots=True)
class Group:
    """Cliques of a step that are folded into one table.

    Attributes:
        axes: other columns.
        members: of each clique its position, the order of its axes in the table, and their sizes
            there, 1 for a column that it does not hold.
    """

    axes: tuple[int, ...]
    members: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What one step redraws, its levels, and its tables."""

    columns: tuple[int, ...]
    levels: int
    groups: tuple[Group, ...]


@functools.lru_cache(maxsize=8)
def planned(
    cliques: tuple[tuple[int, ...], ...],
    sizes: tuple[int, ...],
    blocks: tuple[tuple[int, int], ...],
) -> tuple[Step, ...]:
    """Which cliques each step looks up, and how: made once for all theta.

    Raises:
        ResourceLimit: a column has too many levels, or is in too many large cliques.
    """
    near: list[set[int]] = [set() for _ in sizes]
    for at, clique in enumerate(cliques):
        for column in clique:
            near[column].add(at)
    steps = []
    for columns in (*((column,) for column in range(len(sizes))), *blocks):
        levels = math.prod(sizes[column] for column in columns)
        if levels > WIDEST:
            raise ResourceLimit(
                "LEVELS",
                f"A log-linear model would redraw {levels} levels at once.",
                f"A column of it, or two tied ones together, have at most {WIDEST}.",
                "Merge rare levels.",
            )
        own = sorted(set().union(*(near[column] for column in columns)))
        groups = fold(columns, [(at, cliques[at]) for at in own], sizes, FOLD)
        if len(groups) > PIECES_MOST:
            raise ResourceLimit(
                "CLIQUES",
                f"A column is in so many large cliques that {len(groups)} tables are needed for it.",
                f"A column has at most {PIECES_MOST} of them.",
                "Use fewer or smaller cliques.",
            )
        steps.append(Step(columns, levels, groups))
    return tuple(steps)


def fold(
    columns: tuple[int, ...],
    own: Sequence[tuple[int, tuple[int, ...]]],
    sizes: tuple[int, ...],
    limit: int,
) -> tuple[Group, ...]:
    """Group the cliques of one step: large ones first, each into the group that it enlarges least.

    Args:
        columns: that the step redraws.
        own: positions and cliques that hold one of them.
        limit: cells of a group's joint table; a single clique may have more.
    Returns:
        Groups; one without cliques where there are none.
    """
    groups: list[tuple[set[int], list[tuple[int, tuple[int, ...]]]]] = []
    levels = padded(math.prod(sizes[column] for column in columns))
    for at, clique in sorted(own, key=lambda one: (-math.prod(sizes[c] for c in one[1]), one[1])):
        others = set(clique) - set(columns)
        best, least = -1, math.inf
        for number, (axes, _) in enumerate(groups):
            if others <= axes:
                best = number
                break
            cells = levels * math.prod(sizes[a] for a in axes | others)
            if cells <= limit and cells < least:
                best, least = number, cells
        if best < 0:
            groups.append((others, [(at, clique)]))
        else:
            groups[best] = (groups[best][0] | others, [*groups[best][1], (at, clique)])
    found = []
    for held, members in groups or [(set(), [])]:
        table = tuple(sorted(held))
        every = table + columns
        placed = tuple(
            (
                at,
                tuple(sorted(range(len(clique)), key=lambda k: every.index(clique[k]))),
                tuple(sizes[a] if a in clique else 1 for a in every),
            )
            for at, clique in members
        )
        found.append(Group(table, placed))
    return tuple(found)


def joint(
    step: Step, group: Group, logits: Sequence[np.ndarray], sizes: tuple[int, ...]
) -> np.ndarray:
    """Sum of a group's logits over (axes, levels of the step), int32."""
    total = np.zeros(tuple(sizes[a] for a in group.axes + step.columns), dtype=np.int32)
    for at, order, shape in group.members:
        total += logits[at].transpose(order).reshape(shape)
    return total.reshape(*total.shape[: len(group.axes)], -1)


def model_rules(model: LogLinear, schema: Schema) -> tuple[Rule, ...]:
    """Structural zeros of a schema in codes of the model (groups of merged columns).

    Raises:
        ValueError: levels that a rule tells apart were merged.
    """
    found = []
    for rule in rules_of(schema):
        hits = []
        for column, hit in zip(rule.columns, rule.hits, strict=True):
            merged = model.merged[column] if model.merged else None
            if merged is None:
                hits.append(hit)
                continue
            group = np.zeros(model.sizes[column], dtype=bool)
            group[merged.groups[hit]] = True
            if (group[merged.groups] != hit).any():
                raise ValueError("levels that a structural zero tells apart were merged")
            hits.append(group)
        found.append(Rule(rule.columns, tuple(hits)))
    return tuple(found)
