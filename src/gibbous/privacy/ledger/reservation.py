"""A reservation of a ledger: what was charged for one release, until it is committed and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import Claim
from gibbous.core.errors import UNCHARGED, GibbousError, LedgerUnusable
from gibbous.privacy.ledger.chain import Link
from gibbous.privacy.ledger.files import Alive

if TYPE_CHECKING:
    from gibbous.privacy.ledger.ledger import Ledger


class Hold:
    """A reservation: the right to one release that costs its claim. Only `commit` changes it.

    Attributes:
        id: printed on the certificate.
        claim: what was charged.
        sha256: of what was released, once committed.
    """

    __slots__ = ("_alive", "_book", "_commit", "_reserve", "claim", "id")

    def __init__(
        self, book: Ledger, reserve: Link, commit: Link | None, alive: Alive | None
    ) -> None:
        self.id: str = reserve.public["id"]
        self.claim = Claim.from_json(reserve.public["claim"])
        self._book, self._reserve, self._commit, self._alive = book, reserve, commit, alive

    def __repr__(self) -> str:
        return f"<Hold {self.id}, {'committed' if self.committed else 'open'}>"

    @property
    def committed(self) -> bool:
        """Whether the release it paid for is durable."""
        return self._commit is not None

    @property
    def sha256(self) -> str | None:
        """Hex digest of what was released; None while open."""
        return self._commit.public["sha256"] if self._commit else None

    def commit(self, sha256: str) -> None:
        """Record what was released. The same digest twice does nothing.

        Args:
            sha256: hex digest of the tables (or drawn rows), which are on disk.
        Raises:
            LedgerUnusable: it was committed with another digest; or the ledger fails.
        """
        if self._commit is None:
            self._commit = self._book._commit(self.id, sha256)
        if self._commit.public["sha256"] != sha256:
            raise LedgerUnusable(
                "COMMITTED",
                f"Reservation {self.id} was committed for another release.",
                "One reservation pays for one release.",
                "Run again, which reserves anew.",
                state=f"Reservation {self.id} stays spent.",
            )
        self.release()

    def release(self) -> None:
        """Say that this process is done with it. An open reservation stays spent."""
        if self._alive is not None:
            self._alive.end()
            self._alive = None

    def proof(self) -> dict[str, Any]:
        """The public halves of its entries, from which their hashes can be computed again."""
        links = {"reserve": self._reserve, "commit": self._commit}
        return {
            "ledger": self._book.name,
            "reservation": self.id,
            "head": (self._commit or self._reserve).hash.hex(),
            "entries": {
                kind: {
                    "previous": link.previous.hex(),
                    "sealed": link.sealed.hex(),
                    "public": link.text.decode(),
                    "hash": link.hash.hex(),
                }
                for kind, link in links.items()
                if link is not None
            },
        }

    def explain(self, error: GibbousError) -> None:
        """Put what was spent into an error that was raised after the reservation."""
        if error.state == UNCHARGED:
            error.restate(f"Nothing was released. Reservation {self.id} stays spent.")


def commit_of(links: Sequence[Link], identity: str) -> Link | None:
    """The commit of a reservation, where there is one."""
    commits = (link for link in links if link.public["kind"] == "commit")
    return next((link for link in commits if link.public["id"] == identity), None)
