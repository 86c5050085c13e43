"""Which account a data set belongs to: links, nicknames, and when other content is refused."""

from __future__ import annotations

import hmac
import os
import re
import stat
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from gibbous.core.dataset import DataSet
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.privacy.ledger.entries import account_name

if TYPE_CHECKING:
    from gibbous.privacy.ledger.entries import Entry

DIGITS = 8  # of a fingerprint, enough for people
_NICKNAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_DIGITS = re.compile(r"[0-9a-f]{8,64}")
_MOST_WORDS = 500


def file_place(source: object, key: bytes) -> str:
    """Keyed digest of the path or address of a source, hex; empty for a frame."""
    if not isinstance(source, str | os.PathLike):
        return ""
    text = os.fspath(source)
    try:
        text = os.path.realpath(text) if os.path.lexists(text) else text
    except ValueError:  # whoever opens it says what is wrong
        return ""
    return hmac.new(key, b"place" + os.fsencode(text), "sha256").hexdigest()


def file_stamp(source: object, key: bytes) -> str:
    """Keyed digest of which regular local file this is and when it was last changed; else empty.

    The file is not opened. The time of the last change of its data or facts is one that no program
    can set back: a stamp that is known is a file that did not change.
    """
    if not isinstance(source, str | os.PathLike):
        return ""
    try:
        facts = os.stat(source)
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return ""
    told = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return hmac.new(key, b"file-2" + repr(told).encode(), "sha256").hexdigest()


def links_of(entries: Sequence[Entry]) -> dict[bytes, bytes]:
    """Account -> the account that it was linked to; each at most once, and never in a circle."""
    return {e.dataset: e.into for e in entries if e.into is not None}


def of_account(entries: Sequence[Entry], dataset: bytes) -> tuple[Entry, ...]:
    """The entries of one data set and of those that are linked to it."""
    links = links_of(entries)
    name = account_name(links, dataset)
    return tuple(e for e in entries if account_name(links, e.dataset) == name)


def accounts_in(entries: Sequence[Entry]) -> list[bytes]:
    """The names of all accounts, in the order of their first entry."""
    links = links_of(entries)
    return list(dict.fromkeys(account_name(links, e.dataset) for e in entries))


def nicknames(entries: Sequence[Entry]) -> dict[str, bytes]:
    """Nickname -> account; a later one replaces an earlier one, and a link keeps both names."""
    links = links_of(entries)
    newest = {e.dataset: e.nickname for e in entries if e.nickname}
    return {nickname: account_name(links, dataset) for dataset, nickname in newest.items()}


def named(entries: Sequence[Entry], name: str) -> bytes | None:
    """The data set of a nickname, or of 8 or more digits of a fingerprint; UsageError if they fit several."""
    if (dataset := nicknames(entries).get(name)) is not None:
        return dataset
    if not _DIGITS.fullmatch(name):
        return None
    hits = sorted({e.dataset for e in entries if e.dataset.hex().startswith(name)})
    if len(hits) > 1:
        raise UsageError(
            "AMBIGUOUS",
            f"{len(hits)} data sets have fingerprints that begin with {name!r}.",
            "Digits name a data set when they fit no other.",
            "Give more digits, or the nickname (gibbous ledger show).",
        )
    return hits[0] if hits else None


def checked_nickname(entries: Sequence[Entry], dataset: bytes, nickname: str) -> bytes:
    """The account that gets a nickname; UsageError if it is none, or that of another account."""
    if not _NICKNAME.fullmatch(nickname) or _DIGITS.fullmatch(nickname):
        raise UsageError(
            "NICKNAME",
            f"{nickname!r} is not a nickname.",
            "A letter, then letters, digits, - and _, 64 at most, and not like a fingerprint.",
            "Choose another, for example survey-2024.",
        )
    mine, other = account_name(links_of(entries), dataset), nicknames(entries).get(nickname)
    if other is not None and other != mine:
        raise UsageError(
            "NICKNAME",
            f"Data set {other.hex()[:DIGITS]} is called {nickname!r} already.",
            "A nickname stands for one account.",
            "Choose another, or give that data set a new one first.",
        )
    return mine


def reason(new_data: str | None) -> str:
    """Why data are declared new; empty if they are not; UsageError for a blank or too long one."""
    if new_data is None or new_data == "":
        return ""
    if not isinstance(new_data, str) or not new_data.strip() or len(new_data) > _MOST_WORDS:
        raise UsageError(
            "NEWDATA",
            "The reason why these are new data is blank, too long, or no text.",
            f"It is a text of at most {_MOST_WORDS} characters, which the ledger keeps.",
            'Say it, for example --new-data "the panel of 2025, other households".',
        )
    return new_data.strip()


def refuse_other_content(
    entries: Sequence[Entry], caps: Container[bytes], dataset: bytes, new_data: str
) -> None:
    """Refuse a data set that looks like other content of a capped account's source.

    It does so where an account with a cap was read from the same path, or where all columns of one
    are columns of the other; and where a file that did not change was read as other records before.
    An account that has a cap of its own, or was declared new, is past this.

    Args:
        caps: accounts that have one.
        dataset: a `DataSet`; of other bytes nothing is known that could be compared.
        new_data: why these are other people's data; empty if no reason was given.
    Raises:
        PrivacyRefused: naming the account that it looks like.
    """
    links = links_of(entries)
    mine = account_name(links, dataset)
    declared = any(e.new_data and account_name(links, e.dataset) == mine for e in entries)
    if new_data or mine in caps or declared:
        return
    likeness = _likeness(entries, caps, dataset)
    if likeness is None:
        return
    account, how = likeness
    raise PrivacyRefused(
        "OTHERCONTENT",
        f"Data set {account.hex()[:DIGITS]}{', which has a cap,' * (account in caps)} {how}.",
        "Changed data of the same people are charged to the same account; data of other people are "
        "declared new, with the reason.",
        f"Run `gibbous ledger link DATA {account.hex()[:DIGITS]}` (Ledger.link), or pass "
        '--new-data "why" (new_data=).',
    )


def spent_elsewhere(
    entries: Sequence[Entry], dataset: bytes, new_data: str, *, older: bool = False
) -> str:
    """The warning that a data set without an account looks like one that has spent; empty if none does.

    Args:
        entries: those before the first one of the data set.
        new_data: why these are other people's data; there is nothing to warn of then.
        older: only an account of an older gibbous, which never recognizes its data set again.
    """
    links = links_of(entries)
    mine = account_name(links, dataset)
    if new_data or any(account_name(links, e.dataset) == mine for e in entries):
        return ""
    among = {account_name(links, e.dataset) for e in entries if e.kind == "reserve"}
    if older:
        among -= {account_name(links, e.dataset) for e in entries if e.columns is not None}
    likeness = _likeness(entries, among, dataset) if among else None
    if likeness is None:
        return ""
    account, how = likeness[0].hex()[:DIGITS], likeness[1]
    return (
        f"Data set {account}, which has releases, {how}. Its spending is not counted here: if people "
        f"are in both, run `gibbous ledger link DATA {account}`."
    )


def _likeness(
    entries: Sequence[Entry], among: Container[bytes], dataset: bytes
) -> tuple[bytes, str] | None:
    """The newest account among some that a data set is like, and in what."""
    if not isinstance(dataset, DataSet):
        return None
    links = links_of(entries)
    mine = account_name(links, dataset)
    newer = {account_name(links, e.dataset) for e in entries if e.columns is not None}
    for entry in reversed(entries):
        other = account_name(links, entry.dataset)
        if other == mine:
            continue
        if entry.stamp and entry.stamp == dataset.stamp:
            return other, "is this very file, which did not change but is read as other records now"
        if other not in among:
            continue
        mine_too, columns = dataset.columns, entry.columns or frozenset()
        if entry.place and entry.place == dataset.place:
            return other, "was read from this path, which holds other records now"
        if mine_too and columns and (mine_too <= columns or columns <= mine_too):
            return other, "has the columns of these data, which are other records"
        if other not in newer:
            return other, "is of an older gibbous, whose fingerprints recognize no data any more"
    return None
