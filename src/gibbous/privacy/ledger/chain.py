"""The chain of entries, each with the hash of the one before it; and anchors, which remember its head.

By the chain an edited entry shows, by an anchor a ledger that was cut or rolled back.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbous.core import durable
from gibbous.core.documents import Unreadable, read_bytes
from gibbous.privacy.ledger.errors import LedgerWarning, damaged, unreadable

_ZERO = bytes(32)
_MOST_BYTES = 4096  # of an anchor


@dataclass(frozen=True, slots=True)
class Link:
    """One verified entry of the chain.

    Attributes:
        seq: 0 is the genesis entry.
        public: may be printed on a certificate.
        private: stays in the ledger (data fingerprint, request, label, time, a nonce).
        hash, previous: hash of this entry and of the one before.
        sealed: SHA-256 of the private part.
        text: the public part as it is hashed.
    """

    seq: int
    public: dict[str, Any]
    private: dict[str, Any]
    hash: bytes
    previous: bytes
    sealed: bytes
    text: bytes


class Appender:
    """Sees every entry and collects new ones; valid while the store's lock is held."""

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.links = links
        self.fresh: list[Link] = []

    def append(self, public: dict[str, Any], private: dict[str, Any]) -> Link:
        """Add one entry."""
        link = next_link((*self.links[-1:], *self.fresh), public, private)
        self.fresh.append(link)
        return link


def encode(body: dict[str, Any]) -> bytes:
    """The one text of a body: sorted keys, no blanks, ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def chained(previous: bytes, sealed: bytes, public: bytes) -> bytes:
    """Hash of one entry: over the hash before it, its sealed private part and its public part."""
    return hashlib.sha256(b"gibbous-ledger-1" + previous + sealed + public).digest()


def next_link(before: Sequence[Link], public: dict[str, Any], private: dict[str, Any]) -> Link:
    """A new entry after others; after none it is the genesis entry."""
    seq, previous = (before[-1].seq + 1, before[-1].hash) if before else (0, _ZERO)
    public = {"seq": seq, **public}
    private = {"nonce": secrets.token_hex(16), **private}
    text, sealed = encode(public), hashlib.sha256(encode(private)).digest()
    return Link(seq, public, private, chained(previous, sealed, text), previous, sealed, text)


def verified(path: Path | None, before: Sequence[Link], row: tuple[object, ...]) -> Link:
    """The entry of a row (seq, public, private, hash) that has to follow others; else LedgerUnusable."""
    seq, public, private, stored = row
    expected, previous = len(before), before[-1].hash if before else _ZERO
    if seq != expected or not isinstance(public, bytes) or not isinstance(private, bytes):
        raise damaged(path, f"entry {expected} is missing or not an entry")
    sealed = hashlib.sha256(private).digest()
    digest = chained(previous, sealed, public)
    if stored != digest:
        raise damaged(path, f"entry {expected} was changed, or entries before it were")
    try:
        bodies = json.loads(public), json.loads(private)
    except ValueError:
        raise damaged(path, f"entry {expected} is not readable") from None
    link = Link(expected, *bodies, digest, previous, sealed, public)
    if link.public.get("seq") != expected or (expected == 0) != (
        link.public.get("kind") == "genesis"
    ):
        raise damaged(path, f"entry {expected} is out of place")
    return link


class Anchors:
    """The anchors of one ledger, the first beside it; without any of a ledger in memory (no path)."""

    def __init__(self, ledger: Path | None, paths: Sequence[Path]) -> None:
        self._ledger, self.paths = ledger, tuple(paths)

    def known(self) -> Path | None:
        """One that is there: a ledger was."""
        return next((path for path in self.paths if path.exists()), None)

    def check(self, links: Sequence[Link]) -> None:
        """Raise LedgerUnusable if an anchor knows an entry that the chain does not have, or is damaged."""
        for anchor in self.paths:
            head = self._read(anchor)
            if head is None:
                continue
            seq, digest, name = head
            if name != links[0].public["ledger"]:
                raise damaged(self._ledger, f"{str(anchor)!r} is the anchor of another ledger")
            if not isinstance(seq, int) or not 0 <= seq < len(links):
                raise damaged(
                    self._ledger,
                    f"it ends at entry {len(links) - 1}, its anchor {str(anchor)!r} knows "
                    f"entry {seq}: entries were cut off, or an old copy was put back",
                )
            if links[seq].hash.hex() != digest:
                raise damaged(
                    self._ledger, f"entry {seq} is not the one its anchor {str(anchor)!r} knows"
                )

    def warn_if_missing(self, links: Sequence[Link], advice: str) -> None:
        """Warn where the anchor beside a ledger that has entries is gone."""
        if not self.paths[0].exists() and len(links) > 1:
            warnings.warn(
                f"The anchor {str(self.paths[0])!r} is missing: entries cut off the end of the "
                f"ledger would not be noticed. {advice}",
                LedgerWarning,
                stacklevel=6,
            )

    def write(self, links: Sequence[Link]) -> None:
        """Note the newest head in each."""
        head = {
            "ledger": links[0].public["ledger"],
            "seq": links[-1].seq,
            "head": links[-1].hash.hex(),
        }
        for anchor in self.paths:
            try:
                durable.write_whole(anchor, encode(head) + b"\n")
            except OSError as error:
                # An old anchor is still true: it is only weaker. The entry itself is on disk.
                warnings.warn(
                    f"The anchor {str(anchor)!r} was not updated: {error.strerror}.",
                    LedgerWarning,
                    stacklevel=4,
                )

    def _read(self, anchor: Path) -> tuple[object, object, object] | None:
        """Position, hash and ledger that an anchor knows; None where there is no file."""
        try:
            head = json.loads(read_bytes(anchor, _MOST_BYTES))
            return head["seq"], head["head"], head["ledger"]
        except Unreadable as error:
            if error.errno is None and not anchor.exists():
                return None
            if error.errno is not None:
                reason = OSError(error.errno, os.strerror(error.errno))
                raise unreadable(anchor, reason) from None
            raise damaged(self._ledger, f"its anchor {str(anchor)!r} {error}") from None
        except (ValueError, KeyError, TypeError):
            raise damaged(self._ledger, f"its anchor {str(anchor)!r} is not readable") from None
