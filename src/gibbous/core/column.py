"""One column of a table: its kind, its levels or bins, and where each of these public facts comes from."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Any, Literal

import numpy as np

from gibbous.core.column_texts import LABEL, LENGTHS, allowed_text, unfit_labels, unfit_text
from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite

ColumnKind = Literal["nominal", "ordinal", "binary", "numeric", "date"]
Source = Literal["declared", "discovered", "inferred"]
Level = str | int | float | bool
Bound = float | str | datetime.date | None
MOST_BITS = 4_096  # of a whole number that is a level
FACTS = ("kind", "levels", "bounds", "bins", "missing")
KINDS: tuple[ColumnKind, ...] = ("nominal", "ordinal", "binary", "numeric", "date")
SOURCES: tuple[Source, ...] = ("declared", "discovered", "inferred")


@dataclass(frozen=True, slots=True)
class Within:
    """The law of numbers within the bins of a column: even on each step, steps as they weigh.

    Attributes:
        edges: of the steps, increasing; all edges of the column are among them, the first and the last
            one at the ends. The last two may be equal: a step of the upper bound alone.
        weights: of each step, whole numbers >= 0 in one unit for the whole column; each bin has some.
        noise: standard deviation of the noise of one weight that was bought; 0 if there is none.
    """

    edges: tuple[float, ...]
    weights: tuple[int, ...]
    noise: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """One column.

    Attributes:
        name: as in the data.
        kind: nominal, ordinal (levels in order), binary (two levels), numeric, date.
        levels: of nominal, ordinal and binary columns; text, whole numbers, numbers or booleans.
        edges: of numeric and date columns: lower bound, cut points, upper bound, increasing. Bin i is
            [edges[i], edges[i+1]), the last one closed; dates are proleptic ordinals (whole days).
        integer: numeric values are whole numbers (dates always are).
        decimals: places that float output is rounded to; None keeps full precision.
        clamp: values outside the bounds are moved to the bound; otherwise they are refused.
        missing: a missing value is a level of its own (the last code); otherwise it is refused.
        other: label of a declared catch-all level for values outside `levels`; None refuses them.
        date_format: strptime format of dates in text input; None means ISO 8601 days.
        within: how output numbers lie within their bins; None for evenly. Its source is that of the bins.
        sources: (fact, source) for facts in FACTS whose source is not `declared`.
        label: what the column is, in a few words; None if not given.
        level_labels: (level, what it means), of levels that the column has, in their order.
        description: of the column, in sentences.
        measured_in: unit of measurement, such as "years".
        note: anything else that a reader of the data should know.
        lower, upper: bounds alone, in place of edges: numbers; or days, as dates or ISO text.

    The five texts are public and for people: no code, count, price or row depends on them.
    Codes: levels (or bins) in order, then `other` if declared, then missing if allowed.
    """

    name: str
    kind: ColumnKind
    levels: tuple[Level, ...] = ()
    edges: tuple[float, ...] = ()
    integer: bool = False
    decimals: int | None = None
    clamp: bool = False
    missing: bool = False
    other: str | None = None
    date_format: str | None = None
    within: Within | None = None
    sources: tuple[tuple[str, Source], ...] = ()
    label: str | None = None
    level_labels: tuple[tuple[Level, str], ...] = ()
    description: str | None = None
    measured_in: str | None = None
    note: str | None = None
    lower: InitVar[Bound] = None
    upper: InitVar[Bound] = None

    @classmethod
    def numeric(
        cls,
        name: str,
        *,
        lower: float,
        upper: float,
        cuts: Sequence[float] = (),
        bins: int = 1,
        integer: bool | None = None,
        **more: Any,
    ) -> Column:
        """A numeric column by its public bounds; all of it is declared.

        Args:
            lower, upper: values below and above do not occur (clamp=True moves them).
            cuts: between the bins, increasing. Without any there are `bins` of equal width, or one a
                whole number where these are fewer; with 1, methods that buy tables buy the shape of
                the numbers between the bounds, too.
            integer: values are whole numbers; None where bounds and cuts are written as such and no
                decimals are stated.
            more: further fields, for example missing=True.
        Raises:
            UsageError: the bounds or cuts are not increasing.
        """
        ends: tuple[float, ...] = (lower, *cuts, upper)
        as_written = all(type(end) is int for end in ends) and more.get("decimals") is None
        whole = as_written if integer is None else integer
        if not cuts and bins > 1 and lower < upper:
            count = min(bins, max(int(upper - lower), 1)) if whole else bins
            inner = (lower + (upper - lower) * i / count for i in range(1, count))
            ends = (lower, *(round(cut) if whole else cut for cut in inner), upper)
        return cls(name, "numeric", edges=ends, integer=whole, **more)

    def __repr__(self) -> str:
        # Levels and bounds of a draft were read off the data: they are not shown.
        inferred = ", inferred" if any(source == "inferred" for _, source in self.sources) else ""
        return f"<Column {self.name!r}: {self.kind}, {self.size} codes{inferred}>"

    def __post_init__(self, lower: Bound, upper: Bound) -> None:
        if lower is not None or upper is not None:
            object.__setattr__(self, "edges", _bounds(self, lower, upper))
        if not self.name or not isinstance(self.name, str):
            raise _bad(self, "has no name", "Every column has one, as text", "Set name")
        if self.kind not in KINDS:
            raise _bad(
                self, f"is of kind {self.kind!r}", f"Kinds are {', '.join(KINDS)}", "Set kind"
            )
        for name, members in (("levels", self.levels), ("edges", self.edges)):
            if not isinstance(members, tuple | list) or not all(
                isinstance(v, Level) for v in members
            ):
                raise _bad(
                    self,
                    f"has {name} of the wrong kind",
                    "They are texts and numbers",
                    f"Set {name}",
                )
        if self.integer and self.decimals is not None:
            raise _bad(
                self, "is of whole numbers and has decimals", "It is one or the other", "Drop one"
            )
        if self.binned:
            _check_edges(self)
        else:
            _check_levels(self)
        if self.within is not None:
            _check_within(self, self.within)
        for fact, source in self.sources:
            if fact not in FACTS or source not in SOURCES:
                raise _bad(
                    self,
                    f"has source {source!r} for fact {fact!r}",
                    f"Facts are {', '.join(FACTS)}; sources are {', '.join(SOURCES)}",
                    "Correct sources",
                )
        _check_texts(self)

    @property
    def binned(self) -> bool:
        """Whether codes are bins of an interval (numeric, date)."""
        return self.kind in ("numeric", "date")

    @property
    def bins(self) -> int:
        """Number of levels or bins, without `other` and missing."""
        return len(self.edges) - 1 if self.binned else len(self.levels)

    @property
    def size(self) -> int:
        """Number of codes: levels or bins, `other`, missing."""
        return self.bins + (self.other is not None) + self.missing

    @property
    def other_code(self) -> int | None:
        """Code of the declared catch-all level."""
        return self.bins if self.other is not None else None

    @property
    def missing_code(self) -> int | None:
        """Code of missing."""
        return self.size - 1 if self.missing else None

    @property
    def ordered(self) -> bool:
        """Whether neighboring codes are neighboring values."""
        return self.kind in ("ordinal", "numeric", "date")

    def source(self, fact: str) -> Source:
        """Where a fact comes from."""
        return dict(self.sources).get(fact, "declared")

    def labels(self) -> tuple[str, ...]:
        """One readable label a code, in code order; for tables, reports and codebooks."""
        if self.binned:
            shown = [edge_text(self, e) for e in self.edges]
            names = [f"[{a}, {b})" for a, b in zip(shown, shown[1:], strict=False)]
            names[-1] = names[-1][:-1] + "]"
        else:
            names = [str(level) for level in self.levels]
        if self.other is not None:
            names.append(self.other)
        if self.missing:
            names.append("(missing)")
        return tuple(names)


def _bounds(column: Column, lower: Bound, upper: Bound) -> tuple[Any, ...]:
    if column.edges or lower is None or upper is None or column.kind not in ("numeric", "date"):
        raise _bad(
            column,
            "has lower or upper where they cannot stand",
            "A numeric or date column has both, or edges in their place",
            "Give lower and upper, or edges",
        )
    if column.kind == "numeric":
        return lower, upper
    try:
        ends = [datetime.date.fromisoformat(e) if isinstance(e, str) else e for e in (lower, upper)]
        return tuple(float(end.toordinal()) for end in ends)  # type: ignore[union-attr]
    except (ValueError, AttributeError):
        allowed = "Bounds of days are dates, or text such as '2020-01-31'"
    raise _bad(column, "has a bound that is not a day", allowed, "Correct lower and upper")


def _check_edges(column: Column) -> None:
    edges = column.edges
    finite = all(is_finite(e) for e in edges)
    if len(edges) < 2 or not finite or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        if (
            len(edges) == 2
            and finite
            and edges[0] == edges[1]
            and (column.integer or column.kind == "date")
        ):
            return
        raise _bad(
            column,
            "has bounds or cut points that do not increase",
            "lower < cuts < upper, all finite",
            "Correct lower, upper, cuts or bins",
        )
    if (column.integer or column.kind == "date") and any(e != int(e) for e in edges):
        raise _bad(
            column,
            "is of whole numbers but has fractional cut points",
            "Cut points are whole",
            "Round them",
        )
    if column.levels:
        raise _bad(
            column, "is numeric or a date and has levels", "It has bounds and bins", "Remove levels"
        )
    if column.other is not None:
        raise _bad(
            column,
            "is numeric or a date and has other",
            "Values outside are clamped or refused",
            "Use clamp = true",
        )


def _check_within(column: Column, within: Within) -> None:
    allowed = (
        "Steps increase (the last may be the upper bound alone), have the bounds and cut points of "
        "the bins among their edges, and a whole weight >= 0 each, with some in every bin"
    )
    if not column.binned:
        raise _bad(column, "is categorical and has steps", "It has levels", "Remove steps")
    edges, weights = within.edges, within.weights
    whole = column.integer or column.kind == "date"
    fits = (
        len(weights) == len(edges) - 1
        and all(a < b for a, b in zip(edges[:-1], edges[1:-1], strict=False))
        and len(edges) > 1
        and edges[-2] <= edges[-1]
        and is_finite(within.noise)
        and within.noise >= 0
        and (edges[0], edges[-1]) == (column.edges[0], column.edges[-1])
        and set(column.edges) <= set(edges)
        and not (whole and any(e != int(e) for e in edges))
        and all(type(weight) is int and weight >= 0 for weight in weights)
    )
    if not fits:
        raise _bad(
            column, "has steps that do not fit its bins", allowed, "Correct steps or weights"
        )
    starts = np.searchsorted(np.array(edges[:-1]), np.array(column.edges[:-1]))
    if not np.add.reduceat(np.array(weights, dtype=np.float64), starts).all():
        raise _bad(column, "has a bin without any weight", allowed, "Correct weights")


def _check_levels(column: Column) -> None:
    if not column.levels:
        raise _bad(column, "has no levels", "A categorical column lists them", "Add levels")
    if column.edges:
        raise _bad(column, "is categorical and has bounds", "It has levels", "Use kind = 'numeric'")
    if any(isinstance(v, int) and v.bit_length() > MOST_BITS for v in column.levels):
        raise _bad(column, "has a level of thousands of digits", "Levels are short", "Shorten it")
    seen = [(type(v) is bool, v) for v in column.levels]
    texts = [str(v) for v in column.levels]
    if len(set(seen)) < len(seen) or len(set(texts)) < len(texts):
        raise _bad(column, "lists a level twice", "Levels are unique, as text too", "Remove one")
    if column.kind == "binary" and len(column.levels) != 2:
        raise _bad(
            column,
            f"is binary with {len(column.levels)} levels",
            "Binary has two",
            "Use kind = 'nominal'",
        )
    if column.other is not None and column.other in texts:
        raise _bad(column, "has a level named as its other", "They differ", "Rename other")


def _check_texts(column: Column) -> None:
    for name, most in LENGTHS.items():
        text = getattr(column, name)
        fault = None if text is None else unfit_text(text, most)
        if fault:
            raise _bad(column, f"has a {name} that {fault}", allowed_text(most), f"Correct {name}")
    fault = unfit_labels(column.level_labels, column.levels)
    if fault:
        allowed = f"Labels belong to its levels, one each. {allowed_text(LABEL)}"
        raise _bad(column, fault, allowed, "Correct labels")


def edge_text(column: Column, edge: float) -> str:
    """A bound or cut point as people write it: a day, or a number."""
    if column.kind == "date":
        return datetime.date.fromordinal(int(edge)).isoformat()
    return str(int(edge)) if float(edge).is_integer() else repr(float(edge))


def _bad(column: Column, wrong: str, allowed: str, fix: str) -> UsageError:
    return UsageError(
        "SCHEMA", f"Column {column.name!r} {wrong}.", f"{allowed}.", f"{fix} in the schema."
    )
