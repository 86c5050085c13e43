"""What rules cost in accuracy: releases under rules that are true of the data, against releases without them.

    python bench/rules.py DATA_FOLDER --runs 3     # a folder with acs_ma2019, adult and sparcs_msk as Parquet

Each table has the columns below, `infer_schema` as an accepted draft, and adaptive_gibbs at epsilon 1,
delta 1e-9. Maps are read off the records for this bench alone. TV2 is the mean total variation distance of
all 2-way margins, in 16 quantiles of the records and the levels of the draft. The aim is a ratio of 1.05.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import polars as pl
from common import Result, show

import gibbous as gb
from discovery import tv2

TABLES = {
    "acs_ma2019": (
        ["AGEP", "SEX", "MSP", "HISP", "RAC1P", "OWN_RENT", "INDP_CAT", "EDU", "PINCP", "DREM"],
        [],
        [("AGEP < 15", "MSP is missing"), ("AGEP < 15", "PINCP is missing")],
    ),
    "adult": (
        ["age", "workclass", "education", "education_num", "marital_status", "relationship", "sex", "income"],
        [("education", "education_num")],
        [("marital_status == 'Never-married'", "relationship not in ['Husband', 'Wife']")],
    ),
    "sparcs_msk": (
        ["service_area", "county", "facility", "sex", "age", "apr_drg", "drg_class", "severity", "los"],
        [("facility", "county"), ("county", "service_area"), ("apr_drg", "drg_class")],
        [],
    ),
}  # fmt: skip


def schema_of(
    frame: pl.DataFrame, maps: list[tuple[str, str]], ifs: list[tuple[str, str]]
) -> gb.Schema:
    """The draft with the rules that hold for every record."""
    rules = [gb.Rule(when=when, then=then) for when, then in ifs]
    for detail, group in maps:
        pairs = frame.select(detail, group).drop_nulls().unique()
        if pairs[detail].n_unique() < pairs.height:
            raise SystemExit(f"{detail} does not determine {group}")
        rules.append(gb.Rule(detail=detail, group=group, map=tuple(map(tuple, pairs.rows()))))
    return replace(gb.infer_schema(frame), unit=gb.Unit(), rules=tuple(rules))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    results = []
    for name, (columns, maps, ifs) in TABLES.items():
        frame = pl.read_parquet(given.data / f"{name}.parquet").select(columns)
        codes = {end for pair in maps for end in pair}  # of digits: levels, not numbers
        frame = frame.with_columns(
            (pl.lit("c") + pl.col(name).cast(pl.String)).alias(name) for name in codes
        )
        schema, far = schema_of(frame, maps, ifs), []
        for rules in ((), schema.rules):
            made = [
                gb.synthesize(
                    frame, replace(schema, rules=rules), gb.AdaptiveGibbs(epsilon=1, delta=1e-9),
                    rows=frame.height, accept_inferred=True, ledger=gb.Ledger.ephemeral(),
                ).sets[0]
                for _ in range(given.runs)
            ]  # fmt: skip
            far.append(sum(tv2(frame, one, schema, columns) for one in made) / len(made))
        detail = f"TV2 {far[1]:.4f} under {len(schema.rules)} rules, {far[0]:.4f} without"
        results.append(Result(name, far[1] / far[0], 1.05, detail=detail))
    show("rules", results)


if __name__ == "__main__":
    main()
