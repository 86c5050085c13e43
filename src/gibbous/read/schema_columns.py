"""One [[column]] or [[impossible]] table of a schema document -> Column or Impossible."""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from typing import Any

from gibbous.core.column_texts import LENGTHS
from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite
from gibbous.core.schema import FACTS, KINDS, SOURCES, Column, Impossible, Level, Source, Within
from gibbous.read.edges import calendar, day_format, equal_width, facts
from gibbous.read.fields import Fields, bad, listed, nearest, shown

Value = partial[float]
MISSING = "(missing)"
MAX_BINS = 1_000_000


def read_column(table: Fields) -> Column:
    """One [[column]] table; UsageError for a key that is unknown, missing, mistyped or out of range."""
    name = table.text("name")
    if not name:
        raise table.need("name", "Every column has a name, as in the data")
    table.where = f"column {shown(name)}"
    kind = table.text("kind")
    allowed = f"It is one of {', '.join(KINDS)}"
    if kind is None:
        raise table.need("kind", allowed)
    kind = table.among("kind", kind, KINDS, allowed)
    binned = kind in ("numeric", "date")
    rest: dict[str, Any] = {"missing": table.flag("missing")}
    if binned:
        rest |= _bins(table, kind)
    else:
        rest |= {"levels": _levels(table, kind), "other": table.text("other")}
    sources = _sources(table, binned)
    texts: dict[str, Any] = {key: table.text(key) for key in LENGTHS}
    texts["level_labels"] = _level_labels(table, rest.get("levels", ()))
    table.finish()
    return Column(name, kind, sources=sources, **rest, **texts)


def read_rule(table: Fields, columns: Mapping[str, Column]) -> Impossible:
    """One [[impossible]] table: column name -> levels, a range of whole bins, or "(missing)".

    UsageError where it names a column or a level that the schema does not have.
    """
    where = []
    for name in table.keys():  # noqa: SIM118 - Fields is not a mapping
        given = table.any(name)
        if name not in columns:
            raise bad(
                f"{table.where} names {shown(name)}, which is not a column",
                f"Columns are {listed(columns)}",
                nearest(name, columns) or "Correct it",
                name="UNKNOWNKEY",
            )
        where.append((name, _codes(table, columns[name], given)))
    if not where:
        raise bad(f"{table.where} is empty", "It names at least one column", "Remove it")
    return Impossible(tuple(where))


def _levels(table: Fields, kind: str) -> tuple[Level, ...]:
    levels = table.list("levels")
    if levels is None:
        raise table.need("levels", f"A {kind} column lists its levels")
    for level in levels:
        plain = isinstance(level, str | int | float) and not isinstance(level, datetime.date)
        if not plain or (isinstance(level, float) and not math.isfinite(level)):
            raise table.wrong(
                "levels",
                "hold something that is neither text, a finite number nor true or false",
                "Levels are text, numbers, true or false; days belong in kind = 'date'",
            )
    return tuple(levels)


def _level_labels(table: Fields, levels: tuple[Level, ...]) -> tuple[tuple[Level, str], ...]:
    """The table `labels`: its keys are texts of levels, `true` and `false` as TOML writes them."""
    given = table.any("labels")
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise table.wrong("labels", "is not a table", "It maps levels to what they mean")
    if not levels and given:
        raise table.wrong("labels", "were given", "Levels have labels, bins have none", "Remove it")
    left = {str(key): label for key, label in given.items()}
    texts = [str(level) for level in levels]
    found = []
    for level, key in zip(levels, texts, strict=True):
        as_toml = key.lower() if isinstance(level, bool) and key.lower() not in texts else key
        for name in dict.fromkeys((key, as_toml)):
            if name in left:
                found.append((level, left.pop(name)))
    for key in left:
        raise table.wrong(
            "labels",
            f"names {shown(key)}, which is not a level",
            f"Levels are {listed(levels)}",
            nearest(key, map(str, levels)),
        )
    return tuple(found)


def _bins(table: Fields, kind: str) -> dict[str, Any]:
    date = kind == "date"
    whole = date or table.flag("integer")
    value = partial(_value, table, date=date, whole=whole)
    ends = []
    for key in ("lower", "upper"):
        end = table.any(key)
        if end is None:
            raise table.need(key, "Numeric and date columns have public bounds")
        ends.append(value(key, end))
    edges = _edges(table, ends[0], ends[1], value, whole=whole)
    found: dict[str, Any] = {"edges": edges, "clamp": table.flag("clamp")}
    found["within"] = _within(table, ends[0], ends[1], value)
    if date:
        form = table.text("format")
        if form is not None and not day_format(form, timed=True):
            raise table.wrong(
                "format",
                "does not name one day",
                "It has year (%Y), month (%m, %b or %B) and day (%d), each once, or %Y and %j; "
                "a time of day (%H, %I, %M, %S, %p) is cut off",
            )
        return found | {"date_format": form}
    decimals = table.whole("decimals", 0)
    if decimals is not None and (whole or decimals > 15):
        raise table.wrong(
            "decimals", f"is {decimals}", "It is 0 to 15, for columns that are not integer"
        )
    return found | {"integer": whole, "decimals": decimals}


def _edges(
    table: Fields, lower: float, upper: float, value: Value, *, whole: bool
) -> tuple[float, ...]:
    ways = [key for key in ("bins", "cuts", "by") if key in table]
    if len(ways) > 1 or ("by" in table and not value.keywords["date"]):
        raise table.wrong(
            " and ".join(ways), "were given", "One of bins or cuts (dates: or by)", "Keep one"
        )
    if lower > upper:
        raise table.wrong("lower", "is above upper", "lower < upper", "Swap them")
    cuts = table.list("cuts")
    by = table.text("by")
    bins = table.whole("bins", 1) or 1
    if cuts is not None:
        return (lower, *(value("cuts", cut) for cut in cuts), upper)
    if by is not None:
        table.among("by", by, ("day", "month", "year"), "It is day, month or year")
        return calendar(int(lower), int(upper), by)
    most = max(int(upper) - int(lower), 1) if whole else MAX_BINS
    if bins > most:
        raise table.wrong(
            "bins",
            f"is {bins}, more than the values allow",
            f"At most {most} (bins are half-open, the last one is closed)",
            "Use fewer bins, or kind = 'ordinal' with one level a value,",
        )
    return equal_width(lower, upper, bins, whole=whole)


def _within(table: Fields, lower: float, upper: float, value: Value) -> Within | None:
    steps, weights = table.list("steps"), table.list("weights")
    if steps is None and weights is None:
        return None
    if steps is None or weights is None:
        raise table.wrong(
            "steps and weights", "do not come together", "Each step has its weight", "Give both"
        )
    if any(type(weight) is not int for weight in weights):
        raise table.wrong("weights", "hold something else", "They are whole numbers >= 0")
    inner = (value("steps", step) for step in steps)
    noise = table.any("weights_noise")
    if noise is not None and (isinstance(noise, bool) or not isinstance(noise, int | float)):
        raise table.wrong("weights_noise", "is not a number", "It is a standard deviation >= 0")
    return Within((lower, *inner, upper), tuple(weights), float(noise or 0.0))


def _value(table: Fields, key: str, value: object, *, date: bool, whole: bool) -> float:
    if date:
        day = as_day(value)
        if day is None:
            raise table.wrong(key, "is not a day", "A date (1990-01-31) or ISO text")
        return day.toordinal()
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        raise table.wrong(key, "is not a finite number", "Finite numbers")
    if whole and not -(2**63) <= value < 2**63:
        raise table.wrong(key, "does not fit 64 bits", "Whole numbers within -2^63 and 2^63 - 1")
    if whole and value == int(value):
        return int(value)
    return value if isinstance(value, int) and float(value) != value else float(value)


def as_day(value: object) -> datetime.date | None:
    """A TOML date, or ISO text of a day; None for anything else."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str) and len(value) == 10:
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return None
    return None


def _sources(table: Fields, binned: bool) -> tuple[tuple[str, Source], ...]:
    one, each = table.text("source"), table.any("sources")
    if one is not None and each is not None:
        raise table.wrong("source and sources", "were given", "One of them", "Keep one")
    given: Any = each or {} if one is None else dict.fromkeys(facts(binned), one)
    if not isinstance(given, Mapping):
        raise table.wrong("sources", "is not a table", "It maps facts to sources")
    for fact, source in given.items():
        table.among("sources", fact, FACTS, f"Facts are {', '.join(FACTS)}")
        table.among("source", source, SOURCES, f"Sources are {', '.join(SOURCES)}")
    return () if one == "declared" else tuple(given.items())


def _codes(table: Fields, column: Column, given: object) -> tuple[int, ...]:
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list):
        return tuple(sorted({_code_of(table, column, item) for item in given}))
    part = Fields(given, f"{table.where}, column {shown(column.name)}")
    found: set[int] = set()
    for item in part.list("levels") or []:
        found.add(_level_code(table, column, item))
    for item in part.list("bins") or []:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < column.bins:
            raise part.wrong("bins", "names no bin of this column", f"0 to {column.bins - 1}")
        found.add(item)
    if "lower" in part or "upper" in part:
        found |= set(_range_codes(part, column))
    for key, code in (("missing", column.missing_code), ("other", column.other_code)):
        if part.flag(key):
            if code is None:
                raise part.wrong(
                    key, "is not a level of this column", "The column declares it first"
                )
            found.add(code)
    part.finish()
    return tuple(sorted(found))


def _code_of(table: Fields, column: Column, item: object) -> int:
    try:
        return _level_code(table, column, item)
    except UsageError:
        if item == MISSING and column.missing_code is not None:
            return column.missing_code
        if item == column.other and column.other_code is not None:
            return column.other_code
        raise


def _level_code(table: Fields, column: Column, item: object) -> int:
    for same in (True, False):
        for code, level in enumerate(column.levels):
            alike = type(level) is type(item) if same else bool not in (type(level), type(item))
            if alike and level == item:
                return code
    what = f"names {shown(item)}, which column {shown(column.name)} does not have"
    allowed = f"Its levels are {listed(column.labels())}"
    if column.binned:
        allowed = 'A numeric or date column takes {lower = , upper = } or "(missing)"'
    raise bad(
        f"{table.where} {what}",
        allowed,
        nearest(str(item), map(str, column.levels)) or "Correct it",
    )


def _range_codes(part: Fields, column: Column) -> range:
    if not column.binned:
        raise part.wrong("lower", "was given for a column of levels", "It lists levels")
    date, whole = column.kind == "date", column.integer or column.kind == "date"
    ends = [column.edges[0], column.edges[-1]]
    for i, key in enumerate(("lower", "upper")):
        if key in part:
            ends[i] = _value(part, key, part.any(key), date=date, whole=whole)
    # Whole numbers and days: upper is included. Elsewhere it is the open end of the last bin.
    stop = ends[1] + 1 if whole and ends[1] != column.edges[-1] else ends[1]
    first, last = bisect_left(column.edges, ends[0]), bisect_left(column.edges, stop)
    inner = column.edges[:-1]
    if column.bins == 1 and tuple(ends) == column.edges:
        return range(1)
    if ends[0] not in inner or stop not in column.edges or last <= first:
        raise part.wrong(
            "the range",
            "does not cover whole bins",
            "lower is the start of a bin; upper is the last value of a bin"
            + (" (included)" if whole else ", that is, a cut point or the upper bound"),
        )
    return range(first, last)
