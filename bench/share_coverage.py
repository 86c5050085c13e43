"""Coverage of a share by the law of the release, beside the combining rules and the delta method.

    python bench/share_coverage.py                # the table of docs/reference/combining-rules.md
    python bench/share_coverage.py --runs 200

Each release is one that the mechanism itself draws, through `synthesize`, from fresh binary records; its
noise has no seed. One coverage is known within .005 (one standard error at 2,000 releases).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.evaluation.inference.analysis import Analysis

SCHEMA = gb.Schema((gb.Column("ill", "binary", levels=("yes", "no")),))


@dataclass(frozen=True, slots=True)
class Setting:
    """A method, n records with a share of yes, rows a set, and whether n is told to the analyst."""

    method: Any
    records: int
    share: float
    rows: int
    sets: int = 1
    stated: bool = True


SETTINGS = (
    Setting(gb.Dirichlet(epsilon=2), 400, 0.3, 400),
    Setting(gb.Dirichlet(epsilon=10), 1_000, 0.15, 100, 5),
    Setting(gb.Dirichlet(epsilon=3), 1_000, 0.15, 100),
    Setting(gb.DpPrior(epsilon=50), 1_000, 0.15, 100),
    Setting(gb.DpPrior(epsilon=20), 1_000, 0.15, 100),
    Setting(gb.Laplace(epsilon=1), 100, 0.05, 100),
    Setting(gb.Laplace(epsilon=1), 100, 0.05, 100, stated=False),
    Setting(gb.Laplace(epsilon=0.05), 1_000, 0.15, 1_000, stated=False),
    Setting(gb.Laplace(epsilon=0.1), 100, 0.25, 100, stated=False),
    Setting(gb.Modips(epsilon=1), 100, 0.05, 100, stated=False),
    Setting(gb.Modips(epsilon=0.2, outside="truncate"), 100, 0.05, 100, stated=False),
)


def measure(setting: Setting, runs: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """(coverage, mean width) by the law, by the rule that took its place before, and from the rows alone."""
    held, width = np.zeros(3), np.zeros(3)
    for _ in range(runs):
        ill = rng.random(setting.records) < setting.share
        release = gb.synthesize(
            pl.DataFrame({"ill": np.where(ill, "yes", "no")}),
            SCHEMA,
            setting.method,
            rows=setting.rows,
            sets=setting.sets,
            ledger=gb.Ledger.ephemeral(),
            understand=True,
        )
        analysis = Analysis(release, setting.records if setting.stated else None)
        q = np.array([(one["ill"].to_numpy() == "yes").mean() for one in release.sets])
        inside = (q * setting.rows + 0.5) / (setting.rows + 1)
        rows = gb.infer.combine(
            q, inside * (1 - inside) / setting.rows, rows=setting.rows, records=setting.records
        )
        found = [
            (one.low.flat[0], one.high.flat[0])
            for one in (
                analysis.table(["ill"], rule="measurement").combined,
                analysis.table(["ill"], rule="unified").combined,
                rows,
            )
        ]
        low, high = np.array(found).T
        held += (low <= setting.share) & (setting.share <= high)
        width += np.minimum(high, 1) - np.maximum(low, 0)
    return list(zip(held / runs, width / runs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="releases of a setting")
    parser.add_argument("--seed", type=int, default=3)
    given = parser.parse_args()
    print("| release | records, share | n | `measurement` | `unified` | rows as if not noised |")
    print("|---|---|---|---|---|---|")
    for setting in SETTINGS:
        found = measure(setting, given.runs, np.random.default_rng(given.seed))
        method = setting.method
        name = f"`{method.about.name}`, epsilon {method.epsilon:g}"
        name += ", truncated" if getattr(method, "outside", "clip") == "truncate" else ""
        what = f"{name}, {setting.sets} x {setting.rows} rows"
        figures = " | ".join(f"{held:.3f} ({width:.3f})" for held, width in found)
        n = "stated" if setting.stated else "noisy"
        print(f"| {what} | {setting.records}, {setting.share:g} | {n} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
