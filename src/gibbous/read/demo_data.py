"""The demonstration's data: a file that statsmodels ships, by persons, and our declared schema for it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from importlib import resources
from pathlib import Path

from gibbous.core.errors import EngineFailure
from gibbous.core.schema import Schema

ROWS = 20_190  # person-years, from the documentation of the data set
YEARS = 5  # that a person took part at most
PERSON = "person"
NUMBERS = ("mdvis", "lncoins", "lpi", "fmde", "physlm", "disea")
HELD_OUT = 5  # of so many persons one is held out, to compare with
TITLE = "RAND health insurance experiment"
PARTS = ("datasets", "randhie", "randhie.csv")


def demo_file() -> Path:
    """The CSV file of the experiment, found without importing statsmodels; EngineFailure without it."""
    found = importlib.util.find_spec("statsmodels")
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        path = Path(folder).joinpath(*PARTS)
        if path.is_file():
            return path
    raise EngineFailure(
        "NODEMO",
        "The demonstration's data are not here.",
        "They are a file of the library statsmodels, which is optional.",
        'Install it: pip install "gibbous[demo]".',
    )


def write_records(records: Path, holdout: Path) -> tuple[int, int]:
    """Write the experiment as two files, by persons; returns rows and persons of the first.

    The file has no identifier, but lists a person's years one after the other: consecutive rows that
    differ in nothing but the visits are taken for one person, five years at most.
    """
    import polars as pl

    table = pl.read_csv(demo_file(), infer_schema=False)
    same = pl.struct(pl.exclude(NUMBERS[0])).rle_id()
    year = pl.int_range(pl.len()).over(same) // YEARS
    table = table.with_columns(pl.struct(same.alias("of"), year.alias("at")).rle_id().alias(PERSON))
    apart = pl.col(PERSON) % HELD_OUT == HELD_OUT - 1
    kept = table.filter(~apart)
    kept.write_csv(records)
    table.filter(apart).write_csv(holdout)
    return kept.height, kept[PERSON].n_unique()


def demo_schema() -> Schema:
    """The declared schema of the experiment: codebook facts and our own caps, nothing read off it."""
    from gibbous.read.schema_file import load_schema

    with resources.as_file(resources.files("gibbous") / "data" / "randhie.schema.toml") as path:
        return replace(load_schema(path), ignore=(PERSON,))
