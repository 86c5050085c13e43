"""Two columns crossed, in records and synthetic rows, by a process of its own; for the operator alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.studio.histogram import answered, reading_of, tell
from gibbous.studio.words import words

if TYPE_CHECKING:
    from gibbous.core.schema import Column
    from gibbous.evaluation.tables import Side

MOST = 12  # groups of one column


def crossed(
    folder: Path, data: str, release: str, names: tuple[str, str], reading: Sequence[str]
) -> dict[str, Any]:
    """Shares of each pair of levels.

    Returns:
        "rows", "columns": labels; "real", "synthetic": shares in [0, 1], row by row, the latter the
        mean of the sets; "distance": total variation over all levels, before any were put together.
    Raises:
        InputRejected: the records could not be counted.
    """
    asked = {"data": data, "release": release, "names": names, "reading": list(reading)}
    found: dict[str, Any] = answered("gibbous.studio.two_way", folder, asked)
    return found


def _cross(asked: dict[str, Any]) -> dict[str, Any]:
    from gibbous.evaluation.tables import plain, side
    from gibbous.write.load import load

    release, names = load(asked["release"]), asked["names"]
    whole = plain(release.schema)
    others = tuple(name for name in whole.names if name not in names)
    pair = replace(
        whole,
        columns=tuple(whole[name] for name in names),
        ignore=(*whole.ignore, *others),
        impossible=(),
        rules=(),
    )
    real = _shares(side(asked["data"], pair, options=reading_of(asked)))
    drawn = np.mean([_shares(side(one, pair)) for one in release.sets], axis=0)
    both = [
        groups(column, (real + drawn).sum(axis=1 - axis))
        for axis, column in enumerate(pair.columns)
    ]
    places = [[codes for _, codes in some] for some in both]
    return {
        "rows": [label for label, _ in both[0]],
        "columns": [label for label, _ in both[1]],
        "real": _together(real, places),
        "synthetic": _together(drawn, places),
        "distance": float(np.abs(real - drawn).sum() / 2),
    }


def _shares(table: Side) -> np.ndarray:
    """float64 (levels of the first column, levels of the second), summing to 1."""
    first, second = table.schema.sizes
    codes = table.codes.by_column
    cells = codes[0].astype(np.int64) * second + codes[1]
    return np.bincount(cells, minlength=first * second).reshape(first, second) / table.rows


def _together(shares: np.ndarray, places: list[list[list[int]]]) -> list[list[float]]:
    return [[float(shares[np.ix_(a, b)].sum()) for b in places[1]] for a in places[0]]


def groups(column: Column, shares: np.ndarray) -> list[tuple[str, list[int]]]:
    """At most `MOST` groups of levels, each with its label and its codes.

    Neighbors of a column with an order are put together; of others the rarest levels.

    Args:
        column: says what the codes mean.
    """
    labels = column.labels()
    if len(labels) <= MOST:
        return [(label, [code]) for code, label in enumerate(labels)]
    if not column.ordered:
        some = np.sort(np.argsort(-shares, kind="stable")[: MOST - 1]).tolist()
        rest = sorted(set(range(len(labels))) - set(some))
        return [(labels[code], [code]) for code in some] + [
            (words()["assess"]["others"].format(len(rest)), rest)
        ]
    last = range(column.bins, column.size)  # other and missing have no neighbors
    runs = np.array_split(np.arange(column.bins), MOST - len(last))
    found = [(_span(column, labels[run[0]], labels[run[-1]]), run.tolist()) for run in runs]
    return found + [(labels[code], [code]) for code in last]


def _span(column: Column, first: str, last: str) -> str:
    if column.binned:
        return f"{first.partition(', ')[0]}, {last.rpartition(', ')[2]}"
    return first if first == last else words()["assess"]["span"].format(first, last)


if __name__ == "__main__":
    tell(_cross)
