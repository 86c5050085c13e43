"""The private folder in which a release grows: live, dead and resumable, or swept."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gibbous.core import durable
from gibbous.core.errors import GibbousError, OutputNotWritten
from gibbous.write import durable_files
from gibbous.write.durable_files import not_written

FORMAT = "gibbous-partial/1"
_PARTS, _STATE = "parts.jsonl", "state.json"


class Partial:
    """`.NAME.partial-<id>` beside the output: a lock, the state of the run, and the package so far.

    Attributes:
        path: the folder, mode 0700.
        package: the package inside it, which is renamed at the end.
        scratch: files that are not finished yet.
        state: request, seed, reservation, digest and kind of what was drawn; on disk, too.
    """

    def __init__(self, path: Path, lock: int, state: dict[str, Any]) -> None:
        self.path, self.package, self.state = path, path / "package", state
        self.scratch = path / "scratch"
        self._lock: int | None = lock

    def save(self, **changes: Any) -> None:
        """Change the state, durably."""
        self.state = self.state | changes
        durable_files.replace_file(self.path / _STATE, json.dumps(self.state).encode())

    def note(self, part: dict[str, Any]) -> None:
        """Note, durably, that a part of a set is on disk."""
        with durable_files.writing(self.path / _PARTS), (self.path / _PARTS).open("ab") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(_line(part))
            file.flush()
            os.fsync(file.fileno())

    def noted(self) -> list[dict[str, Any]]:
        """What `note` wrote, here or in the run that was killed; the last line may be torn."""
        found = []
        with contextlib.suppress(OSError):
            for line in (self.path / _PARTS).read_bytes().splitlines():
                with contextlib.suppress(ValueError):
                    part = json.loads(line)
                    found += [part] if isinstance(part, dict) else []
        return found

    def note_only(self, parts: Iterable[dict[str, Any]]) -> None:
        """Replace all notes, in one step."""
        durable_files.replace_file(self.path / _PARTS, b"".join(map(_line, parts)))

    def clear(self) -> None:
        """Remove what was drawn and written, so that it can be drawn again."""
        durable_files.remove_folder(self.package)
        for name in ("rows.npy", "numbers.npy", _PARTS):
            (self.path / name).unlink(missing_ok=True)
        self.save(digest=None, kind=None)
        durable_files.make_folder(self.package)

    def close(self) -> None:
        """Give the lock back; the folder stays."""
        if self._lock is not None:
            durable.free(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove the folder, its state last: while that is there, the next run knows what was done."""
        with contextlib.suppress(OSError):
            for path in self.path.iterdir():
                if path.is_dir():
                    durable_files.remove_folder(path)
                elif path.name not in (_STATE, "lock"):
                    path.unlink()
            (self.path / _STATE).unlink()
        durable_files.remove_folder(self.path)
        self.close()


def _line(part: dict[str, Any]) -> bytes:
    return json.dumps(part, separators=(",", ":")).encode() + b"\n"


def fresh_name() -> str:
    """A name that no other process gives its files or folders."""
    return secrets.token_hex(8)


def drawn_seed() -> int:
    """A sampling seed for a run that was given none, 63 bits."""
    return secrets.randbits(63)


def acquire(target: Path, request: bytes, seed: int, bought: bytes = b"") -> Partial:
    """The partial folder of this run: that of a dead run of the same request, or a new one.

    A dead run that had its tables is also one whose request ends with `bought`: these tables are what
    is wanted, for other rows. Folders of dead runs of other requests for the same output are removed. A
    resumed run keeps its seed. OutputNotWritten where another run writes this output, or the folder
    cannot be made.
    """
    with _alone(target):
        found: Partial | None = None
        for path in sorted(target.parent.glob(f".{_glob_safe(target.name)}.partial-*")):
            if path.is_symlink() or path.lstat().st_uid != os.geteuid():
                continue
            if not path.is_dir():  # of a killed `write_file`: rows from public tables
                path.unlink(missing_ok=True)
                continue
            dead = _dead(path, target)
            if found is None and dead.state.get("request") == request.hex():
                found = dead
            elif found is None and _has_tables(dead.state, bought):
                found = dead
                found.note_only(())
                found.save(request=request.hex(), seed=seed)
            else:
                dead.remove()
        if found is not None and not found.package.exists():  # killed before it was made
            durable_files.make_folder(found.package)
        return found or _new(target, request, seed)


def with_tables(target: Path, bought: bytes) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Private folder and state of each run for an output that has such tables, and no release."""
    for path in sorted(target.parent.glob(f".{_glob_safe(target.name)}.partial-*")):
        with contextlib.suppress(GibbousError):
            state = durable_files.read_json(path / _STATE)
            if isinstance(state, dict) and _has_tables(state, bought):
                yield path, state


def _has_tables(state: dict[str, Any], bought: bytes) -> bool:
    own = str(state.get("request"))[64:] if state.get("kind") == "tables" else ""
    return bool(bought) and own == bought.hex()


def finished(partial: Partial, target: Path) -> bool:
    """Whether the output is already the release of this partial (killed after the rename)."""
    reservation = partial.state.get("reservation")
    if not reservation or not (target / "ledger.json").is_file():
        return False
    try:
        found = durable_files.read_json(target / "ledger.json")
        return bool(found["ledger"]["reservation"] == reservation)
    except (KeyError, TypeError):
        return False
    except GibbousError as error:
        refuse_unread(target, error)
        return False


def refuse_unread(path: Path, error: BaseException) -> None:
    """Raise OutputNotWritten if the system failed to read what an earlier run left, perhaps paid for."""
    why = str(getattr(error, "strerror", None) or getattr(error, "wrong", ""))
    if getattr(error, "name", "") == durable_files.UNREADABLE or getattr(error, "errno", None) not in (
        None, errno.ENOENT, errno.ENOTDIR
    ):  # fmt: skip
        raise OutputNotWritten(
            "UNREADABLE",
            f"What an earlier run left in {str(path)!r} cannot be read: {why.rstrip('.')}.",
            "It may have been paid for, so it is not removed.",
            "Check the disk and the permissions, and run the same command again.",
        ) from None


def sweep_finished(target: Path) -> None:
    """Remove what runs left beside a release when they were killed right after it got its name."""
    with contextlib.suppress(OSError, OutputNotWritten), _alone(target):
        for path in target.parent.glob(f".{_glob_safe(target.name)}.partial-*"):
            if path.is_symlink() or not path.is_dir() or path.lstat().st_uid != os.geteuid():
                continue
            with contextlib.suppress(OutputNotWritten):  # still alive, or not ours to open
                dead = _dead(path, target)
                try:
                    if not dead.state or not dead.package.exists() or finished(dead, target):
                        dead.remove()
                finally:
                    dead.close()


def sweep_files(target: Path) -> None:
    """Remove unfinished files that killed runs left for one output file; live ones are locked."""
    for path in target.parent.glob(f".{_glob_safe(target.name)}.partial-*"):
        if path.is_symlink() or not path.is_file() or path.lstat().st_uid != os.geteuid():
            continue
        with contextlib.suppress(OSError, durable.Held), path.open("rb") as file:
            durable.take(file.fileno(), 0)
            path.unlink()


def _new(target: Path, request: bytes, seed: int) -> Partial:
    path = target.with_name(f".{target.name}.partial-{fresh_name()[:8]}")
    durable_files.make_folder(path)
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    durable.take(lock)
    state = {
        "format": FORMAT,
        "request": request.hex(),
        "seed": seed,
        "reservation": None,
        "digest": None,
        "kind": None,
    }
    made = Partial(path, lock, state)
    try:
        made.save()
        durable_files.make_folder(made.package)
    except BaseException:
        made.remove()
        raise
    return made


def _dead(path: Path, target: Path) -> Partial:
    """A partial folder whose process is gone, locked by us; without a state if that is damaged."""
    try:
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise not_written(path, error) from None
    try:
        durable.take(lock, 0)
    except (OSError, durable.Held) as error:
        os.close(lock)
        if isinstance(error, OSError):
            raise not_written(path, error) from None
        raise _busy(target, str(error)) from None
    state: dict[str, Any] = {}
    try:
        found = durable_files.read_json(path / _STATE)
        if isinstance(found, dict) and found.get("format") == FORMAT:
            state = found
    except GibbousError as error:
        with contextlib.ExitStack() as stack:
            stack.callback(durable.free, lock)
            refuse_unread(path, error)
            stack.pop_all()
    return Partial(path, lock, state)


def _busy(target: Path, holder: str) -> OutputNotWritten:
    return OutputNotWritten(
        "BUSY",
        f"Another run is writing {str(target)!r} ({holder}).",
        "One run writes one output.",
        "Wait for it, or choose another name.",
    )


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    # Two runs must not both find no partial folder. Where folders cannot be locked, the final
    # rename, which replaces nothing, still lets only one of them through.
    fd = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            durable.take(fd)
        yield
    except durable.Held as held:
        raise _busy(target.parent, str(held)) from None
    finally:
        durable.free(fd)


def _glob_safe(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
