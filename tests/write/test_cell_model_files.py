"""A cell model on disk: the same bytes back, and every odd file refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import ModelRejected
from gibbous.core.tables import Tables
from gibbous.mechanisms.modips import Modips
from gibbous.mechanisms.per_set import PerSet
from gibbous.sampling.sample import sample
from gibbous.write.certificate import Facts
from gibbous.write.release_digest import digest_of
from gibbous.write.release_texts import methods_text
from gibbous.write.table_files import listed_files, read_tables, write_tables
from tests.mechanisms.numeric_records import MIXED, people, ran, secret

RECORDS = people(300)


@pytest.fixture(scope="module")
def tables() -> Tables:
    return ran(Modips(covariance="cells"), RECORDS)[0]


@pytest.fixture
def folder(tables: Tables, tmp_path: Path) -> Path:
    write_tables(tables, tmp_path / "tables")
    return tmp_path / "tables"


@pytest.mark.parametrize("covariance", ["pooled", "cells"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_model_comes_back_with_its_digest_and_its_rows(
    noise: Any, covariance: Any, tmp_path: Path
) -> None:
    made, _ = ran(Modips(noise=noise, covariance=covariance), RECORDS)
    write_tables(made, tmp_path / "tables")

    back = read_tables(tmp_path / "tables", MIXED)

    assert digest_of(back) == digest_of(made)
    one, two = sample(made, 200, seed=1), sample(back, 200, seed=1)
    assert np.array_equal(one.values, two.values)
    assert np.array_equal(one.number(2), two.number(2))


def test_categories_alone_come_back_without_sums(tmp_path: Path) -> None:
    schema = type(MIXED)(MIXED.columns[:2])
    made, _ = ran(Modips(), secret(schema, [[0, 1]] * 20))
    write_tables(made, tmp_path / "tables")

    assert "model_sums.parquet" not in listed_files(tmp_path / "tables")
    assert digest_of(read_tables(tmp_path / "tables", schema)) == digest_of(made)


def test_the_digest_tells_every_part_of_a_model(tables: Tables) -> None:
    from dataclasses import replace

    model: Any = tables.model
    first = model.sums[0]
    moved = replace(first.table, noise=replace(first.table.noise, scale=1.0))
    changes: list[dict[str, Any]] = [
        {name: getattr(model, name) * 1.5} for name in ("counts", "means", "support", "freedom")
    ]
    changes += [
        {"covariances": model.covariances * 2},
        {"prior": 9.0},
        {"draws": "fitted"},
        {"values": "clipped"},
    ]
    changes += [{"sums": (replace(first, table=moved), *model.sums[1:])}]

    digests = {digest_of(replace(tables, model=replace(model, **change))) for change in changes}

    assert len(digests | {digest_of(tables)}) == len(changes) + 1


def _numbers(
    name: str, column: str, change: Callable[[pl.Expr], pl.Expr]
) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        frame = pl.read_parquet(folder / name)
        (folder / name).unlink()
        frame.with_columns(change(pl.col(column)).alias(column)).write_parquet(folder / name)

    return edit


def _json(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        document = json.loads((folder / "tables.json").read_text())
        change(document["model"])
        (folder / "tables.json").write_text(json.dumps(document))

    return edit


CELLS, SPREADS, SUMS = "model_cells.parquet", "model_spreads.parquet", "model_sums.parquet"
FAULTS: dict[str, Callable[[Path], None]] = {
    "a negative count": _numbers(CELLS, "count", lambda c: c - 1e6),
    "a count that is not finite": _numbers(CELLS, "count", lambda c: c / 0),
    "a mean that rests on nothing": _numbers(CELLS, "support", lambda c: c * 0),
    "a matrix that is not symmetric": _numbers(SPREADS, "entry_1", lambda c: c + 1),
    "a matrix that is not definite": _numbers(SPREADS, "entry_0", lambda c: -c),
    "no degrees of freedom": _numbers(SPREADS, "freedom", lambda c: c * 0),
    "sums of another type": _numbers(SUMS, "sum", lambda c: c.cast(pl.Float64)),
    "a missing sum": _numbers(SUMS, "sum", lambda c: pl.when(c > 0).then(c)),
    "other sizes": _json(lambda m: m.update(sizes=[2, 3, 1, 3])),
    "other numbers": _json(lambda m: m.update(numbers=[2])),
    "a negative prior": _json(lambda m: m.update(prior=-1)),
    "a prior that is not finite": _json(lambda m: m.update(prior=float("inf"))),
    "a prior in words": _json(lambda m: m.update(prior="1")),
    "an unknown word": _json(lambda m: m.update(draws="prior")),
    "another unknown word": _json(lambda m: m.update(values="cut")),
    "too many covariances": _json(lambda m: m.update(covariances=7)),
    "covariances in words": _json(lambda m: m.update(covariances="12")),
    "a sum of a category": _json(lambda m: m["sums"][0].update(factors=[0])),
    "a sum of three columns": _json(lambda m: m["sums"][0].update(factors=[2, 3, 2])),
    "a sum in other cells": _json(lambda m: m["sums"][0]["context"].update(target_sizes=[2, 3, 1])),
    "an unknown noise": _json(lambda m: m["sums"][0]["noise"].update(law="uniform")),
    "a scale of 0": _json(lambda m: m["sums"][0]["noise"].update(scale=0)),
    "a sum less": _json(lambda m: m["sums"].pop()),
    "sums that are no list": _json(lambda m: m.update(sums={"a": 1})),
    "an unknown kind": _json(lambda m: m.update(kind="cubes")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused(fault: str, folder: Path) -> None:
    FAULTS[fault](folder)

    with pytest.raises(ModelRejected):
        read_tables(folder, MIXED)


def test_a_model_of_another_schema_is_refused(folder: Path) -> None:
    with pytest.raises(ModelRejected):
        read_tables(folder, type(MIXED)(MIXED.columns[:3]))


@pytest.mark.parametrize("copies", [1, 3])
def test_the_methods_text_names_sums_and_the_law_of_the_numbers(copies: int) -> None:
    method = PerSet(Modips(), epsilon=1) if copies > 1 else Modips()
    made, _ = ran(method, RECORDS, sets=copies)
    facts = Facts(MIXED, method.plan(MIXED, None, copies), method.about, "add_remove")

    text = methods_text(facts, made, sets=copies, files={})

    assert "5 tables of sums" in text
    assert "normal law within each cell" in text
    assert "uniform draws" not in text
