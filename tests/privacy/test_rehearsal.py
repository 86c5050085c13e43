"""What does not fit is refused while nothing is charged, and nothing is counted to find that out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous import engines
from gibbous.contract.cases import cases
from gibbous.core.errors import OutputNotWritten, ResourceLimit
from gibbous.core.schema import Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import registry
from gibbous.mechanisms.sbhg import Sbhg
from gibbous.privacy.curator import Curator
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.spend import rehearse
from gibbous.write.package import Package
from tests.disintegrate.brute import codes_of, context_of, schema_of
from tests.mechanisms.test_plans import NAMES


class Untouched(LocalEngine):
    """An engine whose records must not be counted."""

    __slots__ = ()

    def tally(self, contexts: Any, *, progress: Any = None) -> NoReturn:
        raise AssertionError("counted")

    sums = recoded = split = tally  # type: ignore[assignment]


def rehearsed(mechanism: Any, engine: Any, schema: Schema) -> None:
    relation = getattr(mechanism, "relation", "add_remove")
    rehearse(mechanism, engine, schema, relation=relation, plan=mechanism.plan(schema, 20, 1))


@pytest.mark.parametrize("name", NAMES)
def test_n1_the_first_tables_of_every_method_are_checked_and_no_record_is_counted(
    name: str,
) -> None:
    case, method = cases()[0], registry.load(name)()

    rehearsed(method, Untouched.from_codes(case.codes()), case.schema)
    with pytest.raises(ResourceLimit) as caught:
        rehearsed(method, Untouched.from_codes(case.codes(), memory_limit=0), case.schema)

    assert caught.value.state == "Nothing was released; no budget was spent."
    assert caught.value.__context__ is None


def test_an_engine_checks_what_it_counts_and_says_what_was_charged() -> None:
    schema = schema_of([90, 80, 70])
    codes = codes_of(schema, 2_000, np.random.default_rng(1))
    contexts = [context_of(schema, (0,), (1, 2), seen=True)]
    need = LocalEngine.from_codes(codes).estimate(contexts, 2_000)

    LocalEngine.from_codes(codes, memory_limit=need).check(contexts)
    tight = LocalEngine.from_codes(codes, memory_limit=need - 1)
    with pytest.raises(ResourceLimit, match="no budget was spent"):
        tight.check(contexts)
    with pytest.raises(ResourceLimit, match="reserved stays spent"):
        tight.tally(contexts)

    tight.check(contexts, parts=2)  # of half the records each


@pytest.mark.parametrize("parents", [1, 2])
def test_sbhg_is_checked_with_the_largest_tables_that_it_may_choose(
    parents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, method, told = np.random.default_rng(parents), Sbhg(parents=parents, epsilon=30), [0]
    honest = LocalEngine.estimate

    def estimate(engine: LocalEngine, contexts: Any, rows: int) -> int:
        told.append(honest(engine, contexts, rows))
        return told[-1]

    monkeypatch.setattr(LocalEngine, "estimate", estimate)
    for _ in range(3):
        schema = schema_of([int(size) for size in rng.integers(2, 40, 4)])
        engine = LocalEngine.from_codes(codes_of(schema, 1_000, rng))
        rehearsed(method, engine, schema)
        allowed = max(told)
        plan = method.plan(schema, 20, 1)
        told.clear()

        method.run(Curator(engine, plan.total, schema, relation=method.relation), 20, 1)

        assert max(told) <= allowed


def test_what_is_complete_is_finished_with_less_memory_than_counting_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"x": [0, 1] * 100, "y": [0, 0, 1, 1] * 50})
    columns = tuple(gb.Column(name, "ordinal", levels=(0, 1)) for name in "xy")
    ledger, honest = Ledger.ephemeral(), Package.write_sets

    def run(memory_limit: int | None) -> None:
        gb.synthesize(
            frame, gb.Schema(columns, gb.Unit("row")), gb.Laplace(), rows=10, seed=1,
            out=tmp_path / "rel", ledger=ledger, engine=gb.engine("numpy", memory_limit=memory_limit),
        )  # fmt: skip

    def fail(*_: Any, **__: Any) -> NoReturn:
        raise OutputNotWritten("WRITE", "The disk is gone.", "It is there.", "Attach it.")

    monkeypatch.setattr(Package, "write_sets", fail)
    with pytest.raises(OutputNotWritten):
        run(None)
    monkeypatch.setattr(Package, "write_sets", honest)

    run(1)

    assert [entry.kind for entry in ledger.entries()] == ["reserve", "commit"]


def test_an_engine_made_with_more_memory_passes_the_check_of_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "default_limit", lambda: 1)
    frame = pl.DataFrame({"x": [0, 1] * 100})
    schema = gb.Schema((gb.Column("x", "ordinal", levels=(0, 1)),), gb.Unit("row"))
    more = gb.engine("numpy", memory_limit=1 << 28)

    with pytest.raises(ResourceLimit, match="no budget was spent"):
        gb.synthesize(frame, schema, gb.Laplace(), rows=5, ledger=Ledger.ephemeral())
    release = gb.synthesize(
        frame, schema, gb.Laplace(), rows=5, engine=more, ledger=Ledger.ephemeral()
    )

    assert len(release.sets[0]) == 5
