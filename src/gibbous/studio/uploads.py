"""Files that a browser sends: in pieces, capped, each in a private folder of its own, by a harmless name."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gibbous.studio.words import answer
from gibbous.studio.workplace import slug

if TYPE_CHECKING:
    from gibbous.studio.app import Studio

MOST = 20 << 30  # bytes
PARTS = 2000  # of a folder
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".toml", ".json", ".xml", ".xlsx",
           ".sav", ".dta", ".sas7bdat", ".yaml", ".yml", ".txt")  # fmt: skip


async def receive(studio: Studio, request: Request) -> Response:
    """Write the body to a file of mode 0600, and answer with its name."""
    key = studio.door.form_key(request.scope["session"]) or ""
    sent = request.headers.get("x-studio-key", "")
    if not key or not hmac.compare_digest(sent.encode("utf-8", "replace"), key.encode()):
        return PlainTextResponse(answer("stale"), 403)
    if request.headers.get("content-type", "") != "application/octet-stream":
        return PlainTextResponse(answer("raw"), 415)
    given = unquote(request.headers.get("x-studio-name", ""))
    endings = [ending for ending in ENDINGS if given.lower().endswith(ending)]
    if not endings:
        return PlainTextResponse(answer("ending"), 422)
    within, room = request.headers.get("x-studio-folder", ""), studio.upload_bytes
    folder = (
        _folder(studio, unquote(within)) if within else studio.place.uploads / secrets.token_hex(4)
    )
    parts = list(folder.iterdir()) if folder.is_dir() else []
    room -= sum(part.stat().st_size for part in parts)
    if room < int(request.headers.get("content-length") or 0) or len(parts) >= PARTS:
        return PlainTextResponse(answer("large"), 413)
    named = f"{slug(given)}{max(endings, key=len)}"
    path = folder / (f"{len(parts):04}-{named}" if within else named)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    whole, count = False, 0
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in request.stream():
                count += len(piece)
                if count > room:
                    return PlainTextResponse(answer("large"), 413)
                await run_in_threadpool(file.write, piece)
        whole = True
    finally:
        if not whole:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # other parts are in it
                folder.rmdir()
    told = folder if within else path
    return PlainTextResponse(str(told.relative_to(studio.place.uploads)))


def _folder(studio: Studio, name: str) -> Path:
    """Where a part of a folder goes: to the folder that the first part was told, or to a new one."""
    known = studio.place.upload(name)
    if known is not None and known.is_dir():
        return known
    return studio.place.uploads / secrets.token_hex(4) / slug(name)
