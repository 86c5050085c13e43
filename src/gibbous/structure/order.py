"""An order of columns in which parents come first, where there is one."""

from __future__ import annotations

from collections.abc import Sequence


def topological(parents: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Positions of all columns, each after its parents, the smallest position first among equals.

    Args:
        parents: context columns of each column.
    Returns:
        The order, or None when the contexts form a cycle.
    """
    order: list[int] = []
    left = list(range(len(parents)))
    while left:
        ready = [j for j in left if all(c in order for c in parents[j])]
        if not ready:
            return None
        order.append(ready[0])
        left.remove(ready[0])
    return tuple(order)
