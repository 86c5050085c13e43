"""Which tables count for more: a target and weights of columns and pairs. Public parameters, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.discovery import UNKNOWN
from gibbous.core.errors import ParameterError, UsageError
from gibbous.core.schema import Schema
from gibbous.structure.cliques import Clique

TARGETED = 4.0  # weight of a table that holds the target
JOIN = "*"  # between the two names of a pair
LEAST, MOST = 0.01, 100.0  # of one weight, and of what a table counts for


@dataclass(frozen=True, slots=True)
class Emphasis:
    """What tables count for: nothing said, each counts 1.

    Attributes:
        target: position of the column that is going to be predicted.
        weights: of columns and pairs, by their positions.
    """

    target: int | None = None
    weights: tuple[tuple[Clique, float], ...] = ()

    def of(self, cliques: Sequence[Clique]) -> np.ndarray:
        """Weight of each clique, float64 (cliques,): the product of those of what it holds, within limits."""
        found = np.ones(len(cliques))
        for part, weight in (*self.weights, *self._targeted()):
            held = [set(part) <= set(clique) for clique in cliques]
            found[np.array(held, dtype=bool)] *= weight
        limited: np.ndarray = np.clip(found, LEAST, MOST)
        return limited

    @property
    def spread(self) -> float:
        """Largest weight over least one, at most."""
        every = [weight for _, weight in (*self.weights, *self._targeted())]
        high, low = math.prod(max(w, 1.0) for w in every), math.prod(min(w, 1.0) for w in every)
        return min(high, MOST) / max(low, LEAST)

    def _targeted(self) -> tuple[tuple[Clique, float], ...]:
        return () if self.target is None else (((self.target,), TARGETED),)


def emphasis_of(schema: Schema, target: str | None, weights: Sequence[str]) -> Emphasis:
    """Names found in a schema; weights are "column=weight" or "column*column=weight".

    Where a schema was bought, columns that it left out count for nothing, nor does a target with one
    level that was found: that is known when all is paid for.

    UsageError for a name that is not a column, a pair of one column, a target of one level.
    """
    bought = any(column.source("missing") == "discovered" for column in schema)
    left = frozenset(schema.ignore if bought else ())
    parts = [(_parts((*schema.names, *left), t), float(t.rpartition("=")[2])) for t in weights]
    found = tuple((_clique(schema, own), w) for own, w in parts if not left.intersection(own))
    if target is None or target in left:
        return Emphasis(weights=found)
    at = schema.index(target, "target names")
    if schema.sizes[at] < 2:
        column = schema.columns[at]
        if column.levels == UNKNOWN or column.source("levels") == "discovered":
            return Emphasis(weights=found)
        raise UsageError(
            "TARGET",
            f"The target {target!r} has one level.",
            "A target is a column that can be predicted: it has two levels or more.",
            "Name another column, or leave the target out.",
        )
    return Emphasis(at, found)


def as_texts(weights: Mapping[object, object] | Sequence[str]) -> tuple[str, ...]:
    """Weights in their one written form, sorted: the order in which they were said says nothing.

    Args:
        weights: {"age": 2, ("age", "income"): 5}, its items, or the texts "age=2" and "age*income=5".
    Raises:
        ParameterError: a weight that is not a number between LEAST and MOST, or is given twice.
    """
    items = weights.items() if isinstance(weights, Mapping) else weights
    found: dict[str, str] = {}
    for one in items:
        name, value = (
            one if isinstance(one, tuple) and len(one) == 2 else str(one).rpartition("=")[::2]
        )
        key = JOIN.join(map(str, name)) if isinstance(name, tuple) else str(name).strip()
        number = _number(value)
        if not key or number is None or key in found:
            raise ParameterError(
                "WEIGHTS",
                "weights of AdaptiveGibbs holds something that is not a weight, or one twice.",
                f"It is one number from {LEAST:g} to {MOST:g} a column or pair.",
                "For example weights={'age': 2, ('age', 'income'): 5}; on the command line "
                "--weight age=2 --weight 'age*income=5'.",
            )
        found[key] = f"{number:g}"
    return tuple(f"{key}={found[key]}" for key in sorted(found))


def shared(price: Fraction, weights: np.ndarray) -> dict[float, Fraction]:
    """The price of one table of each weight > 0, all tables together costing `price`.

    With prices in proportion to w^(2/3), the sum of w sigma over the tables is least: that is where
    the derivatives of w / sqrt(price) agree.
    """
    parts = {w: Fraction(round(10**6 * w ** (2 / 3)), 10**6) for w in weights.tolist()}
    whole = sum((parts[w] for w in weights.tolist()), Fraction(0))
    return {w: price * part / whole for w, part in parts.items()}


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    kept = float(f"{number:g}")
    return kept if math.isfinite(kept) and LEAST <= kept <= MOST else None


def _parts(names: Sequence[str], text: str) -> tuple[str, ...]:
    """The one or two names of a weight; they may hold the sign that joins two."""
    name = text.rpartition("=")[0]
    if name in names or JOIN not in name:
        return (name,)
    cuts = [at for at, sign in enumerate(name) if sign == JOIN]
    both = [(name[:at].strip(), name[at + 1 :].strip()) for at in cuts]
    return next((pair for pair in both if set(pair) <= set(names)), both[0])


def _clique(schema: Schema, names: Sequence[str]) -> Clique:
    """The column or the pair of these names."""
    found = tuple(sorted({schema.index(name, "weights names") for name in names}))
    if len(found) < len(names):
        raise UsageError(
            "WEIGHTS",
            f"weights names the pair {JOIN.join(names)!r}, which is one column twice.",
            "A pair is two columns.",
            f"Write {names[0]}=... for the column itself.",
        )
    return found
