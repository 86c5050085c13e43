"""A process that runs one target on many inputs: `python -m tests.fuzz.worker TARGET FOLDER SECONDS ENGINE`.

What escapes a target is written to FOLDER/found and the run goes on; an abort or a hang ends the process,
and FOLDER/current holds the input. Whoever started it sees which, and starts another.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import importlib
import importlib.util
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutate import mutate, shortened

ROOT = Path(__file__).resolve().parents[2]
HANG = float(os.environ.get("GIBBOUS_FUZZ_HANG", "60"))  # seconds of one input
TRIALS = 300  # inputs that are tried to make that of a traceback shorter
HARNESS = 70  # exit code of a worker that failed by itself
KEPT = 400  # inputs of the plain engine that mutation starts from


def has_coverage() -> bool:
    """Whether atheris is installed, which leads mutation by the lines that an input reaches."""
    return importlib.util.find_spec("atheris") is not None


@contextlib.contextmanager
def instrumented() -> Iterator[None]:
    """Imports within it count the branches of gibbous, but of files with code for numba."""
    if not has_coverage():
        yield
        return
    import atheris

    sources = ROOT / "src"
    compiled = [
        ".".join(path.relative_to(sources).with_suffix("").parts)
        for path in (sources / "gibbous").rglob("*.py")
        if re.search(r"njit|numba|core\.kernel|core\.compiled", path.read_text(encoding="utf-8"))
    ]
    with atheris.instrument_imports(include=["gibbous"], exclude=compiled):
        yield


def signature(error: BaseException) -> str:
    """What a traceback is known by: its class, and the innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "gibbous" in f.filename and "/tests/" not in f.filename]
    last = (ours or list(frames))[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.name}: {last.line}"


class Recorder:
    """Runs inputs one by one and writes down which, how many, and what escaped."""

    def __init__(self, folder: Path, attempt: Callable[[bytes], BaseException | None]) -> None:
        self._folder, self._attempt = folder, attempt
        self._current = os.open(folder / "current", os.O_RDWR | os.O_CREAT, 0o600)
        self._known: set[str] = set()
        self.count, self._told = 0, time.monotonic()

    def __call__(self, data: bytes) -> None:
        known = self._end(data)
        if known and known not in self._known:
            self._known.add(known)
            self._keep(data, known)
        if time.monotonic() - self._told > 0.5:
            self.tell()

    def tell(self) -> None:
        """Say how far it is."""
        self._told = time.monotonic()
        (self._folder / "count").write_text(str(self.count))

    def _end(self, data: bytes) -> str:
        """What escaped, by its signature; "" for nothing."""
        os.ftruncate(self._current, 0)
        os.pwrite(self._current, data, 0)
        faulthandler.dump_traceback_later(HANG, exit=True)
        error = self._attempt(data)
        faulthandler.cancel_dump_traceback_later()
        self.count += 1
        return signature(error) if error else ""

    def _keep(self, data: bytes, known: str) -> None:
        short = shortened(data, lambda shorter: self._end(shorter) == known, TRIALS)
        words = {"signature": known, "input": short.hex()}
        path = self._folder / "found" / f"{hashlib.sha256(known.encode()).hexdigest()[:12]}.json"
        path.with_suffix(".new").write_text(json.dumps(words))
        path.with_suffix(".new").rename(path)


def _plain(
    record: Recorder,
    seeds: Sequence[bytes],
    change: Callable[[bytes, Random, Sequence[bytes]], bytes],
    seconds: float,
    random: Random,
) -> None:
    """Mutations of the seeds, and of earlier mutations."""
    end, pool = time.monotonic() + seconds, list(seeds)
    while time.monotonic() < end:
        fresh = len(pool) == len(seeds) or random.random() < 0.7
        data = change(random.choice(seeds if fresh else pool), random, pool)
        record(data)
        if len(pool) < KEPT:
            pool.append(data)
        elif random.random() < 0.1:
            pool[random.randrange(len(seeds), KEPT)] = data


def _guided(
    record: Recorder,
    seeds: Sequence[bytes],
    change: Callable[[bytes, Random, Sequence[bytes]], bytes],
    seconds: float,
    random: Random,
    folder: Path,
) -> None:
    """The same under libFuzzer, which keeps what reaches further."""
    import atheris

    for number, data in enumerate(seeds):
        (folder / "grown" / f"seed-{number}").write_bytes(data)

    def mutated(data: bytes, size: int, seed: int) -> bytes:
        dice = Random(seed)
        return change(data or dice.choice(seeds), dice, seeds)[:size]

    flags = [
        f"-max_total_time={max(1, int(seconds))}", f"-seed={random.randrange(1, 2**31)}",
        "-max_len=262144", "-print_final_stats=1", "-len_control=0", "-rss_limit_mb=4096",
        f"-timeout={int(HANG) + 10}", f"-artifact_prefix={folder}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *flags, str(folder / "grown")], record, custom_mutator=mutated)
    atheris.Fuzz()


def main(arguments: Sequence[str]) -> None:
    """Run one target."""
    name, where, seconds, engine, seed, *patches = arguments
    folder, random = Path(where), Random(int(seed))
    with instrumented() if engine == "atheris" else contextlib.nullcontext():
        from tests.fuzz import targets
    for patch in patches:
        module, _, function = patch.rpartition(".")
        getattr(importlib.import_module(module), function)()
    target = targets.TARGETS[name]
    seeds = targets.inputs(name)
    record = Recorder(folder, lambda data: targets.attempt(target, data))

    def change(data: bytes, dice: Random, others: Sequence[bytes]) -> bytes:
        return mutate(data, dice, others, named=target.named)

    start = time.monotonic()
    for data in seeds:
        record(data)
    record.tell()
    left: Any = float(seconds) - (time.monotonic() - start)
    if left <= 0:
        return
    if engine == "atheris":
        _guided(record, seeds, change, left, random, folder)
    else:
        _plain(record, seeds, change, left, random)
    record.tell()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception:  # noqa: BLE001 - a fault of the harness is no finding
        traceback.print_exc()
        os._exit(HARNESS)
