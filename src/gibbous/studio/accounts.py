"""What the bar and the ledger screen say of data sets: spent, left, unfinished."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import short
from gibbous.core.documents import Unreadable, json_value
from gibbous.privacy.ledger import Ledger
from gibbous.studio.words import words

if TYPE_CHECKING:
    from gibbous.privacy.ledger.accounts import Account
    from gibbous.studio.app import Studio


MOST = 1 << 22  # bytes of ledger.json


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


def made_by(name: str, params: Mapping[str, Any]) -> str:
    """The method that was chosen, and whether its bins are bought first, by `paid_bins` around it."""
    inner = params.get("method")
    named = name == "paid_bins" and isinstance(inner, str)
    return words()["run"]["paid"].format(inner) if named else name


def _methods(studio: Studio) -> dict[str, str]:
    """Methods by reservation, as the releases of this folder name them: the ledger has the outer one."""
    found = {}
    for path in sorted(studio.place.folder.glob("*/ledger.json")):
        said = receipt(path.parent)
        with suppress(KeyError, TypeError, AttributeError):
            name = made_by(said["method"]["name"], said["method"]["params"])
            found[str(said["ledger"]["reservation"])] = name
    return found


def table(studio: Studio) -> list[Mapping[str, Any]]:
    """Every data set of the ledger."""
    book, methods = ledger(), _methods(studio)
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
                    (
                        p.id,
                        p.state,
                        methods.get(p.id, p.mechanism),
                        p.claim.amount(),
                        p.label or "-",
                        p.at,
                    )
                    for p in one.releases
                ],
            }
        )
    return found


def receipt(folder: Path) -> dict[str, Any]:
    """What the certificate of a release says; {} where it cannot be read."""
    path = folder / "ledger.json"
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST:
        return {}
    try:
        said = json_value(path.read_bytes())
    except Unreadable:
        return {}
    return said if isinstance(said, dict) else {}


def unfinished(studio: Studio) -> dict[str, str]:
    """Runs of this folder that were stopped after they were charged, by reservation."""
    from gibbous.write.kept import unfinished as stopped

    return {name: studio.place.short(path) for name, path in stopped(studio.place.folder).items()}
