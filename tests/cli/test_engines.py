"""Engines on the command line: their names, their settings, what they will need, and their sources."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gibbous.cli.config import resolve, spark_conf
from gibbous.core.errors import UsageError
from gibbous.read.schema_write import schema_toml
from tests.cli.conftest import Cli
from tests.pipeline.test_pipeline import SCHEMA, table

NOISY = ("--method", "noisy_pegs", "--epsilon", "1", "--delta", "1e-6", "--seed", "3")


@pytest.fixture
def folder(home: Path) -> Path:
    """The working directory, with a schema and data in two files."""
    work = Path.cwd()
    (work / "schema.toml").write_text(schema_toml(SCHEMA))
    (work / "data").mkdir()
    table(400).head(150).write_parquet(work / "data" / "a.parquet")
    table(400).tail(250).write_parquet(work / "data" / "b.parquet")
    return work


@pytest.mark.parametrize(
    "text", ["catalog.db.claims", "db.claims", "duckdb:///x.db::t", "postgres://u@h/d::t"]
)
def test_a_table_is_kept_as_it_is_named(text: str, tmp_path: Path) -> None:
    config = tmp_path / "release.toml"
    config.write_text(f'data = "{text}"\nschema = "schema.toml"\n[engine]\nname = "spark"\n')

    for request in (resolve(config, [], {}), resolve(None, [], {"data": text, "schema": "s"})):
        assert request["data"] == text


@pytest.mark.parametrize("text", ["a.b.csv", "x/claims.db", "a.parquet", "parts/*.parquet"])
def test_a_path_in_a_file_is_relative_to_the_file(text: str, tmp_path: Path) -> None:
    config = tmp_path / "release.toml"
    config.write_text(f'data = "{text}"\nschema = "schema.toml"\n')

    assert resolve(config, [], {})["data"] == tmp_path / text


def test_the_engine_of_a_file_gives_way_to_flags(tmp_path: Path) -> None:
    config = tmp_path / "release.toml"
    config.write_text(
        'data = "x.csv"\nschema = "s.toml"\n[engine]\nname = "spark"\npartitions = 8\n'
        '[engine.conf]\n"spark.executor.memory" = "4g"\n'
    )

    found = resolve(config, [], {"engine.partitions": 32, "engine.master": "local[2]"})

    assert found["engine.name"] == "spark"
    assert (found["engine.partitions"], found["engine.master"]) == (32, "local[2]")
    assert found["engine.conf"] == {"spark.executor.memory": "4g"}


def test_a_setting_of_spark_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        spark_conf(["spark.executor.memory"])


@pytest.mark.parametrize("engine", ["local", "duckdb", "numpy", "spark"])
def test_a_plan_says_what_an_engine_will_need(engine: str, folder: Path, cli: Cli) -> None:
    done = cli(
        "plan", "--schema", "schema.toml", *NOISY[:-2], "--engine", engine,
        "--input-rows", 10**9, "--json",
    )  # fmt: skip

    found = json.loads(done.out)["engine"]
    assert done.code == 0
    assert found["engine"] == engine
    assert found["source_passes"] == 1
    assert found["codes"] >= 10**9 * len(SCHEMA)


def test_a_plan_for_an_engine_asks_for_the_number_of_rows(folder: Path, cli: Cli) -> None:
    done = cli("plan", "--schema", "schema.toml", *NOISY[:-2], "--engine", "spark")

    assert done.code == 2
    assert "--input-rows" in done.err


@pytest.mark.slow
def test_a_folder_of_files_gives_the_same_release_on_every_engine(folder: Path, cli: Cli) -> None:
    ask = ("--schema", "schema.toml", *NOISY, "--rows", "50")

    codes = [
        cli(
            "synthesize", "data", *ask, "--engine", engine, "--out", f"out-{engine}", "--quiet"
        ).code
        for engine in ("local", "numpy", "duckdb")
    ]

    assert codes == [0, 0, 0]
    ledger = json.loads(cli("ledger", "show", "--json").out)
    assert len(ledger["datasets"]) == 1  # one set of records, whatever counted it
    shapes = {pl.read_parquet(f"out-{e}/synthetic_1.parquet").shape for e in ("local", "duckdb")}
    assert shapes == {(50, len(SCHEMA))}


def test_an_engine_that_does_not_exist_is_named_with_those_that_do(folder: Path, cli: Cli) -> None:
    done = cli("synthesize", "data", "--schema", "schema.toml", *NOISY, "--engine", "x", "-o", "r")

    assert done.code == 2
    assert "'duckdb', 'spark'" in done.err


def test_settings_of_a_cluster_are_refused_elsewhere(folder: Path, cli: Cli) -> None:
    done = cli(
        "synthesize", "data", "--schema", "schema.toml", *NOISY, "--partitions", 3, "-o", "r"
    )

    assert done.code == 2
    assert "GB2-ENGINESETTING" in done.err
