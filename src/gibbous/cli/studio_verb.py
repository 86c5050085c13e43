"""`gibbous studio`: the whole of gibbous in a browser of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gibbous.cli import show
from gibbous.cli.flags import MachineFlags
from gibbous.core.extras import require

HERE = Path()


def studio(
    machine: MachineFlags,
    folder: Annotated[
        Path, Argument(help="Where the schema and the request are; default: this folder.")
    ] = HERE,
    port: Annotated[
        int | None, Option("--port", min=1024, max=65535, help="Default: the first that is free.")
    ] = None,
    no_browser: Annotated[
        bool, Option("--no-browser", help="Do not open the system's browser.")
    ] = False,
    board: Annotated[
        Path | None, Option("--board", help="Show this release alone, without data, read-only.")
    ] = None,
) -> None:
    """Serve the studio on 127.0.0.1: data to release, assessment, analysis and ledger, in a browser."""
    require(("starlette", "uvicorn"), "studio")
    from gibbous.studio import server

    server.run(folder, port, not no_browser, board, _as_json if machine.json else _in_words)


def _in_words(folder: Path, address: str, following: Path) -> None:
    show.line(f"The studio of {folder}, for you alone. Open:")
    show.line(f"  {address}")
    show.line(f"This address opens once. The next one is in {following}; Ctrl-C stops the studio.")
    sys.stdout.flush()


def _as_json(folder: Path, address: str, following: Path) -> None:
    show.as_json({"folder": str(folder), "address": address, "next": str(following)})
    sys.stdout.flush()


VERB = (studio, "All of this in a browser of this machine.")
