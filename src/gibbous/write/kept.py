"""Releases without a folder of their own: kept beside the ledger that paid, and handed out again at no cost.

A purchase is what a request pays for: the data set, the schema, the method and its parameters, and the
sets. All runs of one purchase share one private folder while they work, one digest in the ledger, and
so one charge; the seed and the rows of each say only what is drawn from tables that are public by then.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbous import __version__
from gibbous.core.durable import PATIENCE
from gibbous.core.errors import GibbousError, OutputNotWritten
from gibbous.core.keywords import answering
from gibbous.core.plan import Plan
from gibbous.core.request import Output, Privacy, Request
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.files import default_path, make_private_folder
from gibbous.read.schema_write import schema_json
from gibbous.write import partial
from gibbous.write.durable_files import not_written, read_json
from gibbous.write.in_memory import InMemory
from gibbous.write.load import load, read_receipt
from gibbous.write.package import Package, begin

SHORT = 16  # hex digits of a digest in the name of a folder
SHAPE = (
    "format",
    "csv_raw",
    "part_rows",
    "types",
)  # of an output: they decide its files, not its price


def request_digest(
    privacy: Privacy, output: Output, plan: Plan, *, dataset: bytes, target: Path
) -> bytes:
    """Digest of everything that was asked for; a run with the same digest may resume another.

    How a run is computed is not among it: `Performance` does not come here.

    Args:
        plan: of the run; it holds the method and its parameters.
        dataset: keyed fingerprint of the records.
        target: final path of the package.
    """
    facts = {
        "version": __version__,
        "dataset": dataset.hex(),
        "schema": schema_json(privacy.schema),
        "plan": plan.to_json(),
        "seed": output.seed,
        "target": os.fsencode(target).hex(),
        "extra": {name: getattr(output, name) for name in SHAPE},
    } | ({"signer": output.sign.public.line} if output.sign else {})
    return _digest(facts)


@dataclass(frozen=True, slots=True)
class Purchase:
    """What one request pays for, and where a ledger keeps it.

    Attributes:
        digest: of all that decides what is bought, the keyed fingerprint of the records among it.
        name: of its folders, before what tells its outputs apart.
        drawn: digest of what decides the rows alone; empty where the rows are what is paid for.
        folder: where the ledger keeps what it paid for.
    """

    digest: bytes
    name: str
    drawn: str
    folder: Path

    @property
    def target(self) -> Path:
        """The release of this very request."""
        return self.folder / (f"{self.name}-{self.drawn}" if self.drawn else self.name)

    @property
    def begun(self) -> bool:
        """Whether a run of it has come as far as a private folder; or further."""
        return any(self.folder.glob(f"*{self.name}*"))

    @property
    def finished(self) -> list[Path]:
        """Releases of this purchase."""
        found = [self.folder / self.name, *self.folder.glob(f"{self.name}-*")]
        return sorted(path for path in found if (path / "ledger.json").is_file())


def purchase_of(
    privacy: Privacy, output: Output, plan: Plan, *, dataset: bytes, ledger: Path
) -> Purchase:
    """What a request without a folder of its own pays for: the newest of it, or with `fresh` a new one.

    Args:
        plan: of the run; it holds the method and its parameters.
        dataset: keyed fingerprint of the records.
        ledger: path of the ledger that pays.
    """
    tables, bought = _pays_for_tables(privacy, plan), _bought(privacy, plan, dataset)
    drawn = {
        "rows": output.rows,
        "seed": output.seed,
        "imprint": output.imprint.to_json(),
    } | {name: getattr(output, name) for name in SHAPE}

    def numbered(number: int) -> Purchase:  # 0, and one more each time it was asked for anew
        digest = _digest(bought | {"purchase": number})
        name = f"{plan.mechanism}-{digest.hex()[:SHORT]}"
        rows = _digest(drawn).hex()[:SHORT] if tables else ""
        return Purchase(digest, name, rows, folder_beside(ledger))

    newest = next(n for n in itertools.count() if not numbered(n + 1).begun)
    return numbered(newest + (privacy.fresh and bool(numbered(newest).finished)))


def _pays_for_tables(privacy: Privacy, plan: Plan) -> bool:
    """Whether rows are drawn from what is paid for, at no further cost."""
    return privacy.method.about.releases == "tables" and plan.claim.unit == "artifact"


def _bought(privacy: Privacy, plan: Plan, dataset: bytes) -> dict[str, Any]:
    return {
        "dataset": dataset.hex(),
        "schema": schema_json(privacy.schema),
        "method": plan.mechanism,
        "params": plan.params,
        "total": plan.total.to_json(),
        "protects": privacy.protects,
        "sets": plan.sets,
        "rows": None if _pays_for_tables(privacy, plan) else plan.rows,
    }


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
        if self.target is not None and self.ledger.bought(self._bought(self.target, dataset)):
            return True
        hold = self.ledger.find(self._digest(dataset))
        if hold is not None:
            hold.release()
        return hold is not None

    def begin(self, dataset: bytes) -> Package | InMemory:
        """The draft of a run on these records; see `begin` and `begin_kept`."""
        output = self.request.output
        if self.target is not None:
            return self._begin_at(self.target, dataset)
        if self.ledger.path is None:
            return InMemory(output)
        while True:
            package = begin_kept(output, self._purchase(dataset, self.ledger.path))
            if not (package.bought and self.request.privacy.fresh):
                return package
            package.leave()  # another run finished it meanwhile: this one is asked for anew

    def _digest(self, dataset: bytes) -> bytes:
        if self.target is not None:
            return self._request(self.target, dataset)
        assert self.ledger.path is not None
        return self._purchase(dataset, self.ledger.path).digest

    def _request(self, target: Path, dataset: bytes) -> bytes:
        """What was asked for, and what that pays for."""
        privacy, output = self.request.privacy, self.request.output
        asked = request_digest(privacy, output, self.plan, dataset=dataset, target=target)
        return asked + self._bought(target, dataset)

    def _bought(self, target: Path, dataset: bytes) -> bytes:
        """Digest of what a release in this folder pays for; empty where that is the very rows."""
        privacy = self.request.privacy
        if not _pays_for_tables(privacy, self.plan):
            return b""
        bought = _bought(privacy, self.plan, dataset)
        return _digest(bought | {"target": os.fsencode(target).hex()})

    def _begin_at(self, target: Path, dataset: bytes) -> Package:
        """The draft of a folder; where it replaces a release of the same purchase, from its tables.

        Whether they are is not for the folder to say: `Package.hold` asks the ledger.
        """
        output, request = self.request.output, self._request(target, dataset)
        with contextlib.ExitStack() as stack:
            package = begin(target, output, request=request)
            stack.enter_context(package)
            replaced = package.release is None and package.result is None and target.exists()
            if replaced and not self.request.privacy.fresh:
                try:
                    release = load(target)
                except GibbousError as error:
                    partial.refuse_unread(target, error)  # damaged: it is replaced, and charged
                else:
                    package.take(release)
            stack.pop_all()
        return package

    def _purchase(self, dataset: bytes, ledger: Path) -> Purchase:
        privacy, output = self.request.privacy, self.request.output
        return purchase_of(privacy, output, self.plan, dataset=dataset, ledger=ledger)


def folder_beside(ledger: Path) -> Path:
    """Where a ledger keeps the releases that have no folder of their own."""
    return ledger.with_name(f"{ledger.name}.releases")


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
    Returns:
        One `Kept` each.
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


def _digest(facts: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).digest()
