"""Noisy counts of the classes of cells in, kinds of columns out: public rules, no record."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from gibbous.encode.cell_text import CLASSES, CLOCK, DAYS, EITHER, PLACES

DOUBT = 2.8  # standard deviations of text, or of numbers with leading zeros, that noise alone seldom reaches
LETTERS = 0.01  # share of text from which on a column is no column of numbers
WHOLE = 0.2  # share of whole ones among decimals from which on they may be codes, as 250 and 250.8
SPOILED = 0.05  # share of other cells from which on a column is no column of days
PLACED = 0.01  # share of numbers that may have more places than a column keeps
STANDS_OUT = 4.2  # standard deviations of one number of places that noise alone seldom reaches
SPURIOUS = 0.01  # probability that any column of a table gets a missing level that it does not need
AMOUNTS = "Signs are left out: $1,234.50 is read as 1234.50, 12 % as 12, and (3) as -3."
_NUMBERS = slice(1, 3 + PLACES)
_AMOUNTS = slice(-4 - PLACES, -2)
_PLACES = np.arange(1, 2 + PLACES)


@dataclass(frozen=True, slots=True)
class Outline:
    """What the noisy classes of a column say.

    Attributes:
        name: of the column.
        kind: numbers, days, clock times, or texts that are levels.
        missing: whether noisy counts show missing cells (or, of numbers and days, others that do not
            parse).
        present: noisy number of cells that are not missing.
        sigma: standard deviation of that number.
        integer: numbers are whole.
        decimals: places of numbers; None for any.
        form: of days.
        stated: whether the kind is public.
        unsure: numbers with some text beside them, which may be codes.
        otherwise: of levels, most of which are numbers or days: the same as these, and text as missing.
        note: what a reader of the column should know.
    """

    name: str
    kind: Literal["numeric", "date", "clock", "levels"]
    missing: bool
    present: float
    sigma: float = 0.0
    integer: bool = False
    decimals: int | None = None
    form: str | None = None
    stated: bool = False
    unsure: bool = False
    otherwise: Outline | None = None
    note: str | None = None


def outline(
    name: str,
    counts: np.ndarray,
    *,
    sigma: float,
    rows: float,
    stated: str = "",
    clear: float | None = None,
) -> Outline:
    """The kind of a column, from the noisy counts of the classes of its cells.

    Args:
        counts: float64 (classes,), in the order of `CLASSES`.
        sigma: standard deviation of one count.
        rows: noisy number of rows.
        stated: the kind, where it is public.
        clear: standard deviations from which on a column has missing cells; None: as for one column.
    """
    present = max(rows - float(counts[0]), 0.0)
    clear = clear_of_noise(1) if clear is None else clear
    text, amounts = float(counts[-2:].sum()), float(counts[_AMOUNTS].sum())
    if amounts <= STANDS_OUT * sigma * math.sqrt(1 + PLACES):
        amounts = 0.0
    by_places = counts[_NUMBERS] + counts[_AMOUNTS] * bool(amounts)
    numbers, few = float(by_places.sum()), max(LETTERS * present, 5 * sigma)
    form, days = _usual_form(counts)
    fits = {"numeric": numbers, "date": days, CLOCK: float(counts[CLASSES.index(CLOCK)])}
    some = fits | {"levels": max(text, 4 * sigma)}
    usual = kind = max(some, key=lambda kind: some[kind])
    if kind == "numeric" and text + amounts > few:
        kind = "levels"
    if kind in ("date", CLOCK) and present - fits[kind] > max(SPOILED * present, 6 * sigma):
        kind = "levels"
    kind = stated or kind
    otherwise = None
    if kind != usual in ("numeric", "date") and not stated and counts[-2] <= STANDS_OUT * sigma:
        found = outline(name, counts, sigma=sigma, rows=rows, stated=usual, clear=clear)
        otherwise = replace(
            found, missing=found.missing or text > few or usual == "date", present=fits[usual],
            sigma=sigma * math.sqrt(len(counts)), stated=False, unsure=bool(counts[1] > WHOLE * numbers),
        )  # fmt: skip
    cells = len(by_places) * (1 + bool(amounts)) if kind == "numeric" else 2
    spoiled = rows - fits.get(kind, rows) > clear * sigma * math.sqrt(1 + cells)
    places = _decimals(by_places, sigma)
    return Outline(
        name,
        kind,  # type: ignore[arg-type]
        missing=bool(counts[0] > clear * sigma or spoiled),
        present=present,
        sigma=1.5 * sigma,  # of the missing cells, and of the number of rows
        integer=kind == "numeric" and places == 0,
        decimals=places or None if places <= PLACES else None,
        form=form if kind == "date" and form != DAYS[0] else None,  # ISO days need no form
        stated=bool(stated),
        unsure=kind == "numeric"
        and not stated
        and float(counts[-2:].max()) > max(LETTERS / 2 * present, DOUBT * sigma),
        otherwise=otherwise,
        note=AMOUNTS if kind == "numeric" and amounts > SPOILED * numbers else None,
    )


def clear_of_noise(columns: int) -> float:
    """Standard deviations that noise alone exceeds in any of four looks at each column with 1 %."""
    return NormalDist().inv_cdf(1 - SPURIOUS / (4 * columns))


def _usual_form(counts: np.ndarray) -> tuple[str, float]:
    """The form of days that most cells have, and the noisy number that have it."""
    number = {form: float(counts[CLASSES.index(form)]) for form in DAYS}
    for form, other in EITHER.items():
        both = float(counts[CLASSES.index(f"{form} or {other}")])
        usual = form if number[form] >= number[other] else other
        number[usual] += both
    form = max(number, key=lambda form: number[form])
    return form, number[form]


def _decimals(by_places: np.ndarray, sigma: float) -> int:
    """Places that all numbers but a few have, 0 for whole ones; PLACES + 1 for more."""
    numbers = float(by_places.sum())
    for places in range(PLACES + 1):
        beyond = by_places[1:][places < _PLACES]
        few, spread = PLACED * numbers, 4 * sigma * math.sqrt(len(beyond))
        seldom = beyond.max() <= max(few, STANDS_OUT * sigma)
        if seldom and beyond.sum() <= max(few, spread):
            return places
    return PLACES + 1
