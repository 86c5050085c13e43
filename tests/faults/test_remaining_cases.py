"""Cases of the catalogue that stand nowhere else: odd inputs, surroundings, clocks, children, sockets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.cli.config import request_of, resolve
from gibbous.core import durable as file_lock
from gibbous.core.claim import pure
from gibbous.core.errors import GibbousError
from gibbous.privacy import entropy
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger import ledger as ledger_module
from gibbous.read import parquet_child
from gibbous.read.infer import infer_schema
from gibbous.read.schema_write import schema_toml
from gibbous.read.source import read_columns
from tests.faults.test_files import other_process
from tests.frame.tree import ROOT, sources
from tests.mutants.broken_builds import published
from tests.needs import need
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.read.refusal import MARKER, refused
from tests.write import made

DATA = bytes(32)


def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python program in a process of its own."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])} | environment
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=env, capture_output=True, text=True
    )


def test_b3_a_dictionary_of_more_levels_than_are_drafted_is_left_out(tmp_path: Path) -> None:
    levels = pl.Series("a", [f"{MARKER}-{i:06d}" for i in range(60_000)] * 2, pl.Categorical)
    pl.DataFrame([levels]).write_parquet(tmp_path / "d.parquet")

    with pytest.raises(GibbousError) as caught:
        infer_schema(tmp_path / "d.parquet")

    assert caught.value.exit_code in (4, 10)
    assert MARKER not in str(caught.value)


def test_b7_an_arrow_file_is_no_input_and_its_types_are_never_loaded(tmp_path: Path) -> None:
    pl.DataFrame({"a": [MARKER]}).write_ipc(tmp_path / "d.arrow")

    with refused(3, "FORMAT"):
        read_columns(tmp_path / "d.arrow")


def test_c10_a_level_that_no_record_has_can_be_drawn_and_shows_nowhere() -> None:
    """Without "far" among the records, and with it, all that is public is equal but for noise."""
    people = table(60).with_columns(region=pl.lit("01"))
    some = people.with_columns(
        region=pl.when(pl.arange(60) == 7).then(pl.lit("NA")).otherwise("region")
    )

    # All eight cells of a level are clipped to nothing in one release of 200; in all four never.
    drawn = set[str]()
    for _ in range(4):
        release = gb.synthesize(
            people,
            SCHEMA,
            gb.Laplace(epsilon=0.1),
            rows=4000,
            seed=1,
            ledger=Ledger.ephemeral(),
            engine="numpy",
        )
        drawn |= set(release.sets[0]["region"].to_list())

    assert {"02", "NA"} <= drawn
    assert published(people, gb.Laplace(), schema=SCHEMA) == published(
        some, gb.Laplace(), schema=SCHEMA
    )


def test_d6_a_path_of_a_configuration_may_lead_out_of_its_folder(tmp_path: Path) -> None:
    """Whoever runs the command may write where they may write."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "schema.toml").write_text(schema_toml(SCHEMA))
    (inner / "release.toml").write_text(
        'data = "../data.csv"\nschema = "schema.toml"\n[privacy]\nepsilon = 1\ndelta = 1e-6\n'
        '[output]\npath = "../elsewhere"\n'
    )

    request = request_of(resolve(inner / "release.toml", [], {}))

    assert Path(str(request.output.out)).resolve() == tmp_path / "elsewhere"


@pytest.mark.slow
def test_d10_language_and_time_zone_change_no_byte(tmp_path: Path) -> None:
    made.write(tmp_path / "rel", Ledger.ephemeral())
    code = "import sys; from gibbous.cli import main; sys.exit(main(sys.argv[1:]))"
    files = []
    for number, (language, zone) in enumerate([("C", "UTC"), ("tr_TR.UTF-8", "Asia/Kathmandu")]):
        out = tmp_path / f"{number}.csv"
        done = run(
            code, "synthesize", "--tables", tmp_path / "rel", "--rows", 40, "--seed", 3, "--out", out,
            LANG=language, LC_ALL=language, TZ=zone, PYTHONUTF8=str(number),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        files.append(out.read_bytes())

    assert files[0] == files[1]


def test_g3_there_is_no_generator_for_tests_that_could_be_switched_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIBBOUS_INSECURE_TEST_RNG", "1")
    drawn = [entropy.geometric(np.zeros(50, dtype=np.int64), Fraction(1000)) for _ in range(2)]

    assert not np.array_equal(*drawn)
    assert not [p for p in sources() if "TEST_RNG" in p.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_g8_noise_is_whole_numbers_whose_last_bit_tells_nothing(law: str) -> None:
    """Even outputs of 20,000 at 0 and at 1: shares differ by less than 5.5 sigma, false alarm 4e-8.

    Power: low bits that follow the count (a share of 1 against 0) are 200 sigma apart.
    """
    draw = getattr(entropy, law)
    noisy = [draw(np.full(20_000, value, dtype=np.int64), Fraction(50)) for value in (0, 1)]

    assert all(cells.dtype == np.int64 for cells in noisy)
    even = [float(np.mean(cells % 2 == 0)) for cells in noisy]
    assert abs(even[0] - even[1]) < 5.5 * (0.5 / 20_000) ** 0.5
    assert abs((0.0 if even[0] < 0.5 else 1.0) - even[0]) > 0.4


def test_h9_a_clock_that_goes_back_changes_no_order_and_no_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = iter(f"20{30 - n}-01-01T00:00Z" for n in range(20))
    monkeypatch.setattr(ledger_module, "now", lambda: next(days))
    book = Ledger.open(tmp_path / "ledger.sqlite")
    for number in range(4):
        book.reserve(DATA, pure(Fraction(1)), mechanism="pegs", request=bytes([number])).release()
    book.close()

    again = Ledger.open(tmp_path / "ledger.sqlite")

    again.verify()
    assert [entry.seq for entry in again.entries()] == sorted(e.seq for e in again.entries())
    assert sum(claim.epsilon for claim in again.spent(DATA)) == 4


def test_m3_children_are_told_nothing_by_their_command_line_or_environment(tmp_path: Path) -> None:
    need("/proc")
    path = tmp_path / f"{MARKER}.parquet"
    pl.DataFrame({"a": [MARKER] * 9}).write_parquet(path)
    book = Ledger.open(tmp_path / "ledger.sqlite")
    read_columns(path)
    child = parquet_child._child
    assert child is not None

    shown = b"".join(
        Path(f"/proc/{child._process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")
    )

    assert len(shown) > 100
    for secret in (MARKER.encode(), book.key, book.key.hex().encode(), str(path).encode()):
        assert secret not in shown


@pytest.mark.slow
def test_m6_a_run_opens_no_socket(tmp_path: Path) -> None:
    table(60).write_csv(tmp_path / "data.csv")
    (tmp_path / "schema.toml").write_text(schema_toml(SCHEMA))
    code = (
        "import sys\n"
        "def hook(event, given):\n"
        "    if event.startswith('socket.'): sys.stderr.write('SOCKET ' + event + '\\n')\n"
        "sys.addaudithook(hook)\n"
        "from gibbous.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )

    done = run(
        code, "synthesize", tmp_path / "data.csv", "--schema", tmp_path / "schema.toml", "--method",
        "laplace", "--epsilon", 1, "--rows", 9, "--engine", "numpy", "--out", tmp_path / "rel",
        GIBBOUS_HOME=str(tmp_path / "home"),
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "SOCKET" not in done.stderr
    assert (
        "SOCKET"
        in run(
            code.replace("from gibbous", "import socket; socket.socket()\nfrom gibbous"), "methods"
        ).stderr
    )


def test_n6_a_clock_that_jumps_ends_no_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = iter(range(10**6))
    with other_process(tmp_path / "lock"):
        handle = os.open(tmp_path / "lock", os.O_RDWR)
        monkeypatch.setattr(time, "time", lambda: 86_400.0 * next(days))
        with pytest.raises(file_lock.Held):
            file_lock.take(handle, 0.05)

    file_lock.take(handle, 60)
    file_lock.free(handle)


@pytest.mark.parametrize(("rows", "code"), [(-1, 2), (10**12, 10)])
def test_n7_rows_that_cannot_be_are_refused_before_anything_is_spent(rows: int, code: int) -> None:
    book = Ledger.ephemeral()

    with pytest.raises(GibbousError) as caught:
        gb.synthesize(
            table(60), SCHEMA, gb.Laplace(epsilon=1.0), rows=rows, ledger=book, engine="numpy"
        )

    assert caught.value.exit_code == code
    assert not book.entries()
