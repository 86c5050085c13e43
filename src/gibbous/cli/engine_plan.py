"""What an engine will need for a plan: passes, bytes moved and kept; from public numbers alone."""

from __future__ import annotations

from typing import Any

from gibbous.cli import show
from gibbous.core.errors import UsageError
from gibbous.core.plan import Plan
from gibbous.core.request import Performance
from gibbous.core.schema import Schema

PARTITIONS = 200  # what Spark takes by default
_WORDS = {
    "source_passes": "passes over the source",
    "count_passes": "passes over the kept codes",
    "codes": "codes kept by the engine",
    "shuffle": "moved between executors",
    "collected": "collected by the driver",
    "driver": "memory of the driver",
    "task": "memory of one Python worker",
    "memory": "memory for records and counting",
}


def needs(made: Plan, schema: Schema, engine: Performance, records: int | None) -> dict[str, Any]:
    """What counting `records` records will need; their number is public, or a guess.

    Returns:
        Numbers by name (bytes, or passes), "records", "engine", and "notes".
    Raises:
        UsageError: no number of records was given, or there is no such engine.
    """
    if records is None:
        raise UsageError(
            "NOINPUTROWS",
            "--engine was given without --input-rows.",
            "What an engine needs depends on the number of records, and a plan opens none of them.",
            "Pass --input-rows N, a public number or a guess.",
        )
    name = engine.engine or "local"
    known: dict[str, Any] = {"engine": name, "records": records}
    if name == "spark":
        from gibbous.disintegrate.spark.estimate import estimate

        parts = engine.partitions or PARTITIONS
        return known | {"partitions": parts} | estimate(made, schema, records, parts)
    if name not in ("local", "duckdb", "numpy"):
        raise UsageError(
            "ENGINE",
            f"There is no engine {name!r}.",
            "Engines are 'local', 'duckdb', 'spark' and 'numpy'.",
            "Correct --engine.",
        )
    from gibbous.disintegrate.records import held_limit

    codes = records * (len(schema) * schema.code_dtype().itemsize + 8 * len(made.numbers))
    notes = ["Codes that do not fit a share of the memory lie in a private file on disk."]
    return known | {
        "source_passes": 1,
        "codes": codes,
        "memory": min(codes, held_limit()) + made.memory_bytes,
        "notes": notes,
    }


def tell(found: dict[str, Any]) -> None:
    """The same for people."""
    cut = f", {found['partitions']:,} partitions" if "partitions" in found else ""
    rows = []
    for key, words in _WORDS.items():
        if key in found:
            passes = key.endswith("passes")
            rows.append((words, found[key] if passes else show.bytes_words(found[key])))
    show.table((f"{found['engine']}, {found['records']:,} records{cut}", "at most"), rows)
    for note in found.get("notes", ()):
        show.line(f"  {note}")
