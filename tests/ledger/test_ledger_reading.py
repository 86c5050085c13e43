"""A ledger that is only read: no write access, nothing made; and what is refused or said before."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.core import durable
from gibbous.core.claim import pure
from gibbous.core.errors import LedgerUnusable
from gibbous.privacy.ledger import Ledger, LedgerWarning, files
from gibbous.privacy.ledger import reading as ledger_reading
from tests.needs import need

DATA = bytes(range(32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with one charge."""
    ledger = Ledger.open(tmp_path / "home" / "ledger.sqlite")
    charge(ledger)
    ledger.close()
    shutil.rmtree(tmp_path / "home" / "ledger.sqlite.live")
    return tmp_path / "home" / "ledger.sqlite"


def charge(ledger: Ledger) -> None:
    ledger.reserve(DATA, pure(Fraction(1)), mechanism="m", request=b"r").release()


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def test_F_reading_a_copy_leaves_its_folder_as_it_is(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup" / "ledger.sqlite"
    copy.parent.mkdir()
    for ending in ("", ".anchor"):
        shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    before = contents(copy.parent)

    ledger = Ledger.read(copy)
    spent = ledger.spent(DATA)
    ledger.verify()
    ledger.close()

    assert spent[0].epsilon == 1
    assert contents(copy.parent) == before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_F_reading_needs_no_write_access(path: Path) -> None:
    need("POSIX")  # a child gives up its rights
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, "ledger.sqlite")
        for ending in ("", ".anchor"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
            Path(f"{copy}{ending}").chmod(0o444)
        copy.parent.chmod(0o555)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if os.geteuid() == 0:  # which may write anywhere
                    os.setuid(65534)
                with pytest.raises(PermissionError):
                    copy.with_name("other").touch()
                code = int(ledger_reading.ReadStore(copy).links()[-1].public["kind"] != "reserve")
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        copy.parent.chmod(0o755)

    assert os.waitstatus_to_exitcode(status) == 0


def test_F_a_reader_sees_what_a_writer_adds_and_adds_nothing(path: Path) -> None:
    reader, writer = Ledger.read(path), Ledger.open(path)
    charge(writer)

    assert reader.spent(DATA)[0].epsilon == 2
    with pytest.raises(LedgerUnusable, match="opened for reading"):
        reader.cap(DATA, Fraction(1), Fraction(0))


@pytest.mark.parametrize("kind", ["text", "database", "empty database"])
@pytest.mark.parametrize("opened", [Ledger.open, Ledger.read])
def test_F_nothing_is_made_beside_a_foreign_file(kind: str, opened: object, tmp_path: Path) -> None:
    path = tmp_path / "mine" / "app.db"
    path.parent.mkdir()
    path.write_bytes(b"a letter, not a ledger\n" * 20)
    if kind != "text":
        path.unlink()
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE mine (x)")
            if kind == "empty database":
                file.execute("PRAGMA user_version = 3")
                file.execute("DROP TABLE mine")
        file.close()
    before = contents(path.parent)

    with pytest.raises(LedgerUnusable, match="is not a ledger") as caught:
        opened(path)  # type: ignore[operator]

    assert (caught.value.code, contents(path.parent)) == ("GB7-FOREIGN", before)


def test_F_a_folder_that_anybody_can_write_to_is_warned_of(path: Path) -> None:
    path.parent.chmod(0o777)

    for opened in (Ledger.open, Ledger.read):
        with pytest.warns(LedgerWarning, match="Anybody can write") as told:
            opened(path)
        assert told[0].filename == __file__
    path.parent.chmod(0o700)
    for opened in (Ledger.open, Ledger.read):
        opened(path)  # a warning would be an error here


def test_D_a_ledger_that_is_gone_while_an_anchor_knows_it_is_not_read_as_none(
    path: Path, tmp_path: Path
) -> None:
    anchor = tmp_path / "elsewhere.anchor"
    Ledger.open(path, anchor=anchor).close()
    shutil.rmtree(path.parent)

    with pytest.raises(LedgerUnusable, match="knows its head"):
        Ledger.read(path, anchor=anchor)
    assert not path.parent.exists()


def test_a_lock_that_is_not_given_back_is_not_waited_for_without_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "PATIENCE", 0.1)
    with files.locked(path.with_name("ledger.sqlite.lock")), pytest.raises(LedgerUnusable) as busy:
        Ledger.read(path)

    assert busy.value.name == "BUSY"
    Ledger.read(path).close()
