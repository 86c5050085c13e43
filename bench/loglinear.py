"""The log-linear model: time of a draw, of a fit, of rows and of closing them, on made-up models."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Result, arguments, cpu_seconds, peak_mb, save, show, wall_seconds

from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Goal, LogLinear
from gibbous.sampling.loglinear import Schedule, Target, fit, independent, margins, start, sweep
from gibbous.sampling.loglinear.chains import draw, schedule
from gibbous.sampling.loglinear.model_rows import ModelRows, ready
from gibbous.sampling.loglinear.step_tables import flatten

ADULT = (32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2)  # levels of Adult, binned
NANOSECONDS = 1e9
REPEATS = 15  # the least of them is nearest to an idle machine


def made(sizes: tuple[int, ...], cliques: int, *, triples: float = 0.3, seed: int = 0) -> LogLinear:
    """A model with normal thetas on random pairs and triples of at most 20,000 cells."""
    rng = np.random.default_rng(seed)
    found = {(j,) for j in range(len(sizes))}
    while len(found) < len(sizes) + cliques:
        several = 3 if rng.random() < triples else 2
        clique = tuple(sorted(rng.choice(len(sizes), several, replace=False).tolist()))
        if np.prod([sizes[j] for j in clique]) <= 20_000:
            found.add(clique)
    every = tuple(sorted(found))
    theta = tuple(rng.normal(0.0, 0.3, size=[sizes[j] for j in clique]) for clique in every)
    return LogLinear(sizes, every, theta)


def schema_of(sizes: tuple[int, ...]) -> Schema:
    """A schema of as many levels."""
    return Schema(
        tuple(Column(f"c{j}", "nominal", levels=tuple(range(n))) for j, n in enumerate(sizes))
    )


def pairs_in(model: LogLinear) -> int:
    """Sum over columns of the cliques (of two or more columns) that hold it."""
    return sum(len(clique) for clique in model.cliques if len(clique) > 1)


def with_goals(model: LogLinear, chains: int, closed: int) -> LogLinear:
    """The model with all 1- and 2-way margins of swept chains as goals."""
    columns = range(len(model.sizes))
    ones = [np.ones(size) for size in model.sizes]
    swept = sweep(model, start(model, schema_of(model.sizes), ones, chains, seed=1), 10)
    cliques = [(j,) for j in columns] + list(itertools.combinations(columns, 2))
    counts = margins(swept, model.sizes, cliques)
    goals = tuple(Goal(c, n / n.sum()) for c, n in zip(cliques, counts, strict=True))
    return LogLinear(model.sizes, model.cliques, model.theta, goals, closed=closed)


def sweeps(name: str, model: LogLinear, chains: int, target: float | None) -> list[Result]:
    """Time of one draw and clique, and two threads for one: by the clock, and by the CPU both take."""
    flat = flatten(model, ())
    state = np.zeros((len(model.sizes), chains), dtype=np.uint8)
    order, keys = schedule(flat, 0, 2, 1)
    one = cpu_seconds(lambda: draw(flat, state, order, keys), REPEATS)
    each = one / 2 / chains * NANOSECONDS
    alone = wall_seconds(lambda: draw(flat, state, order, keys))
    both = wall_seconds(lambda: draw(flat, state, order, keys, threads=2))
    shared = cpu_seconds(lambda: draw(flat, state, order, keys, threads=2), REPEATS)
    folded = f"{len(flat.pieces)} tables for {pairs_in(model)} column-clique pairs"
    return [
        Result(f"{name}: a draw, per clique", each / pairs_in(model), target, "ns", folded),
        Result(f"{name}: a draw", each / len(model.sizes), None, "ns", f"{chains:,} chains"),
        Result(f"{name}: 2 threads for 1", alone / both, None, "x", "wall time", at_least=True),
        Result(
            f"{name}: 2 threads for 1, idle", 2 * one / shared, None, "x", "by CPU", at_least=True
        ),
    ]


def fitting(chains: int) -> list[Result]:
    """A fit of all cliques at once, from independent columns."""
    truth = made(ADULT, 43, seed=2)
    schema = schema_of(ADULT)
    ones = [np.ones(size) / size for size in ADULT]
    swept = sweep(truth, start(truth, schema, ones, 4 * chains, seed=3), 20)
    counts = margins(swept, ADULT, truth.cliques)
    targets = [Target(c, n / n.sum()) for c, n in zip(truth.cliques, counts, strict=True)]
    ones = [target.shares for target in targets if len(target.columns) == 1]
    model = independent(ones)
    begin = start(model, schema, ones, chains, seed=4)
    clock = time.process_time()
    found = fit(model, begin, targets, Schedule(steps=15, sweeps=4, passes=1, gain=0.5))
    spent = time.process_time() - clock
    pairs = [t for t in targets if len(t.columns) > 1]
    left = margins(found.chains, ADULT, [t.columns for t in pairs])
    gap = np.mean([abs(n / chains - t.shares).sum() / 2 for n, t in zip(left, pairs, strict=True)])
    noise = np.mean([np.sqrt(t.shares * 2 / np.pi / chains).sum() / 2 for t in pairs])
    detail = f"43 cliques, {chains:,} chains, 15 steps of 4 sweeps"
    return [
        Result("Adult-like: fit", spent, None, "s", detail),
        Result("Adult-like: gap of the chains / noise of a sample", float(gap / noise), None, "x"),
    ]


def rows(name: str, model: LogLinear, count: int, passes: int, base: float | None) -> list[Result]:
    """Rows from a saved model, closed; CPU seconds, and for fewer rows where given."""
    found = ready(schema_of(model.sizes), model, passes)
    clock = time.process_time()
    ModelRows(found, 1, 0).rows(0, count, 1)
    spent = time.process_time() - clock
    detail = f"{count:,} x {len(model.sizes)}, {passes} sweeps, {len(model.goals)} goals"
    out = [Result(f"{name}: rows", spent, None, "s", detail)]
    if base is not None:
        out.append(Result(f"{name}: rows, for 40,000", spent / base, None, "x", "CPU"))
    return out


def main() -> None:
    """Run everything."""
    parser = arguments(str(__doc__))
    parser.add_argument("--sweeps", action="store_true", help="the draws alone")
    options = parser.parse_args()
    quick = options.quick
    adult, binary, wide = made(ADULT, 43), made((2,) * 17, 60), made((10,) * 100, 150)
    results = sweeps("Adult-like, 43 cliques", adult, 40_000, 15.0)
    results += sweeps("17 binary columns, 60 cliques", binary, 40_000, 15.0)
    results += sweeps("100 columns x 10, 150 cliques", wide, 5_000 if quick else 20_000, 15.0)
    if options.sweeps:
        show("draws of log-linear models", results)
        save(options.json, "loglinear", results, "numpy", "numba")
        return
    results += fitting(20_000 if quick else 40_000)
    closed = with_goals(adult, 40_000, 40_000)
    small = rows("Adult-like", closed, 40_000, 10, None)
    results += small
    results += rows("Adult-like", closed, 200_000 if quick else 1_000_000, 10, small[0].value)
    many = with_goals(wide, 5_000 if quick else 50_000, 10_000 if quick else 50_000)
    results += rows("100 columns x 10", many, 10_000 if quick else 100_000, 10, None)
    results.append(Result("peak memory of everything above", peak_mb(), None, "MB"))
    show("log-linear models", results)
    save(options.json, "loglinear", results, "numpy", "numba")


if __name__ == "__main__":
    main()
