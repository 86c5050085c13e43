"""Progress is public: its totals are the same for any records, whatever cells they occupy."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.mechanisms import registry
from gibbous.privacy import entropy

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
