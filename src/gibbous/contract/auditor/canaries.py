"""Canaries in one run: many records in or out by coins, and an attack that guesses the coins.

The attack reads public outputs alone. It is learnt on one half of the canaries, whose coins it is
told, and judged on the other half. Several runs with fresh coins count as one run on their union.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gibbous.contract.auditor.bounds import energy_of, guess_bound, quick_bounds
from gibbous.contract.auditor.setups import Places, Setup, translated
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.stream import stream_key, words
from gibbous.core.tables import Dense, NoiseInfo, Table, Tables

BINS = 24  # groups of values of one cell
Z = 3.0  # standard errors by which two frequencies must differ to count
CUTS = 16  # thresholds that are tried, each way
SHORTLIST = 4
ABSENT, ZERO = np.nan, np.inf  # a cell that was not released, and one that is exactly 0


@dataclass(frozen=True, slots=True)
class Guesses:
    """What the attack achieved on the canaries that it was not told.

    Attributes:
        correct: guesses that were right.
        lower: epsilon that this refutes, at the claim's delta.
        ceiling: epsilon that as many canaries refute when every guess is right.
        attack: in words.
    """

    canaries: int
    guesses: int
    correct: int
    lower: float
    ceiling: float
    attack: str


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One run: its coins, and what the output shows of each canary.

    Attributes:
        coins: bool (canaries,).
        values: name of a cell's role -> its released count less what others contribute, float64
            (canaries,); NaN: not released; inf: exactly 0.
        by_law: log-likelihood ratio of heads against tails under the stated noise, (canaries,).
        noise: stated law and target columns -> noisy less exact counts of its cells.
    """

    coins: np.ndarray
    values: dict[tuple[Hashable, int], np.ndarray]
    by_law: np.ndarray
    noise: dict[tuple[tuple[int, ...], NoiseInfo], np.ndarray] = field(default_factory=dict)


def coins_of(canaries: int, seed: int, *stream: int) -> np.ndarray:
    """Fair coins, bool (canaries,), from a seed of their own: never the mechanism's randomness."""
    coins: np.ndarray = words(stream_key(seed, 0x636F696E, *stream), 0, canaries) >> np.uint64(
        63
    ) == np.uint64(1)
    return coins


class Reader:
    """Reads outputs of one setup; remembers where canaries fall in contexts that come again."""

    __slots__ = ("_codes", "_known", "setup")

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._known: dict[tuple[Context, bool], Places] = {}
        self._codes = translated(setup, setup.schema)

    def read(self, output: Tables | Codes, coins: np.ndarray) -> Seen:
        """What one output shows of each canary."""
        if isinstance(output, Codes):
            return self._rows(output, coins)
        seen = Seen(coins, {}, np.zeros(len(coins)))
        own = output.schema == self.setup.schema
        codes = self._codes if own else translated(self.setup, output.schema)
        for table in output.published():
            places = self._places(table, codes, own)
            noisy = places.noisy(table)
            self._cells(table, places, noisy, seen)
            if own:
                _note_noise(table, places, noisy, coins, seen)
        return seen

    def _places(self, table: Table, codes: tuple[np.ndarray, ...], own: bool) -> Places:
        name = (table.context, isinstance(table.cells, Dense))
        if not own:
            return Places(self.setup, table, codes)
        if name not in self._known:
            self._known[name] = Places(self.setup, table, codes)
        return self._known[name]

    def _cells(self, table: Table, places: Places, noisy: np.ndarray, seen: Seen) -> None:
        expected = places.expected()
        slot = (table.context.targets, table.noise.law, table.noise.threshold is None)
        for role, numbers, sign in (("in", places.first, 1), ("out", places.second, -1)):
            if numbers is None:
                continue
            shared = 0.0
            if places.first is not None and places.second is not None:
                shared = 0.5 * (places.first == places.second)
            raw = np.where(numbers >= 0, noisy[numbers], np.nan)
            others = expected[numbers] - 0.5 - shared
            _put(seen, (*slot, role), np.where(raw == 0, ZERO, raw - others))
            ratio = _by_law(table.noise, raw - others)
            seen.by_law[:] += sign * np.where(np.isnan(ratio), 0.0, ratio)

    def _rows(self, output: Codes, coins: np.ndarray) -> Seen:
        seen = Seen(coins, {}, np.zeros(len(coins)))
        drawn = output.values.astype(np.int64)
        for role, record, sign in (("in", self.setup.inside, 1), ("out", self.setup.outside, -1)):
            if record is None:
                continue
            same = (drawn[:, None, :] == record[None, :, :]).sum(axis=(0, 2)).astype(float)
            _put(seen, role, same)
            seen.by_law[:] += sign * same
        return seen


def attacked(runs: Sequence[Seen], delta: float, level: float) -> Guesses:
    """Learn an attack on one half of the canaries and judge it on the other."""
    coins = np.concatenate([run.coins for run in runs])
    told = np.concatenate([np.arange(len(run.coins)) % 2 == i % 2 for i, run in enumerate(runs)])
    drawn = all(isinstance(slot, str) for run in runs for slot, _ in run.values)
    plain = "the number of times that it was drawn" if drawn else "the law of the stated noise"
    scores = {
        plain: np.concatenate([run.by_law for run in runs]),
        "frequencies learnt on half of the canaries": _learnt(runs, coins, told),
    }
    best, name, high, low = -1.0, "nothing", 0, 0
    for attack, score in scores.items():
        bound, *counts = _cuts(score[told], coins[told], delta, level, len(runs))
        if bound > best:
            best, name, (high, low) = bound, attack, counts
    score, truth = scores.get(name, coins * 0.0)[~told], coins[~told]
    canaries = len(truth)
    # As many guesses as on the first half. Their number was chosen with the outputs in view: without
    # delta the p-value holds for each output by itself; with it, twice the level pays (audits.md).
    share = level / 2 if delta else level
    high, low = (
        min(count * canaries // max(int(told.sum()), 1), canaries) for count in (high, low)
    )
    order = np.argsort(score, kind="stable")
    correct = int(truth[order[canaries - high :]].sum() + (~truth[order[:low]]).sum())
    guesses = high + low
    lower = guess_bound(canaries, guesses, correct, delta, share, len(runs))
    ceiling = guess_bound(canaries, canaries, canaries, delta, share, len(runs))
    return Guesses(canaries, guesses, correct, lower, ceiling, f"by {name}")


def _note_noise(
    table: Table, places: Places, noisy: np.ndarray, coins: np.ndarray, seen: Seen
) -> None:
    """Noise of cells that a threshold cannot have dropped."""
    exact = places.exact(coins)
    keep = ~np.isnan(noisy)
    if table.noise.threshold is not None:
        keep &= exact > table.noise.threshold + CLEAR * table.noise.scale
    if keep.any():
        name = (table.context.targets, table.noise)
        before = seen.noise.get(name, np.zeros(0))
        seen.noise[name] = np.concatenate([before, (noisy - exact)[keep]])


CLEAR = 12.0  # scales above a threshold from which a cell is practically never dropped


def _put(seen: Seen, name: Hashable, values: np.ndarray) -> None:
    """Two tables of one role: the second gets a name of its own."""
    number = 0
    while (name, number) in seen.values:
        number += 1
    seen.values[name, number] = values


def _by_law(law: NoiseInfo, value: np.ndarray) -> np.ndarray:
    """log P(noise = value - 1) / P(noise = value)."""
    ratio: np.ndarray
    if law.law == "geometric":
        ratio = (np.abs(value) - np.abs(value - 1)) / law.scale
    else:
        ratio = (2 * value - 1) / (2 * law.scale**2)
    return ratio


def _learnt(runs: Sequence[Seen], coins: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Naive Bayes over the cells of a canary, from the canaries whose coins are told."""
    ends = np.cumsum([len(run.coins) for run in runs])
    total = np.zeros(len(coins))
    for name in dict.fromkeys(name for run in runs for name in run.values):
        parts = [
            (slice(end - len(run.coins), end), run.values[name])
            for run, end in zip(runs, ends, strict=True)
            if name in run.values
        ]
        index = np.concatenate([np.arange(s.start, s.stop) for s, _ in parts])
        values = np.concatenate([v for _, v in parts])
        total[index] += _ratios(values, coins[index], told[index])
    return total


def _ratios(values: np.ndarray, coins: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Log ratio of the frequencies of each value's group, among told heads and told tails."""
    plain = values[told & np.isfinite(values)]
    edges = np.zeros(0)
    if len(plain):
        cuts = np.unique(np.quantile(plain, np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))
        edges = cuts + 0.25  # values lie on a grid of halves
    groups = np.searchsorted(edges, np.where(np.isfinite(values), values, 0.0))
    groups = np.where(np.isnan(values), BINS + 1, np.where(np.isinf(values), BINS + 2, groups))
    heads = np.bincount(groups[told & coins], minlength=BINS + 3).astype(float)
    tails = np.bincount(groups[told & ~coins], minlength=BINS + 3).astype(float)
    n_heads, n_tails = max(heads.sum(), 1), max(tails.sum(), 1)
    spread = np.sqrt((heads + tails) / (n_heads + n_tails) * (1 / n_heads + 1 / n_tails))
    clear = np.abs(heads / n_heads - tails / n_tails) > Z * spread
    ratio = np.log((heads + 0.5) / (n_heads + 1)) - np.log((tails + 0.5) / (n_tails + 1))
    return np.asarray(np.where(clear, ratio, 0.0)[groups])


def _cuts(
    score: np.ndarray, coins: np.ndarray, delta: float, level: float, runs: int
) -> tuple[float, int, int]:
    """(bound, heads, tails): guess heads for so many largest scores, tails for so many smallest."""
    values = np.unique(score)
    if len(values) < 2:
        return 0.0, 0, 0
    ends = np.geomspace(0.002, 0.5, CUTS)  # closer together toward the ends
    tried = np.unique(np.quantile(score, np.append(ends, 1 - ends), method="nearest"))
    tried = np.unique(np.concatenate([tried, values[[0, -1]] if len(values) > CUTS else values]))
    up, down = score[:, None] >= tried, score[:, None] <= tried
    heads = np.append(np.stack([up.sum(0), (up & coins[:, None]).sum(0)], 1), [[0, 0]], 0)
    tails = np.append(np.stack([down.sum(0), (down & ~coins[:, None]).sum(0)], 1), [[0, 0]], 0)
    above, below = np.append(tried, np.inf), np.append(tried, -np.inf)
    high, low = (
        g.ravel() for g in np.meshgrid(range(len(above)), range(len(below)), indexing="ij")
    )
    apart = (above[high] > below[low]) & (heads[high, 0] + tails[low, 0] > 0)
    high, low = high[apart], low[apart]
    guesses, correct = (heads[high] + tails[low]).T
    best = (0.0, 0, 0)
    for i in np.argsort(-quick_bounds(guesses, correct, level))[: SHORTLIST if delta else 1]:
        bound = guess_bound(len(score), int(guesses[i]), int(correct[i]), delta, level, runs)
        if bound > best[0]:
            best = (bound, int(heads[high[i], 0]), int(tails[low[i], 0]))
    return best


def pooled_noise(runs: Iterable[Seen]) -> dict[tuple[int, ...], dict[NoiseInfo, tuple[int, float]]]:
    """Cells and energy (see `auditor_bounds`) of all runs, by target columns and stated law."""
    pooled: dict[tuple[int, ...], dict[NoiseInfo, tuple[int, float]]] = {}
    for run in runs:
        for (targets, law), noise in run.noise.items():
            laws = pooled.setdefault(targets, {})
            cells, energy = laws.get(law, (0, 0.0))
            laws[law] = (cells + len(noise), energy + energy_of(law, noise))
    return pooled
