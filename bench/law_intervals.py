"""Do 95 % intervals of means hold the truth, where the law of numbers was bought?

    python bench/law_intervals.py 8 20000 1      # releases, rows, seed of the made-up records
    python bench/law_intervals.py 8 6000 3

Nine made-up columns with bounds alone and one of levels, epsilon 1, delta 1e-9. Of each column: how many
intervals hold the mean of the records, and the median half width of an interval in root mean square errors
of the estimate (2 would be right, were errors normal and unbiased).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import nbinom, norm

import gibbous as gb
from gibbous import infer

BOUNDS = {
    "pareto": 1e6, "logn2": 1e7, "expo": 1000.0, "negbin": 500, "rare": 1e6, "cap": 99_999,
    "normal": 500.0, "flat": 2000, "bimodal": 200,
}  # fmt: skip
WHOLE = ("pareto", "negbin", "rare", "cap", "flat", "bimodal")


def records(rows: int, seed: int) -> pl.DataFrame:
    """Columns that follow one hidden number, skewed, flat, with two humps, with zeros and a code."""
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=rows)

    def near() -> np.ndarray:
        return np.asarray(0.6 * hidden + 0.8 * draw.normal(size=rows))

    def share() -> np.ndarray:
        return np.asarray(norm.cdf(near()))

    zero, coded = draw.random(rows) < 0.9, draw.random(rows) < 0.005
    humps = np.where(
        share() < 0.3, 20 + 4 * draw.normal(size=rows), 70 + 8 * draw.normal(size=rows)
    )
    columns = {
        "pareto": np.minimum(np.floor(100 * (1 - share()) ** (-1 / 1.6)), 1e6),
        "logn2": np.round(np.minimum(np.exp(5 + 2 * near()), 1e7), 2),
        "expo": np.round(-np.log(1 - share()) * 30, 1),
        "negbin": nbinom.ppf(share(), 0.25, 0.12),
        "rare": np.where(
            draw.random(rows) < 0.97, 0, np.minimum(np.floor(np.exp(8 + near())), 1e6)
        ),
        "cap": np.where(coded, 99_999, np.where(zero, 0, np.floor(3000 + 1500 * near()).clip(0))),
        "normal": np.round(100 + 15 * near(), 1),
        "flat": np.floor(1000 * share()),
        "bimodal": np.floor(humps).clip(0),
    }
    frame = pl.DataFrame({k: v.astype(int) if k in WHOLE else v for k, v in columns.items()})
    group = np.array(["a", "b", "c"])[np.digitize(hidden, [-0.5, 0.8])]
    return frame.with_columns(pl.Series("class", group))


def numbers(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Means, and their variances in a sample of so many rows."""
    values = frame.select(list(BOUNDS)).cast(pl.Float64).to_numpy()
    return values.mean(axis=0), values.var(axis=0) / len(values)


def main() -> None:
    releases, rows, seed = map(int, sys.argv[1:4])
    real = records(rows, seed)
    numeric = [
        gb.Column(name, "numeric", edges=(0, int(high)), integer=True)
        if name in WHOLE
        else gb.Column(name, "numeric", edges=(0.0, high))
        for name, high in BOUNDS.items()
    ]
    schema = gb.Schema((*numeric, gb.Column("class", "nominal", levels=("a", "b", "c"))))
    truth, found = numbers(real)[0], []
    for run in range(releases):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "release"
            method = gb.AdaptiveGibbs(epsilon=1, delta=1e-9)
            gb.synthesize(real, schema, method, seed=run, out=out, ledger=gb.Ledger.ephemeral())
            found.append(infer.load_release(out).combine(numbers, names=list(BOUNDS)))
    held = np.array([(one.low <= truth) & (truth <= one.high) for one in found])
    error = np.sqrt(np.mean([(one.estimate - truth) ** 2 for one in found], axis=0))
    half = np.median([one.high - one.low for one in found], axis=0) / 2 / error
    for name, many, wide, off in zip(BOUNDS, held.sum(axis=0), half, error / truth, strict=True):
        print(
            f"{name:8} held {many} of {releases}; half width {wide:.1f}; error {off:.1%} of the mean"
        )
    print(f"held {held.sum()} of {held.size}")


if __name__ == "__main__":
    main()
