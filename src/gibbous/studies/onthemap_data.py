"""Commutes for the study: a constructed block table with the paper's figures, or a table that is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.flows import Flows, Geography, Places, collected, miles, places
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Settings

_NUMBER: Final = 60  # of this study, in the path of every draw
CENTER: Final = (44.97, -93.26)
NEAR: Final = 120_690  # candidate origins within 100 miles of the center [onthemap, s6]
FAR: Final = 233_726  # and within 200 miles
BEYOND: Final = 270.0  # miles: where the constructed country ends
DESTINATIONS: Final = 120
QUANTILES: Final = ((0.0, 0.0), (0.5, 6.23), (0.75, 13.1), (0.9, 21.54), (0.99, 95.0), (1.0, 190.0))
"""Share of commutes and miles: three are printed; "beyond the 99th percentile" stands for 100 miles."""
TOWNS: Final = ((0.0, 0.0), (0.25, 12.0), (0.4, 25.0), (0.55, 45.0), (1.0, 100.0))
"""Share of the near candidates and miles from the center."""
SPREAD: Final = 40.0  # miles from the center within which destinations lie
RANGES: Final = (200.0, 100.0)


@dataclass(frozen=True, slots=True, eq=False)
class Commutes:
    """The truth of one experiment.

    Attributes:
        flows: pairs within reach.
        geography: candidates, destinations, reach.
        steps: (miles, probability to keep) from public quantiles of commutes, the last the least.
        cuts: miles at which moderate and long commutes begin.
        real: of confidential records: a table was given.
    """

    flows: Flows
    geography: Geography
    steps: tuple[tuple[float, float], ...]
    cuts: tuple[float, float]
    real: bool = False


@lru_cache(maxsize=4)
def constructed(seed: int, reach: float, scale: float, jobs: float) -> Commutes:
    """The constructed table.

    Args:
        seed: of the study.
        reach: miles.
        scale: share of candidates and destinations that are made; 1 for the paper's figures.
        jobs: people of the average destination.
    """
    draws = Draws(seed, (_NUMBER,))
    homes = _homes(draws.at(1), scale)
    number = max(8, round(DESTINATIONS * scale))
    away = SPREAD * np.sqrt(draws.at(2).uniform(number))
    away[0] = 0.0  # the destination with the largest domain
    lat, lon = _moved(away, 2 * math.pi * draws.at(3).uniform(number))
    works = places([f"w{k}" for k in range(number)], lat, lon)
    raw = np.exp(1.1 * draws.at(4).normal(number))  # most destinations are small, a few large
    sizes = np.maximum(1, np.rint(raw * jobs / raw.mean())).astype(int)
    groups = np.repeat(np.arange(number), sizes)
    shares, at = np.array(QUANTILES).T
    wish = np.interp(draws.at(5).uniform(len(groups)), shares, at)
    origins = _chosen(homes, works, groups, wish, draws.at(6).uniform(len(groups)))
    flows = within(collected(groups, origins), Geography(homes, works, reach=reach))
    return Commutes(flows, Geography(homes, works, reach=reach), kept_steps(), (6.23, 21.54))


def given(settings: Settings, reach: float) -> Commutes:
    """A table of pairs and counts with the coordinates that lie beside it.

    Args:
        settings: data is a Parquet or CSV file whose first three columns are destination, origin and
            count; NAME_cells or NAME_places, the same name or its beginning, has id, lat and lon.
        reach: miles.
    Raises:
        UsageError: there is no table of coordinates beside it.
    """
    from gibbous.flows import read_flows
    from gibbous.read.source import read_columns
    from gibbous.reporting.flow_map_files import Named, read_places

    assert settings.data is not None
    known = read_places(_beside(settings.data), Named())
    frame = read_columns(settings.data)
    names = frame.columns[:3]
    ids = set(known.ids.tolist())
    inside = [frame.get_column(n).cast(str).is_in(ids) for n in names[:2]]
    frame = frame.select(names).filter(inside[0] & inside[1])
    number = settings.values["destinations"]
    geography = Geography(known, known, names[1], names[0], names[2])
    flows, _ = read_flows(frame, geography)
    totals = flows.totals(len(known))
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0]
    kept = np.sort(order[np.unique(np.linspace(0, len(order) - 1, number).astype(int))])
    works = places(known.ids[kept], known.lat[kept], known.lon[kept])
    on = np.isin(flows.destinations, kept)
    part = collected(
        np.searchsorted(kept, flows.destinations[on]), flows.origins[on], flows.counts[on]
    )
    homes = places(known.ids, known.lat, known.lon, parents={"cell": grid(known.lat, known.lon)})
    public = Geography(homes, works, names[1], names[0], names[2], reach)
    return Commutes(within(part, public), public, kept_steps(), (6.23, 21.54), real=True)


def kept_steps(least: float = 0.0378) -> tuple[tuple[float, float], ...]:
    """Probability to keep an origin: commutes a mile at its distance, over the most, at least `least`.

    From the public quantiles of commutes alone, as the paper shaped its function from CTPP; 0.0378 is
    the least probability that it prints.
    """
    steps = []
    for (low, near), (high, far) in zip(QUANTILES, QUANTILES[1:], strict=False):
        steps.append((near, (high - low) / (far - near)))
    top = max(density for _, density in steps)
    out: list[tuple[float, float]] = []
    for near, density in steps:
        share = max(least, round(density / top, 4))
        if not out or share < out[-1][1]:
            out.append((near, share))
    return tuple(out)


def within(flows: Flows, geography: Geography) -> Flows:
    """Pairs within reach: the others are suppressed, as in the paper."""
    on = flows.distances(geography) <= geography.reach
    return Flows(flows.destinations[on], flows.origins[on], flows.counts[on])


def _homes(draws: Draws, scale: float) -> Places:
    """Candidates: towns toward the center, an even country beyond 100 miles."""
    near, far = round(NEAR * scale), round(FAR * scale)
    area = (BEYOND**2 - RANGES[0] ** 2) / (RANGES[0] ** 2 - RANGES[1] ** 2)
    outer = round((far - near) * area)
    shares, at = np.array(TOWNS).T
    inside = np.interp(draws.at(1).uniform(near), shares, at)
    unit = draws.at(2).uniform(far - near + outer)
    low = np.repeat([RANGES[1], RANGES[0]], [far - near, outer])
    high = np.repeat([RANGES[0], BEYOND], [far - near, outer])
    away = np.concatenate([inside, np.sqrt(low**2 + unit * (high**2 - low**2))])
    turn = 2 * math.pi * draws.at(3).uniform(len(away))
    lat, lon = _moved(away, turn)
    return places([f"h{k}" for k in range(len(away))], lat, lon, parents={"cell": grid(lat, lon)})


def grid(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """A public cell of each place, a quarter of a degree wide (about 17 by 12 miles), text."""
    row, column = (np.floor(4 * v).astype(int) for v in (lat, lon))
    return np.asarray(np.char.add(np.char.add(row.astype(str), ":"), column.astype(str)))


def _moved(away: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude at so many miles from the center in a direction (on the sphere)."""
    from gibbous.structure.regions import EARTH

    one, angle = math.radians(CENTER[0]), away / EARTH
    sine = math.sin(one) * np.cos(angle) + math.cos(one) * np.sin(angle) * np.cos(turn)
    east = np.sin(turn) * np.sin(angle) * math.cos(one)
    more = np.arctan2(east, np.cos(angle) - math.sin(one) * sine)
    return np.degrees(np.arcsin(sine)), CENTER[1] + np.degrees(more)


def _chosen(
    homes: Places, works: Places, groups: np.ndarray, wish: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """The candidate whose distance comes next to what was wished, one of the 16 around it."""
    out = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        far = miles(works.lat[group], works.lon[group], homes.lat, homes.lon)
        order = np.argsort(far)
        on = groups == group
        at = np.searchsorted(far[order], wish[on]) + np.floor(unit[on] * 16).astype(int) - 8
        out[on] = order[np.clip(at, 0, len(order) - 1)]
    return out


def _beside(data: Path) -> Path:
    stem = data.name.split(".")[0]
    starts = [stem]
    while "_" in stem:
        stem = stem.rsplit("_", 1)[0]
        starts.append(stem)
    for start in starts:
        for kind in ("cells", "places"):
            for end in (".parquet", ".csv"):
                file = data.with_name(f"{start}_{kind}{end}")
                if file.exists() and file != data:
                    return file
    raise UsageError(
        "NOCOORDINATES",
        f"There is no table of coordinates beside {data.name!r}.",
        "Its name is that of the flows, or the beginning of it, with _cells or _places: id, lat, lon.",
        "Put one there.",
    )
