"""A part of a set may start at any row: the same rows, at no more than two blocks of further work."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.request import PART_ROWS
from gibbous.core.tables import Recipe, Tables
from gibbous.sampling.loglinear.model_rows import ModelRows
from gibbous.sampling.sample import CHUNK, sample, stream
from tests.loglinear import made as models
from tests.loglinear import test_rows as loglinear
from tests.synthesize import test_cell_model_rows as numbers
from tests.synthesize.made import sample_reference
from tests.synthesize.test_sample import chain, gibbs, joint

FAR = 10**10 + 7  # past what 32 bits count

CELLS = Tables(numbers.SMALL, (), Recipe("cells", ()), model=numbers.model())
CLOSED = models.tables(loglinear.SCHEMA, loglinear.CLOSED)
PARTED = Tables(
    chain().schema,
    (),
    Recipe("ancestral", ()),
    parts=(chain(), gibbs()),
    shares=(0.25, 0.75),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tables",
    [
        pytest.param(gibbs(), id="gibbs"),
        pytest.param(joint(), id="joint"),
        pytest.param(CELLS, id="cells"),
        pytest.param(CLOSED, id="closed"),
        pytest.param(PARTED, id="parts"),
    ],
)
def test_rows_far_into_a_set_are_those_of_the_numpy_twin_and_do_not_repeat_the_first(
    tables: Tables,
) -> None:
    found = sample(tables, 1500, seed=3, start=FAR).values

    assert np.array_equal(found, sample_reference(tables, 1500, seed=3, start=FAR).values)
    assert np.array_equal(found[400:], sample(tables, 1100, seed=3, start=FAR + 400).values)
    assert not np.array_equal(found, sample(tables, 1500, seed=3).values)


@pytest.mark.parametrize(("start", "rows"), [(0, 2100), (1, 2100), (650, 1500), (699, 2), (5, 1)])
def test_a_part_of_a_closed_model_draws_at_most_two_blocks_more_than_its_rows_fill(
    start: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, drawn, honest = loglinear.CLOSED.closed, [], ModelRows._drawn

    def counted(self: ModelRows, numbers: np.ndarray, *rest: object) -> np.ndarray:
        drawn.append(int(numbers[0]))
        return honest(self, numbers, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelRows, "_drawn", counted)
    for _ in stream(CLOSED, rows, seed=3, start=start, chunk=300, threads=1):
        pass

    assert sorted(drawn) == sorted(set(drawn)), "a block was drawn twice"
    assert len(drawn) <= rows // size + 2


def test_a_part_is_a_whole_number_of_chunks() -> None:
    assert PART_ROWS % CHUNK == 0
