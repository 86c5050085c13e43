"""Flows: origin-destination tables with counts; their reader, their schema and their engine."""

from __future__ import annotations

from gibbous.flows.engine import FlowEngine
from gibbous.flows.geography_file import check_same, level_of, load_geography, place_tables, placed
from gibbous.flows.table import (
    Flows,
    Geography,
    coarse,
    collected,
    flow_schema,
    flows_of,
    read_flows,
    to_places,
    to_regions,
)
from gibbous.structure.regions import Pairs, Places, miles, places, regions

__all__ = [
    "FlowEngine",
    "Flows",
    "Geography",
    "Pairs",
    "Places",
    "check_same",
    "coarse",
    "collected",
    "flow_schema",
    "flows_of",
    "level_of",
    "load_geography",
    "miles",
    "place_tables",
    "placed",
    "places",
    "read_flows",
    "regions",
    "to_places",
    "to_regions",
]
