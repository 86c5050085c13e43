"""Coarser origins: any mechanism on regions of a public hierarchy, and places drawn within them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gibbous.core.stream import stream_key, words
from gibbous.flows.table import Flows, Geography, collected
from gibbous.structure.regions import Pairs, regions

_STREAM = 0x706C6163  # "plac": keeps these streams apart from all others


def coarse(geography: Geography, level: str) -> Geography:
    """The same geography with the regions of one level as origins.

    Raises:
        UsageError: the origins have no such level.
    """
    found, pairs = regions(geography.origins, level), geography.earlier
    if pairs is not None:
        mine = collected(pairs.destinations, found.of[pairs.origins])
        pairs = Pairs(mine.destinations, mine.origins)
    return replace(geography, origins=found.places, reach=0.0, level="", earlier=pairs)


def to_regions(flows: Flows, geography: Geography, level: str) -> Flows:
    """Flows from regions in place of origins; as secret as they were."""
    of = regions(geography.origins, level).of
    return collected(flows.destinations, of[flows.origins], flows.counts, secret=flows.secret)


def to_places(flows: Flows, geography: Geography, level: str, *, seed: int) -> Flows:
    """Public flows from regions, each record given a place of its region by public density.

    Args:
        flows: public; origins are regions of `coarse(geography, level)`.
        seed: sampling seed: nothing confidential rests on it.
    Raises:
        TypeError: the flows are confidential.
    """
    if flows.secret:
        raise TypeError("places are drawn for public flows only")
    found = regions(geography.origins, level)
    density = found.density[found.order]
    sums = np.concatenate([[0.0], np.cumsum(density + 1e-9 * density.mean())])
    region = np.repeat(flows.origins, flows.counts)
    share = (words(stream_key(seed, _STREAM), 0, len(region)) >> np.uint64(11)) * 2.0**-53
    low, high = sums[found.starts[region]], sums[found.starts[region + 1]]
    spot = np.searchsorted(sums, low + share * (high - low), side="right") - 1
    spot = np.clip(spot, found.starts[region], found.starts[region + 1] - 1)
    return collected(np.repeat(flows.destinations, flows.counts), found.order[spot])
