"""Each destination's own domain: origins within reach, and those that shrinking keeps (algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gibbous.core.protocols import Words64
from gibbous.structure.regions import miles
from gibbous.synthesize.exact import uniform_levels
from gibbous.synthesize.flows.scheme import Scheme
from gibbous.synthesize.flows.urn import Prior, Urns, scaled
from gibbous.synthesize.flows.virtual import alpha_for, profile, searches, shrunken_alpha

_BITS = 53  # probabilities to keep are read as multiples of 2^-53, rounded up


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Held:
    """Occupied cells by destination. Secret.

    Attributes:
        cells: origin of each occupied cell, sorted within a destination, int64 (occupied,).
        counts: its records, int64 (occupied,).
        first: first occupied cell of each destination, and the end, int64 (destinations + 1,).
        records: n of each destination: public under the relation, int64 (destinations,).
        origins: cells of the whole domain.
    """

    cells: np.ndarray
    counts: np.ndarray
    first: np.ndarray
    records: np.ndarray
    origins: int

    def __repr__(self) -> str:
        return "<Held, secret>"

    @staticmethod
    def of(
        groups: np.ndarray, cells: np.ndarray, counts: np.ndarray, destinations: int, origins: int
    ) -> Held:
        """From cells in any order; equal cells are added up."""
        order = np.lexsort((cells, groups))
        groups, cells, counts = groups[order], cells[order], counts[order].astype(np.int64)
        new = np.ones(len(cells), dtype=bool)
        new[1:] = (groups[1:] != groups[:-1]) | (cells[1:] != cells[:-1])
        at = np.flatnonzero(new)
        merged = np.add.reduceat(counts, at) if len(at) else counts
        first = np.searchsorted(groups[at], np.arange(destinations + 1))
        sums = np.concatenate([[0], np.cumsum(merged)])
        records = np.diff(sums[first])
        return Held(cells[at], merged, first, records, origins)

    @property
    def sums(self) -> np.ndarray:
        """Running counts of the occupied cells."""
        return np.cumsum(self.counts)

    @property
    def starts(self) -> np.ndarray:
        """Records of all destinations before."""
        found: np.ndarray = np.cumsum(self.records) - self.records
        return found

    def part(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells and counts of one destination."""
        span = slice(int(self.first[group]), int(self.first[group + 1]))
        return self.cells[span], self.counts[span]


def kept_shares(scheme: Scheme, group: int, origins: int) -> tuple[np.ndarray, np.ndarray]:
    """Public domain of one destination: probability to keep each origin, and which are in reach.

    An unknown distance counts as the farthest step, within reach.

    Returns:
        float64 (origins,) and bool (origins,).
    """
    inside = np.ones(origins, dtype=bool)
    share = np.ones(origins)
    far = _distances(scheme, group, origins)
    if scheme.reach > 0:
        inside = ~(far > scheme.reach)
    if scheme.keep:
        from_, shares = np.array(scheme.keep).T
        step = np.searchsorted(from_, np.where(np.isnan(far), np.inf, far), side="right") - 1
        share = shares[step]
    if scheme.earlier is not None:
        share[scheme.earlier.of(group)] = 1.0
    return share, inside


def within_reach(scheme: Scheme, held: Held, words: Words64) -> Held:
    """Records whose origin is outside their destination's domain become public random ones.

    Data are checked for it when they are read; where that was left out, this keeps the guarantee:
    such a record counts as one whose origin was drawn uniformly from the domain.
    """
    groups, cells, counts = [], [], []
    for group in range(len(held.records)):
        mine, number = held.part(group)
        _, inside = kept_shares(scheme, group, held.origins)
        outside = ~inside[mine]
        if outside.any():
            strays = int(number[outside].sum())
            domain = np.flatnonzero(inside) if inside.any() else np.arange(held.origins)
            mine = np.concatenate(
                [mine[~outside], domain[uniform_levels(len(domain), strays, words)]]
            )
            number = np.concatenate([number[~outside], np.ones(strays, dtype=np.int64)])
        groups.append(np.full(len(mine), group))
        cells.append(mine)
        counts.append(number)
    all_groups, all_cells, all_counts = map(np.concatenate, (groups, cells, counts))
    return Held.of(all_groups, all_cells, all_counts, len(held.records), held.origins)


def domain_urns(
    scheme: Scheme, held: Held, people: np.ndarray, words: Words64, factor: float = 1.0
) -> tuple[Urns, Prior]:
    """Urns over each destination's own domain, and their prior."""
    made = list(_domains(scheme, held, people, words, factor))
    kept = [one[0] for one in made]
    weights = [one[1] for one in made]
    ones = np.array([one[2] for one in made], dtype=np.uint64)
    unit = np.array([one[3] for one in made], dtype=np.uint64)
    sums = [np.cumsum(w).astype(np.uint64) for w in weights]
    total = np.array([s[-1] if len(s) else 1 for s in sums], dtype=np.uint64)
    urns = Urns(people, held.records, unit, ones * total, held.cells, held.sums, held.starts)

    def prior(groups: np.ndarray, points: np.ndarray) -> np.ndarray:
        out = np.empty(len(points), dtype=np.int64)
        edges = np.flatnonzero(np.diff(groups)) + 1
        for span in zip([0, *edges], [*edges, len(groups)], strict=True):
            part = slice(*span)
            if part.start < part.stop:
                group = int(groups[part.start])
                place = points[part] // ones[group]
                out[part] = kept[group][np.searchsorted(sums[group], place, side="right")]
        return out

    return urns, prior


def _domains(
    scheme: Scheme, held: Held, people: np.ndarray, words: Words64, factor: float
) -> Iterator[tuple[np.ndarray, np.ndarray, int, int]]:
    """Kept origins, their weights, and (A, D) of each destination."""
    weights = scheme.weights(held.origins)
    alphas = _alphas(scheme, held, people, weights)
    for group in range(len(held.records)):
        n, m = int(held.records[group]), int(people[group])
        if m == 0:
            yield np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), 1, 1
            continue
        domain, share, weight = _public(scheme, group, held.origins, weights)
        alpha = alphas[group]
        kept = np.ones(len(domain), dtype=bool)
        if scheme.keep and math.isfinite(alpha):
            kept = _chosen(share, words)
            kept[np.searchsorted(domain, held.part(group)[0])] = True
            if not kept.any():
                kept[:] = True  # nobody works here and no origin was kept: the whole domain
        found = profile(weight, len(domain))
        # The scale is that of the whole domain, which is public; the kept part never weighs more.
        ones, unit = scaled(alpha * factor, found.least, found.weight, n, m)
        size = np.ones(len(domain), dtype=np.int64) if weight is None else weight
        yield domain[kept], size[kept], ones, unit


def _alphas(
    scheme: Scheme, held: Held, people: np.ndarray, weights: np.ndarray | None
) -> dict[int, float]:
    """Virtual records of every destination with people, smallest destinations first."""

    def find(group: int, start: float | None) -> float:
        n, m = int(held.records[group]), int(people[group])
        domain, share, weight = _public(scheme, group, held.origins, weights)
        if scheme.keep:
            return shrunken_alpha(scheme, share, weight, n, m, start)
        return alpha_for(scheme, profile(weight, len(domain)), n, m, start)

    order = np.argsort(held.records, kind="stable")
    return searches(find, order[people[order] > 0].tolist())


def _public(
    scheme: Scheme, group: int, origins: int, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Domain, probability to keep, and prior weight of one destination's origins."""
    share, inside = kept_shares(scheme, group, origins)
    domain = np.flatnonzero(inside) if inside.any() else np.arange(origins)
    return domain, share[domain], None if weights is None else weights[domain]


def _chosen(share: np.ndarray, words: Words64) -> np.ndarray:
    """Independent choices with at least the given probabilities, bool."""
    limit = np.ceil(share * 2.0**_BITS).astype(np.uint64)
    found: np.ndarray = (words(len(share)) >> np.uint64(64 - _BITS)) < limit
    return found


def _distances(scheme: Scheme, group: int, origins: int) -> np.ndarray:
    here, there = scheme.origins, scheme.destinations
    if here is None or there is None or not here.located or not there.located:
        return np.full(origins, np.nan)
    return miles(there.lat[group], there.lon[group], here.lat, here.lon)
