"""Models in files: the numbers come back exactly, the digest covers them, foreign ones are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import ModelRejected
from gibbous.core.tables import Goal, LogLinear, Merged, Recipe, Tables
from gibbous.privacy.ledger import Ledger
from gibbous.sampling.sample import sample
from gibbous.write.load import load
from gibbous.write.release_digest import digest_of
from gibbous.write.table_files import listed_files, read_tables, write_tables
from gibbous.write.verify import verify
from tests.loglinear import made
from tests.write import made as packages

SCHEMA = made.schema((5, 3, 4))
GROUPS = Merged(np.array([0, 1, 1, 0, 2]), np.array([0.25, 0.1, 0.9, 0.75, 1.0]))
PLAIN = made.model((3, 3, 4), ((0, 1), (1, 2), (2,)), 5, blocks=((1, 2),), closed=300)
MODEL = replace(
    PLAIN,
    goals=(*made.goals(made.law(PLAIN), (0,), (1, 2)), Goal((1,), np.full(3, 1 / 3), 0.25)),
    gap=0.0125,
    merged=(GROUPS, None, None),
)
TABLES = made.tables(SCHEMA, MODEL, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables on disk."""
    write_tables(TABLES, tmp_path / "t")
    return tmp_path / "t"


def test_a_loaded_model_is_the_same_and_draws_the_same_rows(folder: Path) -> None:
    loaded = read_tables(folder, SCHEMA)

    assert loaded.model is not None
    assert loaded.model.gap == 0.0125
    assert digest_of(loaded) == digest_of(TABLES)
    for mine, theirs in zip(MODEL.theta, loaded.model.theta, strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(sample(loaded, 900, seed=8).values, sample(TABLES, 900, seed=8).values)
    assert set(listed_files(folder)) | {"tables.json"} == {p.name for p in folder.iterdir()}


def test_a_model_without_goals_and_merged_columns_comes_back(tmp_path: Path) -> None:
    bare = made.tables(made.schema((3, 3, 4)), replace(PLAIN, blocks=()))
    write_tables(bare, tmp_path / "t")

    assert digest_of(read_tables(tmp_path / "t", bare.schema)) == digest_of(bare)


def _reversed(goal: Goal) -> Goal:
    return replace(goal, shares=goal.shares[::-1])


@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, theta=(m.theta[0] + 1e-12, *m.theta[1:])),
        lambda m: replace(m, goals=(_reversed(m.goals[0]), *m.goals[1:])),
        lambda m: replace(m, goals=(replace(m.goals[0], weight=2.0), *m.goals[1:])),
        lambda m: replace(m, goals=m.goals[::-1]),
        lambda m: replace(m, cliques=m.cliques[::-1], theta=m.theta[::-1]),
        lambda m: replace(m, merged=(replace(GROUPS, shares=GROUPS.shares[::-1]), None, None)),
        lambda m: replace(m, merged=(replace(GROUPS, groups=GROUPS.groups[::-1]), None, None)),
        lambda m: replace(m, blocks=()),
        lambda m: replace(m, closed=301),
    ],
    ids=["theta", "goal", "weight", "order", "cliques", "shares", "groups", "blocks", "closed"],
)
def test_the_digest_covers(change: Callable[[LogLinear], LogLinear]) -> None:
    assert digest_of(replace(TABLES, model=change(MODEL))) != digest_of(TABLES)


def test_the_digest_of_tables_without_a_model_is_what_it_was() -> None:
    bare = Tables(SCHEMA, (), Recipe("ancestral", ()))

    assert (
        digest_of(bare) == "bbf2b739a147452242c5568df896a768fcc3b9cf6d94aaa5b6b8a71db824dc4a"
    )  # by hand


def _edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "tables.json"
    document = json.loads(path.read_text())
    change(document["model"])
    path.write_text(json.dumps(document))


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda model: model.__setitem__(name, value)


@pytest.mark.parametrize(
    "change",
    [
        _set("sizes", [3, 3]),
        _set("sizes", [3, 3, 5]),
        _set("sizes", [3, 2, 4]),
        _set("sizes", [3, 3, True]),
        _set("sizes", [3, 3, 10**30]),
        _set("cliques", [[0, 1], [1, 2], [1, 2]]),
        _set("cliques", [[1, 0], [1, 2], [2]]),
        _set("cliques", [[0, 3], [1, 2], [2]]),
        _set("cliques", [[-1, 1], [1, 2], [2]]),
        _set("cliques", [[0, 1], [1, 2], []]),
        _set("cliques", [[0, 1], [1, 2]]),
        _set("cliques", "ab"),
        _set("goals", []),
        lambda m: m["goals"][0].__setitem__("weight", -1.0),
        lambda m: m["goals"][0].__setitem__("weight", "1"),
        lambda m: m["goals"][0].__setitem__("columns", [2]),
        _set("merged", []),
        _set("merged", [0, 0]),
        _set("merged", [7]),
        _set("blocks", [[0, 1, 2]]),
        _set("blocks", [[1, 1]]),
        _set("closed", 0),
        _set("closed", 1 << 40),
        _set("closed", 3.5),
        lambda m: m.pop("closed"),
        _set("gap", 1.5),
        _set("gap", "near"),
    ],
)
def test_refuses_a_document_that_does_not_fit(
    folder: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    _edit(folder, change)

    with pytest.raises(ModelRejected):
        read_tables(folder, SCHEMA)


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("model_theta.parquet", pl.DataFrame({"theta": [0.0] * 24})),
        ("model_theta.parquet", pl.DataFrame({"theta": [0] * 25})),
        ("model_theta.parquet", pl.DataFrame({"theta": [0.0] * 24 + [math.nan]})),
        ("model_theta.parquet", pl.DataFrame({"theta": [0.0] * 24 + [math.inf]})),
        ("model_theta.parquet", pl.DataFrame({"theta": [0.0] * 24 + [None]})),
        ("model_theta.parquet", pl.DataFrame({"other": [0.0] * 25})),
        ("model_goals.parquet", pl.DataFrame({"share": [-0.5] + [0.1] * 17})),
        ("model_goals.parquet", pl.DataFrame({"share": [9.0] * 18})),
        ("model_merged.parquet", pl.DataFrame({"group": [0, 1, 1, 0, 3], "share": [1.0] * 5})),
        ("model_merged.parquet", pl.DataFrame({"group": [0, 1, 1, 0, 2], "share": [1.0] * 5})),
        ("model_merged.parquet", pl.DataFrame({"group": [0, 1, 1, 0, -1], "share": [1.0] * 5})),
    ],
    ids=["short", "whole numbers", "nan", "infinite", "null", "other name", "negative goal",
         "goal not of sum 1", "group too high", "shares not of sum 1", "negative group"],
)  # fmt: skip
def test_refuses_numbers_that_do_not_fit(folder: Path, name: str, frame: pl.DataFrame) -> None:
    frame.write_parquet(folder / name)

    with pytest.raises(ModelRejected):
        read_tables(folder, SCHEMA)


def test_refuses_a_recipe_without_its_model(folder: Path) -> None:
    path = folder / "tables.json"
    document = json.loads(path.read_text())
    del document["model"]
    path.write_text(json.dumps(document))

    with pytest.raises(ModelRejected):
        read_tables(folder, SCHEMA)


def test_refuses_merged_levels_that_a_structural_zero_tells_apart(folder: Path) -> None:
    ruled = made.schema((5, 3, 4), {0: (1,), 1: (1,)})

    with pytest.raises(ModelRejected, match="structural zero"):
        read_tables(folder, ruled)


def test_a_table_of_a_merged_column_has_its_groups(tmp_path: Path) -> None:
    from gibbous.core.context import Context
    from gibbous.core.tables import Dense, NoiseInfo, Table

    context = Context((1,), (0,), (3,), (3,))
    table = Table(context, Dense(np.arange(9).reshape(3, 3)), NoiseInfo("gaussian", 2.0))
    tables = replace(TABLES, extra=(table,))
    write_tables(tables, tmp_path / "t")

    assert digest_of(read_tables(tmp_path / "t", SCHEMA)) == digest_of(tables)
    short = Table(Context((1,), (0,), (3,), (2,)), Dense(np.ones((2, 3), int)), table.noise)
    write_tables(replace(tables, extra=(short,)), tmp_path / "bad")
    with pytest.raises(ModelRejected, match="numbers of levels"):
        read_tables(tmp_path / "bad", SCHEMA)


def test_a_package_with_a_model_verifies_and_draws_again(tmp_path: Path) -> None:
    rows = packages.plan().rows or 60
    sets = [sample(TABLES, rows, seed=7, set_index=index) for index in range(2)]
    packages.write(tmp_path / "out", Ledger.ephemeral(), result=TABLES, sets=sets, schema=SCHEMA)

    release = load(tmp_path / "out")

    assert verify(tmp_path / "out").tables == 0, "no noisy table was published here"
    first = release.sample(rows, seed=7)
    assert first.equals(pl.read_parquet(tmp_path / "out" / "synthetic_1.parquet"))
    assert release.sample(5, seed=1, given={"c1": 2})["c1"].to_list() == [2] * 5
    spoiled = tmp_path / "out" / "tables" / "model_theta.parquet"
    theta = pl.read_parquet(spoiled)
    theta.with_columns(pl.col("theta") * 1.01).write_parquet(spoiled)
    with pytest.raises(ModelRejected):
        load(tmp_path / "out")
