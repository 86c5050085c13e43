"""Error trackers keep the variables of frames: behind an error of gibbous there is no record in them."""

from __future__ import annotations

import errno
import gc
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core import boundary
from gibbous.core.tables import Tables
from gibbous.privacy.curator import Curator
from gibbous.write import durable_files

MARKER, ROWS = "Zaphod-SECRET-7", 1237
LEVELS = (MARKER, "b", "c")
SCHEMA = gb.Schema(
    (gb.Column("x", "nominal", levels=LEVELS), gb.Column("y", "nominal", levels=LEVELS)),
    gb.Unit("row"),
)
NARROW = gb.Schema(
    tuple(gb.Column(name, "nominal", levels=("b", "c")) for name in "xy"), gb.Unit("row")
)
SKIPPED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, type)


class Broken(gb.Laplace):
    """A method with a bug, which shows while it has the counts in its hands."""

    def run(self, curator: Curator, rows: int | None, sets: int) -> Tables:
        super().run(curator, rows, sets)
        raise RuntimeError("a bug")


def frame() -> pl.DataFrame:
    values = np.resize(np.array(LEVELS), ROWS)
    return pl.DataFrame({"x": values, "y": values[::-1]})


def stopping(stage: str) -> Callable[[str, int, int], None]:
    def progress(found: str, done: int, total: int) -> None:
        if found.startswith(stage):
            raise KeyboardInterrupt

    return progress


def ragged(folder: Path) -> Path:
    path = folder / "in.csv"
    path.write_text(frame().write_csv() + f"{MARKER}\n")
    return path


def full(folder: Path, patch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full", str(path))

    patch.setattr(durable_files, "write_bytes", fails)
    gb.synthesize(frame(), SCHEMA, gb.Laplace(epsilon=1), rows=9, out=folder / "rel", ledger=new())


def new() -> gb.Ledger:
    return gb.Ledger.ephemeral()


def capped() -> gb.Ledger:
    ledger = new()
    ledger.cap(ledger.dataset(frame(), schema=SCHEMA), Fraction(1, 2), Fraction(0))
    return ledger


def evaluated(folder: Path, **more: Any) -> None:
    release = gb.synthesize(frame(), SCHEMA, gb.Laplace(epsilon=1), rows=50, ledger=new())
    gb.evaluate(frame(), release, SCHEMA, **more)


METHOD = gb.Laplace(epsilon=1)
Case = Callable[[Path, pytest.MonkeyPatch], Any]
CASES: dict[str, Case] = {
    "a value outside its levels": lambda d, _: gb.synthesize(
        frame(), NARROW, METHOD, rows=9, ledger=new()
    ),
    "a line too short": lambda d, _: gb.synthesize(ragged(d), SCHEMA, METHOD, rows=9, ledger=new()),
    "a bug of a method": lambda d, _: gb.synthesize(
        frame(), SCHEMA, Broken(epsilon=1), rows=9, ledger=new()
    ),
    "Ctrl-C while counting": lambda d, _: gb.synthesize(
        frame(), SCHEMA, METHOD, rows=9, ledger=new(), progress=stopping("")
    ),
    "a full disk": full,
    "a cap that is spent": lambda d, _: gb.synthesize(
        frame(), SCHEMA, METHOD, rows=9, ledger=capped()
    ),
    "a fit": lambda d, _: gb.Synthesizer(Broken(epsilon=1), ledger=new()).fit(
        frame(), SCHEMA, rows=9
    ),
    "an evaluation": lambda d, _: evaluated(d, keys="nobody"),
    "an evaluation that is stopped": lambda d, _: evaluated(d, progress=stopping("")),
    "a draft of a schema": lambda d, _: gb.infer_schema(ragged(d)),
    "a name of a data set": lambda d, _: new().dataset(ragged(d)),
}


@pytest.fixture
def caught(tmp_path: Path) -> Callable[[Case], BaseException]:
    def run(case: Case) -> BaseException:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(BaseException) as info:
            case(tmp_path, patch)
        return info.value

    return run


@pytest.mark.parametrize("case", CASES)
def test_m4_no_frame_behind_an_error_holds_records(
    case: str, caught: Callable[[Case], BaseException]
) -> None:
    error = caught(CASES[case])

    assert ours(error)
    assert held(error) == set()


@pytest.mark.parametrize("case", CASES)
def test_m4_saboteur_frames_that_keep_their_variables_are_found(
    case: str, caught: Callable[[Case], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: without the boundary the same walk finds records behind every one of these errors."""
    monkeypatch.setattr(boundary, "_empty_frames", lambda error: None)

    assert held(caught(CASES[case]))


def test_m4_every_public_function_that_handles_tables_is_guarded() -> None:
    functions = {name for name in gb.__all__ if isinstance(getattr(gb, name), types.FunctionType)}

    open_ = {name for name in functions if not hasattr(getattr(gb, name), "__guarded__")}

    public = {"engine", "from_tables", "load_schema", "methods", "plan", "releases"}
    assert open_ == public  # they see no record


def ours(error: BaseException) -> list[types.FrameType]:
    """Frames of gibbous behind an error, and behind those that it came from."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        trace = one.__traceback__
        while trace is not None:
            if "gibbous" in trace.tb_frame.f_globals.get("__name__", "").split("."):
                found.append(trace.tb_frame)
            trace = trace.tb_next
        waiting += [e for e in (one.__cause__, one.__context__) if e is not None]
    return found


def held(error: BaseException) -> set[str]:
    """Variables of frames from which a record can be reached: as text, frame or array."""
    return {
        f"{frame.f_code.co_qualname}:{name}"
        for frame in ours(error)
        for name, value in frame.f_locals.items()
        if MARKER in repr(value) or any(map(is_records, reached(value)))
    } | ({"the error itself"} if MARKER in str(error) else set())


def reached(value: object) -> Iterator[object]:
    """What a variable leads to; schemas name levels, which are public, and are not followed."""
    done, waiting = set[int](), [value]
    while waiting and len(done) < 200_000:
        one = waiting.pop()
        if id(one) in done or isinstance(one, (*SKIPPED, gb.Schema, gb.Column)):
            continue
        done.add(id(one))
        yield one
        if not isinstance(one, types.FrameType | types.TracebackType):
            waiting += gc.get_referents(one)


def is_records(value: object) -> bool:
    if isinstance(value, pl.DataFrame | pl.Series):
        return len(value) >= ROWS
    if isinstance(value, np.ndarray):
        return ROWS in value.shape
    return isinstance(value, bytes) and MARKER.encode() in value
