"""Progress is public: its totals are the same for any records, whatever cells they occupy."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import polars as pl
import pytest
from gibbous.disintegrate.ibis.engine import IbisEngine

import gibbous as gb
from gibbous.mechanisms import registry
from gibbous.privacy import entropy
from tests.disintegrate.brute import context_of

LEVELS = tuple(f"l{i}" for i in range(8))
SCHEMA = gb.Schema(tuple(gb.Column(n, "nominal", levels=LEVELS) for n in "abc"), gb.Unit("row"))
ROWS = 400
ONE_CELL = pl.DataFrame(dict.fromkeys("abc", ["l0"] * ROWS))
MANY_CELLS = pl.DataFrame(
    {n: [LEVELS[i // 8**p % 8] for i in range(ROWS)] for p, n in enumerate("abc")}
)
Told = set[tuple[str, int]]


@pytest.mark.parametrize("name", ["sbhg", "sba", "flows_laplace", "onthemap", "noisy_pegs"])
def test_D_progress_does_not_tell_how_many_cells_are_occupied(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entropy, "CHUNK", 16)  # cells: the tables are small
    method = registry.load(name)()

    told = [_told(table, method) for table in (ONE_CELL, MANY_CELLS)]

    assert told[0] == told[1]
    assert told[0]


def test_D_progress_of_counting_in_duckdb_is_out_of_the_contexts() -> None:
    """Small tables are margins of larger ones; how many those are hangs on the number of rows."""
    contexts = [context_of(SCHEMA, (0,), (1,)), context_of(SCHEMA, (0,)), context_of(SCHEMA, (2,))]
    told: Told = set()

    with closing(IbisEngine()) as engine:
        engine.scan(MANY_CELLS, SCHEMA, key=bytes(32))
        engine.tally(contexts, progress=lambda stage, _, total: told.add((stage, total)))

    assert told == {("count", 3)}


def _told(table: pl.DataFrame, method: Any) -> Told:
    told: Told = set()
    gb.synthesize(
        table,
        SCHEMA,
        method,
        rows=10,
        ledger=gb.Ledger.ephemeral(),
        progress=lambda stage, _, total: told.add((stage, total)),
    )
    return told
