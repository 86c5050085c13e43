"""The DuckDB engine: what it keeps, what it leaves behind, and when it stops."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from gibbous.core.context import Context, MinHash
from gibbous.core.moment import moment
from gibbous.core.protocols import NumberEngine
from gibbous.core.recode import Change, Edges, Groups
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.ibis.engine import IbisEngine
from gibbous.disintegrate.ibis.scratch import Scratch
from gibbous.disintegrate.ibis.store import Store, failure
from gibbous.disintegrate.numpy_engine import NumpyEngine
from tests.disintegrate.brute import as_dict, context_of
from tests.read.refusal import MARKER, refused

from .problems import KEY, digest

SCHEMA = Schema(
    (
        Column("place", "nominal", levels=("north", "south"), missing=True),
        Column("income", "numeric", edges=(0.0, 10.0, 50.0, 100.0), decimals=1, missing=True),
        Column("age", "numeric", edges=(0.0, 18.0, 65.0, 120.0), integer=True),
    )
)


def people(rows: int, seed: int = 0) -> pl.DataFrame:
    """Rows that fit."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "place": [("north", "south", None)[i] for i in rng.integers(0, 3, rows)],
            "income": pl.Series(np.round(rng.uniform(0, 100, rows), 1)).set(
                pl.Series(rng.random(rows) < 0.1), None
            ),
            "age": rng.integers(0, 120, rows),
        }
    )


def pair() -> list[Context]:
    """Every cell of two columns."""
    return [context_of(SCHEMA, (1,), (0,))]


def test_it_is_an_engine_of_numbers() -> None:
    assert isinstance(IbisEngine(), NumberEngine)


def test_sums_recoding_and_parts_are_those_of_numpy(tmp_path: Path) -> None:
    frame = people(1000)
    ours, truth = IbisEngine(scratch=tmp_path), NumpyEngine()
    for engine in (ours, truth):
        engine.scan(frame, SCHEMA, key=KEY, numbers=(1, 2))
    moments = [moment(SCHEMA, context_of(SCHEMA, (0,)), f) for f in ((1,), (1, 2), (2, 2))]
    changes: dict[int, Change] = {0: Groups(np.array([0, 0, 1])), 1: Edges((0.0, 33.0, 100.0))}

    sums = [
        (a.cells.values, b.cells.values)
        for a, b in zip(ours.sums(moments), truth.sums(moments), strict=True)
    ]
    coarse = ours.recoded(changes), truth.recoded(changes)
    after = [Context((0, 1), (2,), (2, 3), (3,))]

    assert all(np.array_equal(a, b) for a, b in sums)
    assert digest(coarse[0], after) == digest(coarse[1], after)
    ours.close()
    assert digest(coarse[0], after) == digest(coarse[1], after)  # it has records of its own
    coarse[0].close()
    assert not list(tmp_path.glob("gibbous-*/run-*"))


def test_parts_divide_the_records(tmp_path: Path) -> None:
    engine = IbisEngine(scratch=tmp_path)
    engine.scan(people(3000), SCHEMA, key=KEY)
    whole = as_dict(engine.tally(pair())[0])

    parts = engine.split(3, lambda n: np.random.default_rng(1).integers(0, 2**63, n, np.uint64))
    counted = [as_dict(part.tally(pair())[0]) for part in parts]

    sizes = [sum(one.values()) for one in counted]
    assert {c: sum(one.get(c, 0) for one in counted) for c in whole} == whole
    assert all(900 < size < 1100 for size in sizes)  # 1000 +- 26
    for one in (*parts, engine):
        one.close()
    assert not list(tmp_path.glob("gibbous-*/run-*"))


def test_numbers_that_were_not_kept_are_not_summed() -> None:
    engine = IbisEngine()
    engine.scan(people(10), SCHEMA, key=KEY)

    with refused(11, "NUMBERS"):
        engine.sums([moment(SCHEMA, context_of(SCHEMA, (0,)), (1,))])
    engine.close()


@pytest.mark.parametrize("kind", ["text", "number"])
def test_c14_a_person_has_at_most_the_declared_rows(kind: str) -> None:
    schema = Schema(SCHEMA.columns, Unit("person", "who", 3))
    who = [i // 10 if i < 400 else 1000 + i for i in range(500)]
    names = [f"p{w}" for w in who] if kind == "text" else who
    engine = IbisEngine()

    engine.scan(people(500).with_columns(who=pl.Series(names)), schema, key=KEY)

    total = sum(as_dict(engine.tally([context_of(schema, (0,))])[0]).values())
    engine.close()
    assert total == 40 * 3 + 100


@pytest.mark.slow
def test_the_rows_of_a_person_are_drawn_anew_by_each_engine() -> None:
    schema = Schema(SCHEMA.columns, Unit("person", "who", 1))
    frame = people(300, 4).with_columns(who=pl.lit("p"))
    seen = set()

    for _ in range(6):
        engine = IbisEngine(threads=1)
        engine.scan(frame, schema, key=KEY)
        seen.add(tuple(as_dict(engine.tally([context_of(schema, (1,), (0, 2))])[0])))
        engine.close()

    assert len(seen) > 1  # one row of 300, drawn six times


def test_c15_a_row_without_a_person_is_refused() -> None:
    schema = Schema(SCHEMA.columns, Unit("person", "who", 1))
    who = pl.Series(["p", None, "q"])

    with refused(4, "NULLID"):
        IbisEngine().scan(people(3).with_columns(who=who), schema, key=KEY)


def test_an_empty_table_is_counted() -> None:
    engine, truth = IbisEngine(), NumpyEngine()
    contexts = [*pair(), context_of(SCHEMA, (0, 1), (2,), MinHash(2, 8), seen=True)]

    marks = {e.scan(people(0), SCHEMA, key=KEY) for e in (engine, truth)}

    assert digest(engine, contexts) == digest(truth, contexts)
    assert len(marks) == 1
    engine.close()


@pytest.mark.slow
def test_a_domain_of_10_to_the_30_is_counted_by_pairs_of_columns() -> None:
    columns = tuple(Column(f"c{i}", "nominal", levels=tuple(range(100))) for i in range(15))
    schema = Schema(columns)
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({c.name: rng.integers(0, 100, 500) for c in columns})
    engine, truth = IbisEngine(), NumpyEngine()
    contexts = [context_of(schema, tuple(range(9)), tuple(range(9, 15)), seen=True)]
    contexts.append(context_of(schema, (0,), tuple(range(1, 15)), MinHash(9, 64), seen=True))

    for one in (engine, truth):
        one.scan(frame, schema, key=KEY)

    assert contexts[0].cells == 10**30
    assert digest(engine, contexts) == digest(truth, contexts)
    engine.close()


def test_it_counts_nothing_before_scan_nor_after_close() -> None:
    engine = IbisEngine()

    with refused(11, "NOTSCANNED"):
        engine.tally(pair())
    engine.scan(people(5), SCHEMA, key=KEY)
    engine.close()
    engine.close()
    with refused(11, "CLOSED"):
        engine.tally(pair())
    with refused(11, "CLOSED"):
        engine.scan(people(5), SCHEMA, key=KEY)


def test_a_context_of_another_schema_is_refused() -> None:
    engine = IbisEngine()
    engine.scan(people(5), SCHEMA, key=KEY)

    with refused(11, "CONTEXT"):
        engine.tally([Context((0,), (7,), (3,), (2,))])
    engine.close()


def test_secrets_are_neither_printed_nor_pickled(tmp_path: Path) -> None:
    engine = IbisEngine(scratch=tmp_path)
    engine.scan(people(5), SCHEMA, key=KEY)

    for secret in (engine, engine._held.store):  # type: ignore[union-attr]
        assert "north" not in repr(secret)
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(secret)
    assert repr(engine) == "<IbisEngine, open>"
    engine.close()


def test_the_codes_have_no_name_on_the_disk(tmp_path: Path) -> None:
    engine = IbisEngine(scratch=tmp_path)
    engine.scan(people(20_000), SCHEMA, key=KEY)

    home = next(tmp_path.iterdir())
    files = [p for p in home.rglob("*") if p.is_file()]
    modes = {p.stat().st_mode & 0o777 for p in (home, *home.glob("run-*"))}

    engine.close()
    assert files == []
    assert modes == {0o700}
    assert list(home.iterdir()) == []


def test_nothing_outside_can_be_reached_from_the_private_database(tmp_path: Path) -> None:
    store = Store(threads=1, memory=1 << 27, disk=None, scratch=tmp_path)
    tries = (
        "SELECT * FROM read_text('/etc/hostname')",
        f"ATTACH '{tmp_path}/other.db' AS other",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
        "SET threads = 2",
        "INSTALL httpfs",
    )

    for sql in tries:
        with refused(11, "DUCKDB"):
            store.run(sql)
    store.release()
    assert not (tmp_path / "out.csv").exists()


def test_an_error_of_duckdb_does_not_travel(tmp_path: Path) -> None:
    store = Store(threads=1, memory=1 << 27, disk=None, scratch=tmp_path)

    with refused(11, "DUCKDB") as caught:
        store.run(f"SELECT CAST('{MARKER}' AS INTEGER)")
    assert "Conversion" not in caught.text
    store.release()


@pytest.mark.slow
def test_j9_spilling_over_the_limit_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gibbous.disintegrate.ibis.store.LEAST", 1 << 20)
    sql = "SELECT max(h) AS m FROM (SELECT hash(range) AS h FROM range(3000000) GROUP BY h)"
    store = Store(threads=1, memory=40 << 20, disk=1 << 20, scratch=tmp_path)
    roomy = Store(threads=1, memory=40 << 20, disk=1 << 30, scratch=tmp_path)

    with refused(10, "SPILL"):
        store.run(sql)
    assert len(roomy.run(sql)["m"]) == 1
    store.release()
    roomy.release()
    assert list(next(tmp_path.iterdir()).iterdir()) == []


def test_a_disk_that_is_full_while_records_are_read_says_that_nothing_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = failure(duckdb.IOException("No space left on device"), duckdb)

    def fail(*_: object) -> None:
        raise full

    monkeypatch.setattr(Store, "append", fail)

    with refused(10, "DISKFULL") as caught:
        IbisEngine(scratch=tmp_path).scan(people(5), SCHEMA, key=KEY)
    assert caught.text.endswith("Nothing was released; no budget was spent.")
    assert full.state != caught.errors[0].state  # while it counts, a budget may be spent
    assert not list(tmp_path.glob("gibbous-*/run-*"))


def test_a_scratch_folder_that_cannot_be_used_is_refused_before_reading(tmp_path: Path) -> None:
    open_to_all = tmp_path / f"gibbous-{os.getuid()}"
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)

    with refused(10, "SCRATCH"):
        IbisEngine(scratch=tmp_path).scan("nowhere.csv", SCHEMA, key=KEY)
    with refused(10, "SCRATCH"):
        IbisEngine(scratch=tmp_path / "missing").scan("nowhere.csv", SCHEMA, key=KEY)


def test_the_next_start_sweeps_after_a_kill_and_spares_the_living(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from gibbous.disintegrate.ibis.scratch import Scratch\n"
        "held = Scratch(sys.argv[1])\n"
        "(held.folder / 'spilled').write_text('Zaphod-SECRET-7')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        other = Scratch(tmp_path)
        while_alive = list(tmp_path.rglob("spilled"))
        child.send_signal(signal.SIGKILL)
        child.wait()

    third = Scratch(tmp_path)

    assert len(while_alive) == 1
    assert list(tmp_path.rglob("spilled")) == []
    assert other.folder.is_dir()
    other.release()
    third.release()


def test_i5_an_interrupt_stops_duckdb_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal, threading, time\n"
        "from gibbous.disintegrate.ibis.store import Store, failure\n"
        "store = Store(threads=1, memory=1 << 27, disk=None, scratch=sys.argv[1])\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    store.run('SELECT count(*) AS n FROM range(1000000) a, range(1000000) b'\n"
        "              ' WHERE a.range * b.range % 7 = 3')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print(store.run('SELECT 1 AS n')['n'][0])\n"
        "store.release()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,  # the query alone takes days
        check=False,
    )

    assert (done.stdout.split(), done.returncode) == (["interrupted", "1"], 0), done.stderr
    assert list(next(tmp_path.iterdir()).iterdir()) == []


def test_memory_is_refused_before_counting() -> None:
    engine = IbisEngine(memory_limit=200_000)
    engine.scan(people(5), SCHEMA, key=KEY)

    with refused(10, "MEMORY") as caught:
        engine.tally([context_of(SCHEMA, (0, 1, 2))] * 10_000)
    with refused(10, "MEMORY") as uncharged:
        engine.check([context_of(SCHEMA, (0, 1, 2))] * 10_000)
    assert "stays spent" in caught.text
    assert "no budget was spent" in uncharged.text
    engine.close()


def test_progress_says_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    people(1000).write_parquet(tmp_path / "a.parquet")
    engine = IbisEngine()

    engine.scan(tmp_path / "a.parquet", SCHEMA, key=KEY, progress=lambda *a: told.append(a))
    engine.tally(pair(), progress=lambda *a: told.append(a))
    engine.close()

    assert told[0] == ("read", 0, 100)
    assert ("read", 100, 100) in told
    assert told[-1] == ("count", 1, 1)


@pytest.mark.slow
def test_many_pairs_are_counted_as_margins_of_few_tables() -> None:
    columns = tuple(Column(f"c{i}", "nominal", levels=(0, 1, 2)) for i in range(30))
    schema = Schema(columns)
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({c.name: rng.integers(0, 3, 2000) for c in columns})
    engine, truth = IbisEngine(), NumpyEngine()
    contexts = [context_of(schema, (a,), (b,)) for a in range(30) for b in range(a)]

    for one in (engine, truth):
        one.scan(frame, schema, key=KEY)
    told: list[int] = []
    engine.tally(contexts, progress=lambda _, done, __: told.append(done))

    assert digest(engine, contexts) == digest(truth, contexts)
    assert len(told) < len(contexts) / 4
    engine.close()
