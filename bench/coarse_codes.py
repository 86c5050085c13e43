"""Codes drawn coarse to fine by `pegs`: a public chapter first, then the code within it.

    python bench/coarse_codes.py

claims7 (717 DRG codes in 28 major categories of the public numbering) and diabetes130 (ICD-9 codes of the
first diagnosis in the 18 chapters of ICD-9-CM), from ../shared/data; 20,000 rows, one run each. Printed: mean
total variation distance of single columns and of pairs to the records, chapters left out.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl

import gibbous as gb

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CATEGORIES = (1, 20, 113, 129, 163, 215, 326, 405, 453, 573, 614, 652, 707, 734, 765, 789, 799, 820)
CATEGORIES += (853, 876, 894, 901, 927, 939, 955, 969, 981, 998)  # first DRG of each
CHAPTERS = (1, 140, 240, 280, 290, 320, 390, 460, 520, 580, 630, 680, 710, 740, 760, 780, 800)
ROWS = 20_000


def chapter(code: str, first: tuple[int, ...]) -> str:
    """The last chapter that begins at or before the code; codes that are no number by their first letter."""
    number = code.split(".")[0]
    return f"from {max(f for f in first if f <= int(number))}" if number.isdigit() else number[:1]


def tables() -> dict[str, tuple[pl.DataFrame, str, tuple[int, ...]]]:
    """Name -> records, the column of codes first; that column; where its chapters begin."""
    claims = pl.read_parquet(DATA / "claims7.parquet").drop("days_n")
    visits = pl.read_parquet(DATA / "diabetes130.parquet")
    names = ("diag_1", "medical_specialty", "age", "gender", "readmitted", "time_in_hospital")
    return {
        "claims7": (claims.select("drg", pl.exclude("drg")), "drg", CATEGORIES),
        "diabetes130": (visits.select(names), "diag_1", CHAPTERS),
    }


def distances(one: pl.DataFrame, two: pl.DataFrame) -> list[float]:
    """Means over single columns and over pairs."""
    found = []
    for ways in (1, 2):
        apart = []
        for names in itertools.combinations(one.columns, ways):
            shares = [
                t.group_by(names).len().with_columns(share=pl.col("len") / len(t)).drop("len")
                for t in (one, two)
            ]
            both = shares[0].join(shares[1], on=names, how="full", coalesce=True).fill_null(0)
            apart.append(float((both["share"] - both["share_right"]).abs().sum() / 2))
        found.append(float(np.mean(apart)))
    return found


def main() -> None:
    for title, (records, code, first) in tables().items():
        table = records.cast(pl.String).fill_null("none")
        others = [name for name in table.columns if name != code]
        table = table.with_columns(
            chapter=pl.col(code).map_elements(lambda c, at=first: chapter(c, at), pl.String)
        ).select("chapter", code, *others)
        columns = {
            n: gb.Column(n, "nominal", levels=tuple(table[n].unique().sort()))
            for n in table.columns
        }
        pairs = tuple(table.select(code, "chapter").unique().sort(code).iter_rows())
        rule = gb.Rule(detail=code, group="chapter", map=pairs)
        plain = gb.Schema(tuple(columns[n] for n in (code, *others)))
        coarse = gb.Schema(tuple(columns.values()), rules=(rule,))
        unruled = gb.Schema(tuple(columns.values()))
        given = tuple((name, (code,)) for name in others)
        by_chapter = tuple((name, ("chapter",)) for name in (code, *others))
        for epsilon in (0.3, 1, 3, 10):
            for name, schema, contexts in (
                ("ordered, one parent", plain, "ordered"),
                ("given the code", plain, given),
                ("given the chapter, map not told", unruled, by_chapter),
                ("given the chapter", coarse, by_chapter),
            ):
                method = gb.Pegs(epsilon=epsilon, contexts=contexts, parents=1)
                release = gb.synthesize(
                    table.select(schema.names), schema, method, rows=ROWS, seed=1,
                    ledger=gb.Ledger.ephemeral(),
                )  # fmt: skip
                rows = release.sets[0].select(code, *others).cast(pl.String)
                singles, twos = distances(table.select(code, *others), rows)
                print(
                    f"| {title} | {epsilon:g} | {name} | {singles:.4f} | {twos:.4f} |", flush=True
                )


if __name__ == "__main__":
    main()
