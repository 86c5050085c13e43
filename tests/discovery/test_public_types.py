"""Types and dictionaries count as stated where somebody says that they are public, and never otherwise."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import gibbous as gb
from gibbous.read.schema_file import load_schema
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures

ROWS = 1200
FRAME = pl.DataFrame(
    {
        "cost": [1.5 + i % 40 for i in range(ROWS)],
        "seen": [datetime.date(2019, 1, 1) + datetime.timedelta(days=i % 300) for i in range(ROWS)],
        "ward": pl.Series(["a", "b"] * (ROWS // 2), dtype=pl.Enum(["a", "b", "rare"])),
        "dead": [i % 3 == 0 for i in range(ROWS)],
        "code": [i % 50 for i in range(ROWS)],
        "text": [f"t{i % 4}" for i in range(ROWS)],
    }
)
STATED = {"cost": ("numeric",), "seen": ("date",)}


def test_types_state_nothing_unless_they_are_said_to_be_public() -> None:
    known = gb.Discovery.of(FRAME, gb.Unit())

    assert (known.names, known.numeric, known.date, known.levels) == (
        tuple(FRAME.columns), (), (), ()
    )  # fmt: skip


@pytest.mark.parametrize("source", ["parquet", "polars", "pandas"])
def test_public_types_state_floats_days_and_dictionaries(source: str, tmp_path: Path) -> None:
    data: object = FRAME
    if source == "parquet":
        FRAME.write_parquet(tmp_path / "data.parquet")
        data = tmp_path / "data.parquet"
    if source == "pandas":
        data = FRAME.drop("seen").to_pandas()

    known = gb.Discovery.of(data, gb.Unit(), types_are_public=True)

    assert known.numeric == ("cost",)
    assert known.date == (() if source == "pandas" else ("seen",))
    assert dict(known.levels) == {"ward": ("a", "b", "rare"), "dead": ("false", "true")}


def test_categories_of_pandas_are_levels_and_other_objects_are_not() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x"], ["y", "x"]), "b": pd.Categorical([1], [1, 2])})

    known = gb.Discovery.of(frame, gb.Unit(), types_are_public=True)

    assert dict(known.levels) == {"a": ("y", "x")}


def test_what_is_stated_comes_before_types() -> None:
    known = gb.Discovery.of(
        FRAME, gb.Unit(), types_are_public=True, levels={"cost": ("low", "high")}, numeric="dead"
    )

    assert (known.numeric, dict(known.levels)["cost"]) == (("dead",), ("low", "high"))


def test_a_csv_has_no_types(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "data.csv")

    known = gb.Discovery.of(tmp_path / "data.csv", gb.Unit(), types_are_public=True)

    assert known == gb.Discovery(tuple(FRAME.columns), gb.Unit(), types_are_public=True)


@pytest.mark.parametrize("public", [True, False])
def test_the_flag_makes_kinds_and_levels_of_a_parquet_file_declared(
    cli: Cli,  # noqa: F811
    public: bool,
) -> None:
    FRAME.write_parquet("data.parquet")
    flags = ["--types-are-public"] if public else []

    done = cli(
        "schema", "discover", "data.parquet", "--unit", "row", "--header-is-public", *flags,
        "--epsilon", "20", "--delta", "1e-6", "-o", "s.toml",
    )  # fmt: skip

    assert done.code == 0, done.err
    schema = load_schema(Path("s.toml"))
    source = "declared" if public else "discovered"
    assert [schema[name].source("kind") for name in ("cost", "seen", "ward", "dead")] == [
        source
    ] * 4
    assert schema["ward"].levels == (("a", "b", "rare") if public else schema["ward"].levels)
    assert ("rare" in schema["ward"].levels) == public
    assert {schema[name].source("kind") for name in ("code", "text")} == {"discovered"}


@pytest.mark.slow
def test_levels_of_a_public_type_are_complete_and_come_back_as_that_type() -> None:
    known = gb.Discovery.of(
        FRAME, gb.Unit(), types_are_public=True, levels={"text": ("t0", "t1", "t2", "t3")}
    )

    release = gb.synthesize(
        FRAME, known, gb.AdaptiveGibbs(epsilon=20, delta=1e-6), ledger=gb.Ledger.ephemeral()
    )

    others = {name: release.schema[name].other for name in ("ward", "dead", "text")}
    assert others == {"ward": None, "dead": None, "text": "other"}
    types = release.sets[0].schema
    assert (types["dead"], types["ward"]) == (pl.Boolean, FRAME.schema["ward"])


def test_missing_cells_of_a_public_type_are_bought_as_others_are() -> None:
    frame = FRAME.with_columns(dead=pl.when(pl.col("code") > 9).then("dead"))
    known = gb.Discovery.of(frame, gb.Unit(), types_are_public=True)

    schema = gb.Schema.discover(frame, known, epsilon=20, delta=1e-6, ledger=gb.Ledger.ephemeral())

    assert schema["dead"].missing
    assert not schema["ward"].missing
    assert schema["dead"].source("missing") == "discovered"


def test_a_column_without_levels_is_not_complete() -> None:
    with pytest.raises(gb.GibbousError, match="a complete one has levels"):
        gb.Discovery(("a",), gb.Unit(), complete=("a",))


def test_types_are_refused_where_nothing_is_read(cli: Cli) -> None:  # noqa: F811
    Path("names.txt").write_text("a\nb\n")

    done = cli(
        "plan", "--unit", "row", "--names", "names.txt", "--types-are-public",
        "--epsilon", "1", "--delta", "1e-9",
    )  # fmt: skip

    assert done.code == 2
    assert "-TYPES]" in done.err


def test_a_schema_discovers_itself(tmp_path: Path) -> None:
    ledger = gb.Ledger.open(tmp_path / "l.db")

    schema = gb.Schema.discover(
        FRAME, gb.Discovery.of(FRAME, gb.Unit()), epsilon=20, delta=1e-6, ledger=ledger
    )

    assert schema["text"].source("levels") == "discovered"
    assert len(list(ledger.entries())) >= 1
