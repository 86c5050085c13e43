"""Flows around the largest destinations, as figures of a report: a drawing a table, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from gibbous.core.release import Release
from gibbous.flows import (
    Flows,
    Geography,
    check_same,
    coarse,
    flows_of,
    level_of,
    read_flows,
    to_regions,
)
from gibbous.report import theme
from gibbous.report.blocks import Block, Figure, Grid, Panel, Text
from gibbous.report.flow_map import facts
from gibbous.report.flow_map_data import MapData, map_data
from gibbous.report.flow_map_draw import COLORS, panel

DRAWN: Final = 3  # destinations, unless they are named
MOST: Final = 6_000  # circles of all drawings: about 1 MB


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a report needs to draw flows.

    Attributes:
        geography: of the records.
        destinations: ids; empty for the largest of the release.
        real: confidential flows (a path, a frame, `Flows`) for the internal report; None for none.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    """

    geography: Geography
    destinations: tuple[str, ...] = ()
    real: Any = field(default=None, repr=False)
    options: Any = None


def flow_blocks(release: Release, mapped: Mapped) -> Iterator[Block]:
    """What a report says of flows: its figures, or why there are none."""
    figures = flow_figures(release, mapped)
    if not figures:
        yield Text(
            f"No destination has between 1 and {MOST:,} origins to draw; gibbous map has a page for all."
        )
        return
    which = "named" if mapped.destinations else "largest"
    yield Text(
        f"Maps of the {which} destinations, from the first set. gibbous map makes a page with all "
        "destinations, to be searched."
    )
    yield from figures


def flow_figures(release: Release, mapped: Mapped) -> tuple[Figure, ...]:
    """One figure a destination, of the first set: origins around it, and their numbers.

    Args:
        release: of flows.
        mapped: the public geography, and for internal use the records.
    Returns:
        Figures; fewer than asked for where their circles would make the page too large.
    Raises:
        UsageError: the release was made of other places, or nobody goes to a named destination.
    """
    level = level_of(mapped.geography, release.schema)
    geography = coarse(mapped.geography, level) if level else mapped.geography
    check_same(release.plan.params, mapped.geography, geography)
    drawn = flows_of(release.sets[0], geography)
    real = None if mapped.real is None else _real(mapped, level)
    found = []
    for k, name in enumerate(_chosen(drawn, real, geography, mapped.destinations)):
        data = map_data(drawn, geography, destination=name, real=real, most=1)
        found.append(_figure(data, f"flows-{k + 1}", name))
    return tuple(found)


def _real(mapped: Mapped, level: str) -> Flows:
    flows = mapped.real
    if not isinstance(flows, Flows):
        flows, _ = read_flows(flows, mapped.geography, options=mapped.options)
    return to_regions(flows, mapped.geography, level) if level else flows


def _chosen(
    drawn: Flows, real: Flows | None, geography: Geography, named: Sequence[str]
) -> tuple[str, ...]:
    """Ids of the destinations to draw: those named, or the largest whose circles fit."""
    if named:
        return tuple(dict.fromkeys(named))
    ids = geography.destinations.ids
    people = drawn.totals(len(ids))
    circles = np.bincount(drawn.destinations, minlength=len(ids))
    if real is not None:
        circles = circles + np.bincount(real.destinations, minlength=len(ids))
    found: list[str] = []
    left = MOST
    for at in np.argsort(-people, kind="stable")[: 20 * DRAWN].tolist():
        if people[at] and circles[at] <= left and len(found) < DRAWN:
            found.append(str(ids[at]))
            left -= int(circles[at])
    return tuple(found)


def _figure(data: MapData, name: str, destination: str) -> Figure:
    at = data.place(destination)
    edge = data.view(at)
    said = " ".join(facts(data, k, at, edge) for k in range(len(data.layers)))
    panels = tuple(Panel(layer.name, panel(data, layer, at, edge)) for layer in data.layers)
    key = [(COLORS[layer.name], "dot", f"{layer.name} people") for layer in data.layers]
    head = ("origin", "miles", *(layer.name for layer in data.layers))
    rows = tuple(
        (data.ids[place], None if far != far else round(far, 1), *counts)
        for place, far, counts in data.rows(at)
    )
    return Figure(
        name,
        f"Origins around {destination}",
        f"{said} Circles are origins, their area in proportion to people; the lower left corner has "
        "sizes. Each lies at its great-circle distance and bearing from the destination; rings are miles.",
        f"Map of origins around {destination}, {edge:,} miles to its edge. {said} The table below "
        "the map has every origin.",
        panels,
        Grid(f"Origins of {destination}, all of them", head, rows),
        ((theme.INK, "diamond", "destination"), *key),
        "pair" if len(panels) > 1 else "wide",
    )
