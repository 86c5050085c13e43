"""The files that commands of pages read, small: one table of people under many names, and flows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.read.schema_file import schema_toml
from tests.frame.commands import fences
from tests.frame.tree import DOCS

ROWS = 300
SCHEMA = gb.Schema(
    (
        gb.Column("age", "numeric", edges=(0, 30, 60, 100), integer=True),
        gb.Column("sex", "binary", levels=("f", "m")),
        gb.Column("smokes", "binary", levels=("no", "yes")),
        gb.Column("visits", "ordinal", levels=("none", "some", "many")),
        gb.Column("ill", "binary", levels=("no", "yes")),
        gb.Column("income", "binary", levels=("high", "low")),
        gb.Column("zip3", "nominal", levels=("100", "200")),
        gb.Column("diagnosis", "nominal", levels=("I10", "J45")),
    ),
    gb.Unit("row"),
)
TABLES = (
    *("visits.csv", "mydata.csv", "data.csv", "adult.csv", "claims.parquet", "holdout.parquet"),
    *("visits.parquet", "exports/2024-01.csv", "exports/2024-02.csv"),
)
SCHEMAS = ("schema.toml", "adult.schema.toml", "visits.schema.toml")
STUDY = """
data = "data.csv"
schema = "schema.toml"
[study]
epsilon = [1, 10]
repeats = 1
metrics = ["tv1"]
[[methods]]
name = "noisy_pegs"
"""
CODEBOOK = """variable,label,level,level label
diagnosis,Main diagnosis,I10,Hypertension
diagnosis,,J45,Asthma
"""


def prepare(folder: Path) -> None:
    """Write every file that a command of some page reads."""
    table = people()
    for name in TABLES:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    table.head(ROWS - 1).write_parquet(folder / "visits-2025.parquet")
    table.tail(ROWS // 2).write_parquet(folder / "visits-bonn.parquet")
    for name in SCHEMAS:
        declare(folder / name)
    persons = pl.Series("patient", [f"P{i // 3}" for i in range(ROWS)])
    table.with_columns(persons).write_csv(folder / "stays.csv")
    (folder / "names.txt").write_text("\n".join(table.columns))
    (folder / "study.toml").write_text(STUDY)
    (folder / "passphrase.txt").write_text("five horses\n")
    domain = {column.name: column.size for column in SCHEMA}
    (folder / "domain.json").write_text(json.dumps(domain))
    table.select("sex", "age").head(20).write_csv(folder / "known.csv")
    (folder / "codebook.csv").write_text(CODEBOOK)
    _counts(folder / "counts")
    _flows(folder)
    _database(folder / "clinic.db", table)
    method = gb.AdaptiveGibbs(epsilon=1, delta=1e-6)
    ledger = gb.Ledger.open(folder / "ledger.sqlite")
    (folder / "drb").mkdir()
    for name in ("release", "gibbous-demo", "drb/release"):
        gb.synthesize(
            table, SCHEMA, method, rows=200, sets=2, seed=7, out=folder / name, ledger=ledger
        )
    ledger.close()


def _counts(folder: Path) -> None:
    """Noisy tables that somebody else made, and the schema of their columns."""
    folder.mkdir()
    levels = (
        gb.Column("region", "nominal", levels=("north", "south")),
        gb.Column("stage", "ordinal", levels=(0, 1)),
    )
    gb.Schema(levels, unit=gb.Unit()).save(folder.with_name("counts.schema.toml"))
    lines = ["region,stage,count", "north,0,4913", "north,1,5102", "south,0,2204", "south,1,1187"]
    (folder / "region_stage.csv").write_text("\n".join(lines) + "\n")
    (folder / "tables.toml").write_text(
        'maker = "Office"\n[claim]\nepsilon = 1.0\ndelta = 1e-6\n'
        '[[table]]\nfile = "region_stage.csv"\nnoise = "gaussian"\nscale = 12.0\n'
    )


def people() -> pl.DataFrame:
    """Records that fit SCHEMA."""
    rng = np.random.default_rng(1)
    values = {c.name: rng.choice(c.levels, ROWS) for c in SCHEMA if not c.binned}
    return pl.DataFrame({"age": rng.integers(0, 100, ROWS), **values})


def declare(path: Path) -> None:
    """What the reader of a page does between a draft and the next command."""
    path.write_text(schema_toml(SCHEMA), encoding="utf-8")


def configurations(page: Path) -> dict[str, str]:
    """Configuration files that a page shows, by the name under which its commands read them."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"--config (\S+)", text)
    shown = [block for info, block in fences(page) if info == "toml" and "[mechanism" in block]
    shown += [block for info, block in fences(page) if info == "toml" and "[[methods]]" in block]
    return dict(zip(dict.fromkeys(named), shown, strict=False))


def _flows(folder: Path) -> None:
    how_to = DOCS / "how-to" / "flows.md"
    (geography,) = [t for info, t in fences(how_to) if info == "toml" and "[origins]" in t]
    (folder / "geography.toml").write_text(geography)
    homes = [f"h{i}" for i in range(30)]
    spots = pl.DataFrame(
        {
            "id": [*homes, "mill", "school"],
            "lat": [45.0 + 0.01 * i for i in range(32)],
            "lon": [-93.0 + 0.01 * (i % 7) for i in range(32)],
        }
    )
    spots.write_csv(folder / "places.csv")
    more = spots.head(30).with_columns(
        residents=pl.Series(range(1, 31)), county=pl.Series(["a", "b"] * 15)
    )
    more.write_csv(folder / "homes.csv")
    spots.tail(2).write_csv(folder / "plants.csv")
    pairs = {"home": homes, "work": ["mill"] * 20 + ["school"] * 10, "jobs": [5] * 30}
    pl.DataFrame(pairs).write_csv(folder / "flows.csv")


def _database(path: Path, table: pl.DataFrame) -> None:
    import duckdb

    with duckdb.connect(str(path)) as database:
        database.register("made", table.to_arrow())
        database.execute("CREATE TABLE adults AS SELECT * FROM made")
