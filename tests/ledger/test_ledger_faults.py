"""A ledger that was edited, cut, rolled back, replaced or put on the wrong disk is refused."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.core.claim import pure
from gibbous.core.errors import LedgerUnusable, ResourceLimit
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger import files as ledger_files
from gibbous.privacy.ledger.files import VERSION
from tests.needs import need

DATA = bytes(range(32))

# Children here only touch the ledger: threads of libraries that other tests loaded do no harm.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def settled(folder: Path, charges: int = 5) -> Path:
    """A closed ledger with some entries, all of them in the main file."""
    path = folder / "ledger.sqlite"
    ledger = Ledger.open(path)
    ledger.cap(DATA, Fraction(10), Fraction(0))
    for i in range(charges):
        ledger.reserve(DATA, pure(Fraction(1)), mechanism="pegs", request=bytes([i])).commit(
            "ab" * 32
        )
    ledger.close()
    assert not path.with_name("ledger.sqlite-wal").exists()
    return path


def sql(path: Path, *commands: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for command in commands:
            connection.execute(command)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_h4_a_missing_or_empty_ledger_with_a_known_head_is_not_a_fresh_start(
    tmp_path: Path, how: str
) -> None:
    path = settled(tmp_path)
    path.unlink()
    if how == "empty":
        path.touch()

    with pytest.raises(LedgerUnusable, match="knows its head"):
        Ledger.open(path)
    assert how == "missing" or path.stat().st_size == 0


def test_h4_an_anchor_elsewhere_notices_that_the_whole_folder_is_gone(tmp_path: Path) -> None:
    anchor = tmp_path / "usb" / "anchor"
    anchor.parent.mkdir()
    home = tmp_path / "home"
    Ledger.open(home / "ledger.sqlite", anchor=anchor).close()
    shutil.rmtree(home)

    with pytest.raises(LedgerUnusable, match="anchor"):
        Ledger.open(home / "ledger.sqlite", anchor=anchor)


def test_h4_an_anchor_named_by_the_environment_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIBBOUS_ANCHOR", str(tmp_path / "anchor"))
    path = settled(tmp_path / "home")
    shutil.rmtree(tmp_path / "home")

    with pytest.raises(LedgerUnusable, match="anchor"):
        Ledger.open(path)


def test_h5_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = settled(tmp_path)
    whole = path.read_bytes()
    last = (
        len(whole.rstrip(b"\0")) - 1
    )  # SQLite reads zeros beyond the end: cut a byte that is none
    for size in (1, 99, 100, 4096, 8192, len(whole) - 4096, last):
        path.write_bytes(whole[:size])

        with pytest.raises(LedgerUnusable):
            Ledger.open(path)


def flips(tmp_path: Path, count: int) -> Iterator[tuple[Path, Path]]:
    """Copies of a ledger with one bit flipped each."""
    origin = settled(tmp_path / "origin")
    whole, rng = bytearray(origin.read_bytes()), random.Random(5)
    for _ in range(count):
        copy = tmp_path / "copy"
        shutil.copytree(origin.parent, copy)
        bit = rng.randrange(len(whole) * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (copy / "ledger.sqlite").write_bytes(damaged)
        yield origin, copy / "ledger.sqlite"
        shutil.rmtree(copy)


def check_flips(tmp_path: Path, count: int) -> None:
    refused = 0
    for origin, path in flips(tmp_path, count):
        truth = Ledger.open(origin)
        try:
            read = Ledger.open(path)
        except LedgerUnusable:
            refused += 1
            continue
        assert (read.head, read.key, read.entries()) == (truth.head, truth.key, truth.entries())
        read.close()
    assert 0 < refused < count  # free space may change; entries may not


@pytest.mark.slow
def test_h5_bit_flips_change_no_entry_unnoticed(tmp_path: Path) -> None:
    check_flips(tmp_path, 60)


@pytest.mark.slow
def test_h5_four_hundred_bit_flips_change_no_entry_unnoticed(tmp_path: Path) -> None:
    check_flips(tmp_path, 400)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET public = CAST(replace(CAST(public AS TEXT), '1', '0') AS BLOB)",
        "UPDATE entries SET private = x'7b7d' WHERE seq = 2",
        "DELETE FROM entries WHERE seq = 2",
        "DELETE FROM entries WHERE seq >= 8",
        "UPDATE secret SET value = zeroblob(32)",
        "DELETE FROM secret",
        "DELETE FROM entries",
        "DROP TABLE entries",
        "UPDATE entries SET public = 'text' WHERE seq = 3",
    ],
)
def test_h6_an_edited_row_or_a_cut_tail_is_refused(tmp_path: Path, edit: str) -> None:
    path = settled(tmp_path)
    sql(path, "DROP TRIGGER no_update", "DROP TRIGGER no_delete")
    Ledger.open(path).close()  # the entries alone are still right

    sql(path, edit)

    with pytest.raises(LedgerUnusable):
        Ledger.open(path)


def test_h6_the_table_itself_only_grows(tmp_path: Path) -> None:
    path = settled(tmp_path)

    for edit in ("DELETE FROM entries", "UPDATE entries SET hash = x''"):
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            sql(path, edit)


def test_h6_an_old_copy_is_refused_and_a_lost_anchor_is_said_once(tmp_path: Path) -> None:
    path = settled(tmp_path, charges=1)
    shutil.copy(path, tmp_path / "old")
    newer = Ledger.open(path)
    newer.reserve(DATA, pure(Fraction(1)), mechanism="pegs", request=b"x")
    newer.close()
    shutil.copy(tmp_path / "old", path)

    with pytest.raises(LedgerUnusable, match="old copy"):
        Ledger.open(path)
    Path(f"{path}.anchor").unlink()
    with pytest.warns(UserWarning, match="anchor"):
        Ledger.open(path)
    Ledger.open(path)


def test_h6_a_rollback_under_an_open_ledger_is_noticed(tmp_path: Path) -> None:
    path = settled(tmp_path, charges=1)
    ledger = Ledger.open(path)
    sql(path, "DROP TRIGGER no_delete", "DELETE FROM entries WHERE seq = 3")

    with pytest.raises(LedgerUnusable, match="while it was open"):
        ledger.reserve(DATA, pure(Fraction(1)), mechanism="pegs", request=b"x")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"ledger":"x","seq":0,"head":"y"}', "\xff"])
def test_h6_a_wrong_anchor_is_not_ignored(tmp_path: Path, text: str) -> None:
    path = settled(tmp_path)
    Path(f"{path}.anchor").write_text(text, encoding="latin-1")

    with pytest.raises(LedgerUnusable, match="anchor"):
        Ledger.open(path)


def test_h7_a_place_that_cannot_be_written_is_refused() -> None:
    need("/proc")
    with pytest.raises(LedgerUnusable):
        Ledger.open(Path("/proc/nothing/ledger.sqlite"))


def test_h7_a_read_only_ledger_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    # Root may write everything, so the test becomes nobody where it runs as root.
    base = Path(tempfile.mkdtemp(prefix="gibbous-ro-"))
    try:
        path = settled(base / "home")
        for p in (path, Path(f"{path}.lock"), Path(f"{path}.anchor")):
            p.chmod(0o444)
        path.parent.chmod(0o555)
        base.chmod(0o755)
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:
                    os.setgid(65534)
                    os.setuid(65534)
                Ledger.open(path)
            except LedgerUnusable as error:
                os._exit(error.exit_code)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finally:
        base.chmod(0o755)
        (base / "home").chmod(0o755)
        shutil.rmtree(base)


FILL = """
import resource, signal, sys
from fractions import Fraction
from pathlib import Path
from gibbous.core.claim import pure
from gibbous.privacy.ledger import Ledger
ledger = Ledger.open(Path(sys.argv[1]))
size = max(p.stat().st_size for p in Path(sys.argv[1]).parent.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
done = 0
try:
    while done < 200:
        ledger.reserve(b"d" * 32, pure(Fraction(1)), mechanism="pegs", request=b"x")
        done += 1
except Exception as error:
    print(type(error).__name__, done)
"""


def test_h8_a_full_disk_stops_the_reservation_and_keeps_the_ledger_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    out = subprocess.run(
        [sys.executable, "-c", FILL, str(path), "9000"], capture_output=True, text=True, check=True
    )

    kind, done = out.stdout.split()
    ledger = Ledger.open(path)
    assert kind == ResourceLimit.__name__
    assert int(done) <= len(ledger.entries()) <= int(done) + 1
    ledger.verify()


def test_h10_network_file_systems_are_refused_unless_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_files, "filesystem_magic", lambda folder: 0x6969)

    with pytest.raises(LedgerUnusable, match="NFS"):
        Ledger.open(tmp_path / "ledger.sqlite")
    assert Ledger.open(tmp_path / "ledger.sqlite", allow_network=True).entries() == ()


def test_h10_the_kernel_is_asked_for_the_file_system() -> None:
    need("/proc")

    assert ledger_files.filesystem_magic(Path("/proc")) == 0x9FA0


def test_h12_two_paths_to_one_ledger_are_one_ledger(tmp_path: Path) -> None:
    path = settled(tmp_path / "home")
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)

    assert Ledger.open(link).path == path
    os.link(path, tmp_path / "hard.sqlite")
    with pytest.raises(LedgerUnusable, match="hard links"):
        Ledger.open(path)


def test_h13_a_newer_ledger_is_left_untouched(tmp_path: Path) -> None:
    path = settled(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[60:64] = struct.pack(">I", VERSION + 1)
    path.write_bytes(whole)

    with pytest.raises(LedgerUnusable, match=f"version {VERSION + 1}"):
        Ledger.open(path)
    assert path.read_bytes() == whole


def test_a_file_that_is_no_ledger_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    sql(path, "CREATE TABLE mine (x)", "PRAGMA application_id = 7")
    before = path.read_bytes()

    with pytest.raises(LedgerUnusable, match="not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read", [Ledger.open, Ledger.read])
def test_h5_bytes_that_are_no_text_in_the_description_of_its_tables_are_damage(
    read: Callable[[Path], Ledger], tmp_path: Path
) -> None:
    """SQLite quotes them in its message, which is then no text: that was a traceback."""
    path = settled(tmp_path)
    garbled = path.read_bytes().replace(b"tableentriesentries", b"table" + b"\xff" * 7 + b"entries")
    path.write_bytes(garbled.replace(b"CREATE TABLE entries", b"CREATE TABLx entries"))

    with pytest.raises(LedgerUnusable, match="cannot be trusted"):
        read(path)
