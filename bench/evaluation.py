"""Scoring: all 1- and 2-way, 100 3- and 4-way margins of 15 columns, against NumPy; then the other counts.

Run: python bench/evaluation.py [--quick] [--rows N ...] [--runs N] [--json FILE]
The columns have the sizes of Adult binned to at most 32 levels (42 countries). The clock starts when
everything is imported, compiled and read. Figures are CPU seconds of all threads (an upper bound of the wall
time on an idle machine), and tell apart: one synthetic set with its jackknife; making the
reference tables; scoring them. The baseline computes the same distances (no jackknife) with NumPy:
mixed-radix ids of all rows, then bincount, or unique where a table has more cells than rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from common import Result, arguments, save, show

from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.tables import Side, Subject
from gibbous.evaluation.utility import association, distances, margins
from gibbous.evaluation.utility.margin_scores import chosen
from gibbous.evaluation.utility.train_and_test import references

SIZES = (32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2)
SCHEMA = Schema(
    tuple(Column(f"c{j:02d}", "ordinal", levels=tuple(range(s))) for j, s in enumerate(SIZES))
)
ORDERS = (1, 2, 3, 4)


def made(rows: int, seed: int) -> Side:
    """A table whose columns depend on one hidden class, with long tails."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 8, rows)
    columns = []
    for j, size in enumerate(SIZES):
        own = np.minimum(rng.geometric(min(0.9, 4 / size), rows) - 1, size - 1)
        columns.append(np.where(rng.random(rows) < 0.5, (hidden * (j + 3)) % size, own))
    values = np.stack(columns).astype(np.uint8)
    frame = pl.DataFrame({c.name: v for c, v in zip(SCHEMA, values, strict=True)})
    return Side(Codes(SCHEMA, values.T), frame)


def ours(real: Codes, others: Sequence[Codes], intervals: int) -> list[np.ndarray]:
    """Distances of all margins, order by order: (tables, margins) each."""
    return [
        np.stack([s.values for s in margins.distances(real, others, every, intervals=intervals)])
        for every in (chosen(len(SIZES), order, 0) for order in ORDERS)
    ]


def by_numpy(real: Codes, other: Codes) -> list[np.ndarray]:
    """The same from ids of whole rows."""
    return [
        np.array([_numpy_distance(real, other, m) for m in chosen(len(SIZES), order, 0)])
        for order in ORDERS
    ]


def _numpy_distance(real: Codes, other: Codes, margin: tuple[int, ...]) -> float:
    ids, cells = [], int(np.prod([SIZES[c] for c in margin]))
    for table in (real, other):
        total = np.zeros(table.rows, dtype=np.int64)
        for c in margin:
            total = total * SIZES[c] + table.by_column[c]
        ids.append(total)
    if cells > 2 * real.rows:
        places = np.unique(np.concatenate(ids), return_inverse=True)[1]
        ids = [places[: real.rows], places[real.rows :]]
        cells = int(places.max()) + 1
    a, b = (np.bincount(i, minlength=cells) / len(i) for i in ids)
    return float(np.abs(a - b).sum() / 2)


def clocked(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Least wall and least CPU seconds of some calls."""
    found = []
    for _ in range(runs):
        start = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return min(f[0] for f in found), min(f[1] for f in found)


def told(rows: int, target: float | None, runs: int) -> list[Result]:
    """Results of one number of rows."""
    real, synthetic = made(rows, 1), made(rows, 2)

    def fresh() -> Subject:  # a subject remembers its references
        return Subject(SCHEMA, real, (synthetic,), seed=0)

    subject = fresh()
    tables = references(subject)
    codes = [table.codes for table in tables.values()]
    numpy = by_numpy(real.codes, synthetic.codes)
    for mine, truth in zip(ours(real.codes, [synthetic.codes], 1), numpy, strict=True):
        np.testing.assert_allclose(mine[0], truth, atol=1e-12, rtol=0)

    one = clocked(lambda: ours(real.codes, [synthetic.codes], 1), runs)
    bare = clocked(lambda: ours(real.codes, [synthetic.codes], 0), runs)
    base = clocked(lambda: by_numpy(real.codes, synthetic.codes), 1)
    making = clocked(lambda: references(fresh()), runs)
    both = clocked(lambda: ours(real.codes, codes, 0), runs)
    whole = clocked(lambda: margins.findings(fresh()), runs)
    others = [
        Result(f"{rows:,} rows: {name}", pair[1], unit="s", detail=_wall(pair))
        for name, pair in [
            ("4 distances with references", clocked(lambda: distances.findings(subject), 1)),
            ("associations with references", clocked(lambda: association.findings(subject), 1)),
        ]
    ]
    what = f"{rows:,} rows"
    return [
        Result(f"{what}: 320 margins of one set, jackknife", one[1], target, "s", _wall(one)),
        Result(f"{what}: tv1..tv4 with both references", whole[1], target, "s", _wall(whole)),
        Result(f"{what}: of it making the references", making[1], None, "s", _wall(making)),
        Result(f"{what}: of it scoring them", both[1], None, "s", _wall(both)),
        Result(f"{what}: without jackknife, for NumPy's", bare[1] / base[1], None, "x",
               f"{bare[1]:.2f} s for {base[1]:.2f} s"),
        *others,
    ]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, nargs="*")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    targets = {39_074: 3.0, 1_000_000: 30.0}
    wanted = options.rows or ([39_074] if options.quick else list(targets))
    ours(made(100, 1).codes, [made(100, 2).codes], 1)  # compiles
    results = [r for rows in wanted for r in told(rows, targets.get(rows), options.runs)]
    show(f"Scoring {len(SIZES)} columns: 15 + 105 + 100 + 100 margins", results)
    save(options.json, "evaluation", results, "numpy", "numba", "polars")


def _wall(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.2f} s of wall time"


if __name__ == "__main__":
    main()
