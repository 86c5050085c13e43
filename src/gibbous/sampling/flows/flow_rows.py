"""FlowRows: the paid draw of onthemap; secret counts by destination in, people with origins out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.claim import Claim, Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context, strides
from gibbous.core.errors import ResourceLimit
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.privacy.calibrate.probabilistic import is_good, may_disclose
from gibbous.sampling.flows.domain import (
    Held,
    in_squares,
    local_people,
    out_of_squares,
    places_of,
    within_reach,
)
from gibbous.sampling.flows.polya_urns import Prior, Urns, draw_people, scaled
from gibbous.sampling.flows.scheme import GRAIN, Scheme, alpha_for, profile

MOST_CELLS = 1 << 40
SLICE = 1 << 20  # people whose codes are made at once

ALPHA_FACTOR = 1.0
"""A constant of the method; a saboteur lowers it to show that the tests notice."""


@dataclass(frozen=True, slots=True)
class FlowRows:
    """As many people for each destination as it has records, from its multinomial-Dirichlet urn.

    Guarantee:
        (epsilon, delta)-probabilistic DP of each set, replace one record within its destination:
        destination totals are public and part of the relation. Proven: docs/proofs/onthemap.md.
    Source:
        [onthemap, alg. 1 and 2].

    Attributes:
        scheme: the promise of one destination, and the public prior.
        claim: of one set.
        rows: people of one set, shared out by destination totals; None for as many as records.
        sets: independent sets; each costs.
    """

    scheme: Scheme
    claim: Claim
    rows: int | None = None
    sets: int = 1

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all sets together; the virtual records are chosen to keep it.

        Raises:
            ResourceLimit: more origins than 2^40.
        """
        if any(c.levels > MOST_CELLS for c in contexts):
            raise ResourceLimit(
                "ORIGINS",
                "The columns beside the destination have more than 2^40 combinations.",
                "Weights of one destination are counted in 62 bits.",
                "Use fewer or coarser columns.",
            )
        return self.claim.times(self.sets)

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the people of all sets.

        Args:
            counts: one context: origins, by destination where there is one; secret.
            schema: public.
            rows: not used: people follow from destination totals.
            words: cryptographic 64-bit words.
        """
        context = counts[0].context
        held = self._held(counts[0])
        people = shared_out(held.records, self.rows)
        smallest = np.min_scalar_type(held.origins - 1)  # a table may have every job of a country
        cells = np.empty((self.sets, int(people.sum())), dtype=smallest)
        for one in cells:
            self._set(held, people, one, words)
        if self.scheme.coarsen:
            out_of_squares(self.scheme, held.widths, people, cells, words)
        return Codes(schema, self._decoded(context, schema, people, cells.ravel(), words))

    def _held(self, counts: Counts) -> Held:
        """Occupied cells, coarsened to regions, inside their destination's domain."""
        context = counts.context
        cells = counts.occupied()
        found = cells.levels.astype(np.int64)
        count = context.levels
        if self.scheme.regions is not None:
            found = self.scheme.regions.of[found]
            count = len(self.scheme.regions.places)
        held = Held.of(cells.keys.astype(np.int64), found, cells.values, context.keys, count)
        held = within_reach(self.scheme, held) if self.scheme.reach > 0 else held
        return in_squares(self.scheme, held) if self.scheme.coarsen else held

    def _set(self, held: Held, people: np.ndarray, cells: np.ndarray, words: Words64) -> None:
        """Fill in the cells of the people of one set."""
        if self.scheme.local:
            local_people(self.scheme, held, people, words, cells, ALPHA_FACTOR)
            return
        weights = self.scheme.weights(held.origins)
        urns, prior, alpha = plain_urns(self.scheme, held, people, weights)
        draw_people(urns, prior, words, cells)
        if self.scheme.accept == "good":
            ratios = np.ones(held.origins) if weights is None else weights / GRAIN
            _until_good(self.scheme.limit(), held, urns, prior, cells, (alpha, ratios), words)

    def _decoded(
        self,
        context: Context,
        schema: Schema,
        people: np.ndarray,
        cells: np.ndarray,
        words: Words64,
    ) -> np.ndarray:
        """Codes of all columns, a slice of the people at a time."""
        regions, steps = self.scheme.regions, strides(context.target_sizes)
        out = np.zeros((len(schema), len(cells)), dtype=schema.code_dtype())
        for column in context.parents:
            groups = np.repeat(np.arange(len(people), dtype=out.dtype), people)
            out[column].reshape(self.sets, -1)[:] = groups
        for start in range(0, len(cells), SLICE):
            part = slice(start, start + SLICE)
            levels = cells[part].astype(np.int64)
            if regions is not None:
                levels = places_of(regions.of, regions.density, levels, words)
            for column, step, size in zip(
                context.targets, steps, context.target_sizes, strict=True
            ):
                out[column, part] = (levels // step) % size
        return out.T


def shared_out(records: np.ndarray, rows: int | None) -> np.ndarray:
    """People of each destination, int64: its records, or `rows` in proportion to them.

    The largest remainders are rounded up, the first destination first; without any record all
    destinations are alike.
    """
    if rows is None:
        return records
    share = records if records.any() else np.ones_like(records)
    total = int(share.sum())
    exact = [int(v) * rows for v in share.tolist()]
    people = np.array([v // total for v in exact], dtype=np.int64)
    rest = np.array([v % total for v in exact], dtype=np.int64)
    people[np.argsort(-rest, kind="stable")[: rows - int(people.sum())]] += 1
    return people


def plain_urns(
    scheme: Scheme, held: Held, people: np.ndarray, weights: np.ndarray | None
) -> tuple[Urns, Prior, np.ndarray]:
    """Urns over one common domain, their prior, and virtual records of the least cell."""
    found = profile(weights, held.origins)
    least, total = found.least, found.weight
    pairs, group = np.unique(np.stack([held.records, people]), axis=1, return_inverse=True)
    ones, unit, alphas = [], [], []
    start: float | None = None
    for n, m in pairs.T.tolist():
        start = alpha_for(scheme, found, n, m, start if n and m else None)
        made = scaled(start * ALPHA_FACTOR, least, total, n, m)
        ones.append(made[0])
        unit.append(made[1])
        alphas.append(made[0] * least / made[1] if made[1] else np.inf)
        start = start if n and m else None
    group = group.ravel()
    ones_of = np.array(ones, dtype=np.uint64)[group]
    urns = Urns(
        people,
        held.records,
        np.array(unit, dtype=np.uint64)[group],
        ones_of * np.uint64(total),
        held.cells,
        held.sums,
        held.starts,
    )
    sums = None if weights is None else np.cumsum(weights).astype(np.uint64)

    def prior(groups: np.ndarray, points: np.ndarray) -> np.ndarray:
        place = points // ones_of[groups]
        found: np.ndarray = place if sums is None else np.searchsorted(sums, place, side="right")
        return found.astype(np.int64)

    return urns, prior, np.array(alphas)[group]


def _until_good(
    gamma: float,
    held: Held,
    urns: Urns,
    prior: Prior,
    cells: np.ndarray,
    virtual: tuple[np.ndarray, np.ndarray],
    words: Words64,
) -> None:
    """Draw destinations again until gamma-Good, in place.

    Args:
        virtual: virtual records of a least cell of each destination, and a cell's multiple of it.
    """
    ends = np.cumsum(urns.people)
    alpha, ratios = virtual
    for group in np.flatnonzero(urns.people > 0).tolist():
        part = slice(int(ends[group] - urns.people[group]), int(ends[group]))
        mine = held.part(group)
        a = alpha[group] * ratios
        while not _good(cells[part], mine, a, gamma):
            one = np.zeros_like(urns.people)
            one[group] = urns.people[group]
            again = Urns(
                one, urns.records, urns.unit, urns.mass, urns.cells, urns.sums, urns.starts
            )
            draw_people(again, prior, words, cells[part])


def _good(
    drawn: np.ndarray, mine: tuple[np.ndarray, np.ndarray], a: np.ndarray, gamma: float
) -> bool:
    place, counts = np.unique(drawn, return_counts=True)
    spots = np.union1d(place, mine[0])
    synthetic, records = (np.zeros(len(spots), dtype=np.int64) for _ in range(2))
    synthetic[np.searchsorted(spots, place)] = counts
    records[np.searchsorted(spots, mine[0])] = mine[1]
    if not may_disclose(synthetic, records, a[spots], gamma).any():
        return True
    return is_good(synthetic, records, a[spots], gamma)
