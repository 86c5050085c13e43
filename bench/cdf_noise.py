"""Kolmogorov-Smirnov distance of one column by cdf and by laplace, at several sizes and budgets.

python bench/cdf_noise.py        # the table as Markdown, means of five runs
"""

from __future__ import annotations

import numpy as np

import gibbous as gb
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Tables

SIZE, ROWS, RUNS = 100, 400_000, 5
SCHEMA = Schema((Column("x", "ordinal", levels=tuple(range(SIZE))),))
LAWS = ("normal", "log-normal", "uniform")


def column(law: str, records: int) -> np.ndarray:
    """Codes of constructed records."""
    rng = np.random.default_rng(1)
    numbers = {
        "normal": rng.normal(50, 15, records),
        "log-normal": rng.lognormal(2.5, 0.8, records),
        "uniform": rng.uniform(0, SIZE, records),
    }
    return np.clip(numbers[law], 0, SIZE - 1).astype(np.int64)


def shares(codes: np.ndarray) -> np.ndarray:
    """Distribution function over the codes."""
    found: np.ndarray = np.cumsum(np.bincount(codes, minlength=SIZE)) / len(codes)
    return found


def by_cdf(values: np.ndarray, epsilon: float) -> float:
    """Distance of many rows."""
    drawn = release(gb.Cdf(epsilon=epsilon), SCHEMA, values[:, None], ROWS)
    assert isinstance(drawn, Codes)
    return float(np.abs(shares(drawn.values[:, 0]) - shares(values)).max())


def by_laplace(values: np.ndarray, epsilon: float) -> float:
    """Distance of the noisy counts, negative ones set to 0."""
    tables = release(gb.Laplace(epsilon=epsilon), SCHEMA, values[:, None], ROWS)
    assert isinstance(tables, Tables)
    noisy = np.maximum(tables.items[0].cells.values.ravel(), 0)
    return float(np.abs(np.cumsum(noisy) / max(1, noisy.sum()) - shares(values)).max())


def main() -> None:
    """Print the table."""
    print("| column of 100 codes | records | epsilon | `cdf` | `laplace` |")
    print("|---|---:|---:|---:|---:|")
    for law in LAWS:
        for records in (1000, 20_000, 1_000_000):
            values = column(law, records)
            for epsilon in (0.1, 1):
                found = [
                    np.mean([one(values, epsilon) for _ in range(RUNS)])
                    for one in (by_cdf, by_laplace)
                ]
                print(f"| {law} | {records:,} | {epsilon} | {found[0]:.4f} | {found[1]:.4f} |")


if __name__ == "__main__":
    main()
