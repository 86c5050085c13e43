"""A release of flows and coordinates in; out a map around one destination, or figures of a report."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from gibbous.core.boundary import guarded
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.keywords import answering
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
from gibbous.reporting import flow_map_svg, html_page, theme
from gibbous.reporting.flow_map_data import VIEWS, MapData, Unit, map_data
from gibbous.reporting.flow_map_files import Named, opened
from gibbous.reporting.flow_map_svg import picture
from gibbous.reporting.geojson import read_outlines
from gibbous.reporting.page_parts import Block, Figure, Grid, Panel, Text
from gibbous.write.rendering import render

ROWS: Final = 20  # origins of the table under the map
DRAWN: Final = 3  # destinations of a report, unless they are named
MOST: Final = 6_000  # circles of all drawings of a report: about 1 MB
KINDS: Final = (".html", ".htm", ".svg", ".png")
FOOT: Final = (
    "Made by gibbous. The file asks for nothing from the network: its policy allows the one script in it, "
    "by hash, and no request."
)


@guarded
@answering
def flow_map(
    release: Release | str | Path | Any,
    destination: str,
    coordinates: str | Path | Any,
    out: str | Path,
    *,
    real: str | Path | Any = None,
    outlines: str | Path | None = None,
    named: Named | None = None,
    view: int | None = None,
    unit: Unit = "miles",
    overwrite: bool = False,
    options: Any = None,
) -> Path:
    """Draw where the people of a destination come from.

    Args:
        release: a release of two columns, its folder, or a table of flows that is public.
        destination: id of the destination that is shown first.
        coordinates: a table of places: id, lat, lon.
        out: .html is a page with all destinations, to be searched; .svg and .png are one picture.
        real: confidential flows to stand beside the synthetic ones; the map is then for internal use
            and says so.
        outlines: GeoJSON areas or lines; an area with the id of an origin is shaded by its people.
        named: columns, where they do not follow from the release.
        view: distance to the edge, one of `VIEWS`; None holds 95 % of the people.
        unit: of distances, "miles" or "km".
        overwrite: replace the file.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    Returns:
        The path that was written.
    Guarantee:
        That of the release: without `real` the map is arithmetic on what was released. With `real` it
        has none.
    Raises:
        UsageError: an unknown destination, view, unit, column or kind of file.
        SchemaMismatch: a table of flows or of coordinates does not fit.
        OutputNotWritten: the file exists or cannot be written.
    """
    path = Path(out)
    check_out(path, view, overwrite=overwrite)
    shapes = () if outlines is None else read_outlines(outlines)
    request = opened(release, coordinates, real=real, named=named or Named(), options=options)
    data = map_data(
        request.synthetic, request.geography, destination=str(destination), real=request.real,
        outlines=shapes, names=request.names, unit=unit,
    )  # fmt: skip
    at = data.place(str(destination))
    if path.suffix.lower() in (".html", ".htm"):
        content = html(data, at, view, title=request.title, headline=request.headline).encode()
    else:
        edge = view or data.view(at)
        title = f"{request.title}: origins around {data.names[int(data.destinations[at])]}"
        notes = [facts(data, k, at, edge) for k in range(len(data.layers))]
        drawn = picture(data, at, edge, title=title, notes=[*notes, request.headline])
        content = f"{drawn}\n".encode() if path.suffix.lower() == ".svg" else _png(drawn)
    html_page.write_file(path, content, overwrite=overwrite)
    return path


def html(data: MapData, destination: int, view: int | None, *, title: str, headline: str) -> str:
    """The page as one HTML document; every value in it is escaped.

    Args:
        destination: position among `data.destinations`.
        view: miles to the edge; None holds 95 % of the people.
    """
    audience = "internal" if data.internal else "public"
    style = html_page.style_sheet(audience)
    style += render(html_page.PACKAGE, "flow_map.css", panels=len(data.layers))
    source = resources.files(html_page.PACKAGE).joinpath("templates/flow_map.js").read_text()
    script = f"\n{source}\n"
    edge = view or data.view(destination)
    areas = any(outline.closed and outline.id for outline in data.outlines)
    rows = _rows(data, destination)
    return html_page.templated(
        "flow_map.html",
        audience,
        style,
        allowed=allowed(script),
        title=title,
        headline=headline,
        destination=data.names[int(data.destinations[destination])],
        unit=data.unit,
        said=" ".join(facts(data, k, destination, edge) for k in range(len(data.layers))),
        drawings=[
            (each.name, flow_map_svg.panel(data, each, destination, edge)) for each in data.layers
        ],
        views=VIEWS,
        view=view,
        ink=theme.INK,
        shaded=list(zip(flow_map_svg.SHADES, flow_map_svg.BREAKS, strict=True)) if areas else [],
        left_out=data.left_out,
        rows=rows[:ROWS],
        hidden=max(0, len(rows) - ROWS),
        foot=FOOT,
        payload=_payload(data, destination),
        script=script,
    )


def allowed(script: str) -> str:
    """The source expression of a content security policy that allows this script and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def facts(data: MapData, layer: int, destination: int, edge: int) -> str:
    """One sentence about a panel, as the script of the page writes it."""
    table = data.layers[layer]
    origins, counts = table.part(destination)
    far = data.distances(destination, origins)
    known = np.isfinite(far)
    people, located = int(counts.sum()), int(counts[known].sum())
    words = [f"{table.name}: {people:,} people from {len(origins):,} origins"]
    if located:
        mean = float((counts[known] * far[known]).sum() / located)
        words.append(f"mean distance {mean:.1f} {data.unit}")
    beyond = int(counts[known][far[known] > edge].sum())
    if beyond:
        words.append(f"{beyond:,} beyond the view")
    if people > located:
        words.append(f"{people - located:,} without coordinates")
    return ", ".join(words) + "."


def check_out(path: Path, view: int | None = None, *, overwrite: bool = False) -> None:
    """Refuse a path or a view that cannot become a map, before anything is read.

    Raises:
        UsageError: another kind of file, or no such view.
        OutputNotWritten: the file exists, or its folder does not.
    """
    if path.suffix.lower() not in KINDS:
        raise UsageError(
            "MAPNAME",
            f"A map cannot be called {path.name!r}.",
            "It is an HTML page, or one picture as SVG or PNG.",
            "Choose a name that ends in .html, .svg or .png.",
        )
    if view is not None and view not in VIEWS:
        raise UsageError(
            "MAPVIEW",
            f"The edge of a map cannot be at {view:,}.",
            f"Views are {', '.join(map(str, VIEWS))} miles or kilometers.",
            "Choose one of these, or none for 95 % of the people.",
        )
    html_page.check_targets((path,), "map", overwrite=overwrite)


def _payload(data: MapData, destination: int) -> str:
    look: dict[str, object] = {"rows": ROWS}
    for owner, names in (
        (flow_map_svg, "size radius largest crowd least rings breaks shades colors"),
        (theme, "ink muted base paper font"),
    ):
        look |= {name: getattr(owner, name.upper()) for name in names.split()}
    text = json.dumps(data.payload() | {"start": destination, "look": look}, separators=(",", ":"))
    # ASCII JSON without <, > and &: nothing in it can end the element that holds it.
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _rows(data: MapData, destination: int) -> list[tuple[str, ...]]:
    return [
        (data.names[place], "" if far != far else f"{far:.1f}", *(f"{n:,}" for n in counts))
        for place, far, counts in data.rows(destination)
    ]


def _png(drawn: str) -> bytes:
    renderer = need("vl_convert", "report")
    image: bytes = renderer.svg_to_png(drawn, scale=2)
    return image


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a report needs to draw flows.

    Attributes:
        destinations: ids; empty for the largest of the release.
        real: confidential flows (a path, a frame, `Flows`) for the internal report; None for none.
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
    figures = []
    for k, name in enumerate(_chosen(drawn, real, geography, mapped.destinations)):
        data = map_data(drawn, geography, destination=name, real=real, most=1)
        figures.append(_figure(data, f"flows-{k + 1}", name))
    return tuple(figures)


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
    chosen: list[str] = []
    left = MOST
    for at in np.argsort(-people, kind="stable")[: 20 * DRAWN].tolist():
        if people[at] and circles[at] <= left and len(chosen) < DRAWN:
            chosen.append(str(ids[at]))
            left -= int(circles[at])
    return tuple(chosen)


def _figure(data: MapData, name: str, destination: str) -> Figure:
    at = data.place(destination)
    edge = data.view(at)
    said = " ".join(facts(data, k, at, edge) for k in range(len(data.layers)))
    panels = tuple(
        Panel(layer.name, flow_map_svg.panel(data, layer, at, edge)) for layer in data.layers
    )
    key = [
        (flow_map_svg.COLORS[layer.name], "dot", f"{layer.name} people") for layer in data.layers
    ]
    head = ("origin", "miles", *(layer.name for layer in data.layers))
    rows = tuple(
        (data.names[place], None if far != far else round(far, 1), *counts)
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
