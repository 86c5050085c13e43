"""`gibbous map`: where the people of a destination come from, as a page or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.core.extras import require

if TYPE_CHECKING:
    from gibbous.cli.flags import ReadingFlags, ScreenFlags
    from gibbous.cli.measuring_verbs import MapFlags
    from gibbous.reporting.flow_map_data import Unit

CONFIDENTIAL = "Confidential: real flows, outside the guarantee of any release."


def run(
    mapped: MapFlags, out: Path, overwrite: bool, reading: ReadingFlags, screen: ScreenFlags
) -> None:
    """Write the map."""
    if out.suffix.lower() == ".png":
        require(("vl_convert",), "report")
    from gibbous.reporting.flow_map import flow_map
    from gibbous.reporting.flow_map_files import Named

    with Bars(quiet=screen.silent) as bars:
        bars("map", 0, 1)
        path = flow_map(
            mapped.release,
            mapped.destination,
            mapped.coordinates,
            out,
            real=mapped.real,
            outlines=mapped.outlines,
            named=Named(
                destination=mapped.destination_column,
                origin=mapped.origin_column,
                count=mapped.count,
                place=mapped.place,
                lat=mapped.lat,
                lon=mapped.lon,
                name=mapped.name,
                set=mapped.number,
            ),
            view=mapped.view,
            unit=cast("Unit", mapped.unit),
            overwrite=overwrite,
            options=reading.options(),
        )
        bars("map", 1, 1)
    audience = "public" if mapped.real is None else "internal"
    if screen.json:
        show.as_json({"path": str(path), "audience": audience, "destination": mapped.destination})
        return
    if out.suffix.lower() in (".html", ".htm") and not screen.quiet:
        show.line(f"{path}: open it in a browser; it asks for nothing from the network.")
    if audience == "internal":
        show.line(f"{CONFIDENTIAL} {path}")
    else:
        show.line(f"Made from the given flows alone. {path}")
