"""Bounds -> edges of bins; and what the facts of a column of bins or of levels are."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

from gibbous.core.exact import exact
from gibbous.core.schema import FACTS, Source

_DIRECTIVES = re.compile(r"%(.)")
_DAY_FORMATS = ({"Y", "m", "d"}, {"Y", "b", "d"}, {"Y", "B", "d"}, {"Y", "j"})
_TIMES = set("HIMSp")


def facts(binned: bool) -> tuple[str, ...]:
    """The facts that a column of this sort has."""
    return tuple(f for f in FACTS if f not in (("levels",) if binned else ("bounds", "bins")))


def equal_width(lower: float, upper: float, bins: int, *, whole: bool) -> tuple[float, ...]:
    """Edges of `bins` >= 1 bins of (nearly, for whole numbers) equal width, bins + 1 of them.

    Of whole numbers and dates, which stay exact, there are at most upper - lower bins, and the last
    one includes `upper`.
    """
    if whole:
        count = int(upper) - int(lower) + 1
        starts = (int(lower) + i * count // bins for i in range(bins))
        return (*starts, int(upper))
    low, width = exact(lower), exact(upper) - exact(lower)
    inner = tuple(float(low + width * Fraction(i, bins)) for i in range(bins))
    return (*inner, float(upper))


def calendar(lower: int, upper: int, by: str) -> tuple[float, ...]:
    """Edges of one bin a "day", "month" or "year" between ordinals of days; the last is included."""
    if by == "day":
        return (*range(lower, max(upper, lower + 1)), upper)
    first, last = datetime.date.fromordinal(lower), datetime.date.fromordinal(upper)
    months = range(first.year * 12 + first.month, last.year * 12 + last.month)
    starts = [datetime.date(m // 12, m % 12 + 1, 1) for m in months]
    if by == "year":
        starts = [s for s in starts if s.month == 1]
    cuts = [s.toordinal() for s in starts if lower < s.toordinal() < upper]
    return (lower, *cuts, upper)


def day_format(form: str, *, timed: bool = False) -> bool:
    """Whether a strptime format names one day: year, month and day, each once, and nothing else.

    With `timed`, a time of day may follow, which is cut off.
    """
    used = _DIRECTIVES.findall(form)
    days = set(used) - (_TIMES if timed else set())
    return len(used) == len(set(used)) and days in _DAY_FORMATS


def all_inferred(*, binned: bool) -> tuple[tuple[str, Source], ...]:
    """Sources of a column whose every fact was read off the data."""
    source: Source = "inferred"
    return tuple((fact, source) for fact in facts(binned))
