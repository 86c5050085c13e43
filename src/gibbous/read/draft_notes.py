"""A drafted column -> what its author should check: facts that a draft reads well and means badly."""

from __future__ import annotations

import datetime
import re
from typing import Any, cast

import polars as pl

from gibbous.core.schema import Column
from gibbous.read.text_forms import FEW, NUMBER, as_missing, lookalikes, nothings, number_form

_CODE = re.compile(
    r"(^|[_\W])(zip(_?code)?|post(al)?_?code|plz|fips|icd[0-9]*|drg|ndc|cpt|naics|code)s?($|[_\W])",
    re.I,
)
_FILLED = re.compile(r"-?(9{2,}|8{2,})")  # 99, 999, -99: often typed where a number was missing
_SHARE = 0.5
_FIRST, _LAST = 19_000_101, 21_001_231
_LATEST = datetime.date(2200, 1, 1).toordinal()


def remark(column: Column, values: pl.Series, null: str) -> str:
    """Sentences about a drafted column and its values; empty where nothing is odd."""
    if not column.binned:
        texts = [level for level in column.levels if isinstance(level, str)]
        parts = _words(pl.Series(texts), null) if texts else []
    elif column.kind == "date":
        parts = _days(column)
    else:
        parts = _numbers(column, values)
    return " ".join(parts)


def _words(levels: pl.Series, null: str) -> list[str]:
    parts = []
    absent = nothings(levels, sure=True)
    if absent:
        parts.append(as_missing(absent, null))
    left = levels.filter(~levels.is_in(absent))
    numbers = int(left.str.contains(NUMBER).sum())
    form = number_form(left) if 1 < len(left) != numbers else None
    if form:
        parts.append(
            f"Looks like numbers written {form.how}; here they are words without an order. If they "
            f"are to be numbers, write them {form.plain} and draft again."
        )
    elif numbers > FEW and 0 < len(left) - numbers < numbers:
        parts.append(
            f"{numbers:,} of its {len(left):,} values are numbers; here all are words without an "
            "order. If they are to be numbers, write the others as numbers (90+ as 90) or as one "
            "text that means missing, and draft again."
        )
    alike = lookalikes(left)
    if alike:
        parts.append(
            f"Capitals or outer blanks alone tell {alike:,} of its levels from others: if they mean "
            "the same, write them alike and draft again."
        )
    return parts


def _days(column: Column) -> list[str]:
    parts = []
    form = column.date_format
    if form == "%Y%m%d":
        parts.append("Eight digits that are all days. If they are codes, describe them as levels.")
    elif form is not None and not form.startswith("%Y"):
        parts.append(f"Read as '{form}', the only usual format that all values fit: confirm it.")
    if column.edges[-1] >= _LATEST:
        parts.append(
            "Holds days after the year 2200. If they mean that there is no day, make them missing "
            "and draft again."
        )
    return parts


def _numbers(column: Column, values: pl.Series) -> list[str]:
    parts = []
    if column.integer and _are_days(column, values):
        parts.append(
            "Looks like days written as one number (20240131): bins draw numbers that are not days. "
            "Make them days or text, and draft again."
        )
    if _CODE.search(column.name):
        parts.append(
            "The name says codes. Bins draw numbers that are not codes: describe it as levels, or "
            "group it publicly (the first digits, for example)."
        )
    for end, other in ((column.edges[-1], column.edges[0]), (column.edges[0], column.edges[-1])):
        if _FILLED.fullmatch(f"{end:.15g}") and _stands_apart(end, other, values):
            parts.append(
                f"{end:g} stands far from all other values. If it means missing, make it so and "
                "draft again: it stretches the bounds."
            )
    return parts


def _are_days(column: Column, values: pl.Series) -> bool:
    if not _FIRST <= column.edges[0] <= column.edges[-1] <= _LAST:
        return False
    text = values.drop_nulls().unique().cast(pl.Int64).cast(pl.String)
    return text.str.to_date("%Y%m%d", strict=False).null_count() == 0


def _stands_apart(end: float, other: float, values: pl.Series) -> bool:
    """Whether more than half of the range is empty between one end and all other values."""
    numbers = values.drop_nulls().cast(pl.Float64)
    rest = numbers.filter(numbers != end)
    nearest = cast(Any, rest.max() if end > other else rest.min())
    return rest.len() > 0 and abs(end - nearest) > _SHARE * abs(end - other)
