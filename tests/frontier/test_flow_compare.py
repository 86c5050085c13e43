"""compare() of flows: the figures are those of `evaluate_flows`, and a geography stands for the schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.cli import main
from gibbous.core.errors import UsageError
from gibbous.evaluation.flows import evaluate_flows
from gibbous.flows import FlowEngine, flow_schema, load_geography
from gibbous.frontier.cell_worker import Job
from gibbous.frontier.compare import compare
from gibbous.frontier.flow_worker import METRICS, FlowWorker
from gibbous.frontier.grid import Arm, Cell
from gibbous.frontier.study_file import load
from tests.flows import made

STUDY = """data = "flows.csv"
geography = "geography.toml"

[study]
epsilon = [4.6]
repeats = 1
workers = 1

[[methods]]
name = "onthemap"
delta = 1e-5

[[methods]]
name = "flows_laplace"
false_cells = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made.files(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def run(folder: Path, **more: Any) -> Any:
    geography = more.pop("geography", load_geography(folder / "geography.toml"))
    settings: dict[str, Any] = {"repeats": 1, "workers": 1, "epsilon": [4.6]} | more
    methods = settings.pop("methods", ["onthemap"])
    return compare(folder / "flows.csv", geography, methods, **settings)


def test_figures_are_those_of_evaluate_flows(folder: Path) -> None:
    geography = load_geography(folder / "geography.toml")
    job = Job(
        str(folder / "flows.csv"), flow_schema(geography), metrics=METRICS, geography=geography
    )
    worker = FlowWorker(job)
    drawn = worker._made(Cell(Arm("o", "onthemap", (("epsilon", 4.6), ("delta", 1e-5))), 0))

    rows = worker._measured(drawn.table, 0)

    found = evaluate_flows(folder / "flows.csv", drawn.table, geography, only=METRICS)
    assert [one.name for one in rows] == list(METRICS)
    for one in rows:
        assert one.value == pytest.approx(found[one.name].value, nan_ok=True)


def test_references_are_the_records_drawn_again_and_matched_at_random(folder: Path) -> None:
    points = {p["label"]: p for p in run(folder).points()}

    assert set(METRICS) <= points["onthemap"].keys()
    assert points["resampled records"]["new_pairs"] == 0
    assert points["independent columns"]["origin_margin"] == 0
    assert points["resampled records"]["rows"] == points["onthemap"]["rows"] == 17
    assert points["onthemap"]["epsilon_proven"] == pytest.approx(4.6)


def test_a_geography_that_asks_for_regions_has_them_counted(folder: Path) -> None:
    geography = replace(load_geography(folder / "geography.toml"), level="county")
    points = {p["label"]: p for p in run(folder, geography=geography, methods=["sba"]).points()}

    # 16 of 17 people live in the south: two regions of counts cannot be far from these
    assert points["sba"]["origin_margin"] < 0.5
    assert points["independent columns"]["origin_margin"] == 0


def test_runs_are_charged_where_a_ledger_is_given(folder: Path) -> None:
    ledger = folder / "ledger.db"
    run(folder, ledger=ledger, methods=["flows_laplace", "onthemap"])

    kinds = [one.kind for one in gb.Ledger.open(ledger).entries()]
    assert kinds.count("reserve") == 2  # the references are not charged


@pytest.mark.parametrize("more", [{"holdout": 0.5}, {"keys": ["home"]}])
def test_options_of_tables_of_rows_are_refused(folder: Path, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="study of flows"):
        run(folder, **more)


def test_a_finding_of_rows_or_a_wrong_place_is_refused_before_a_run(folder: Path) -> None:
    with pytest.raises(UsageError, match="tv9"):
        run(folder, metrics=["tv9"])
    with pytest.raises(UsageError, match="reach"):
        run(folder, methods=[Arm("far", "onthemap", (("reach", 3.0),))])


def test_a_folder_is_not_gone_on_with_under_other_places(folder: Path) -> None:
    run(folder, resume=folder / "study")
    moved = pl.read_csv(folder / "homes.csv").with_columns(pl.col("lat") + 0.01)
    moved.write_csv(folder / "homes.csv")

    with pytest.raises(UsageError, match="geography"):
        run(folder, resume=folder / "study")


@pytest.mark.slow
def test_a_study_file_names_a_geography(folder: Path) -> None:
    assert main(["compare", "-c", str(folder / "study.toml"), "-o", str(folder / "out"), "-q"]) == 0

    assert (folder / "out" / "ru_origin_given.html").exists()
    assert not (folder / "out" / "ru_tv2.html").exists()


def test_a_study_file_has_one_of_schema_and_geography(folder: Path) -> None:
    both = folder / "both.toml"
    both.write_text('schema = "a.toml"\n' + STUDY, encoding="utf-8")

    with pytest.raises(UsageError, match="a schema and a geography"):
        load(both)


def test_a_released_table_and_a_study_count_the_same_pairs(folder: Path) -> None:
    """With next to no noise, flows_laplace gives back the records' own pairs, whichever door."""
    geography = load_geography(folder / "geography.toml")
    loud = gb.FlowsLaplace(epsilon=60, false_cells=1e-9)
    release = gb.synthesize(
        folder / "flows.csv", flow_schema(geography), loud, rows=4_000, seed=1,
        engine=FlowEngine(geography), ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip
    by_hand = evaluate_flows(folder / "flows.csv", release, geography, only=["origin_given"])
    points = run(folder, methods={"loud": loud}, epsilon=[], rows=4_000).points()
    by_study = next(p for p in points if p["label"] == "loud")

    assert by_hand["origin_given"].value < 0.1
    assert by_study["origin_given"] < 0.1
    assert by_study["new_pairs"] == 0
