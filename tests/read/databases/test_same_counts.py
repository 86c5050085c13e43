"""Random schemas and faulty tables: the same counts, name and error from every kind of source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from gibbous.core.errors import GibbousError
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.encode.encode import encode
from tests.disintegrate.brute import as_dict, count
from tests.read.databases.problems import KEY, problem
from tests.read.refusal import MARKER

SEEDS = [pytest.param(s, marks=pytest.mark.slow if s >= 3 else ()) for s in range(30)]
PLAIN = Schema((Column("a", "nominal", levels=("x", "y")), Column("n", "nominal", levels=(1, 2))))


def _parquet(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def _relation(frame: pl.DataFrame, folder: Path) -> Any:
    return duckdb.connect().read_parquet(str(_parquet(frame, folder)))


SOURCES: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "frame": lambda frame, _: frame,
    "parquet": _parquet,
    "relation": _relation,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_schemas_have_the_counts_of_brute_force_from_every_source(
    seed: int, name: str, tmp_path: Path
) -> None:
    schema, frame, contexts = problem(seed)
    mark = LocalEngine().scan(frame, schema, key=KEY)
    codes = encode(frame, schema)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    engine = LocalEngine(threads=2)

    found = engine.scan(SOURCES[name](shuffled, tmp_path), schema, key=KEY)
    counts = engine.tally(contexts)
    engine.close()

    assert [as_dict(c) for c in counts] == [count(c, codes) for c in contexts]
    assert found == mark


FAULTY = {
    "unknown level": "a,n\nx,1\n" + MARKER + ",2\n",
    "missing": "a,n\nx,\n",
    "ragged": "a,n\nx,1\ny\n",
    "long row": "a,n\nx,1,2\n",
    "nul": "a,n\nx\0,1\n",
    "empty": "",
    "header alone, of others": "a,b\n",
    "twice": "a,a\nx,1\n",
    "quote": 'a,n\n"x,1\n',
    "latin": "a,n\n\xe9,1\n",
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_file_has_its_own_error_and_its_name_within_a_pattern(
    case: str, tmp_path: Path
) -> None:
    path = tmp_path / "faulty.csv"
    path.write_bytes(FAULTY[case].encode("latin-1"))
    errors: list[GibbousError] = []

    for source in (path, str(tmp_path / "faul*.csv")):
        with pytest.raises(GibbousError) as caught:
            LocalEngine().scan(source, PLAIN, key=KEY)
        errors.append(caught.value)

    alone, among = errors
    assert (type(among), among.name) == (type(alone), alone.name)
    assert among.wrong.removeprefix("In 'faulty.csv': ") == alone.wrong
    assert MARKER not in alone.render() + among.render()


FRAMES = {
    "late level": pl.DataFrame({"a": ["x"] * 300_000 + [MARKER], "n": [1] * 300_001}),
    "missing level": pl.DataFrame({"a": ["x", None], "n": [1, 2]}),
    "float": pl.DataFrame({"a": ["x", "y"], "n": [1.0, float("nan")]}),
    "nested": pl.DataFrame({"a": [["x"]], "n": [1]}),
    "column": pl.DataFrame({"a": ["x"], "m": [1]}),
}


@pytest.mark.parametrize("case", FRAMES)
@pytest.mark.parametrize("source", ["parquet", "relation"])
def test_faulty_tables_have_the_error_of_a_frame(case: str, source: str, tmp_path: Path) -> None:
    frame = FRAMES[case]
    errors: list[GibbousError] = []

    for given in (frame, SOURCES[source](frame, tmp_path)):
        with pytest.raises(GibbousError) as caught:
            LocalEngine(threads=1).scan(given, PLAIN, key=KEY)
        errors.append(caught.value)

    truth, found = errors
    assert (type(found), found.name, str(found)) == (type(truth), truth.name, str(truth))
    assert MARKER not in found.render()
