"""A process with several handles on a ledger keeps its locks: no other process deletes the log under it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gibbous.privacy.ledger import Ledger, handles

OTHER = """
import sys
from gibbous.privacy.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
if sys.argv[2:]:
    with ledger._store.appending() as entries:
        entries.append({"kind": "test"}, {})
print(len(ledger._store.links()))
ledger.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def test_what_is_charged_after_another_process_closed_is_there(path: Path) -> None:
    held = Ledger.open(path)
    Ledger.read(path)  # a second look in the same process, as every screen of the studio takes one

    assert _other(path, "append") == 2
    _append(held)

    assert len(held._store.links()) == 3
    assert _other(path) == 3


def test_a_handle_that_is_closed_lets_the_other_process_delete_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "first_bytes", lambda path, count: path.read_bytes()[:count])
    held = Ledger.open(path)
    Ledger.read(path)

    _other(path, "append")

    assert not path.with_name("ledger.sqlite-wal").exists()
    assert any("wal (deleted)" in name for name in _open_files(path.parent))
    held.close()


@pytest.mark.parametrize("opened", [Ledger.open, Ledger.read], ids=["open", "read"])
def test_handles_do_not_pile_up_and_none_is_left(
    path: Path, opened: Callable[[Path], Ledger]
) -> None:
    first = Ledger.open(path)
    for _ in range(20):
        opened(path).close()

    # The file by SQLite, perhaps twice, and the kept one; its log and the index of that.
    assert len(_open_files(path.parent)) <= 6

    first.close()
    assert _open_files(path.parent) == []


@pytest.mark.slow
def test_threads_that_open_and_close_keep_what_one_of_them_writes(path: Path) -> None:
    held, done = Ledger.open(path), threading.Event()

    def look() -> None:
        while not done.is_set():
            Ledger.read(path).close()

    readers = [threading.Thread(target=look) for _ in range(3)]
    for one in readers:
        one.start()
    for _ in range(5):
        _other(path, "append")
        _append(held)
    done.set()
    for one in readers:
        one.join()

    assert _other(path) == 11


def test_a_child_that_was_forked_while_the_guard_was_held_can_open_a_ledger(path: Path) -> None:
    Ledger.open(path).close()
    with handles.guard:
        child = os.fork()
        if child == 0:
            code = 1
            gc.disable()  # native objects of earlier tests have threads that this process lacks
            try:
                thread = threading.Thread(target=lambda: Ledger.read(path).close(), daemon=True)
                thread.start()
                thread.join(30)
                code = int(thread.is_alive())
            finally:
                os._exit(code)

    assert os.waitpid(child, 0)[1] == 0


def _append(ledger: Ledger) -> None:
    with ledger._store.appending() as entries:
        entries.append({"kind": "test"}, {})


def _other(path: Path, *what: str) -> int:
    """Entries that another process sees, after it added one if asked; it closes its ledger."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(path), *what], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def _open_files(folder: Path) -> list[str]:
    """Files of a folder that this process has open, by Linux's own list."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            name = os.readlink(entry)
        except OSError:
            continue
        if name.startswith(str(folder)):
            names.append(name)
    return names
