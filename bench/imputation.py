"""Imputation on 13 discharge columns: time of fitting every full conditional, of rows, and of each fit."""

from __future__ import annotations

import json
import os
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
from common import Result, arguments, peak_mb, save, show

from gibbous.core.schema import Column, Schema
from gibbous.perturb.add import Add
from gibbous.privacy import entropy
from gibbous.privacy.calibrate.gibbs import alpha_from_eps0
from gibbous.sampling.imputation.imputed_rows import PARTS, redraw
from gibbous.sampling.imputation.records import Records
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals
from gibbous.sampling.structural_zeros import uniform_rows

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def discharge(most: int | None) -> tuple[Schema, Records]:
    """The records of discharge13 (or the first `most` of them), as distinct rows."""
    frame = pl.read_parquet(SHARED / "discharge13.parquet").head(most or 10**9)
    told = json.loads((SHARED / "discharge13.schema.json").read_text())["columns"]
    columns, codes = [], []
    for one in told:
        levels = tuple(str(level) for level in one["levels"])
        columns.append(Column(one["name"], "nominal", levels=levels))
        place = {level: code for code, level in enumerate(levels)}
        codes.append([place[str(value)] for value in frame[one["name"]].to_list()])
    values = np.array(codes, dtype=np.int32).T
    distinct, counts = np.unique(values, axis=0, return_counts=True)
    schema = Schema(tuple(columns))
    return schema, Records(np.ascontiguousarray(distinct.T), counts, schema.sizes)


def rows_of(
    schema: Schema, models: tuple[Conditional, ...], floor: Add | None, rows: int, sweeps: int
) -> tuple[np.ndarray, float]:
    """Rows and the CPU seconds of drawing them."""
    start = time.process_time()
    state = uniform_rows(schema, rows, entropy.words)
    for _ in range(sweeps):
        for model in models:
            redraw(model, state, (), entropy.words, floor)
    return state, time.process_time() - start


def distance(records: Records, state: np.ndarray) -> float:
    """Mean total variation distance of the 1-way margins."""
    found = []
    for j, size in enumerate(records.sizes):
        held = records.margin(j) / records.total
        found.append(np.abs(held - np.bincount(state[j], minlength=size) / state.shape[1]).sum())
    return float(np.mean(found)) / 2


def main() -> None:
    """Run and print."""
    options = arguments(__doc__ or "").parse_args()
    schema, records = discharge(1_000 if options.quick else None)
    busy, wall = time.process_time(), time.perf_counter()
    models = conditionals(records, Fit())
    busy, wall = time.process_time() - busy, time.perf_counter() - wall
    fitted = peak_mb()
    fixed = sorted(schema.names[m.target] + f" {m.strength:g}" for m in models)
    results = [
        Result("fit, CPU on all threads", busy, 1200.0, "s", f"{records.total} records"),
        Result("fit, wall clock", wall, 600.0, "s", f"load {os.getloadavg()[0]:.1f}"),
        Result("peak memory after the fit", fitted, None, "MB"),
    ]
    rows = 2_000 if options.quick else 100_000
    rows_of(schema, models, None, 10, 1)  # compiles
    for name, floor, sweeps in (
        ("imputation, 10 passes", None, 10),
        ("perturbed, epsilon 1 a row", Add(alpha_from_eps0(Fraction(1, 13), PARTS)), 1),
        ("perturbed, epsilon 100 a row", Add(alpha_from_eps0(Fraction(100, 13), PARTS)), 1),
    ):
        state, seconds = rows_of(schema, models, floor, rows, sweeps)
        draws = rows * sweeps * len(models)
        results += [
            Result(f"{name}: a draw", seconds / draws * 1e9, None, "ns"),
            Result(f"{name}: mean 1-way distance", distance(records, state), None, "TV"),
        ]
    show("Imputation on discharge13", results)
    sys.stdout.write("strength (1 / total penalty) by column: " + ", ".join(fixed) + "\n")
    save(options.json, "imputation", results, "scikit-learn", "numpy", "scipy")


if __name__ == "__main__":
    main()
