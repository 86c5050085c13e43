"""Kinds, levels and bounds are bought on a cluster as they are here, of the same data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous import engines
from gibbous.core.discovery import Discovery
from gibbous.core.errors import EngineFailure, InputRejected, ResourceLimit
from gibbous.core.protocols import Engine
from gibbous.core.request import Performance
from gibbous.core.schema import Unit
from gibbous.disintegrate.spark.text_engine import SparkTextEngine
from gibbous.disintegrate.text_records import TextEngine
from tests.discovery.conftest import visits
from tests.spark import breakage
from tests.spark.conftest import fixed_noise

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROWS, PERSON = Unit(), Unit("person", "patient", 1)


@pytest.fixture
def made(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines by the name of Spark take the session of the test cluster."""
    real = SparkTextEngine.__init__

    def within(self: SparkTextEngine, options: Any = None, **settings: Any) -> None:
        settings |= {"session": session, "master": None, "conf": None}
        real(self, options, **settings)

    monkeypatch.setattr(SparkTextEngine, "__init__", within)


def texts(engine: Engine, known: Discovery) -> dict[str, dict[str, int]]:
    """All texts of an engine with their counts."""
    assert isinstance(engine, TextEngine | SparkTextEngine)
    names = known.schema().names
    told = engine.texts(names, lambda name, own: own.fill_null("<missing>"))
    return {
        name: dict(zip(own, cells.values.tolist(), strict=True))
        for name, (own, cells) in zip(names, told, strict=True)
    }


def written(frame: pl.DataFrame, folder: Path, kind: str) -> Path:
    """The frame as a file of text, or as two files of typed columns in a folder."""
    if kind == "csv":
        frame.write_csv(folder / "visits.csv")
        return folder / "visits.csv"
    typed = frame.with_columns(
        pl.col("age").cast(pl.Int64),
        pl.when(pl.col("cost") != "").then(pl.col("cost")).cast(pl.Float64).alias("cost"),
        pl.col("seen").str.to_datetime("%m/%d/%Y"),
        pl.col("seen").str.to_datetime("%m/%d/%Y").dt.offset_by("90m").alias("score"),
    )
    (folder / "visits").mkdir()
    for place, part in enumerate(typed.iter_slices(3_000)):
        part.write_parquet(folder / "visits" / f"{place}.parquet")
    return folder / "visits"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_cluster_finds_the_same_texts_in_the_same_data_set(
    kind: str, made: None, tmp_path: Path
) -> None:
    frame = visits(4_000)
    source, known = written(frame, tmp_path, kind), Discovery(tuple(frame.columns), ROWS)
    found = []

    for name in ("local", "spark"):
        engine = engines.text_engine(Performance(name, 3 if name == "spark" else None), source)
        mark = engine.scan(source, known.schema(), key=b"k" * 32)
        found.append((mark, texts(engine, known)))
        engine.close()

    assert sum(found[0][1]["sex"].values()) == 4_000
    assert len(found[0][1]["note"]) == 4_000
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_release_without_a_schema_is_the_one_of_this_process(
    kind: str, made: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = visits(4_000)
    source, found = written(frame, tmp_path, kind), []
    known = Discovery(tuple(frame.columns), Unit("person", "patient", 2))

    for name in ("local", "spark"):
        fixed_noise(monkeypatch)
        out = tmp_path / f"release-{name}"
        release = gb.synthesize(
            source,
            known,
            gb.AdaptiveGibbs(epsilon=20, delta=1e-6),
            rows=500,
            seed=1,
            out=out,
            engine=name,
            ledger=tmp_path / "ledger.sqlite",
            fresh=True,
        )
        files = sorted(out.rglob("*.parquet"))
        found.append((release.schema, [(f.relative_to(out), f.read_bytes()) for f in files]))

    assert found[0][0].names == ("sex", "ward", "score", "age", "zip", "cost", "seen")
    assert found[0] == found[1]
    assert len(gb.Ledger.open(tmp_path / "ledger.sqlite").accounts()) == 1


def test_numbers_are_cut_on_a_cluster_as_here(
    made: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, found = Discovery(("age", "cost", "patient", "sex"), ROWS), []
    source = written(visits(4_000).select(known.names), tmp_path, "csv")

    for name in ("local", "spark"):
        fixed_noise(monkeypatch)
        method = gb.AdaptiveGibbs(epsilon=50, delta=1e-6)
        ledger = tmp_path / f"{name}.sqlite"
        done = gb.synthesize(source, known, method, rows=300, seed=2, engine=name, ledger=ledger)
        found.append((done.schema, done.sets[0].to_dicts()))

    cost = next(column for column in found[0][0] if column.name == "cost")
    assert (cost.binned, cost.source("bins")) == (True, "discovered")
    assert found[0] == found[1]


def test_persons_have_no_more_rows_than_was_said(made: None, tmp_path: Path) -> None:
    frame = visits(4_000)
    source, known = written(frame, tmp_path, "csv"), Discovery(tuple(frame.columns), PERSON)
    engine = engines.text_engine(Performance("spark", 3), source)

    engine.scan(source, known.schema(), key=b"k" * 32)
    told = texts(engine, known)
    engine.close()

    assert "patient" not in told
    assert {name: sum(own.values()) for name, own in told.items()} == dict.fromkeys(told, 2_000)


def test_what_a_cluster_refuses_tells_no_cell(session: Any, made: None, tmp_path: Path) -> None:
    frame = visits(4_000)
    source, known = written(frame, tmp_path, "csv"), Discovery(tuple(frame.columns), ROWS)
    small = SparkTextEngine(memory_limit=1 << 20)
    values = tmp_path / "headless.csv"
    values.write_text("4,7\n4,1\n5,7\n")

    with pytest.raises(ResourceLimit, match="more than 1,024 different texts"):
        small.scan(source, known.schema(), key=b"k" * 32)
    with pytest.raises(InputRejected, match="may be the first record"):
        small.scan(values, Discovery(("4", "7"), ROWS).schema(), key=b"k" * 32)
    small.close()


def test_texts_that_were_not_there_before_are_refused(session: Any, made: None) -> None:
    source = session.range(0, 2_000, 1, 4).selectExpr("id as x")
    changing = breakage.through(source, breakage.never_seen, "x string")
    engine = SparkTextEngine()

    with pytest.raises(EngineFailure, match="not those that it had read before"):
        engine.scan(changing, Discovery(("x",), ROWS).schema(), key=b"k" * 32)
    engine.close()
