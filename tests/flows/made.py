"""A small table of flows with its geography file, and a release of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.flows import FlowEngine, flow_schema, load_geography

FORM = """
origin = "home"
destination = "work"
count = "jobs"

[origins]
file = "homes.csv"
density = "residents"
levels = ["county"]

[destinations]
file = "plants.csv"
id = "plant"
"""


def files(folder: Path, form: str = FORM) -> Path:
    """Write flows.csv, homes.csv, plants.csv and geography.toml; return the last."""
    pl.DataFrame(
        {
            "id": [f"h{k}" for k in range(20)],
            "lat": 45 + np.arange(20) / 50,
            "lon": [-93.0] * 20,
            "residents": range(1, 21),
            "county": ["south"] * 10 + ["north"] * 10,
        }
    ).write_csv(folder / "homes.csv")
    pl.DataFrame(
        {"plant": ["mill", "school"], "lat": [45.0, 45.1], "lon": [-93.0, -93.1]}
    ).write_csv(folder / "plants.csv")
    pl.DataFrame(
        {
            "work": ["mill", "mill", "mill", "school"],
            "home": ["h1", "h2", "h19", "h4"],
            "jobs": [9, 5, 1, 2],
        }
    ).write_csv(folder / "flows.csv")
    path = folder / "geography.toml"
    path.write_text(form, encoding="utf-8")
    return path


def release(folder: Path, out: str = "release") -> gb.Release:
    """A release of these flows under their geography, in memory and on disk."""
    geography = load_geography(folder / "geography.toml")
    found = gb.synthesize(
        folder / "flows.csv",
        flow_schema(geography),
        gb.Onthemap(
            epsilon=4.6,
            delta=1e-5,
            destination="work",
            origins=geography.origins,
            destinations=geography.destinations,
        ),
        engine=FlowEngine(geography),
        ledger=gb.Ledger.ephemeral(),
        out=folder / out,
    )
    assert isinstance(found, gb.Release)
    return found
