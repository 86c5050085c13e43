"""A scan reads, checks, encodes and fingerprints; the same rows give the same counts and mark."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import GibbousError, InputRejected, SchemaMismatch
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.read.source import ReadOptions
from tests.disintegrate.brute import as_dict, context_of

KEY = bytes(range(32))
SCHEMA = Schema(
    (
        Column("place", "nominal", levels=("north", "south", "NA")),
        Column("age", "numeric", edges=(0, 18, 65, 120), integer=True, missing=True),
        Column("member", "binary", levels=("no", "yes")),
    )
)


def people(rows: int = 500) -> pl.DataFrame:
    """Random rows under SCHEMA; every seventh age is missing."""
    rng = np.random.default_rng(1)
    age = [None if i % 7 == 0 else int(a) for i, a in enumerate(rng.integers(0, 120, rows))]
    return pl.DataFrame(
        {
            "place": rng.choice(["north", "south", "NA"], rows).tolist(),
            "age": pl.Series(age, dtype=pl.Int64),
            "member": rng.choice(["no", "yes"], rows).tolist(),
        }
    )


def test_a_file_and_a_frame_of_the_same_rows_count_the_same(tmp_path: Path) -> None:
    frame = people()
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    context = context_of(SCHEMA, (0,), (1, 2))
    truth: dict[tuple[int, int], int] = {}
    for place, age, member in frame.iter_rows():
        bin_ = 3 if age is None else (age >= 18) + (age >= 65)
        cell = bin_ * 2 + (member == "yes"), ["north", "south", "NA"].index(place)
        truth[cell] = truth.get(cell, 0) + 1

    found, marks = [], set()
    for source in (
        tmp_path / "a.csv",
        str(tmp_path / "a.csv.gz"),
        tmp_path / "a.parquet",
        frame,
        frame.sample(fraction=1, shuffle=True, seed=3),
    ):
        held = LocalEngine()
        marks.add(held.scan(source, SCHEMA, key=KEY))
        found.append(as_dict(held.tally([context])[0]))

    assert found == [truth] * 5
    assert len(marks) == 1
    assert len(marks.pop()) == 32


def test_reading_options_reach_the_reader(tmp_path: Path) -> None:
    people(20).write_csv(tmp_path / "a.csv", separator=";")

    held = LocalEngine(ReadOptions(sep=";"))
    held.scan(tmp_path / "a.csv", SCHEMA, key=KEY)

    assert sum(as_dict(held.tally([context_of(SCHEMA, (0,))])[0]).values()) == 20


def test_c9_a_value_outside_the_schema_is_refused_without_showing_it(tmp_path: Path) -> None:
    people(20).with_columns(place=pl.lit("MARKER1573")).write_csv(tmp_path / "a.csv")

    held = LocalEngine()
    with pytest.raises(SchemaMismatch) as caught:
        held.scan(tmp_path / "a.csv", SCHEMA, key=KEY)

    assert "MARKER1573" not in caught.value.render()
    with pytest.raises(GibbousError, match="Call scan first"):
        held.tally([])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRejected):
        LocalEngine().scan(tmp_path / "no.csv", SCHEMA, key=KEY)


def test_c14_a_person_has_at_most_the_declared_rows() -> None:
    schema = Schema(SCHEMA.columns, Unit("person", "who", 3))
    who = [f"p{i // 10}" if i < 400 else f"q{i}" for i in range(500)]
    frame = people().with_columns(who=pl.Series(who))

    held = LocalEngine()
    held.scan(frame, schema, key=KEY)

    total = sum(as_dict(held.tally([context_of(schema, (0,))])[0]).values())
    assert total == 40 * 3 + 100


def test_c1_a_table_without_rows_is_scanned() -> None:
    held = LocalEngine()
    held.scan(people().head(0), SCHEMA, key=KEY)

    assert as_dict(held.tally([context_of(SCHEMA, (0,), (1,))])[0]) == {}
