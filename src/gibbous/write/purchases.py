"""Purchases: what a request pays for, by digests, and in which folders releases of it were made."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbous import __version__
from gibbous.core import durable
from gibbous.core.errors import GibbousError, OutputNotWritten
from gibbous.core.plan import Plan
from gibbous.core.release import Release
from gibbous.core.request import Output, Privacy
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.files import make_private_folder
from gibbous.read.schema_write import schema_json
from gibbous.write import partial
from gibbous.write.load import load, read_receipt

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
    return digest_of_facts(facts)


@dataclass(frozen=True, slots=True)
class Purchase:
    """What one request pays for, and where a ledger keeps it.

    Attributes:
        digest: of this purchase; then of all that decides what is bought, as `bought_digest`.
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
    """What a request without a folder of its own pays for: the newest of it, or with `fresh` a new one."""
    tables, bought = pays_for_tables(privacy, plan), _bought(privacy, plan, dataset)
    drawn = {"rows": output.rows, "seed": output.seed, "imprint": output.imprint.to_json()} | {
        name: getattr(output, name) for name in SHAPE
    }

    def numbered(number: int) -> Purchase:  # 0, and one more each time it was asked for anew
        digest = digest_of_facts(bought | {"purchase": number})
        name = f"{plan.mechanism}-{digest.hex()[:SHORT]}"
        rows = digest_of_facts(drawn).hex()[:SHORT] if tables else ""
        return Purchase(digest + digest_of_facts(bought), name, rows, folder_beside(ledger))

    newest = next(n for n in itertools.count() if not numbered(n + 1).begun)
    return numbered(newest + (privacy.fresh and bool(numbered(newest).finished)))


def pays_for_tables(privacy: Privacy, plan: Plan) -> bool:
    """Whether rows are drawn from what is paid for, at no further cost."""
    return privacy.method.about.releases == "tables" and plan.claim.unit == "artifact"


def bought_digest(privacy: Privacy, plan: Plan, dataset: bytes) -> bytes:
    """Digest of what a request pays for, whatever folder it goes to."""
    return digest_of_facts(_bought(privacy, plan, dataset))


def _bought(privacy: Privacy, plan: Plan, dataset: bytes) -> dict[str, Any]:
    return {
        "dataset": dataset.hex(),
        "schema": schema_json(privacy.schema),
        "method": plan.mechanism,
        "params": plan.params,
        "total": plan.total.to_json(),
        "protects": privacy.protects,
        "sets": plan.sets,
        "rows": None if pays_for_tables(privacy, plan) else plan.rows,
    }


def folder_beside(ledger: Path) -> Path:
    """Where a ledger keeps the releases that have no folder of their own."""
    return ledger.with_name(f"{ledger.name}.releases")


@dataclass(frozen=True, slots=True)
class Earlier:
    """The newest purchase of a kind that a ledger has paid for.

    Attributes:
        where: folder of its release, or the name that the ledger has of it; and when it was paid for.
        release: it, with the tables that the ledger knows; None where no such folder is left.
    """

    where: str
    release: Release | None


def earlier(ledger: Ledger, purchase: bytes, folders: Iterable[Path]) -> Earlier | None:
    """What this ledger has paid for under a `bought_digest`; None where it has nothing.

    Folders in which a release of it may lie are not believed: its tables are those of the ledger.
    OutputNotWritten where the system cannot read one: a passing fault must not charge again.
    """
    ids = {str(link.public["id"]) for link in ledger.bought(purchase)}
    entries = ledger.entries() if ids else ()
    paid = {e.id: e for e in entries if e.kind == "commit" and e.id in ids}
    names = {e.id: e.label for e in entries if e.kind == "reserve"}
    found = [(folder, _reservation(folder)) for folder in folders]
    for identity, commit in reversed(paid.items()):
        for folder in (folder for folder, one in found if one == identity):
            try:
                release = load(folder)
            except (GibbousError, OSError) as error:
                partial.refuse_unread(folder, error)  # damaged, or gone: it is charged again
                continue
            if release.receipt.get("digest") == commit.sha256:
                return Earlier(f"{str(folder)!r}, {commit.at}", release)
    return next((Earlier(f"{names[e.id]!r}, {e.at}", None) for e in reversed(paid.values())), None)


def _reservation(folder: Path) -> str:
    try:
        return str(read_receipt(folder)["ledger"]["reservation"])
    except (GibbousError, OSError) as error:
        partial.refuse_unread(folder, error)
    return ""


def note_folder(ledger: Path, purchase: bytes, folder: Path) -> None:
    """Remember, beside the ledger, that a release of this purchase may lie in a folder."""
    make_private_folder(folder_beside(ledger))
    if folder not in noted_folders(ledger, purchase):
        with open(_notes(ledger, purchase), "ab", opener=_private) as file:
            file.write(json.dumps(os.fspath(folder)).encode() + b"\n")


def bought_alone(ledger: Path, purchase: bytes) -> Callable[[], None]:
    """Wait until no other run of this purchase works: what that one pays for is there to be taken then.

    Gives what lets the next run begin; OutputNotWritten where one still works after `PATIENCE`.
    """
    handle = os.open(_notes(ledger, purchase), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        durable.take(handle)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, durable.Held):
            raise OutputNotWritten(
                "BUSY",
                f"Another run of the same request, {error}, works on these records.",
                "Nothing was charged: its tables cost this run nothing once it has ended.",
                "Wait for it, or pay for tables of your own (fresh=True, --fresh).",
            ) from None
        raise
    return lambda: durable.free(handle)


def noted_folders(ledger: Path | None, purchase: bytes) -> list[Path]:
    """What `note_folder` wrote."""
    found: list[Path] = []
    if ledger is not None and (notes := _notes(ledger, purchase)).is_file():
        for line in notes.read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError):  # torn by a kill
                found.append(Path(json.loads(line)))
    return found


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _notes(ledger: Path, purchase: bytes) -> Path:
    return folder_beside(ledger) / f"{purchase.hex()[:SHORT]}.folders"


def digest_of_facts(facts: dict[str, Any]) -> bytes:
    """SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).digest()
