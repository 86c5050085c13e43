"""Noisy counts of texts and magnitudes in, columns of a schema out: public rules, no record."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from gibbous.core.column import FACTS, Column, Source
from gibbous.core.column_texts import tidy_text
from gibbous.encode.cell_text import HOURS, PLACES
from gibbous.read.text_forms import amount
from gibbous.structure.code_lists import answers, numbers_beside
from gibbous.structure.column_outlines import Outline
from gibbous.structure.grid_ends import ends_of, grids_of_days, grids_of_numbers

FEW = 20  # whole numbers with at most so many texts may be levels
RANGE = 32  # whole numbers in so short a range are levels, too
MOST_LEVELS = 1_000
LOST = 0.005  # share of cells without a level up to which nothing is done about them
HIDDEN = 0.05  # share of cells that may be without a level, as far as noise tells, where there is no other
PAIR = 1.75  # times that deviation, of a usual pair: noise alone loses so much once in 4,000
SOME_CODES = 3  # usual texts of numbers beside text, from which on these may be codes
CODED = 6  # times so many cells as their usual texts hold
HEAP = 5  # of numbers that people round, most are multiples of it; of codes, one in five
LESS = 4  # times fewer cells are lost as numbers or days, where a column is one of these after all
DENSE = 4  # codes are further apart, in steps of the last place, than numbers that many rows have
SHOWN = 40  # characters of a text that a note names
POINTED = 3  # places that codes have at most
CODES = 10  # so many whole numbers with gaps between them may be codes
MOST_CODES = 64  # that have a bin of their own
OUTSIDE = 0.1  # share of the cells beyond the bounds from which on there are none

_LIMIT = re.compile(
    r"([<>≤≥]|[<>]=) ?[0-9.]+|[0-9.]+ ?(\+|and (over|more|older)|or (more|older|over))"
)
_AMOUNT = re.compile(amount("."))
_LETTERED = re.compile(r"[A-Za-z]+[0-9.]+")  # a code: V221
_PLAIN = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")  # as it is written when it is bought


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
    return _like_codes(plan, kept) and (not plan.integer or gaps([int(text) for text in kept]))


def usual_after_all(plan: Outline, kept: Mapping[str, int], sigma: float) -> Outline | None:
    """The numbers or days that most cells are, where levels would lose many more cells; else None."""
    usual, (_, lost, noise) = plan.otherwise, _lost(plan, kept, sigma)
    if usual is None or lost < max(
        noise, OUTSIDE * plan.present, LESS * (plan.present - usual.present)
    ):
        return None
    numbers = {text: rows for text, rows in kept.items() if _PLAIN.fullmatch(text)}
    codes = usual.unsure if len(numbers) < SOME_CODES else _like_codes(usual, numbers)
    if usual.note or (len(numbers) < CODES and any(map(_LIMIT.fullmatch, kept))):
        codes = False
    if usual.kind == "numeric" and (codes or any(map(_LETTERED.fullmatch, kept))):
        return None
    shown = (tidy_text(text, SHOWN) for text in kept if text not in numbers)
    words = [repr(text) for text in shown if text and not _AMOUNT.fullmatch(text)][:SOME_CODES]
    such = f", such as {', '.join(words)}," if words and usual.kind == "numeric" else ""
    cells = "numbers" if usual.kind == "numeric" else "days"
    gone = f"Most cells are {cells}. Those that are not{such} count as missing."
    notes = (usual.note, gone if usual.missing else None)
    return replace(usual, note=" ".join(filter(None, notes)))


def usual_instead(
    plans: dict[str, Outline], kept: dict[str, dict[str, int]], name: str, sigma: float
) -> bool:
    """Whether a column is numbers or days after all; its plan is that, then."""
    usual = usual_after_all(plans[name], kept[name], sigma)
    if usual is not None:
        plans[name] = usual
        kept[name] = {t: n for t, n in kept[name].items() if _WHOLE.fullmatch(t)}
    return usual is not None


def _like_codes(plan: Outline, kept: Mapping[str, int]) -> bool:
    """Whether numbers of few places lie far apart, for some texts, and whole ones are not rounded."""
    if not plan.integer and (plan.decimals or POINTED + 1) > POINTED:
        return False
    numbers = [text for text in sorted(kept, key=lambda t: -kept[t]) if _PLAIN.fullmatch(text)]
    steps = [round(float(text) * 10 ** (plan.decimals or 0)) for text in numbers] or [0]
    apart = max(steps) - min(steps) >= DENSE * len(steps) or len(numbers) < len(kept)
    return apart and not (plan.integer and heaped(steps))


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
    pair = answers(most)
    room = lost + noise > HIDDEN * plan.present and not pair
    some = listed or lost > (PAIR if pair else 1) * noise or room
    return _listed(plan, tuple(most), other_label(most) if some else None)


def missed(plan: Outline, kept: Mapping[str, int], sigma: float) -> float:
    """Noisy number of cells whose text was not kept; 0 where a second look would not be worth its price."""
    _, lost, noise = _lost(plan, kept, sigma)
    if plan.integer and lost + noise / 2 > HIDDEN * plan.present:
        lost += noise / 2  # noise hides what would be lost: levels beside these are not worth less
    # What a list shows has no threshold: of whole numbers with one, any loss is worth a look.
    least = 0.0 if plan.integer else max(noise / 4, LOST * plan.present)
    if lost <= least or (plan.integer and not numbers_beside(kept, FEW)):
        return 0.0
    return lost


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
