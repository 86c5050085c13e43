"""One test body for every engine: the same counts, to the bit, and the same name of the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest

from gibbous.core.errors import GibbousError
from gibbous.core.protocols import Engine
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from tests.read.refusal import MARKER

from .problems import KEY, digest, problem

# Engines beside NumPy's, which is the truth; another one is added here.
ENGINES: dict[str, Callable[[], Engine]] = {
    "local": lambda: LocalEngine(threads=2),
    "duckdb": lambda: LocalEngine(threads=2),
}
SEEDS = [pytest.param(s, marks=pytest.mark.slow if s >= 3 else ()) for s in range(30)]
PLAIN = Schema((Column("a", "nominal", levels=("x", "y")), Column("n", "nominal", levels=(1, 2))))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_schemas_have_the_same_counts_on_every_engine(seed: int, name: str) -> None:
    schema, frame, contexts = problem(seed)
    truth, engine = LocalEngine(), ENGINES[name]()
    mark = truth.scan(frame, schema, key=KEY)

    found = engine.scan(frame.sample(fraction=1, shuffle=True, seed=seed), schema, key=KEY)
    same = digest(engine, contexts) == digest(truth, contexts)
    engine.close()

    assert same
    assert found == mark


@pytest.mark.parametrize("name", ["duckdb"])
def test_a_count_too_many_changes_the_digest(name: str) -> None:
    schema, frame, contexts = problem(1)
    truth, engine = LocalEngine(), ENGINES[name]()
    truth.scan(frame, schema, key=KEY)

    engine.scan(pl.concat([frame, frame.head(1)]), schema, key=KEY)

    assert digest(engine, contexts) != digest(truth, contexts)
    engine.close()


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


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", FAULTY)
def test_faulty_files_have_the_same_error_on_every_engine(
    case: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "faulty.csv"
    path.write_bytes(FAULTY[case].encode("latin-1"))
    errors: list[GibbousError] = []

    for engine in (LocalEngine(), ENGINES[name]()):
        with pytest.raises(GibbousError) as caught:
            engine.scan(path, PLAIN, key=KEY)
        errors.append(caught.value)
        engine.close()

    truth, found = errors
    assert (type(found), found.name, str(found)) == (type(truth), truth.name, str(truth))
    assert MARKER not in found.render()


FRAMES = {
    "late level": pl.DataFrame({"a": ["x"] * 300_000 + [MARKER], "n": [1] * 300_001}),
    "missing level": pl.DataFrame({"a": ["x", None], "n": [1, 2]}),
    "float": pl.DataFrame({"a": ["x", "y"], "n": [1.0, float("nan")]}),
    "nested": pl.DataFrame({"a": [["x"]], "n": [1]}),
    "column": pl.DataFrame({"a": ["x"], "m": [1]}),
}


@pytest.mark.parametrize("case", FRAMES)
@pytest.mark.parametrize("source", ["frame", "parquet", "relation"])
def test_faulty_tables_have_the_same_error_in_duckdb(
    case: str, source: str, tmp_path: Path
) -> None:
    frame = FRAMES[case]
    frame.write_parquet(tmp_path / "a.parquet")
    given = {
        "frame": frame,
        "parquet": tmp_path / "a.parquet",
        "relation": duckdb.connect().read_parquet(str(tmp_path / "a.parquet")),
    }[source]
    errors: list[GibbousError] = []

    for engine, read in ((LocalEngine(), frame), (LocalEngine(threads=1), given)):
        with pytest.raises(GibbousError) as caught:
            engine.scan(read, PLAIN, key=KEY)
        errors.append(caught.value)
        engine.close()

    truth, found = errors
    assert (type(found), found.name, str(found)) == (type(truth), truth.name, str(truth))
    assert MARKER not in found.render()
