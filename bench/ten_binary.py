"""Twenty tables of ten binary columns, many runs each: is any run far from its table's median?

    python bench/ten_binary.py --runs 50                # epsilon 1, delta 1e-9; prints a line a table
    python bench/ten_binary.py --runs 5 --json out.json
    python bench/ten_binary.py --runs 4 --columns 6 --epsilon .1  # few cells, bought as one table

Tables are drawn at random, five of a kind: given a latent class, a chain of noisy copies, each column by a
logistic function of some before it, and rare events that come together; 2,000 to 60,000 rows. Such tables
are fitted exactly, so a run that is far off shows a fit that went wrong, not chains.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from accuracy_small import Table, synthesize
from real_tables import METHODS, mixture, scores

TABLES = 20
TEN = (2,) * 10


def table(number: int) -> Table:
    """A table by its number, which draws its parameters and records."""
    rng = np.random.default_rng([77, number])
    rows = int(np.exp(rng.uniform(np.log(2_000), np.log(60_000))))
    if number % 4 == 0:
        return mixture(rows, 10, 2, rng)
    if number % 4 == 1:
        return Table("chain", _chain(rows, rng)[:, rng.permutation(10)], TEN)
    if number % 4 == 2:
        return Table("logistic", _logistic(rows, rng)[:, rng.permutation(10)], TEN)
    often = rng.random((rows, 10)) < rng.uniform(0.005, 0.3, 10) * (
        1 + (rng.random((rows, 1)) < 0.1) * 2
    )
    return Table("rare", often.astype(int), TEN)


def _chain(rows: int, rng: np.random.Generator) -> np.ndarray:
    values = np.empty((rows, 10), dtype=int)
    values[:, 0] = rng.random(rows) < rng.uniform(0.1, 0.9)
    for j in range(1, 10):
        flipped = rng.random(rows) < rng.uniform(0.02, 0.4)
        values[:, j] = np.where(flipped, 1 - values[:, j - 1], values[:, j - 1])
    return values


def _logistic(rows: int, rng: np.random.Generator) -> np.ndarray:
    values = np.empty((rows, 10), dtype=int)
    for j in range(10):
        score = rng.normal(0, 1) + np.zeros(rows)
        for before in range(j):
            if rng.random() < 0.4:
                score += rng.normal(0, 2) * (values[:, before] - 0.5)
        values[:, j] = rng.random(rows) < 1 / (1 + np.exp(-score))
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="of each table")
    parser.add_argument("--columns", type=int, default=10, help="of each table, the first ones")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lines = []
    print("| table | rows | runs | median TV2 | largest | ratio | mean TV4 |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for number in range(TABLES):
        whole = table(number)
        own = Table(whole.name, whole.values[:, : given.columns], TEN[: given.columns])
        method = METHODS["adaptive_gibbs"](given.epsilon)
        found = [scores(own, synthesize(method, own, k)[0]) for k in range(given.runs)]
        far = [one["tv2"] for one in found]
        middle, most, fours = (
            float(np.median(far)),
            max(far),
            np.mean([one["tv4"] for one in found]),
        )
        lines.append({"table": own.name, "rows": len(own.values), "tv2": far})
        shown = f"{middle:.4f} | {most:.4f} | {most / middle:.2f} | {fours:.4f}"
        print(f"| {own.name} | {len(own.values):,} | {len(far)} | {shown} |", flush=True)
    if given.json:
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
