"""The same schema is bought from the same rows wherever they lie: files, frames, tables of databases."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pytest

from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema, Unit
from tests.discovery.conftest import bought_from, visits

FRAME = visits(1500)
KNOWN = Discovery(tuple(FRAME.columns), Unit("person", "patient", 2))


def csv(folder: Path) -> Any:
    FRAME.write_csv(folder / "visits.csv")
    return folder / "visits.csv"


def packed(folder: Path) -> Any:
    with gzip.open(folder / "visits.csv.gz", "wb") as file:
        FRAME.write_csv(file)  # type: ignore[call-overload]
    return folder / "visits.csv.gz"


def parquet(folder: Path) -> Any:
    FRAME.write_parquet(folder / "visits.parquet")
    return folder / "visits.parquet"


def duckdb_address(folder: Path) -> Any:
    with duckdb.connect(str(folder / "v.db")) as held:
        held.register("frame", FRAME.to_arrow())
        held.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return f"duckdb:///{folder / 'v.db'}::visits"


def sqlite_address(folder: Path) -> Any:
    names = ", ".join(f"{name} TEXT" for name in FRAME.columns)
    with sqlite3.connect(folder / "v.sqlite") as held:
        held.execute(f"CREATE TABLE visits ({names})")
        marks = ", ".join("?" * FRAME.width)
        held.executemany(f"INSERT INTO visits VALUES ({marks})", FRAME.rows())
    held.close()
    return f"sqlite:///{folder / 'v.sqlite'}::visits"


def ibis_table(folder: Path) -> Any:
    duckdb_address(folder)
    return ibis.duckdb.connect(folder / "v.db").table("visits")


def facts(schema: Schema) -> list[Any]:
    """What is bought, but for cut points, which follow the noise."""
    return [
        (c.name, c.kind, sorted(map(str, c.levels)), c.decimals, c.date_format, c.missing)
        + ((c.edges[0], c.edges[-1]) if c.binned else ())
        for c in schema
    ] + [schema.ignore]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    return bought_from(csv(tmp_path_factory.mktemp("csv")), KNOWN, rho=1e6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis 12 on DuckDB 2
@pytest.mark.parametrize("place", [packed, parquet, duckdb_address, sqlite_address, ibis_table])
def test_a_schema_is_the_same_wherever_the_rows_lie(
    place: Callable[[Path], Any], expected: Schema, tmp_path: Path
) -> None:
    assert facts(bought_from(place(tmp_path), KNOWN, rho=1e6)) == facts(expected)


def test_other_rows_give_another_schema(expected: Schema) -> None:
    """So that the comparison above can fail."""
    other = FRAME.with_columns(pl.col("sex").replace("F", "X"))

    assert facts(bought_from(other, KNOWN, rho=1e6)) != facts(expected)
