"""Records stay inside an engine: after close nothing counts, and nothing prints or pickles them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Radix
from gibbous.core.errors import EngineFailure, GibbousError, ResourceLimit, UsageError
from gibbous.core.protocols import Engine
from gibbous.disintegrate import ENGINES, engine
from gibbous.disintegrate.records import LocalEngine
from tests.disintegrate.brute import codes_of, context_of, schema_of

MARK = 173  # a planted code, and a planted number of rows


def planted() -> Codes:
    """173 rows of level 173 of 200."""
    return Codes(schema_of([200, 3]), np.full((2, MARK), [[MARK], [1]], dtype=np.uint8).T, True)


def test_f4_f5_after_close_no_count_can_be_consulted() -> None:
    held = LocalEngine.from_codes(planted())
    context = context_of(planted().schema, (0,))
    held.tally([context])

    held.close()

    with pytest.raises(EngineFailure, match="closed"):
        held.tally([context])
    with pytest.raises(EngineFailure, match="closed"):
        held.tally([])
    with pytest.raises(EngineFailure, match="closed"):
        held.take(planted())
    assert held._store is None
    held.close()  # once more is harmless


def test_counting_before_a_scan_is_refused() -> None:
    with pytest.raises(EngineFailure, match="Call scan first"):
        LocalEngine().tally([context_of(planted().schema, (0,))])


def test_nothing_secret_is_printed_or_pickled() -> None:
    held = LocalEngine.from_codes(planted())
    counts = held.tally([context_of(planted().schema, (0,))])[0]

    for thing in (held, counts):
        for text in (repr(thing), str(thing), f"{thing}"):
            assert str(MARK) not in text
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.deepcopy(thing)


def test_errors_name_no_value_and_no_count() -> None:
    schema = planted().schema
    held = LocalEngine.from_codes(planted(), memory_limit=1000)
    wrong = Codes(schema_of([MARK, 3]), planted().values, True)  # code 173 of 173 levels

    faults: list[GibbousError] = []
    for attempt in (
        lambda: held.tally([context_of(schema, (0, 1))]),
        lambda: held.tally([Context((5,), (), (3,), (), Radix())]),
        lambda: LocalEngine.from_codes(wrong),
    ):
        with pytest.raises(GibbousError) as caught:
            attempt()
        faults.append(caught.value)

    for fault in faults:
        assert str(MARK) not in fault.render()
        assert fault.__cause__ is None
        assert fault.__suppress_context__ or fault.__context__ is None


@pytest.mark.parametrize(
    "context",
    [
        Context((0,), (2,), (200,), (4,)),
        Context((-1,), (), (3,), ()),
        Context((0,), (), (10,), ()),
        Context((1,), (0,), (3,), (100,)),
    ],
    ids=["no column", "negative", "target size", "parent size"],
)
def test_contexts_of_another_schema_are_refused(context: Context) -> None:
    with pytest.raises(EngineFailure) as caught:
        LocalEngine.from_codes(planted()).tally([context])

    assert caught.value.code == "GB11-CONTEXT"


def test_signed_codes_are_refused() -> None:
    with pytest.raises(EngineFailure):
        LocalEngine.from_codes(Codes(schema_of([3]), np.zeros((2, 1), dtype=np.int64)))


def test_input_is_not_modified() -> None:
    codes = codes_of(schema_of([5, 7]), 100, np.random.default_rng(1))
    before = codes.values.copy()

    LocalEngine.from_codes(codes).tally(
        [context_of(codes.schema, (0,), (1,), seen=s) for s in (False, True)]
    )

    assert np.array_equal(codes.values, before)
    assert codes.values.flags.writeable


def test_more_than_63_bits_on_one_side_are_refused_by_name() -> None:
    schema = schema_of([100] * 20)
    held = LocalEngine.from_codes(codes_of(schema, 10, np.random.default_rng(1)))

    with pytest.raises(ResourceLimit, match=r"about 10\^40 levels") as caught:
        held.tally([context_of(schema, tuple(range(20)), seen=True)])

    assert caught.value.exit_code == 10


def test_the_factory_makes_each_engine_and_refuses_other_names() -> None:
    assert set(ENGINES) >= {"local", "numpy", "duckdb"}
    for name in ("local", "numpy", "duckdb"):  # all are names of one engine
        made = engine(name)
        assert isinstance(made, Engine)
        assert (type(made), made.name) == (LocalEngine, "local")
    with pytest.raises(UsageError, match=r"'local', .*'numpy'"):
        engine("abacus")
