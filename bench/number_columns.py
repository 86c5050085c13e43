"""Figures of docs/how-to/numbers.md: numbers under bounds alone, before (16 equal bins) and now.

    python bench/number_columns.py [--tables adult] [--runs 2] [--out FILE]

and of a peer's rows, which `bench/peers/run_numbers.py` makes of the files that `--write` leaves:

    python bench/number_columns.py --tables adult --write FOLDER
    python bench/number_columns.py --tables adult --ways dpmm-mst --read rows.csv [--out FILE]

The noise is the system's: another run has other digits. One line of JSON a run.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ROWS, BINS = 50_000, 16
WHOLE: dict[str, Any] = {"integer": True}
TABLES: dict[str, tuple[dict[str, tuple[float, float]], tuple[str, ...]]] = {
    "adult": (
        {
            "age": (0, 120),
            "capital_gain": (0, 99_999),
            "capital_loss": (0, 10_000),
            "hours_per_week": (1, 99),
            "fnlwgt": (0, 2_000_000),
        },
        ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "income"),
    ),
    "diabetes130": (
        {
            "time_in_hospital": (1, 14),
            "num_lab_procedures": (0, 150),
            "num_procedures": (0, 10),
            "num_medications": (0, 100),
            "number_outpatient": (0, 100),
            "number_emergency": (0, 100),
            "number_inpatient": (0, 50),
            "number_diagnoses": (1, 16),
        },
        ("gender", "age", "insulin", "change", "readmitted"),
    ),
    "sparcs_msk": (
        {"los": (1, 120), "charges": (0, 5_000_000), "costs": (0, 2_000_000)},
        ("sex", "age", "severity", "drg_class"),
    ),
}  # fmt: skip


def generated(rows: int = 30_000) -> pl.DataFrame:
    """Six columns of laws that are known; all hang on one normal number."""
    rng = np.random.default_rng(7)
    common = rng.normal(size=rows)
    own = [0.7 * common + 0.7 * rng.normal(size=rows) for _ in range(6)]
    spent = np.where(rng.random(rows) < 0.9, 0, np.exp(7 + own[2]).astype(int))
    days = [date(2020, 1, 1) + timedelta(days=int(d)) for d in np.clip(900 + 250 * own[5], 0, 1800)]
    return pl.DataFrame(
        {
            "normal": np.clip(50 + 10 * own[0], 0, 100),
            "lognormal": np.round(np.clip(np.exp(8 + 1.2 * own[1]), 0, 1e6), 2),
            "zeros": np.clip(spent, 0, 100_000),
            "heaped": np.clip((np.round(np.exp(10 + 0.5 * own[3]) / 500) * 500).astype(int), 0, 500_000),
            "capped": np.minimum(np.exp(9 + own[4]).astype(int), 20_000),
            "days": days,
        }
    )  # fmt: skip


def generated_columns(cuts: bool) -> tuple[gb.Column, ...]:
    """Their public bounds."""
    start = date(2020, 1, 1).toordinal()
    told = {
        "normal": (0.0, 100.0), "lognormal": (0.0, 1e6), "zeros": (0, 100_000),
        "heaped": (0, 500_000), "capped": (0, 20_000), "days": (start, start + 1826),
    }  # fmt: skip
    more = {"normal": {}, "lognormal": {"decimals": 2}, "days": {}}
    return tuple(
        gb.Column(
            name, "date" if name == "days" else "numeric",
            edges=edges_of(*ends, name not in ("normal", "lognormal"), cuts), **more.get(name, WHOLE),
        )
        for name, ends in told.items()
    )  # fmt: skip


def edges_of(low: float, high: float, whole: bool, cuts: bool) -> tuple[float, ...]:
    """The bounds, or 16 equal bins."""
    if not cuts:
        return (low, high)
    inner = np.linspace(low, high, BINS + 1)[1:-1]
    return (low, *np.unique(np.round(inner) if whole else inner).tolist(), high)


def table(name: str, cuts: bool) -> tuple[pl.DataFrame, gb.Schema]:
    """Records, and their schema under bounds alone or under equal bins."""
    if name == "generated":
        return generated(), gb.Schema(generated_columns(cuts), gb.Unit())
    bounds, groups = TABLES[name]
    frame = pl.read_parquet(DATA / f"{name}.parquet").select(*groups, *bounds)
    if frame.height > ROWS:
        frame = frame.sample(ROWS, seed=1)
    frame = frame.cast(dict.fromkeys(groups, pl.String)).with_columns(
        *(pl.col(g).fill_null("none") for g in groups),
        *(pl.col(n).clip(*ends) for n, ends in bounds.items()),
    )
    columns = [
        gb.Column(g, "nominal", levels=tuple(sorted(frame[g].unique().to_list()))) for g in groups
    ]
    for column, (low, high) in bounds.items():
        money = name == "sparcs_msk" and column != "los"
        kind: dict[str, Any] = {"decimals": 2} if money else WHOLE
        many = cuts and (money or high - low > BINS)
        columns.append(
            gb.Column(column, "numeric", edges=edges_of(low, high, not money, many), **kind)
        )
    return frame, gb.Schema(tuple(columns), gb.Unit())


def figures(real: pl.DataFrame, drawn: pl.DataFrame, schema: gb.Schema) -> dict[str, Any]:
    """Errors of one synthetic set, by numeric column; and the largest change of a rank correlation."""
    found: dict[str, Any] = {}
    names = [c.name for c in schema if c.binned]
    numbers = [
        {n: f[n].to_physical().cast(pl.Float64).to_numpy() for n in names} for f in (real, drawn)
    ]
    for name in names:
        one, two = (np.sort(side[name]) for side in numbers)
        at = np.unique(np.concatenate([one, two]))
        below = [np.searchsorted(v, at, side="right") / len(v) for v in (one, two)]
        room = 2 * one.std() / np.sqrt(len(one))
        found[name] = {
            "ks": float(np.abs(below[0] - below[1]).max()),
            "zeros": float(abs((one == 0).mean() - (two == 0).mean())),
            "mean": float(two.mean() / one.mean() - 1),
            "mean_fits": bool(abs(two.mean() - one.mean()) <= 0.02 * abs(one.mean()) + room),
        }
    ranks = [np.array([pl.Series(s[n]).rank().to_numpy() for n in names]) for s in numbers]
    apart = np.abs(np.corrcoef(ranks[0]) - np.corrcoef(ranks[1]))
    found["spearman"] = float(apart.max())
    return found


def keep(line: dict[str, Any], out: Path | None) -> None:
    """Print one line, and put it at the end of the file."""
    print(json.dumps(line), flush=True)
    if out:
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def written(name: str, folder: Path) -> None:
    """A table as CSV, and its domain as dpmm reads it."""
    real, schema = table(name, cuts=False)
    domain = {
        c.name: {"lower": c.edges[0], "upper": c.edges[-1]}
        if c.binned
        else {"categories": c.levels}
        for c in schema
    }
    real.write_csv(folder / f"{name}.csv")
    (folder / f"{name}.json").write_text(json.dumps(domain))


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default=f"generated,{','.join(TABLES)}")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--ways", default="before,now")
    parser.add_argument("--share", type=float)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--read", type=Path)
    asked = parser.parse_args()
    for name in asked.tables.split(","):
        if asked.write:
            written(name, asked.write)
            continue
        if asked.read:
            real, schema = table(name, cuts=False)
            line = {"table": name, "way": asked.ways} | figures(
                real, pl.read_csv(asked.read), schema
            )
            keep(line, asked.out)
            continue
        for way in asked.ways.split(","):
            real, schema = table(name, cuts=way == "before")
            method: Any = gb.AdaptiveGibbs(epsilon=1, delta=1e-9)
            if asked.share:
                names = tuple(c.name for c in schema if c.binned)
                method = gb.PaidBins(method, share=asked.share, columns=names)
            for run in range(asked.runs):
                start = time.process_time()
                release = gb.synthesize(
                    real, schema, method, seed=run, ledger=gb.Ledger.ephemeral()
                )
                spent = time.process_time() - start
                found = figures(real, release.sets[0], schema)
                line = {"table": name, "way": way, "run": run, "cpu": round(spent, 1)}
                keep(line | found, asked.out)


if __name__ == "__main__":
    main()
