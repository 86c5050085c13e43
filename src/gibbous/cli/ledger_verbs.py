"""`gibbous ledger show | cap`: what each data set has spent, and the most it may."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gibbous.cli import show as screen
from gibbous.cli.config import number
from gibbous.core.claim import Claim, Relation, short
from gibbous.core.errors import LedgerUnusable, UsageError
from gibbous.core.exact import exact, text
from gibbous.core.schema import Schema
from gibbous.privacy.ledger import Ledger, file_stamp
from gibbous.privacy.ledger_accounts import Account, Cap

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

NAME_DIGITS = 8  # of the fingerprint, enough for people


def show(
    data: Path | None,
    schema: Path | None,
    path: Path | None,
    options: Callable[[], ReadOptions],
    json: bool,
) -> None:
    """Print what was charged, by data set and release.

    Args:
        data: only this data set; None for all.
        schema: its schema, if that declares a text for missing values.
    Raises:
        LedgerUnusable: there is no such ledger, or it is damaged.
    """
    if not _exists(path):
        _none_yet(json)
        return
    ledger = Ledger.open(path)
    accounts = ledger.accounts()
    if data is not None:
        wanted = _fingerprint(ledger, data, schema, options)[0]
        accounts = tuple(a for a in accounts if a.dataset == wanted)
    if json:
        screen.as_json(
            {
                "path": str(ledger.path),
                "head": ledger.head,
                "datasets": [_account_json(account) for account in accounts],
            }
        )
        return
    screen.line(
        f"{ledger.path}: {screen.counted(len(accounts), 'data set')}; the chain of entries is whole."
    )
    for account in accounts:
        _account(account)


def cap(
    data: Path,
    wanted: tuple[str, str, str],
    schema: Path | None,
    path: Path | None,
    options: Callable[[], ReadOptions],
    json: bool,
    quiet: bool,
) -> None:
    """Set the most that a data set may ever spend; reads the file for its fingerprint only.

    Args:
        wanted: epsilon, delta (decimal text) and relation.
    """
    epsilon, delta = (
        exact(number(k, v)) for k, v in zip(("epsilon", "delta"), wanted, strict=False)
    )
    relation = wanted[2]
    if relation not in ("add_remove", "replace_one"):
        raise UsageError(
            "RELATION",
            f"There is no relation {relation!r}.",
            "Neighboring tables differ by 'add_remove' (one record more) or 'replace_one'.",
            "Correct --relation.",
        )
    ledger = Ledger.open(path)
    dataset, declared = _fingerprint(ledger, data, schema, options)
    unit = declared.unit.words() if declared is not None and declared.unit else None
    ledger.cap(
        dataset,
        epsilon,
        delta,
        cast(Relation, relation),
        protects=unit,
        stamp=file_stamp(data, ledger.key),
    )
    account = ledger.account(dataset)
    if json:
        screen.as_json(_account_json(account))
        return
    if not quiet and account.releases:
        _account(account)
    left = account.left or (Fraction(0), Fraction(0))
    # A cap may come late: it then refuses every further release, and cannot take one back.
    late = any(total.epsilon > epsilon or total.delta > delta for total in account.totals)
    more = " More than that was released already; nothing further will be." if late else ""
    screen.line(
        f"cap: {_numbers(epsilon, delta)} ({relation}) for data set {_name(account)}; "
        f"left: {_numbers(*left)}.{more} Nothing was spent."
    )


def _fingerprint(
    ledger: Ledger, data: Path, schema: Path | None, options: Callable[[], ReadOptions]
) -> tuple[bytes, Schema | None]:
    declared = None
    if schema is not None:
        from gibbous.read.schema_file import load_schema

        declared = load_schema(schema)
    return ledger.dataset(data, schema=declared, options=options()), declared


def _exists(path: Path | None) -> bool:
    """Whether there is a ledger, or a trace of one: opening it then says what is wrong.

    Raises:
        LedgerUnusable: a ledger was named, and there is none.
    """
    from gibbous.privacy.ledger_place import default_path

    place = path or default_path()
    if place.exists() or any(place.parent.glob(f"{place.name}*")):
        return True
    if path is not None:
        raise LedgerUnusable(
            "NOLEDGER",
            f"There is no ledger at {str(place)!r}.",
            "The first release, or `gibbous ledger cap`, makes it.",
            "Check --ledger.",
        )
    return False


def _none_yet(json: bool) -> None:
    if json:
        screen.as_json({"path": None, "head": None, "datasets": []})
        return
    screen.line("There is no ledger yet: nothing was spent. The first release makes it.")


def _account(account: Account) -> None:
    screen.line()
    screen.line(f"data set {_name(account)}: {_cap_words(account.cap)}")
    for total in account.totals:
        screen.line(f"  spent: {_claim_words(total)}")
    if account.left is not None:
        screen.line(f"  left:  {_numbers(*account.left)}")
    if account.releases:
        screen.table(
            ("reservation", "state", "method", "cost", "relation", "release", "time"),
            [
                (
                    p.id,
                    p.state,
                    p.mechanism,
                    _amount(p.claim),
                    _relation(p.claim),
                    p.label or "-",
                    p.at,
                )
                for p in account.releases
            ],
        )
    if any(p.state == "open" for p in account.releases):
        screen.line("  An open reservation was never finished; it stays spent.")


def _claim_words(claim: Claim) -> str:
    words = claim.words()
    return words if claim.is_dp or screen.NOT_DP in words else f"{words}; {screen.NOT_DP}"


def _amount(claim: Claim) -> str:
    return claim.amount() if claim.is_dp else f"no bound ({claim.amount()})"


def _relation(claim: Claim) -> str:
    return claim.relation if claim.is_dp else "-"


def _cap_words(cap: Cap | None) -> str:
    if cap is None:
        return "no cap; set one with `gibbous ledger cap`"
    return f"cap {_numbers(cap.epsilon, cap.delta)} ({cap.relation})"


def _numbers(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon = {short(epsilon)}, delta = {short(delta)}"


def _name(account: Account) -> str:
    return account.dataset.hex()[:NAME_DIGITS]


def _account_json(account: Account) -> dict[str, object]:
    cap, left = account.cap, account.left
    return {
        "dataset": account.dataset.hex(),
        "cap": None
        if cap is None
        else {
            "epsilon": text(cap.epsilon),
            "delta": text(cap.delta),
            "relation": cap.relation,
            "protects": cap.protects,
        },
        "left": None if left is None else {"epsilon": text(left[0]), "delta": text(left[1])},
        "totals": [claim.to_json() for claim in account.totals],
        "releases": [
            {
                "id": p.id,
                "state": p.state,
                "method": p.mechanism,
                "claim": p.claim.to_json(),
                "protects": p.protects,
                "data": p.label,
                "sha256": p.sha256,
                "time": p.at,
            }
            for p in account.releases
        ],
    }
