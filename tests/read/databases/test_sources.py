"""Databases as sources: the same rows have the same name and counts wherever they lie."""

from __future__ import annotations

import datetime
import gzip
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pytest

from gibbous.core.context import Context
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.read.databases.sources import address_of, table_slices
from gibbous.read.databases.tables import IbisTable
from gibbous.read.source import ReadOptions, is_one_file, name_of, read_columns
from tests.disintegrate.brute import as_dict, context_of, radix
from tests.read.databases.problems import KEY, digest
from tests.read.refusal import MARKER, refused

DAY = datetime.date(2024, 5, 1)
SCHEMA = Schema(
    (
        Column("place", "nominal", levels=("north", "south"), missing=True),
        Column("n", "numeric", edges=(0.0, 10.0, 100.0), integer=True),
        Column("share", "numeric", edges=(0.0, 0.5, 1.0), missing=True),
    ),
    ignore=("big",),
)
FRAME = pl.DataFrame(
    {
        "place": ["north", None, "south", "north"] * 50,
        "n": list(range(100)) * 2,
        "share": [0.25, 0.75, None, 1.0] * 50,
        "big": [9_007_199_254_740_993, -1, 0, None] * 50,
    }
)
CONTEXTS = [context_of(SCHEMA, (0,), (1, 2)), context_of(SCHEMA, (0, 1, 2), seen=True)]
READ = ReadOptions()


def files(folder: Path) -> Path:
    FRAME.write_csv(folder / "one.csv")
    return folder / "one.csv"


def pattern(folder: Path) -> str:
    FRAME.head(70).write_csv(folder / "p1.csv")
    FRAME.slice(70).select(reversed(FRAME.columns)).write_csv(folder / "p2.csv")
    return str(folder / "p*.csv")


def parquet_folder(folder: Path) -> Path:
    (folder / "many").mkdir()
    FRAME.head(30).write_parquet(folder / "many" / "a.parquet")
    FRAME.slice(30).write_parquet(folder / "many" / "b.parquet")
    return folder / "many"


def duckdb_file(folder: Path, *more: str) -> Path:
    path = folder / "data.db"
    with duckdb.connect(str(path)) as held:
        held.register("frame", FRAME.to_arrow())
        held.execute("CREATE TABLE people AS SELECT * FROM frame")
        held.execute("CREATE SCHEMA other; CREATE VIEW other.seen AS SELECT * FROM people")
        for sql in more:
            held.execute(sql)
    return path


def sqlite_file(folder: Path, *more: str) -> Path:
    path = folder / "data.sqlite"
    held = sqlite3.connect(path)
    held.execute('CREATE TABLE people (place TEXT, n INTEGER, share REAL, "big" INTEGER)')
    held.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", FRAME.rows())
    held.execute("CREATE VIEW seen AS SELECT * FROM people")
    for sql in more:
        held.execute(sql)
    held.commit()
    held.close()
    return path


def ibis_duckdb(folder: Path) -> Any:
    return ibis.duckdb.connect(duckdb_file(folder)).table("people")


def ibis_sqlite(folder: Path) -> Any:
    return ibis.sqlite.connect(sqlite_file(folder)).table("people")


def ibis_polars(_: Path) -> Any:
    return ibis.polars.connect({"people": FRAME.with_columns(big=pl.col("big").cast(str))}).table(
        "people"
    )


def relation(folder: Path) -> Any:
    return duckdb.connect().read_parquet(str(parquet_folder(folder) / "*.parquet"))


def packed(folder: Path) -> Path:
    (folder / "one.csv.gz").write_bytes(gzip.compress(files(folder).read_bytes()))
    return folder / "one.csv.gz"


def parquet(folder: Path) -> Path:
    FRAME.write_parquet(folder / "one.parquet")
    return folder / "one.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "frame": lambda _: FRAME,
    "arrow": lambda _: FRAME.to_arrow(),
    "pandas": lambda _: FRAME.with_columns(big=pl.col("big").cast(str)).to_pandas(),
    "csv": files,
    "packed csv": packed,
    "parquet": parquet,
    "pattern of parquet": lambda folder: str(parquet_folder(folder) / "*.parquet"),
    "pattern of csv": pattern,
    "folder of parquet": parquet_folder,
    "duckdb table": lambda folder: f"duckdb://{duckdb_file(folder)}::people",
    "duckdb view": lambda folder: f"duckdb://{duckdb_file(folder)}::other.seen",
    "sqlite table": lambda folder: f"sqlite://{sqlite_file(folder)}::people",
    "sqlite view": lambda folder: f"sqlite://{sqlite_file(folder)}::seen",
    "relation": relation,
    "ibis on duckdb": ibis_duckdb,
    "ibis on sqlite": ibis_sqlite,
    "ibis on polars": ibis_polars,
}


def brute(context: Context) -> dict[tuple[int, int], int]:
    """Counts of FRAME by hand: a dictionary, and no code of the package."""
    codes = []
    for place, n, share, _ in FRAME.iter_rows():
        where = 2 if place is None else ("north", "south").index(place)
        codes.append([where, int(n >= 10), 2 if share is None else int(share >= 0.5)])
    out: dict[tuple[int, int], int] = {}
    for row in codes:
        cell = (
            radix(row, context.parents, context.parent_sizes),
            radix(row, context.targets, context.target_sizes),
        )
        out[cell] = out.get(cell, 0) + 1
    return out


def assert_counted(source: Any, scratch: Path) -> None:
    """A source has the counts and the name of FRAME: in memory, and from the disk."""
    mark = LocalEngine().scan(FRAME, SCHEMA, key=KEY)
    for held in (1 << 20, 0):
        engine = LocalEngine(threads=2, scratch=scratch, held=held, slab=1)

        assert engine.scan(source, SCHEMA, key=KEY) == mark
        assert [as_dict(c) for c in engine.tally(CONTEXTS)] == [brute(c) for c in CONTEXTS]
        engine.close()


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis 12 on DuckDB 2
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_has_the_same_name_and_counts(name: str, tmp_path: Path) -> None:
    assert_counted(SOURCES[name](tmp_path), tmp_path)


@pytest.mark.parametrize("place", ["duckdb", "sqlite"])
def test_b8_a_view_that_reaches_outside_is_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(MARKER)
    if place == "duckdb":
        view = f"CREATE VIEW v AS SELECT content AS place FROM read_text('{tmp_path}/secret.txt')"
        path = duckdb_file(tmp_path, view)
    else:
        view = "CREATE VIEW v AS SELECT file AS place FROM pragma_database_list"
        path = sqlite_file(tmp_path, view)

    with refused(3, "OUTSIDE"):
        LocalEngine(threads=1).scan(f"{place}://{path}::v", SCHEMA, key=KEY)


def test_b9_a_name_of_a_table_is_no_path_and_no_sql(tmp_path: Path) -> None:
    places = (("duckdb", duckdb_file(tmp_path)), ("sqlite", sqlite_file(tmp_path)))

    for table in ("/etc/hostname", "nothing", "a.b.c", "people; drop table people"):
        for kind, path in places:
            with refused(3, "NOTABLE"):
                LocalEngine(threads=1).scan(f"{kind}://{path}::{table}", SCHEMA, key=KEY)


def test_a25_names_of_any_letters_are_quoted(tmp_path: Path) -> None:
    odd = 'a"; drop table t; --'
    schema = Schema((Column(odd, "nominal", levels=(1, 2)),))
    path = tmp_path / "odd.db"
    with duckdb.connect(str(path)) as held:
        held.register("frame", pl.DataFrame({odd: [1, 2, 2]}).to_arrow())
        held.execute('CREATE TABLE "t""x" AS SELECT * FROM frame')
    engine = LocalEngine(threads=1)

    engine.scan(f'duckdb://{path}::t"x', schema, key=KEY)

    assert engine.tally([context_of(schema, (0,))])[0].cells.values.tolist() == [[1, 2]]
    engine.close()


def test_b10_a_database_that_another_process_writes_to_is_refused(tmp_path: Path) -> None:
    path = duckdb_file(tmp_path)
    code = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()

        with refused(11, "LOCKED"):
            LocalEngine(threads=1).scan(f"duckdb://{path}::people", SCHEMA, key=KEY)
        child.communicate(b"\n")


@pytest.mark.parametrize("place", ["duckdb", "sqlite"])
def test_files_that_are_no_database_are_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(MARKER.encode() * 1000)
    (tmp_path / "small.db").write_text("a\n1\n")

    for name in ("junk.db", "small.db"):
        with refused(3, "DATABASE"):
            LocalEngine(threads=1).scan(f"{place}://{tmp_path}/{name}::t", SCHEMA, key=KEY)
    with refused(3, "NOTAFILE"):
        LocalEngine(threads=1).scan(f"{place}://{tmp_path}/no.db::t", SCHEMA, key=KEY)


def test_a_failure_on_the_way_says_nothing_of_the_values(tmp_path: Path) -> None:
    view = (
        "CREATE VIEW bad AS SELECT CAST(n || '%s' AS INTEGER) AS n, place, share, big FROM people"
    )
    path = duckdb_file(tmp_path, view % MARKER)
    with duckdb.connect() as held, refused(11, "SOURCE"):
        made = held.sql(
            f"SELECT error('{MARKER}') AS place, 1 AS n, 0.5::DOUBLE AS share, 1 AS big"
        )
        LocalEngine(threads=1).scan(made, SCHEMA, key=KEY)

    with refused(11, "SOURCE"):
        LocalEngine(threads=1, scratch=tmp_path).scan(f"duckdb://{path}::bad", SCHEMA, key=KEY)
    assert not list(tmp_path.glob("gibbous-*/run-*"))


def test_a_view_that_sorts_spills_nothing_beside_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = "CREATE VIEW sorted AS SELECT hash(range) AS h FROM range(4000000) ORDER BY h"
    path = duckdb_file(tmp_path, view)
    (tmp_path / "s").mkdir()
    monkeypatch.setattr("gibbous.core.machine.default_limit", lambda: 20 << 20)
    schema = Schema((Column("h", "nominal", levels=(1,)),))

    with refused(10, "MEMORY"):
        LocalEngine(threads=1, memory_limit=1 << 28, scratch=tmp_path / "s").scan(
            f"duckdb://{path}::sorted", schema, key=KEY
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.db", "s"]


def test_a_backend_that_is_lost_is_an_engine_failure() -> None:
    class Lost:
        """An ibis table whose server went away."""

        def count(self) -> Any:
            raise ConnectionError(f"server closed the connection while sending {MARKER}")

    with refused(11, "SOURCE"):
        IbisTable(Lost()).count()


def test_a16_numbers_that_a_backend_may_have_rounded_are_refused() -> None:
    table = ibis.polars.connect({"t": pl.DataFrame({"x": [1 << 53, None]})}).table("t")
    schema = Schema((Column("x", "nominal", levels=(1,), missing=True),))

    with refused(3, "INEXACT"):
        LocalEngine(threads=1).scan(table, schema, key=KEY)


def test_midnights_are_days_as_in_a_frame() -> None:
    stamps = [datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 2), None]
    first = float(DAY.toordinal())
    schema = Schema((Column("d", "date", edges=(first, first + 1, first + 9), missing=True),))
    frame = pl.DataFrame({"d": stamps})
    truth, engine = LocalEngine(), LocalEngine(threads=1)

    found = engine.scan(duckdb.from_arrow(frame.to_arrow()), schema, key=KEY)

    assert found == truth.scan(frame, schema, key=KEY)
    assert digest(engine, [context_of(schema, (0,))]) == digest(truth, [context_of(schema, (0,))])
    engine.close()


def test_times_of_day_are_hashed_over_all_rows_as_in_a_frame() -> None:
    stamps = [datetime.datetime(2024, 5, 1)] * 200_000 + [datetime.datetime(2024, 5, 1, 12)]
    frame = pl.DataFrame({"x": [1] * len(stamps), "t": stamps})
    schema = Schema((Column("x", "nominal", levels=(1,)),), ignore=("t",))
    engine, truth = LocalEngine(threads=1), LocalEngine()

    found = engine.scan(duckdb.from_arrow(frame.to_arrow()), schema, key=KEY)

    assert found == truth.scan(frame, schema, key=KEY)
    engine.close()


@pytest.mark.parametrize(
    "value", ["'infinity'::TIMESTAMP", "'-infinity'::DATE", "'12024-01-01'::DATE"]
)
def test_days_that_are_infinite_are_refused(value: str) -> None:
    schema = Schema((Column("x", "nominal", levels=(1,)),))

    with duckdb.connect() as held, refused(4, "NOTADAY"):
        LocalEngine(threads=1).scan(held.sql(f"SELECT {value} AS x"), schema, key=KEY)


def test_b4_a_nested_or_binary_column_is_refused() -> None:
    schema = Schema((Column("x", "nominal", levels=(1,)),))

    for value in ("[1]", "'a'::BLOB", "TIME '10:00'", "INTERVAL 1 DAY"):
        with duckdb.connect() as held, refused(4, "TYPE"):
            LocalEngine(threads=1).scan(held.sql(f"SELECT {value} AS x"), schema, key=KEY)
        with duckdb.connect() as held, refused(4, "TYPE"):
            read_columns(held.sql(f"SELECT {value} AS x"), schema=schema)


def test_b4_a_column_that_is_refused_is_named_where_a_table_is_read_whole(tmp_path: Path) -> None:
    path = duckdb_file(tmp_path, "CREATE TABLE odd AS SELECT [1] AS x")
    schema = Schema((Column("x", "nominal", levels=(1,)),))

    with refused(4, "TYPE"):
        read_columns(f"duckdb://{path}::odd", schema=schema)


@pytest.mark.parametrize(
    "values", ["('a'), (1.5)", "(x'00'), (1)", "(1.5), (9007199254740993)"], ids=repr
)
def test_cells_of_several_types_in_a_sqlite_column_are_refused(values: str, tmp_path: Path) -> None:
    held = sqlite3.connect(tmp_path / "a.db")
    held.execute("CREATE TABLE t (x)")
    held.execute(f"INSERT INTO t VALUES {values}")
    held.commit()
    held.close()
    schema = Schema((Column("x", "nominal", levels=("a", "b")),))

    with refused(4, "TYPE"):
        LocalEngine(threads=1).scan(f"sqlite://{tmp_path}/a.db::t", schema, key=KEY)


def test_text_and_whole_numbers_of_a_sqlite_column_are_read_as_text(tmp_path: Path) -> None:
    held = sqlite3.connect(tmp_path / "a.db")
    held.execute("CREATE TABLE t (x)")
    held.execute("INSERT INTO t VALUES ('a'), (7), (NULL)")
    held.commit()
    held.close()
    schema = Schema((Column("x", "nominal", levels=("a", "7"), missing=True),))
    engine, truth = LocalEngine(threads=1), LocalEngine()

    found = engine.scan(f"sqlite://{tmp_path}/a.db::t", schema, key=KEY)

    assert found == truth.scan(pl.DataFrame({"x": ["a", "7", None]}), schema, key=KEY)
    engine.close()


def test_persons_of_a_database_are_bounded(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "p.db")) as held:
        held.execute("CREATE TABLE t AS SELECT range // 10 AS who, 'a' AS x FROM range(1000)")
    schema = Schema((Column("x", "nominal", levels=("a", "b")),), Unit("person", "who", 2))
    engine = LocalEngine(threads=1)

    engine.scan(f"duckdb://{tmp_path}/p.db::t", schema, key=KEY)

    assert engine.tally([context_of(schema, (0,))])[0].cells.values.tolist() == [[200, 0]]
    engine.close()


def test_files_of_a_pattern_are_checked_one_by_one(tmp_path: Path) -> None:
    given = pattern(tmp_path)
    (tmp_path / "p3.csv").write_text("place,n,share,big\nnorth,1\n")

    with refused(3, "RAGGED") as caught:
        LocalEngine(threads=1).scan(given, SCHEMA, key=KEY)
    assert "p3.csv" in caught.text
    with refused(3, "FILES"):
        LocalEngine(threads=1).scan(str(tmp_path / "q*.csv"), SCHEMA, key=KEY)
    (tmp_path / "p3.csv").write_text("place,n,share\nnorth,1,0.5\n")
    with refused(4, "FILES"):
        LocalEngine(threads=1).scan(given, SCHEMA, key=KEY)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("oracle://x::t", "ADDRESS"),
        ("duckdb://::t", "ADDRESS"),
        ("duckdb:///a.db::", "ADDRESS"),
        ("postgres://u:Zaphod-SECRET-7@h/db::t", "PASSWORD"),
        ("postgresql://h/db?user=u&password=Zaphod-SECRET-7::t", "PASSWORD"),
    ],
)
def test_addresses_that_say_too_little_or_too_much_are_refused(text: str, name: str) -> None:
    with refused(2, name):
        address_of(text)


@pytest.mark.parametrize("read", [read_columns, is_one_file, name_of])
def test_an_address_without_a_table_is_quoted_as_it_was_typed(read: Any) -> None:
    with refused(2, "ADDRESS") as caught:
        read("duckdb:///srv/a.db")
    assert "'duckdb:///srv/a.db' names no table" in caught.text
    assert "::" in caught.text

    with refused(2, "ADDRESS"):  # a password is not quoted
        read("postgres://u:Zaphod-SECRET-7@h/db")


@pytest.mark.parametrize(
    ("text", "place", "table"),
    [
        ("duckdb:///a/b.db::t", "/a/b.db", "t"),
        ("sqlite://b.db::main.t", "b.db", "main.t"),
        (
            "postgres://u@h:5433/db?sslmode=require::s.t",
            "postgresql://u@h:5433/db?sslmode=require",
            "s.t",
        ),
    ],
)
def test_addresses_are_read(text: str, place: str, table: str) -> None:
    found = address_of(text)

    assert found is not None
    assert (found.place, found.table) == (place, table)
    assert address_of("data.csv") is None


def test_a_server_that_is_not_there_or_has_no_driver_is_an_engine_failure() -> None:
    with refused(11) as caught:
        LocalEngine(threads=1).scan("postgres://u@127.0.0.1:1/db::t", SCHEMA, key=KEY)
    assert caught.errors[0].name in ("EXTRA", "CONNECTION")


def test_rows_that_are_left_unread_do_not_block_the_connection(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.db")) as held:
        held.execute("CREATE TABLE t AS SELECT 'a' AS x FROM range(1000000)")
    schema = Schema((Column("x", "nominal", levels=("a",)),))

    with table_slices(f"duckdb://{tmp_path}/a.db::t", schema=schema, options=READ) as (rows, parts):
        first = next(parts)
        second = next(parts)

    assert (rows, first.height) == (1_000_000, 0)
    assert second.height > 0
    duckdb.connect(str(tmp_path / "a.db")).close()  # nobody holds it any more


@pytest.mark.slow
def test_i5_an_interrupt_stops_a_query_at_once(tmp_path: Path) -> None:
    slow = "CREATE VIEW slow AS SELECT max(a.range * b.range %% 7) AS x FROM range({0}) a, range({0}) b"
    path = duckdb_file(tmp_path, slow.replace("%%", "%").format(10_000_000))  # it takes days
    code = (
        "import os, signal, sys, threading\n"
        "from gibbous.core.schema import Column, Schema\n"
        "from gibbous.disintegrate.records import LocalEngine\n"
        "schema = Schema((Column('x', 'nominal', levels=(1,)),))\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    LocalEngine().scan(sys.argv[1], schema, key=bytes(32))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, f"duckdb://{path}::slow"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.stdout.split(), done.returncode) == (["interrupted"], 0), done.stderr


@pytest.mark.parametrize(("scheme", "made"), [("duckdb", duckdb_file), ("sqlite", sqlite_file)])
def test_a_draft_of_a_table_is_that_of_a_file_of_its_rows(
    scheme: str, made: Callable[..., Path], tmp_path: Path
) -> None:
    from gibbous.read.infer import propose

    FRAME.write_parquet(tmp_path / "people.parquet")
    path = made(tmp_path)

    draft = propose(f"{scheme}://{path}::people")

    assert draft == propose(tmp_path / "people.parquet")
    assert draft.schema.name == "people"
    assert set(draft.schema.names) | set(draft.schema.ignore) == set(FRAME.columns)


def test_a_draft_leaves_out_columns_of_a_table_that_are_not_read(tmp_path: Path) -> None:
    from gibbous.read.infer import propose

    path = duckdb_file(tmp_path, "ALTER TABLE people ADD COLUMN many INTEGER[]")

    draft = propose(f"duckdb://{path}::people")

    assert "many" in draft.schema.ignore
    assert "many" not in draft.schema.names


def test_a_table_that_is_read_whole_keeps_to_the_limit_of_a_file(tmp_path: Path) -> None:
    from gibbous.read.infer import propose

    address = f"duckdb://{duckdb_file(tmp_path)}::people"

    with refused(10, "TOOLARGE"):
        propose(address, options=ReadOptions(max_bytes=500))


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis 12 on DuckDB 2
@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "pandas"])
def test_what_is_compared_is_the_same_rows_wherever_they_lie(kind: str, tmp_path: Path) -> None:
    from gibbous.evaluation.tables import plain, side

    found = side(SOURCES[kind](tmp_path), plain(SCHEMA))

    usual = side(FRAME, plain(SCHEMA))
    assert sorted(map(tuple, found.codes.values)) == sorted(map(tuple, usual.codes.values))
    assert found.frame.sort(pl.all()).equals(usual.frame.sort(pl.all()))


@pytest.mark.parametrize("kind", ["pattern of csv", "sqlite table", "duckdb table"])
def test_a_source_that_takes_more_than_it_may_is_not_read_whole(kind: str, tmp_path: Path) -> None:
    from gibbous.read.source import read_columns

    source = SOURCES[kind](tmp_path)

    assert read_columns(source, options=ReadOptions()).height == FRAME.height
    with pytest.raises(ResourceLimit):
        read_columns(source, schema=SCHEMA, options=ReadOptions(max_bytes=200))


def test_a_pattern_of_text_files_is_drafted_as_the_one_file_is(tmp_path: Path) -> None:
    from gibbous.read.infer import infer_schema

    one, many = infer_schema(files(tmp_path)), infer_schema(pattern(tmp_path))

    assert many == replace(one, name=tmp_path.name)


def test_a_memtable_is_read_as_any_table_of_its_connection() -> None:
    table = ibis.memtable(pl.DataFrame({"x": [1, 1, 2]}))
    schema = Schema((Column("x", "nominal", levels=(1, 2)),))
    engine = LocalEngine(threads=1)

    engine.scan(table, schema, key=KEY)

    assert digest(engine, [context_of(schema, (0,))]) is not None
    engine.close()
