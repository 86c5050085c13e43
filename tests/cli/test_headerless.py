"""A table whose names are not its header's: no message of any verb holds one of its cells."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import GibbousError
from gibbous.read.schema_file import schema_toml
from tests.cli.conftest import Cli

NAMES = ("age", "ward", "city", "cost")
SCHEMA = gb.Schema(
    (
        gb.Column("age", "numeric", edges=(0, 50_000, 90_000), integer=True),
        gb.Column("ward", "nominal", levels=("wq-east", "wq-west")),
        gb.Column("city", "nominal", levels=("kx-oslo", "kx-bern", "kx-rome")),
        gb.Column("cost", "numeric", edges=(0, 500, 999)),
    ),
    gb.Unit("row"),
)
RECORDS = [
    ("73911", "wq-east", "kx-oslo", "314.75"),
    ("70013", "wq-west", "kx-bern", "271.25"),
    ("61547", "wq-east", "kx-bern", "161.25"),
    ("58309", "wq-west", "kx-rome", "577.75"),
]
Lines = list[tuple[str, ...]]
ALIKE = ("kx-oslo", "KX-OSLO", "kx-oslo ", "73911")
TABLES: dict[str, Lines] = {
    "headerless": RECORDS,
    "headerless, names twice": [("73911", "wq-east", "73911", "wq-east"), *RECORDS],
    "headerless, names alike": [ALIKE, *RECORDS],
    "headerless, one name by chance": [("73911", "ward", "kx-oslo", "314.75"), *RECORDS],
    "shifted down": [RECORDS[0], NAMES, *RECORDS[1:]],
    "shifted right": [NAMES, *(("73911", *record) for record in RECORDS)],
    "shifted right, unnamed": [("", *NAMES), *(("73911", *record) for record in RECORDS)],
    "transposed": list(zip(NAMES, *RECORDS, strict=True)),
    "transposed, without names": list(zip(*RECORDS, strict=True)),
    "transposed, one record": list(zip(NAMES, RECORDS[0], strict=True)),
}
CELLS = {cell.strip() for record in (*RECORDS, ALIKE) for cell in record}
VERBS = {
    "schema check": ("schema", "check", "schema.toml", "DATA"),
    "schema infer": ("schema", "infer", "DATA", "--out", "draft.toml"),
    "synthesize": (
        "synthesize",
        "DATA",
        "--schema",
        "schema.toml",
        "-e",
        "1",
        "-d",
        "1e-6",
        "--out",
        "r",
    ),
    "synthesize, DuckDB": (
        *("synthesize", "DATA", "--schema", "schema.toml", "-e", "1", "-d", "1e-6", "--out", "r"),
        *("--engine", "duckdb"),
    ),
    "evaluate": ("evaluate", "DATA", "synthetic.csv", "--schema", "schema.toml", "--only", "tv1"),
    "evaluate, holdout": (
        *("evaluate", "synthetic.csv", "synthetic.csv", "--schema", "schema.toml", "--only", "tv1"),
        *("--holdout", "DATA"),
    ),
    "ledger cap": ("ledger", "cap", "DATA", "--epsilon", "2", "--schema", "schema.toml"),
}


@pytest.fixture
def work(home: Path) -> Path:
    """The working directory, with a schema and a table that fits it."""
    folder = Path.cwd()
    (folder / "schema.toml").write_text(schema_toml(SCHEMA), encoding="utf-8")
    _write([NAMES, *RECORDS], folder / "synthetic.csv")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", TABLES)
def test_D_no_verb_shows_a_cell_of_a_table_without_its_header(
    cli: Cli, work: Path, name: str, verb: str
) -> None:
    kinds = ["data.csv"] + ["data.parquet"] * _has_frame(TABLES[name])
    for kind in kinds:
        _write(TABLES[name], work / kind)

        done = cli(*(kind if part == "DATA" else part for part in VERBS[verb]))

        assert done.code in (2, 3, 4), done.err
        assert not _cells(done.out + done.err), done.out + done.err
        assert not (work / "draft.toml").exists()


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_D_no_error_shows_a_cell_of_a_frame_without_its_header(kind: str) -> None:
    """Of usable types, and of types that are refused, which are named only where names are declared."""
    odd = [datetime.time(1)] * 2
    day = pl.Series([3_000_000]).cast(pl.Date).extend_constant(None, 1)  # after the year 9999
    tables = [
        pl.DataFrame({name: ["x", "y"] for name in RECORDS[0]}),
        pl.DataFrame({"73911": odd, "wq-east": ["x", "y"]}),
    ]
    tables += [pl.DataFrame({"73911": day, "wq-east": ["x", "y"]})] * (kind != "pandas")
    for table in tables:
        frame = _as(kind, table)
        for act in (
            lambda f: gb.synthesize(f, SCHEMA, gb.NoisyPegs(), ledger=gb.Ledger.ephemeral()),
            lambda f: gb.evaluate(f, f, SCHEMA),
            gb.Schema.infer,
        ):
            with pytest.raises(GibbousError) as caught:
                act(frame)  # type: ignore[no-untyped-call]

            assert not _cells(caught.value.render()), caught.value.render()


def test_D_files_of_a_folder_that_differ_are_told_without_their_records(work: Path) -> None:
    (work / "parts").mkdir()
    for number, record in enumerate(RECORDS):
        frame = pl.DataFrame({name: ["x"] for name in record})
        frame.write_parquet(work / "parts" / f"{number}.parquet")

    for act in (
        lambda: gb.synthesize("parts", SCHEMA, gb.NoisyPegs(), ledger=gb.Ledger.ephemeral()),
        lambda: gb.Schema.infer("parts"),
    ):
        with pytest.raises(GibbousError) as caught:
            act()

        assert not _cells(caught.value.render()), caught.value.render()


def test_D_undeclared_names_are_shown_where_most_names_are_declared(cli: Cli, work: Path) -> None:
    lines = [(*NAMES, "postcode"), *((*record, "0") for record in RECORDS)]
    _write(lines, work / "data.csv")

    done = cli("schema", "check", "schema.toml", "data.csv")

    assert "'postcode'" in done.err


@pytest.mark.parametrize(
    "names",
    [("age", "sex", "2020"), ("id", "y2019", "y2020"), ("1st", "2nd", "3rd"), ("no", "yes", "n")],
)
def test_D_a_header_that_is_one_is_drafted(names: tuple[str, ...], work: Path, cli: Cli) -> None:
    cells = itertools.product(("3", "4"), ("f", "m"), ("17", "18"))
    _write([names, *cells], work / "data.csv")

    done = cli("schema", "infer", "data.csv", "--out", "draft.toml")

    assert done.code == 0, done.err


def _cells(text: str) -> set[str]:
    """Which cells a text holds, also as numbers are printed."""
    text = text.lower()
    return {cell for cell in CELLS if cell.lower() in text or _printed(cell) in text}


def _printed(cell: str) -> str:
    return f"{int(cell):,}" if cell.isdecimal() else cell.lower()


def _has_frame(lines: Lines) -> bool:
    return len(set(lines[0])) == len(lines[0]) == len(lines[-1])


def _write(lines: Lines, path: Path) -> None:
    if path.suffix == ".csv":
        path.write_text("".join(",".join(line) + "\n" for line in lines), encoding="utf-8")
    else:
        columns = zip(*lines[1:], strict=True)
        pl.DataFrame(dict(zip(lines[0], columns, strict=True))).write_parquet(path)


def _as(kind: str, table: pl.DataFrame) -> object:
    import pandas as pd

    if kind == "pandas":
        return pd.DataFrame({name: table[name].to_list() for name in table.columns})
    return table.to_arrow() if kind == "pyarrow" else table
