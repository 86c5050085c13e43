"""What a run on Spark needs: passes, bytes that move, memory; from public facts and a number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gibbous.core.context import Context
from gibbous.core.plan import Plan
from gibbous.core.schema import Schema
from gibbous.disintegrate.spark.pieces import DENSE, dense_here

TABLES = 64 << 20  # bytes of tables that one task fills in a pass
DIRECT = 64 << 20  # bytes of partial counts up to which the driver adds them up itself
RESULT = 512 << 20  # bytes of counts that come to the driver in one pass
ADDER = 32 << 20  # bytes of partial counts that one task adds up
ADDERS = 512
GATHER = 32 << 20  # bytes of codes that one task counts at once
PYTHON = 300 << 20  # bytes of a worker with its libraries and a slice of records, measured
DRIVER = 300 << 20  # bytes of the JVM of the driver beside counts


@dataclass(frozen=True, slots=True)
class Pass:
    """Contexts that are counted in one pass over the codes.

    Attributes:
        places: their positions.
        moved: bytes of partial counts that leave the tasks, at most.
        result: bytes of counts that come to the driver, at most.
        shuffled: whether partial counts are added up by executors before.
        adders: tasks that add them up.
        buckets: parts that the cells of a large table are spread over.
    """

    places: tuple[int, ...]
    moved: int
    result: int
    shuffled: bool
    adders: int
    buckets: int


def passes(contexts: Sequence[Context], rows: int, partitions: int) -> tuple[Pass, ...]:
    """Divide contexts into passes, so that tasks and driver keep within memory."""
    groups: list[list[int]] = []
    tables = result = 0
    for place, context in enumerate(contexts):
        table = 8 * context.cells if dense_here(context) else 0
        whole = result_bytes(context, rows)
        if not groups or tables + table > TABLES or result + whole > RESULT:
            groups.append([])
            tables = result = 0
        groups[-1].append(place)
        tables, result = tables + table, result + whole
    return tuple(_pass(group, contexts, rows, partitions) for group in groups)


def result_bytes(context: Context, rows: int) -> int:
    """Bytes of a context's counts on the driver, at most."""
    if context.support == "dense":
        return 8 * context.cells
    return 24 * min(rows, context.cells)


def moved_bytes(context: Context, rows: int, partitions: int) -> int:
    """Bytes of partial counts of a context that leave the tasks, at most."""
    if dense_here(context):
        return min(8 * context.cells * partitions, 16 * max(rows, 1))
    return 24 * min(rows, context.cells * partitions)


def tally_bytes(contexts: Sequence[Context], rows: int, partitions: int) -> int:
    """Bytes that a tally needs on the driver at its peak, an upper bound."""
    counts = sum(result_bytes(context, rows) for context in contexts)
    largest = max((result_bytes(context, rows) for context in contexts), default=0)
    arriving = max(
        (
            min(one.moved, DIRECT) if not one.shuffled else 3 * one.result
            for one in passes(contexts, rows, partitions)
        ),
        default=0,
    )
    return counts + 3 * largest + arriving


def estimate(plan: Plan, schema: Schema, rows: int, partitions: int) -> dict[str, Any]:
    """What a run on Spark needs, without touching a record.

    Args:
        plan: its `cells` are taken as one table each 2^20 cells or part of it.
        rows: number of rows; public, or a guess.
    Returns:
        passes: over the source (1, and 1 more over columns of days with a time of day) and over the
            kept codes (at least: a method that chooses in rounds counts in each); bytes, at most unless
            said otherwise: `codes` kept by the executors together, `shuffle` that moves between them,
            `collected` by the driver, `driver` memory, `task` memory of one Python worker at its peak,
            about; `notes` in words.
    """
    width = len(schema) * schema.code_dtype().itemsize + 8 * len(plan.numbers)
    kept = rows * width
    person = schema.unit is not None and schema.unit.column is not None
    cut = kept + 16 * rows if person else 0
    table = 8 * plan.cells
    counting = max(1, math.ceil(table / TABLES))
    moved = min(table * partitions, 16 * rows * max(1, math.ceil(plan.cells / DENSE)))
    shuffled = moved > DIRECT * counting
    share = math.ceil(rows / max(1, partitions)) * width
    gathered = min(3 * share, 3 * GATHER + 24 * GATHER // max(1, width - 8 * len(plan.numbers)))
    meeting = 3 * (share + cut // max(1, partitions)) if person else 0
    return {
        "source_passes": 1,
        "count_passes": max(counting, len(plan.spends)),
        "codes": kept,
        "shuffle": max(cut, kept) + (moved if shuffled else 0),
        "collected": table if shuffled else moved,
        "driver": DRIVER + 4 * table + DIRECT,
        "task": PYTHON + TABLES + max(gathered, meeting),
        "notes": (
            "Bytes are bounds for rows that all differ; real tables move less.",
            "A method that chooses in rounds counts in each: passes are at least these.",
            "Rows move once, as codes, so that the rows of a person meet."
            if person
            else "Codes move once where --partitions is given; without it they stay.",
        ),
    }


def _pass(group: list[int], contexts: Sequence[Context], rows: int, partitions: int) -> Pass:
    chosen = [contexts[place] for place in group]
    moved = sum(moved_bytes(context, rows, partitions) for context in chosen)
    shuffled = moved > DIRECT and partitions > 1
    adders = min(ADDERS, max(2, math.ceil(moved / ADDER))) if shuffled else 1
    return Pass(
        tuple(group),
        moved,
        sum(result_bytes(context, rows) for context in chosen),
        shuffled,
        adders,
        buckets=2 * adders if shuffled else 1,
    )
