"""A release of flows and coordinates in, a map around one destination out: HTML page, SVG or PNG."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.release import Release
from gibbous.evaluate.flows_files import Named, opened
from gibbous.report import flow_map_draw, page, theme
from gibbous.report.flow_map_data import VIEWS, MapData, map_data
from gibbous.report.flow_map_draw import picture
from gibbous.report.flow_map_outlines import read_outlines
from gibbous.structure.regions import EARTH
from gibbous.write.rendering import render

ROWS: Final = 20  # origins of the table under the map
KINDS: Final = (".html", ".htm", ".svg", ".png")
FOOT: Final = (
    "Made by gibbous. The file asks for nothing from the network: its policy allows the one script in it, "
    "by hash, and no request."
)


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
        view: miles to the edge, one of `VIEWS`; None holds 95 % of the people.
        overwrite: replace the file.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    Returns:
        The path that was written.
    Guarantee:
        That of the release: without `real` the map is arithmetic on what was released. With `real` it
        has none.
    Raises:
        UsageError: an unknown destination, view, column or kind of file.
        SchemaMismatch: a table of flows or of coordinates does not fit.
        OutputNotWritten: the file exists or cannot be written.
    """
    path = Path(out)
    check_out(path, view, overwrite=overwrite)
    shapes = () if outlines is None else read_outlines(outlines)
    found = opened(release, coordinates, real=real, named=named or Named(), options=options)
    data = map_data(
        found.synthetic, found.geography, destination=str(destination), real=found.real,
        outlines=shapes,
    )  # fmt: skip
    at = data.place(str(destination))
    if path.suffix.lower() in (".html", ".htm"):
        content = html(data, at, view, title=found.title, headline=found.headline).encode()
    else:
        edge = view or data.view(at)
        title = f"{found.title}: origins around {destination}"
        notes = [facts(data, k, at, edge) for k in range(len(data.layers))]
        drawn = picture(data, at, edge, title=title, notes=[*notes, found.headline])
        content = f"{drawn}\n".encode() if path.suffix.lower() == ".svg" else _png(drawn)
    page.write_file(path, content, overwrite=overwrite)
    return path


def html(data: MapData, destination: int, view: int | None, *, title: str, headline: str) -> str:
    """The page as one HTML document; every value in it is escaped.

    Args:
        data: what it shows.
        destination: position among `data.destinations`.
        view: miles to the edge; None holds 95 % of the people.
        title: of the page.
        headline: what is promised of the release.
    """
    audience = "internal" if data.internal else "public"
    style = page.style_sheet(audience)
    style += render("gibbous.report", "flow_map.css", panels=len(data.layers))
    source = resources.files("gibbous.report").joinpath("templates/flow_map.js").read_text()
    script = f"\n{source}\n"
    edge = view or data.view(destination)
    areas = any(outline.closed and outline.id for outline in data.outlines)
    rows = _rows(data, destination)
    return page.templated(
        "flow_map.html",
        audience,
        style,
        allowed=allowed(script),
        title=title,
        headline=headline,
        destination=data.ids[int(data.destinations[destination])],
        said=" ".join(facts(data, k, destination, edge) for k in range(len(data.layers))),
        drawings=[
            (each.name, flow_map_draw.panel(data, each, destination, edge)) for each in data.layers
        ],
        views=VIEWS,
        view=view,
        ink=theme.INK,
        shaded=list(zip(flow_map_draw.SHADES, flow_map_draw.BREAKS, strict=True)) if areas else [],
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
        words.append(f"mean distance {mean:.1f} miles")
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
            f"The edge of a map cannot be at {view} miles.",
            f"Views are {', '.join(map(str, VIEWS))} miles.",
            "Choose one of these, or none for 95 % of the people.",
        )
    page.check_targets((path,), "map", overwrite=overwrite)


def _payload(data: MapData, destination: int) -> str:
    look = {
        "size": flow_map_draw.SIZE,
        "radius": flow_map_draw.RADIUS,
        "largest": flow_map_draw.LARGEST,
        "crowd": flow_map_draw.CROWD,
        "least": flow_map_draw.LEAST,
        "rings": flow_map_draw.RINGS,
        "breaks": flow_map_draw.BREAKS,
        "shades": flow_map_draw.SHADES,
        "colors": flow_map_draw.COLORS,
        "ink": theme.INK,
        "muted": theme.MUTED,
        "base": theme.BASE,
        "paper": theme.PAPER,
        "font": theme.FONT,
        "earth": EARTH,
        "rows": ROWS,
    }
    text = json.dumps(data.payload() | {"start": destination, "look": look}, separators=(",", ":"))
    # ASCII JSON without <, > and &: nothing in it can end the element that holds it.
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _rows(data: MapData, destination: int) -> list[tuple[str, ...]]:
    return [
        (data.ids[place], "" if far != far else f"{far:.1f}", *(f"{n:,}" for n in counts))
        for place, far, counts in data.rows(destination)
    ]


def _png(drawn: str) -> bytes:
    renderer = need("vl_convert", "report")
    image: bytes = renderer.svg_to_png(drawn, scale=2)
    return image
