"""Contexts of row-wise methods by a public word: mean TV of single columns and of pairs, one run each.

python bench/public_contexts.py     # discharge13, 20,000 rows
"""

from __future__ import annotations

from typing import Any

import numpy as np
from accuracy_small import distance, load

import gibbous as gb
from gibbous.contract.runs import release

ROWS = 20_000
WORDS: tuple[Any, ...] = ((), "ordered", "lsh", "minhash")


def main() -> None:
    """Print the table."""
    table = load("discharge13")
    margins = [
        np.bincount(c, minlength=s) for c, s in zip(table.values.T, table.sizes, strict=True)
    ]
    prior = {f"c{j}": [max(1, int(n)) for n in counts] for j, counts in enumerate(margins)}
    methods = [
        (f"pegs, epsilon {e:g} a row, {word or 'ring'}", gb.Pegs(epsilon=e, contexts=word))
        for e in (1.0, 100.0)
        for word in WORDS
    ]
    methods += [
        (
            f"diverse_pegs, {word or 'ring'}, {fallback}",
            gb.DiversePegs(contexts=word, fallback=fallback),
        )
        for word in ((), "lsh")
        for fallback in ("uniform", "nearest")
    ]
    methods += [
        ("block_pegs, epsilon 1", gb.BlockPegs(epsilon=1)),
        ("block_pegs, epsilon 1, prior", gb.BlockPegs(epsilon=1, prior=prior)),
    ]
    for name, one in methods:
        rows = release(one, table.schema, table.values, ROWS).values.astype(np.int64)
        each = [distance(table.values, rows, table.sizes, ways) for ways in (1, 2)]
        print(f"| {name} | {each[0]:.4f} | {each[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
