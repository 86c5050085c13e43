"""What every test run needs: a home of its own, private compiled kernels, few passed tests noticed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent
FLOOR = ROOT / "tests" / "floor.txt"
DAY = 86_400  # seconds
HOME = pytest.StashKey[str]()
COMPILING = pytest.StashKey[subprocess.Popen[bytes]]()

# One thread a test process, and its children: several processes share the cores already, and threads
# of linear algebra that wait for a core burn what they wait for. Read when numpy is first imported.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"

# The same examples in every run; how long one takes depends on who else uses the machine.
settings.register_profile("gibbous", derandomize=True, deadline=None, database=None)
settings.load_profile("gibbous")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--floor",
        choices=("fast", "all", "spark"),
        help="fail when fewer tests passed than tests/floor.txt asks for",
    )


def pytest_configure(config: pytest.Config) -> None:
    # No test sees or touches the ledger of whoever runs it; subprocesses inherit this, too.
    config.stash[HOME] = tempfile.mkdtemp(prefix="gibbous-test-home-")
    os.environ["GIBBOUS_HOME"] = config.stash[HOME]
    folder = kernel_cache()
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    whole = config.getoption("--floor") and getattr(config.option, "numprocesses", None)
    if whole and not hasattr(config, "workerinput") and next(folder.rglob("*.nbi"), None) is None:
        config.stash[COMPILING] = compiling(folder)


def compiling(folder: Path) -> subprocess.Popen[bytes]:
    """Compile the kernels while all processes collect, lest each compiles them: half a minute of CPU.

    The lock belongs to the process that compiles, and ends with it, however it ends.
    """
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.Popen(
            [sys.executable, "-m", "gibbous", "warmup", "--quiet"],
            pass_fds=[lock.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def pytest_collection_finish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        with (kernel_cache() / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # until the kernels are compiled


def pytest_unconfigure(config: pytest.Config) -> None:
    if COMPILING in config.stash:
        config.stash[COMPILING].terminate()
        config.stash[COMPILING].wait()
    shutil.rmtree(config.stash.get(HOME, ""), ignore_errors=True)


def kernel_cache() -> Path:
    """A folder for compiled kernels that no other state of the sources uses.

    numba does not notice when a kernel that another file's kernel calls has changed.
    """
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_bytes()
        if b"njit" in source:
            digest.update(source)
    folder = ROOT / ".cache" / f"numba-{digest.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.utime(folder)
    for other in folder.parent.glob("numba-*"):  # another run may still use a recent one
        if time.time() - other.stat().st_mtime > DAY:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def floor(kind: str) -> int:
    """The number behind `kind` in tests/floor.txt."""
    lines = (line.split() for line in FLOOR.read_text().splitlines() if not line.startswith("#"))
    return int(dict(lines)[kind])


def passed(config: pytest.Config) -> int:
    """How many tests have passed, on all processes together."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("passed", ())) if reporter else 0


def is_short(config: pytest.Config) -> bool:
    """Whether this is a run with a floor that was not reached."""
    kind = config.getoption("--floor")
    return bool(kind) and not hasattr(config, "workerinput") and passed(config) < floor(kind)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK and is_short(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    kind = config.getoption("--floor")
    if not kind:
        return
    verdict = "TOO FEW TESTS" if is_short(config) else "enough tests"
    count, least = passed(config), floor(kind)
    terminalreporter.write_line(
        f"{verdict}: {count} passed, at least {least} ({kind}) in tests/floor.txt"
    )
