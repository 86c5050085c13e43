"""Figures of the page of paid_bins: the same methods on equal, declared and paid bins of `sparcs_msk`.

    python bench/paid_bins.py [--runs 5] [--only adaptive_gibbs]

The noise is the system's: another run has other digits. Prints Markdown, and the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.mechanisms.paid_bins import PaidBins

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GROUPS = ("sex", "age", "severity", "drg_class")
BOUNDS = {"los": (1, 120), "charges": (0, 500_000), "costs": (0, 150_000)}
DECLARED = {
    "los": (1, 2, 3, 4, 5, 6, 8, 10, 14, 21, 30, 60, 120),
    "charges": tuple(1000 * v for v in (0, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500)),
    "costs": tuple(1000 * v for v in (0, 3, 6, 9, 12, 18, 24, 30, 45, 60, 90, 150)),
}
BINS = 16
SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def stays(groups: tuple[str, ...]) -> pl.DataFrame:
    """Hospital stays, numbers clamped to their public bounds."""
    frame = pl.read_parquet(DATA / "sparcs_msk.parquet").select(*groups, *BOUNDS)
    return frame.cast(dict.fromkeys(groups, pl.String)).with_columns(
        pl.col(name).clip(*BOUNDS[name]) for name in ("charges", "costs")
    )


def schema(groups: tuple[str, ...], bins: str) -> gb.Schema:
    """Public bounds, with equal or declared bins."""
    told = json.loads((DATA / "sparcs_msk.schema.json").read_text())["columns"]
    levels = {c["name"]: (c["kind"], tuple(c["levels"])) for c in told if c["name"] in groups}
    columns = [gb.Column(name, levels[name][0], levels=levels[name][1]) for name in groups]
    for name, (low, high) in BOUNDS.items():
        cuts = np.linspace(low, high, BINS + 1).round()
        edges = DECLARED[name] if bins == "declared" else tuple(cuts.tolist())
        whole: dict[str, Any] = {"integer": True} if name == "los" else {"decimals": 2}
        columns.append(gb.Column(name, "numeric", edges=edges, **whole))
    return gb.Schema(tuple(columns))


def figures(real: pl.DataFrame, drawn: pl.DataFrame) -> dict[str, float]:
    """Errors of one synthetic set."""
    found: dict[str, float] = {}
    for name in BOUNDS:
        one, two = (f[name].cast(pl.Float64).to_numpy() for f in (real, drawn))
        low, high = BOUNDS[name]
        grid = np.arange(low, high + 2) if name == "los" else np.linspace(low, high, 257)
        grid[-1] += 1
        shares = [np.histogram(v, grid)[0] / len(v) for v in (one, two)]
        found[f"tv {name}"] = float(np.abs(shares[0] - shares[1]).sum() / 2)
        cuts = [np.quantile(v, SHARES) for v in (one, two)]
        found[f"quantiles {name}"] = float(np.abs(cuts[1] / cuts[0] - 1).mean())
        found[f"mean {name}"] = float(two.mean() / one.mean())
        found[f"sd {name}"] = float(two.std() / one.std())
    pair = drawn.select("los", "charges").cast(pl.Float64).to_numpy()
    found["r"] = float(np.corrcoef(pair.T)[0, 1])
    return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only")
    asked = parser.parse_args()
    methods = {
        "adaptive_gibbs": (gb.AdaptiveGibbs(epsilon=1, delta=1e-9), GROUPS),
        "laplace": (gb.Laplace(epsilon=1), ("severity",)),
    }
    for label, (method, groups) in methods.items():
        if asked.only and label != asked.only:
            continue
        real, bins = stays(groups), BINS if label != "laplace" else 8
        ways: dict[str, tuple[Any, str]] = {
            "declared": (method, "declared"),
            "equal": (method, "equal"),
            "paid, uniform": (PaidBins(method, bins=bins, within="uniform"), "equal"),
            "paid": (PaidBins(method, bins=bins), "equal"),
            "paid, log": (PaidBins(method, bins=bins, grid="log"), "equal"),
        }
        for way, (mechanism, kind) in ways.items():
            start, rows = time.process_time(), []
            for run in range(asked.runs):
                release = gb.synthesize(
                    real, schema(groups, kind), mechanism, seed=run, ledger=gb.Ledger.ephemeral()
                )
                rows.append(figures(real, release.sets[0]))
            spent = (time.process_time() - start) / asked.runs
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            cells = [
                ", ".join(
                    f"{mean[f'{what} {name}']:.3f}" for what in ("tv", "quantiles", "mean", "sd")
                )
                for name in BOUNDS
            ]
            last = f"{mean['r']:.3f} | {spent:.1f} | load {os.getloadavg()[0]:.0f}"
            print(f"| {label} | {way} | {' | '.join(cells)} | {last}", flush=True)


if __name__ == "__main__":
    main()
