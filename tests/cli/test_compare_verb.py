"""`gibbous compare`: a study from a file, its table, its maps, its second start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.frontier import study_file
from gibbous.read.schema_write import schema_toml
from tests.frame.tree import ROOT

STUDY = """
data = "records.csv"
schema = "schema.toml"

[study]
epsilon = [1, 20]
repeats = 2
workers = 1
metrics = ["tv1"]

[[methods]]
name = "noisy_pegs"
label = "tables"

[[methods]]
name = "laplace"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    schema = gb.Schema(
        (gb.Column("a", "nominal", levels=("x", "y")), gb.Column("b", "ordinal", levels=(1, 2, 3)))
    )
    frame = pl.DataFrame(
        {"a": np.array(["x", "y"])[rng.integers(0, 2, 300)], "b": rng.integers(1, 4, 300)}
    )
    frame.write_csv(tmp_path / "records.csv")
    (tmp_path / "schema.toml").write_text(schema_toml(schema))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.mark.slow
def test_a_study_is_run_shown_and_written(study: Path, cli: Any) -> None:
    done = cli("compare", "--config", study / "study.toml", "--out", study / "out")

    assert done.code == 0, done.err
    assert "resampled records" in done.out
    assert "Confidential" in done.out
    assert (study / "out" / "ru_tv1.svg").read_text().startswith("<svg")
    assert "vega" in (study / "out" / "ru_tv1.html").read_text()
    frame = pl.read_parquet(study / "out" / "study.parquet")
    assert set(frame["label"]) == {
        "resampled records", "independent columns", "tables", "laplace"
    }  # fmt: skip


@pytest.mark.slow
def test_json_is_one_document_and_the_second_start_changes_nothing(study: Path, cli: Any) -> None:
    call = ("compare", "--config", study / "study.toml", "--out", study / "out", "--json")

    first, again = cli(*call), cli(*call, "--public-data")

    points = json.loads(first.out)["points"]
    assert {p["epsilon"] for p in points if p["label"] == "tables"} == {1, 20}
    assert again.code == 2
    assert "public_data" in again.err
    assert json.loads(cli(*call).out)["points"] == points


def test_faults_have_their_exit_codes(study: Path, cli: Any) -> None:
    lost = cli("compare", "--config", study / "none.toml", "--out", study / "out")
    (study / "file").write_text("")
    taken = cli("compare", "--config", study / "study.toml", "--out", study / "file")
    (study / "records.csv").write_text("a,b\nx,1\nz,2\n")
    unfit = cli("compare", "--config", study / "study.toml", "--out", study / "out2")

    assert (lost.code, taken.code, unfit.code) == (2, 9, 4)
    assert "Traceback" not in lost.err + taken.err + unfit.err


def test_A_the_configuration_of_the_risk_utility_page_is_read() -> None:
    """Its data lie beside the repository: everything else of the file is as `compare` wants it."""
    plan = study_file.load(ROOT / "bench" / "studies" / "discharge13.toml")

    schema = gb.Schema.load(plan.schema)
    assert len(plan.methods) > 3
    assert set(plan.settings["keys"]) < set(schema.names)


@pytest.mark.slow
def test_a_study_reads_text_as_its_file_says_and_flags_say_last(study: Path, cli: Any) -> None:
    records = study / "records.csv"
    records.write_text(records.read_text().replace(",", ";"))
    asked = ("compare", "--config", study / "study.toml", "--out", study / "out")
    refused = cli(*asked)
    by_flag = cli(*asked, "--sep", ";")
    head, _, rest = STUDY.partition("[study]")
    (study / "study.toml").write_text(f'{head}[reading]\nsep = ";"\n\n[study]{rest}')
    by_file = cli(*asked)
    last = cli(*asked[:-1], study / "other", "--sep", ",")

    assert "Try --sep ';', and --decimal ',' if it writes numbers as 3,5." in refused.err
    assert by_flag.code == 0, by_flag.err
    assert by_file.code == 0, by_file.err
    assert "SEPARATOR" in last.err


@pytest.mark.parametrize(
    ("key", "code"),
    [("separator = ';'", "STUDYFILE"), ("sep = 1", "STUDYFILE"), ("sep = ';;'", "READOPTIONS")],
)
def test_a_wrong_way_to_read_is_refused(study: Path, cli: Any, key: str, code: str) -> None:
    head, _, rest = STUDY.partition("[study]")
    (study / "study.toml").write_text(f"{head}[reading]\n{key}\n[study]{rest}")

    assert code in cli("compare", "-c", study / "study.toml", "-o", study / "out").err
