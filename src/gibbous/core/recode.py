"""Recoding: a table seen under a coarser public schema; maps are public, so nothing is paid for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.column_texts import LENGTHS
from gibbous.core.errors import UsageError
from gibbous.core.schema import (
    SOURCES,
    Column,
    ColumnKind,
    Impossible,
    Level,
    Rule,
    Schema,
    Source,
    Within,
)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Codes of one column joined into groups.

    Attributes:
        groups: int64 (codes of the column,): group of each code, 0..g - 1, each used.
    """

    groups: np.ndarray

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1


@dataclass(frozen=True, slots=True)
class Edges:
    """New bounds and cut points of a numeric column whose numbers are kept (Plan.numbers).

    Attributes:
        edges: as Column.edges; numbers outside are moved to the bounds.
        source: where they come from: declared, or discovered (paid for).
        within: how output numbers lie within the new bins; None for evenly.
    """

    edges: tuple[float, ...]
    source: Source = "declared"
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class Determined:
    """What a column of levels determines, where its rules left that to be bought.

    Attributes:
        maps: name of the group and (level, value) pairs, one a rule.
    """

    maps: tuple[tuple[str, tuple[tuple[str, Level], ...]], ...]


Change = Groups | Edges | Determined


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reading:
    """How codes that number texts become codes under a schema of some of their columns. Secret.

    Attributes:
        schema: public.
        places: of its columns, among those of the texts.
        codes: for each of its columns the code of each text.
        numbers: ((column position, float64 (texts,)), ...): numbers to be kept beside codes.
    """

    schema: Schema
    places: tuple[int, ...]
    codes: tuple[np.ndarray, ...]
    numbers: tuple[tuple[int, np.ndarray], ...]

    def of(self, texts: Codes) -> Codes:
        """The same rows under the schema."""
        values = np.empty((len(self.places), texts.rows), dtype=self.schema.code_dtype())
        for at, (place, codes) in enumerate(zip(self.places, self.codes, strict=True)):
            values[at] = codes.astype(values.dtype)[texts.by_column[place]]
        kept = ((at, found[texts.by_column[self.places[at]]]) for at, found in self.numbers)
        return Codes(self.schema, values.T, texts.secret, tuple(kept))


def recoded_schema(schema: Schema, changes: Mapping[int, Change]) -> Schema:
    """The coarser schema.

    Structural zeros stay where they can still be told: a group counts as impossible when all of its
    codes are; a rule over a column with new edges is dropped. Rules that name a grouped column go.

    Args:
        changes: by column position.
    Raises:
        UsageError: a map does not fit its column.
    """
    columns = list(schema.columns)
    coarser = {at: one for at, one in changes.items() if not isinstance(one, Determined)}
    for place, change in coarser.items():
        columns[place] = _column(columns[place], change)
    rules = tuple(r for r in (_rule(schema, rule, coarser) for rule in schema.impossible) if r)
    grouped = {schema.names[at] for at, change in changes.items() if isinstance(change, Groups)}
    kept = tuple(
        _known(schema, rule, changes)
        for rule in schema.rules
        if not grouped & set(schema.named_by(rule))
    )
    return replace(schema, columns=tuple(columns), impossible=rules, rules=kept)


def recoded(codes: Codes, changes: Mapping[int, Change], schema: Schema | None = None) -> Codes:
    """The same records under the coarser schema, which is computed unless it is given."""
    coarser = schema or recoded_schema(codes.schema, changes)
    values = np.empty((len(coarser), codes.rows), dtype=coarser.code_dtype())
    for place, column in enumerate(codes.by_column):
        change = changes.get(place)
        if change is None or isinstance(change, Determined):
            values[place] = column
        elif isinstance(change, Groups):
            values[place] = change.groups.astype(values.dtype)[column]
        else:
            values[place] = _binned(codes, place, coarser.columns[place])
    return Codes(coarser, values.T, codes.secret, codes.numbers)


def _binned(codes: Codes, place: int, column: Column) -> np.ndarray:
    inner = np.array([float(edge) for edge in column.edges[1:-1]])
    found = np.searchsorted(inner, codes.number(place), side="right").astype(np.int64)
    old = codes.schema.columns[place].missing_code
    if old is not None:
        assert column.missing_code is not None
        found[codes.values[:, place] == old] = column.missing_code
    return found


def _known(schema: Schema, rule: Rule, changes: Mapping[int, Change]) -> Rule:
    """The rule with its map, if it was bought."""
    change = changes.get(schema.index(rule.detail)) if rule.to_buy else None
    maps = dict(change.maps) if isinstance(change, Determined) else {}
    return replace(rule, map=maps[rule.group]) if rule.group in maps else rule


def _column(column: Column, change: Groups | Edges) -> Column:
    if isinstance(change, Edges):
        if not column.binned:
            raise _unfit(column, "new cut points were given to a column without bounds")
        sources = (("bins", change.source),) if change.source != "declared" else ()
        kept = tuple((fact, source) for fact, source in column.sources if fact != "bins")
        return replace(column, edges=change.edges, within=change.within, sources=kept + sources)
    groups = change.groups
    used = np.unique(groups)
    if len(groups) != column.size or not np.array_equal(used, np.arange(len(used))):
        raise _unfit(column, f"a map of {len(groups)} codes into {len(used)} groups")
    bins = _joined_bins(column, groups)
    if bins is not None:
        return replace(column, edges=bins)
    labels = _labels(column, groups)
    ordered = column.ordered and bool(np.all(np.diff(groups[: column.bins]) >= 0))
    kind: ColumnKind = "ordinal" if ordered else "nominal"
    texts = {name: getattr(column, name) for name in LENGTHS}
    return Column(column.name, kind, levels=labels, sources=_kept(column), **texts)


def _joined_bins(column: Column, groups: np.ndarray) -> tuple[float, ...] | None:
    """Edges of a numeric column whose groups are runs of bins, missing apart; else None."""
    if not column.binned:
        return None
    inner = groups[: column.bins]
    steps = np.diff(inner)
    apart = not column.missing or groups[-1] == inner.max() + 1
    if inner[0] != 0 or not np.isin(steps, (0, 1)).all() or not apart:
        return None
    cuts = [column.edges[i + 1] for i in np.flatnonzero(steps)]
    return (column.edges[0], *cuts, column.edges[-1])


def _labels(column: Column, groups: np.ndarray) -> tuple[Level, ...]:
    names = column.labels()
    out: list[Level] = []
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        first = names[members[0]]
        out.append(first if len(members) == 1 else f"{first} and {len(members) - 1} more")
    texts = [str(label) for label in out]
    if len(set(texts)) < len(texts):
        return tuple(f"group {g + 1}" for g in range(len(out)))
    return tuple(out)


def _kept(column: Column) -> tuple[tuple[str, Source], ...]:
    """Sources of a column of groups: its levels are read off whatever its codes were read off."""
    kind = tuple((fact, source) for fact, source in column.sources if fact == "kind")
    rest = [source for fact, source in column.sources if fact != "kind"]
    return (*kind, ("levels", max(rest, key=SOURCES.index))) if rest else kind


def _rule(
    schema: Schema, rule: Impossible, changes: Mapping[int, Groups | Edges]
) -> Impossible | None:
    where = []
    for name, codes in rule.where:
        change = changes.get(schema.index(name))
        if isinstance(change, Edges):
            return None
        if change is not None:
            outside = np.ones(len(change.groups), dtype=bool)
            outside[list(codes)] = False
            whole = set(range(change.count)) - set(change.groups[outside].tolist())
            codes = tuple(sorted(whole))
            if not codes:
                return None
        where.append((name, codes))
    return Impossible(tuple(where))


def _unfit(column: Column, wrong: str) -> UsageError:
    return UsageError(
        "RECODE",
        f"Column {column.name!r}: {wrong}.",
        f"It has {column.size} codes; groups are numbered from 0 without gaps.",
        "Correct the map.",
    )
