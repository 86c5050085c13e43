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
    """Divide contexts into passes, so that tasks and driver keep within memory.

    Args:
        rows: number of rows.
        partitions: of the codes.
    """
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


def estimate(
    plan: Plan | Sequence[Context],
    schema: Schema,
    rows: int,
    partitions: int,
) -> dict[str, Any]:
    """What a run on Spark needs, without touching a record.

    Args:
        plan: a plan (its `cells` are taken as one table each 2^20 cells or part of it), or the contexts
            themselves, which gives closer figures.
        schema: public.
        rows: number of rows; public, or a guess.
        partitions: of the records.
    Returns:
        passes: over the source (1, and 1 more over columns of days with a time of day) and over the
            kept codes (at least: a method that chooses in rounds counts in each); bytes, at most unless
            said otherwise: `codes` kept by the executors together,
            `shuffle` that moves between them, `collected` by the driver, `driver` memory, `task` memory
            of one Python worker at its peak, about; `notes` in words.
    """
    contexts = None if isinstance(plan, Plan) else tuple(plan)
    width = schema.code_dtype().itemsize
    numbers = len(plan.numbers) if isinstance(plan, Plan) else 0
    kept = rows * (len(schema) * width + 8 * numbers)
    person = schema.unit is not None and schema.unit.column is not None
    cut = kept + 16 * rows if person else 0
    if contexts is None:
        assert isinstance(plan, Plan)
        counting = _of_cells(plan.cells, rows, partitions)
        counting["count_passes"] = max(counting["count_passes"], len(plan.spends))
    else:
        found = passes(contexts, rows, partitions)
        counting = {
            "count_passes": len(found),
            "moved": sum(one.moved for one in found if one.shuffled),
            "collected": sum(one.result if one.shuffled else one.moved for one in found),
            "driver": tally_bytes(contexts, rows, partitions),
        }
    share = math.ceil(rows / max(1, partitions)) * (len(schema) * width + 8 * numbers)
    gathered = min(3 * share, 3 * GATHER + 24 * GATHER // max(1, len(schema) * width))
    meeting = 3 * (share + cut // max(1, partitions)) if person else 0
    notes = ["Bytes are bounds for rows that all differ; real tables move less."]
    if contexts is None:
        notes.append("A method that chooses in rounds counts in each: passes are at least these.")
    if person:
        notes.append("Rows move once, as codes, so that the rows of a person meet.")
    else:
        notes.append("Codes move once where --partitions is given; without it they stay.")
    return {
        "source_passes": 1,
        "count_passes": counting["count_passes"],
        "codes": kept,
        "shuffle": max(cut, kept) + counting["moved"],
        "collected": counting["collected"],
        "driver": DRIVER + counting["driver"],
        "task": PYTHON + TABLES + max(gathered, meeting),
        "notes": tuple(notes),
    }


def _of_cells(cells: int, rows: int, partitions: int) -> dict[str, int]:
    """The same from a number of cells alone."""
    tables = max(1, math.ceil(cells / DENSE))
    counting = max(1, math.ceil(8 * cells / TABLES))
    moved = min(8 * cells * partitions, 16 * rows * tables)
    shuffled = moved > DIRECT * counting
    return {
        "count_passes": counting,
        "moved": moved if shuffled else 0,
        "collected": 8 * cells if shuffled else moved,
        "driver": 4 * 8 * cells + DIRECT,
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
