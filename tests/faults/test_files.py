"""True words where the system fails: busy and failing ledgers, locks, forks, changed inputs, leftovers."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import gibbous as gb
from gibbous.cli import entry
from gibbous.cli.faults import not_printed
from gibbous.core import compiled, durable
from gibbous.core.claim import pure
from gibbous.core.errors import EngineFailure, LedgerUnusable, OutputNotWritten, ResourceLimit
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.spill import scratch_folder
from gibbous.engines import InputChanged
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger import errors as ledger_errors
from gibbous.privacy.ledger.files import VERSION
from tests.needs import need
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.write import made

DATA = bytes(range(32))
# Children here touch the ledger alone, or nothing.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def charge(ledger: Ledger, request: bytes = b"x") -> Any:
    return ledger.reserve(DATA, pure(Fraction(1)), mechanism="pegs", request=request)


def in_a_child(work: Callable[[], int]) -> int:
    """Exit code of work in a fork of this process."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextlib.contextmanager
def other_process(handle_of: Path) -> Iterator[int]:
    """Another process that holds the lock of a file until the block ends."""
    ready, tell = os.pipe()
    wait, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        durable.take(os.open(handle_of, os.O_RDWR | os.O_CREAT, 0o600))
        os.write(tell, b".")
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    os.read(ready, 1)
    yield child
    for handle in (end, ready, tell):
        os.close(handle)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("code", "name", "exit_code", "said"),
    [
        (sqlite3.SQLITE_BUSY, "SQLITE_BUSY", 7, "in use"),
        (sqlite3.SQLITE_LOCKED, "SQLITE_LOCKED", 7, "in use"),
        (sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC", 7, "reported an error"),
        (sqlite3.SQLITE_IOERR_WRITE, "SQLITE_IOERR_WRITE", 10, "over a quota, or failing"),
        (sqlite3.SQLITE_FULL, "SQLITE_FULL", 10, "disk is full"),
        (sqlite3.SQLITE_NOMEM, "SQLITE_NOMEM", 10, "memory"),
        (sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN", 7, "opened for writing"),
        (sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT", 7, "Restore the newest copy"),
        (sqlite3.SQLITE_NOTADB, "SQLITE_NOTADB", 7, "Restore the newest copy"),
    ],
)
def test_F_an_error_of_sqlite_is_called_what_it_is(
    code: int, name: str, exit_code: int, said: str
) -> None:
    error = sqlite3.OperationalError("text of the library")
    error.sqlite_errorcode, error.sqlite_errorname = code, name

    found = ledger_errors.failed(Path("ledger.sqlite"), error)

    assert found.exit_code == exit_code
    assert said in str(found)
    assert ("Restore" in str(found)) == (name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def test_F_a_database_that_another_program_holds_is_in_use_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "PATIENCE", 0.01)
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnusable, match="in use") as caught:
            charge(ledger)

    assert caught.value.state.endswith("no budget was spent.")
    assert charge(ledger).id in {e.id for e in ledger.entries()}


def test_F_a_lock_is_waited_for_a_limited_time_and_its_holder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(durable, "PATIENCE", 0.01)

    with (
        other_process(tmp_path / "ledger.sqlite.lock") as holder,
        pytest.raises(LedgerUnusable, match=r"0\.01 seconds") as caught,
    ):
        charge(ledger)

    if Path("/proc/locks").exists():
        assert f"process {holder} has held" in str(caught.value)
    assert not charge(ledger).committed  # the lock ended with its process


def test_F_a_text_in_the_lock_file_decides_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    (tmp_path / "ledger.sqlite.lock").write_text("1\n")

    assert charge(ledger).id


def test_F_a_lock_is_free_although_a_forked_child_still_has_its_file(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    durable.take(handle)
    ready, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.read(ready, 1)
        os._exit(0)
    durable.free(handle)

    again = os.open(tmp_path / "lock", os.O_RDWR)
    durable.take(again, 0)

    durable.free(again)
    os.close(end)
    os.close(ready)
    os.waitpid(child, 0)


def test_F_a_newer_version_in_the_log_of_the_ledger_is_refused_and_left_untouched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
        names = ("ledger.sqlite", "ledger.sqlite-wal")
        whole = {name: (tmp_path / name).read_bytes() for name in names}
    for name, data in whole.items():  # as a kill of the newer program leaves them
        (tmp_path / name).write_bytes(data)
    assert struct.unpack(">I", whole["ledger.sqlite"][60:64]) == (VERSION,)

    with pytest.raises(LedgerUnusable, match=f"version {VERSION + 1}"):
        Ledger.open(path)

    assert {name: (tmp_path / name).read_bytes() for name in names} == whole


def test_F_an_anchor_is_written_whole_and_leaves_no_other_file(tmp_path: Path) -> None:
    (tmp_path / ".ledger.sqlite.anchor.new").write_text("half")  # of a killed run

    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    charge(ledger).release()
    Ledger.open(tmp_path / "ledger.sqlite")

    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".new")]
    assert list((tmp_path / "ledger.sqlite.live").iterdir()) == []


def test_F_lock_files_of_dead_processes_are_swept_and_those_of_living_ones_stay(
    tmp_path: Path,
) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    alive = charge(ledger)
    (tmp_path / "ledger.sqlite.live" / "r-0123456789abcdef").touch()

    Ledger.open(tmp_path / "ledger.sqlite").close()

    assert [p.name for p in (tmp_path / "ledger.sqlite.live").iterdir()] == [alive.id]


def test_F_a_ledger_of_the_parent_works_after_a_fork(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    mine = charge(ledger)

    code = in_a_child(lambda: 0 if charge(ledger, b"y").id != mine.id else 1)

    assert code == 0
    assert len(ledger.entries()) == 2
    mine.commit("ab" * 32)
    assert ledger.find(b"x") is not None


def test_F_a_fork_while_another_thread_holds_the_ledger_does_not_hang(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")

    with ledger._store._mutex:  # as a thread of the parent would hold it
        code = in_a_child(lambda: 0 if charge(ledger).id else 1)

    assert code == 0


def test_F_a_ledger_in_memory_is_refused_after_a_fork() -> None:
    ledger = Ledger.ephemeral()

    def work() -> int:
        try:
            charge(ledger)
        except LedgerUnusable as error:
            return error.exit_code if "would be forgotten" in str(error) else 1
        return 2

    assert in_a_child(work) == 7


def test_F_a_run_in_a_fork_of_a_process_that_read_tables_is_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    asked = (table(60), SCHEMA, gb.Laplace(epsilon=1.0))
    gb.synthesize(*asked, rows=5, ledger=ledger, engine="numpy")

    def work() -> int:
        try:
            gb.synthesize(*asked, rows=5, ledger=ledger, engine="numpy")
        except EngineFailure as error:
            return error.exit_code if "forked" in str(error) else 1
        return 2

    assert in_a_child(work) == 11
    assert len(ledger.accounts()[0].releases) == 1


class Meddling(LocalEngine):
    """An engine while which somebody appends to the input."""

    def __init__(self, path: Path, when: str) -> None:
        super().__init__()
        self._path, self._when = path, when

    def scan(self, *given: Any, **more: Any) -> bytes:
        found = super().scan(*given, **more)
        self._append("scan")
        return found

    def tally(self, *given: Any, **more: Any) -> Any:
        self._append("tally")
        return super().tally(*given, **more)

    def _append(self, now: str) -> None:
        if now == self._when:
            with self._path.open("a") as file:
                file.write("f,01,3\n")


def test_F_an_input_that_changed_before_the_charge_is_refused(tmp_path: Path) -> None:
    table(60).write_csv(tmp_path / "data.csv")
    ledger = Ledger.ephemeral()
    engine: Any = Meddling(tmp_path / "data.csv", "scan")

    with pytest.raises(EngineFailure, match="changed"):
        gb.synthesize(
            tmp_path / "data.csv",
            SCHEMA,
            gb.Laplace(epsilon=1.0),
            rows=5,
            ledger=ledger,
            engine=engine,
        )

    assert ledger.entries() == ()


def test_F_an_input_that_changed_after_it_was_read_is_told(tmp_path: Path) -> None:
    table(60).write_csv(tmp_path / "data.csv")
    ledger = Ledger.ephemeral()
    engine: Any = Meddling(tmp_path / "data.csv", "tally")

    with pytest.warns(InputChanged, match="as they were before"):
        gb.synthesize(
            tmp_path / "data.csv",
            SCHEMA,
            gb.Laplace(epsilon=1.0),
            rows=5,
            ledger=ledger,
            engine=engine,
        )

    assert len(ledger.accounts()[0].releases) == 1


def test_F_a_name_that_the_disk_does_not_confirm_is_not_called_unreleased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(handle: int) -> None:
        if os.path.samestat(os.fstat(handle), tmp_path.stat()) and (tmp_path / "rel").exists():
            raise OSError(errno.EIO, "it failed")
        honest(handle)

    honest = os.fsync
    monkeypatch.setattr(os, "fsync", broken)

    with pytest.raises(OutputNotWritten) as caught:
        made.write(tmp_path / "rel", Ledger.ephemeral())

    assert "is there all the same" in caught.value.state
    assert "Nothing was released" not in str(caught.value)
    gb.verify(tmp_path / "rel")


def test_F_where_no_temporary_folder_is_a_small_run_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.delenv("GIBBOUS_SCRATCH", raising=False)

    assert scratch_folder() == Path("/nowhere")
    assert compiled.temporary_folder() == Path("/nowhere")


def test_F_a_closed_stdout_is_no_number_for_the_next_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> int:
        for number in (0, 1, 2):
            os.close(number)
        sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]
        entry.open_streams()
        handle = os.open(os.devnull, os.O_RDONLY)
        print("nobody reads this")
        return 0 if handle > 2 and sys.stdout is not None else 1

    assert in_a_child(work) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [(">&-", 0), (">/dev/full", 9), ("| head -0", 0)])
def test_F_a_stdout_that_takes_nothing_ends_in_a_documented_code(
    how: str, code: int, tmp_path: Path
) -> None:
    import subprocess

    if how == ">/dev/full":
        need("/dev/full")
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m gibbous methods {how}"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert ("GB9-STDOUT" in done.stderr) == (code == 9)


def test_F_a_stdout_that_fails_is_told_apart_from_the_work_that_was_done() -> None:
    found = not_printed(OSError(28, "No space left on device"))

    assert found.exit_code == 9
    assert "Do not repeat it" in str(found)
    assert "Nothing was released" not in str(found)


def test_F_too_little_address_space_is_refused_before_a_library_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (600 << 20, -1))

    with pytest.raises(ResourceLimit, match="ulimit -v"):
        entry._check_address_space(["synthesize"])
    entry._check_address_space(["methods"])
