"""Whole runs in processes of their own: what they print, leave behind, charge, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from gibbous.privacy.ledger import Ledger
from tests.frame.tree import ROOT
from tests.spark.breakage import MARKER
from tests.spark.conftest import SETTINGS, Cluster, python

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALONE = SETTINGS | {"spark.cores.max": "1"}  # one executor: each is a JVM that has to start

SCHEMA = """
format = "gibbous-schema/1"

[unit]
kind = "row"

[[column]]
name = "a"
kind = "nominal"
levels = ["x", "y", "z"]

[[column]]
name = "b"
kind = "numeric"
integer = true
lower = 0
upper = 40
cuts = [10, 20]
"""

LEAK = f"""
import os
import sys
from pathlib import Path
import polars as pl
from gibbous.core.discovery import Discovery
from gibbous.core.errors import SchemaMismatch
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.spark.engine import SparkEngine
from gibbous.disintegrate.spark.text_engine import SparkTextEngine
from tests.spark import tables

master, folder = sys.argv[1:]
marker = {MARKER!r}
conf = {ALONE!r} | {{
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": Path(folder, "events").as_uri(),
    "spark.eventLog.compress": "false",
    "spark.log.level": "INFO",
}}
names = [marker + str(i % 40) for i in range(400)]
pl.DataFrame({{"who": names, "x": ["x", marker] * 200}}).write_parquet(folder + "/t.parquet")
unit = Unit("person", "who", max_rows=3)
kind = dict(kind="nominal", levels=("x", "y"))
engine = SparkEngine(master=master, conf=conf, partitions=3)
fits = Schema((Column("x", other="else", **kind),), unit=unit)
engine.scan(folder + "/t.parquet", fits, key=tables.KEY)
(counts,) = engine.tally([tables.context(fits, [0], [])])
print("counted", int(counts.cells.values.sum()))
try:
    engine.scan(folder + "/t.parquet", Schema((Column("x", **kind),), unit=unit), key=tables.KEY)
except SchemaMismatch as error:
    print("refused", error.name, repr(error), error.__context__)
engine.scan(folder + "/t.parquet", fits, key=tables.KEY)
view = engine.recoded({{}})  # whoever forgets to close it keeps nothing open
engine.close()
texts = SparkTextEngine(master=master, conf=conf, partitions=3)
pl.DataFrame({{"who": names, "what": ["x", marker] * 200}}).write_parquet(folder + "/t.parquet")
texts.scan(folder + "/t.parquet", Discovery(("who", "what"), unit).schema(), key=tables.KEY)
(told,) = texts.texts(["what"], lambda name, own: own)
print("found", len(told[0]), marker in told[0])
texts.close()
print("opendp" in sys.modules, os.listdir(os.environ["TMPDIR"]))
"""


def test_j10_j11_m1_no_value_is_left_in_a_log_an_event_log_or_a_folder(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "scratch").mkdir()

    # Another test's tasks may have failed on this cluster with a text of their own.
    others = {f for f in cluster.folder.rglob("app-*") if f.is_dir()}
    done = python(LEAK, cluster.master, str(tmp_path), TMPDIR=str(tmp_path / "scratch"))

    assert done.stdout.startswith("counted 120\nrefused UNKNOWNLEVEL"), done.stderr[-2_000:]
    assert done.stdout.endswith("None\nfound 2 True\nFalse []\n"), done.stdout[-200:]
    assert MARKER not in done.stdout + done.stderr
    found = [f for top in (cluster.folder, tmp_path) for f in top.rglob("*") if f.is_file()]
    files = [f for f in found if not others.intersection(f.parents)]
    holding = [f for f in files if MARKER.encode() in f.read_bytes() and f.name != "t.parquet"]
    assert any(f.parent.name == "events" or "events" in str(f) for f in files)  # it was written
    assert any(f.name == "stderr" and f.stat().st_size for f in files)  # so were executors' logs
    assert not holding
    assert not list((tmp_path / "scratch").glob("gibbous-spark-*"))


# The driver is killed when it has noted the third part, whatever the machine is busy with.
KILLED = """
import os, runpy, signal, sys
from gibbous.write.sets import Sets

honest, done = Sets.record, []
def record(self, part):
    honest(self, part)
    done.append(part)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

Sets.record = record
runpy.run_module("gibbous", run_name="__main__")
"""


def test_j5_m2_a_killed_driver_is_resumed_with_one_charge_and_its_folder_is_swept(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "scratch").mkdir()
    (folder / "schema.toml").write_text(SCHEMA)
    rows = {"a": ["x", "y", "z", "x"] * 100, "b": [1, 12, 30, 7] * 100}
    pl.DataFrame(rows).write_parquet(folder / "t.parquet")
    arguments = ["synthesize", str(folder / "t.parquet"), "--schema", str(folder / "schema.toml")]
    arguments += [
        "--method",
        "noisy_pegs",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--rows",
        "20000",
        "--seed",
        "7",
    ]
    arguments += ["--part-rows", "1000", "--out", str(folder / "out"), "--engine", "spark"]
    arguments += ["--master", cluster.master, "--ledger", str(folder / "ledger.sqlite"), "--quiet"]
    for name, value in ALONE.items():
        arguments += ["--spark-conf", f"{name}={value}"]
    command = [sys.executable, "-m", "gibbous", *arguments]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}

    first = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    parts = len(list(folder.rglob("part-*.parquet")))
    left = list((tmp_path / "scratch").glob("gibbous-spark-*"))
    finished = (folder / "out").exists()
    second = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    with contextlib.closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        entries = [entry.kind for entry in ledger.entries()]

    assert first.returncode == -signal.SIGKILL, first.stderr[-2_000:]
    assert 3 <= parts < 20
    assert not finished
    assert left
    assert second.returncode == 0, second.stderr[-2_000:]
    assert sum(pl.read_parquet(f).height for f in folder.rglob("part-*.parquet")) == 20_000
    assert entries == ["reserve", "commit"]
    assert not list((tmp_path / "scratch").glob("gibbous-spark-*"))


TROUBLE = """
import json, os, sys, warnings
from gibbous.core.errors import GibbousError
from gibbous.disintegrate.spark.engine import SparkEngine

warnings.simplefilter("error", FutureWarning)
told = {}
def attempt(name, **given):
    try:
        SparkEngine(**given).close()
    except GibbousError as error:
        told[name] = [error.code, str(error)]
    else:
        told[name] = ["", ""]

sys.modules["pyspark"] = None
attempt("extra")
del sys.modules["pyspark"]
folder = sys.argv[1]
os.makedirs(folder + "/old/bin")
with open(folder + "/old/bin/java", "w") as file:
    file.write("#!/bin/sh\\necho 'openjdk version \\"11.0.2\\" 2019-01-15' >&2\\n")
os.chmod(folder + "/old/bin/java", 0o700)
home = os.environ.pop("JAVA_HOME", None)
os.environ["JAVA_HOME"] = folder + "/none"
attempt("none")
os.environ["JAVA_HOME"] = folder + "/old"
attempt("old")
os.environ.pop("JAVA_HOME")
if home:
    os.environ["JAVA_HOME"] = home
attempt("connect", master="sc://127.0.0.1:15002")
attempt("workers", master="local[1]", conf={"spark.pyspark.python": folder + "/bare"})
attempt("fine", master="local[1]")
print(json.dumps(told))
"""


def test_j6_j7_what_a_machine_lacks_is_said_in_one_line(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    # A Python of the same version in which only pyspark, pyarrow and numpy are found.
    bare.write_text(
        f'#!/bin/sh\nexport PYTHONNOUSERSITE=1\nexec "{sys.executable}" -c "{_BARE}" "$@"\n'
    )
    bare.chmod(0o700)
    (tmp_path / "scratch").mkdir()

    done = python(TROUBLE, str(tmp_path), TMPDIR=str(tmp_path / "scratch"))

    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert {name: code for name, (code, _) in told.items()} == {
        "none": "GB11-JAVA",
        "old": "GB11-JAVA",
        "connect": "GB11-CONNECT",
        "workers": "GB11-WORKERS",
        "fine": "",
        "extra": "GB11-EXTRA",
    }
    assert "Java 11 was found" in told["old"][1]
    assert "local" in told["none"][1]
    assert "gibbous" in told["workers"][1]
    assert not any("\n" in text for _, text in told.values())
    assert not done.stderr.strip()
    assert not list((tmp_path / "scratch").iterdir())


_BARE = (
    "import runpy, sys; sys.modules['gibbous'] = None; "
    "sys.argv = sys.argv[1:] if sys.argv[1:2] != ['-m'] else sys.argv[2:]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
