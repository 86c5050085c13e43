"""Figures of the pages of dirichlet, perturbed_histogram and modips, resumable.

    python bench/dips.py                      # all cells that results/dips.jsonl lacks, then the tables
    python bench/dips.py --only modips        # one of the three
    python bench/dips.py --table              # nothing is run: the tables as Markdown

A cell is a method, a table and a budget; its runs are appended to the file as they end, with CPU seconds
and the load of the machine. The noise is the system's: another file has other digits.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.core.stream import stream_key, words
from gibbous.encode.encode import encode
from gibbous.privacy.ledger import Ledger

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULTS = Path(__file__).with_name("results") / "dips.jsonl"
AGE = (17, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 91)
STAY = (1, 2, 3, 4, 5, 6, 8, 10, 14, 21, 30, 60, 120)
CHARGES = (0, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500)  # thousand USD
COSTS = (0, 3, 6, 9, 12, 18, 24, 30, 45, 60, 90, 150)
FORMULA = "charges ~ los + severity + drg_class"
DRAWN = ("laplace", "dirichlet", "dp_prior", "smoothed_histogram", "cdf")
SHAPES = (
    (("sex", "income"), 48_842),
    (("sex", "income"), 1_000),
    (("age", "sex", "income"), 1_000),
    (("age", "education", "marital_status", "sex", "income"), 48_842),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of a table.

    Attributes:
        part: dirichlet, histogram or modips.
        name: of the cell, unlike any other.
        runs: how often.
        work: one run -> its figures; the argument is the number of the run.
    """

    part: str
    name: str
    runs: int
    work: Callable[[int], dict[str, float]]


def cells() -> Iterator[Cell]:
    """All cells, in the order of the tables."""
    for (names, rows), method in itertools.product(SHAPES, DRAWN):
        yield Cell("dirichlet", f"{'+'.join(names)}|{rows}|{method}", 3,
                   lambda run, n=names, r=rows, m=method: _margins(n, r, m))  # fmt: skip
    for fit in ("clip", "rake"):
        yield Cell("histogram", f"fnlwgt|{fit}", 1, lambda run, f=fit: _weights(f))
    for n, epsilon, bins in (
        (1_000, 0.1, "sturges"), (1_000, 0.1, "public"), (1_000, 0.1, "paid"),
        (1_000, 1.0, "public"), (1_000, 1.0, "paid"), (100_000, 0.1, "sturges"),
        (100_000, 0.1, "public"), (100_000, 0.1, "paid"), (1_000, 1.0, "smoothed"),
    ):  # fmt: skip
        yield Cell("histogram", f"normal|{n}|{epsilon:g}|{bins}", 10,
                   lambda run, a=(n, epsilon, bins): _normal(*a, run))  # fmt: skip
    yield Cell("modips", "records", 1, lambda run: _described([_stays()]))
    for epsilon, name, options, runs in (
        (1, "modips", {}, 3), (1, "modips", {"noise": "gaussian", "delta": 1e-9}, 2),
        (1, "modips", {"values": "clipped"}, 3), (1, "adaptive_gibbs", {}, 2),
        (10, "modips", {}, 2), (10, "modips", {"values": "clipped"}, 2), (10, "adaptive_gibbs", {}, 1),
    ):  # fmt: skip
        given = ", ".join(f"{k} = {v}" for k, v in options.items() if k != "delta")
        yield Cell("modips", f"{epsilon}|{name}|{given}", runs,
                   lambda run, a=(name, epsilon, options): _stay_release(*a, run))  # fmt: skip


def _release(frame: pl.DataFrame, schema: gb.Schema, method: Any, **options: Any) -> Any:
    return gb.synthesize(frame, schema, method, ledger=Ledger.ephemeral(), **options)


def _method(name: str, **options: Any) -> Any:
    from gibbous.mechanisms.registry import load

    return load(name)(**options)


# dirichlet: mean total variation of margins on Adult


def _adult(names: tuple[str, ...]) -> tuple[pl.DataFrame, gb.Schema]:
    told = {c["name"]: c for c in json.loads((DATA / "adult.schema.json").read_text())["columns"]}
    columns = []
    for name in names:
        if name == "age":
            columns.append(gb.Column("age", "numeric", edges=AGE, integer=True))
        else:
            kind = "binary" if len(told[name]["levels"]) == 2 else told[name]["kind"]
            columns.append(gb.Column(name, kind, levels=tuple(told[name]["levels"])))
    frame = pl.read_parquet(DATA / "adult.parquet").select(names)
    return frame.cast({n: pl.String for n in names if n != "age"}), gb.Schema(tuple(columns))


def _margins(names: tuple[str, ...], rows: int, method: str) -> dict[str, float]:
    frame, schema = _adult(names)
    known = (
        {"records": len(frame)} if method == "smoothed_histogram" else {}
    )  # public, as it may be
    release = _release(frame, schema, _method(method, epsilon=1, **known), rows=rows)
    real, drawn = (encode(one, schema).values for one in (frame, release.sets[0]))
    found = {}
    for order in (1, 2):
        each = [
            _distance(real, drawn, columns, schema.sizes)
            for columns in itertools.combinations(range(len(schema)), order)
        ]
        found[f"tv{order}"] = float(np.mean(each))
    return found


def _distance(
    real: np.ndarray, drawn: np.ndarray, columns: tuple[int, ...], sizes: tuple[int, ...]
) -> float:
    shape = [sizes[c] for c in columns]
    shares = []
    for table in (real, drawn):
        at = np.ravel_multi_index([table[:, c].astype(np.int64) for c in columns], shape)
        shares.append(np.bincount(at, minlength=int(np.prod(shape))) / len(table))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# perturbed_histogram: a skewed weight beside two columns, and a normal column


def _weights(fit: str) -> dict[str, float]:
    frame, two = _adult(("age", "sex"))
    weight = pl.read_parquet(DATA / "adult.parquet")["fnlwgt"]
    bounds = (0.0, 1_500_000.0)
    schema = gb.Schema((*two.columns, gb.Column("fnlwgt", "numeric", edges=bounds, integer=True)))
    method = gb.PerturbedHistogram(epsilon=1, bins="scott", scale="paid", fit=fit)
    release = _release(frame.with_columns(weight), schema, method)
    drawn = release.sets[0]["fnlwgt"].to_numpy().astype(float)
    cells = int(np.prod(release.schema.sizes))
    return {"ks": _ks(weight.to_numpy(), drawn), "mean": float(drawn.mean()),
            "sd": float(drawn.std()), "cells": cells, "real_mean": float(weight.mean()),
            "real_sd": float(weight.std())}  # fmt: skip


def _normal(n: int, epsilon: float, bins: str, run: int) -> dict[str, float]:
    from scipy import special

    unit = ((words(stream_key(17, n, run), 0, n) >> np.uint64(12)) + 0.5) * 2.0**-52
    values = np.clip(special.ndtri(unit), -3.0, 4.0)
    column = gb.Column("x", "numeric", edges=(-3.0, 4.0), decimals=6)
    rule: dict[str, Any] = {"bins": "sturges" if bins == "sturges" else "scott", "records": n}
    if bins in ("public", "smoothed"):
        rule["spreads"] = (("x", 1.0),)
    if bins == "paid":
        rule["scale"] = "paid"
    kind = "smoothed_histogram" if bins == "smoothed" else "perturbed_histogram"
    frame, schema = pl.DataFrame({"x": values.round(6)}), gb.Schema((column,))
    release = _release(frame, schema, _method(kind, epsilon=epsilon, **rule), rows=n)
    drawn = release.sets[0]["x"].to_numpy().astype(float)
    return {"ks": _ks(values, drawn), "sd": float(drawn.std()), "bins": release.schema.sizes[0]}


def _ks(one: np.ndarray, two: np.ndarray) -> float:
    """Largest difference of the two distribution functions."""
    at = np.sort(np.concatenate([one, two]))
    below = [np.searchsorted(np.sort(v), at, side="right") / len(v) for v in (one, two)]
    return float(np.abs(below[0] - below[1]).max())


# modips: hospital stays


def _stays() -> pl.DataFrame:
    names = ["sex", "age", "severity", "drg_class", "los", "charges", "costs"]
    frame = pl.read_parquet(DATA / "sparcs_msk.parquet").select(names)
    return frame.cast(dict.fromkeys(names[:4], pl.String)).with_columns(
        pl.col("charges").clip(0, 500_000), pl.col("costs").clip(0, 150_000)
    )


def _stay_schema() -> gb.Schema:
    told = {
        c["name"]: c for c in json.loads((DATA / "sparcs_msk.schema.json").read_text())["columns"]
    }
    columns = [
        gb.Column(name, told[name]["kind"], levels=tuple(told[name]["levels"]))
        for name in ("sex", "age", "severity", "drg_class")
    ]
    money = [
        gb.Column(name, "numeric", edges=tuple(1000 * v for v in edges), decimals=2)
        for name, edges in (("charges", CHARGES), ("costs", COSTS))
    ]
    stay = gb.Column("los", "numeric", edges=STAY, integer=True)
    return gb.Schema((*columns, stay, *money))


def _stay_release(name: str, epsilon: float, options: dict[str, Any], run: int) -> dict[str, float]:
    frame, schema = _stays(), _stay_schema()
    if name == "adaptive_gibbs":
        options = {"delta": 1e-9, **options}
    start = time.process_time()
    release = _release(frame, schema, _method(name, epsilon=epsilon, **options), sets=2, seed=run)
    spent = time.process_time() - start
    found = gb.evaluate(
        frame, release, schema, formulas=[FORMULA], only=["tv1", "tv2", "ci_overlap"]
    )
    told = {one: float(found[one].value) for one in ("tv1", "tv2", "ci_overlap")}
    return _described(list(release.sets)) | told | {"release_cpu_s": spent}


def _described(sets: list[pl.DataFrame]) -> dict[str, float]:
    """Means over sets; the error of cell means against the records, weighted, in sd of a charge."""
    real = _stays()
    groups = ["sex", "age", "severity", "drg_class"]
    known = (
        real.group_by(groups).agg(m=pl.col("charges").mean(), n=pl.len()).filter(pl.col("n") >= 100)
    )
    rows = []
    for one in sets:
        mine = (
            one.cast(dict.fromkeys(groups, pl.String))
            .group_by(groups)
            .agg(pl.col("charges").mean())
        )
        both = known.join(mine, on=groups, how="left").drop_nulls()
        gap = (both["charges"].cast(pl.Float64) - both["m"]).to_numpy()
        error = float(np.sqrt(np.average(gap**2, weights=both["n"].to_numpy())))
        stay, charge = (one[c].cast(pl.Float64).to_numpy() for c in ("los", "charges"))
        rows.append([charge.mean(), charge.std(), stay.mean(), np.corrcoef(stay, charge)[0, 1],
                     error / float(real["charges"].std())])  # fmt: skip
    names = ("mean_charges", "sd_charges", "mean_stay", "r", "cell_means")
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


# runs and tables


def run(only: str | None) -> None:
    """Do what the file of results lacks."""
    done = {(one["name"], one["run"]) for one in _results()}
    for cell in cells():
        for number in range(cell.runs):
            if (cell.name, number) in done or (only and cell.part != only):
                continue
            start = time.process_time()
            figures = cell.work(number)
            line = {"part": cell.part, "name": cell.name, "run": number, **figures,
                    "cpu_s": round(time.process_time() - start, 2),
                    "load": round(os.getloadavg()[0], 1), "gibbous": gb.__version__}  # fmt: skip
            with RESULTS.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


def _results() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def table() -> None:
    """The tables of the three pages, as Markdown."""
    by: dict[str, list[dict[str, Any]]] = {}
    for one in _results():
        by.setdefault(one["name"], []).append(one)
    print(f"| columns | cells | rows | {' | '.join(f'`{m}`' for m in DRAWN)} |")
    for names, rows in SHAPES:
        found = [by.get(f"{'+'.join(names)}|{rows}|{method}", []) for method in DRAWN]
        size = int(np.prod(_adult(names)[1].sizes))
        words_of = [
            f"{_short(_mean(f, 'tv1'))}, {_short(_mean(f, 'tv2'))}" if f else "" for f in found
        ]
        print(f"| {', '.join(names)} | {size:,} | {rows:,} | {' | '.join(words_of)} |")
    print()
    for name, found in by.items():
        if name.startswith("fnlwgt"):
            one = found[0]
            print(
                name,
                {
                    k: round(one[k], 3)
                    for k in ("ks", "mean", "sd", "cells", "real_mean", "real_sd")
                },
            )
        elif name.startswith("normal"):
            _, n, epsilon, rule = name.split("|")
            sizes = sorted({int(f["bins"]) for f in found})
            bins = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            print(f"| {int(n):,} | {epsilon} | {rule} | {bins} | {_short(_mean(found, 'ks'))} | "
                  f"{_mean(found, 'sd'):.2f} |")  # fmt: skip
    print()
    for name, found in by.items():
        if found[0]["part"] == "modips":
            _print_stays(name, found)


def _print_stays(name: str, found: list[dict[str, Any]]) -> None:
    epsilon, method, options = (*name.split("|"), "", "")[:3] if "|" in name else ("-", name, "")
    shown = [f"{_mean(found, 'mean_charges'):,.0f}", f"{_mean(found, 'sd_charges'):,.0f}",
             f"{_mean(found, 'mean_stay'):.2f}", _short(_mean(found, "r"))]  # fmt: skip
    if method == "records":
        shown += ["-"] * 5
    else:
        shown += [_short(_mean(found, k)) for k in ("cell_means", "tv1", "tv2")]
        shown.append(f"{_mean(found, 'ci_overlap'):.2f}".removeprefix("0"))
        shown.append(f"{max(f['release_cpu_s'] for f in found):.1f}")
    label = f"{method}, {options}" if options else method
    print(
        f"| {label} | {epsilon} | {len(found) if epsilon != '-' else '-'} | {' | '.join(shown)} |"
    )


def main() -> None:
    """Run what is missing, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=("dirichlet", "histogram", "modips"))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        run(options.only)
    table()


if __name__ == "__main__":
    main()
