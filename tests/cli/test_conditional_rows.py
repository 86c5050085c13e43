"""`gibbous synthesize --tables RELEASE --given FILE`: known columns in, a release that says so out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import ModelRejected
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.core.tables import LogLinear, Recipe, Tables
from gibbous.privacy.ledger import Ledger
from gibbous.write.load import load
from gibbous.write.verify import verify
from tests.cli.conftest import Cli
from tests.write import made
from tests.write.test_verify import edit

SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 100.0), integer=True),
        Column("job", "nominal", levels=("none", "some"), missing=True),
        Column("pay", "numeric", edges=(0.0, 100.0, 1000.0), decimals=2),
        Column("born", "date", edges=(700000.0, 720000.0, 740000.0)),
    ),
    impossible=(Impossible((("sex", (1,)), ("age", (0,)))),),
)
THETA = np.log(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
MODEL = LogLinear((2, 3, 3, 2, 2), ((0,), (1, 2)), (np.zeros(2), THETA))
TABLES = Tables(SCHEMA, (), Recipe("loglinear", (), sweeps=5), model=MODEL)
KNOWN = "born,age,pay\n1999-12-31,33,12.34\n1930-01-02,100,0\n1930-01-03,0,1000\n"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, planned = tmp_path_factory.mktemp("origin"), made.plan(rows=0, sets=1)
    made.write(folder / "model", Ledger.ephemeral(), result=TABLES, schema=SCHEMA, planned=planned)
    made.write(folder / "pegs", Ledger.ephemeral(), planned=made.plan(rows=0, sets=1))
    made.write(folder / "paid", Ledger.ephemeral(), result=made.codes(100, 3))
    two = replace(TABLES, copies=(TABLES,))
    made.write(folder / "per_set", Ledger.ephemeral(), result=two, schema=SCHEMA)
    return folder


@pytest.fixture
def work(home: Path) -> Path:
    (Path.cwd() / "known.csv").write_text(KNOWN)
    return Path.cwd()


def draws(cli: Cli, origin: Path, *flags: object, release: str = "model", out: str = "out") -> str:
    """The output of a run that has to succeed."""
    tables = origin / release
    done = cli("synthesize", "--tables", tables, "--given", "known.csv", "--out", out, *flags)
    assert done.code == 0, done.err
    return done.out


def test_each_given_row_is_kept_as_it_is_and_the_rest_is_drawn(
    cli: Cli, work: Path, origin: Path
) -> None:
    draws(cli, origin, "--seed", 3, "--format", "csv")

    drawn = load("out").sets[0]
    kept = drawn.select("born", "age", "pay").write_csv()
    assert kept == KNOWN.replace(",0\n", ",0.0\n").replace(",1000\n", ",1000.0\n")
    assert drawn.columns == list(SCHEMA.names)
    assert drawn["sex"].to_list()[2] == "f", "m is impossible below 20"
    assert pl.read_csv("out/synthetic_1.csv").height == 3


def test_what_is_drawn_follows_what_is_given(cli: Cli, work: Path, origin: Path) -> None:
    pl.DataFrame({"age": [5, 25, 99] * 2000}).write_parquet("known.parquet")

    done = cli(
        "synthesize", "--tables", origin / "model", "--given", "known.parquet", "--out", "out",
        "--seed", 1,
    )  # fmt: skip

    assert done.code == 0, done.err
    drawn = load("out").sets[0]
    for age, share in ((5, 0.8), (25, 0.1), (99, 0.1)):
        jobs = drawn.filter(pl.col("age") == age)["job"].cast(pl.String)
        assert (jobs == "none").sum() / 2000 == pytest.approx(share, abs=0.04)


def test_the_release_says_what_was_given_and_that_nothing_covers_it(
    cli: Cli, work: Path, origin: Path
) -> None:
    words = "not differentially private with respect to the given columns age, pay, born"

    told = draws(cli, origin)

    assert "No guarantee covers the given columns (age, pay, born)" in told.splitlines()[-1]
    receipt = load("out").receipt
    assert receipt["given"] == {"columns": ["age", "pay", "born"], "covered": False}
    assert receipt["differentially_private"] is False
    assert receipt["total"] == load(origin / "model").receipt["total"]
    methods = (work / "out" / "METHODS.md").read_text()
    assert f"{words}**" in methods
    assert "No guarantee covers the given columns: age, pay, born." in methods
    assert "If the given rows are confidential, so is this folder" in methods
    report = verify("out")
    assert report.guarantee.endswith(words)
    assert any(check.endswith("are named: age, pay, born") for check in report.checks)


def test_the_same_seed_gives_the_same_bytes(cli: Cli, work: Path, origin: Path) -> None:
    for out, seed in (("one", 3), ("two", 3), ("three", 4)):
        draws(cli, origin, "--seed", seed, out=out)

    one, two, three = (
        {p.relative_to(out): p.read_bytes() for p in Path(out).rglob("*") if p.is_file()}
        for out in ("one", "two", "three")
    )
    assert one == two
    assert one[Path("synthetic_1.parquet")] != three[Path("synthetic_1.parquet")]


def test_noise_of_its_own_for_every_set_gives_every_set_the_given_rows(
    cli: Cli, work: Path, origin: Path
) -> None:
    draws(cli, origin, "--seed", 3, release="per_set")

    verify("out")
    sets = load("out").sets
    assert [one["age"].to_list() for one in sets] == [[33, 100, 0]] * 2


def test_given_rows_can_be_none_at_all(cli: Cli, work: Path, origin: Path) -> None:
    (work / "known.csv").write_text("age\n")

    draws(cli, origin)

    assert verify("out").rows == (0,)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("zip\n1234\n", 2, "does not have: 'zip'"),
        ("sex,age\nf,20\n1234,20\n1234,30\n", 4, "'sex': values outside its declared levels"),
        ("age\n1234\n", 4, "'age': values outside its declared bounds"),
        ("age,sex\n,f\n", 4, "'age': missing values"),
        ("sex,age,job,pay,born\nf,20,none,1234,2000-01-01\n", 2, "all columns"),
        ("sex,age\nf,12\nm,12\n", 2, "no possible row in 1 of 2 rows, first in row 2"),
    ],
    ids=["no such column", "no level", "out of bounds", "missing", "all columns", "impossible"],
)
def test_given_rows_that_cannot_be_used_are_refused_before_anything_is_written(
    cli: Cli, work: Path, origin: Path, text: str, code: int, words: str
) -> None:
    (work / "known.csv").write_text(text)

    done = cli("synthesize", "--tables", origin / "model", "--given", "known.csv", "--out", "out")

    assert done.code == code
    assert words in done.err
    assert "1234" not in done.err, "a value"
    assert os.listdir(work) == ["known.csv"]


@pytest.mark.parametrize(
    ("release", "flags", "words"),
    [
        ("pegs", (), "releases of adaptive_gibbs"),
        ("paid", (), "no public tables"),
        ("model", ("--rows", 3), "--rows was given beside --given"),
        ("model", ("--sets", 3), "describe a new purchase"),
        ("model", ("--out", "out.csv"), "a file as --out"),
        (None, (), "--given was given without --tables"),
    ],
)
def test_what_does_not_go_together_is_refused(
    cli: Cli, work: Path, origin: Path, release: str | None, flags: tuple[object, ...], words: str
) -> None:
    tables = () if release is None else ("--tables", origin / release)

    done = cli("synthesize", *tables, "--given", "known.csv", "--out", "out", *flags)

    assert done.code in (2, 5)
    assert words in done.err
    assert os.listdir(work) == ["known.csv"]


def test_combining_rules_are_refused_for_rows_that_go_with_given_columns(
    cli: Cli, work: Path, origin: Path
) -> None:
    draws(cli, origin)

    done = cli("infer", "out", "pay ~ sex")

    assert done.code == 2
    assert "drawn to go with given columns" in done.err


def none_given(receipt: Any) -> None:
    del receipt["given"]


def covered(receipt: Any) -> None:
    receipt["given"]["covered"] = True


def fewer(receipt: Any) -> None:
    receipt["given"]["columns"] = ["age"]


def strange(receipt: Any) -> None:
    receipt["given"]["columns"] = "age"


def private(receipt: Any) -> None:
    receipt["differentially_private"] = True


@pytest.mark.parametrize("change", [none_given, covered, fewer, strange, private])
def test_a_certificate_that_hides_what_was_given_is_refused(
    cli: Cli, work: Path, origin: Path, change: Callable[[Any], None]
) -> None:
    draws(cli, origin)

    edit(work / "out", "ledger.json", change)

    with pytest.raises(ModelRejected):
        verify("out")
