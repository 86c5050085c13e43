"""Distance of synthetic flows from the records: onthemap, coarsened or shrunken, and flows_laplace.

    python bench/flow_accuracy.py [--quick]     # the table as Markdown, one run a cell

Counties are constructed: 3,142 places, populations of a heavy tail, mostly short commutes. Detroit is
`../shared/data`, without the jobs elsewhere; "a tenth" has each count divided by ten and rounded. "Known"
tables have the people who live in each place as its public density, as a census would say it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.flows import (
    FlowEngine,
    Flows,
    Geography,
    Pairs,
    flow_schema,
    flows_of,
    miles,
    places,
    read_flows,
)
from gibbous.flows.earlier import keep_steps
from gibbous.mechanisms.flows_laplace import FlowsLaplace

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
STEPS = (1, 2, 4, 7, 10, 15, 20, 30, 40, 60, 100, 200, 500, 1000, 2000)  # miles
KEEP = ((0.0, 1.0), (50.0, 0.3), (200.0, 0.05))
WIDTHS = {"distance": (0.25, 0.5, 1.0, 2.0, 4.0), "density": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)}
EPSILON, DELTA = 4.6, 1e-6


def counties(people: int, *, known: bool = False) -> tuple[Geography, pl.DataFrame]:
    """Constructed flows; most people work in their own county."""
    draws, n = np.random.default_rng(1), 3142
    lat, lon = draws.uniform(28, 48, n), draws.uniform(-122, -70, n)
    homes = draws.lognormal(0, 1.4, n)
    jobs = homes * draws.lognormal(0, 0.3, n)
    far = miles(lat[:, None], lon[:, None], lat[None], lon[None])
    pull = homes[:, None] * jobs[None] * np.where(far < 1, 30.0, np.exp(-far / 15) + 1e-7)
    law = (pull / pull.sum()).ravel()
    counts = draws.multinomial(people, law).reshape(n, n)
    home, work = np.nonzero(counts)
    before = np.nonzero(draws.multinomial(people, law).reshape(n, n))  # of a year that is public
    ids = np.array([f"c{i}" for i in range(n)])
    where = places(ids, lat, lon, density=homes if known else None)
    table = {"work": ids[work], "home": ids[home], "jobs": counts[home, work]}
    earlier = Pairs(before[1], before[0])
    return Geography(where, where, "home", "work", "jobs", earlier=earlier), pl.DataFrame(table)


def detroit(part: int, *, known: bool = False) -> tuple[Geography, pl.DataFrame]:
    """Public flows between cells; every count divided by `part`."""
    cells = pl.read_parquet(DATA / "lodes_detroit_cells.parquet")
    table = pl.read_parquet(DATA / "lodes_detroit_2019.parquet").rename(
        {"work_cell": "work", "home_cell": "home"}
    )
    table = table.filter(pl.col("work") != "rest_of_usa")
    homes = dict(table.group_by("home").agg(pl.col("jobs").sum()).rows())
    ids, lat, lon = cells["cell"].to_list(), cells["lat"].to_numpy(), cells["lon"].to_numpy()
    residents = [1.0 + homes.get(one, 0) for one in ids]
    where = places(ids, lat, lon, density=residents if known else None)
    fewer = (pl.col("jobs") / part).round().cast(pl.Int64)
    table = table.with_columns(fewer)
    return Geography(where, where, "home", "work", "jobs"), table.filter(pl.col("jobs") > 0)


def methods(geography: Geography) -> Iterator[tuple[str, Any]]:
    """Name and method."""
    given = {"delta": DELTA, "destination": "work"}
    where = {"origins": geography.origins, "destinations": geography.destinations}
    yield "onthemap", gb.Onthemap(epsilon=EPSILON, **given)
    for by, widths in WIDTHS.items():
        for width in widths:
            cells: dict[str, Any] = {"coarsen": width, "coarsen_by": by}
            one = gb.Onthemap(epsilon=EPSILON, **cells, **given, **where)
            yield f"onthemap, coarsen = {width:g} by {by}", one
    yield "onthemap, keep, epsilon = 8.569", gb.Onthemap(epsilon=8.569, keep=KEEP, **given, **where)
    if geography.earlier is not None:
        known: dict[str, Any] = {"keep": keep_steps(geography), "earlier": geography.earlier}
        for epsilon in (EPSILON, 8.569):
            one = gb.Onthemap(epsilon=epsilon, **known, **given, **where)
            yield f"onthemap, keep = earlier, epsilon = {epsilon}", one
    yield "flows_laplace", FlowsLaplace(epsilon=EPSILON)
    yield "flows_laplace, epsilon = 1", FlowsLaplace(epsilon=1.0)


def apart(one: Flows, two: Flows, geography: Geography) -> tuple[float, float]:
    """Total variation distance of pairs, and of people by miles."""
    found = []
    origins = len(geography.origins)
    keys = [flows.destinations * origins + flows.origins for flows in (one, two)]
    every = np.unique(np.concatenate(keys))
    pairs, steps = np.zeros((2, len(every))), []
    for row, (flows, key) in enumerate(zip((one, two), keys, strict=True)):
        np.add.at(pairs[row], np.searchsorted(every, key), flows.counts / flows.counts.sum())
        step = np.digitize(flows.distances(geography), STEPS)
        steps.append(np.bincount(step, flows.counts, len(STEPS) + 1) / flows.counts.sum())
    found = [np.abs(a - b).sum() / 2 for a, b in (pairs, steps)]
    return float(found[0]), float(found[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    tables = [(f"counties, {n:,} people", counties(n)) for n in (100_000, 1_000_000, 10_000_000)]
    if DATA.is_dir():
        tables += [(f"Detroit / {part}", detroit(part)) for part in (1, 10, 100)]
        tables += [(f"Detroit / {part}, known", detroit(part, known=True)) for part in (10, 100)]
    tables += [(f"counties, {n:,} people, known", counties(n, known=True)) for n in (10**5, 10**6)]
    print("| flows | method | pairs | distance | CPU s |\n|---|---|---:|---:|---:|")
    for name, (geography, table) in tables[:1] if quick else tables:
        real, _ = read_flows(table, geography)
        for method, one in methods(geography):
            start = time.process_time()
            release = gb.synthesize(
                table,
                flow_schema(geography),
                one,
                engine=FlowEngine(geography),
                ledger=gb.Ledger.ephemeral(),
            )
            pairs, far = apart(real, flows_of(release.sets[0], geography), geography)
            spent = time.process_time() - start
            print(f"| {name} | {method} | {pairs:.4f} | {far:.4f} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    main()
