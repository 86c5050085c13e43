"""Runs that end early: an interrupt in a round, and too little memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous import engines
from gibbous.contract.saboteurs import patched
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema, Unit
from gibbous.mechanisms import _adaptive_model, _adaptive_rounds
from gibbous.mechanisms._adaptive_rounds import cells_of_triples
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.ledger import Ledger
from gibbous.sampling.loglinear import Schedule
from gibbous.sampling.loglinear.fit import gap_of
from tests.adaptive_gibbs.made import chain_rows, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3)
METHOD = AdaptiveGibbs(epsilon=1.0, cells=rounds_of(*SIZES))


@pytest.fixture
def schema() -> Schema:
    found = schema_of(*SIZES)
    return Schema(found.columns, unit=Unit())


@pytest.fixture
def frame() -> pl.DataFrame:
    rows = chain_rows(SIZES, 400)
    return pl.DataFrame({f"c{j}": [f"v{v}" for v in rows[:, j]] for j in range(len(SIZES))})


def reserved(ledger: Ledger) -> int:
    return sum(entry.kind == "reserve" for entry in ledger.entries())


@pytest.mark.slow
def test_an_interrupt_in_a_round_leaves_no_output_and_the_charge_on_the_books(
    tmp_path: Path, schema: Schema, frame: pl.DataFrame
) -> None:
    honest, calls = _adaptive_model.fitted, []

    def interrupted(
        known: _adaptive_model.Known, schedules: Sequence[Schedule]
    ) -> _adaptive_model.Known:
        calls.append(len(known.tables))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return honest(known, schedules)

    ledger = Ledger.open(tmp_path / "ledger.db")
    with patched(_adaptive_rounds, "fitted", value=interrupted), pytest.raises(KeyboardInterrupt):
        gb.synthesize(frame, schema, METHOD, out=tmp_path / "rel", ledger=ledger)

    assert reserved(ledger) == 1
    assert [name for name in os.listdir(tmp_path) if name.startswith(("rel", ".rel"))] == []
    again = gb.synthesize(frame, schema, METHOD, out=tmp_path / "rel", ledger=ledger, rows=50)
    assert len(again.sets[0]) == 50
    assert reserved(ledger) == 2


def test_too_little_memory_is_refused_before_anything_is_charged(
    tmp_path: Path, schema: Schema, frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "default_limit", lambda: 1 << 20)
    ledger = Ledger.open(tmp_path / "ledger.db")

    with pytest.raises(ResourceLimit, match="of memory"):
        gb.synthesize(frame, schema, METHOD, out=tmp_path / "rel", ledger=ledger)

    assert reserved(ledger) == 0
    assert not (tmp_path / "rel").exists()


def test_the_plan_counts_chains_candidates_and_goals() -> None:
    sizes = (10,) * 100

    need = AdaptiveGibbs()._split(schema_of(*sizes)).memory()

    arrays = 3 * 65_536 * 100 + 4950 * 100 * (24 + 3 * 8) + 16_000_000 * 24
    assert arrays < need < 1 << 30
    assert AdaptiveGibbs().plan(schema_of(*sizes), None).memory_bytes > need


def test_cells_of_all_triples_are_counted_without_listing_them() -> None:
    assert cells_of_triples((2, 3, 1, 5, 7)) == 2 * 3 * 5 + 2 * 3 * 7 + 2 * 5 * 7 + 3 * 5 * 7
    assert cells_of_triples((4, 5)) == 0


@pytest.mark.slow
def test_a_fit_ends_no_further_from_its_tables_than_it_began() -> None:
    sizes = (40, 40, 40, 40, 40)
    rows = np.repeat(np.random.default_rng(1).integers(0, 40, (4_000, 1)), 5, axis=1)
    began, ended = [], []
    honest, planting = _adaptive_model.fit, _adaptive_model.planted

    def planted(model: Any, chains: Any, wanted: Any, count: int | None) -> Any:
        found = planting(model, chains, wanted, count)
        began.append(gap_of(*found, wanted))
        return found

    def astray(model: Any, chains: Any, wanted: Any, schedule: Schedule, **more: Any) -> Any:
        done = honest(model, chains, wanted, schedule, **more)
        shuffled = np.random.default_rng(0).permuted(done.chains.state, axis=1)
        return done._replace(chains=replace(done.chains, state=np.ascontiguousarray(shuffled)))

    fitted = _adaptive_rounds.fitted

    def watched(known: _adaptive_model.Known, schedules: Sequence[Schedule]) -> Any:
        after = fitted(known, schedules)
        ended.append(gap_of(after.model, after.chains, _adaptive_model.targets(after)))
        return after

    with (
        patched(_adaptive_model, "planted", value=planted),
        patched(_adaptive_model, "fit", value=astray),
        patched(_adaptive_rounds, "fitted", value=watched),
    ):
        ran(AdaptiveGibbs(epsilon=3.0), schema_of(*sizes), rows)

    assert len(ended) > 1
    assert all(after <= 1.05 * before for before, after in zip(began, ended, strict=False))
