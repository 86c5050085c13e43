"""A Spark session: the given one, the active one, or a new one that writes and shows nothing it need not."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gibbous.core.errors import EngineFailure, UsageError
from gibbous.core.extras import need
from gibbous.core.secret import Secret
from gibbous.disintegrate.spark.faults import guarded

JAVA = 17
_PREFIX = "gibbous-spark-"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LOG = """rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{{1}}: %m%n%ex{{0}}
"""
# The log says nothing by default: what Spark tells of a failed task may hold what a column held.
SETTINGS = {
    "spark.app.name": "gibbous",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "64",
    "spark.driver.maxResultSize": "0",
    "spark.executorEnv.PYTHONWARNINGS": "ignore::FutureWarning",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
}


class Held(Secret):
    """A session and who uses it; one that was made here stops when the last user lets go.

    Args:
        session: a classic pyspark SparkSession.
        own: whether it was made here.
        folder: its private folder, if it was made here.
        lock: the open file that says that the folder is in use.
    """

    def __init__(self, session: Any, *, own: bool, folder: Path | None = None, lock: int = -1):
        self.session, self.own = session, own
        self._folder, self._lock, self._users = folder, lock, 0
        if own:
            atexit.register(self._end)

    def __repr__(self) -> str:
        return f"<Held, {'own' if self.own else 'given'} session, {self._users} users>"

    def take(self) -> Held:
        """One more user."""
        self._users += 1
        return self

    def let_go(self) -> None:
        """One user less; after the last one, a session that was made here is stopped."""
        self._users -= 1
        if self._users <= 0 and self.own:
            self._end()

    def _end(self) -> None:
        atexit.unregister(self._end)
        if self.session is not None:
            with contextlib.suppress(Exception):  # the cluster may be gone already
                self.session.stop()
            self.session = None
            _end_jvm()
        if self._folder is not None:
            _remove(self._folder)
            os.close(self._lock)
            self._folder = None


def _remove(folder: Path) -> None:
    """Remove a folder, also while a JVM that ends is still busy in its own part of it.

    The lock goes last: by it the next start knows a folder of which something is left.
    """
    for _ in range(30):
        with contextlib.suppress(FileNotFoundError):
            for path in [one for one in folder.iterdir() if one.name != "lock"]:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
            if all(one.name == "lock" for one in folder.iterdir()):
                shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


def _end_jvm() -> None:
    """End the JVM of a session that was made here: its settings and folders are of that session."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        return
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    with contextlib.suppress(Exception):
        gateway.proc.stdin.close()  # it ends when its parent is gone, which looks like this
        gateway.proc.wait(timeout=30)


def held(
    given: Any = None, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> Held:
    """The session to work in.

    Args:
        given: a SparkSession; None takes the active one, unless `master` or `conf` ask for another.
        master: of a new session: "local[2]", "spark://host:7077", "yarn"; None takes `local[*]`.
        conf: settings of a new session, over the safe ones of `SETTINGS`.
    Raises:
        EngineFailure: pyspark or Java 17 is missing, the session is a Spark Connect client, or the
            cluster cannot be reached.
        UsageError: a session that runs already, and settings for a new one.
    """
    found = given if given is not None else _active()
    if found is not None:
        if ".connect" in type(found).__module__:
            raise _connect()
        if given is None and (master is not None or conf):
            raise UsageError(
                "SESSION",
                "A Spark session is active in this process, and settings for a new one were given.",
                "master and conf are for a session that is made here.",
                "Stop the active session, or leave master and conf out.",
            )
        return Held(found, own=False)
    with quiet():
        need("pyspark", "spark")
    _check_java()
    if master is not None and master.startswith("sc://"):
        raise _connect()
    sweep()
    return _new(master or "local[*]", dict(conf or {}))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back what PySpark says in this process: on the version of pandas, and of what failed.

    Its logger of failed queries writes the text of the exception to the terminal, and that text may
    hold what a column held.
    """
    loggers: list[Any] = []
    if sys.modules.get("pyspark") is not None:
        from pyspark.logger import (
            PySparkLogger,
        )  # its own class, else its next user finds a plain one

        loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [one.disabled for one in loggers]
    for one in loggers:
        one.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    finally:
        for one, was in zip(loggers, before, strict=True):
            one.disabled = was


def sweep() -> None:
    """Remove private folders of sessions whose process is gone."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            facts = folder.lstat()
            if facts.st_uid != os.getuid() or folder.is_symlink() or not folder.is_dir():
                continue
            handle = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while it is in use
                _remove(folder)
            finally:
                os.close(handle)


def _active() -> Any:
    if sys.modules.get("pyspark") is None:
        return None
    with quiet():
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        found = SparkSession.getActiveSession()
        if found is None and SparkContext._active_spark_context is not None:
            found = SparkSession.builder.getOrCreate()  # of another thread: there is one a process
        return found


def _new(master: str, conf: dict[str, str]) -> Held:
    folder, lock = _private_folder()
    settings = SETTINGS | _places(folder) | _near(master) | conf
    log = folder / "log4j2.properties"
    log.write_text(_LOG.format(level=settings["spark.log.level"]), encoding="ascii")
    # Kept when the run is interrupted while Spark starts, or when the start fails.
    made = Held(None, own=True, folder=folder, lock=lock)
    try:
        made.session = guarded(lambda: _started(master, settings))
    except BaseException:
        made.let_go()
        raise
    return made


def _private_folder() -> tuple[Path, int]:
    """A new folder for this user alone, and its lock: no other start sweeps it while that is open."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # 0700
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "lock").exists():  # else another start swept it before it was locked
            return folder, lock
        os.close(lock)


def _started(master: str, settings: dict[str, str]) -> Any:
    silent = settings["spark.log.level"] == "OFF"
    workers = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    workers = workers or (sys.executable if _near(master) else None)
    with quiet(), _launching(silent=silent, workers=workers):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


@contextlib.contextmanager
def _launching(*, silent: bool, workers: str | None) -> Iterator[None]:
    """While the JVM starts: its files are of mode 0600, and what it prints goes nowhere.

    `workers` is the Python of the workers, where it is known.
    """
    mask, before, python = os.umask(0o077), -1, os.environ.get("PYSPARK_PYTHON")
    if workers is not None:
        os.environ["PYSPARK_PYTHON"] = workers  # where a session looks for it
    try:
        if silent:
            sys.stderr.flush()
            before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
        yield
    finally:
        if before >= 0:
            os.dup2(before, 2)
            os.close(before)
        os.umask(mask)
        if workers is not None:
            os.environ.pop("PYSPARK_PYTHON", None)
            os.environ.update({} if python is None else {"PYSPARK_PYTHON": python})


def _places(folder: Path) -> dict[str, str]:
    log = f"{folder.as_uri()}/log4j2.properties"
    options = f"-Djava.io.tmpdir={folder}", f"-Dlog4j2.configurationFile={log}"
    # Spark cuts the options at blanks, except between double quotes.
    quoted = [re.sub(r'(["\\])', r"\\\1", one) for one in options]
    return {
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": " ".join(f'"{one}"' for one in quoted),
    }


def _near(master: str) -> dict[str, str]:
    """Settings of a cluster on this machine: nothing listens to others, and spills are encrypted."""
    host = re.sub(r"^spark://|:\d+$", "", master)
    if not master.startswith("local") and host not in _LOOPBACK:
        return {}
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.io.encryption.enabled": "true",
    }


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    text = ""
    if java and Path(java).exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=60, check=False
            )
            text = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if found is None:
        raise _no_java("No Java was found." if not home else "JAVA_HOME holds no Java that runs.")
    if int(found[1]) < JAVA:
        raise _no_java(f"Java {found[1]} was found.")


def _no_java(wrong: str) -> EngineFailure:
    return EngineFailure(
        "JAVA",
        wrong,
        f"Spark runs on Java {JAVA} or later.",
        "Install a JRE (Debian: apt install openjdk-17-jre-headless) and set JAVA_HOME, or use "
        "engine='local', which needs none.",
    )


def _connect() -> EngineFailure:
    return EngineFailure(
        "CONNECT",
        "The session is a Spark Connect client.",
        "The engine needs a classic session, in the process that runs gibbous.",
        "Run gibbous on the driver (a notebook of a single-user cluster, or spark-submit), or use "
        "engine='local' on an export.",
    )
