"""What a bought schema costs in accuracy: one command without a schema against one under an accepted draft.

    python bench/discovery.py data/visits.parquet data/adult.csv      # each at epsilon 1, once
    python bench/discovery.py --table                              # what was measured so far, as Markdown

Each file is cut to its first 50,000 rows and written as CSV. The draft is `infer_schema`, accepted, with
bounds alone for numbers: it read the records for free, so it is what a good declaration would be, or
better. TV2 is the mean total variation distance of all 2-way margins between records and rows, in 16
quantiles of the records and the levels of the draft, over the columns that both releases have; KS and the
error of the share of zeros are of the bought one. One line a run in bench/results/discovery.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import ks_2samp

import gibbous as gb
from gibbous.core.discovery import SHARE, Discovery
from gibbous.encode.cell_text import as_cells, plain_text, whole_text

RESULTS = Path(__file__).resolve().parent / "results" / "discovery.jsonl"
DELTA, ROWS = 1e-9, 50_000


def numbers(values: pl.Series, column: gb.Column) -> np.ndarray:
    """Numbers or days of a column, nan for what is none."""
    if column.kind == "date":
        form = column.date_format or "%Y-%m-%d"
        days = values if values.dtype == pl.Date else values.cast(pl.String).str.to_date(form)
        return days.cast(pl.Int32).cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def codes(values: pl.Series, records: pl.Series, column: gb.Column) -> np.ndarray:
    """Codes in 16 quantiles of the records or in the draft's levels; one more for what is none of them."""
    if column.binned:
        at, of = numbers(values, column), numbers(records, column)
        cuts = np.unique(np.nanquantile(of, np.linspace(0, 1, 17)))[1:-1]
        return np.where(np.isnan(at), len(cuts) + 1, np.searchsorted(cuts, at, side="right"))
    # A word such as NA is missing where a schema was bought, and may be a level of the draft; 3.0 is 3.
    whole = all(type(level) is int for level in column.levels)
    texts = (whole_text if whole else plain_text)(as_cells(values))
    known = {str(level): j for j, level in enumerate(column.levels)}
    found = texts.replace_strict(known, default=len(known), return_dtype=pl.Int64)
    return found.fill_null(len(known)).to_numpy()


def tv2(records: pl.DataFrame, rows: pl.DataFrame, draft: gb.Schema, names: list[str]) -> float:
    """Mean total variation distance of the 2-way margins of some columns."""
    coded = []
    for frame in (records, rows):
        coded.append({n: codes(frame[n], records[n], draft[n]) for n in names})
    far = []
    for one, other in itertools.combinations(names, 2):
        wide = 1 + max(int(c[other].max()) for c in coded)
        cells = [c[one] * wide + c[other] for c in coded]
        size = 1 + max(int(cell.max()) for cell in cells)
        shares = [np.bincount(cell, minlength=size) / len(cell) for cell in cells]
        far.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return float(np.mean(far))


def far(records: pl.DataFrame, rows: pl.DataFrame, names: list[str]) -> tuple[float, float]:
    """Of columns of numbers the mean KS distance, and the largest error of the share of zeros."""
    pairs = [
        [numbers(t[n], gb.Column(n, "numeric", edges=(0.0, 1.0))) for t in (records, rows)]
        for n in names
    ]
    known = [[one[~np.isnan(one)] for one in pair] for pair in pairs]
    apart = [ks_2samp(true, drawn).statistic for true, drawn in known]
    zeros = [abs((true == 0).mean() - (drawn == 0).mean()) for true, drawn in known]
    return float(np.mean(apart or [np.nan])), float(np.max(zeros or [np.nan]))


def run(path: Path, person: str | None, epsilon: float, share: float) -> dict[str, Any]:
    """One line of the results."""
    frame = (
        pl.read_parquet(path)
        if path.suffix == ".parquet"
        else pl.read_csv(path, infer_schema=False)
    )
    frame = frame.head(ROWS)
    unit = gb.Unit()
    if person:
        column, _, most = person.rpartition(":")
        unit = gb.Unit("person", column, int(most))
    method, began = gb.AdaptiveGibbs(epsilon=epsilon, delta=DELTA), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        csv = Path(folder) / "data.csv"
        frame.write_csv(csv)
        draft = gb.Schema.infer(csv)
        alone = (replace(c, edges=(c.edges[0], c.edges[-1])) if c.binned else c for c in draft)
        draft = gb.Schema(
            tuple(alone), unit, ignore=tuple(n for n in draft.ignore if n != unit.column)
        )
        known = Discovery(tuple(frame.columns), unit, share=share)
        told = gb.synthesize(csv, draft, method, accept_inferred=True, ledger=gb.Ledger.ephemeral())
        seconds = time.process_time() - began
        out = Path(folder) / "release"
        paid = gb.synthesize(csv, known, method, out=out, ledger=gb.Ledger.ephemeral())
        gb.verify(out)
        records = pl.read_csv(csv, infer_schema=False)
        rows, drafted = (release.sets[0] for release in (paid, told))
    names = [name for name in draft.names if name in rows.columns]
    of_paid, of_told = (tv2(records, one, draft, names) for one in (rows, drafted))
    distance, zeros = far(records, rows, [n for n in names if draft[n].kind == "numeric"])
    others = {
        c.name: round(float((as_cells(rows[c.name]) == c.other).mean() or 0), 4)
        for c in paid.schema
        if c.other
    }
    return {
        "table": path.stem, "epsilon": epsilon, "share": share, "rows": len(records),
        "columns": len(draft.names),
        "left_out": sorted(set(draft.names) - set(names)), "draft_tv2": round(of_told, 5),
        "bought_tv2": round(of_paid, 5), "ratio": round(of_paid / of_told, 3),
        "ks": round(distance, 4), "zeros": round(zeros, 4),
        "other": {name: s for name, s in others.items() if s >= 0.005},
        "cpu_draft": round(seconds, 1), "cpu_all": round(time.process_time() - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="NAME.csv or NAME.parquet")
    parser.add_argument("--id", help="COLUMN:ROWS of the person")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=SHARE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what is there, measure nothing")
    given = parser.parse_args()
    for path in given.files:
        line = run(path, given.id, given.epsilon, given.share)
        with given.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
    shape = "| {table} | {rows:,} | {columns} | {share} | {draft_tv2:.4f} | {bought_tv2:.4f} | {ratio:.2f} |"
    shape += " {ks:.3f} | {zeros:.3f} |"
    if given.table:
        print(
            "| table | rows | columns | share | draft TV2 | bought TV2 | ratio | KS | zeros | left out |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for one in map(json.loads, given.results.read_text().splitlines()):
            print(shape.format(**one), len(one["left_out"]), "|")


if __name__ == "__main__":
    main()
