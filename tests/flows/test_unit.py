"""B1: what a release of flows says is protected: one counted record of a pair, in every form and file."""

import json
from dataclasses import replace

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.schema import Column, Schema, Unit
from gibbous.flows import FlowEngine, Geography, flow_schema, places
from gibbous.mechanisms.registry import load
from gibbous.read.schema_file import load_schema

UNIT = "one counted record of a pair"
PLACES = (places([f"h{k}" for k in range(6)]), places(["mill", "school"]))
PAIRS = pl.DataFrame({"work": ["mill", "school"], "home": ["h1", "h3"], "jobs": [60, 3]})
ROWS = pl.DataFrame({"work": ["mill"] * 60 + ["school"] * 3, "home": ["h1"] * 60 + ["h3"] * 3})


def _made(frame, count, method, out):
    geography = Geography(*PLACES, origin="home", destination="work", count=count)
    return gb.synthesize(
        frame,
        flow_schema(geography),
        method,
        rows=20,
        engine=FlowEngine(geography),
        ledger=gb.Ledger.ephemeral(),
        out=out,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "count"), [(PAIRS, "jobs"), (ROWS, None)], ids=["counts", "rows"]
)
@pytest.mark.parametrize("name", ["flows_laplace", "onthemap"])
def test_B1_flows_protect_one_counted_record_in_every_file(tmp_path, frame, count, name):
    given = {"destination": "work"} if name == "onthemap" else {}

    release = _made(frame, count, load(name)(epsilon=1, **given), tmp_path / "out")

    receipt = json.loads((tmp_path / "out" / "ledger.json").read_text())
    text = (tmp_path / "out" / "METHODS.md").read_text()
    page = gb.report(release, "public", tmp_path / "public.html").read_text()
    entry = json.loads(receipt["ledger"]["entries"]["reserve"]["public"])
    assert f"Protected is any {UNIT}:" in text
    assert "any one row" not in text + page
    assert "whoever has several of them is several units" in text
    assert receipt["unit"]["words"] == entry["protects"] == UNIT
    assert load_schema(tmp_path / "out" / "schema.toml").unit == Unit("record")
    assert f"any {UNIT} of the confidential data" in page
    assert UNIT in (tmp_path / "out" / "codebook.html").read_text()


@pytest.mark.parametrize("unit", [Unit(), Unit("person", "who", 3), None], ids=str)
def test_B1_flows_under_another_unit_are_refused_and_nothing_is_spent(unit):
    geography = Geography(*PLACES, origin="home", destination="work", count="jobs")
    ledger = gb.Ledger.ephemeral()
    schema = replace(flow_schema(geography), unit=unit)

    with pytest.raises(gb.GibbousError, match="unit"):
        gb.synthesize(
            PAIRS, schema, gb.FlowsLaplace(epsilon=1), engine=FlowEngine(geography), ledger=ledger
        )

    assert not ledger.entries()


def test_B1_a_record_of_a_pair_is_the_unit_of_two_columns_alone():
    columns = tuple(Column(name, "binary", levels=(0, 1)) for name in "abc")

    with pytest.raises(gb.GibbousError, match="3 columns"):
        Schema(columns, unit=Unit("record"))
