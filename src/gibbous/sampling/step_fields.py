"""Steps of a sampling program as kernels read them: which field of a step's row of numbers means what.

All steps of a program are rows of one int64 matrix; variable parts lie in flat arrays, at offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

(
    TARGET,  # column that is drawn
    LEVELS,  # its number of codes
    KIND,  # of key: 0 mixed radix, 1 hashed, 2 MinHash
    SMALL,  # 1: mixed radix below 2**32
    PARENTS,  # number of parents
    AT_PARENTS,  # first row in `parents`
    WIDTH,  # MinHash values a key
    SHIFT,  # right shift of a hashed sum
    LOOKUP,  # 0: the key is the slot; 1: direct map; 2: open addressing, then probes
    AT_MAP,
    AT_HASH,
    BITS,  # 2**BITS entries from AT_HASH on
    PROBES,
    AT_PROBES,
    AT_RANKS,
    LAST,  # slot of a key that finds nothing
    AT_CELLS,
) = range(17)
FIELDS = 17

KEEP32 = 0xFFFFFFFF  # a packed cell that keeps the previous value
KEEP64 = 0xFFFFFFFFFFFFFFFF
DIRECT = 1 << 22  # key spaces up to this many keys get a direct map


class Flat(NamedTuple):
    """The steps of a program as flat arrays.

    Attributes:
        steps: int64 (steps, FIELDS).
        parents: uint64 (parents, 3): column, mixed-radix weight, offset in the hash weights.
        cells: uint32 or uint64, packed alias tables of all steps.
        weights, maps, probes, probe_steps, ranks, ids, slots: of all steps, at the offsets that
            their fields say.
    """

    steps: np.ndarray
    parents: np.ndarray
    cells: np.ndarray
    weights: np.ndarray
    maps: np.ndarray
    probes: np.ndarray
    probe_steps: np.ndarray
    ranks: np.ndarray
    ids: np.ndarray
    slots: np.ndarray
