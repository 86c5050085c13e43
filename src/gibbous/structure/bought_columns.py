"""Noisy counts of classes, texts and magnitudes in, columns of a schema out: public rules, no record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np

from gibbous.core.column import FACTS, Column, Source
from gibbous.encode.cell_text import CLASSES, CLOCK, DAYS, EITHER, HOURS, PLACES
from gibbous.structure.code_lists import answers, numbers_beside
from gibbous.structure.grid_ends import ends_of, grids_of_days, grids_of_numbers

FEW = 20  # whole numbers with at most so many texts may be levels
RANGE = 32  # whole numbers in so short a range are levels, too
MOST_LEVELS = 1_000
LOST = 0.005  # share of cells without a level up to which nothing is done about them
HIDDEN = 0.05  # share of cells that may be without a level, as far as noise tells, where there is no other
SOME_CODES = 3  # usual texts of numbers beside text, from which on these may be codes
CODED = 6  # times so many cells as their usual texts hold
DOUBT = 2.8  # standard deviations of text, or of numbers with leading zeros, that noise alone seldom reaches
HEAP = 5  # of numbers that people round, most are multiples of it; of codes, one in five
CODES = 10  # so many whole numbers with gaps between them may be codes
MOST_CODES = 64  # that have a bin of their own
LETTERS = 0.01  # share of text from which on a column is no column of numbers
SPOILED = 0.05  # share of other cells from which on a column is no column of days
OUTSIDE = 0.1  # share of the cells beyond the bounds from which on there are none
PLACED = 0.01  # share of numbers that may have more places than a column keeps
STANDS_OUT = 4.2  # standard deviations of one number of places that noise alone seldom reaches
SPURIOUS = 0.01  # probability that any column of a table gets a missing level that it does not need

_NUMBERS = slice(1, 3 + PLACES)
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
    numbers, text = float(counts[_NUMBERS].sum()), float(counts[-2:].sum())
    form, days = _usual_form(counts)
    fits = {"numeric": numbers, "date": days, CLOCK: float(counts[CLASSES.index(CLOCK)])}
    some = fits | {"levels": max(text, 4 * sigma)}
    kind = max(some, key=lambda kind: some[kind])
    if kind == "numeric" and text > max(LETTERS * present, 5 * sigma):
        kind = "levels"
    if kind in ("date", CLOCK) and present - fits[kind] > max(SPOILED * present, 6 * sigma):
        kind = "levels"
    kind = stated or kind
    cells = _NUMBERS.stop - _NUMBERS.start if kind == "numeric" else 2
    spoiled = rows - fits.get(kind, rows) > clear * sigma * math.sqrt(1 + cells)
    places = _decimals(counts, sigma)
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
    )


def clear_of_noise(columns: int) -> float:
    """Standard deviations that noise alone exceeds in any of four looks at each column with 1 %."""
    return NormalDist().inv_cdf(1 - SPURIOUS / (4 * columns))


def grid_columns(plan: Outline) -> tuple[Column, ...]:
    """Two public grids on which bounds are found: fine, and powers of ten (decades, for days)."""
    date = plan.kind == "date"
    places = 0 if plan.integer else plan.decimals or PLACES
    return tuple(
        Column(
            plan.name,
            "date" if date else "numeric",
            edges=tuple(edges),
            integer=plan.integer,
            missing=True,
            date_format=plan.form,
            clamp=True,
        )
        for edges in (grids_of_days() if date else grids_of_numbers(places))
    )


def bounded_column(
    plan: Outline, counts: tuple[np.ndarray, np.ndarray], sigma: float, atoms: Sequence[int] = ()
) -> Column | None:
    """A column of numbers or days between bounds, from noisy counts on its grids; None without bounds.

    Whole numbers in a short range become levels. Those that may be codes get cut points, so that a
    code that many rows have is a bin; all other numbers have bounds alone. There are no bounds where
    many more cells were counted than lie between the ends that stand out, or where these are the grid's
    (of days: where nearly all rows are there).

    Args:
        counts: float64 (cells,), of each of `grid_columns`.
        atoms: whole numbers that were bought, the most frequent first: each is within the bounds.
    """
    fine, powers = (np.array(grid.edges) for grid in grid_columns(plan))
    ends = ends_of(*counts, sigma, (fine, powers), plan.present)
    if ends is None:
        return None
    first, last, within, cells = ends
    piled = float(counts[0][[0, -1]].sum()) >= (1 - OUTSIDE) * plan.present
    if piled if plan.kind == "date" else (first <= powers[0] or last >= powers[-1]):
        return None  # rows at the end of the grid: nobody knows how far beyond
    noise = math.hypot(plan.sigma, sigma * math.sqrt(cells))
    if plan.present - within > max(OUTSIDE * plan.present, 3 * noise):
        return None
    whole = plan.integer or plan.kind == "date"
    if whole:
        last -= 1
    first, last = min((first, *atoms)), max((last, *atoms))
    facts: tuple[tuple[str, Source], ...] = bought("bounds", "missing", kind=plan.stated)
    if plan.integer and last - first < RANGE:
        levels = tuple(range(int(first), int(last) + 1))
        kind: Literal["ordinal", "binary"] = "binary" if len(levels) == 2 else "ordinal"
        facts = bought("levels", "missing", kind=plan.stated)
        return Column(plan.name, kind, levels, missing=plan.missing, sources=facts)
    last = max(last, first + 1)
    cuts: set[float] = set()
    if gaps(atoms) and not heaped(atoms):
        facts = bought("bounds", "bins", "missing", kind=plan.stated)
        last = max(last, max(atoms) + 2)  # the last code has a bin of its own, too
        cuts = {
            float(edge) for atom in atoms[:MOST_CODES] for edge in (atom, atom + 1) if edge < last
        }
    return Column(
        plan.name,
        "date" if plan.kind == "date" else "numeric",
        edges=tuple(sorted({float(first), float(last)} | cuts)),
        integer=plan.integer,
        decimals=plan.decimals if plan.kind == "numeric" and not plan.integer else None,
        clamp=True,
        missing=plan.missing,
        date_format=plan.form,
        sources=facts,
    )


def gaps(atoms: Sequence[int]) -> bool:
    """Whether of many whole numbers that many rows have, most have no neighbor: as codes do."""
    apart = sum(b - a > 1 for a, b in pairwise(sorted(atoms)))
    return len(atoms) >= CODES and 2 * apart >= len(atoms) - 1


def codes_after_all(plan: Outline, kept: Mapping[str, int]) -> bool:
    """Whether many texts of doubtful numbers hold many cells: whole ones with gaps, and not rounded."""
    if not plan.unsure or len(kept) < SOME_CODES or CODED * sum(kept.values()) < plan.present:
        return False
    numbers = [int(t) for t in sorted(kept, key=lambda t: -kept[t])] if plan.integer else []
    return not plan.integer or (gaps(numbers) and not heaped(numbers))


def heaped(numbers: Sequence[int]) -> bool:
    """Whether most of the first of some whole numbers are rounded: hours a week are, codes are not."""
    first = numbers[:CODES]
    return 2 * sum(number % HEAP == 0 for number in first) > len(first)


def levels_column(
    plan: Outline, kept: Mapping[str, int], sigma: float, *, listed: bool = False
) -> Column | None:
    """A column of the texts that were kept; None where there are none, or numbers that are not levels.

    Texts come in the order of their noisy numbers. Whole numbers are levels where at most FEW texts,
    at least two, hold all rows, as far as noise can tell. Other columns have a level for other texts,
    unless noise leaves no room for more than HIDDEN of the cells to have one, or they are a usual pair.

    Args:
        kept: text -> noisy number of rows.
        sigma: standard deviation of one number.
        listed: whether texts of a list were kept: their sum is too large then to show that
            there are no others.
    """
    most, lost, noise = _lost(plan, kept, sigma)
    if plan.integer:
        if not 2 <= len(most) <= FEW or lost > max(noise, LOST * plan.present):
            return None
        numbers = tuple(sorted(map(int, most)))
        return _listed(plan, numbers, None)
    if not most:
        return None
    # Without a level for them, cells of other texts would count as the most frequent one.
    room = lost + noise > HIDDEN * plan.present and not answers(most)
    some = listed or lost > noise or room
    return _listed(plan, tuple(most), other_label(most) if some else None)


def missed(plan: Outline, kept: Mapping[str, int], sigma: float) -> float:
    """Share of cells whose text was not kept; 0 where a second look would not be worth its price."""
    _, lost, noise = _lost(plan, kept, sigma)
    if plan.integer and lost + noise / 2 > HIDDEN * plan.present:
        lost += noise / 2  # noise hides what would be lost: levels beside these are not worth less
    # What a list shows has no threshold: of whole numbers with one, any loss is worth a look.
    least = 0.0 if plan.integer else max(noise / 4, LOST * plan.present)
    if lost <= least or (plan.integer and not numbers_beside(kept, FEW)):
        return 0.0
    return lost / max(plan.present, 1.0)


def stated_column(
    plan: Outline, levels: Sequence[str | int | float | bool], *, complete: bool = False
) -> Column:
    """A column whose levels are public, and `complete` or not; whether cells are missing was bought."""
    facts = bought("missing", kind=True)
    kind: Literal["nominal", "binary"] = "binary" if len(levels) == 2 else "nominal"
    other = None if complete else other_label([str(level) for level in levels])
    return Column(plan.name, kind, tuple(levels), missing=plan.missing, other=other, sources=facts)


def between(plan: Outline, low: float, high: float) -> Column:
    """A column of numbers whose bounds are public; places and whether cells are missing were bought."""
    return Column(
        plan.name,
        "numeric",
        edges=(math.floor(low), math.ceil(high)) if plan.integer else (low, high),
        integer=plan.integer,
        decimals=plan.decimals,
        clamp=True,
        missing=plan.missing,
        sources=bought("missing", kind=True),
    )


def clock_column(plan: Outline) -> Column:
    """The hours of a day, which are public; that the column holds clock times was bought."""
    return Column(
        plan.name, "ordinal", HOURS, missing=plan.missing, sources=bought("levels", "missing")
    )


def nothing_column(name: str) -> Column:
    """A column of which nothing is known but its name: all of it is other."""
    return Column(name, "nominal", ("other",), other="another", sources=bought("levels", "missing"))


def bought(*facts: str, kind: bool = False) -> tuple[tuple[str, Source], ...]:
    """Sources of facts that were paid for; `kind`: whether that is public."""
    paid = {*facts} | (set() if kind else {"kind"})
    return tuple((fact, "discovered") for fact in FACTS if fact in paid)


def other_label(levels: Sequence[str]) -> str:
    """A label for what is not a level: other, unless that is one."""
    label, taken = "other", set(levels)
    while label in taken:
        label += "_"
    return label


def _lost(plan: Outline, kept: Mapping[str, int], sigma: float) -> tuple[list[str], float, float]:
    """The most frequent texts, how many cells have none of them, and twice the deviation of that."""
    most = sorted(kept, key=lambda text: -kept[text])[:MOST_LEVELS]
    lost = plan.present - sum(kept[text] for text in most)
    return most, lost, 2 * math.hypot(plan.sigma, sigma * math.sqrt(len(most)))


def _listed(plan: Outline, levels: tuple[str | int, ...], other: str | None) -> Column:
    kind: Literal["ordinal", "nominal", "binary"] = "ordinal" if plan.integer else "nominal"
    if len(levels) == 2 and other is None:
        kind = "binary"
    facts = bought("levels", "missing", kind=plan.stated)
    return Column(plan.name, kind, levels, missing=plan.missing, other=other, sources=facts)


def _usual_form(counts: np.ndarray) -> tuple[str, float]:
    """The form of days that most cells have, and the noisy number that have it."""
    number = {form: float(counts[CLASSES.index(form)]) for form in DAYS}
    for form, other in EITHER.items():
        both = float(counts[CLASSES.index(f"{form} or {other}")])
        usual = form if number[form] >= number[other] else other
        number[usual] += both
    form = max(number, key=lambda form: number[form])
    return form, number[form]


def _decimals(counts: np.ndarray, sigma: float) -> int:
    """Places that all numbers but a few have, 0 for whole ones; PLACES + 1 for more."""
    numbers = float(counts[_NUMBERS].sum())
    by_places = counts[2 : 3 + PLACES]
    for places in range(PLACES + 1):
        beyond = by_places[places < _PLACES]
        few, spread = PLACED * numbers, 4 * sigma * math.sqrt(len(beyond))
        seldom = beyond.max() <= max(few, STANDS_OUT * sigma)
        if seldom and beyond.sum() <= max(few, spread):
            return places
    return PLACES + 1
