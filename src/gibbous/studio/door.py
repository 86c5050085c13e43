"""Who may come in: a one-time token, then a cookie; and what every answer says to a browser."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

COOKIE = "gibbous-studio"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors {ancestors}"
)
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # no-referrer would make a browser hide the origin of our own forms; the token is in no address
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
OPEN = ("/enter", "/static/studio.css", "/static/studio.js")  # without a cookie; nothing of anybody


class Door:
    """The tokens of one studio: the one-time token, and a session for each browser that came in.

    Args:
        host: the one value of Host that is answered, "127.0.0.1:PORT".
        renewed: told each new one-time token.
    """

    def __init__(self, host: str, renewed: Callable[[str], None] = lambda token: None) -> None:
        self.host = host
        self._renewed = renewed
        self._sessions: dict[str, str] = {}
        self.token = ""
        self._renew()

    @property
    def origin(self) -> str:
        """The only origin that may change something."""
        return f"http://{self.host}"

    @property
    def cookie(self) -> str:
        """Its name: cookies of one machine are shared by all ports."""
        return f"{COOKIE}-{self.host.rpartition(':')[2]}"

    def enter(self, token: str) -> str | None:
        """A new session for the one-time token, which is then used up; None for any other."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = secrets.token_urlsafe(32)
        self._renew()
        return session

    def leave(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(session, None)

    def form_key(self, session: str) -> str | None:
        """What every form of a session carries; None for no session of ours."""
        found = None
        for known, key in self._sessions.items():
            if hmac.compare_digest(known.encode(), session.encode()):
                found = key
        return found

    def refusal(self, method: str, path: str, headers: dict[str, list[str]], session: str) -> int:
        """The status that refuses a request; 0 where it may go on."""
        if headers.get("host") != [self.host]:
            return 400
        if method not in ("GET", "HEAD", "POST"):
            return 405
        if method == "POST" and headers.get("origin") != [self.origin]:
            return 403
        if path in OPEN:
            return 0
        return 0 if self.form_key(session) is not None else 401

    def _renew(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._renewed(self.token)
