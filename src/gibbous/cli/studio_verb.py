"""`gibbous studio`: the whole of gibbous in a browser of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

from gibbous.cli import show
from gibbous.core.extras import require


def run(folder: Path, port: int | None, browser: bool, board: Path | None, json: bool) -> None:
    """Serve one folder, or one release to read, until Ctrl-C.

    Args:
        port: this one alone; None takes the first that is free.
        browser: open the system's browser.
        board: a release that is shown alone, without data.
        json: say the addresses as one JSON document.
    Raises:
        EngineFailure: the extra 'studio' is not installed.
        UsageError, ResourceLimit: see `gibbous.studio.server.run`.
    """
    require(("starlette", "uvicorn"), "studio")
    from gibbous.studio import server

    server.run(folder, port, browser, board, _as_json if json else _in_words)


def _in_words(folder: Path, address: str, following: Path) -> None:
    show.line(f"The studio of {folder}, for you alone. Open:")
    show.line(f"  {address}")
    show.line(f"This address opens once. The next one is in {following}; Ctrl-C stops the studio.")
    sys.stdout.flush()


def _as_json(folder: Path, address: str, following: Path) -> None:
    show.as_json({"folder": str(folder), "address": address, "next": str(following)})
    sys.stdout.flush()
