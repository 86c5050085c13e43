"""Ctrl-C while Parquet is written: Python hears it, and polars, which would panic, does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import ctypes, os, signal, sys
import numpy as np
import polars  # puts its own handler in front of Python's
from pathlib import Path
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.write.rows import heard_by_python_alone
from gibbous.write.rows import write_files

def handler(number):
    facts = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).sigaction(int(number), None, facts)
    return facts.raw[:8]

signal.signal(signal.SIGUSR1, lambda *_: None)
pythons, before = handler(signal.SIGUSR1), handler(signal.SIGINT)
with heard_by_python_alone():
    inside = handler(signal.SIGINT)
print(before != pythons, inside == pythons, handler(signal.SIGINT) == before)

schema = Schema((Column("c", "ordinal", levels=tuple(range(9))),))
codes = Codes(schema, np.zeros((1, 300_000), dtype=np.uint8).T)

def batches():
    yield codes
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        yield codes

path = Path(sys.argv[1])
try:
    write_files(batches(), schema, {"parquet": path}, seed=1)
except KeyboardInterrupt:
    print("interrupted", path.exists(), handler(signal.SIGINT) == before)
"""


def test_i5_an_interrupt_of_the_writer_reaches_python_and_no_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "a.parquet")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["True True True", "interrupted False True"], done.stderr
    assert done.stderr == ""
