"""What a call asked for, made or refused before a record is read: method, engine, sizes, facts."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from gibbous import disintegrate
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.protocols import Engine, Mechanism
from gibbous.core.schema import Schema, fact_words
from gibbous.mechanisms import registry


def mechanism(method: Mechanism | str) -> Any:
    """The mechanism that is meant: one that was made, or a registered one with its defaults.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(method, str):
        return registry.load(method)()
    if isinstance(method, type) or not hasattr(method, "plan") or not hasattr(method, "run"):
        raise UsageError(
            "METHOD",
            "The method given is not a mechanism.",
            "Pass an instance such as NoisyPegs(epsilon=1), or a registered name.",
            "List them with gibbous.methods().",
        )
    return method


def engine(
    wanted: Engine | str | Callable[[], Engine] | None,
    options: Any,
    source: Any,
    partitions: int | None,
) -> Engine:
    """The engine that is meant: by its name, one that was made, or what a function makes.

    Raises:
        UsageError: there is no such engine, or a setting is given to one that is made.
    """
    if wanted is None or isinstance(wanted, str):
        return disintegrate.engine(wanted, options, source=source, partitions=partitions)
    if partitions is not None:
        raise UsageError(
            "ENGINESETTING",
            "partitions was given beside an engine that is made already.",
            "An engine has its settings.",
            "Give them to gibbous.engine, or give the engine by name.",
        )
    return wanted() if callable(wanted) else wanted


def sizes(rows: Any, sets: Any) -> tuple[int | None, int]:
    """Rows a set and number of sets, as whole numbers.

    Raises:
        UsageError: they are none, rows < 0, or there is no set.
    """
    if not ((rows is None or _is_whole(rows, 0)) and _is_whole(sets, 1)):
        raise UsageError(
            "ROWS",
            f"rows={rows} and sets={sets} were asked for.",
            "They are whole numbers, rows >= 0 and sets >= 1.",
            "Correct the number of rows or of sets.",
        )
    return None if rows is None else int(rows), int(sets)


def check_choices(seed: object, format: object) -> None:
    """Refuse, before anything is spent, what would only be noticed after the charge."""
    if seed is not None and not _is_whole(seed):
        raise UsageError(
            "SEED",
            f"The seed is a {type(seed).__name__}.",
            "It is a whole number.",
            "Correct seed.",
        )
    if format not in ("parquet", "csv"):
        raise UsageError(
            "FORMAT", f"The format is {format!r}.", "It is 'parquet' or 'csv'.", "Correct format."
        )


def _is_whole(value: object, lowest: int | None = None) -> bool:
    return (
        isinstance(value, Integral)
        and not isinstance(value, bool)
        and (lowest is None or int(value) >= lowest)
    )


def undeclared_unit() -> PrivacyRefused:
    """The refusal of a claim where nobody said what one privacy unit is."""
    return PrivacyRefused(
        "UNIT",
        "The schema does not say what one privacy unit is.",
        "A unit is one row, or one person with at most max_rows rows.",
        "Declare [unit] in the schema; --accept-inferred assumes one row, and says so.",
    )


def inferred(schema: Schema) -> PrivacyRefused:
    """The refusal of a claim over facts that were read off the data."""
    facts = schema.inferred()
    return PrivacyRefused(
        "INFERRED",
        f"The schema holds {len(facts)} facts that were read off the data: {fact_words(facts)}.",
        "A claim of differential privacy covers only facts that are public or paid for.",
        "Check them and mark them declared, or pass --accept-inferred: the release then says "
        "which facts its guarantee does not cover.",
    )
