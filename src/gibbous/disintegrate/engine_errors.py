"""What engines say alike: closed, without records, out of memory."""

from __future__ import annotations

from gibbous.core.errors import MAY_BE_SPENT, EngineFailure, ResourceLimit


def closed() -> EngineFailure:
    """The error of an engine that is asked after its end."""
    return EngineFailure(
        "CLOSED",
        "The engine is closed: its records were forgotten.",
        "Records are counted before rows are written, never after.",
        "Start a new run.",
        state="What was reserved stays spent.",
    )


def not_scanned() -> EngineFailure:
    """The error of an engine that is asked before its records are read."""
    return EngineFailure(
        "NOTSCANNED",
        "The engine holds no records.",
        "Records are scanned before they are counted.",
        "Call scan first.",
    )


def out_of_memory() -> ResourceLimit:
    """What is raised in place of a MemoryError."""
    return ResourceLimit(
        "MEMORY",
        "The machine ran out of memory while counting.",
        "The estimate fitted the limit, but other work holds the rest.",
        "Free memory, or lower memory_limit so that such runs are refused before they start.",
        state=MAY_BE_SPENT,
    )
