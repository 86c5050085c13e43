"""The power fails at any call of a ledger's run: no entry that was told of is lost, and none changes."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from gibbous.core.errors import LedgerUnusable
from gibbous.privacy.ledger import Ledger
from tests.faults.power_loss import Call, acknowledged, crashes, journal
from tests.needs import need


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("C compiler")
    made = tmp_path_factory.mktemp("journal") / "journal.so"
    source = Path(__file__).with_name("journal.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"], check=True
    )
    return made


def opened(folder: Path, files: dict[str, bytes]) -> list[str] | None:
    """Heads of the ledger that a crash left, one an entry; None where it is refused."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for name, data in files.items():
        (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            book = Ledger.open(folder / "ledger.sqlite")
        except LedgerUnusable:
            return None
        book.verify()
        heads = [link.hash.hex() for link in book._store.links()]
        book.close()
    return heads


def after_crashes(
    calls: Sequence[Call], folder: Path, *, every: int, some: int
) -> tuple[Counter[str], list[str]]:
    """How often each ending came, and every fault: an acknowledged entry that is gone, or another."""
    dice, ends, faults = Random(5), Counter[str](), []
    whole = acknowledged(calls)
    for at in range(1, len(calls) + 1, every):
        told = acknowledged(calls[:at])
        for files in crashes(calls, at, dice, some):
            heads = opened(folder, files)
            if heads is None:
                ends["refused"] += 1
                if told:
                    faults.append(f"after call {at}: refused, and {len(told)} entries were told of")
                continue
            ends["opened"] += 1
            if not set(told) <= set(heads):
                faults.append(f"after call {at}: lost what was told of")
            if told and any(head not in whole and head in heads[1:] for head in heads):
                faults.append(f"after call {at}: an entry that nobody made")
    return ends, faults


@pytest.mark.parametrize(
    ("every", "some"), [(9, 1), pytest.param(1, 6, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_no_acknowledged_entry_is_lost_whatever_the_disk_kept(
    every: int, some: int, shim: Path, tmp_path: Path
) -> None:
    calls = journal(tmp_path / "run", shim)

    ends, faults = after_crashes(calls, tmp_path / "crashed", every=every, some=some)

    assert faults == []
    assert len(acknowledged(calls)) == 15
    assert ends["opened"] > 50


@pytest.mark.slow
def test_a_build_that_syncs_nothing_loses_what_it_told_of(shim: Path, tmp_path: Path) -> None:
    calls = journal(tmp_path / "run", shim, "no syncs")

    _, faults = after_crashes(calls, tmp_path / "crashed", every=9, some=1)

    assert any("lost" in fault or "refused" in fault for fault in faults)
