"""Each destination's own domain: origins within reach, and those that shrinking keeps (algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gibbous.core.protocols import Words64
from gibbous.sampling.exact_draws import bounded
from gibbous.sampling.flows.polya_urns import Prior, Urns, draw_people, scaled
from gibbous.sampling.flows.reach import Ground
from gibbous.sampling.flows.scheme import Scheme, alpha_for, profile, shrunken_alpha

BATCH = 1 << 22  # origins, and people, of the domains that are held at once
AUTO = {
    "distance": (0.0, 0.25, 0.5, 1.0, 2.0),
    "density": (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0),
}
"""Widths that coarsen = "auto" tries for a destination, the narrowest first."""
FEW = 0.05  # share of virtual people from which on it tries no wider one
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
        widths: of each destination's squares, as shares of the distance; public. Empty: no squares.
    """

    cells: np.ndarray
    counts: np.ndarray
    first: np.ndarray
    records: np.ndarray
    origins: int
    widths: tuple[float, ...] = ()

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
        return np.asarray(np.cumsum(self.records) - self.records)

    def part(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells and counts of one destination."""
        span = slice(int(self.first[group]), int(self.first[group + 1]))
        return self.cells[span], self.counts[span]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Domain:
    """One destination's urn: kept origins and the prior on them. Secret: which are kept depends on records.

    Attributes:
        group: the destination.
        kept: origins, int64 (kept,).
        sums: running prior weights of those, uint64 (kept,); None for equal ones.
        ones: weight of a unit of prior weight, A.
        unit: weight of a record, D; 0 where the prior outweighs all records.
    """

    group: int
    kept: np.ndarray
    sums: np.ndarray | None
    ones: int
    unit: int

    @property
    def mass(self) -> int:
        """Weight of all virtual records."""
        return self.ones * (len(self.kept) if self.sums is None else int(self.sums[-1]))

    def cells(self, points: np.ndarray) -> np.ndarray:
        """The origin of each point below the prior mass, int64."""
        place = points // np.uint64(self.ones)
        if self.sums is None:
            found: np.ndarray = self.kept[place.astype(np.int64)]
        else:
            found = self.kept[np.searchsorted(self.sums, place, side="right")]
        return found


def within_reach(scheme: Scheme, held: Held) -> Held:
    """Records from beyond reach at the nearest origin of their destination's domain.

    A public map of origins, as squares are (theorem 5.1): the promise holds for them, too.
    """
    ground, cells = Ground.of(scheme, held.origins), held.cells.copy()
    groups = np.repeat(np.arange(len(held.records)), np.diff(held.first))
    if ground.covers(groups, cells):
        return held
    for group in np.flatnonzero(held.records).tolist():
        mine = cells[held.first[group] : held.first[group + 1]]
        domain, _ = ground.domain(group)
        outside = ~_among(mine, domain)
        mine[outside] = ground.nearest(mine[outside], domain)
    return Held.of(groups, cells, held.counts, len(held.records), held.origins)


def in_squares(scheme: Scheme, held: Held) -> Held:
    """Records in the squares of their destination: a public map of origins, so theorem 5.1 holds."""
    ground, cells = Ground.of(scheme, held.origins), held.cells.copy()
    widths = [_width(scheme, ground, group, n) for group, n in enumerate(held.records.tolist())]
    for group in np.flatnonzero(held.records).tolist():
        span = slice(int(held.first[group]), int(held.first[group + 1]))
        cells[span] = ground.squares(group, widths[group])[cells[span]]
    groups = np.repeat(np.arange(len(held.records)), np.diff(held.first))
    merged = Held.of(groups, cells, held.counts, len(held.records), held.origins)
    return replace(merged, widths=tuple(widths))


def _width(scheme: Scheme, ground: Ground, group: int, n: int) -> float:
    """How wide a destination's squares are, from public facts: its place and its number of records."""
    if scheme.coarsen != "auto":
        return scheme.coarsen
    for width in AUTO[scheme.by] if n else ():
        cells = len(_domain(scheme, ground, group, width)[0])
        found = profile(None, cells)
        beside = found.effective(alpha_for(scheme, found, n, n), n, n) * cells
        if beside <= FEW * (n + beside):
            return width
    return AUTO[scheme.by][-1]


def out_of_squares(
    scheme: Scheme, widths: Sequence[float], people: np.ndarray, squares: np.ndarray, words: Words64
) -> None:
    """A place of each square by public density, in place: post-processing.

    Args:
        widths: of each destination's squares.
        people: of each destination in one set, int64 (destinations,).
        squares: first origin of the square of each person, destination after destination, integers
            (sets, people).
    """
    assert scheme.origins is not None
    ground, density = Ground.of(scheme, len(scheme.origins)), scheme.origins.weights()
    ends = np.cumsum(people)
    for group in np.flatnonzero(people).tolist():
        mine = squares[:, ends[group] - people[group] : ends[group]]
        of = ground.squares(group, widths[group])
        mine[:] = places_of(of, density, mine.ravel(), words).reshape(mine.shape)


def places_of(
    of: np.ndarray, density: np.ndarray, regions: np.ndarray, words: Words64
) -> np.ndarray:
    """A place of each region, by public density.

    Args:
        of: region of each place, int64 (places,).
        density: of each place, >= 0.
        regions: to find a place for, int64 (people,).
    """
    order = np.argsort(of, kind="stable")
    low, high = (np.searchsorted(of[order], regions, side=side) for side in ("left", "right"))
    weight = np.maximum(np.rint(density / density.mean() * 2**20), 1).astype(np.uint64)
    sums = np.concatenate([[0], np.cumsum(weight[order])]).astype(np.uint64)
    points = sums[low] + bounded(sums[high] - sums[low], words)
    return np.asarray(order[np.searchsorted(sums, points, side="right") - 1])


def virtual_records(scheme: Scheme, origins: int, group: int, n: int) -> float:
    """How many virtual records stand beside the n of a destination, expected where domains shrink.

    Args:
        scheme: public.
        origins: candidate origins of the table.
        group: the destination.
        n: records, and people drawn.
    """
    if not scheme.local:  # every destination has the whole domain, which may be too large to list
        found = profile(scheme.weights(origins), origins)
    else:
        ground = Ground.of(scheme, origins)
        width = _width(scheme, ground, group, n)
        domain, share, weight = _domain(scheme, ground, group, width)
        found = profile(weight, len(domain))
    if scheme.keep:
        kept = float(share.sum() if weight is None else (weight * share).sum() / found.least)
        return shrunken_alpha(scheme, share, weight, n, n) * kept
    return found.effective(alpha_for(scheme, found, n, n), n, n) * found.weight / found.least


def local_people(
    scheme: Scheme,
    held: Held,
    people: np.ndarray,
    words: Words64,
    out: np.ndarray,
    factor: float = 1.0,
) -> None:
    """Cells of all people, each destination's from an urn over its own domain.

    Domains are made and forgotten in batches, so that memory does not grow with destinations.

    Args:
        scheme: public.
        held: secret; within reach.
        people: to draw, int64 (destinations,).
        words: cryptographic 64-bit words.
        out: where the cells go, destination after destination, integers (people,).
        factor: of the virtual records; 1 but for a saboteur.
    """
    ends = np.cumsum(people)
    for batch in _batches(_domains(scheme, held, people, words, factor), people):
        on = np.array([one.group for one in batch])
        number = people[on]
        place = np.arange(int(number.sum())) + np.repeat(ends[on] - np.cumsum(number), number)
        drawn = np.empty(len(place), dtype=out.dtype)
        draw_people(_urns(batch, held, people), _prior(batch), words, drawn)
        out[place] = drawn


def _batches(domains: Iterator[_Domain], people: np.ndarray) -> Iterator[list[_Domain]]:
    """Runs of domains with about BATCH kept origins, or people to draw."""
    batch: list[_Domain] = []
    size = np.zeros(2)
    for one in domains:
        batch.append(one)
        size += len(one.kept), people[one.group]
        if size.max() >= BATCH:
            yield batch
            batch, size = [], np.zeros(2)
    if batch:
        yield batch


def _urns(batch: list[_Domain], held: Held, people: np.ndarray) -> Urns:
    on = np.array([one.group for one in batch])
    unit = np.array([one.unit for one in batch], dtype=np.uint64)
    mass = np.array([one.mass for one in batch], dtype=np.uint64)
    mine = (people[on], held.records[on], unit, mass)
    return Urns(*mine, held.cells, held.sums, held.starts[on])


def _prior(batch: list[_Domain]) -> Prior:
    def prior(groups: np.ndarray, points: np.ndarray) -> np.ndarray:
        out = np.empty(len(points), dtype=np.int64)
        edges = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for low, high in pairwise(edges):
            if low < high:
                out[low:high] = batch[int(groups[low])].cells(points[low:high])
        return out

    return prior


def _domains(
    scheme: Scheme, held: Held, people: np.ndarray, words: Words64, factor: float
) -> Iterator[_Domain]:
    """The domains of destinations with people, smallest first: an alpha is near the one before."""
    ground = Ground.of(scheme, held.origins)
    start: float | None = None
    order = np.argsort(held.records, kind="stable")
    for group in order[people[order] > 0].tolist():
        n, m = int(held.records[group]), int(people[group])
        width = held.widths[group] if held.widths else 0.0
        domain, share, weight = _domain(scheme, ground, group, width)
        found = profile(weight, len(domain))
        if scheme.keep:
            alpha = shrunken_alpha(scheme, share, weight, n, m, start)
        else:
            alpha = alpha_for(scheme, found, n, m, start)
        start = alpha if math.isfinite(alpha) else None
        if scheme.keep and math.isfinite(alpha):
            kept = _chosen(share, words)
            kept[np.searchsorted(domain, held.part(group)[0])] = True
            if kept.any():  # else nobody works here and no origin was kept: the whole domain
                domain, weight = domain[kept], None if weight is None else weight[kept]
        # The scale is that of the whole domain, which is public; the kept part never weighs more.
        ones, unit = scaled(alpha * factor, found.least, found.weight, n, m)
        sums = None if weight is None else np.cumsum(weight).astype(np.uint64)
        yield _Domain(group, domain, sums, ones, unit)


def _domain(
    scheme: Scheme, ground: Ground, group: int, width: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Origins of a destination's domain, how likely each is kept, and prior weights."""
    domain, share = ground.domain(group)
    if width:
        domain = np.unique(ground.squares(group, width)[domain])
        return domain, np.ones(len(domain)), None
    weights = scheme.weights(ground.cells)
    return domain, share, None if weights is None else weights[domain]


def _chosen(share: np.ndarray, words: Words64) -> np.ndarray:
    """Independent choices with at least the given probabilities, bool."""
    limit = np.ceil(share * 2.0**_BITS).astype(np.uint64)
    return np.asarray((words(len(share)) >> np.uint64(64 - _BITS)) < limit)


def _among(cells: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Which cells a sorted domain has, bool."""
    at = np.minimum(np.searchsorted(domain, cells), len(domain) - 1)
    return np.asarray(domain[at] == cells)
