"""Accuracy on tables that hurt: generators with parameters drawn at random, and real tables as they are.

    python bench/real_tables.py                                 # all at epsilon 1, what is not there yet
    python bench/real_tables.py --only nested16 --epsilon .1 1   # some
    python bench/real_tables.py --only adult discharge13 sparcs_msk --epsilon .1 1 10 --seeds 3 \
        --averaged noisy_pegs privbayes --results bench/results/averaged_networks.jsonl
    python bench/real_tables.py --table                          # what was measured so far, as Markdown

Scores are mean total variation distances of all 1- and 2-way margins and 60 random 3-way and 4-way ones
between records and rows, and the share of rows with a pair of values that no record has. Averages are rows
of several networks in equal shares: of `parts` of the records, or of all with a share of the budget each
(`budgets`). References are
records resampled (no method can do much better) and exact independent columns. One line a run in
bench/results/real_tables.jsonl; the seed of a line draws the table, noise has none.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accuracy_small
import numpy as np
from accuracy_small import Table, by_class, synthesize
from census_like import census

import gibbous as gb

RESULTS = Path(__file__).resolve().parent / "results" / "real_tables.jsonl"
DELTA = 1e-9
SCORES = ("tv1", "tv2", "tv3", "tv4", "impossible")
CLASSES = 6  # of the latent class that ties a table's columns together
TRIPLES = FOURS = 60
MOST_CELLS = 1 << 26  # of a margin that is counted whole
METHODS: dict[str, Callable[[float], Any]] = {
    "adaptive_gibbs": lambda epsilon: gb.AdaptiveGibbs(epsilon=epsilon, delta=DELTA),
    "noisy_pegs": lambda epsilon: gb.NoisyPegs(epsilon=epsilon, delta=DELTA),
    "privbayes": lambda epsilon: gb.Privbayes(epsilon=epsilon),
    "independent": lambda epsilon: gb.NoisyPegs(epsilon=epsilon, delta=DELTA, parents=0),
}


WAYS = ("2 parts", "4 parts", "2 budgets", "4 budgets")


def built(method: str, epsilon: float) -> tuple[Any, int]:
    """A method by its name, also one whose rows are those of several networks; and its sets."""
    name, _, way = method.partition(", ")
    one = METHODS[name](epsilon)
    if not way:
        return one, 1
    number, kind = int(way.split()[0]), way.split()[1]
    return (gb.Parallel(one, parts=number), 1) if kind == "parts" else (gb.PerSet(one), number)


def mixture(rows: int, columns: int, most: int, rng: np.random.Generator) -> Table:
    """Columns of 2 to `most` levels, independent given a latent class."""
    classes = rng.choice(CLASSES, size=rows, p=rng.dirichlet(np.full(CLASSES, 2.0)))
    sizes = rng.integers(2, most + 1, columns)
    laws = [rng.dirichlet(np.full(size, 0.7), size=CLASSES) for size in sizes]
    values = np.stack([by_class(law, classes, rng) for law in laws], axis=1)
    return Table("mixture", values, tuple(int(size) for size in sizes))


def nested(rows: int, groups: int, others: int, rng: np.random.Generator) -> Table:
    """Groups of five classifications, each coarser than the one before but for 0 to 5 % of the rows."""
    classes = rng.choice(CLASSES, size=rows, p=rng.dirichlet(np.full(CLASSES, 2.0)))
    codes, sizes = [], []
    for _ in range(groups):
        size, exceptions = int(rng.integers(40, 300)), rng.uniform(0, 0.05)
        fine = by_class(rng.dirichlet(np.full(size, 0.15), size=CLASSES), classes, rng)
        codes.append(fine)
        sizes.append(size)
        for _ in range(4):
            coarser = max(2, int(size / rng.uniform(1.8, 4)))
            group = rng.integers(0, coarser, size)
            wrong = rng.random(rows) < exceptions
            fine = np.where(wrong, rng.integers(0, coarser, rows), group[fine])
            size = coarser
            codes.append(fine)
            sizes.append(size)
    rest = mixture(rows, others, 12, rng)
    order = rng.permutation(len(codes) + others)
    values = np.column_stack([*codes, rest.values])[:, order]
    every = (*sizes, *rest.sizes)
    return Table("nested", values, tuple(every[j] for j in order))


def surveyed(rows: int, rng: np.random.Generator) -> Table:
    """41 columns: blocks of nested codes that only some classes are asked for, else 0; and others."""
    most = 12
    classes = rng.choice(most, size=rows, p=rng.dirichlet(np.full(most, 2.0)))
    in_work, codes, sizes = rng.random(most) < 0.5, [], []
    for block, columns in enumerate((3, 3, 3, 5, 5, 2, 2, 2, 3, 2)):
        asked = in_work if block < 4 else rng.random(most) < rng.uniform(0.1, 0.9)
        size = int(rng.integers(8, 60))
        law = rng.dirichlet(np.full(size, 0.2), size=most)
        fine = np.where(asked[classes], 1 + by_class(law, classes, rng), 0)
        for _ in range(columns):
            codes.append(fine)
            sizes.append(size + 1)
            coarser = max(2, int(size / rng.uniform(1.5, 3)))
            group = np.concatenate([[0], 1 + rng.integers(0, coarser, size)])
            wrong = rng.random(rows) < rng.uniform(0, 0.01)
            fine, size = np.where(wrong, rng.integers(0, coarser + 1, rows), group[fine]), coarser
    for size in rng.integers(2, 20, 11):
        codes.append(by_class(rng.dirichlet(np.full(size, 0.7), size=most), classes, rng))
        sizes.append(int(size))
    order = rng.permutation(len(codes))
    values = np.column_stack(codes)[:, order]
    return Table("surveyed", values, tuple(sizes[j] for j in order))


def copies(rows: int, columns: int, size: int, rng: np.random.Generator) -> Table:
    """One column many times, its levels permuted."""
    base = rng.choice(size, size=rows, p=rng.dirichlet(np.ones(size)))
    values = np.stack([rng.permutation(size)[base] for _ in range(columns)], axis=1)
    return Table("copies", values, (size,) * columns)


def parity(rows: int, columns: int, rng: np.random.Generator) -> Table:
    """Fair coins; each fourth column is the parity of the three before it."""
    values = rng.integers(0, 2, (rows, columns))
    for j in range(3, columns, 4):
        values[:, j] = values[:, j - 3 : j].sum(axis=1) % 2
    return Table("parity", values, (2,) * columns)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "copies": lambda rng: copies(20_000, 8, 20, rng),
    "copies4_500": lambda rng: copies(500, 8, 4, rng),
    "copies8_2000": lambda rng: copies(2_000, 8, 8, rng),
    "nested16": lambda rng: nested(30_000, 2, 6, rng),
    "nested41": lambda rng: nested(100_000, 7, 6, rng),
    "census41": lambda rng: census(100_000, rng),
    "surveyed41": lambda rng: surveyed(100_000, rng),
    "mixture20": lambda rng: mixture(20_000, 20, 20, rng),
    "binary16": lambda rng: mixture(17_000, 16, 2, rng),
    "binary200": lambda rng: mixture(20_000, 200, 2, rng),
    "binary500": lambda rng: mixture(20_000, 500, 2, rng),
    "small": lambda rng: mixture(500, 20, 8, rng),
    "parity8": lambda rng: parity(20_000, 8, rng),
}
REAL = ("adult", "discharge13", "acs_ma2019", "sparcs_msk", "claims7", "diabetes130", "nhds2010")


def table_of(name: str, seed: int) -> Table:
    """A table by its name; the seed draws a generator's parameters and records."""
    if name in REAL:
        return accuracy_small.load(name)
    return TABLES[name](np.random.default_rng([seed, *name.encode()]))


def scores(table: Table, rows: np.ndarray) -> dict[str, float]:
    """TV1 to TV4, and the share of rows with a pair that no record holds."""
    columns, rng = range(len(table.sizes)), np.random.default_rng(1)
    threes = [sorted(rng.choice(len(columns), 3, replace=False)) for _ in range(TRIPLES)]
    fours = [sorted(rng.choice(len(columns), 4, replace=False)) for _ in range(FOURS)]
    far: dict[str, list[float]] = {"tv1": [], "tv2": [], "tv3": [], "tv4": []}
    impossible = np.zeros(len(rows), dtype=bool)
    for clique in [*((j,) for j in columns), *itertools.combinations(columns, 2), *threes, *fours]:
        shape = [table.sizes[j] for j in clique]
        cells = [np.ravel_multi_index(v[:, list(clique)].T, shape) for v in (table.values, rows)]
        if np.prod(shape) > MOST_CELLS:
            held, both = np.unique(np.concatenate(cells), return_inverse=True)
            shape, cells = [len(held)], np.split(both, [len(table.values)])
        shares = [np.bincount(one, minlength=int(np.prod(shape))) / len(one) for one in cells]
        far[f"tv{len(clique)}"].append(float(np.abs(shares[0] - shares[1]).sum() / 2))
        if len(clique) == 2:
            impossible |= shares[0][cells[1]] == 0
    found = {name: round(float(np.mean(one)), 5) for name, one in far.items()}
    return found | {"impossible": round(float(impossible.mean()), 4)}


def run(name: str, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """One line of the results."""
    table = table_of(name, seed)
    if method == "resampled":
        rng = np.random.default_rng(seed)
        rows, seconds = table.values[rng.integers(0, len(table.values), len(table.values))], 0.0
    else:
        mechanism, sets = built(method, epsilon)
        rows, seconds = synthesize(mechanism, table, seed, sets)
    line = {"table": name, "method": method, "epsilon": epsilon, "seed": seed}
    return line | scores(table, rows) | {"cpu_seconds": round(seconds, 1)}


def shown(lines: list[dict[str, Any]]) -> None:
    """Means over seeds, as Markdown."""
    print("| table | epsilon | method | seeds | TV1 | TV2 | TV3 | TV4 | impossible | CPU s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    keys = ("table", "epsilon", "method")
    for key in sorted({tuple(one[k] for k in keys) for one in lines}):
        own = [one for one in lines if tuple(one[k] for k in keys) == key]
        parts = [np.mean([one.get(k, np.nan) for one in own]) for k in SCORES]
        figures = " | ".join(f"{part:.4f}".removeprefix("0") for part in parts)
        cpu = np.mean([one["cpu_seconds"] for one in own])
        print(f"| {key[0]} | {key[1]:g} | {key[2]} | {len(own)} | {figures} | {cpu:.3g} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[*TABLES, *REAL])
    parser.add_argument("--methods", nargs="+", default=["resampled", *METHODS])
    parser.add_argument(
        "--averaged", nargs="+", default=[], help="methods, beside averages of them"
    )
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="measure what is there once more")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what is there, measure nothing")
    given = parser.parse_args()
    path = given.results
    lines = [json.loads(one) for one in path.read_text().splitlines()] if path.exists() else []
    keys = ("table", "method", "epsilon", "seed")
    held = {tuple(one[k] for k in keys): one for one in lines}
    averaged = [
        f"{name}{way}" for name in given.averaged for way in ("", *(f", {w}" for w in WAYS))
    ]
    methods = averaged or given.methods
    asked = itertools.product(given.only, methods, given.epsilon, range(given.seeds))
    for what in () if given.table else asked:
        if what not in held or given.again:
            held[what] = run(*what)
            print(json.dumps(held[what]), flush=True)
            path.write_text("".join(json.dumps(one) + "\n" for one in held.values()))
    shown([*held.values()])


if __name__ == "__main__":
    main()
