"""onthemap as users meet it: plans, refusals before any charge, the flow engine, the pipeline."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import (
    GibbousError,
    ParameterError,
    PrivacyRefused,
    ResourceLimit,
    SchemaMismatch,
    UsageError,
)
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.flows import (
    FlowEngine,
    Geography,
    Pairs,
    coarse,
    collected,
    flow_schema,
    flows_of,
    places,
    read_flows,
    to_places,
    to_regions,
)
from gibbous.mechanisms.flows_laplace import FlowsLaplace
from gibbous.mechanisms.onthemap import Onthemap
from gibbous.privacy.ledger import Ledger
from gibbous.structure.contexts import joint

HERE = places(
    [f"o{i}" for i in range(6)],
    [45.0, 45.1, 45.2, 45.4, 46.0, 46.5],
    [-93.0] * 6,
    parents={"county": list("aabbcc")},
)
THERE = places(["d0", "d1"], [45.0, 46.0], [-93.0, -93.0])
GEOGRAPHY = Geography(HERE, THERE, "home", "work", "jobs")
SCHEMA = flow_schema(GEOGRAPHY)
TABLE = pl.DataFrame(
    {
        "work": ["d0", "d0", "d1", "d0"],
        "home": ["o0", "o1", "o4", "o0"],
        "jobs": [3, 1, 2, 2],
    }
)


def run(table: Any, method: Any, folder: Path, geography: Geography = GEOGRAPHY) -> Any:
    return gb.synthesize(
        table,
        flow_schema(geography),
        method,
        engine=FlowEngine(geography),
        ledger=folder / "ledger",
    )


def test_a_release_has_the_totals_of_every_destination_and_the_stated_claim(
    tmp_path: Path,
) -> None:
    release = run(TABLE, Onthemap(epsilon=3, delta=1e-4, destination="work"), tmp_path)

    flows = flows_of(release.sets[0], GEOGRAPHY)
    assert flows.totals(2).tolist() == [6, 2]
    assert release.claim.kind == "probabilistic"
    assert release.claim.relation == "replace_one"
    assert "destination fixed" in release.claim.source
    assert len(list(Ledger.open(tmp_path / "ledger").entries())) == 2  # reserved, committed
    assert flows.frame(GEOGRAPHY).columns == ["work", "home", "jobs"]


def test_sets_are_paid_for_one_by_one() -> None:
    plan = Onthemap(epsilon=2, delta=1e-6, destination="work").plan(SCHEMA, None, 3)

    assert plan.total.epsilon == 6
    assert float(plan.total.delta) == pytest.approx(3e-6)


def test_the_statement_for_the_whole_table_needs_more_virtual_records() -> None:
    name = "alpha, virtual records an origin, of 150 records"
    each, table = (
        dict(Onthemap(destination="work", statement=s).plan(SCHEMA, None).errors)[name]
        for s in ("destination", "table")
    )

    assert table > each


@pytest.mark.slow
def test_plans_state_the_share_of_virtual_people_where_domains_are_their_own() -> None:
    draws = np.random.default_rng(2)
    here = places(np.arange(300), draws.uniform(44, 46, 300), draws.uniform(-94, -92, 300))
    geography = Geography(here, here, "home", "work", "jobs")

    def share(**given: Any) -> float:
        one = Onthemap(destination="work", origins=here, destinations=here, **given)
        plan = one.plan(flow_schema(geography), None)
        found = dict(plan.errors)["share of virtual people beside 150 records"]
        assert any("of the people of a destination" in told for told in plan.warnings) == (
            found > 0.5
        )
        return found

    whole, reach = share(), share(reach=20)
    assert 0 < share(coarsen=1) < share(coarsen=0.25) < whole < 1
    assert share(coarsen="auto") < share(coarsen=0.25)
    assert reach < whole
    assert share(epsilon=8.569, keep=((0, 1.0), (20, 0.1))) < whole
    virtual = dict(Onthemap(destination="work").plan(flow_schema(geography), None).errors)
    beside = virtual["all virtual records beside 150 records"]
    assert whole == pytest.approx(beside / (beside + 150))


def test_printed_and_exact_bounds_are_both_shown_by_plans() -> None:
    name = "alpha, virtual records an origin, of 15 records"
    exact, printed = (
        dict(Onthemap(destination="work", bound=b).plan(SCHEMA, None).errors)[name]
        for b in ("exact", "printed")
    )

    assert 0 < exact < printed


def test_a_plan_with_geography_is_json_and_names_it_by_digest() -> None:
    one = Onthemap(
        epsilon=6, destination="work", keep=((0, 0.5),), origins=HERE, destinations=THERE
    )

    told = json.dumps(one.plan(SCHEMA, None).to_json())

    assert HERE.digest() in told
    assert "o3" not in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"accept": "rep"}, "without bound"),
        ({"keep": ((0, 0.0),)}, "probability of 0.0"),
        ({"keep": ((0, 1.5),)}, "probability of 1.5"),
        ({"keep": ((5, 0.5),)}, "first from 0 miles"),
        ({"keep": ((0, 0.5), (0, 0.2))}, "distances increasing"),
        ({"keep": ((0, 0.001),), "epsilon": 4.6}, "costs 6.908 nats"),
        ({"keep": ((0, 0.5),)}, "without public places"),
        ({"reach": 10.0}, "without public places"),
        ({"coarsen": 1.0}, "without public places"),
        ({"coarsen": "auto"}, "without public places"),
        ({"coarsen": "wide"}, "or 'auto'"),
        ({"coarsen": -1.0}, "or 'auto'"),
        ({"coarsen_by": "density"}, "without coarsen"),
        ({"coarsen": 1.0, "keep": ((0, 0.5),)}, "regions of its own"),
        ({"coarsen": 1.0, "accept": "good"}, "regions of its own"),
        ({"level": "county"}, "without public places"),
        ({"bound": "printed", "epsilon": math.log(3)}, "above ln 3"),
        ({"accept": "good", "bound": "printed"}, "full domain"),
        ({"epsilon": 0.0}, "epsilon of Onthemap is 0.0"),
        ({"delta": 1.0}, "delta of Onthemap is 1.0"),
        ({"earlier": Pairs(np.array([0]), np.array([0]))}, "without keep"),
    ],
)
def test_wrong_parameters_are_refused_when_they_are_written_down(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(ParameterError, match=told) as caught:
        Onthemap(**given)

    assert caught.value.allowed
    assert caught.value.fix


def test_the_example_in_the_error_about_a_probability_of_0_is_accepted() -> None:
    with pytest.raises(ParameterError) as caught:
        Onthemap(epsilon=9, keep=((0, 0.0),))

    example = ast.literal_eval(caught.value.fix.split("for example ")[1].rstrip("."))
    one = Onthemap(epsilon=9, keep=example, origins=HERE, destinations=THERE)

    assert one.keep == ((0, 1.0), (10, 0.05))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"home": ["o0", "o9", "o4", "o0"]}, "unknown or missing place, first in data row 2"),
        (
            {"work": ["d0", "d0", "d7", "d0"]},
            "'work' has rows with an unknown or missing place, first in data row 3",
        ),
        ({"home": ["o0", None, "o4", "o0"]}, "unknown or missing"),
        ({"jobs": [3, -1, 2, 2]}, "negative or not whole, first in data row 2"),
        ({"jobs": [3, 1.5, 2, 2]}, "not whole"),
        ({"jobs": [3, None, 2, 2]}, "missing, negative"),
        ({"jobs": ["3", "many", "2", "2"]}, "missing, negative"),
    ],
)
def test_wrong_data_are_refused_before_any_charge(
    tmp_path: Path, change: dict[str, list[Any]], told: str
) -> None:
    table = TABLE.with_columns(
        pl.Series(name, values, strict=False) for name, values in change.items()
    )

    with pytest.raises(SchemaMismatch, match=told) as caught:
        run(table, Onthemap(epsilon=4.6, destination="work"), tmp_path)

    assert not any(v in str(caught.value) for v in ("o9", "d7", "1.5", "many"))
    assert not list(Ledger.open(tmp_path / "ledger").entries())


def test_a_missing_column_and_too_many_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="no column 'home'"):
        read_flows(TABLE.drop("home"), GEOGRAPHY)
    with pytest.raises(ResourceLimit, match=r"2\^31"):
        read_flows(TABLE.with_columns(jobs=pl.lit(2_000_000_000)), GEOGRAPHY)


def test_more_origins_than_can_be_drawn_are_refused_by_the_plan() -> None:
    columns = tuple(
        Column(f"c{i}", "ordinal", levels=tuple(range(size)))
        for i, size in enumerate((206, 150, 120, 100, 90, 80, 60))
    )

    with pytest.raises(ResourceLimit, match=r"2\^40"):
        gb.plan(Schema(columns, unit=Unit()), Onthemap())

    wide = gb.plan(Schema(columns[:4], unit=Unit()), Onthemap())  # 4e8 origins, none of them listed
    assert wide.cells == 206 * 150 * 120 * 100


def test_pairs_beyond_reach_are_refused_and_not_counted() -> None:
    near = Geography(HERE, THERE, "home", "work", "jobs", reach=5.0)

    with pytest.raises(SchemaMismatch, match="Pairs are farther apart than 5 miles"):
        read_flows(TABLE, near)


def test_a_reach_needs_coordinates() -> None:
    bare = Geography(places(["o0"]), THERE, "home", "work", reach=5.0)

    with pytest.raises(UsageError, match="without coordinates"):
        read_flows(TABLE, bare)


def test_persons_with_several_rows_and_impossible_pairs_are_refused() -> None:
    persons = Schema(SCHEMA.columns, unit=Unit("person", "who", 2))
    zeros = Schema(SCHEMA.columns, impossible=(Impossible((("work", (0,)), ("home", (1,)))),))

    with pytest.raises(PrivacyRefused, match="more than one row"):
        Onthemap(destination="work").plan(persons, None)
    with pytest.raises(UsageError, match="impossible"):
        Onthemap(destination="work").plan(zeros, None)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"destination": "nowhere"}, "no column 'nowhere'"),
        ({"destination": "work", "spread": 1.0, "origins": THERE}, "2 origins in the geography"),
        ({"destination": "work", "level": "state", "origins": HERE}, "no level 'state'"),
    ],
)
def test_geography_that_does_not_fit_the_schema_is_refused_by_the_plan(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(GibbousError, match=told):
        Onthemap(**given).plan(SCHEMA, None)


def test_a_number_of_rows_is_refused_with_shrinking() -> None:
    one = Onthemap(
        epsilon=6, destination="work", keep=((0, 0.5),), origins=HERE, destinations=THERE
    )

    with pytest.raises(ParameterError, match="rows was given with keep"):
        one.plan(SCHEMA, 50)


def test_a_schema_that_is_not_the_geographys_is_refused() -> None:
    other = Schema((Column("work", "nominal", levels=("d0",)), SCHEMA.columns[1]))

    with pytest.raises(SchemaMismatch, match="not that of the geography"):
        FlowEngine(GEOGRAPHY).scan(TABLE, other, key=b"k" * 32)


def test_the_flow_engine_counts_as_an_engine_of_rows_does() -> None:
    flows, _ = read_flows(TABLE, GEOGRAPHY)
    rows = TABLE.select(pl.exclude("jobs").repeat_by("jobs").explode())
    truth = LocalEngine()
    truth.scan(rows, SCHEMA, key=b"k" * 32)
    ours = FlowEngine.holding(GEOGRAPHY, flows, SCHEMA)
    contexts = [joint(SCHEMA, s) for s in ("dense", "seen")]

    for one, two in zip(ours.tally(contexts), truth.tally(contexts), strict=True):
        assert np.array_equal(one.cells.values, two.cells.values)


def test_the_fingerprint_does_not_depend_on_the_order_of_pairs() -> None:
    marks = [
        FlowEngine(GEOGRAPHY).scan(t, SCHEMA, key=b"k" * 32)
        for t in (TABLE, TABLE.reverse(), TABLE.with_columns(jobs=pl.col("jobs") + 1))
    ]

    assert marks[0] == marks[1] != marks[2]


def test_a_closed_engine_counts_nothing_and_shows_nothing() -> None:
    flows, _ = read_flows(TABLE, GEOGRAPHY)
    engine = FlowEngine.holding(GEOGRAPHY, flows, SCHEMA)
    engine.close()

    with pytest.raises(GibbousError, match="is closed"):
        engine.tally([joint(SCHEMA)])
    with pytest.raises(TypeError, match="never written"):
        flows.frame(GEOGRAPHY)
    with pytest.raises(TypeError, match="never pickled"):
        flows.__reduce__()
    assert repr(flows) == "<Flows, secret>"


def test_flows_are_added_up_and_pairs_of_nobody_left_out() -> None:
    found = collected(np.array([1, 0, 1]), np.array([2, 3, 2]), np.array([4, 0, 1]))

    assert (found.destinations.tolist(), found.origins.tolist(), found.counts.tolist()) == (
        [1],
        [2],
        [5],
    )


@pytest.mark.parametrize("method", [gb.Sba(epsilon=4, delta=1e-3), FlowsLaplace(epsilon=4)])
def test_the_older_definitions_run_on_the_same_table(method: Any, tmp_path: Path) -> None:
    table = TABLE.with_columns(jobs=pl.col("jobs") * 40)

    release = run(table, method, tmp_path)

    flows = flows_of(release.sets[0], GEOGRAPHY)
    assert abs(flows.records - 320) < 120
    assert release.claim.relation == "add_remove"


def test_a_package_says_that_its_rows_are_as_many_as_records_and_no_noisy_count(
    tmp_path: Path,
) -> None:
    schema = Schema((Column("home", "nominal", levels=("o0", "o1", "o2")),), unit=Unit())
    frame = pl.DataFrame({"home": ["o0"] * 30 + ["o1"] * 20})

    release = gb.synthesize(
        frame,
        schema,
        Onthemap(epsilon=4.6, delta=1e-3),
        ledger=tmp_path / "ledger",
        out=tmp_path / "out",
    )

    assert release.receipt["rows"] == [50]
    assert release.receipt["rows_from"] == "number of records"
    text = (tmp_path / "out" / "METHODS.md").read_text()
    assert "as many rows as records" in text
    assert "as the noisy count says" not in text


def test_coarse_origins_serve_the_default_method_and_places_come_back(tmp_path: Path) -> None:
    wide = coarse(GEOGRAPHY, "county")
    table = TABLE.with_columns(jobs=pl.col("jobs") * 100)

    release = gb.synthesize(
        table,
        flow_schema(wide),
        gb.AdaptiveGibbs(epsilon=8, delta=1e-6),
        engine=FlowEngine(GEOGRAPHY, level="county"),
        ledger=tmp_path / "ledger",
        rows=800,
    )

    regional = flows_of(release.sets[0], wide)
    found = to_places(regional, GEOGRAPHY, "county", seed=3)
    again = to_regions(found, GEOGRAPHY, "county")
    assert (again.origins == regional.origins).all()
    assert (again.counts == regional.counts).all()
    assert np.bincount(found.origins, found.counts, 6)[[0, 1]].min() > 200  # county a, evenly


def test_an_earlier_release_keeps_its_pairs_in_the_domain() -> None:
    from gibbous.sampling.flows.reach import Ground
    from gibbous.sampling.flows.scheme import Scheme

    scheme = Scheme(
        9.0,
        1e-6,
        keep=((0.0, 0.5), (20.0, 0.1)),
        origins=HERE,
        destinations=THERE,
        earlier=Pairs(np.array([0]), np.array([5])),
    )

    domain, share = Ground.of(scheme, 6).domain(0)

    assert share.tolist() == [0.5, 0.5, 0.5, 0.1, 0.1, 1.0]
    assert domain.tolist() == list(range(6))


@pytest.mark.shared
@pytest.mark.slow
def test_detroit_keeps_totals_and_commutes(shared_data: Path, tmp_path: Path) -> None:
    cells = pl.read_parquet(shared_data / "lodes_detroit_cells.parquet")
    ids, lat, lon = cells["cell"].to_list(), cells["lat"].to_numpy(), cells["lon"].to_numpy()
    geography = Geography(
        places(ids, lat, lon),
        places([*ids, "rest_of_usa"], np.append(lat, np.nan), np.append(lon, np.nan)),
        "home_cell",
        "work_cell",
        "jobs",
    )
    table = shared_data / "lodes_detroit_2019.parquet"

    release = run(table, Onthemap(epsilon=4.6, destination="work_cell"), tmp_path, geography)

    real, _ = read_flows(table, geography)
    made = flows_of(release.sets[0], geography)
    size = len(geography.destinations)
    assert (made.totals(size) == real.totals(size)).all()
    far, near = (np.nansum(f.distances(geography) * f.counts) / f.records for f in (made, real))
    assert near < far < 1.2 * near  # virtual records lengthen commutes
