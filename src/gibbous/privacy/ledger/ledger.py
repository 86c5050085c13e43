"""The ledger: what every release of every data set has cost, and the most it may cost.

Costs are reserved before records are counted and committed when the release is durable. A
reservation that is never committed stays spent. The state is a file; see store.py.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Sequence
from pathlib import Path

from gibbous.core.claim import Claim, Relation
from gibbous.core.dataset import DataSet
from gibbous.core.exact import Number, exact
from gibbous.core.keywords import answering_methods
from gibbous.core.readers import readers
from gibbous.core.schema import Schema
from gibbous.privacy.ledger import accounts, datasets, files
from gibbous.privacy.ledger.chain import Link
from gibbous.privacy.ledger.entries import Cap, Entry, now, parse, private_part, public_cap
from gibbous.privacy.ledger.errors import LedgerWarning, damaged, unknown_head
from gibbous.privacy.ledger.reading import ReadStore
from gibbous.privacy.ledger.reservation import Hold, commit_of
from gibbous.privacy.ledger.store import Store


@answering_methods
class Ledger:
    """What every data set has spent, and the most it may: the one thing here that has state.

    Made by `open` (a file, used by many processes at once) or `ephemeral` (in memory). A data set is
    named by 32 bytes, the keyed fingerprint of its records. Epsilon is in nats, sums are exact.

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
        path: Path | str | None = None, *, anchor: Path | None = None, allow_network: bool = False
    ) -> Ledger:
        """Open the ledger, or make a new one where none was.

        Args:
            path: the file; None is $GIBBOUS_HOME/ledger.sqlite, else gibbous/ledger.sqlite in the
                user's data folder.
            anchor: a second small file, best elsewhere, for the newest head; $GIBBOUS_ANCHOR
                names one, too. One beside the ledger is always kept.
            allow_network: accept a network file system.
        Raises:
            LedgerUnusable: damaged, cut, rolled back, newer, not writable, or on a network.
            ResourceLimit: the disk is full.
        """
        extra = (anchor,) if anchor else files.anchors_from_environment()
        return Ledger(Store(path or files.default_path(), extra, allow_network=allow_network))

    @staticmethod
    def read(path: Path | str | None = None, *, anchor: Path | None = None) -> Ledger:
        """Open a ledger that exists, to read it; needs no write access, and makes nothing.

        Args: as for `open`.
        Raises:
            LedgerUnusable: there is none; or it is damaged, cut, rolled back or newer.
        """
        extra = (anchor,) if anchor else files.anchors_from_environment()
        return Ledger(ReadStore(path or files.default_path(), extra))

    @staticmethod
    def ephemeral() -> Ledger:
        """A ledger in memory, for studies on public data and for tests."""
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
        """Name a data set as this ledger does; reads it, spends nothing.

        Args:
            source, options: as for `gibbous.synthesize`.
            schema: that of the release, to be held against the columns; it changes no name.
        Returns:
            The keyed fingerprint, 32 bytes: what `cap`, `link` and `account` take.
        Raises:
            InputRejected, SchemaMismatch, ResourceLimit: the source cannot be read.
        """
        return readers().dataset(source, self.key, schema, options)

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
            claim, mechanism: total of all that will be released; registered name.
            request: digest of what exactly is asked for, 32 bytes, and that of what it pays for.
            rows: rows of all sets, if public.
            protects, label: the privacy unit in words; for people, stays in the ledger.
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
        public = {"kind": "reserve", "id": identity, "claim": claim.to_json(), "rows": rows}
        public |= {"mechanism": mechanism, "protects": protects}
        try:
            with self._store.appending() as writer:
                entries = self._parse(writer.links)
                accounts.admit(entries, dataset, claim, protects, new_data)
                private = {"request": request.hex(), "label": label}
                private |= private_part(entries, dataset, new_data)
                link = writer.append(public, private)
        except BaseException:
            if alive is not None:
                alive.end()
            raise
        _warn(datasets.spent_elsewhere(entries, dataset, new_data, older=True))
        return Hold(self, link, None, alive)

    def check(
        self,
        dataset: bytes,
        claim: Claim,
        *,
        protects: str = "one row",
        new_data: str | None = None,
    ) -> None:
        """Raise what `reserve` would raise; write nothing."""
        new_data = datasets.reason(new_data)
        accounts.admit(self.entries(), dataset, claim, protects, new_data)

    def find(self, request: bytes, identity: str = "") -> Hold | None:
        """That of `identity` if it paid for the same purchase; else the newest for this very request.

        A committed one; or an open one whose process has ended, now ours; or None.
        """
        links = [k for k in self._reserves() if k.private.get("request") == request.hex()]
        mine = [k for k in self.bought(request[32:]) if k.public["id"] == identity]
        if not (mine or links):
            return None
        link = (mine or links)[-1]
        try:
            alive = self._store.live(link.public["id"])
        except BlockingIOError:
            return None
        commit = commit_of(self._store.links(), link.public["id"])  # after the lock: it may be new
        if commit is not None and alive is not None:
            alive.end()
            alive = None
        return Hold(self, link, commit, alive)

    def bought(self, purchase: bytes) -> Sequence[Link]:
        """Reservations that paid for this purchase, whatever else was asked for."""
        wanted = purchase.hex() or "none"
        return [k for k in self._reserves() if str(k.private.get("request"))[64:] == wanted]

    def cap(
        self,
        dataset: bytes,
        epsilon: Number,
        delta: Number,
        relation: Relation = "add_remove",
        *,
        protects: str | None = None,
        new_data: str | None = None,
        account: str = "sum",
    ) -> None:
        """Set the most that a data set may ever spend; a later cap replaces an earlier one.

        Args:
            dataset: keyed fingerprint, from `dataset`.
            epsilon: of all releases together, nats, >= 0.
            delta: of all releases together, 0 <= delta < 1.
            relation: the neighbor relation that counts; claims under the other one are refused.
            protects: the privacy unit in words; None takes that of the first release.
            new_data: as for `reserve`.
            account: how releases add up; see `Cap`.
        Raises:
            PrivacyRefused: the numbers are out of range, or releases were made that this account
                cannot add (no claim, another relation, another privacy unit); or as for `reserve`.
        """
        cap = accounts.checked_cap(Cap(exact(epsilon), exact(delta), relation, protects, account))
        public = public_cap(cap)
        new_data = datasets.reason(new_data)
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            datasets.refuse_other_content(entries, accounts.caps_of(entries), dataset, new_data)
            for posting in accounts.postings_of(entries, dataset):
                cap = accounts.counted(cap, posting.claim, posting.protects, posting.id)
            writer.append(public, private_part(entries, dataset, new_data))
        _warn(datasets.spent_elsewhere(entries, dataset, new_data))

    def link(self, new: bytes, old: bytes) -> None:
        """Join two accounts for good: what both have spent is one sum, under one cap.

        The cap is that of either; of two, the smaller epsilon and delta.

        Args:
            new: the data set that is another version of the old one, or of some of its people.
            old: one that the ledger knows; the account keeps its name.
        Raises:
            UsageError: the old one is not known, or both are one account already.
            PrivacyRefused: no sum covers what both have released under that cap.
        """
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            mine, into = accounts.joinable(entries, new, old)
            private = private_part(entries, DataSet.of(new).under(mine))
            writer.append({"kind": "link"}, private | {"into": into.hex()})

    def nickname(self, dataset: bytes, nickname: str) -> None:
        """Give a data set a name for people, beside its fingerprint; a later one replaces it.

        Raises:
            UsageError: it is no nickname, or that of another account.
        """
        with self._store.appending() as writer:
            entries = self._parse(writer.links)
            name = datasets.checked_nickname(entries, dataset, nickname)
            private = private_part(entries, DataSet.of(dataset).under(name))
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
        """The data set that a file was read as, if it is unchanged since: to refuse before reading.

        It never stands for the fingerprint: what is read then has to be the same data set. `stamp`
        is the `file_stamp` of the file now; empty for what is not a file.
        """
        links = reversed(self._store.links()) if stamp else ()
        known = (link.private["dataset"] for link in links if link.private.get("stamp") == stamp)
        return next(map(bytes.fromhex, known), None)

    def entries(self, dataset: bytes | None = None) -> tuple[Entry, ...]:
        """Every entry in order, verified; of one data set and those linked to it, if given."""
        entries = self._parse(self._store.links())
        return entries if dataset is None else datasets.of_account(entries, dataset)

    def account(self, dataset: bytes) -> accounts.Account:
        """What one data set has spent and may still spend."""
        return accounts.account_of(self.entries(), dataset)

    def accounts(self) -> tuple[accounts.Account, ...]:
        """All accounts, in the order of their first entry."""
        entries = self.entries()
        return tuple(accounts.account_of(entries, n) for n in datasets.accounts_in(entries))

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
        if head is not None and self.number(head) is None:
            raise unknown_head(head)

    def number(self, head: str) -> int | None:
        """Position in the chain of the entry with this hash, from 0; None where there is none."""
        return next((a.seq for a in self._store.links() if a.hash.hex() == head), None)

    def _reserves(self) -> Sequence[Link]:
        self._parse(links := self._store.links())
        return [link for link in links if link.public["kind"] == "reserve"]

    def _parse(self, links: Sequence[Link]) -> tuple[Entry, ...]:
        try:
            self._known = parse(links, self._known)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise damaged(self.path, "an entry does not say what was charged") from None
        return self._known[: len(links) - 1]

    def _commit(self, identity: str, sha256: str) -> Link:
        with self._store.appending() as writer:
            return commit_of(writer.links, identity) or writer.append(
                {"kind": "commit", "id": identity, "sha256": sha256}, {"at": now()}
            )


def _warn(sentences: str) -> None:
    if sentences:
        warnings.warn(sentences, LedgerWarning, stacklevel=3)
