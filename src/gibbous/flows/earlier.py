"""How often shrinking keeps an origin, by its distance, as an earlier public table of pairs says it."""

from __future__ import annotations

from typing import Final

import numpy as np

from gibbous.flows.table import Geography
from gibbous.structure.regions import miles

CLASSES: Final = (0.0, 5.0, 10.0, 15.0, 25.0, 40.0, 60.0, 100.0, 200.0, 500.0)
"""Miles at which a probability may change."""
LEAST: Final = 0.1
"""Of a probability: ln(1 / f) is paid of epsilon, here 2.3 nats."""
MOST: Final = 20_000_000  # distances; of more pairs of places every so many-th destination counts


def keep_steps(geography: Geography) -> tuple[tuple[float, float], ...]:
    """(miles, probability) steps for `Onthemap.keep`, from public places and the earlier pairs alone.

    The share of candidate origins of a distance class that were a pair, over that of the class where it
    is largest; nearer classes never less than farther ones, and none less than `LEAST`.

    Guarantee:
        No record is read: any steps keep the promise (docs/proofs/onthemap.md), and these are in the plan.
    Source:
        [onthemap, s5]: a function shaped by the public CTPP.
    """
    pairs, here, there = geography.earlier, geography.origins, geography.destinations
    assert pairs is not None, "placed() asks where there are earlier pairs"
    every = -(-len(here) * len(there) // MOST)
    edges = np.array([*CLASSES, np.inf])
    candidates, known = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
    for at in range(0, len(there), every):
        far = miles(there.lat[at], there.lon[at], here.lat, here.lon)
        candidates += np.histogram(far[np.isfinite(far)], edges)[0]
        mine = far[pairs.origins[pairs.destinations == at]]
        known += np.histogram(mine[np.isfinite(mine)], edges)[0]
    share = known / np.maximum(candidates, 1)
    falling = np.maximum.accumulate(share[::-1])[::-1]
    kept = np.maximum(np.round(falling / (falling[0] or 1.0), 4), LEAST)
    first = np.flatnonzero(np.diff(kept, prepend=np.inf))
    return tuple((CLASSES[k], float(kept[k])) for k in first)
