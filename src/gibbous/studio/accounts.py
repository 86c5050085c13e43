"""What the bar and the ledger screen say of data sets: spent, left, unfinished."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import short
from gibbous.privacy.ledger import Ledger

if TYPE_CHECKING:
    from gibbous.privacy.ledger.accounts import Account
    from gibbous.studio.app import Studio


def ledger() -> Ledger | None:
    """The ledger; None where nothing was ever spent.

    Raises:
        LedgerUnusable: it is damaged.
    """
    from gibbous.privacy.ledger.files import default_path

    return Ledger.read() if default_path().exists() else None


def known(studio: Studio) -> Account | None:
    """The account of the data set that is open, as far as a job found out which it is."""
    data = studio.place.data()
    answer = studio.jobs.answer(studio.jobs.newest("ledger", "show", data)) if data else None
    rows = (answer or {}).get("datasets") or []
    book = ledger() if rows else None
    return book.account(bytes.fromhex(rows[0]["dataset"])) if book is not None else None


def bar(studio: Studio, *, confidential: bool) -> dict[str, Any]:
    """What stands above every screen."""
    data, named = studio.place.data(), Path(studio.place.called())
    account = known(studio)
    spent = [total.words() for total in account.totals] if account else []
    left = account.left if account else None
    return {
        "data": "/".join(named.parts[-2 if named.name.startswith("*") else -1 :])
        if "://" not in data
        else data,
        "spent": "; ".join(spent),
        "left": f"epsilon = {short(left[0])}, delta = {short(left[1])}" if left else "",
        "confidential": confidential,
    }


def table() -> list[Mapping[str, Any]]:
    """Every data set of the ledger."""
    book = ledger()
    found: list[Mapping[str, Any]] = []
    for one in book.accounts() if book is not None else ():
        left = one.left
        found.append(
            {
                "name": one.nickname or one.dataset.hex()[:12],
                "spent": "; ".join(total.words() for total in one.totals) or "-",
                "cap": f"epsilon = {short(one.cap.epsilon)}, delta = {short(one.cap.delta)}"
                if one.cap
                else "",
                "left": f"epsilon = {short(left[0])}, delta = {short(left[1])}" if left else "",
                "rows": [
                    (p.id, p.state, p.mechanism, p.claim.amount(), p.label or "-", p.at)
                    for p in one.releases
                ],
            }
        )
    return found


def unfinished(studio: Studio) -> dict[str, str]:
    """Runs of this folder that were stopped after they were charged, by reservation."""
    from gibbous.write.kept import unfinished as stopped

    return {name: studio.place.short(path) for name, path in stopped(studio.place.folder).items()}
