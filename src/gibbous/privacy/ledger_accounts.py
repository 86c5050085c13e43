"""Accounts: what the entries of a ledger add up to, and whether a cap covers one more claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from gibbous.core.claim import Claim, Relation, short
from gibbous.core.errors import BudgetExhausted, LedgerUnusable, PrivacyRefused
from gibbous.core.exact import from_text, text
from gibbous.privacy import ledger_datasets as datasets
from gibbous.privacy.ledger_store import Link

_SHOWN = 5  # releases named in a refusal


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that one data set may ever spend.

    Attributes:
        epsilon, delta: exact; sums of pure and (epsilon, delta) claims stay at or below both.
        relation: the neighbor relation of every claim that counts.
        protects: the privacy unit in words; None until the first claim fixes it.
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation
    protects: str | None = None


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


@dataclass(frozen=True, slots=True)
class Posting:
    """One charge of a data set; an open one stays spent."""

    id: str
    seq: int
    state: Literal["open", "committed"]
    claim: Claim
    mechanism: str
    label: str
    protects: str
    sha256: str | None
    at: str


@dataclass(frozen=True, slots=True)
class Account:
    """Everything about one data set, and those that were linked to it.

    Attributes:
        dataset: keyed fingerprint.
        linked: fingerprints of the data sets that were joined with it.
        nickname: newest one, or empty.
        new_data: why they were declared to be of other people, oldest first.
        cap: None when none was set.
        releases: charges, oldest first.
        totals: sums, one a definition, relation and privacy unit; those cannot be added up.
        left: (epsilon, delta) under the cap, never negative; None without a cap.
    """

    dataset: bytes
    cap: Cap | None
    releases: tuple[Posting, ...]
    totals: tuple[Claim, ...]
    left: tuple[Fraction, Fraction] | None
    linked: tuple[bytes, ...] = ()
    nickname: str = ""
    new_data: tuple[str, ...] = ()


def admit(
    entries: Sequence[Entry], dataset: bytes, claim: Claim, protects: str, new_data: str = ""
) -> None:
    """Let a claim pass if the data set has no cap, or if its cap covers it.

    Raises:
        BudgetExhausted: the cap does not cover it.
        PrivacyRefused: the claim cannot be counted against the cap, or the data look like another
            content of an account that has one (`ledger_datasets.refuse_other_content`).
    """
    if claim.is_dp and claim.unit in ("row", "block"):
        raise PrivacyRefused(
            "UNITTOTAL",
            f"A claim per {claim.unit} was offered to the ledger.",
            "It charges totals: everything that is released.",
            "Multiply the claim by the number of rows or blocks, and by the sets.",
        )
    caps = caps_of(entries)
    datasets.refuse_other_content(entries, caps, dataset, new_data)
    cap = caps.get(datasets.account_name(datasets.links_of(entries), dataset))
    if cap is None:
        return
    postings = postings_of(entries, dataset)
    for posting in postings:
        cap = counted(cap, posting.claim, posting.protects, posting.id)
    counted(cap, claim, protects, None)
    epsilon, delta = _left(cap, postings)
    if claim.epsilon > epsilon or claim.delta > delta:
        raise _exhausted(cap, claim, (epsilon, delta), postings)


def counted(cap: Cap, claim: Claim, protects: str, identity: str | None) -> Cap:
    """The cap with its privacy unit fixed, if this claim can be counted against it.

    Args:
        identity: of the release; None for a claim that is asked for.
    Raises:
        PrivacyRefused: its kind, basis, relation or privacy unit is not the cap's.
    """
    who = "The claim" if identity is None else f"Release {identity}"
    wrong = fix = ""
    if claim.kind not in ("pure", "approximate"):
        words = {"zcdp": "is stated in zCDP", "probabilistic": "is of probabilistic DP"}
        wrong = words.get(claim.kind, f"is of kind {claim.kind}, which no budget bounds")
        fix = (
            "State its total as (epsilon, delta) by a proven conversion."
            if claim.is_dp
            else "Use a differentially private method, or data without a cap."
        )
    elif claim.basis != "proven":
        wrong, fix = f"is {claim.basis}, not proven", "Use a method with a proven cost."
    elif claim.relation != cap.relation:
        wrong = f"is under {claim.relation}, the cap is under {cap.relation}"
        fix = f"Use relation={cap.relation!r}; numbers of one relation are never relabeled."
    elif cap.protects is not None and protects != cap.protects:
        wrong = f"protects {protects}, the cap counts {cap.protects}"
        fix = "Use the same privacy unit for every release of these data."
    if wrong:
        raise PrivacyRefused(
            "CAPKIND",
            f"{who} {wrong}.",
            "A cap sums proven pure and (epsilon, delta) claims of one relation and privacy unit.",
            fix,
        )
    return replace(cap, protects=protects)


def _exhausted(
    cap: Cap, claim: Claim, left: tuple[Fraction, Fraction], postings: Sequence[Posting]
) -> BudgetExhausted:
    shown = [f"{p.id} ({_price(p.claim)}, {p.mechanism}, {p.state})" for p in postings[-_SHOWN:]]
    if len(postings) > _SHOWN:
        shown.insert(0, f"{len(postings) - _SHOWN} earlier releases")
    return BudgetExhausted(
        "CAP",
        f"This run asks for {_price(claim)}; of the cap {_numbers(cap.epsilon, cap.delta)}, "
        f"{_numbers(*left)} is left. Spent by: {', '.join(shown) or 'no release'}.",
        "Open reservations stay spent.",
        "Ask for less, or set a higher cap (gibbous ledger cap) if what was promised allows it.",
    )


def _price(claim: Claim) -> str:
    return _numbers(claim.epsilon, claim.delta)


def _numbers(epsilon: Fraction, delta: Fraction) -> str:
    # Exact when that is short to read; a long fraction is rounded, never down.
    exact = [text(v) if len(text(v)) <= 20 else short(v) for v in (epsilon, delta)]
    return f"epsilon = {exact[0]}, delta = {exact[1]}"


def _left(cap: Cap, postings: Sequence[Posting]) -> tuple[Fraction, Fraction]:
    epsilon = cap.epsilon - sum((p.claim.epsilon for p in postings), Fraction(0))
    delta = cap.delta - sum((p.claim.delta for p in postings), Fraction(0))
    return max(epsilon, Fraction(0)), max(delta, Fraction(0))


def account_of(entries: Sequence[Entry], dataset: bytes) -> Account:
    """What one data set, with those linked to it, has spent and may still spend."""
    links = datasets.links_of(entries)
    name = datasets.account_name(links, dataset)
    postings, cap = postings_of(entries, dataset), caps_of(entries).get(name)
    sums: dict[tuple[str, str, str], Claim] = {}
    for posting in postings:
        claim = posting.claim
        kind = "approximate" if claim.kind == "pure" else claim.kind
        group = (kind, claim.relation if claim.is_dp else "", posting.protects)
        sums[group] = sums[group].then(claim) if group in sums else claim
    totals = tuple(replace(c, unit="dataset") for c in sums.values())
    mine = [e for e in entries if datasets.account_name(links, e.dataset) == name]
    return Account(
        name, cap, postings, totals, _left(cap, postings) if cap else None,
        linked=tuple(dict.fromkeys(e.dataset for e in mine if e.dataset != name)),
        nickname=next((n for n, d in datasets.nicknames(entries).items() if d == name), ""),
        new_data=tuple(e.new_data for e in mine if e.new_data),
    )  # fmt: skip


def caps_of(entries: Sequence[Entry]) -> dict[bytes, Cap]:
    """Account -> its cap: the newest one that was set; of accounts that were joined, the smaller."""
    links: dict[bytes, bytes] = {}
    caps: dict[bytes, Cap] = {}
    for entry in entries:
        if entry.cap is not None:
            caps[datasets.account_name(links, entry.dataset)] = entry.cap
        elif entry.into is not None:
            links[entry.dataset] = entry.into
            joined = datasets.tighter(caps.pop(entry.dataset, None), caps.get(entry.into))
            caps |= {entry.into: joined} if joined else {}
    return caps


def joinable(entries: Sequence[Entry], new: bytes, old: bytes) -> tuple[bytes, bytes]:
    """The accounts of two data sets that may become one.

    Raises:
        UsageError: the old one is not in the ledger, or they are one account already.
        PrivacyRefused: a cap of either cannot sum what both have released.
    """
    mine, into = datasets.link_roots(entries, new, old)
    caps = caps_of(entries)
    cap = datasets.tighter(caps.get(mine), caps.get(into))
    for posting in (*postings_of(entries, into), *postings_of(entries, mine)):
        if cap is not None:
            cap = counted(cap, posting.claim, posting.protects, posting.id)
    return mine, into


def postings_of(entries: Sequence[Entry], dataset: bytes) -> tuple[Posting, ...]:
    """Charges of one data set and of those linked to it, oldest first."""
    digests = {e.id: e.sha256 for e in entries if e.kind == "commit"}
    links = datasets.links_of(entries)
    name, out = datasets.account_name(links, dataset), []
    for e in entries:
        if e.kind == "reserve" and datasets.account_name(links, e.dataset) == name:
            assert e.claim is not None
            state: Literal["open", "committed"] = "committed" if e.id in digests else "open"
            out.append(
                Posting(
                    e.id, e.seq, state, e.claim, e.mechanism, e.label, e.protects,
                    digests.get(e.id), e.at,
                )
            )  # fmt: skip
    return tuple(out)


def parse(links: Sequence[Link], known: tuple[Entry, ...] = ()) -> tuple[Entry, ...]:
    """Entries of verified links, after those that are known already.

    Raises:
        LedgerUnusable: an entry is of a kind that only a newer gibbous writes.
    """
    out: list[Entry] = []
    reserved = {e.id: e.dataset for e in known if e.kind == "reserve"}
    for link in links[1 + len(known) :]:
        public, private = link.public, link.private
        kind, identity = public["kind"], public.get("id", "")
        if kind == "commit":
            entry = Entry(link.seq, kind, identity, reserved[identity], sha256=public["sha256"])
            out.append(replace(entry, at=private["at"]))
            continue
        entry = Entry(
            link.seq, kind, identity, bytes.fromhex(private["dataset"]), **_noted(private)
        )
        if kind == "reserve":
            reserved[identity] = entry.dataset
            entry = replace(
                entry, claim=Claim.from_json(public["claim"]), mechanism=public["mechanism"],
                label=private["label"], protects=public["protects"], rows=public["rows"],
            )  # fmt: skip
        elif kind == "cap":
            numbers = from_text(public["epsilon"]), from_text(public["delta"])
            entry = replace(entry, cap=Cap(*numbers, public["relation"], public["protects"]))
        elif kind == "link":
            entry = replace(entry, into=bytes.fromhex(private["into"]))
        elif kind == "name":
            entry = replace(entry, nickname=private["nickname"])
        else:
            raise LedgerUnusable(
                "NEWER",
                f"Entry {link.seq} of the ledger is of a kind that this gibbous does not know.",
                "A newer ledger is left untouched.",
                "Use a newer gibbous.",
            )
        out.append(entry)
    return known + tuple(out)


def _noted(private: dict[str, Any]) -> dict[str, Any]:
    """What the private part of any entry about a data set may hold besides its name."""
    columns = private.get("columns")
    return {
        "at": private["at"],
        "new_data": private.get("new_data", ""),
        "columns": None if columns is None else frozenset(columns),
        "place": private.get("place", ""),
        "stamp": private.get("stamp", ""),
    }
