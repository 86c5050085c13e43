"""Entries: what a link of the chain says of a data set, read and written."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from gibbous.core.claim import Claim, Relation
from gibbous.core.dataset import DataSet
from gibbous.core.errors import LedgerUnusable
from gibbous.core.exact import from_text, text
from gibbous.privacy.ledger.chain import Link

_IDENTITY = re.compile(r"r-[0-9a-z]{1,64}")  # the name of a file, too
ACCOUNTS = ("sum", "zcdp", "gdp")


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that one data set may ever spend.

    Attributes:
        epsilon, delta: exact; what all releases together stay within.
        relation: the neighbor relation of every claim that counts.
        protects: the privacy unit in words; None until the first claim fixes it.
        account: how releases add up: the plain sum of epsilons and of deltas, or in the rho or the
            square of mu that epsilon and delta allow. One, for good: never the smallest of several.
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation
    protects: str | None = None
    account: str = "sum"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. Private, like the ledger: it holds the fingerprint of the data.

    Attributes:
        seq: position; positions rule, clocks do not.
        kind: "reserve", "commit", "cap", "link" or "name".
        id: of the reservation; empty for what is none.
        dataset: keyed fingerprint.
        claim: what was charged; None for what charges nothing.
        cap: the cap that was set; None otherwise.
        into: the account that a link joined it to; None otherwise.
        nickname: that a name gave it.
        new_data: why the data set was declared to be of other people; empty if it was not.
        columns: keyed digests of the names of its columns; None where they were not noted.
        place, stamp: keyed digests of its path, and of the file (`file_stamp`).
        mechanism, label: for people.
        protects: privacy unit in words.
        rows: rows of all sets, if public.
        sha256: of what was released; only of a commit.
        at: UTC time to the minute, for people only.
    """

    seq: int
    kind: Literal["reserve", "commit", "cap", "link", "name"]
    id: str
    dataset: bytes
    claim: Claim | None = None
    cap: Cap | None = None
    mechanism: str = ""
    label: str = ""
    protects: str = ""
    rows: int | None = None
    sha256: str | None = None
    at: str = ""
    into: bytes | None = None
    nickname: str = ""
    new_data: str = ""
    columns: frozenset[str] | None = None
    place: str = ""
    stamp: str = ""


def parse(chain: Sequence[Link], known: tuple[Entry, ...] = ()) -> tuple[Entry, ...]:
    """Entries of a verified chain, after those that are known already.

    Raises:
        ValueError, KeyError, TypeError: an entry is none, or links accounts in a circle.
        LedgerUnusable: an entry is of a kind that only a newer gibbous writes.
    """
    entries = list(known)
    reserved = {e.id: e.dataset for e in known if e.kind == "reserve"}
    links = {e.dataset: e.into for e in known if e.into is not None}
    for link in chain[1 + len(known) :]:
        kind, identity = link.public["kind"], link.public.get("id", "")
        if kind in ("reserve", "commit") and not _IDENTITY.fullmatch(identity):
            raise ValueError("no name of a reservation")
        if kind == "commit":
            dataset = reserved[identity]
        else:
            dataset = bytes.fromhex(link.private["dataset"])
        if kind == "reserve":
            reserved[identity] = dataset
        elif kind == "link":
            into = bytes.fromhex(link.private["into"])
            if dataset in links or account_name(links, into) == dataset:
                raise ValueError("an account that is linked twice, or to itself")
            links[dataset] = into
        entries.append(
            Entry(link.seq, kind, identity, dataset, **_public(link), **_private(link.private))
        )
    return tuple(entries)


def account_name(links: dict[bytes, bytes], dataset: bytes) -> bytes:
    """The fingerprint under which the account of a data set is kept: the one linked to last."""
    while dataset in links:
        dataset = links[dataset]
    return bytes(dataset)


def _public(link: Link) -> dict[str, Any]:
    """What only entries of one kind say."""
    public, private = link.public, link.private
    match public["kind"]:
        case "reserve":
            texts = {key: _text(public[key]) for key in ("mechanism", "protects")}
            texts["label"] = _text(private["label"])
            return texts | {
                "rows": _rows(public["rows"]),
                "claim": Claim.from_json(public["claim"]),
            }
        case "commit":
            return {"sha256": _text(public["sha256"])}
        case "cap":
            numbers = from_text(public["epsilon"]), from_text(public["delta"])
            how = public.get("account", "sum")
            unit = None if public["protects"] is None else _text(public["protects"])
            if how in ACCOUNTS and public["relation"] in get_args(Relation):
                return {"cap": Cap(*numbers, public["relation"], unit, how)}
        case "link":
            return {"into": bytes.fromhex(private["into"])}
        case "name":
            return {"nickname": _text(private["nickname"])}
    raise LedgerUnusable(
        "NEWER",
        f"Entry {link.seq} of the ledger is of a kind that this gibbous does not know.",
        "A newer ledger is left untouched.",
        "Use a newer gibbous.",
    )


def _private(private: dict[str, Any]) -> dict[str, Any]:
    """What the private part of any entry may hold besides the name of the data set."""
    columns = private.get("columns")
    texts = {key: _text(private.get(key, "")) for key in ("new_data", "place", "stamp")}
    return texts | {
        "at": _text(private["at"]),
        "columns": None if columns is None else frozenset(map(_text, columns)),
    }


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _rows(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError("no number of rows")
    return value


def public_cap(cap: Cap) -> dict[str, Any]:
    """The public part of an entry that sets a cap."""
    numbers = {"epsilon": text(cap.epsilon), "delta": text(cap.delta)}
    how = {} if cap.account == "sum" else {"account": cap.account}
    return {"kind": "cap", **numbers, "relation": cap.relation, "protects": cap.protects} | how


def private_part(entries: Sequence[Entry], dataset: bytes, new_data: str = "") -> dict[str, Any]:
    """What an entry keeps of a data set in its private part: its columns are written once."""
    known = DataSet.of(dataset)
    noted = (e.columns for e in entries if e.dataset == dataset and e.columns is not None)
    part: dict[str, Any] = {"dataset": dataset.hex()}
    if not any(known.columns <= columns for columns in noted):
        part["columns"] = sorted(known.columns)
    part |= {key: value for key in ("place", "stamp") if (value := getattr(known, key))}
    return part | ({"new_data": new_data} if new_data else {}) | {"at": now()}


def now() -> str:  # for people only: nothing is decided by it
    """UTC time to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
