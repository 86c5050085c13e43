"""Files that a browser sends: in pieces, capped, each in a private folder of its own, by a harmless name."""

from __future__ import annotations

import hmac
import os
import secrets
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
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".toml", ".json", ".xml", ".xlsx",
           ".sav", ".dta", ".sas7bdat", ".yaml", ".yml", ".txt")  # fmt: skip
BOOKS = ENDINGS[5:]


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
    if int(request.headers.get("content-length") or 0) > studio.upload_bytes:
        return PlainTextResponse(answer("large"), 413)
    name = f"{secrets.token_hex(4)}/{slug(given)}{max(endings, key=len)}"
    path = studio.place.uploads / name
    path.parent.mkdir(mode=0o700)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    whole, count = False, 0
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in request.stream():
                count += len(piece)
                if count > studio.upload_bytes:
                    return PlainTextResponse(answer("large"), 413)
                await run_in_threadpool(file.write, piece)
        whole = True
    finally:
        if not whole:
            path.unlink(missing_ok=True)
            path.parent.rmdir()
    return PlainTextResponse(name)
