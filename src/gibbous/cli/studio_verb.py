"""`gibbous studio`: the whole of gibbous in a browser of this machine."""

from __future__ import annotations

from pathlib import Path

from gibbous.cli import show
from gibbous.core.extras import require


def run(folder: Path, port: int | None, browser: bool, board: Path | None) -> None:
    """Serve one folder, or one release to read, until Ctrl-C.

    Args:
        port: this one alone; None takes the first that is free.
        browser: open the system's browser.
        board: a release that is shown alone, without data.
    Raises:
        EngineFailure: the extra 'studio' is not installed.
        UsageError, ResourceLimit: see `gibbous.studio.server.run`.
    """
    require(("starlette", "uvicorn"), "studio")
    from gibbous.studio import server

    server.run(folder, port, browser, board, show.line)
