"""A schema bought: what is public and its budget in; kinds, levels and bounds by noisy counts out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gibbous.core.column import Column
from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, KnownCounts, Table
from gibbous.encode.cell_text import (
    CLASSES,
    CLOCK,
    COMPACT,
    classes,
    lenient_codes,
    plain_text,
    whole_text,
)
from gibbous.mechanisms._discovery_parts import GRIDS, Parts
from gibbous.privacy.noise import Thresholded
from gibbous.privacy.text_curator import TextCurator
from gibbous.structure.bought_columns import (
    FEW,
    between,
    bounded_column,
    clock_column,
    codes_after_all,
    grid_columns,
    levels_column,
    missed,
    nothing_column,
    stated_column,
    usual_instead,
)
from gibbous.structure.code_lists import (
    CLEAR,
    DIGITS,
    SURE,
    WORDS,
    code_list,
    held_from,
    numbers_beside,
)
from gibbous.structure.column_outlines import Outline, clear_of_noise, outline
from gibbous.structure.contexts import margins
from gibbous.structure.known_counts import counts_of_levels

HIDDEN_KINDS = 250  # standard deviations: where there are fewer rows, kinds are bought again
HIDES = 1.5  # standard deviations from which on levels seem to hide cells
ABSENT = ""  # stands for missing cells where texts are counted: no other text is empty
LISTED = 0.1  # of the weight in the second look, for whole numbers: what their list shows needs no threshold


def bought_schema(
    curator: TextCurator, known: Discovery, parts: Parts
) -> tuple[Schema, dict[str, KnownCounts]]:
    """Spend: kinds, levels and bounds, each with its share of `parts`.

    Returns:
        The schema, and what was counted of the levels of its columns on the way.
    """
    columns = dict[str, Column]()
    parts, plans = _outlined(curator, known, parts)
    for name, levels in known.levels:
        columns[name] = stated_column(plans[name], levels, complete=name in known.complete)
    columns |= {name: between(plans[name], *ends) for name, ends in known.bounds}
    columns |= {name: clock_column(plan) for name, plan in plans.items() if plan.kind == CLOCK}
    parts, atoms, counts = _with_levels(curator, parts, plans, columns)
    numbers = [
        plan for name, plan in plans.items() if name not in columns and plan.kind != "levels"
    ]
    if numbers:
        columns |= _with_bounds(curator, parts, numbers, atoms)
    columns = {name: replace(c, note=plans[name].note) for name, c in columns.items()}
    names = [name for name in plans if name in columns]
    left = tuple(name for name in plans if name not in columns)
    if not names:
        names, left = [left[0]], left[1:]
        columns[names[0]] = nothing_column(names[0])
    return Schema(tuple(columns[name] for name in names), known.unit, ignore=left), counts


def _outlined(
    curator: TextCurator, known: Discovery, parts: Parts
) -> tuple[Parts, dict[str, Outline]]:
    """Kinds of columns; bought again where noise hides them, and what is left of the budget."""
    names = [name for name in known.names if name != known.unit.column]
    forms = dict.fromkeys(known.date, COMPACT)
    every = (Column(name, "nominal", CLASSES, date_format=forms.get(name)) for name in names)
    view = curator.coded(schema := Schema(tuple(every), known.unit), classes)

    def counted(what: str) -> tuple[np.ndarray, float]:
        noise = parts.noise(what, len(names))
        tables = view.noisy_counts(margins(schema), noise)
        return np.array([_cells(table) for table in tables]), float(noise.sigma)

    def rows_in(counts: np.ndarray, sigma: float) -> float:
        """Of the classes that clearly have cells: all together would carry much more noise."""
        return float(np.where(counts > 3 * sigma, counts, 0).sum(axis=1).mean())

    tables, sigma = counted("kinds")
    if rows_in(tables, sigma) < HIDDEN_KINDS * sigma:
        again, other = counted("kinds again")
        weight = other**2 / (sigma**2 + other**2)
        tables, sigma = weight * tables + (1 - weight) * again, sigma * math.sqrt(weight)
    elif parts.method is None:
        parts = parts.saved("kinds again")
    rows = rows_in(tables, sigma)
    stated = dict.fromkeys(known.numeric, "numeric") | dict.fromkeys(known.date, "date")
    stated |= {name: "levels" for name, _ in known.levels}
    stated |= {name: "numeric" for name, _ in known.bounds}
    facts: dict[str, float] = {"sigma": sigma, "rows": rows, "clear": clear_of_noise(len(names))}
    return parts, {
        name: outline(name, counts, stated=stated.get(name, ""), **facts)
        for name, counts in zip(names, tables, strict=True)
    }


def _with_levels(
    curator: TextCurator, parts: Parts, plans: dict[str, Outline], columns: dict[str, Column]
) -> tuple[Parts, dict[str, list[int]], dict[str, KnownCounts]]:
    """Add the columns of levels: those that one look shows whole, and the others after a second look.

    Numbers beside text may turn out to be codes. The second look counts all codes that are written as those
    of the first, whole numbers near them, and missing cells; columns that lost more cells get more of it.

    Returns:
        What is left of the budget; of columns that were asked and have no levels, whole numbers that
        many rows have, the most frequent first; of the columns of levels, what was counted.
    """
    atoms: dict[str, list[int]] = {}
    counts: dict[str, KnownCounts] = {}
    lists: dict[str, tuple[str, ...]] = {}

    def settle(seen: Mapping[str, Mapping[str, int]], sigma: float) -> None:
        for name in seen:
            column = levels_column(plans[name], kept[name], sigma, listed=bool(lists.get(name)))
            if column is not None:
                columns[name] = column
                counts[name] = counts_of_levels(column, seen[name], sigma)
            elif plans[name].integer:
                atoms[name] = [int(t) for t in sorted(kept[name], key=lambda t: -kept[name][t])]

    asked = [
        name
        for name, plan in plans.items()
        if name not in columns
        and (plan.kind == "levels" or plan.unsure or (plan.integer and not plan.stated))
    ]
    noise = parts.selecting(max(len(asked), 1))
    usual = {name: DIGITS if plans[name].integer else WORDS for name in asked}
    sigma, kept = noise.info().scale, _texts(curator, plans, asked, noise, usual)
    for name in asked:
        certain = kept[name].keys() - usual[name]
        kept[name] = {t: n for t, n in kept[name].items() if n > SURE * sigma or t in certain}
        usual_instead(plans, kept, name, sigma)
        if codes_after_all(plans[name], kept[name]):
            plans[name] = replace(plans[name], kind="levels", integer=False, decimals=None)
    asked = [name for name in asked if plans[name].kind == "levels" or plans[name].integer]
    lost = {name: missed(plans[name], kept[name], sigma) for name in asked}
    settle({name: kept[name] for name in asked if not lost[name]}, sigma)
    rows = max(1.0, *(plan.present for plan in plans.values()))
    numbers = sum(n not in columns and plan.kind != "levels" for n, plan in plans.items())
    numbers += any(plans[name].otherwise for name in asked)  # which may yet be numbers
    again = {n: lost[n] / rows * (LISTED if plans[n].integer else 1) for n in asked if lost[n]}
    left, shares = parts.divided(list(again.values()), numbers)
    for name, share in zip(again, shares, strict=True):
        noise = left.selecting(len(again), share)
        whole, texts, scale = plans[name].integer, kept[name], noise.info().scale
        lists[name] = numbers_beside(texts, FEW) if whole else code_list(texts)
        more = _texts(curator, plans, [name], noise, {name: (ABSENT, *lists[name])})[name]
        clear = _clear_from(plans[name], scale, [more.get(text, 0) for text in texts])
        absent = more.pop(ABSENT) > clear_of_noise(parts.columns) * scale
        plans[name] = replace(plans[name], missing=plans[name].missing or absent)
        kept[name] |= (seen := {text: number for text, number in more.items() if number > clear})
        if not usual_instead(plans, kept, name, scale) or plans[name].integer:
            settle({name: seen}, scale)
    return left, atoms, counts


def _clear_from(plan: Outline, sigma: float, kept: Sequence[float]) -> float:
    """Noisy rows above which a text of a list is a level, beside those that were kept."""
    if not plan.integer:
        return CLEAR * sigma
    error = math.hypot(plan.sigma, sigma * math.sqrt(len(kept)))
    return held_from(plan.present, sigma, hidden=plan.present - sum(kept) > HIDES * error)


def _texts(
    curator: TextCurator,
    plans: Mapping[str, Outline],
    names: list[str],
    noise: Thresholded,
    listed: Mapping[str, tuple[str, ...]],
) -> dict[str, dict[str, int]]:
    """The texts that are kept of columns, whole numbers in one form; with lists, missing cells as ABSENT."""

    def written(name: str, texts: Any) -> Any:
        plain = plain_text(texts)
        found = whole_text(texts) if plans[name].integer else plain
        return found.set(plain.is_null(), ABSENT) if ABSENT in listed.get(name, ()) else found

    if not names:
        return {}
    return dict(zip(names, curator.noisy_texts(names, noise, written, listed), strict=True))


def _with_bounds(
    curator: TextCurator, parts: Parts, plans: list[Outline], atoms: Mapping[str, list[int]]
) -> dict[str, Column]:
    """Columns of numbers and days, between bounds."""
    noise = parts.noise("bounds", GRIDS * len(plans))
    counts = []
    for columns in zip(*map(grid_columns, plans), strict=True):
        grids = Schema(columns, curator.schema.unit)
        view = curator.coded(grids, lenient_codes)
        counts.append([_cells(table) for table in view.noisy_counts(margins(grids), noise)])
    sigma, tried = float(noise.sigma), []
    for plan, fine, tens in zip(plans, *counts, strict=True):
        absent = fine[-1] + tens[-1] > clear_of_noise(parts.columns) * sigma * math.sqrt(GRIDS)
        plan = replace(plan, missing=plan.missing or bool(absent))
        tried.append(bounded_column(plan, (fine[:-1], tens[:-1]), sigma, atoms.get(plan.name, ())))
    return {column.name: column for column in tried if column is not None}


def _cells(table: Table) -> np.ndarray:
    assert isinstance(table.cells, Dense)
    return table.cells.values.ravel().astype(np.float64)
