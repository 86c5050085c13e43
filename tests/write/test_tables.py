"""Tables in files: the numbers come back exactly, and the digest is of the numbers alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.context import Context, MinHash, Radix
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.write.release_digest import digest_of
from gibbous.write.table_files import read_tables, write_tables
from tests.write import made

NOISE = NoiseInfo("gaussian", 0.1 + 0.2)


def same(a: Tables, b: Tables) -> bool:
    pairs = list(zip(a.items + a.extra, b.items + b.extra, strict=True))
    return a.recipe == b.recipe and all(
        one.context == two.context
        and one.noise == two.noise
        and type(one.cells) is type(two.cells)
        and all(
            np.array_equal(getattr(one.cells, name), getattr(two.cells, name))
            for name in one.cells.__slots__  # type: ignore[union-attr]
        )
        for one, two in pairs
    )


def test_every_kind_of_table_comes_back_exactly(tmp_path: Path) -> None:
    tables = made.tables()
    write_tables(tables, tmp_path / "t")

    assert same(read_tables(tmp_path / "t", made.SCHEMA), tables)


def test_extreme_counts_and_huge_sparse_keys_come_back_exactly(tmp_path: Path) -> None:
    schema = Schema(tuple(Column(f"c{i}", "nominal", levels=tuple("abcdefgh")) for i in range(20)))
    far = Context(tuple(range(10)), tuple(range(10, 20)), (8,) * 10, (8,) * 10, Radix(), "seen")
    cells = Sparse(
        np.array([0, 2**30 - 1], dtype=np.uint64),
        np.array([2**30 - 1, 5], dtype=np.uint64),
        np.array([2**63 - 1, -(2**63)], dtype=np.int64),
    )
    hashed = Context((0,), (1, 2), (8,), (8, 8), MinHash(3, 16, seed=2**63))
    dense = Dense(np.arange(128, dtype=np.int64).reshape(16, 8) - 64)
    empty = Sparse(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    recipe = Recipe("ancestral", (0,), kappa=0.1, fallback="nearest", fit="rake")
    tables = Tables(
        schema,
        (Table(far, cells, replace(NOISE, threshold=3)),),
        recipe,
        (Table(hashed, dense, NOISE), Table(replace(hashed, support="seen"), empty, NOISE)),
    )
    write_tables(tables, tmp_path / "t")

    assert same(read_tables(tmp_path / "t", schema), tables)


def test_a_table_reads_like_a_table(tmp_path: Path) -> None:
    write_tables(made.tables(), tmp_path / "t")

    frame = pl.read_parquet(tmp_path / "t" / "table_001.parquet")
    assert frame.columns == ["code.region", "code.sex", "count"]
    assert frame["code.region"].to_list() == [k for k in range(5) for _ in range(2)]
    cells = made.tables().items[0].cells
    assert frame["count"].to_list() == cells.values.reshape(-1).tolist()


def test_the_same_tables_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tables(made.tables(), tmp_path / name)

    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_the_digest_changes_with_anything_that_means_something() -> None:
    tables = made.tables()
    first = tables.items[0]
    assert isinstance(first.cells, Dense)
    more = replace(first, cells=Dense(first.cells.values + 1))
    columns = list(made.SCHEMA.columns)
    columns[0] = replace(columns[0], levels=("m", "f"))
    others = [
        replace(tables, recipe=replace(tables.recipe, kappa=0.5)),
        replace(tables, items=(more, *tables.items[1:])),
        replace(tables, items=(replace(first, noise=NOISE), *tables.items[1:])),
        replace(tables, extra=()),
        replace(tables, items=tables.items + tables.extra, extra=()),
        replace(tables, schema=replace(made.SCHEMA, columns=tuple(columns))),
    ]

    assert len({digest_of(t) for t in [tables, *others]}) == 7
    assert digest_of(made.tables()) == digest_of(tables)


def test_k10_the_digest_depends_on_numbers_and_not_on_their_layout() -> None:
    tables, codes = made.tables(), made.codes(50, 1)
    first = tables.items[0]
    assert isinstance(first.cells, Dense)
    turned = np.asfortranarray(first.cells.values).astype(">i8")
    other = replace(tables, items=(replace(first, cells=Dense(turned)), *tables.items[1:]))
    wide = replace(codes, values=np.ascontiguousarray(codes.values).astype(np.uint32))

    assert digest_of(other) == digest_of(tables)
    assert digest_of(wide) == digest_of(codes)
    assert digest_of(replace(codes, values=codes.values[::-1])) != digest_of(codes)


@pytest.mark.parametrize("kappa", [0.0, 1e-300, 1 / 3])
def test_floats_of_a_recipe_come_back_exactly(tmp_path: Path, kappa: float) -> None:
    tables = made.tables()
    tables = replace(tables, recipe=replace(tables.recipe, kappa=kappa))
    write_tables(tables, tmp_path / "t")

    assert read_tables(tmp_path / "t", made.SCHEMA).recipe.kappa == kappa
