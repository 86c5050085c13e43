"""The ledger: what every release of every data set has cost, and the most it may cost.

Costs are reserved before records are counted and committed when the release is durable. A
reservation that is never committed stays spent. The state is a file; see ledger_store.py.
"""

from __future__ import annotations

import datetime
import importlib
import secrets
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from gibbous.core.claim import Claim, Relation
from gibbous.core.dataset import DataSet
from gibbous.core.errors import GibbousError, LedgerUnusable, PrivacyRefused
from gibbous.core.exact import text
from gibbous.core.schema import Schema
from gibbous.privacy import ledger_datasets as datasets
from gibbous.privacy import ledger_place as place
from gibbous.privacy.ledger_accounts import (
    Account,
    Cap,
    Entry,
    account_of,
    admit,
    caps_of,
    counted,
    joinable,
    parse,
    postings_of,
)
from gibbous.privacy.ledger_errors import damaged
from gibbous.privacy.ledger_store import LedgerWarning, Link, Store

UNCHARGED = "Nothing was released; no budget was spent."


class Hold:
    """A reservation: the right to one release that costs its claim. Only `commit` changes it.

    Attributes:
        id: printed on the certificate.
        claim: what was charged.
        sha256: of what was released, once committed.
    """

    __slots__ = ("_alive", "_book", "_commit", "_reserve", "claim", "id")

    def __init__(
        self, book: Ledger, reserve: Link, commit: Link | None, alive: place.Alive | None
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


class Ledger:
    """What every data set has spent, and the most it may: the one thing here that has state.

    Make it by `open` (a file, used by many processes at once) or `ephemeral` (in memory). A data set
    is named by 32 bytes, the keyed fingerprint of its records: `accounts` lists those that are
    known. Epsilon is in nats, all sums are exact fractions.

    Raises:
        LedgerUnusable: whenever entries are read and do not form the chain that they should.
    Guarantee:
        A claim is on disk before the records that it pays for are counted, and what was reserved
        stays spent (docs/concepts/ledger.md).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[Entry, ...] = ()

    @staticmethod
    def open(
        path: Path | None = None, *, anchor: Path | None = None, allow_network: bool = False
    ) -> Ledger:
        """Open the ledger, or make a new one where none was.

        Args:
            path: the file; None is $GIBBOUS_HOME/ledger.sqlite, else gibbous/ledger.sqlite in the
                user's data folder.
            anchor: a second small file, best elsewhere, that remembers the newest head;
                $GIBBOUS_ANCHOR names one, too. One beside the ledger is always kept.
            allow_network: accept a network file system.
        Raises:
            LedgerUnusable: damaged, cut, rolled back, newer, not writable, or on a network.
            ResourceLimit: the disk is full.
        """
        extra = (anchor,) if anchor else place.anchors_from_environment()
        return Ledger(Store(path or place.default_path(), extra, allow_network=allow_network))

    @staticmethod
    def read(path: Path | None = None, *, anchor: Path | None = None) -> Ledger:
        """Open a ledger that exists, to read it; needs no write access, and makes nothing.

        Args:
            path, anchor: as for `open`.
        Raises:
            LedgerUnusable: there is none; or it is damaged, cut, rolled back or newer.
        """
        from gibbous.privacy.ledger_reading import ReadStore

        extra = (anchor,) if anchor else place.anchors_from_environment()
        return Ledger(ReadStore(path or place.default_path(), extra))

    @staticmethod
    def ephemeral() -> Ledger:
        """A ledger in memory, for studies on public data and for tests: forgotten at the end."""
        return Ledger(Store(None))

    def __repr__(self) -> str:
        return f"<Ledger {self.path or 'in memory'}>"

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return self._store.path

    @property
    def key(self) -> bytes:
        """Secret key of the data fingerprint, 32 bytes; it never leaves this machine."""
        return self._store.key

    @property
    def name(self) -> str:
        """Random public name of this ledger."""
        return str(self._store.links()[0].public["ledger"])

    @property
    def head(self) -> str:
        """Hash of the newest entry, hex."""
        return self._store.links()[-1].hash.hex()

    def dataset(
        self, source: object, *, schema: Schema | None = None, options: object = None
    ) -> DataSet:
        """Name a data set as this ledger does, before its first release too; reads it, spends nothing.

        Args:
            source: a path or a frame, as for `gibbous.synthesize`.
            schema: that of the release, to be held against the columns; it changes no name.
            options: how files are read (`gibbous.read.source.ReadOptions`).
        Returns:
            The keyed fingerprint of the records, 32 bytes: what `cap`, `link` and `account` take.
        Raises:
            InputRejected, SchemaMismatch, ResourceLimit: the source cannot be read.
        """
        # Reading lies above privacy: the second place, after Schema, that names a higher layer.
        face = importlib.import_module("gibbous.read.dataset")
        return cast(DataSet, face.dataset(source, self, schema, options))

    def reserve(
        self,
        dataset: bytes,
        claim: Claim,
        *,
        mechanism: str,
        request: bytes,
        rows: int | None = None,
        protects: str = "one row",
        label: str = "",
        new_data: str | None = None,
    ) -> Hold:
        """Spend: charge a data set, durably, before anything is counted.

        Args:
            dataset: keyed fingerprint of the records; a `DataSet` also says where they came from.
            claim: total of everything that will be released.
            mechanism: registered name.
            request: digest of what exactly is asked for; `find` looks for it.
            rows: rows of all sets, if public.
            protects: the privacy unit in words.
            label: for people; stays in the ledger.
            new_data: why these are data of other people than those of any capped account that they
                look like; recorded.
        Returns:
            The hold, open.
        Raises:
            BudgetExhausted: the cap does not cover it.
            PrivacyRefused: the claim cannot be counted against the cap; or the data look like other
                content of a capped account, and are neither linked to it nor declared new.
            LedgerUnusable, ResourceLimit: the ledger cannot record it.
        """
        new_data = datasets.reason(new_data)
        identity = f"r-{secrets.token_hex(8)}"
        alive = self._store.live(identity)
        public = {
            "kind": "reserve",
            "id": identity,
            "claim": claim.to_json(),
            "mechanism": mechanism,
            "protects": protects,
            "rows": rows,
        }
        private = {"request": request.hex(), "label": label}
        try:
            with self._store.appending() as writer:
                entries = self._parse(writer.links)
                admit(entries, dataset, claim, protects, new_data)
                link = writer.append(public, private | _private(entries, dataset, new_data))
        except BaseException:
            if alive is not None:
                alive.end()
            raise
        other = datasets.spent_elsewhere(entries, dataset, new_data, older=True)
        if other:
            warnings.warn(other, LedgerWarning, stacklevel=2)
        return Hold(self, link, None, alive)

    def check(
        self,
        dataset: bytes,
        claim: Claim,
        *,
        protects: str = "one row",
        new_data: str | None = None,
    ) -> None:
        """Raise what `reserve` would raise, and write nothing."""
        new_data = datasets.reason(new_data)
        admit(self.entries(), dataset, claim, protects, new_data)

    def find(self, request: bytes) -> Hold | None:
        """The newest reservation for exactly this request, to be used by one process at a time.

        Returns:
            A committed one; or an open one whose process has ended, which is now ours. None when
            there is none, or when its process still runs.
        """
        link = self._newest(request)
        if link is None:
            return None
        try:
            alive = self._store.live(link.public["id"])
        except BlockingIOError:
            return None
        commit = self._commit_of(link.public["id"])  # read after the lock: it may be new
        if commit is not None and alive is not None:
            alive.end()
            alive = None
        return Hold(self, link, commit, alive)

    def cap(
        self,
        dataset: bytes,
        epsilon: Fraction,
        delta: Fraction,
        relation: Relation = "add_remove",
        *,
        protects: str | None = None,
        new_data: str | None = None,
    ) -> None:
        """Set the most that a data set may ever spend; a later cap replaces an earlier one.

        Args:
            dataset: keyed fingerprint, from `dataset`.
            epsilon: of all releases together, nats, >= 0.
            delta: of all releases together, 0 <= delta < 1.
            relation: the neighbor relation that counts; claims under the other one are refused.
            protects: the privacy unit in words; None takes that of the first release.
            new_data: as for `reserve`.
        Raises:
            PrivacyRefused: the numbers are out of range, or releases were made that no such sum
                can cover (no claim, another relation, another privacy unit); or as for `reserve`.
        """
        if epsilon < 0 or not 0 <= delta < 1:
            raise PrivacyRefused(
                "CAP",
                f"A cap of epsilon = {text(epsilon)}, delta = {text(delta)} was given.",
                "epsilon >= 0 and 0 <= delta < 1.",
                "Correct the cap, for example epsilon 2, delta 1e-8.",
            )
        new_data = datasets.reason(new_data)
        wanted = Cap(epsilon, delta, relation, protects)
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            datasets.refuse_other_content(entries, caps_of(entries), dataset, new_data)
            for posting in postings_of(entries, dataset):
                wanted = counted(wanted, posting.claim, posting.protects, posting.id)
            public = {
                "kind": "cap",
                "epsilon": text(epsilon),
                "delta": text(delta),
                "relation": relation,
                "protects": protects,
            }
            writer.append(public, _private(entries, dataset, new_data))
        other = datasets.spent_elsewhere(entries, dataset, new_data)
        if other:
            warnings.warn(other, LedgerWarning, stacklevel=2)

    def link(self, new: bytes, old: bytes) -> None:
        """Join two accounts: what both have spent is one sum from now on, under one cap.

        The cap is that of either; of two, the smaller epsilon and the smaller delta. A link is never
        taken back.

        Args:
            new: the data set that is another version of the old one, or of some of its people.
            old: one that the ledger knows; the account keeps its name.
        Raises:
            UsageError: the old one is not known, or both are one account already.
            PrivacyRefused: no sum covers what both have released under that cap.
        """
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            mine, into = joinable(entries, new, old)
            private = _private(entries, DataSet.of(new).under(mine))
            writer.append({"kind": "link"}, private | {"into": into.hex()})

    def nickname(self, dataset: bytes, nickname: str) -> None:
        """Give a data set a name for people, beside its fingerprint; a later one replaces it.

        Raises:
            UsageError: it is no nickname, or that of another account.
        """
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            name = datasets.checked_nickname(entries, dataset, nickname)
            private = _private(entries, DataSet.of(dataset).under(name))
            writer.append({"kind": "name"}, private | {"nickname": nickname})

    def named(self, words: str) -> bytes | None:
        """The data set that is called so; None where none is.

        Args:
            words: a nickname, or 8 or more digits of a fingerprint.
        Raises:
            UsageError: the digits fit several.
        """
        return datasets.named(self.entries(), words)

    def recall(self, stamp: str) -> bytes | None:
        """The data set that a file was read as, if it is unchanged since.

        With it a request can be refused before the file is opened. It never stands for the
        fingerprint: what is read then has to be the same data set.

        Args:
            stamp: `file_stamp` of the file now; empty for what is not a file.
        """
        for link in reversed(self._store.links()) if stamp else ():
            if link.private.get("stamp") == stamp:
                return bytes.fromhex(link.private["dataset"])
        return None

    def entries(self, dataset: bytes | None = None) -> tuple[Entry, ...]:
        """Every entry in order, verified; of one data set and those linked to it, if given."""
        found = self._parse(self._store.links())
        if dataset is None:
            return found
        links = datasets.links_of(found)
        name = datasets.account_name(links, dataset)
        return tuple(e for e in found if datasets.account_name(links, e.dataset) == name)

    def account(self, dataset: bytes) -> Account:
        """What one data set has spent and may still spend."""
        return account_of(self.entries(), dataset)

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, in the order of their first entry."""
        entries = self.entries()
        links = datasets.links_of(entries)
        names = (datasets.account_name(links, e.dataset) for e in entries)
        return tuple(account_of(entries, name) for name in dict.fromkeys(names))

    def spent(self, dataset: bytes) -> tuple[Claim, ...]:
        """Sums of what was charged, open reservations included; see `Account.totals`."""
        return self.account(dataset).totals

    def verify(self, head: str | None = None) -> None:
        """Read the whole file again and check the chain, the anchors and the file's structure.

        Args:
            head: hash of an entry that must be in the chain, for example of a certificate.
        Raises:
            LedgerUnusable: something does not fit.
        """
        self._store.audit()
        if head is not None and not self.has(head):
            raise LedgerUnusable(
                "UNKNOWNHEAD",
                f"The ledger does not hold the entry {head[:16]}....",
                "Every certificate names an entry of the ledger that paid for it.",
                "This is another ledger, or an old copy of the right one.",
            )

    def has(self, head: str) -> bool:
        """Whether an entry with this hash is in the chain."""
        return any(link.hash.hex() == head for link in self._store.links())

    def _parse(self, links: Sequence[Link]) -> tuple[Entry, ...]:
        try:
            self._known = parse(links, self._known)
        except (ValueError, KeyError, TypeError):
            raise damaged(self.path, "an entry does not say what was charged") from None
        return self._known[: len(links) - 1]

    def _commit(self, identity: str, sha256: str) -> Link:
        with self._store.appending() as writer:
            return _commit_in(writer.links, identity) or writer.append(
                {"kind": "commit", "id": identity, "sha256": sha256}, {"at": _now()}
            )

    def _newest(self, request: bytes) -> Link | None:
        ours = (one for one in reversed(self._store.links()) if one.public["kind"] == "reserve")
        return next((one for one in ours if one.private["request"] == request.hex()), None)

    def _commit_of(self, identity: str) -> Link | None:
        return _commit_in(self._store.links(), identity)


def _commit_in(links: Sequence[Link], identity: str) -> Link | None:
    """The commit of a reservation, where there is one."""
    ours = (one for one in links if one.public["kind"] == "commit")
    return next((one for one in ours if one.public["id"] == identity), None)


def _private(entries: Sequence[Entry], dataset: bytes, new_data: str = "") -> dict[str, Any]:
    """The private part of an entry about a data set."""
    said: dict[str, Any] = {"new_data": new_data} if new_data else {}
    return datasets.noted(entries, dataset) | said | {"at": _now()}


def _now() -> str:  # for people only: nothing is decided by it
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
