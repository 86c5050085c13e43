"""Text that people read as numbers, days or nothing at all, and what a draft says about it.

Input: the different values of a column of text. Output: the form they are written in, and sentences
with the way out. The sentences may show the words for missing, and no other value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

FEW: Final = 20  # values that are well described as levels, whatever they are
NUMBER: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
NOTHING: Final = ("na", "n/a", "#n/a", "nan", "null", ".", "-", "--", "?", "")
MAYBE: Final = ("none", "nil", "missing", "unknown")
MONTHS: Final = r"[A-Za-z]{3,9}"
_CORE = r"[0-9]{1,3}(?:[.,'’_ \x{a0}\x{202f}]?[0-9]{3})*(?:[.,][0-9]+)?"
MARK: Final = r"(?:[$€£¥₹%‰°]|USD|EUR|GBP|CHF|CAD|AUD|JPY|CNY|INR|BRL|SEK|NOK|DKK|PLN|CZK)"
_BETWEEN = "'’ \u00a0\u202f"  # thousands, beside the mark that is none of decimals
_UNIT = (
    r"(?: ?(?i:kg|mg|µg|ml|mm|cm|km|lbs?|oz|ft|yrs?|years?|mo|months?|weeks?|days?|hrs?|hours?"
    r"|min|minutes?|sec|mmhg|bpm)| [A-Za-z])"  # a letter at once would be a code
)
_SHORT_YEAR = r"^([0-9]{1,2}[/.-]){2}[0-9]{2}$"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_ZONE = r"(?:Z| ?[+-][0-9]{2}:?[0-9]{2}| ?[AaPp]\.?[Mm]\.?| UTC)?"
_TIMED = rf"^.*[0-9][ T]{_CLOCK}{_ZONE}$"
_MIDNIGHT = r"[ T]0?0:00(?::00(?:\.0+)?)?Z?$"
_COMPACT = r"^(19|20)[0-9]{6}$"


@dataclass(frozen=True, slots=True)
class Form:
    """A way of writing numbers that no kind reads.

    Attributes:
        pattern: all of a value.
        how: after "numbers written".
        plain: after "Write them".
    """

    pattern: str
    how: str
    plain: str


_BLANKS = Form(r"", "with blanks around them", "without blanks")
_FORMS = (
    Form(
        rf"^[+-]?{_CORE}$",
        "with a comma or a sign between thousands (3,5 or 1,234)",
        "with a point and nothing between thousands (3.5, 1234), or read them by --decimal ',' or --amounts",
    ),
    Form(
        rf"^\(?[+-]? ?{MARK}? ?[+-]?{_CORE} ?{MARK}?\)?$",
        "with a sign (currency, percent, brackets)",
        "as plain numbers (12.50), or read them by --amounts",
    ),
    Form(
        rf"^[+-]?{_CORE}{_UNIT}$",
        "with their unit",
        "as plain numbers (the unit may stand in the name of the column)",
    ),
    Form(
        rf"^{_CLOCK}{_ZONE}$", "as times of day or durations (13:45)", "as hours or minutes (13.75)"
    ),
)


def amount(point: str) -> str:
    """All of a cell: a number whose thousands may be apart, with a sign of what it counts, or in brackets."""
    between = _BETWEEN + ("." if point == "," else ",")
    whole = rf"(?:[0-9]{{1,3}}(?:[{between}][0-9]{{3}})+|[0-9]+)"
    number = rf"(?:{whole}(?:[{point}][0-9]*)?|[{point}][0-9]+)"
    signed = rf"(?:[+-]?\s*{MARK}?\s*|{MARK}?\s*[+-]?){number}\s*{MARK}?"
    return rf"^(?:{signed}|\({MARK}?\s*{number}\s*{MARK}?\))$"


def plain_numbers(cell: pl.Expr, pattern: str, point: str) -> tuple[pl.Expr, pl.Expr]:
    """Which cells (without outer blanks) are numbers of a pattern that no kind reads, and their digits."""
    hit = cell.str.contains(pattern)
    hit &= cell.str.contains(r"[^0-9.+-]" if point == "." else r"[^0-9+-]")
    digits = cell.str.replace_all(f"[^0-9{point}]", "").str.replace(",", ".", literal=True)
    below = cell.str.contains(r"[(-]")
    return hit, pl.when(below).then(digits.str.replace("^", "-")).otherwise(digits)


def number_form(distinct: pl.Series) -> Form | None:
    """The form of numbers that all different values have, if they have one that no kind reads."""
    stripped = distinct.str.strip_chars()
    if stripped.str.contains(NUMBER).all() and (stripped != distinct).any():
        return _BLANKS
    if distinct.str.contains(NUMBER).all():  # codes with leading zeros
        return None
    return next((form for form in _FORMS if distinct.str.contains(form.pattern).all()), None)


@dataclass(frozen=True, slots=True)
class Days:
    """How days are written.

    Attributes:
        forms: strptime formats that all values fit; none if they are not days.
        fault: why no format helps, or nothing.
    """

    forms: tuple[str, ...] = ()
    fault: str = ""


def day_forms(distinct: pl.Series) -> Days:
    """The formats that all different values fit, by the usual ways of writing days; not ISO days."""
    first, end = str(distinct[0]), ""
    if re.search(_TIMED.replace("^.*", ""), first):
        timed = distinct.str.contains(_TIMED)
        days = distinct.str.replace(rf"[ T]{_CLOCK}{_ZONE}$", "")
        if not timed.all() or not (_shapes(days) or _iso(days)):
            return Days()
        midnight = re.search(_MIDNIGHT, first)
        end = midnight.group() if midnight else ""
        if not end or not distinct.str.ends_with(end).all():
            return Days(
                fault="has times of day. Keep the day, or group the times, and draft again."
            )
        distinct = days
    elif distinct.str.contains(_SHORT_YEAR).all():
        return Days(fault="looks like days with years of two digits. Write four, and draft again.")
    shapes = ["%Y-%m-%d"] if _iso(distinct) else _shapes(distinct)
    return Days(tuple(shape + end for shape in shapes if _fits(distinct, shape)))


def _shapes(distinct: pl.Series) -> list[str]:
    """The formats whose outline all values have."""
    mark = next((m for m in "/.-" if m in str(distinct[0])), " ")
    dot = re.escape(mark)
    found = {
        rf"^[0-9]{{4}}{dot}[0-9]{{1,2}}{dot}[0-9]{{1,2}}$": [f"%Y{mark}%m{mark}%d"],
        rf"^[0-9]{{1,2}}{dot}[0-9]{{1,2}}{dot}[0-9]{{4}}$": [
            f"%d{mark}%m{mark}%Y",
            f"%m{mark}%d{mark}%Y",
        ],
        rf"^[0-9]{{1,2}}{dot}{MONTHS}{dot}[0-9]{{4}}$": [f"%d{mark}%b{mark}%Y"],
        rf"^[0-9]{{1,2}}{MONTHS}[0-9]{{4}}$": ["%d%b%Y"],
        rf"^{MONTHS} [0-9]{{1,2}}, [0-9]{{4}}$": ["%b %d, %Y"],
        _COMPACT: ["%Y%m%d"],
    }
    return next((forms for shape, forms in found.items() if distinct.str.contains(shape).all()), [])


def _iso(distinct: pl.Series) -> bool:
    return bool(distinct.str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$").all())


def _fits(distinct: pl.Series, form: str) -> bool:
    return distinct.str.to_date(form, strict=False).null_count() == 0


def nothings(distinct: pl.Series, *, sure: bool = False) -> list[str]:
    """The values that usually mean missing; `sure` leaves out words that are levels as often (none)."""
    known = NOTHING if sure else NOTHING + MAYBE
    return sorted(distinct.filter(distinct.str.to_lowercase().is_in(known)).to_list())


def as_missing(words: list[str], null: str) -> str:
    """How to make one or more words count as missing, where the text `null` does so now."""
    named = ", ".join(repr(w) for w in words)
    if words == [null]:
        return (
            f"If {named} means missing, make it null in the data: only text files take it for that."
        )
    if null or len(words) > 1:
        now = f" (now {null!r})" if null else ""
        return (
            f"If {named} mean missing: only one text can{now}. Write one of them throughout, and "
            "draft again with --null and that text."
        )
    return f"If {named} means missing, draft again with --null {words[0] or repr('')}."


def lookalikes(distinct: pl.Series) -> int:
    """How many values differ from another one only by capitals or outer blanks."""
    folded: Any = distinct.str.strip_chars().str.to_lowercase()
    return len(distinct) - int(folded.n_unique())
