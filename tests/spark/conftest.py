"""A standalone cluster of one master and two workers on loopback, from the wheel of pyspark."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbous.privacy import entropy
from tests.frame.tree import ROOT
from tests.needs import need

SETTINGS = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "500m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.executorEnv.OMP_NUM_THREADS": "1",
}


# Processes of Java live for seconds here: compiled to be fast at once, they take two thirds of the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A daemon and what it starts end when the pipe to this process does, whoever killed this process.
_WHILE_WE_LIVE = '"$@" < /dev/null & cat > /dev/null; kill -9 0'


@dataclass(frozen=True)
class Cluster:
    """Where it is: the address of its master, and the folder of its logs and executors."""

    master: str
    folder: Path

    def executors(self) -> list[int]:
        """Process ids of executors of any application on this cluster."""
        return _executors(self.folder)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster; every process of it is gone at the end."""
    need("pyspark")
    need("Java 17")
    import pyspark

    folder = tmp_path_factory.mktemp("cluster")
    command = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    daemon = ["sh", "-c", _WHILE_WE_LIVE, "sh", command]
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        environment |= {
            "SPARK_LOCAL_DIRS": str(folder / f"{name}-local"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        (folder / f"{name}-local").mkdir()
        with (folder / f"{name}.log").open("wb") as log:
            running.append(
                subprocess.Popen(
                    [*daemon, f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    try:
        anywhere = ["--host", "127.0.0.1", "--webui-port", "0"]  # ports that nobody else can take
        start("master", "master.Master", *anywhere, "--port", "0")
        master = _address(folder / "master.log")
        for number in (1, 2):
            work = folder / f"work{number}"
            options = ["--cores", "2", "--memory", "1200m", "--work-dir", str(work), master]
            start(f"worker{number}", "worker.Worker", *anywhere, *options)
        _until(lambda: (folder / "master.log").read_bytes().count(b"Registering worker") == 2)
        yield Cluster(master, folder)
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()  # closes the pipe, and waits
        for pid in _executors(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def session(cluster: Cluster) -> Iterator[Any]:
    """A session on the cluster: speculation on, quick to try again."""
    from gibbous.disintegrate.spark.session import held

    conf = SETTINGS | {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.multiplier": "2",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.sql.shuffle.partitions": "8",
    }
    found = held(master=cluster.master, conf=conf).take()
    yield found.session
    found.let_go()


def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise, words and choices after each call, drawn by a seeded generator."""
    rng = np.random.default_rng(23)
    words = np.random.default_rng(
        24
    )  # apart: engines divide records with different numbers of words

    def sampler(law: str, scale: Any) -> Any:
        draw = rng.laplace if law == "geometric" else rng.normal
        return lambda values: (
            values + np.rint(draw(0, float(scale), len(values))).astype(int)
        ).tolist()

    def chooser(scale: Any, epsilon: Any) -> Any:
        return lambda steps: int(np.argmax(steps + rng.gumbel(size=len(steps)) * float(scale)))

    monkeypatch.setattr(entropy, "_urandom", words.bytes)
    monkeypatch.setattr(entropy, "_sampler", sampler)
    monkeypatch.setattr(entropy, "_chooser", chooser)
    monkeypatch.setattr(entropy, "usable_cores", lambda: 1)


def _address(log: Path) -> str:
    """Where a master listens, once its log says so."""

    def said() -> re.Match[str] | None:
        return re.search(r"Starting Spark master at (spark://\S+)", log.read_text("utf-8"))

    _until(said)
    found = said()
    assert found
    return found[1]


def _until(what: Any, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            pytest.fail("the cluster did not start")
        time.sleep(0.1)


def _executors(folder: Path) -> list[int]:
    """Executors that work in a folder, the oldest first."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
            if b"CoarseGrainedExecutorBackend" in line:
                place = (process / "cwd").readlink()
                found += [int(process.name)] if place.is_relative_to(folder) else []
    return sorted(found)


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, from the root of the repository."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
