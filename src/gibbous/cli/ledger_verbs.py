"""`gibbous ledger show | cap | link | name`: what each data set has spent, and the most it may."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from gibbous.cli import show as terminal
from gibbous.cli.parameters import number
from gibbous.core.claim import Relation, short
from gibbous.core.errors import UsageError
from gibbous.core.exact import exact, text
from gibbous.core.schema import Schema
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.accounts import Account
from gibbous.privacy.ledger.datasets import DIGITS
from gibbous.privacy.ledger.entries import Cap

if TYPE_CHECKING:
    from gibbous.cli import flags


def show(
    data: str | None, schema: Path | None, path: Path | None, csv: flags.TextFlags, json: bool
) -> None:
    """Print what was charged, by data set and release.

    Args:
        data: only this data set, by its file, nickname or fingerprint; None for all.
        schema: its schema, to be checked against its columns.
    Raises:
        LedgerUnusable: there is no such ledger, or it is damaged.
    """
    if not _exists(path):
        if json:
            terminal.as_json({"path": None, "head": None, "datasets": []})
        else:
            terminal.line("There is no ledger yet: nothing was spent. The first release makes it.")
        return
    ledger = Ledger.read(path)
    accounts = ledger.accounts()
    if data is not None:
        dataset = ledger.account(_dataset(ledger, data, schema, csv)[0]).dataset
        accounts = tuple(a for a in accounts if a.dataset == dataset)
    stopped = _stopped(ledger)
    if json:
        terminal.as_json(
            {
                "path": str(ledger.path),
                "head": ledger.head,
                "datasets": [_account_json(account) for account in accounts],
                "unfinished": {name: str(path) for name, path in stopped.items()},
            }
        )
        return
    terminal.line(
        f"{ledger.path}: {terminal.counted(len(accounts), 'data set')}; the chain of entries is whole."
    )
    for account in accounts:
        _account(account, stopped)


def _stopped(ledger: Ledger) -> dict[str, Path]:
    """Runs that were stopped, by reservation: of kept releases, and of those in this folder."""
    from gibbous.write.kept import unfinished
    from gibbous.write.purchases import folder_beside

    kept = () if ledger.path is None else (folder_beside(ledger.path),)
    return unfinished(*kept, Path.cwd())


def cap(
    data: str,
    limit: flags.CapFlags,
    path: Path | None,
    csv: flags.TextFlags,
    screen: flags.ScreenFlags,
) -> None:
    """Set the most that a data set may ever spend; reads the file for its fingerprint only."""
    epsilon = exact(number("epsilon", limit.epsilon))
    delta = exact(number("delta", limit.delta))
    relation = limit.relation
    if relation not in ("add_remove", "replace_one"):
        raise UsageError(
            "RELATION",
            f"There is no relation {relation!r}.",
            "Neighboring tables differ by 'add_remove' (one record more) or 'replace_one'.",
            "Correct --relation.",
        )
    ledger = Ledger.open(path)
    dataset, declared = _dataset(ledger, data, limit.schema, csv)
    unit = declared.unit.words() if declared is not None and declared.unit else None
    ledger.cap(
        dataset,
        epsilon,
        delta,
        cast(Relation, relation),
        protects=unit,
        new_data=limit.new_data,
        account=limit.account,
    )
    account = ledger.account(dataset)
    if screen.json:
        terminal.as_json(_account_json(account))
        return
    if not screen.quiet and account.releases:
        _account(account)
    left = account.left or (Fraction(0), Fraction(0))
    # A cap may come late: it then refuses every further release, and cannot take one back.
    late = any(total.epsilon > epsilon or total.delta > delta for total in account.totals)
    if limit.account != "sum":
        late = bool(account.releases) and left[0] == 0
    more = " More than that was released already; nothing further will be." if late else ""
    terminal.line(
        f"cap: {_numbers(epsilon, delta)} ({relation}) for data set {_name(account)}; "
        f"left: {_numbers(*left)}.{more} Nothing was spent."
    )


def link(new: str, old: str, path: Path | None, csv: flags.TextFlags, json: bool) -> None:
    """Join the accounts of two data sets, under the old one's name: one sum spent, one cap."""
    ledger = Ledger.open(path)
    of_new, of_old = (_dataset(ledger, data, None, csv)[0] for data in (new, old))
    ledger.link(of_new, of_old)
    _tell(ledger, of_old, "linked: one account from now on.", json)


def name(data: str, nickname: str, path: Path | None, csv: flags.TextFlags, json: bool) -> None:
    """Give a data set a nickname, which stands for it wherever one is named."""
    ledger = Ledger.open(path)
    dataset = _dataset(ledger, data, None, csv)[0]
    ledger.nickname(dataset, nickname)
    _tell(ledger, dataset, f"named {nickname}.", json)


def _tell(ledger: Ledger, dataset: bytes, words: str, json: bool) -> None:
    account = ledger.account(dataset)
    if json:
        terminal.as_json(_account_json(account))
        return
    _account(account)
    terminal.line(f"{words[:1].upper()}{words[1:]} Nothing was spent.")


def _dataset(
    ledger: Ledger, data: str, schema: Path | None, csv: flags.TextFlags
) -> tuple[bytes, Schema | None]:
    """The data set that is called so, or that is in this file; and its schema, if one is given."""
    declared = None
    if schema is not None:
        from gibbous.read.schema_file import load_schema

        declared = load_schema(schema)
    known = ledger.named(data)
    if known is not None:
        return known, declared
    return ledger.dataset(data, schema=declared, options=csv.options()), declared


def _exists(path: Path | None) -> bool:
    """Whether a ledger was named, or is there, or left a trace: reading it then says what is wrong."""
    from gibbous.privacy.ledger.files import anchors_from_environment, default_path

    place = default_path()
    if path is not None or any(anchor.exists() for anchor in anchors_from_environment()):
        return True
    return place.exists() or any(place.parent.glob(f"{place.name}*"))


def _account(account: Account, stopped: Mapping[str, Path] = MappingProxyType({})) -> None:
    terminal.line()
    terminal.line(f"data set {_name(account)}: {_cap_words(account.cap)}")
    for why in account.new_data:
        terminal.line(f"  declared new: {why}")
    if account.linked:
        digits = ", ".join(dataset.hex()[:DIGITS] for dataset in account.linked)
        terminal.line(f"  linked to it: {digits}")
    for total in account.totals:
        words = total.words()
        if not total.is_dp and terminal.NOT_DP not in words:
            words = f"{words}; {terminal.NOT_DP}"
        terminal.line(f"  spent: {words}")
    if account.left is not None:
        terminal.line(f"  left:  {_numbers(*account.left)}")
    if account.releases:
        terminal.table(
            ("reservation", "state", "method", "cost", "relation", "release", "time"),
            [
                (
                    p.id,
                    p.state,
                    p.mechanism,
                    p.claim.amount() if p.claim.is_dp else f"no bound ({p.claim.amount()})",
                    p.claim.relation if p.claim.is_dp else "-",
                    p.label or "-",
                    p.at,
                )
                for p in account.releases
            ],
        )
    for p in account.releases:
        if p.id in stopped:
            paid = "tables paid, rows unfinished" if p.state == "committed" else "nothing drawn yet"
            terminal.line(
                f"  {p.id}: {paid}. Resume with the command or the cell that made it, which goes on "
                f"at no further cost ({stopped[p.id]})."
            )
    if any(p.state == "open" and p.id not in stopped for p in account.releases):
        terminal.line("  An open reservation was never finished; it stays spent.")


def _cap_words(cap: Cap | None) -> str:
    if cap is None:
        return "no cap; set one with `gibbous ledger cap`"
    how = "" if cap.account == "sum" else f", added up in {cap.account}"
    return f"cap {_numbers(cap.epsilon, cap.delta)} ({cap.relation}{how})"


def _numbers(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon = {short(epsilon)}, delta = {short(delta)}"


def _name(account: Account) -> str:
    digits = account.dataset.hex()[:DIGITS]
    return f"{account.nickname} ({digits})" if account.nickname else digits


def _account_json(account: Account) -> dict[str, object]:
    cap, left = account.cap, account.left
    return {
        "dataset": account.dataset.hex(),
        "nickname": account.nickname or None,
        "linked": [dataset.hex() for dataset in account.linked],
        "new_data": list(account.new_data),
        "cap": None
        if cap is None
        else {
            "epsilon": text(cap.epsilon),
            "delta": text(cap.delta),
            "relation": cap.relation,
            "protects": cap.protects,
            "account": cap.account,
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
