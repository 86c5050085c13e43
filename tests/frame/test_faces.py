"""What the Python face shows and answers: short reprs without data, foreign words, early refusals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import GibbousError, UnknownKeyword, UsageError
from gibbous.core.keywords import _hints
from gibbous.core.kinds import is_a
from gibbous.core.request import Output

SECRET = "Zaphod-SECRET-7"
SCHEMA = gb.Schema(
    (
        gb.Column("name", "nominal", levels=("a", "b", SECRET)),
        gb.Column("age", "numeric", edges=(0, 40, 110), integer=True),
    )
)
SCHEMA_OF_ROWS = replace(SCHEMA, unit=gb.Unit("row"))
METHOD = gb.NoisyPegs(epsilon=1, delta=1e-6)
FRAME = pl.DataFrame({"name": ["a", "b", SECRET] * 40, "age": [1, 50, 77] * 40})

FOREIGN: list[tuple[Callable[..., object], str, str]] = [
    (gb.synthesize, "random_state", "random_state: use seed; it seeds sampling only"),
    (gb.synthesize, "n_samples", "n_samples: use rows"),
    (gb.synthesize, "m", "m: use sets"),
    (gb.synthesize, "eps", "eps: use epsilon"),
    (gb.synthesize, "categorical_columns", "kind = 'nominal'"),
    (partial(gb.synthesize, FRAME, SCHEMA), "rwos", "Did you mean 'rows'?"),
    (partial(gb.synthesize, FRAME, SCHEMA, "sbhg"), "block", "block is a parameter of the method"),
    (gb.plan, "seed", "synthesize takes it"),
    (gb.NoisyPegs, "eps", "eps: use epsilon"),
    (gb.Pegs, "rows", "synthesize takes it"),
    (gb.Sbhg, "epsilom", "Did you mean 'epsilon'?"),
    (gb.Synthesizer, "random_state", "random_state: use seed"),
    (gb.Synthesizer(METHOD).sample, "n_samples", "n_samples: use n"),
    (gb.Synthesizer(METHOD).fit, "zzz", "Leave it out."),
]


@pytest.mark.parametrize(
    ("function", "word", "answer"), FOREIGN, ids=lambda v: getattr(v, "__name__", str(v))[:30]
)
def test_a_word_of_another_tool_is_answered_with_ours(
    function: Callable[..., object], word: str, answer: str
) -> None:
    with pytest.raises(UnknownKeyword) as caught:
        function(**{word: 1})

    assert isinstance(caught.value, TypeError)
    assert answer in str(caught.value)
    assert caught.value.exit_code == 2


class Odd:
    """Of no kind that anything takes."""


OWN_CHECKS: dict[Any, Any] = {
    gb.Column: {"name": "a", "kind": "nominal"},
    gb.Discovery: {"names": ("a",), "unit": gb.Unit()},
}
NOT_CALLED = {
    gb.Claim,
    gb.GibbousError,
    gb.Ledger,
    gb.Plan,
    gb.Release,
    gb.SigningKey,
    gb.Study,
    gb.Synthesizer,
}
HOLDERS = (gb.Discovery, gb.Ledger, gb.Release, gb.Schema, gb.SigningKey, gb.Study, gb.Synthesizer)
NOT_FACES = {
    "get_params", "set_params", "reserve", "find", "bought", "recall", "number", "named", "check",
    "index", "named_by", "typed", "discover", "sign", "scan", "front", "ru_map", "write",
}  # fmt: skip
FACES = [getattr(gb, name) for name in gb.__all__ if getattr(gb, name) not in NOT_CALLED] + [
    function
    for holder in HOLDERS
    for name, function in inspect.getmembers(holder, callable)
    if not name.startswith("_") and name not in NOT_FACES
]


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__qualname__)
def test_every_public_function_refuses_what_is_of_no_kind_that_it_takes(
    face: Callable[..., object],
) -> None:
    hints = _hints(face.__init__ if isinstance(face, type) else face)
    words = [word for word, hint in hints.items() if face in OWN_CHECKS or not is_a(Odd(), hint)]
    given = OWN_CHECKS.get(face, {})

    for word in set(words) - {"self"}:
        with pytest.raises(GibbousError, match="no budget was spent"):
            face(**given | {word: Odd()})


@pytest.mark.parametrize(
    "call",
    [
        lambda: gb.synthesize(FRAME, SCHEMA, METHOD, sign=3),
        lambda: gb.synthesize(FRAME, SCHEMA, METHOD, progress=3),
        lambda: gb.synthesize(FRAME, SCHEMA, METHOD, engine=3),
        lambda: gb.synthesize(FRAME, SCHEMA, METHOD, ledger=3),
        lambda: gb.audit(3),
        lambda: gb.audit("laplace", runs="x"),
        lambda: gb.Schema(3, 4),
        lambda: gb.Schema((gb.Column("a", "nominal", levels=("x",)), 3)),
        lambda: gb.verify(3),
        lambda: gb.load(3),
        lambda: gb.report(3),
        lambda: gb.import_schema(3),
        lambda: gb.Ledger.open(3),
        lambda: gb.SigningKey.load(3),
        lambda: gb.Schema.load(3),
        lambda: gb.Rule(3),
        lambda: gb.Rule(columns=("a", 3), forbidden=(("x", "y"),)),
    ],
)
def test_a_wrong_type_is_a_sentence(call: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="no budget was spent"):
        call()


def test_numbers_lists_and_paths_of_other_libraries_are_what_they_stand_for() -> None:
    rows: Any = np.int64(9)

    assert gb.plan(SCHEMA, METHOD, rows=rows).rows == 9
    columns: Any = [SCHEMA["name"]]
    assert gb.Schema(columns).names == ("name",)
    with pytest.raises(UsageError):
        gb.plan(SCHEMA, METHOD, rows=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"imprint": 3},
        {"format": "feather"},
        {"seed": "7"},
        {"seed": 1.5},
        {"rows": 2.5},
        {"sets": 0},
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_before_the_charge(
    wrong: dict[str, object], tmp_path: Path
) -> None:
    ledger = gb.Ledger.ephemeral()

    with pytest.raises(UsageError, match="no budget was spent"):
        gb.synthesize(FRAME, SCHEMA, METHOD, ledger=ledger, out=tmp_path / "out", **wrong)  # type: ignore[arg-type]

    assert not ledger.entries()


@pytest.mark.parametrize(
    "wrong",
    [{"imprint": 3}, {"imprint": {"issuer": "x"}}, {"out": 3}, {"csv_raw": "no"}, {"types": (3,)}],
    ids=str,
)
def test_a_request_holds_what_is_written_to_its_types(wrong: dict[str, Any]) -> None:
    """The command line, the studio and `synthesize` all hand over an `Output`."""
    with pytest.raises(UsageError, match="of Output is not of a kind"):
        Output(**wrong)


def test_reprs_are_one_short_line_and_show_no_data() -> None:
    synthesizer = gb.Synthesizer(METHOD, seed=3, ledger=gb.Ledger.ephemeral())
    release = synthesizer.fit(FRAME, SCHEMA, rows=5).release_
    draft = gb.Schema.infer(FRAME)

    for thing in (
        SCHEMA, SCHEMA["name"], draft, draft["name"], METHOD, synthesizer, release, release.claim,
        release.plan, release.receipt, release.tables, synthesizer.ledger,
    ):  # fmt: skip
        text = repr(thing)
        assert len(text) < 400, text
        assert "\n" not in text
        assert SECRET not in text


def test_a_plan_prints_as_a_short_table_with_the_total_first() -> None:
    lines = str(gb.plan(SCHEMA, METHOD, rows=1000, sets=2)).splitlines()

    assert lines[0] == "noisy_pegs, sets: 2, each of 1,000 rows"
    assert lines[1] == "total: epsilon = 1, delta = 1e-06 in total (add or remove one, proven)"
    assert 5 < len(lines) < 15


def test_a_synthesizer_is_cloned_with_its_parameters_and_without_its_fit() -> None:
    fitted = gb.Synthesizer(METHOD, seed=3, ledger=gb.Ledger.ephemeral()).fit(FRAME, SCHEMA)

    clone = fitted.__sklearn_clone__()  # what sklearn.base.clone calls

    assert clone is not fitted
    assert clone.get_params() == fitted.get_params()
    assert clone.ledger is fitted.ledger
    assert not hasattr(clone, "release_")


def test_a_call_without_what_it_needs_is_answered_in_a_sentence() -> None:
    known = gb.Discovery.of(FRAME, gb.Unit("row"))
    for call in (
        lambda: gb.Schema.discover(FRAME, known),
        lambda: gb.discover_schema(FRAME, known),
    ):
        with pytest.raises(
            UnknownKeyword, match=r"without epsilon and delta.* stated, never assumed"
        ):
            call()
    with pytest.raises(TypeError, match="Pass synthetic="):
        gb.evaluate(FRAME)  # type: ignore[call-arg]


def test_a_release_is_evaluated_under_its_own_schema() -> None:
    release = gb.synthesize(FRAME, SCHEMA_OF_ROWS, METHOD, rows=30, ledger=gb.Ledger.ephemeral())

    found, asked = gb.evaluate(FRAME, release, only="tv1"), SCHEMA_OF_ROWS
    assert found.items == gb.evaluate(FRAME, release, asked, only="tv1").items
    with pytest.raises(UsageError, match="No schema was given"):
        gb.evaluate(FRAME, release.sets[0])
