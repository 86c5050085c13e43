"""Accounts: what the entries of a ledger add up to, and whether a cap covers one more claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from gibbous.core.claim import Claim, short
from gibbous.core.errors import BudgetExhausted, PrivacyRefused, UsageError
from gibbous.core.exact import down, text
from gibbous.privacy.accountant import as_gdp, as_zcdp
from gibbous.privacy.calibrate.gdp import epsilon_of, mu_squared_for
from gibbous.privacy.calibrate.zcdp import epsilon_from_zcdp, rho_from_approx
from gibbous.privacy.ledger import datasets
from gibbous.privacy.ledger.datasets import DIGITS
from gibbous.privacy.ledger.entries import ACCOUNTS, Cap, Entry, account_name

_IN = {"zcdp": "rho", "gdp": "mu"}
_SUMS = {
    "sum": "proven pure and (epsilon, delta) claims",
    "zcdp": "proven claims in rho, in mu (as mu^2 / 2) and of pure epsilon",
    "gdp": "proven claims in mu and of pure epsilon",
}
_SHOWN = 5  # releases named in a refusal


@dataclass(frozen=True, slots=True)
class Posting:
    """One charge of a data set; an open one stays spent."""

    id: str
    seq: int
    claim: Claim
    mechanism: str
    label: str
    protects: str
    sha256: str | None
    at: str

    @property
    def state(self) -> Literal["open", "committed"]:
        """Whether its release is durable."""
        return "open" if self.sha256 is None else "committed"


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
            content of an account that has one (`datasets.refuse_other_content`).
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
    cap = caps.get(account_name(datasets.links_of(entries), dataset))
    if cap is None:
        return
    postings = postings_of(entries, dataset)
    for posting in postings:
        cap = counted(cap, posting.claim, posting.protects, posting.id)
    counted(cap, claim, protects, None)
    left = _left(cap, postings)
    if cap.account == "sum":
        covered = claim.epsilon <= left[0] and claim.delta <= left[1]
    else:
        covered = _used(cap, [*(p.claim for p in postings), claim]) <= _whole(cap)
    if not covered:
        raise _exhausted(cap, claim, left, postings)


def checked_cap(cap: Cap) -> Cap:
    """The same cap; PrivacyRefused for numbers out of range, UsageError for an unknown account."""
    if cap.account not in ACCOUNTS:
        raise UsageError(
            "ACCOUNT",
            f"There is no account {cap.account!r}.",
            "Releases add up by 'sum' (epsilons and deltas), in 'zcdp' (rho) or in 'gdp' (mu).",
            "Correct the account of the cap.",
        )
    least = -1 if cap.account == "sum" else 0
    if not least < cap.epsilon or not least < cap.delta < 1 or min(cap.epsilon, cap.delta) < 0:
        raise PrivacyRefused(
            "CAP",
            f"A cap of epsilon = {text(cap.epsilon)}, delta = {text(cap.delta)} was given.",
            "epsilon >= 0 and 0 <= delta < 1; both > 0 with an account in rho or mu.",
            "Correct the cap, for example epsilon 2, delta 1e-8.",
        )
    return cap


def counted(cap: Cap, claim: Claim, protects: str, identity: str | None) -> Cap:
    """The cap with its privacy unit fixed, if this claim can be counted against it.

    Args:
        identity: of the release; None for a claim that is asked for.
    Raises:
        PrivacyRefused: its kind, basis, relation or privacy unit is not the cap's.
    """
    who = "The claim" if identity is None else f"Release {identity}"
    wrong = fix = ""
    if cap.account != "sum" and claim.is_dp and not _countable(cap, claim):
        wrong = f"is {claim.amount()}, which no conversion counts in {_IN[cap.account]}"
        fix = "Use a method that is accounted in Gaussian DP, or a cap with the account sum."
    elif (cap.account == "sum" or not claim.is_dp) and claim.kind not in ("pure", "approximate"):
        words = {"zcdp": "is stated in zCDP", "gdp": "is stated in Gaussian DP"}
        words |= {"probabilistic": "is of probabilistic DP"}
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
            f"A cap sums {_SUMS[cap.account]}, of one relation and privacy unit.",
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


def _whole(cap: Cap) -> Fraction:
    """The rho, or the square of mu, that a cap allows."""
    how = rho_from_approx if cap.account == "zcdp" else mu_squared_for
    return how(cap.epsilon, cap.delta)


def _used(cap: Cap, claims: Sequence[Claim]) -> Fraction:
    """What claims take of it: mu-GDP is mu^2 / 2 of rho; PrivacyRefused where one has no such number."""
    how = as_zcdp if cap.account == "zcdp" else as_gdp
    counted = [how(claim) for claim in claims]
    if any(claim.delta for claim in counted):
        raise PrivacyRefused(
            "MIXED",
            "A delta beside mu cannot be counted against a cap in mu.",
            "All of the cap's delta turns its mu into its epsilon.",
            "State the total as (epsilon, delta), under a cap with the account sum.",
        )
    return sum((claim.price for claim in counted), Fraction(0))


def _countable(cap: Cap, claim: Claim) -> bool:
    try:
        return _used(cap, [claim]) >= 0
    except PrivacyRefused:
        return False


def _left(cap: Cap, postings: Sequence[Posting]) -> tuple[Fraction, Fraction]:
    if cap.account != "sum":
        rest = _whole(cap) - _used(cap, [p.claim for p in postings])
        if rest <= 0:
            return Fraction(0), Fraction(0)
        back = epsilon_from_zcdp if cap.account == "zcdp" else epsilon_of
        return down(back(rest, cap.delta)), cap.delta
    epsilon = cap.epsilon - sum((p.claim.epsilon for p in postings), Fraction(0))
    delta = cap.delta - sum((p.claim.delta for p in postings), Fraction(0))
    return max(epsilon, Fraction(0)), max(delta, Fraction(0))


def account_of(entries: Sequence[Entry], dataset: bytes) -> Account:
    """What one data set, with those linked to it, has spent and may still spend."""
    links = datasets.links_of(entries)
    name = account_name(links, dataset)
    postings, cap = postings_of(entries, dataset), caps_of(entries).get(name)
    sums: dict[tuple[str, str, str], Claim] = {}
    for posting in postings:
        claim = posting.claim
        kind = "approximate" if claim.kind == "pure" else claim.kind
        group = (kind, claim.relation if claim.is_dp else "", posting.protects)
        sums[group] = sums[group].then(claim) if group in sums else claim
    totals = tuple(replace(c, unit="dataset") for c in sums.values())
    mine = datasets.of_account(entries, name)
    return Account(
        name,
        cap,
        postings,
        totals,
        _left(cap, postings) if cap else None,
        linked=tuple(dict.fromkeys(e.dataset for e in mine if e.dataset != name)),
        nickname=next((n for n, d in datasets.nicknames(entries).items() if d == name), ""),
        new_data=tuple(e.new_data for e in mine if e.new_data),
    )


def caps_of(entries: Sequence[Entry]) -> dict[bytes, Cap]:
    """Account -> its cap: the newest one that was set; of accounts that were joined, the smaller."""
    links: dict[bytes, bytes] = {}
    caps: dict[bytes, Cap] = {}
    for entry in entries:
        if entry.cap is not None:
            caps[account_name(links, entry.dataset)] = entry.cap
        elif entry.into is not None:
            links[entry.dataset] = entry.into
            joined = _tighter(caps.pop(entry.dataset, None), caps.get(entry.into))
            caps |= {entry.into: joined} if joined else {}
    return caps


def joinable(entries: Sequence[Entry], new: bytes, old: bytes) -> tuple[bytes, bytes]:
    """The accounts of two data sets that may become one.

    Raises:
        UsageError: the old one is not in the ledger, or they are one account already.
        PrivacyRefused: a cap of either cannot sum what both have released.
    """
    links = datasets.links_of(entries)
    mine, into = account_name(links, new), account_name(links, old)
    if not any(e.dataset == old for e in entries):
        raise UsageError(
            "NOACCOUNT",
            f"The ledger has no data set {old.hex()[:DIGITS]}.",
            "A data set is linked to one that has a release or a cap.",
            "Find it with `gibbous ledger show`.",
        )
    if mine == into:
        raise UsageError(
            "LINKED",
            f"Both data sets belong to the account {into.hex()[:DIGITS]} already.",
            "A link joins two accounts, and runs in no circle.",
            "There is nothing to do.",
        )
    caps = caps_of(entries)
    cap = _tighter(caps.get(mine), caps.get(into))
    for posting in (*postings_of(entries, into), *postings_of(entries, mine)):
        if cap is not None:
            cap = counted(cap, posting.claim, posting.protects, posting.id)
    return mine, into


def postings_of(entries: Sequence[Entry], dataset: bytes) -> tuple[Posting, ...]:
    """Charges of one data set and of those linked to it, oldest first."""
    digests = {e.id: e.sha256 for e in entries if e.kind == "commit"}
    links = datasets.links_of(entries)
    name = account_name(links, dataset)
    return tuple(
        Posting(e.id, e.seq, e.claim, e.mechanism, e.label, e.protects, digests.get(e.id), e.at)
        for e in entries
        if e.claim is not None and account_name(links, e.dataset) == name
    )


def _tighter(first: Cap | None, second: Cap | None) -> Cap | None:
    """The cap of two accounts that become one: the smaller epsilon, and the smaller delta.

    Raises:
        PrivacyRefused: the caps count another relation or privacy unit.
    """
    if first is None or second is None:
        return first or second
    units = {c.protects for c in (first, second)} - {None}
    same = (first.relation, first.account) == (second.relation, second.account)
    if not same or len(units) > 1:
        raise PrivacyRefused(
            "LINKCAP",
            "The two data sets have caps of another neighbor relation, privacy unit or account.",
            "The cap of joined accounts is the smaller of both, which only alike caps have.",
            "Set the same kind of cap for both (gibbous ledger cap), then link them.",
        )
    epsilon, delta = min(first.epsilon, second.epsilon), min(first.delta, second.delta)
    return replace(first, epsilon=epsilon, delta=delta, protects=first.protects or second.protects)
