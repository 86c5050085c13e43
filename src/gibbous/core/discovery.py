"""What is public about a table without a schema: column names, the privacy unit, and stated facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gibbous.core.column import Column, Level
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import shortly
from gibbous.core.keywords import answering, did_you_mean
from gibbous.core.kinds import is_a
from gibbous.core.readers import readers
from gibbous.core.schema import Schema, Unit

UNKNOWN = ("?",)  # levels of a column before any are bought
WIDEST = 1e15  # of bounds: whole numbers have 15 digits at most
SHARE = 0.5
"""Of rho: what kinds, levels and bounds cost at most unless something else is said."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """A schema that is yet to be bought: everything here is public by its author's word.

    Args:
        names: of all columns of the data, the person identifier among them, in their order.
        unit: the privacy unit, for example Unit("person", "patient", 5).
        numeric: columns that hold numbers; their kind is then not bought.
        date: columns that hold days.
        levels: column name -> its levels, which are then not bought.
        bounds: column name -> (least, greatest) number, which are then not bought, nor the kind; numbers
            beyond become the bound.
        types_are_public: the types of the source's columns are public, so what is released keeps them.
        complete: columns that hold none but their stated levels, as a type says: they have no `other`.
        share: of rho, for everything that is bought before the method starts, at most: the method gets
            what is not needed; 0.01 to 0.9.
    Raises:
        ParameterError: share is something else.
        PrivacyRefused: no unit is given.
        UsageError: a stated fact names a column that is not there, or names one twice.
    """

    names: tuple[str, ...]
    unit: Unit
    numeric: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    levels: tuple[tuple[str, tuple[Level, ...]], ...] = ()
    share: float = SHARE
    bounds: tuple[tuple[str, tuple[float, float]], ...] = ()
    types_are_public: bool = False
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            for name in ("names", "numeric", "date", "complete"):
                object.__setattr__(self, name, _listed(getattr(self, name)))
            levels = [(column, tuple(map(_as_read, own))) for column, own in _pairs(self.levels)]
            bounds = [(column, (float(a), float(b))) for column, (a, b) in _pairs(self.bounds)]
            object.__setattr__(self, "levels", tuple(levels))
            object.__setattr__(self, "bounds", tuple(bounds))
            named = (column for column, _ in (*levels, *bounds))
            texts = (*self.names, *self.numeric, *self.date, *named)
            known = is_a(texts, tuple[str, ...]) and is_a(self.types_are_public, bool)
            whole = {*self.complete} <= dict(levels).keys()
            if not (known and whole and all(a < b for _, (a, b) in bounds)):
                raise TypeError
        except (TypeError, ValueError):
            raise UsageError(
                "DISCOVERY",
                "Names, levels or bounds of a Discovery are of another kind than it takes.",
                "Names are lists of text; a named column has a list of levels, or two bounds, least first; "
                "a complete one has levels.",
                'For example names=["sex", "age"], levels={"sex": ["f", "m"]}, bounds={"age": (0, 120)}.',
            ) from None
        if not isinstance(self.unit, Unit):
            raise no_unit()
        if not is_a(self.share, float) or not 0.01 <= self.share <= 0.9:
            raise ParameterError(
                "SHARE",
                f"The share of discovery is {shortly(self.share)}.",
                "It lies between 0.01 and 0.9: the method gets the rest.",
                f"Leave it out for {SHARE}.",
            )
        self._check_names()
        for name, (low, high) in self.bounds:
            most = max(abs(low), abs(high))
            if not (1 / WIDEST**9 < most <= WIDEST and high - low >= most / 10**9):
                raise UsageError(
                    "BOUNDS",
                    f"The bounds of {name!r} are {low:g} and {high:g}.",
                    f"They lie between -{WIDEST:g} and {WIDEST:g}, further apart than a billionth of them.",
                    "State others, or none: then they are bought.",
                )
        for name, own in self.levels:
            Column(name, "nominal", own)  # refused here, where nothing is spent

    @staticmethod
    @answering
    def of(
        source: object,
        unit: Unit,
        *,
        types_are_public: bool = False,
        options: object = None,
        **stated: Any,
    ) -> Discovery:
        """What is public of a file or a frame, where its author says that its header is.

        Args:
            source: a path or a frame, of which the names alone are read, or names and types.
            unit: the privacy unit.
            types_are_public: types and dictionaries count as stated, too: floats are numbers, days are
                days, booleans, enumerations and categories have their levels.
            options: how text files are read.
            stated: further fields, which come before types.
        """
        known = Discovery(readers().names(source, options), unit, **stated)
        return known.typed(*readers().types(source, options)) if types_are_public else known

    def typed(
        self, numeric: Sequence[str], date: Sequence[str], levels: Mapping[str, tuple[Level, ...]]
    ) -> Discovery:
        """With facts from types, for columns of which nothing is stated yet."""
        stated = {*self._stated(), self.unit.column}
        told = {name: own for name, own in levels.items() if name not in stated}
        return replace(
            self,
            types_are_public=True,
            numeric=(*self.numeric, *(n for n in numeric if n not in stated)),
            date=(*self.date, *(n for n in date if n not in stated)),
            levels=(*self.levels, *told.items()),
            complete=(*self.complete, *told),
        )

    def schema(self) -> Schema:
        """Names and unit as a schema with a placeholder for each column: what is known before the charge."""
        person = self.unit.column
        shells = (Column(name, "nominal", UNKNOWN) for name in self.names if name != person)
        return Schema(tuple(shells), self.unit)

    def to_json(self) -> dict[str, object]:
        """The stated facts, for a plan."""
        found: dict[str, object] = {"share": self.share}
        stated: dict[str, object] = {"numeric": list(self.numeric), "date": list(self.date)}
        stated["complete"] = list(self.complete)
        for fact in ("levels", "bounds"):
            stated[fact] = {name: list(own) for name, own in getattr(self, fact)}
        stated["types_are_public"] = self.types_are_public
        return found | {name: value for name, value in stated.items() if value}

    def _stated(self) -> list[str]:
        pairs = (*self.levels, *self.bounds)
        return [*self.numeric, *self.date, *(name for name, _ in pairs)]

    def _check_names(self) -> None:
        stated = [*self._stated(), *([self.unit.column] if self.unit.column else [])]
        for name in stated:
            if name not in self.names:
                raise UsageError(
                    "NOCOLUMN",
                    f"There is no column {name!r}.",
                    f"Columns are {', '.join(self.names[:20])}.",
                    did_you_mean(name, self.names, "Check the spelling."),
                )
            if stated.count(name) > 1:
                raise UsageError(
                    "TWICE",
                    f"Column {name!r} is stated to be two things.",
                    "A column is numeric, a date, has the levels given, or identifies persons.",
                    "Name it once.",
                )


def _as_read(level: Level) -> Level:
    """True and False as they are counted where a schema is bought."""
    return str(level).lower() if isinstance(level, bool) else level


def no_unit(
    fix: str = 'Pass unit=Unit("row"), or for example Unit("person", "patient", 5).',
) -> PrivacyRefused:
    """The refusal of facts that are to be bought for nobody knows whom."""
    return PrivacyRefused(
        "UNIT",
        "You did not say what one privacy unit is.",
        "A unit is one row, or one person with at most so many rows.",
        fix,
    )


def _pairs(given: Any) -> Any:
    return given.items() if isinstance(given, Mapping) else given


def _listed(names: Sequence[str] | str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
