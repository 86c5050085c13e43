"""Public counts of levels by column, as given, checked against a schema: ratios of virtual records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gibbous.core.errors import ParameterError, UsageError
from gibbous.core.schema import Schema

Prior = tuple[tuple[str, tuple[int, ...]], ...]
"""Public counts written down by name: ((column, (count of each level, ...)), ...)."""


def tidy_prior(mechanism: Any) -> None:
    """Bring a `prior` field into its frozen form: a mapping or lists are accepted.

    ParameterError for another form, a column twice, or a level without a whole number above 0.
    """
    given = mechanism.prior
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
        frozen = tuple((str(name), tuple(counts)) for name, counts in pairs)
        whole = all(type(c) is int and 0 < c < 1 << 34 for _, counts in frozen for c in counts)
        if not whole or len(dict(frozen)) < len(frozen):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            "PARAM",
            f"prior of {type(mechanism).__name__} has the wrong form.",
            "It names, for a column, one public whole number of at least 1 for each level, in the order "
            "of the schema: a level without virtual records would have no guarantee.",
            "For example prior={'smoker': [4, 1]}, on the command line --set 'prior={smoker = [4, 1]}'.",
        ) from None
    object.__setattr__(mechanism, "prior", frozen)


def ratios_of(schema: Schema, prior: Prior) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """(position, ratios) of each column that has a public prior, one number for each of its codes."""
    found = []
    for name, counts in prior:
        place = schema.index(name, "prior= names column")
        size = schema.sizes[place]
        if len(counts) != size:
            raise UsageError(
                "PRIOR",
                f"prior= has {len(counts)} numbers for column {name!r}, which has {size} codes.",
                "It has one for each level or bin, then for `other` and for missing where declared.",
                "Correct prior=.",
            )
        found.append((place, counts))
    return tuple(found)
