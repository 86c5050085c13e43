"""Building blocks: exact draws from the perturbed conditionals of confidential counts.

A key that no record has is drawn from exactly as a key whose counts are all zero: which keys occur
cannot be told from the law of a draw.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from gibbous.core.context import Radix, located, radix_digits
from gibbous.core.protocols import Words64
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.sampling.exact_draws import accumulate, draw_levels

Empty = Literal["uniform", "nearest"]
_READY = 1 << 20  # cells up to which all running sums are computed once
CHUNK = 1 << 22  # cells of one batch of draws


class Perturbation(Protocol):
    """Counts to weights: exact integers (uint64) or probabilities (float64)."""

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Weights of each level of each key; counts int64 (keys, levels) are secret."""
        ...


class Block:
    """One context's perturbed conditionals. Holds secret counts: never printed or pickled.

    Args:
        perturb: applied to each key's counts.
        empty: "uniform" perturbs a key without records as zeros; "nearest" takes one of the nearest
            keys that have records (Hamming distance of parents), each as likely, which no
            differentially private claim allows.
    """

    __slots__ = ("_empty", "_occupied", "_perturb", "_ready", "_values", "context")

    def __init__(self, counts: Counts, perturb: Perturbation, empty: Empty = "uniform") -> None:
        self.context = counts.context
        self._perturb, self._empty = perturb, empty
        cells = counts.cells
        if isinstance(cells, Dense):
            self._values: np.ndarray | Sparse = cells.values
            self._occupied = None
            keys = len(cells.values)
        else:
            self._values = cells
            self._occupied = np.unique(cells.keys)
            keys = len(self._occupied)
        self._ready: np.ndarray | None = None
        if (keys + 1) * self.context.levels <= _READY and empty == "uniform":
            self._ready = self._all_sums()

    def __repr__(self) -> str:
        return "<Block, secret>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("counts of confidential records are never pickled")

    def draw(
        self,
        keys: np.ndarray,
        words: Words64,
        *,
        allowed: np.ndarray | None = None,
        visited: np.ndarray | None = None,
        shared: bool = True,
    ) -> np.ndarray:
        """One level for each key; `CHUNK` bounds keys x levels.

        Args:
            allowed: bool (draws, levels): structural zeros; each draw has at least one.
            shared: whether possible levels share the virtual records of the others.
            visited: bool (draws,): keys that were reset, whose counts are read as zero.
        Returns:
            int64 (draws,).
        """
        if self.context.levels == 1:
            return np.zeros(len(keys), dtype=np.int64)
        if self._empty == "nearest":
            keys = self._nearest(keys, words)
        sums, slots = self._sums(keys)
        if visited is not None and visited.any():
            slots = np.where(visited, len(sums) - 1, slots)
        if allowed is not None:
            own = self._masked(np.diff(sums[slots], axis=1, prepend=np.uint64(0)), allowed, shared)
            sums, slots = np.cumsum(own, axis=1, dtype=np.uint64), np.arange(len(keys))
        return draw_levels(sums, slots, words)

    def _masked(self, weights: np.ndarray, allowed: np.ndarray, shared: bool = True) -> np.ndarray:
        """Weights of the possible levels."""
        held = allowed.sum(axis=1, keepdims=True, dtype=np.uint64)
        prior = np.asarray(getattr(self._perturb, "prior", 0) if shared else 0, dtype=np.uint64)
        lost = (~allowed * prior).sum(axis=1, keepdims=True, dtype=np.uint64)
        share = (lost + held - np.uint64(1)) // held
        own: np.ndarray = (weights + share) * allowed.astype(np.uint64)
        stuck = ~own.any(axis=1)
        own[stuck] = allowed[stuck]
        return own

    def _sums(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Running sums and the slot of each key; the last slot is a key without records."""
        if self._ready is not None:
            if self._occupied is None:
                return self._ready, keys.astype(np.int64)
            return self._ready, self._slot(keys, len(self._occupied))
        unique, slots = np.unique(keys, return_inverse=True)
        zeros = np.zeros((1, self.context.levels), dtype=np.int64)
        counts = np.vstack([self._counts(unique), zeros])
        return accumulate(self._perturb.weights(counts)), slots.reshape(-1).astype(np.int64)

    def _all_sums(self) -> np.ndarray:
        values = self._values if self._occupied is None else self._counts(self._occupied)
        assert isinstance(values, np.ndarray)
        zeros = np.zeros((1, self.context.levels), dtype=np.int64)
        return accumulate(self._perturb.weights(np.vstack([values, zeros])))

    def _slot(self, keys: np.ndarray, absent: int) -> np.ndarray:
        assert self._occupied is not None
        at, hit = located(self._occupied, keys)
        return np.where(hit, at, absent).astype(np.int64)

    def _counts(self, keys: np.ndarray) -> np.ndarray:
        """Counts of sorted unique keys, int64 (keys, levels); zeros where there is no record."""
        if isinstance(self._values, np.ndarray):
            return self._values[keys.astype(np.int64)].astype(np.int64)
        cells = self._values
        counts = np.zeros((len(keys), self.context.levels), dtype=np.int64)
        first = np.searchsorted(cells.keys, keys, side="left")
        length = np.searchsorted(cells.keys, keys, side="right") - first
        place = np.repeat(np.arange(len(keys)), length)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
        at = np.repeat(first, length) + offset
        counts[place, cells.levels[at].astype(np.int64)] = cells.values[at]
        return counts

    def _nearest(self, keys: np.ndarray, words: Words64) -> np.ndarray:
        """For each key without records one with the fewest other parents among those that have some."""
        if self._occupied is None:
            assert isinstance(self._values, np.ndarray)
            held = np.flatnonzero(self._values.sum(axis=1) > 0).astype(np.uint64)
        else:
            held = self._occupied
        if not len(held) or not isinstance(self.context.key, Radix):
            return keys
        found, missing = keys.copy(), np.flatnonzero(~np.isin(keys, held))
        sizes = self.context.parent_sizes
        wanted, known = (radix_digits(some, sizes) for some in (keys[missing], held))
        step = max(1, CHUNK // len(held))
        for at in range(0, len(missing), step):
            apart = np.zeros((len(missing[at : at + step]), len(held)), dtype=np.int16)
            for one, two in zip(wanted, known, strict=True):
                apart += one[at : at + step, None] != two[None, :]
            near = (apart == apart.min(axis=1, keepdims=True)).cumsum(axis=1, dtype=np.uint64)
            chosen = draw_levels(near, np.arange(len(near)), words)
            found[missing[at : at + step]] = held[chosen]
        return found
