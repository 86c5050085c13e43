"""What measuring a clique is worth, and the paid picks among cliques.

The worth of a clique is how much nearer to the records measuring it is expected to bring what is known.
Where records are in cells that stand out of the noise, that is their distance beyond the noise, cell by
cell; else their distance, less the error to be expected. Only distances look at records, inside the Curator.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Measure
from gibbous.core.context import Context, mix64
from gibbous.core.protocols import CuratorLike
from gibbous.core.tables import Counts, Dense
from gibbous.privacy.calibrate.scales import steps
from gibbous.structure.cliques import Clique

MOST = float(1 << 40)  # what public expectations of a score add up to at most
MEAN = math.sqrt(2 / math.pi)  # E|z| of a standard normal
PAIR_CARE, TRIPLE_CARE = 0.55, 1.0  # share of a cell's raw noise that is left after smoothing
CLEAR_CELLS = 3.3  # times E|noise|: tables whose records are in such cells, on average, stand out
LARGER_PART = 1 / 8  # of its worth counts of a clique of three or four columns that stands out
OVERLAP = 0.5  # of its worth is left of a candidate once one that shares a pair with it is picked
BATCH = 1 << 18  # cells that are compared at a time
LOOKS = 1 << 19  # candidates that the picks of a round look at, altogether


def expected_errors(
    expected: Sequence[np.ndarray], sigma: float, chains: float, cares: Sequence[float]
) -> np.ndarray:
    """L1 error, in counts, float64 (cliques,), that is expected of each clique once it is measured.

    A cell much larger than the noise is known up to the noise; of a cell much smaller than it
    nothing is learned, and at most twice its count is at stake. Below that lies what no table of
    whole records can do better than: the spread of counts around the model, and of the chains.

    Args:
        expected: counts that the model expects, float64 (cells,) each.
        sigma: noise of one cell, in counts.
        chains: records divided by chains: how much coarser the chains count than the records.
        cares: of each clique, the share of the noise that smoothing leaves.
    """
    errors = np.empty(len(expected))
    for low, high, starts in _batches(expected):
        cells, sizes = np.concatenate(expected[low:high]), [len(one) for one in expected[low:high]]
        noise = np.repeat(cares[low:high], sizes) * np.minimum(MEAN * sigma, 2.0 * cells)
        spread = np.minimum(2.0 * cells, MEAN * np.sqrt(cells * (1.0 + chains)))
        errors[low:high] = np.add.reduceat(np.sqrt(noise * noise + spread * spread), starts)
    return errors


def _batches(tables: Sequence[np.ndarray]) -> Iterator[tuple[int, int, np.ndarray]]:
    """First and last table of each batch, and where its tables start.

    Small tables are worked on many at a time: a call for each would cost more than the sums.
    """
    cells = np.array([one.size for one in tables], dtype=np.int64)
    cuts = np.flatnonzero(np.diff(np.cumsum(cells) // BATCH, prepend=0)).tolist()
    for low, high in itertools.pairwise(sorted({0, *cuts, len(tables)})):
        yield low, high, np.cumsum(cells[low:high]) - cells[low:high]


def _beside(expected: Sequence[np.ndarray]) -> np.ndarray:
    """How many records the cell of a record holds on average, float64 (tables,)."""
    found = np.empty(len(expected))
    for low, high, starts in _batches(expected):
        cells = np.concatenate(expected[low:high])
        squares, sums = (np.add.reduceat(one, starts) for one in (cells * cells, cells))
        found[low:high] = squares / np.maximum(sums, 1e-9)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What may be picked in one round, and what is public about it.

    Attributes:
        cliques: candidates.
        contexts: their tables.
        expected: counts that the model expects, float64 (cells,) each.
        errors: `expected_errors` of each, in counts.
        weights: what each counts for, float64 (cliques,), > 0.
        noise: standard deviation in counts of a cell of each once it is measured, float64 (cliques,).
        spread: variance of a count of the records around an expected one, over the latter, (cliques,).
    """

    cliques: tuple[Clique, ...]
    contexts: tuple[Context, ...]
    expected: tuple[np.ndarray, ...]
    errors: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    spread: np.ndarray


def care_of(clique: Clique) -> float:
    """Share of the raw noise that lowers the score of a clique."""
    return PAIR_CARE if len(clique) <= 2 else TRIPLE_CARE


def pick(
    curator: CuratorLike,
    candidates: Candidates,
    picks: int,
    *,
    epsilon: Fraction,
    accounting: Measure = "zcdp",
    turn: int = 0,
) -> tuple[int, ...]:
    """Spend: pick candidates one after the other, each charged.

    Where picks x candidates are more than LOOKS, each pick looks at one part of the candidates: else
    time would grow as the third power of the columns. The parts are drawn anew each turn.

    Args:
        picks: how many; fewer candidates give fewer picks, which is public.
        epsilon: of one pick.
        accounting: see `Curator.choose`.
        turn: number of the round: public, as is which part a candidate falls into.
    Returns:
        Indices of the candidates, distinct.
    Guarantee:
        Each pick is of range epsilon, hence epsilon^2/8-zCDP: a score, see `_Part`, changes by
        at most 1 when one row is added or removed, 2 when one is replaced; later picks see it through a
        public map of slope at most 1. The score is that times the candidate's public weight, and its
        sensitivity is that times the largest weight looked at. docs/proofs/adaptive_gibbs.md.
    """
    chosen: list[int] = []
    held, kept = _held(candidates.cliques), np.ones(len(candidates.cliques))
    sizes = np.array([len(clique) for clique in candidates.cliques])
    parts = parts_of(len(candidates.cliques), picks, turn)
    looked = [
        _Part.of(candidates, np.flatnonzero(parts == k)) for k in range(parts.max(initial=0) + 1)
    ]
    for number in range(picks):
        part = looked[number % len(looked)]
        left = np.flatnonzero(kept[part.members] > 0)
        if not len(left):
            continue
        own, weights = kept[part.members[left]], candidates.weights[part.members[left]]
        picked = curator.choose(
            part.contexts,
            part,
            sensitivity=most_moved(weights) * steps(curator.relation),
            epsilon=epsilon,
            accounting=accounting,
            among=functools.partial(lowered, left=left, kept=own, weights=weights),
        )
        chosen.append(int(part.members[left[picked]]))
        kept = _kept(held, sizes, kept, candidates.cliques[chosen[-1]])
    return tuple(chosen)


def most_moved(weights: np.ndarray) -> Fraction:
    """How far one row, added or removed, moves any score: the largest weight, exactly."""
    return Fraction(float(weights.max()))


def parts_of(candidates: int, picks: int, turn: int) -> np.ndarray:
    """Which part each candidate falls into, int64 (candidates,); all into one where looks are few."""
    parts = min(picks, -(-candidates * picks // LOOKS))
    words = mix64(np.arange(candidates, dtype=np.uint64) + np.uint64(turn << 32))
    part: np.ndarray = (words % np.uint64(max(1, parts))).astype(np.int64)
    return part


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Part:
    """Candidates that one pick looks at, and their score: public fields, secret counts as argument.

    The score is part * sum over cells of max(0, |n - m| - s) - error, with s^2 = noise^2 + spread * m: what
    measuring a cell would not tell.

    Attributes:
        members: their numbers, int64 (candidates,).
        contexts: their tables.
        expected: m: counts that the model expects, rounded as `whole` says.
        noise: E|noise| of a cell, float64 (candidates,), and
        spread: over m, both 0 for tables whose records are not in cells that stand out.
        parts: float64 (candidates,), > 0, <= 1.
        errors: expected of each once it is measured, in counts; 0 for tables with noise and spread.
    """

    members: np.ndarray
    contexts: Sequence[Context]
    expected: Sequence[np.ndarray]
    noise: np.ndarray
    spread: np.ndarray
    parts: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, all_: Candidates, members: np.ndarray) -> _Part:
        own = members.tolist()
        contexts, expected = ([one[at] for at in own] for one in (all_.contexts, all_.expected))
        noise = MEAN * all_.noise[members]
        clear = _beside(expected) > CLEAR_CELLS * noise
        many = np.array([len(all_.cliques[at]) > 2 for at in own], dtype=bool)
        return cls(
            members,
            contexts,
            [whole(one) for one in expected],
            np.where(clear, noise, 0.0),
            np.where(clear, all_.spread[members], 0.0),
            np.where(clear & many, LARGER_PART, 1.0),
            np.where(clear, 0.0, all_.errors[members]),
        )

    def __call__(self, counts: Sequence[Counts]) -> np.ndarray:
        worth: np.ndarray = (
            self.parts * gaps(counts, self.expected, self.noise, self.spread) - self.errors
        )
        return worth


def lowered(
    scores: np.ndarray, *, left: np.ndarray, kept: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Scores of the candidates that are left, by public maps of slope at most their weight."""
    own = scores[left]
    found: np.ndarray = weights * np.minimum(own, kept * own)
    return found


def gaps(
    counts: Sequence[Counts],
    expected: Sequence[np.ndarray],
    noise: np.ndarray | None = None,
    spread: np.ndarray | None = None,
) -> np.ndarray:
    """L1 distance of each secret table from what the model expects, float64 (tables,).

    With noise and spread only what of each cell is beyond them; see `_Part`. Exact where `whole` rounded the
    expectations.
    """
    distances = np.empty(len(expected))
    for low, high, starts in _batches(expected):
        values = []
        for one in counts[low:high]:
            assert isinstance(one.cells, Dense)
            values.append(one.cells.values.ravel())
        cells = np.concatenate(expected[low:high])
        far = np.abs(np.concatenate(values) - cells)
        if noise is not None and spread is not None:
            sizes = [one.size for one in expected[low:high]]
            variance = np.repeat(np.square(noise[low:high]), sizes)
            far -= _fine(np.sqrt(variance + np.repeat(spread[low:high], sizes) * cells))
            np.maximum(far, 0.0, out=far)
        distances[low:high] = np.add.reduceat(far, starts)
    return distances


def whole(public: np.ndarray) -> np.ndarray:
    """Public numbers of a score in multiples of 2^-11, together at most 2^40 (in absolute value).

    Differences to whole counts of up to 2^40 records, and sums of these in any order, are then exact in
    float64: all of them are multiples of 2^-11 below 2^42. docs/proofs/noise.md, float error.
    """
    total = float(np.abs(public).sum())
    held = public * (MOST / total) if total > MOST else public
    return _fine(held)


def _fine(numbers: np.ndarray) -> np.ndarray:
    """Public numbers in multiples of 2^-11."""
    rounded: np.ndarray = np.rint(numbers * 2048.0) / 2048.0
    return rounded


def dense(secret: Counts) -> np.ndarray:
    """Secret counts as float64 (keys, levels), whatever way they are kept."""
    context = secret.context
    if isinstance(secret.cells, Dense):
        return secret.cells.values.astype(np.float64)
    table = np.zeros((context.keys, context.levels))
    table[secret.cells.keys.astype(np.int64), secret.cells.levels.astype(np.int64)] = (
        secret.cells.values
    )
    return table


def _held(cliques: Sequence[Clique]) -> np.ndarray:
    """Which columns each clique holds, int8 (columns, cliques)."""
    columns = 1 + max((clique[-1] for clique in cliques), default=0)
    owner = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    held = np.zeros((columns, len(cliques)), dtype=np.int8)
    held[[column for clique in cliques for column in clique], owner] = 1
    return held


def _kept(held: np.ndarray, sizes: np.ndarray, kept: np.ndarray, picked: Clique) -> np.ndarray:
    """What each candidate keeps, float64 (cliques,), of its worth after one more pick: 0 where it is out."""
    shared = held[list(picked)].sum(axis=0)
    lowered: np.ndarray = np.where(shared >= 2, OVERLAP * kept, kept)
    lowered[shared == sizes] = 0.0
    return lowered
