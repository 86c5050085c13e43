"""What the bar and the ledger screen say of data sets: spent, left, unfinished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import short
from gibbous.core.documents import Unreadable, json_value
from gibbous.core.errors import GibbousError
from gibbous.privacy.ledger import Ledger
from gibbous.studio.words import words

if TYPE_CHECKING:
    from gibbous.privacy.ledger.accounts import Account
    from gibbous.studio.app import Studio


MOST = 1 << 22  # bytes of ledger.json
CHANGING = (("schema", "discover"), ("ledger", "cap"))  # and every run


@contextmanager
def ledger() -> Iterator[Ledger | None]:
    """The ledger, closed afterwards; None if nothing was ever spent, LedgerUnusable if it is damaged."""
    from gibbous.privacy.ledger.files import default_path

    if not default_path().exists():
        yield None
        return
    with closing(Ledger.read()) as book:
        yield book


def known(studio: Studio) -> Account | None:
    """The account of the data set that is open, as far as a job found out which it is."""
    rows = (_shown(studio) or {}).get("datasets") or []
    if not rows:
        return None
    with ledger() as book:
        return book.account(bytes.fromhex(rows[0]["dataset"])) if book is not None else None


def _shown(studio: Studio) -> dict[str, Any] | None:
    """What the newest job said of the account; while it runs, one before that read the file as it is."""
    data = studio.place.data()
    path = studio.place.folder / data
    jobs = [job for job in studio.jobs.all() if job.words[:3] == ("ledger", "show", data)]
    for place, job in enumerate(jobs if data else []):
        found: dict[str, Any] | None = studio.jobs.answer(job)
        same = path.is_file() and path.stat().st_mtime_ns < studio.jobs.begun(job)
        if found and (place == 0 or same):
            return found
        if job.state != "running":
            return None
    return None


def _unsure(studio: Studio) -> str:
    """Why no account is shown, as words of the bar: it is read, cannot be read, or nothing is spent yet."""
    jobs = studio.jobs.all()
    read = next((j for j in jobs if j.words[:3] == ("ledger", "show", studio.place.data())), None)
    changing = [
        job
        for job in jobs
        if job.state in ("running", "done")
        and (job.words[:2] in CHANGING or job.verb == "synthesize")
    ]
    if read is None:
        return "reading" if any(job.state == "running" for job in jobs) else "unread"
    if read.state == "running" or studio.jobs.latest([read, *changing]) is not read:
        return "reading"
    return "nothing" if read.state == "done" else "unread"


def bar(studio: Studio, *, confidential: bool) -> dict[str, Any]:
    """What stands above every screen; a ledger that cannot be read now is said to be so."""
    data, named = studio.place.data(), Path(studio.place.called())
    said, spent, left, whole = words()["bar"], "", "", ""
    why = _unsure(studio) if data else "nodata"
    try:
        account = known(studio)
        if account:
            spent = "; ".join(total.amount() for total in account.totals) or said["nothing"]
            whole = "; ".join(total.words() for total in account.totals)
            left = _amount(account.left) if account.left else said["uncapped"]
    except GibbousError:
        why = "unread"
    return {
        "data": "/".join(named.parts[-2 if named.name.startswith("*") else -1 :])
        if "://" not in data
        else data,
        "spent": spent or said[why],
        "whole": whole,
        "left": left or (said["uncapped"] if why == "nothing" else said[why]),
        "reading": why == "reading" or None,
        "confidential": confidential,
    }


def _amount(left: tuple[Fraction, Fraction]) -> str:
    return f"epsilon = {short(left[0])}, delta = {short(left[1])}"


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
    methods = _methods(studio)
    found: list[Mapping[str, Any]] = []
    with ledger() as book:
        accounts = book.accounts() if book is not None else ()
    for one in accounts:
        left = one.left
        found.append(
            {
                "name": one.nickname or one.dataset.hex()[:12],
                "spent": "; ".join(total.words() for total in one.totals) or "-",
                "cap": f"epsilon = {short(one.cap.epsilon)}, delta = {short(one.cap.delta)}"
                if one.cap
                else "",
                "left": _amount(left) if left else "",
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
    return json_of(folder / "ledger.json")


def json_of(path: Path) -> dict[str, Any]:
    """A small JSON document of a release; {} where it cannot be read."""
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


def looked_at_results(studio: Studio) -> bool:
    """Whether somebody saw the records, or what was made of them, on Describe, Assess or Compare."""
    from gibbous.studio.looking import looked

    data = studio.place.data()
    seen = [job for job in studio.jobs.all() if job.verb in ("evaluate", "compare")]
    of_it = any(job.verb == "compare" or data in job.words for job in seen if job.state == "done")
    return bool(data) and (of_it or bool(looked(studio)))
