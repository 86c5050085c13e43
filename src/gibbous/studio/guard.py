"""Around every request: Host, Origin and cookie, how much may be sent and how slowly, what errors say."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import cookie_parser

from gibbous.studio.door import HEADERS, POLICY, Door
from gibbous.studio.words import answer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FORM_BYTES = 1 << 20
PATIENCE = 20.0  # seconds that a browser on this machine may take between two pieces


class TooSlow(Exception):
    """Nothing came for longer than PATIENCE."""


class TooLarge(Exception):
    """More came than a form may hold."""


class Guard:
    """The outermost application.

    Args:
        uploads: paths whose bodies are counted by whoever reads them.
        patience: seconds between two pieces of a body.
    """

    def __init__(
        self, app: App, door: Door, uploads: tuple[str, ...] = (), patience: float = PATIENCE
    ) -> None:
        self._app, self._door, self._uploads, self._patience = app, door, uploads, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # 403: there are none here
            return
        headers = _headers(scope)
        scope["session"] = cookie_parser("; ".join(headers.get("cookie", []))).get(
            self._door.cookie, ""
        )
        status = self._door.refusal(scope["method"], scope["path"], headers, scope["session"])
        if status:
            await _say(send, status)
            return
        started: list[bool] = []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.append(True)
                message["headers"] = _protected(list(message.get("headers", ())))
            await send(message)

        try:
            await self._app(scope, self._limited(scope["path"], receive), sending)
        except Exception as error:  # noqa: BLE001 - the last net: an id for the browser, no trace
            if not started:
                await _say(send, 500, fault(error))

    def _limited(self, path: str, receive: Receive) -> Receive:
        count, whole = 0, False

        async def limited() -> Message:
            nonlocal count, whole
            if whole:  # what comes now is that the browser went away
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self._patience)
            except TimeoutError:
                raise TooSlow from None
            whole = not message.get("more_body", False)
            count += len(message.get("body", b""))
            if count > FORM_BYTES and path not in self._uploads:
                raise TooLarge
            return message

        return limited


def fault(error: Exception) -> str:
    """A number for whoever sees the page; the operator reads it beside the kind of error."""
    number = secrets.token_hex(4)
    sys.stderr.write(f"gibbous studio: fault {number} ({type(error).__name__})\n")
    return answer("fault").format(number)


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _protected(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with ours, which a page that states its own policy keeps."""
    given = {name.lower() for name, _ in headers}
    ours = HEADERS | {
        "content-security-policy": POLICY.format(ancestors="'none'"),
        "x-frame-options": "DENY",
    }
    return headers + [(k.encode(), v.encode()) for k, v in ours.items() if k.encode() not in given]


async def _say(send: Send, status: int, words: str = "") -> None:
    body = (words or answer(status)).encode()
    headers = _protected([(b"content-type", b"text/plain; charset=utf-8")])
    headers.append((b"content-length", str(len(body)).encode()))
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
