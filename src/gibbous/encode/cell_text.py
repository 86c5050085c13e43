"""Cells as text -> codes that never refuse: classes of cells, and codes under a schema that was bought.

All functions look at one text at a time and are public: a text gives the same code whatever else
there is. The texts themselves are secret.
"""

from __future__ import annotations

import datetime
import re

import numpy as np
import polars as pl

from gibbous.core.column import Column
from gibbous.read.text_forms import NOTHING, NUMBER, amount, plain_numbers

PLACES = 6
DAYS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%d-%b-%Y",
    "%d%b%Y",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y %I:%M %p",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d-%b-%Y %H:%M:%S",
    "%Y%m%d",
)
"""Forms of days, some with a time of day that is cut off, in the order in which they are tried; the last
is tried first, in columns that are stated to be days, and in no others: there it is a whole number."""
COMPACT = DAYS[-1]
EITHER = {
    "%m/%d/%Y": "%d/%m/%Y",
    "%m-%d-%Y": "%d-%m-%Y",
    "%m/%d/%Y %H:%M:%S": "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M": "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p": "%d/%m/%Y %I:%M %p",
}
"""Forms that many days share with another one: such a day is in a class of its own."""

CLOCK = "clock"
HOURS = tuple(f"{hour:02}:00" for hour in range(24))
"""Levels of a column of clock times: each is read as its hour."""

_EITHER = tuple(f"{form} or {EITHER[form]}" for form in EITHER)
_NUMBERS = ("whole", *(f"decimals {n}" for n in range(1, PLACES + 1)), "more decimals")
_AMOUNTS = tuple(f"amounts, {places}" for places in _NUMBERS)
CLASSES = (
    "missing",
    *_NUMBERS,
    *DAYS,
    *_EITHER,
    CLOCK,
    *_AMOUNTS,
    "padded",
    "text",
)
"""Every cell is in exactly one: the first that fits, in this order."""

_WHOLE = r"^[+-]?(0|[1-9][0-9]{0,14})(\.0+)?$"
_LONG = r"^[+-]?[1-9][0-9]{15,}$"  # digits of a code, a card or an account: no number is bought so far out
_POINTED = r"^[+-]?(0|[1-9][0-9]{0,14})?\.([0-9]*?)0*$"
_AMOUNT = amount(".")
_SIGNS = r"[^0-9.+-]"  # some of them are in every amount that is no plain number
_PADDED = r"^[+-]?0[0-9]+(\.[0-9]*)?$"
_CLOCK = r"^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?$"
_AFTER_TIME = r"(:[0-9]{2})(\.[0-9]+)?( ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?$"
_EXACT = 1 << 53
_IDLE_ZEROS = r"(?:\.|(\.[0-9]*[1-9]))0+$"
_YEAR = r"(?:^|[^0-9])[0-9]{4}(?:[^0-9]|$)"
_FOUR_DIGITS = datetime.date(1000, 1, 1).toordinal()
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def classes(texts: pl.Series, column: Column | None = None) -> np.ndarray:
    """The class of each text (null is missing), int32 (texts,): positions in CLASSES.

    It hangs on the text alone, and on whether the column's form is COMPACT: it is stated to be days.
    """
    cells = texts.str.strip_chars()
    out = np.full(len(cells), CLASSES.index("text"), dtype=np.int32)
    free = ~_missing(cells)
    out[~free] = 0

    def settle(mask: pl.Series | np.ndarray, code: int | np.ndarray) -> None:
        hit = free & np.asarray(mask, dtype=bool)
        out[hit] = code[hit] if isinstance(code, np.ndarray) else code
        free[hit] = False

    if column is not None and column.date_format == COMPACT:
        settle(_ordinals(cells, COMPACT) > 0, CLASSES.index(COMPACT))
    settle(_like(cells, _WHOLE), 1)
    settle(_like(cells, _PADDED), CLASSES.index("padded"))
    settle(_like(cells, _POINTED), 1 + _places(cells))
    number = _like(cells, NUMBER) & ~_like(cells, _LONG)
    settle(number & np.isfinite(_floats(cells)), 2 + PLACES)
    if not (free & _like(cells, "[0-9]")).any():
        return out
    days = {form: _ordinals(cells, form) > 0 for form in DAYS[:-1]}
    for form, other in EITHER.items():
        settle(days[form] & days[other], CLASSES.index(f"{form} or {other}"))
    for form, those in days.items():
        settle(those, CLASSES.index(form))
    settle(_like(cells, _CLOCK), CLASSES.index(CLOCK))
    written = _without_signs(cells)
    few = _like(written, _POINTED) | _like(written, _WHOLE)
    settle(few & _like(cells, _AMOUNT), CLASSES.index(_AMOUNTS[0]) + _places(written))
    return out


def whole_text(texts: pl.Series) -> pl.Series:
    """Whole numbers as they are written shortest, without signs ($5 as 5); null for everything else."""
    cells = _without_signs(texts.str.strip_chars())
    numbers = cells.str.replace(r"^\+", "").str.replace(r"\.0+$", "").cast(pl.Int64, strict=False)
    return pl.select(pl.when(cells.str.contains(_WHOLE)).then(numbers)).to_series().cast(pl.String)


def plain_text(texts: pl.Series, column: Column | None = None) -> pl.Series:
    """Texts without outer blanks; null for what means missing, unless it is a level of the column."""
    cells = texts.str.strip_chars()
    missing = pl.Series(_missing(cells))
    if column is not None and not column.binned:
        missing &= ~cells.is_in(list(_written(column))).fill_null(value=False)
    return cells.set(missing, None)


def lenient(column: Column) -> bool:
    """Whether a column was bought: then no cell is refused, whoever reads records under it."""
    return column.source("missing") == "discovered"


def column_codes(values: pl.Series, column: Column) -> np.ndarray:
    """`lenient_codes` of a whole column, of any type: once a distinct value."""
    texts = as_cells(values, column.date_format).to_frame("text")
    distinct = texts["text"].unique()
    codes = pl.DataFrame({"text": distinct, "code": lenient_codes(distinct, column)})
    joined = texts.join(codes, on="text", how="left", nulls_equal=True, maintain_order="left")
    found: np.ndarray = joined["code"].to_numpy()
    return found


def column_numbers(values: pl.Series, column: Column) -> np.ndarray:
    """Numbers of a binned column within its bounds, float64 (rows,); the lower bound for what is none."""
    low, high = float(column.edges[0]), float(column.edges[-1])
    read = _read(plain_text(as_cells(values, column.date_format)), column)
    return np.clip(np.where(np.isfinite(read), read, low), low, high)


def numbers_as_read(values: pl.Series, column: Column) -> np.ndarray:
    """Numbers, or days as ordinals, before any is moved to a bound, float64 (rows,); nan for what is none."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return _read(plain_text(as_cells(values, column.date_format)), column)


def moved(values: pl.Series, column: Column, codes: np.ndarray) -> np.ndarray:
    """Which cells, bool (rows,), a schema that refused none shows as something else.

    That is other, missing, a bound, or another level; `codes` are those of the cells.
    """
    if not column.binned and not lenient(column):
        return np.asarray(codes == (-1 if column.other_code is None else column.other_code))
    if column.binned:
        read = numbers_as_read(values, column)
        kept = (read >= column.edges[0]) & (read <= column.edges[-1])
        if kept.all():
            return ~kept
    cells = plain_text(as_cells(values, column.date_format), column)
    if not column.binned:
        if all(type(level) is int for level in column.levels):
            known = pl.Series(list(_written(column)))
            kept = whole_text(cells).is_in(known).fill_null(value=False).to_numpy()
        else:
            kept = _level_codes(cells, column) >= 0
    null = cells.is_null().to_numpy()
    shown: np.ndarray = kept | (null & (column.missing_code is not None))
    return ~shown


def as_cells(values: pl.Series, form: str | None = None) -> pl.Series:
    """A column of any type as the text of its cells; days that are not text in a form, or as ISO 8601.

    The type of a column of numbers often hangs on one record (a missing cell makes pandas' integers
    floats), so a number has one text in all of them: the shortest, and beyond 2^53 that of its float.
    """
    if form and values.dtype == pl.Date:
        values = values.cast(pl.Datetime)
    if isinstance(values.dtype, pl.Datetime):
        return values.dt.to_string(form or "%Y-%m-%d %H:%M:%S")
    if values.dtype.is_integer():
        ends = [int(end or 0) for end in (values.min(), values.max())]  # type: ignore[arg-type]
        if max(map(abs, ends)) <= _EXACT:
            return values.cast(pl.String)
        values = values.cast(pl.Float64)
    texts = values.cast(pl.String)
    return texts.str.replace(_IDLE_ZEROS, "${1}") if values.dtype.is_numeric() else texts


def lenient_codes(texts: pl.Series, column: Column) -> np.ndarray:
    """Codes of texts (null is missing) under a column, int32 (texts,); none is refused.

    Numbers and days beyond the bounds are moved to them. What does not parse, or is not a level, becomes
    other, else missing; what is missing becomes missing, else other. Without either it becomes the
    first level, or the middle bin: that is for the few cells that noisy counts do not show.
    """
    cells = plain_text(texts, column)
    usual = column.bins // 2 if column.ordered else 0
    if column.binned:
        read = _read(cells, column)
        fits = np.isfinite(read)
        cuts = np.array(column.edges[1:-1], dtype=np.float64)
        codes = np.searchsorted(cuts, np.where(fits, read, 0.0), side="right").astype(np.int32)
    else:
        codes = _level_codes(cells, column)
        fits = codes >= 0
    stray = _first(column.other_code, column.missing_code, usual)
    absent = _first(column.missing_code, column.other_code, usual)
    codes[~fits] = stray
    codes[cells.is_null().to_numpy()] = absent
    return codes


def _read(cells: pl.Series, column: Column) -> np.ndarray:
    """Numbers, or days as ordinals; nan for what is none."""
    if column.kind == "date":
        days = _ordinals(cells, column.date_format or "%Y-%m-%d").astype(np.float64)
        return np.where(days > 0, days, np.nan)
    cells = _without_signs(cells)
    return _floats(cells.set(~cells.str.contains(NUMBER).fill_null(value=False), None))


def _level_codes(cells: pl.Series, column: Column) -> np.ndarray:
    """Codes of levels, -1 for what is none; numbers beyond a run of whole numbers are moved to its ends."""
    levels = column.levels
    if levels == HOURS:
        hours = cells.str.extract(_CLOCK, 1).cast(pl.Int32, strict=False).fill_null(-1)
        return np.array(hours.to_numpy(), dtype=np.int32)
    if any(type(level) is not int for level in levels):
        known, texts = _written(column), cells.fill_null("").to_list()
        found = [known[text] if text in known else known.get(_shortest(text), -1) for text in texts]
        return np.array(found, dtype=np.int32)
    numbers = whole_text(cells).cast(pl.Int64)
    places = np.array(levels, dtype=np.int64)
    given = numbers.fill_null(0).to_numpy()
    if column.other is None and places[-1] - places[0] == len(places) - 1:
        given = np.clip(given, places[0], places[-1])
    order = np.argsort(places)
    at = np.minimum(np.searchsorted(places[order], given), len(places) - 1)
    codes = np.where(places[order][at] == given, order[at], -1).astype(np.int32)
    codes[numbers.is_null().to_numpy()] = -1
    return codes


def _written(column: Column) -> dict[str, int]:
    """Code of each level by its text; a level that is a number may be written shortest, too."""
    known = {str(level): code for code, level in enumerate(column.levels)}
    return {_shortest(text): code for text, code in known.items()} | known


def _shortest(text: str) -> str:
    return re.sub(_IDLE_ZEROS, r"\1", text) if re.match(NUMBER, text) else text


def _first(*codes: int | None) -> int:
    return next(code for code in codes if code is not None)


def _missing(cells: pl.Series) -> np.ndarray:
    words = cells.fill_null("").str.to_lowercase().is_in(NOTHING)
    return np.asarray(words.to_numpy(), dtype=bool)


def _without_signs(cells: pl.Series) -> pl.Series:
    """$1,234.50, 12 % and (3.00) as 1234.50, 12 and -3.00; other cells, such as 0,125, as they are."""
    if not cells.str.contains(_SIGNS).any():
        return cells
    hit, digits = plain_numbers(pl.col("cell"), _AMOUNT, ".")
    plain = pl.when(hit & ~digits.str.contains(_PADDED)).then(digits).otherwise(pl.col("cell"))
    return cells.to_frame("cell").select(plain.alias("cell")).to_series()


def _places(cells: pl.Series) -> np.ndarray:
    """Decimal places of pointed numbers, int64 (cells,): 0 to PLACES, and one more for all above."""
    found = cells.str.extract(_POINTED, 2).str.len_chars().fill_null(0).to_numpy()
    return np.asarray(np.minimum(found.astype(np.int64), PLACES + 1))


def _like(cells: pl.Series, pattern: str) -> np.ndarray:
    return np.asarray(cells.str.contains(pattern).fill_null(value=False).to_numpy(), dtype=bool)


def _floats(cells: pl.Series) -> np.ndarray:
    read: np.ndarray = cells.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    return read


def _ordinals(cells: pl.Series, form: str) -> np.ndarray:
    """Days in one form as proleptic ordinals, 0 for what is none; years 1 to 9999, in four digits.

    Of a form with a time of day, fractions of a second and a zone are cut off before: the day is that
    which is written.
    """
    if "%M" in form:
        cells = cells.str.replace(_AFTER_TIME, "${1}")
    elif form == COMPACT:
        cells = cells.set(~cells.str.contains("^[0-9]{8}$"), None)
    days = cells.str.to_date(form, strict=False, exact=True).to_physical().cast(pl.Int64)
    ordinals = (days + _EPOCH).fill_null(0).to_numpy()
    early = (ordinals > 0) & (ordinals < _FOUR_DIGITS)
    if early.any():
        ordinals = np.where(early & ~_like(cells, _YEAR), 0, ordinals)
    return np.where((ordinals > 0) & (ordinals <= datetime.date.max.toordinal()), ordinals, 0)
