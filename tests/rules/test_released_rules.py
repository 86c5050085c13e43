"""Rules from a schema file to a release and its check: what a user and a review board see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import GibbousError, ModelRejected
from gibbous.read.schema_file import load_schema, parse_schema, schema_from_json, schema_json
from gibbous.read.schema_write import schema_toml
from gibbous.sampling.rule_zeros import with_zeros
from gibbous.write.verify import verify
from tests.write.test_verify import reseal

HEAD = """
format = "gibbous-schema/1"
[unit]
kind = "row"
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 90
bins = 18
integer = true
[[column]]
name = "marital status"
kind = "nominal"
levels = ["never", "married", "widowed"]
[[column]]
name = "town"
kind = "nominal"
levels = ["a", "b", "c"]
[[column]]
name = "region"
kind = "nominal"
levels = [1, 2]
"""
RULES = """
[[rule]]
if = "age < 15"
then = "`marital status` == 'never'"
[[rule]]
detail = "town"
group = "region"
map = "towns.csv"
[[rule]]
columns = ["town", "marital status"]
forbidden = [["a", "widowed"]]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules")
    (path / "towns.csv").write_text("region,town,people\n1,a,5\n2,b,7\n2,c,9\n")
    (path / "schema.toml").write_text(HEAD + RULES)
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 91, 3_000),
            "marital status": draw.choice(["never", "married", "widowed"], 3_000),
            "town": draw.choice(["a", "b", "c"], 3_000),
            "region": draw.integers(1, 3, 3_000),
        }
    )  # records break every rule, and are accepted
    frame.write_parquet(path / "data.parquet")
    for method in ("adaptive_gibbs", "pegs"):
        gb.synthesize(
            path / "data.parquet",
            path / "schema.toml",
            method,
            epsilon=1,
            rows=300,
            sets=2,
            seed=5,
            out=path / method,
            ledger=path / f"{method}.sqlite",
        )
    return path


def kept(frame: pl.DataFrame) -> bool:
    young = frame.filter(pl.col("age") < 15)["marital status"].cast(pl.String)
    region = frame["town"].cast(pl.String).replace_strict({"a": 1, "b": 2, "c": 2})
    pair = (frame["town"].cast(pl.String) == "a") & (
        frame["marital status"].cast(pl.String) == "widowed"
    )
    return bool((young == "never").all() and (region == frame["region"]).all() and not pair.any())


@pytest.mark.parametrize("method", ["adaptive_gibbs", "pegs"])
def test_every_set_keeps_the_rules_and_verifies(folder: Path, method: str) -> None:
    release = gb.load(folder / method)

    assert all(kept(pl.read_parquet(folder / method / f"synthetic_{i}.parquet")) for i in (1, 2))
    assert "and keeps its rules, 3 in number" in verify(folder / method).checks
    entries = release.receipt["rules"]
    assert entries[1]["rule"] == "town determines region"
    assert all(len(one["rows_changed"]) == 2 for one in entries)
    assert sum(entries[1]["rows_changed"]) > 0
    assert "| town determines region |" in (folder / method / "METHODS.md").read_text()
    assert "<bdi>town determines region</bdi>" in (folder / method / "codebook.html").read_text()


def test_further_and_given_rows_keep_the_rules(folder: Path) -> None:
    release = gb.load(folder / "adaptive_gibbs")

    assert kept(release.sample(500, seed=1))
    given = release.sample(60, seed=2, given={"marital status": "widowed"})
    assert kept(given)
    assert set(given["marital status"]) == {"widowed"}
    with pytest.raises(GibbousError, match="leave no row that keeps the rule"):
        release.sample(5, seed=2, given={"age": 7, "marital status": "married"})


def test_verify_refuses_rows_that_break_a_rule(folder: Path, tmp_path: Path) -> None:
    """Before the rules were checked, a row of an eight-year-old widow was as good as any."""
    import shutil

    rel = Path(shutil.copytree(folder / "adaptive_gibbs", tmp_path / "rel"))
    file = rel / "synthetic_2.parquet"
    frame = pl.read_parquet(file)
    age = pl.when(pl.int_range(pl.len()) == 7).then(8).otherwise("age").alias("age")
    status = (
        pl.when(pl.int_range(pl.len()) == 7)
        .then(pl.lit("married"))
        .otherwise(pl.col("marital status").cast(pl.String))
    )
    frame.with_columns(age, status.alias("marital status")).write_parquet(file)
    reseal(rel)

    with pytest.raises(ModelRejected, match=r"1 of its rows break the rule \(if age < 15 then"):
        verify(rel)


def test_a_contradiction_is_refused_before_anything_is_charged(
    folder: Path, tmp_path: Path
) -> None:
    schema = replace(
        load_schema(folder / "schema.toml"), rules=(gb.Rule("age < 5"), gb.Rule("age > 5"))
    )

    with pytest.raises(GibbousError, match="No row keeps these rules together"):
        gb.synthesize(folder / "data.parquet", schema, ledger=tmp_path / "ledger")

    assert not (tmp_path / "ledger").exists()


def test_a_schema_with_rules_is_written_and_read_back(folder: Path) -> None:
    schema = load_schema(folder / "schema.toml")

    assert parse_schema(schema_toml(schema)) == schema
    assert schema_from_json(json.loads(json.dumps(schema_json(schema)))) == schema
    assert dict(schema.rules[1].map) == {"a": "1", "b": "2", "c": "2"}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ('[[rule]]\nrequires = "age < 5"\n', "Did you mean 'require'?"),
        ('[[rule]]\ndetail = "town"\ngroup = "region"\n', "has no map"),
        ('[[rule]]\ndetail = "town"\ngroup = "region"\nmap = "none.csv"\n', "cannot be read"),
        ('[[rule]]\ncolumns = ["town", "region"]\nallowed = ["a"]\n', "is a list of levels"),
    ],
)
def test_a_wrong_rule_table_says_what_is_wrong(tmp_path: Path, rule: str, sentence: str) -> None:
    (tmp_path / "schema.toml").write_text(HEAD + rule)

    with pytest.raises(GibbousError, match=sentence.replace("?", r"\?")):
        load_schema(tmp_path / "schema.toml")


@pytest.mark.slow
def test_zeros_of_a_model_are_codes_that_no_row_that_keeps_the_rules_has(folder: Path) -> None:
    """By hand: ages below 15 are bins 0, 1 and 2; a map is left to the decoding."""
    schema = with_zeros(load_schema(folder / "schema.toml"))

    found = {zero.where for zero in schema.impossible}

    assert (("age", (0, 1, 2)), ("marital status", (1, 2))) in found
    assert (("marital status", (2,)), ("town", (0,))) in found or (
        ("town", (0,)), ("marital status", (2,))
    ) in found  # fmt: skip
    assert len(found) == 2
