"""`gibbous studio`: a port of this machine alone, a one-time address, and the application until Ctrl-C."""

from __future__ import annotations

import html
import shutil
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from gibbous.core.errors import ResourceLimit
from gibbous.studio.app import Studio, application
from gibbous.studio.door import Door
from gibbous.studio.jobs import Jobs
from gibbous.studio.words import answer, refusal
from gibbous.studio.workplace import Workplace, write

HOST = "127.0.0.1"
FIRST = 8642
TRIES = 20
CONNECTIONS = 64


def run(
    folder: Path,
    port: int | None,
    browser: bool,
    board: Path | None,
    tell: Callable[[Path, str, Path], None],
) -> None:
    """Serve one folder until the process is told to stop.

    Args:
        port: this one alone; None takes the first that is free.
        board: a release to be read, without data; nothing is then written beside it.
        tell: says the folder, the one-time address, and the file that holds the next one.
    Raises:
        UsageError: there is no such folder or release.
        ResourceLimit: no port is free.
    """
    place = Workplace(_folder(folder).resolve()) if board is None else _board(board)
    place.prepare()
    scratch = place.scratch
    listening = _bound(port)
    address = f"http://{HOST}:{listening.getsockname()[1]}"
    opener = scratch / "open.html"
    jobs = Jobs(scratch / "jobs", place.folder)
    # uvicorn takes Ctrl-C and lets answers end; the watchdog of the command line would leave before.
    woken = signal.set_wakeup_fd(-1)
    try:
        door = Door(address.removeprefix("http://"), lambda token: _renewed(opener, address, token))
        studio = Studio(place, jobs, door, board is not None)
        tell(board or place.folder, f"{address}/enter#{door.token}", opener)
        if browser:
            webbrowser.open(opener.as_uri())  # the token is in the file, not in an argument
        settings = uvicorn.Config(
            application(studio), log_level="warning", access_log=False, server_header=False,
            date_header=False, limit_concurrency=CONNECTIONS, timeout_keep_alive=20,
            timeout_graceful_shutdown=3, ws="none", lifespan="off", http="h11",
        )  # fmt: skip
        uvicorn.Server(settings).run(sockets=[listening])
    finally:
        signal.set_wakeup_fd(woken)
        listening.close()
        opener.unlink(missing_ok=True)
        if not jobs.running():
            place.sweep()
            if board is not None:
                shutil.rmtree(scratch, ignore_errors=True)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise refusal("NOFOLDER", str(path))
    return path


def _board(release: Path) -> Workplace:
    """The release as a workplace whose scratch is elsewhere; UsageError if there is none."""
    if not (_folder(release) / "manifest.json").is_file():
        raise refusal("NORELEASE_board", str(release))
    whole = release.resolve()
    return Workplace(whole.parent, board=whole.name, elsewhere=Path(tempfile.mkdtemp()))


def _bound(port: int | None) -> socket.socket:
    """A listening socket of our own: the first free port from FIRST on, or the one that was asked for."""
    for number in [port] if port is not None else [*range(FIRST, FIRST + TRIES), 0]:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ended connections linger
        try:
            listening.bind((HOST, number))
            listening.listen(CONNECTIONS)
        except OSError:
            listening.close()
            continue
        return listening
    raise refusal("PORT", port, kind=ResourceLimit)


def _renewed(opener: Path, address: str, token: str) -> None:
    """Keep the next one-time address in a private file."""
    link = html.escape(f"{address}/enter#{token}", quote=True)
    write(
        opener,
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{answer("opener")}</title>'
        f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">{answer("opener")}</a>'
        "</html>\n",
    )
