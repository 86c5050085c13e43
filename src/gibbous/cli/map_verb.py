"""`gibbous map`: where the people of a destination come from, as a page or a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.core.extras import require

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

CONFIDENTIAL = "Confidential: real flows, outside the guarantee of any release."


@dataclass(frozen=True, slots=True)
class Asked:
    """What is drawn.

    Attributes:
        columns: names of columns, by the attributes of `evaluate.flows_files.Named`.
        options: makes the reading options; late, because the reader is a heavy import.
    """

    release: Path
    destination: str
    coordinates: Path
    columns: dict[str, str | int]
    options: Callable[[], ReadOptions]
    real: Path | None = None
    outlines: Path | None = None
    view: int | None = None


def run(asked: Asked, out: Path, overwrite: bool, json: bool, quiet: bool) -> None:
    """Write the map.

    Args:
        out: .html, .svg or .png.
    Raises:
        GibbousError: one class an exit code.
    """
    if out.suffix.lower() == ".png":
        require(("vl_convert",), "report")
    from gibbous.evaluate.flows_files import Named
    from gibbous.report.flow_map import flow_map

    with Bars(quiet=quiet or json) as bars:
        bars("map", 0, 1)
        path = flow_map(
            asked.release,
            asked.destination,
            asked.coordinates,
            out,
            real=asked.real,
            outlines=asked.outlines,
            named=Named(**asked.columns),  # type: ignore[arg-type]
            view=asked.view,
            overwrite=overwrite,
            options=asked.options(),
        )
        bars("map", 1, 1)
    audience = "public" if asked.real is None else "internal"
    if json:
        show.as_json({"path": str(path), "audience": audience, "destination": asked.destination})
        return
    if out.suffix.lower() in (".html", ".htm") and not quiet:
        show.line(f"{path}: open it in a browser; it asks for nothing from the network.")
    if audience == "internal":
        show.line(f"{CONFIDENTIAL} {path}")
    else:
        show.line(f"Made from the given flows alone. {path}")
