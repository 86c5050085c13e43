"""Flows: seconds, CPU seconds and peak memory of onthemap draws as tables grow; no claim about other tools.

    python bench/flows.py [--quick]

Each size runs in a process of its own, on constructed tables: destinations of random sizes, origins
with a heavy tail, or within reach. CPU seconds are those of the process, so that a busy machine
changes little. The last two are read from a file and written as a release: a constructed country, and
Detroit, where `../shared/data` has it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {
    "flows 250k, 10^6 origins, 10^4 destinations": (1_000_000, 10_000, 250_000, 0),
    "flows 500k, 10^6 origins, 10^4 destinations": (1_000_000, 10_000, 500_000, 0),
    "flows 1M, 10^6 origins, 10^4 destinations": (1_000_000, 10_000, 1_000_000, 0),
    "flows 2M, 10^6 origins, 10^4 destinations": (1_000_000, 10_000, 2_000_000, 0),
    "flows 1.5M, 233,726 origins, 100k destinations": (233_726, 100_000, 1_500_000, 0),
    "flows 1.8k, 233,726 origins, 120 destinations, shrunk": (233_726, 120, 1_800, 1),
    "flows 3.6k, 233,726 origins, 240 destinations, shrunk": (233_726, 240, 3_600, 1),
    "flows 14k, 233,726 origins, 960 destinations, reach alone": (233_726, 960, 14_400, 3),
    "Laplace on the grid 10^6 x 10^4, 2M flows": (1_000_000, 10_000, 2_000_000, 2),
}
STEPS = ((0.0, 1.0), (15.0, 0.3), (40.0, 0.05))
EXTRA = {
    0: {"epsilon": 4.6},
    1: {"keep": STEPS, "epsilon": 8.6, "reach": 200.0},
    3: {"reach": 200.0},
}
DETROIT = "Detroit, 205,325 pairs, file to release"
COUNTRY = "3,142 counties, 135,760 pairs, 143.5M flows, file to release"
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Run every size, or one in this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", default="")
    given = parser.parse_args()
    if given.one:
        whole = {DETROIT: _detroit, COUNTRY: _country}
        found = whole[given.one]() if given.one in whole else _measure(*SIZES[given.one])
        print(json.dumps(found))
        return
    names = list(SIZES)[:2] if given.quick else [*SIZES, COUNTRY]
    names += [DETROIT] if SHARED.is_dir() else []
    for name in names:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True
        )
        print(json.dumps({"size": name, **json.loads(done.stdout.splitlines()[-1])}), flush=True)


def _measure(origins: int, destinations: int, flows: int, kind: int) -> dict[str, float]:
    from gibbous.core.schema import Column, Schema
    from gibbous.flows import FlowEngine, Geography, collected, places
    from gibbous.mechanisms.flows_laplace import FlowsLaplace
    from gibbous.mechanisms.onthemap import Onthemap, by_destination, claim, scheme
    from gibbous.privacy.entropy import words
    from gibbous.sampling.flows.flow_rows import FlowRows
    from gibbous.structure.contexts import joint

    draws = np.random.default_rng(1)  # constructed data, not a release
    there = draws.integers(0, destinations, flows)
    here = (origins * draws.random(flows) ** 3).astype(np.int64)
    where = [
        np.column_stack([draws.uniform(43.5, 49.4, n), draws.uniform(-97.2, -89.5, n)])
        for n in (origins, destinations)
    ]
    geography = Geography(*(places(np.arange(len(w)).astype(str), w[:, 0], w[:, 1]) for w in where))
    schema = Schema(
        (
            Column("destination", "nominal", levels=tuple(range(destinations))),
            Column("origin", "nominal", levels=tuple(range(origins))),
        )
    )
    if kind in (1, 3):
        here = _near(geography, there, here, draws)
    engine = FlowEngine.holding(geography, collected(there, here, secret=True), schema)
    start = (time.perf_counter(), time.process_time())
    if kind == 2:
        noise = FlowsLaplace(epsilon=1.0)._noise(schema)
        rows = len(noise.add(engine.tally([joint(schema, "seen")])[0].cells).values)
    else:
        one = Onthemap(
            delta=1e-5,
            destination="destination",
            origins=geography.origins,
            destinations=geography.destinations,
            **EXTRA[kind],
        )
        draw = FlowRows(scheme(one, schema), claim(one))
        rows = draw(engine.tally([by_destination(schema, "destination")]), schema, 0, words).rows
    return _spent(rows, start)


def _detroit() -> dict[str, float]:
    import polars as pl

    from gibbous.flows import Geography, places

    cells = pl.read_parquet(SHARED / "lodes_detroit_cells.parquet")
    ids, lat, lon = cells["cell"].to_list(), cells["lat"].to_numpy(), cells["lon"].to_numpy()
    works = places([*ids, "rest_of_usa"], np.append(lat, np.nan), np.append(lon, np.nan))
    geography = Geography(places(ids, lat, lon), works, "home_cell", "work_cell", "jobs")
    return _released(SHARED / "lodes_detroit_2019.parquet", geography)


def _country(people: int = 143_500_000, pairs: int = 135_760) -> dict[str, float]:
    """Counties of a heavy tail, mostly at home or near: the largest has 4 million jobs, half the pairs 2."""
    import polars as pl

    from gibbous.flows import Geography, miles, places

    draws, n = np.random.default_rng(1), 3142
    lat, lon = draws.uniform(28, 48, n), draws.uniform(-122, -70, n)
    homes = draws.lognormal(0, 1.4, n)
    jobs = homes * draws.lognormal(0, 0.3, n)
    far = miles(lat[:, None], lon[:, None], lat[None], lon[None])
    size = (homes[:, None] * jobs[None]) ** 0.6
    pull = (size * np.where(far < 1, 30.0, np.exp(-far / 15) + 1e-5)).ravel()
    found = np.sort(np.argpartition(-pull, pairs)[:pairs])
    counts = 1 + draws.multinomial(people - pairs, pull[found] / pull[found].sum())
    home, work = np.divmod(found, n)
    where = places([f"c{i}" for i in range(n)], lat, lon)
    with tempfile.TemporaryDirectory() as folder:
        table = {"work": where.ids[work], "home": where.ids[home], "jobs": counts}
        pl.DataFrame(table).write_parquet(Path(folder) / "flows.parquet")
        geography = Geography(where, where, "home", "work", "jobs")
        return _released(Path(folder) / "flows.parquet", geography)


def _released(source: Path, geography: Any) -> dict[str, float]:
    """The whole way from a file of pairs to a release."""
    import polars as pl

    import gibbous as gb
    from gibbous.flows import FlowEngine, flow_schema

    start = (time.perf_counter(), time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        release = gb.synthesize(
            source,
            flow_schema(geography),
            gb.Onthemap(epsilon=4.6, delta=1e-5, destination=geography.destination),
            engine=FlowEngine(geography),
            ledger=gb.Ledger.ephemeral(),
            out=Path(folder) / "release",
        )
        files = Path(release.path or folder).rglob("*.parquet")
        rows = sum(int(pl.scan_parquet(f).select(pl.len()).collect().item()) for f in files)
    return _spent(rows, start)


def _near(geography: Any, there: np.ndarray, here: np.ndarray, draws: np.random.Generator) -> Any:
    """Origins drawn again until they are within 200 miles: data are checked for it when read."""
    from gibbous.flows import miles

    homes, works = geography.origins, geography.destinations
    far = np.arange(len(here))
    while len(far):
        here[far] = draws.integers(0, len(homes), len(far))
        away = miles(
            works.lat[there[far]], works.lon[there[far]], homes.lat[here[far]], homes.lon[here[far]]
        )
        far = far[away > 200]
    return here


def _spent(rows: int, start: tuple[float, float]) -> dict[str, float]:
    return {
        "rows": rows,
        "seconds": round(time.perf_counter() - start[0], 2),
        "cpu_seconds": round(time.process_time() - start[1], 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
    }


if __name__ == "__main__":
    main()
