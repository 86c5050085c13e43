"""Runs whose paid answers are fixed: all that is left must be equal for all records.

Between the answers (noisy tables, picks) a run may look at nothing else. Groups of levels that were
merged on the counts of the records would come out here, and so would any other way around.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import pytest

from gibbous.contract.runs import described
from gibbous.contract.saboteurs import patched
from gibbous.core.schema import Schema
from gibbous.core.tables import LogLinear, Merged
from gibbous.mechanisms import _adaptive_model
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.structure.cliques import Limits
from gibbous.structure.smoothing import Components, added
from gibbous.write.release_digest import model_arrays, model_json
from tests.adaptive_gibbs.made import chain_rows, ran, schema_of
from tests.blinded import blinded

SIZES = (200, 3, 4)
SCHEMA = schema_of(*SIZES)
ROWS = chain_rows(SIZES, 900)
OTHERS = np.vstack([ROWS[:-300], np.tile([[199, 2, 0]], (300, 1))])


def everything(rows: np.ndarray) -> tuple[object, ...]:
    """All that a blind run says: its tables, and the model with its groups of levels."""
    schema = schema_of(*SIZES[: rows.shape[1]])
    with blinded():
        tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema, rows)
    assert isinstance(tables.model, LogLinear)
    arrays = {name: one.tobytes() for name, one in model_arrays(tables.model).items()}
    return (*described(tables), model_json(tables.model), arrays)


def merging_on_records(rows: np.ndarray) -> AbstractContextManager[None]:
    """A broken build: which levels are rare is read off the records."""
    honest = _adaptive_model.merging

    def merging(known: _adaptive_model.Known, limits: Limits) -> Sequence[Merged | None]:
        raw = [np.bincount(rows[:, j], minlength=n) for j, n in enumerate(known.schema.sizes)]
        entries = [((j,), counts.astype(np.float64), 1.0) for j, counts in enumerate(raw)]
        return honest(_with(known, added(Components(), entries)), limits)

    return patched(_adaptive_model, "merging", value=merging)


def _with(known: _adaptive_model.Known, components: Components) -> _adaptive_model.Known:
    return _adaptive_model.Known(known.schema, known.seen, components=components, rows=known.rows)


def test_runs_with_the_same_answers_are_the_same_whatever_the_records() -> None:
    one, two = everything(ROWS), everything(OTHERS)

    assert one == two
    model = one[-2]
    assert isinstance(model, dict)
    assert model["merged"] == [0]


@pytest.mark.parametrize("other", [OTHERS, ROWS[:-1]], ids=["many", "one"])
def test_merging_on_the_counts_of_the_records_is_caught(other: np.ndarray) -> None:
    found = []
    for rows in (ROWS[:, :2], other[:, :2]):  # two columns: their table is bought at once
        with merging_on_records(rows):
            found.append(everything(rows))

    assert found[0] != found[1]


def test_the_schema_that_merged_tables_are_counted_under_is_the_coarser_one() -> None:
    known = _known(SCHEMA, ROWS)

    begun = _adaptive_model.begun(known, Limits())

    assert begun.model is not None
    assert begun.sizes == begun.model.sizes
    assert begun.schema.sizes == SIZES
    assert [len(one) for one in begun.shares] == list(begun.sizes)


def _known(schema: Schema, rows: np.ndarray) -> _adaptive_model.Known:
    counts = [np.bincount(rows[:, j], minlength=n) for j, n in enumerate(schema.sizes)]
    entries = [((j,), one.astype(np.float64), 25.0) for j, one in enumerate(counts)]
    parts = added(Components(), entries)
    return _adaptive_model.Known(schema, schema, components=parts, rows=float(len(rows)))
