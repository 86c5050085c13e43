"""Accuracy on real tables at a small budget: mean total variation distance of 1-, 2- and 3-way margins.

    python bench/accuracy_small.py                   # Adult, discharge13, ACS at epsilon 1
    python bench/accuracy_small.py --data adult --epsilon 0.1 1 10 --repeats 3 --json out.json

Every method runs with its default parameters through the Curator; nothing is tuned to a data set.
The tables lie beside the repository (../shared/data). Levels are read off the files: the bench is
about error, not about a release.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.codes import Codes
from gibbous.core.request import Privacy
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.mechanisms.sbhg import Sbhg
from gibbous.privacy.spend import spend
from gibbous.sampling.sample import sample

BESIDE = Path(__file__).resolve().parents[1].parent / "shared" / "data"
DATA = Path(os.environ.get("GIBBOUS_BENCH_DATA", BESIDE))  # a folder of public tables
WEIGHTS = ("PWGTP", "WGTP")  # survey weights are not variables
BINS = 32
TRIPLES = 100


@dataclass(frozen=True)
class Table:
    """Codes and sizes of one data set."""

    name: str
    values: np.ndarray
    sizes: tuple[int, ...]

    @property
    def schema(self) -> Schema:
        """Nominal columns c0, c1, ... with the codes themselves as levels."""
        return Schema(
            tuple(
                Column(f"c{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(self.sizes)
            )
        )


def by_class(laws: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw a row from the law of its class; laws: (classes, levels)."""
    sums, points = laws.cumsum(axis=1), rng.random(len(classes))
    codes = np.empty(len(classes), dtype=np.int64)
    for k in range(len(laws)):
        own = classes == k
        codes[own] = np.searchsorted(sums[k], points[own] * sums[k, -1])
    return np.minimum(codes, laws.shape[1] - 1)


def load(name: str) -> Table:
    """Adult as binned by its domain file; of the others, numbers in 32 equal bins, nulls a level."""
    if name == "adult":
        domain = json.loads((DATA / "adult_binned.domain.json").read_text())
        frame = pl.read_parquet(DATA / "adult_binned_train.parquet").select(list(domain))
        return Table(name, frame.to_numpy().astype(np.int64), tuple(domain.values()))
    frame = pl.read_parquet(DATA / f"{name}.parquet")
    columns, sizes = [], []
    for column in frame.drop(WEIGHTS, strict=False).get_columns():
        codes = codes_of(column)
        columns.append(codes)
        sizes.append(int(codes.max()) + 1)
    return Table(name, np.stack(columns, axis=1), tuple(sizes))


def codes_of(column: pl.Series) -> np.ndarray:
    if column.dtype.is_numeric() and column.n_unique() > 40:
        numbers = column.cast(pl.Float64)
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
        bins = ((numbers - low) / (high - low) * BINS).floor().clip(0, BINS - 1)
        return bins.fill_null(BINS).cast(pl.Int64).to_numpy()
    return (column.cast(pl.String).rank("dense").fill_null(0) - 1).cast(pl.Int64).to_numpy() % (
        column.n_unique()
    )


def distance(one: np.ndarray, two: np.ndarray, sizes: tuple[int, ...], ways: int) -> float:
    """Mean total variation distance over all margins, or a fixed sample of TRIPLES of them."""
    margins = list(itertools.combinations(range(len(sizes)), ways))
    if ways > 2 and len(margins) > TRIPLES:
        picked = np.random.default_rng(0).choice(len(margins), TRIPLES, replace=False)
        margins = [margins[i] for i in picked]
    return float(np.mean([_tv(one, two, sizes, m) for m in margins]))


def _tv(one: np.ndarray, two: np.ndarray, sizes: tuple[int, ...], columns: Any) -> float:
    shares = []
    cells = int(np.prod([sizes[c] for c in columns]))
    for rows in (one, two):
        key = np.zeros(len(rows), dtype=np.int64)
        for c in columns:
            key = key * sizes[c] + rows[:, c]
        shares.append(np.bincount(key, minlength=cells) / len(rows))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def synthesize(mechanism: Any, table: Table, seed: int, sets: int = 1) -> tuple[np.ndarray, float]:
    """One run on exact counts: synthetic rows, the same number of each set, and CPU seconds."""
    schema = table.schema
    values = np.asfortranarray(table.values.astype(schema.code_dtype()))
    start = time.process_time()
    plan = mechanism.plan(schema, None, sets)
    engine = LocalEngine.from_codes(Codes(schema, values, secret=True))
    tables = spend(Privacy(schema, mechanism), plan, engine)
    drawn = [
        sample(tables, len(values) // sets, seed=seed, set_index=number).values
        for number in range(sets)
    ]
    return np.concatenate(drawn).astype(np.int64), time.process_time() - start


def measure(table: Table, epsilon: float, delta: float, repeats: int) -> list[dict[str, Any]]:
    methods: dict[str, Any] = {
        "noisy_pegs": NoisyPegs(epsilon=epsilon, delta=delta),
        "sbhg": Sbhg(epsilon=epsilon, delta=delta),
        "independent columns": NoisyPegs(epsilon=epsilon, delta=delta, parents=0),
    }
    rng = np.random.default_rng(7)
    found = []
    for name in ["resampled records", *methods]:
        runs = []
        for repeat in range(repeats):
            if name in methods:
                rows, seconds = synthesize(methods[name], table, repeat)
            else:
                rows, seconds = (
                    table.values[rng.integers(0, len(table.values), len(table.values))],
                    0.0,
                )
            tv = [distance(table.values, rows, table.sizes, ways) for ways in (1, 2, 3)]
            runs.append([*tv, seconds])
        mean = np.mean(runs, axis=0)
        found.append(
            {
                "data": table.name,
                "rows": len(table.values),
                "columns": len(table.sizes),
                "method": name,
                "epsilon": epsilon if name in methods else None,
                "delta": delta if name in methods else None,
                "tv1": mean[0],
                "tv2": mean[1],
                "tv3": mean[2],
                "tv2_sd": float(np.std([r[1] for r in runs])),
                "cpu_seconds": mean[3],
                "repeats": repeats,
            }
        )
        show(found[-1])
    return found


def show(row: dict[str, Any]) -> None:
    epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
    delta = "-" if row["delta"] is None else f"{row['delta']:g}"
    print(
        f"{row['data']:12} {row['method']:20} {epsilon:>5} {delta:>6} "
        f"{row['tv1']:7.4f} {row['tv2']:7.4f} {row['tv3']:7.4f} {row['cpu_seconds']:7.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["adult", "discharge13", "acs_ma2019"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", nargs="+", type=float, default=[1e-6, 1e-9])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit("the data sets beside the repository (../shared/data) are absent")
    print(
        f"{'data':12} {'method':20} {'eps':>5} {'delta':>6} {'TV1':>7} {'TV2':>7} {'TV3':>7} {'cpu s':>7}"
    )
    results = []
    for name in given.data:
        table = load(name)
        for epsilon in given.epsilon:
            for delta in given.delta:
                results += measure(table, epsilon, delta, given.repeats)
    if given.json:
        about = {
            "python": platform.python_version(),
            **{p: version(p) for p in ("gibbous", "numpy", "numba", "opendp", "polars")},
        }
        given.json.write_text(json.dumps({"versions": about, "results": results}, indent=1))


if __name__ == "__main__":
    main()
