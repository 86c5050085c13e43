"""Mutant 13: a build whose executors draw noise, so that a task that is done again draws it again."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gibbous.core.context import Context
from gibbous.core.tables import Counts
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.spark import partial as tasks
from gibbous.disintegrate.spark import pieces
from tests.disintegrate import brute
from tests.frame.tree import SRC
from tests.spark import tables

SHIPPED = ("partial", "encoding", "pieces", "shield", "slabs")
NOISE = ("gibbous.privacy", "opendp", "random", "secrets", "numpy.random")
Counting = Callable[[tasks.CountJob, Any], Iterator[Any]]


def test_m13_what_is_shipped_to_executors_reaches_no_maker_of_noise() -> None:
    texts = {name: _spark(name).read_text(encoding="utf-8") for name in SHIPPED}

    assert not reached(texts)


def test_m13_the_mutant_that_imports_noise_in_a_task_is_flagged() -> None:
    texts = {name: _spark(name).read_text(encoding="utf-8") for name in SHIPPED}
    line = "    read = np.zeros(2, dtype=np.int64)\n"
    assert texts["partial"].count(line) == 1
    for drawn in (
        "from gibbous.privacy.entropy import geometric",
        "import secrets",
        "os.urandom(8)",
    ):
        mutant = texts | {"partial": texts["partial"].replace(line, f"{line}    {drawn}\n")}

        assert reached(mutant), drawn


def test_m13_a_task_that_is_done_again_counts_the_same() -> None:
    assert steady(tasks.counted)


def test_m13_the_mutant_that_draws_in_a_task_is_flagged() -> None:
    def noisy(job: tasks.CountJob, batches: Any) -> Iterator[Any]:
        for batch in tasks.counted(job, batches):
            place, part, cells = (column[0].as_py() for column in batch.columns)
            if place >= 0:
                values = np.frombuffer(cells, dtype=np.int64, offset=1).copy()
                values += np.frombuffer(os.urandom(len(values)), dtype=np.int8)
                cells = cells[:1] + values.tobytes()
            yield pa.RecordBatch.from_pydict({"context": [place], "part": [part], "cells": [cells]})

    assert not steady(noisy)


def reached(texts: dict[str, str]) -> list[str]:
    """Makers of noise that modules import, or reach through what they import at their top.

    Args:
        texts: name of a module of the Spark package -> its source; looked at to the last line.
    """
    found: list[str] = []
    todo: list[str] = []
    for name, text in texts.items():
        tree = ast.parse(text)
        todo += _imported(ast.walk(tree))
        found += [
            f"{name}: os.urandom"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in ("urandom", "getrandom")
        ]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.startswith(NOISE):
            found.append(name)
        path = SRC.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if name.startswith("gibbous.") and path.exists():
            todo += _imported(iter(ast.parse(path.read_text(encoding="utf-8")).body))
    return found


def steady(counted: Counting) -> bool:
    """Whether a task says the same when it is done again, and what the truth says."""
    codes = brute.codes_of(brute.schema_of([4, 5]), 500, np.random.default_rng(1))
    context = brute.context_of(codes.schema, (0,), (1,))
    truth = tables.digest(LocalEngine.from_codes(codes).tally([context]))
    found = {tables.digest((_counts(counted, codes, context),)) for _ in range(2)}
    return found == {truth}


def _counts(counted: Counting, codes: brute.Codes, context: Context) -> Counts:
    job = tasks.CountJob(codes.schema, (), (), (context,), (), 1, 1 << 30)
    block = np.ascontiguousarray(codes.by_column).tobytes()
    row = {"rows": [codes.rows], "sum": [0], "codes": [block], "numbers": [b""]}
    part = pieces.Part(context, 0)
    for batch in counted(job, [pa.RecordBatch.from_pydict(row)]):
        place, _, cells = (column[0].as_py() for column in batch.columns)
        if place == 0:
            part.add(cells)
    return pieces.counts(context, [part])


def _imported(nodes: Iterator[Any]) -> list[str]:
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    return names


def _spark(name: str) -> Path:
    return SRC / "disintegrate" / "spark" / f"{name}.py"
