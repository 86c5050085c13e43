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


def mutual(values: np.ndarray, sizes: Any, most: int) -> Any:
    """As park2014 ranks them on the records, which no claim covers: to see what one pass makes of them."""
    from gibbous.studies.sbhg_conditionals import ranked

    return {
        f"c{j}": [f"c{c}" for c in order[:most]] for j, order in enumerate(ranked(values, sizes))
    }


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
        (f"pegs, epsilon {e:g} a row, chosen for 1", gb.Pegs(epsilon=e, choice=1.0))
        for e in (1.0, 100.0)
    ]
    ranked = mutual(table.values.astype(np.int64), table.sizes, 2)
    methods += [
        (
            f"pegs, epsilon {e:g} a row, {word or 'ring'}, seeds for 1",
            gb.Pegs(e, contexts=word, seed_budget=1.0),
        )
        for e in (1.0, 100.0)
        for word in WORDS[::2]
    ]
    methods += [
        (
            f"pegs, epsilon {e} a row, {s} passes, mutual",
            gb.Pegs(epsilon=e, contexts=ranked, sweeps=s),
        )
        for e, s in ((1, 1), (100, 1), (100, 2), (100, 5))
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
        ("block_pegs, epsilon 1, chosen for 1", gb.BlockPegs(epsilon=1, choice=1.0)),
        ("block_pegs, epsilon 1, seeds for 1", gb.BlockPegs(epsilon=1, seed_budget=1.0)),
        ("block_pegs, epsilon 1, prior", gb.BlockPegs(epsilon=1, prior=prior)),
    ]
    for name, one in methods:
        rows = release(one, table.schema, table.values, ROWS).values.astype(np.int64)
        each = [distance(table.values, rows, table.sizes, ways) for ways in (1, 2)]
        print(f"| {name} | {each[0]:.4f} | {each[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
