"""Releases without a folder of their own: kept beside the ledger that paid, and handed out again at no cost.

A purchase is what a request pays for: the data set, the schema, the method and its parameters, and the
sets. All runs of one purchase share one private folder while they work, one digest in the ledger, and
so one charge; the seed and the rows of each say only what is drawn from tables that are public by then.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any

from gibbous.core.durable import PATIENCE
from gibbous.core.errors import GibbousError, OutputNotWritten
from gibbous.core.keywords import answering
from gibbous.core.plan import Plan
from gibbous.core.request import Output, Request
from gibbous.privacy.ledger import Ledger, LedgerWarning
from gibbous.privacy.ledger.files import default_path, make_private_folder
from gibbous.write import partial
from gibbous.write.durable_files import not_written, read_json
from gibbous.write.in_memory import InMemory
from gibbous.write.load import load, read_receipt
from gibbous.write.package import Package, begin
from gibbous.write.purchases import (
    Earlier,
    Purchase,
    bought_alone,
    bought_digest,
    earlier,
    folder_beside,
    note_folder,
    noted_folders,
    pays_for_tables,
    purchase_of,
    request_digest,
)


def begin_kept(output: Output, purchase: Purchase) -> Package:
    """Start the release of a purchase; or take what it has bought, whole or by a run that was killed.

    Returns:
        A package: with `release` where this request was answered before, with `result` where its
        tables were bought.
    Raises:
        OutputNotWritten, ResourceLimit: another run of this purchase works, or the folder cannot be made.
        ModelRejected: what was bought is damaged.
    """
    make_private_folder(purchase.folder)
    target, place = purchase.target, purchase.folder / purchase.name
    seed = partial.drawn_seed() if output.seed is None else output.seed
    with contextlib.ExitStack() as stack:
        try:
            growing = _acquired(place, purchase.digest, seed)
            stack.callback(growing.close)
            if growing.state.get("output") != target.name:
                growing.note_only(())  # rows of another output; its tables are those of this one
                growing.save(seed=seed, output=target.name)
            package = Package(growing, target, purchase.digest, output)
            if package.release is None and target.is_dir():
                package.answer(load(target))
            elif package.release is None and package.result is None and purchase.finished:
                package.take(load(purchase.finished[0]))
        except OSError as error:
            raise not_written(place, error) from None
        stack.pop_all()
        return package


@dataclass(frozen=True, slots=True)
class Drafts:
    """Where the release of a request grows: beside its output, beside the ledger, or in memory.

    Attributes:
        request: what is asked for.
        plan: of the run.
        ledger: pays; one in memory keeps nothing.
        target: what `check_output` returned; None where no folder was named.
    """

    request: Request
    plan: Plan
    ledger: Ledger
    target: Path | None

    def paid(self, dataset: bytes) -> bool:
        """Whether this ledger has paid for the same purchase on these records."""
        if self.target is None and self.ledger.path is None:
            return False
        privacy = self.request.privacy
        free = pays_for_tables(privacy, self.plan) and not privacy.fresh
        if free and self.ledger.bought(bought_digest(privacy, self.plan, dataset)):
            return True
        hold = self.ledger.find(self._digest(dataset))
        if hold is not None:
            hold.release()
        return hold is not None

    def begin(self, dataset: bytes) -> Package | InMemory:
        """The draft of a run on these records; see `begin` and `begin_kept`.

        What an earlier run paid for is taken, wherever its folder is. Whether it did is not for the
        folder to say: `Package.hold` asks the ledger.
        """
        output = self.request.output
        if self.target is not None:
            privacy = self.request.privacy
            free = pays_for_tables(privacy, self.plan) and not privacy.fresh
            bought = bought_digest(privacy, self.plan, dataset) if free else b""
            package = begin(self.target, output, request=self._digest(dataset), bought=bought)
            return self._from_earlier(package, self.target, dataset)
        if self.ledger.path is None:
            return InMemory(output)
        while True:
            purchase = self._purchase(dataset, self.ledger.path)
            package = begin_kept(output, purchase)
            if not (package.bought and self.request.privacy.fresh):
                return self._from_earlier(package, purchase.target, dataset)
            package.leave()  # another run finished it meanwhile: this one is asked for anew

    def _from_earlier(self, package: Package, target: Path, dataset: bytes) -> Package:
        """Take the tables of an earlier release of the same purchase; or warn that it is charged again."""
        privacy, path = self.request.privacy, self.ledger.path
        bought = bought_digest(privacy, self.plan, dataset)
        with contextlib.ExitStack() as stack:
            stack.enter_context(package)
            wanted = package.release is None and package.result is None and not privacy.fresh
            if path is not None:
                note_folder(path, bought, target)
                if wanted and pays_for_tables(privacy, self.plan):
                    package.until_end.callback(bought_alone(path, bought))
            folders = [target] if target.exists() else []
            folders += [one for one in noted_folders(path, bought) if one != target]
            if wanted:
                _refuse_unread(target)
                if found := earlier(self.ledger, bought, folders):
                    left = (one for each in folders for one in partial.with_tables(each, bought))
                    if found.release is not None and found.release.tables is not None:
                        package.take(found.release, found.where)
                    elif path is not None and not any(starmap(package.take_left, left)):
                        _warn_of_charge(found, package)
            stack.pop_all()
        return package

    def _digest(self, dataset: bytes) -> bytes:
        """What was asked for, and what that pays for."""
        privacy, output = self.request.privacy, self.request.output
        if self.target is None:
            assert self.ledger.path is not None
            return self._purchase(dataset, self.ledger.path).digest
        asked = request_digest(privacy, output, self.plan, dataset=dataset, target=self.target)
        return asked + bought_digest(privacy, self.plan, dataset)

    def _purchase(self, dataset: bytes, ledger: Path) -> Purchase:
        privacy, output = self.request.privacy, self.request.output
        return purchase_of(privacy, output, self.plan, dataset=dataset, ledger=ledger)


def _refuse_unread(target: Path) -> None:
    """Refuse to replace a release that the system cannot read; one that is damaged is replaced."""
    if target.exists():
        try:
            load(target)
        except GibbousError as error:
            partial.refuse_unread(target, error)


def _warn_of_charge(found: Earlier, package: Package) -> None:
    """Say why what was paid for before is charged again, unless a stopped run left its reservation."""
    if package.reserved:
        return
    why = (
        "its folder is gone or was changed, and the tables with it"
        if found.release is None
        else "its rows are what was paid for: `gibbous.load(folder).save(other)` copies them"
    )
    warnings.warn(
        f"This was paid for before ({found.where}), but {why}. It is charged again.",
        LedgerWarning,
        stacklevel=4,
    )


def _acquired(place: Path, request: bytes, seed: int) -> partial.Partial:
    """The private folder of a purchase, once another run of it has ended."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return partial.acquire(place, request, seed)
        except OutputNotWritten as error:
            if error.name != "BUSY" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def unfinished(*folders: Path) -> dict[str, Path]:
    """Reservation -> the release that a stopped run did not finish, of the outputs in some folders."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in folder.glob(".*.partial-*/state.json"):
            with contextlib.suppress(GibbousError, KeyError, TypeError):
                state = read_json(path)
                name = path.parent.name[1:].rpartition(".partial-")[0]
                if state["reservation"]:
                    found[str(state["reservation"])] = folder / str(state.get("output", name))
    return found


@dataclass(frozen=True, slots=True)
class Kept:
    """A release that a ledger keeps: `gibbous.load` opens it, as it does any folder.

    Attributes:
        path: its folder.
        method: registered name.
        guarantee: in words.
        sets: how many.
        rows: of each set.
        reservation: what paid for it; releases of one purchase share it.
    """

    path: Path
    method: str
    guarantee: str
    sets: int
    rows: int
    reservation: str

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@answering
def releases(ledger: Ledger | str | Path | None = None) -> tuple[Kept, ...]:
    """The releases that were made without `out`, oldest first; opens no record, spends nothing.

    Args:
        ledger: the ledger, its path, or None for this user's default.
    Raises:
        ModelRejected: one of them is damaged.
    """
    path = ledger.path if isinstance(ledger, Ledger) else Path(ledger or default_path())
    folder = None if path is None else folder_beside(path)
    if folder is None or not folder.is_dir():
        return ()
    found = [path for path in folder.iterdir() if (path / "ledger.json").is_file()]
    return tuple(map(_kept, sorted(found, key=lambda path: path.stat().st_mtime_ns)))


def _kept(path: Path) -> Kept:
    receipt: dict[str, Any] = read_receipt(path)
    rows: Sequence[int] = receipt["rows"]
    method, reservation = receipt["method"]["name"], receipt["ledger"]["reservation"]
    return Kept(path, method, receipt["guarantee"], len(rows), rows[0], reservation)
