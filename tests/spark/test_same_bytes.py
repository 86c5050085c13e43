"""The same tables and the same seed: files that executors write are those of this process, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.request import Output, Performance
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.spark.engine import SparkEngine
from gibbous.disintegrate.spark.session import Held
from gibbous.disintegrate.spark.workers import SparkWorkers
from gibbous.pipeline import sample_more
from tests.frame.tree import mechanism_names
from tests.spark.conftest import fixed_noise

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # sockets that PySpark leaves to the collector
]

# Rows of 4 columns of one byte, and cells of 8 bytes: what executors get is 1 MB either way.
ROWS = 262_144
SMALL, LARGE = (3, 4, 2, 5), (16, 16, 16, 32)
METHODS: dict[str, tuple[Any, tuple[int, ...], int | None]] = {
    "adaptive_gibbs": (gb.AdaptiveGibbs(epsilon=8, delta=1e-6), LARGE, 2_000),
    "block_pegs": (gb.BlockPegs(epsilon=1, block=64), SMALL, ROWS),
    "bootstrap": (gb.Bootstrap(), SMALL, ROWS),
    "cdf": (gb.Cdf(epsilon=10), SMALL, ROWS),
    "contingency": (gb.Contingency(), SMALL, ROWS),
    "dirichlet": (gb.Dirichlet(epsilon=12), SMALL, ROWS),
    "diverse_pegs": (gb.DiversePegs(l=1.05), SMALL, ROWS),
    "dp_prior": (gb.DpPrior(epsilon=9_000), SMALL, ROWS),
    "exponential_pegs": (gb.ExponentialPegs(epsilon=0.6), SMALL, ROWS),
    "flows_laplace": (gb.FlowsLaplace(epsilon=4), LARGE, None),
    "imputation": (gb.Imputation(mix=0, sweeps=1), SMALL, ROWS),
    "laplace": (gb.Laplace(epsilon=2), LARGE, 2_000),
    "modips": (gb.Modips(epsilon=2), LARGE, 2_000),
    "multiple_synthesis": (gb.MultipleSynthesis(), SMALL, ROWS),
    "noisy_pegs": (gb.NoisyPegs(epsilon=4, parents=3), LARGE, 2_000),
    "onthemap": (gb.Onthemap(epsilon=12, destination="c0"), SMALL, ROWS),
    "paid_bins": (gb.PaidBins(method="laplace", epsilon=4), LARGE, 2_000),
    "parallel": (gb.Parallel(method="laplace", parts=1, epsilon=4), LARGE, 2_000),
    "pegs": (gb.Pegs(epsilon=1), SMALL, ROWS),
    "per_set": (gb.PerSet(method="laplace", epsilon=4), LARGE, 2_000),
    "perturbed_histogram": (gb.PerturbedHistogram(epsilon=2), LARGE, 2_000),
    "perturbed_imputation": (gb.PerturbedImputation(epsilon=9, mix=0), SMALL, ROWS),
    "privbayes": (gb.Privbayes(epsilon=8, parents=3), LARGE, 2_000),
    "sba": (gb.Sba(epsilon=4, delta=1e-6), LARGE, 2_000),
    "sbhg": (gb.Sbhg(epsilon=8, delta=1e-6, parents=3), LARGE, 2_000),
    "smoothed_histogram": (gb.SmoothedHistogram(epsilon=9_000), SMALL, ROWS),
}


@pytest.fixture
def engine(session: Any) -> Iterator[SparkEngine]:
    found = SparkEngine(session=session, partitions=3)
    yield found
    found.close()


@pytest.mark.parametrize("name", mechanism_names())
def test_a_method_releases_on_a_cluster_what_it_releases_here(
    name: str, engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, sizes, rows = METHODS.get(name, (name, LARGE, 2_000))
    schema, source = _table(sizes, tmp_path)
    found = []

    for place, worker in enumerate(("local", engine)):
        fixed_noise(monkeypatch)
        out = tmp_path / f"release-{place}"
        gb.synthesize(
            source,
            schema,
            method,
            rows=rows,
            seed=1,
            out=out,
            engine=worker,
            understand=True,
            part_rows=1_000 if rows != ROWS else ROWS // 2,
            ledger=tmp_path / f"ledger-{place}.sqlite",
        )
        files = sorted(out.rglob("*.parquet"))
        found.append([(file.relative_to(out), file.read_bytes()) for file in files])

    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize("megabytes", [1, 100])
def test_workers_get_large_public_tables_where_encryption_is_on(
    session: Any, megabytes: int
) -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    table = np.arange(min(megabytes << 20, free // 20) // 8)
    workers = SparkWorkers(Held(session, own=False), partitions=2)

    try:
        ends = list(workers.spread(np.take, table, [0, 70_000, len(table) - 1]))
    finally:
        workers.close()

    assert session.sparkContext._encryption_enabled
    assert sorted(ends) == [0, 70_000, len(table) - 1]


def test_rows_written_by_executors_have_the_bytes_of_one_machine(
    session: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(21)
    frame = pl.DataFrame({"a": rng.integers(0, 4, 500), "b": rng.uniform(0, 10, 500)})
    columns = (
        Column("a", "ordinal", levels=tuple(range(4))),
        Column("b", "numeric", edges=(0.0, 2.0, 10.0)),
    )
    release = gb.synthesize(
        frame,
        Schema(columns, unit=Unit()),
        gb.NoisyPegs(epsilon=1),
        rows=10,
        seed=1,
        ledger=tmp_path / "ledger.sqlite",
    )
    found = {}

    for partitions in (None, 1, 7, 32):
        out = tmp_path / f"set-{partitions}"
        engine = partitions and SparkEngine(session=session, partitions=partitions)
        output = Output(9_500, seed=3, out=out, part_rows=1_000)
        sample_more(release, output, Performance(engine or "local"))
        if engine:
            engine.close()
        files = sorted(out.rglob("part-*.parquet"))
        found[partitions] = [(file.name, file.read_bytes()) for file in files]

    assert len(found[None]) == 10
    assert found[1] == found[7] == found[32] == found[None]


def _table(sizes: tuple[int, ...], folder: Path) -> tuple[Schema, Path]:
    """A schema of ordinal columns, and 3,000 rows of it in a file."""
    rng = np.random.default_rng(22)
    columns = tuple(
        Column(f"c{i}", "ordinal", levels=tuple(range(size))) for i, size in enumerate(sizes)
    )
    values = {f"c{i}": rng.binomial(size - 1, 0.4, 3_000) for i, size in enumerate(sizes)}
    pl.DataFrame(values).write_parquet(folder / "table.parquet")
    return Schema(columns, Unit()), folder / "table.parquet"
