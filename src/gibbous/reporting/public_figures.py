"""The public report's figures: beliefs of an attacker, parts of the cost, noisy beside synthetic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from gibbous.core.claim import Claim, short
from gibbous.core.plan import Plan
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.privacy.accountant import true_alarms
from gibbous.reporting import charts, margins, odds, theme
from gibbous.reporting.labels import percent
from gibbous.reporting.page_parts import Block, Cell, Figure, Grid, Text, panel

_SUMS = {"zcdp": "rho", "gdp": "mu squared"}
DRAWN = 24  # columns with a chart of their own; the numbers of all are in the table


def meaning(total: Claim) -> Iterator[Block]:
    """Beliefs before and after, and what other budgets would mean."""
    bound = odds.stated(total)
    if bound is None:
        return
    epsilon, delta = bound
    yield _beliefs(total, epsilon)
    rows: list[tuple[Cell, ...]] = []
    for value in sorted({*odds.GRID, epsilon}):
        here = value == epsilon
        gain = odds.advantage(value, *((delta, float(total.mu)) if here else ()))
        rows.append((
            f"{value:g}{' (this release)' if here else ''}",
            float(np.exp(value)),
            percent(odds.belief(0.01, value).high, "up"),
            percent((1 + gain) / 2, "up"),
            percent(gain, "up"),
        ))  # fmt: skip
    yield Grid(
        "Membership tests against this release: how many of the units that are in the data a test can "
        f"find, by how many of the others it takes for one of them{_account(total)}.",
        ("false alarms", "true alarms, at most"),
        tuple(
            (percent(rate), percent(true_alarms(total, rate), "up")) for rate in odds.FALSE_ALARMS
        ),
    )
    yield Grid(
        "The same for other budgets. Advantage: the most by which a membership test can have more "
        "true than false alarms. No epsilon is right for all data; this table helps to choose.",
        ("epsilon", "factor on the odds", "1 % becomes at most", "right guess at even chances", "advantage"),
        tuple(rows),
    )  # fmt: skip


def _account(total: Claim) -> str:
    if not total.mu_squared:
        return ""
    return f". The release is mu-Gaussian differentially private with mu = {short(total.mu)}"


def _beliefs(total: Claim, epsilon: float) -> Figure:
    points = [odds.belief(i / 50, epsilon) for i in range(51)]
    rows = [{"before": p.before, "low": p.low, "high": p.high} for p in points]
    values = total.relation == "add_remove"
    head = ["before", "at least after", "at most after"]
    if values:
        head += ["at least after (a value)", "at most after (a value)"]
    numbers = []
    for prior in odds.PRIORS:
        one, two = odds.belief(prior, epsilon), odds.belief(prior, 2 * epsilon)
        row = [percent(prior), percent(one.low, "down"), percent(one.high, "up")]
        if values:
            row += [percent(two.low, "down"), percent(two.high, "up")]
        numbers.append(tuple(row))
    some = odds.belief(0.1, epsilon)
    what = "that a unit is in the data" if values else "in one of two values of a unit"
    more = (
        " The last two columns are for two values of a unit that is known to be present."
        if values
        else ""
    )
    return Figure(
        "beliefs",
        f"Beliefs of an attacker, epsilon = {short(total.epsilon)}",
        f"Belief {what}, before and after the release: it stays inside the band, whatever else "
        f"the attacker knows{', but for outcomes that delta makes rare' if total.delta else ''}.",
        f"Band of possible beliefs around the diagonal: a belief of 10 % stays between "
        f"{percent(some.low)} and {percent(some.high)}.",
        (panel("beliefs", partial(charts.beliefs, rows)),),
        Grid(f"Beliefs before and after.{more}", tuple(head), tuple(numbers)),
    )


def spends(plan: Plan) -> Figure | None:
    """The parts of the cost, each as its share of the sum; None without parts of one kind."""
    amounts = []
    for spend in plan.spends:
        claim = spend.claim
        amounts.append(float(claim.price))
    kinds = {s.claim.kind if s.claim.kind in _SUMS else "pure" for s in plan.spends}
    total = sum(amounts)
    if not plan.spends or len(kinds) > 1 or total <= 0:
        return None
    rows: list[dict[str, Any]] = [
        {"what": s.what, "share": a / total, "label": s.claim.amount()}
        for s, a in zip(plan.spends, amounts, strict=True)
    ]
    measure = _SUMS.get(kinds.pop(), "epsilon")
    grid = Grid(
        "Parts of the cost",
        ("paid for", "cost", "share", "how"),
        tuple((s.what, s.claim.amount(), percent(r["share"]), s.detail)
              for s, r in zip(plan.spends, rows, strict=True)),
    )  # fmt: skip
    words = "; ".join(f"{r['what']} {percent(r['share'])}" for r in rows)
    return Figure(
        "spends",
        "Parts of the budget",
        f"Shares of the sum of {measure}, in which the parts add up"
        + (" before it is converted to the total." if measure != "epsilon" else "."),
        f"Bars of the parts of the budget: {words}.",
        (panel("spends", partial(charts.spends, rows)),),
        grid,
    )


def data(release: Release) -> Iterator[Block]:
    """Noisy tables listed, and each column's noisy margin beside its synthetic one."""
    schema, tables = release.schema, release.tables
    if tables is not None:  # of the first set, or part: the others are of the same kind
        tables = tables.of_set(0)
        tables = tables.parts[0] if tables.parts else tables
    if not any(release.receipt["rows"]) and tables is None:
        yield Text("The synthetic sets have no rows.")
        return
    if tables is not None:
        cut = any(table.noise.threshold is not None for table in tables.published())
        yield Text(
            "These counts were published with noise; each row of the table names the columns that "
            "were counted together. About two noisy counts in three, or more, lie within one standard "
            "deviation of the true count." + (_THRESHOLDED if cut else "")
        )
        yield table_list(tables)
    shares = margins.drawn(release.sets, schema)
    noisy = [None if tables is None else margins.noisy(tables, j) for j in range(len(schema))]
    yield _columns(schema, noisy, shares, sets=len(release.sets))


_THRESHOLDED = (
    " Not so near a threshold: of small counts only those were kept to which noise had added much, "
    "so that a count just above the threshold is too large more often than not."
)


def table_list(tables: Tables) -> Grid:
    """The published tables: columns, cells, noise, threshold."""
    names, rows = tables.schema.names, []
    for table in (*tables.items, *tables.extra):
        context, noise = table.context, table.noise
        rows.append((
            ", ".join(names[c] for c in context.targets),
            ", ".join(names[c] for c in context.parents) or "(all records)",
            type(context.key).__name__.lower() if context.parents else "",
            table.cells.values.size,
            sqrt(noise.variance),
            noise.law,
            "all" if noise.threshold is None else f"above {noise.threshold}",
        ))  # fmt: skip
    head = ("counts of", "for each value of", "key", "cells", "noise sd, counts", "law", "kept")
    return Grid("Published noisy tables", head, tuple(rows), folded=len(rows) > 12)


def _columns(
    schema: Schema, noisy: list[margins.Noisy | None], shares: list[np.ndarray], *, sets: int
) -> Figure:
    panels, numbers = [], []
    levels = [
        _levels(column.labels(), None if base is None else base.shares, each)
        for column, base, each in zip(schema, noisy, shares, strict=True)
    ]
    ends, scale = margins.axes(levels[:DRAWN])
    for j, (column, base, each) in enumerate(zip(schema, noisy, shares, strict=True)):
        labels, mean = column.labels(), each.mean(axis=0)
        if j < DRAWN:
            draw = partial(charts.margins, levels[j], bars=base is not None, end=ends[j])
            note = (
                ""
                if base is None or not base.given
                else f"noisy: table with {', '.join(base.given)}, added up"
            )
            panels.append(panel(f"m{j}", draw, title=column.name, note=note, small=True))
        for k, label in enumerate(labels):
            numbers.append((
                column.name, label,
                None if base is None else float(base.counts[k]),
                None if base is None else base.deviation,
                None if base is None else float(base.shares[k]),
                float(mean[k]),
            ))  # fmt: skip
    has = any(n is not None for n in noisy)
    head = ("column", "level", "noisy count", "noise sd", "noisy share", "synthetic share")
    key = [(theme.BASE, "bar", "share in the noisy table")] if has else []
    over = f" (mean of {sets} sets; the line is their range)" if sets > 1 else ""
    key.append((theme.MAIN, "dot", f"share in the synthetic rows{over}"))
    more = f" The first {DRAWN} columns are drawn." if len(schema) > DRAWN else ""
    text = (
        "Both are public. A difference comes from sampling, and from fitting the tables together; "
        "noisy counts below 0 are drawn as 0."
        if has
        else "No table was published: these are the synthetic rows alone."
    )
    return Figure(
        "margins",
        "One-way shares",
        f"{text} {scale}{more}",
        f"One chart a column, {len(panels)} in all, with a bar for the noisy and a dot for the "
        "synthetic share of each level; the numbers are in the table below.",
        tuple(panels),
        Grid("Noisy and synthetic shares of every level", head, tuple(numbers)),
        tuple(key),
        "grid",
    )  # fmt: skip


def _levels(
    labels: tuple[str, ...], base: np.ndarray | None, each: np.ndarray
) -> list[dict[str, Any]]:
    shown = each.mean(axis=0)
    place = margins.kept(shown if base is None else base)
    rest = np.setdiff1d(np.arange(len(labels)), place)
    groups = [(labels[k], [k]) for k in place]
    if len(rest):
        groups.append((f"{len(rest)} other levels", list(rest)))
    return [
        {
            "level": name,
            "base": None if base is None else float(base[some].sum()),
            "main": float(shown[some].sum()),
            "low": float(each[:, some].sum(axis=1).min()),
            "high": float(each[:, some].sum(axis=1).max()),
        }
        for name, some in groups
    ]
