"""A Polya urn for every destination: exact Dirichlet-multinomial people in integers, no dense table.

Person s of a destination is a copy of one of the s people before it, or of one of the n records, or
a virtual record, in proportion to s, n and |a|. The counts of all people then follow the
Dirichlet-multinomial law with weights n + a (theorem 4.1's law), whatever the number of origins:
origins that nobody touches are never listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gibbous.core.machine import usable_cores
from gibbous.core.protocols import Words64
from gibbous.sampling.exact_draws import bounded

CHUNK = 1 << 19  # people that one thread draws, and the rest of the last destination
SLICE = 1 << 20  # of them at once
ROOM = 1 << 62

Prior = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""prior(destinations, points) -> cells: the cell of each point below the destination's prior mass."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Urns:
    """One urn a destination. Secret: holds exact counts.

    Attributes:
        people: m to draw, int64 (destinations,).
        records: n held, int64 (destinations,).
        unit: weight of one record and of one drawn person, uint64 (destinations,); 0 for a prior
            that outweighs all records.
        mass: weight of all virtual records, uint64 (destinations,); > 0.
        cells: cell of each occupied cell, destination after destination, int64 (occupied,).
        sums: running counts of those cells, int64 (occupied,).
        starts: records of all destinations before, int64 (destinations,).
    """

    people: np.ndarray
    records: np.ndarray
    unit: np.ndarray
    mass: np.ndarray
    cells: np.ndarray
    sums: np.ndarray
    starts: np.ndarray

    def __repr__(self) -> str:
        return "<Urns, secret>"


def draw_people(urns: Urns, prior: Prior, words: Words64, out: np.ndarray) -> None:
    """Cells of all people, destination after destination; the law is exact, nothing is rounded.

    Args:
        urns: secret.
        prior: public.
        words: cryptographic 64-bit words.
        out: where they go, integers that hold every cell (people,).
    """
    ends = np.concatenate([[0], np.cumsum(urns.people)])

    def fill(part: slice) -> None:
        mine = out[ends[part.start] : ends[part.stop]]
        for start in range(0, len(mine), SLICE):
            _draw(urns, part, start, mine[: start + SLICE], prior, words)

    parts = _parts(urns.people)
    if len(parts) == 1:
        fill(parts[0])
        return
    with ThreadPoolExecutor(usable_cores()) as pool:
        for _ in pool.map(fill, parts):
            pass


def scaled(alpha: float, least: int, total: int, records: int, people: int) -> tuple[int, int]:
    """(A, D): one unit of prior weight is A / D virtual records, rounded up; D a power of two, or 0.

    Args:
        alpha: virtual records of a cell with the least prior weight.
        least, total: least prior weight of a cell, and that of all cells together.
        records, people: n and m of the destination.
    """
    for shift in range(30, -1, -1):
        unit = 1 << shift
        ones = -(-alpha * unit // least) if alpha < ROOM else float(ROOM)
        if int(ones) * total + (records + people) * unit < ROOM:
            return max(int(ones), 1), unit
    return 1, 0


def _draw(
    urns: Urns, part: slice, start: int, out: np.ndarray, prior: Prior, words: Words64
) -> None:
    """Draw the people of a run of destinations from `start` on; those before stand in `out`."""
    ends = np.cumsum(urns.people[part])
    begin = ends - urns.people[part]
    people = np.clip(ends, start, len(out)) - np.clip(begin, start, len(out))
    group = np.repeat(np.arange(part.start, part.stop), people)
    first = np.repeat(begin, people)
    own = np.arange(start, len(out))
    unit = urns.unit[group]
    before = (own - first).astype(np.uint64) * unit
    held = urns.records[group].astype(np.uint64) * unit
    points = bounded(before + held + urns.mass[group], words)
    copied = points < before
    real = ~copied & (points < before + held)
    fresh = ~copied & ~real
    cells = np.empty(len(group), dtype=np.int64)
    record = ((points[real] - before[real]) // unit[real]).astype(np.int64)
    place = np.searchsorted(urns.sums, urns.starts[group[real]] + record, side="right")
    cells[real] = urns.cells[place]
    cells[fresh] = prior(group[fresh], points[fresh] - before[fresh] - held[fresh])
    source = own
    source[copied] = first[copied] + (points[copied] // unit[copied]).astype(np.int64)
    done = source < start  # a copy of one whose cell is known
    cells[done] = out[source[done]]
    source = np.where(done, np.arange(len(own)), source - start)
    out[start:] = cells[_roots(source)]


def _roots(source: np.ndarray) -> np.ndarray:
    """Follow copies of copies to the person that was drawn first."""
    while True:
        further = source[source]
        if np.array_equal(further, source):
            return source
        source = further


def _parts(people: np.ndarray) -> Sequence[slice]:
    """Runs of destinations with about CHUNK people each."""
    sums = np.cumsum(people)
    total = int(sums[-1]) if len(sums) else 0
    cuts = np.searchsorted(sums, np.arange(CHUNK, total, CHUNK), side="left") + 1
    edges = np.unique(np.concatenate([[0], np.minimum(cuts, len(people)), [len(people)]]))
    return [slice(int(a), int(b)) for a, b in zip(edges, edges[1:], strict=False)] or [slice(0, 0)]
