"""Fit: a model, its chains and target margins in; the model that meets the targets out.

Each step weighs the chains until their weighted margins meet the targets (raking: iterative
proportional fitting on the sample), adds the logarithms of the weights' factors to theta, draws the
chains again by their weights and lets them run on. That is Newton-like: raking solves the sample's
own maximum-likelihood equations. The chains are a sample, so a step carries its noise; later steps
are taken by a falling share, which averages the noise out.

Source:
    Monte Carlo maximum likelihood [Geyer and Thompson 1992]; raking [Deming and Stephan 1940];
    falling gains [Robbins and Monro 1951].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gibbous.core.stream import stream_key
from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear.chains import (
    EXACT,
    RESAMPLE,
    Chains,
    clique_terms,
    sweep,
    uniforms_at,
)
from gibbous.sampling.loglinear.laws import balanced, draw_law, every_row, law, listable, shares_of
from gibbous.sampling.loglinear.margin_kernels import Raking, rake

DAMP = 10.0  # chains' worth of share that slows a cell down
TINY = 1e-12  # damping of an exact fit
EXACT_PASSES = 4  # raking rounds of an exact fit for one of a fit by chains, at most
SETTLED = 1e-9  # mean |change of theta| in a raking round that ends an exact fit
AGREEING = 4  # passes over all other targets
TIED = 0.7  # squared maximal correlation
LEAST_LEVEL = 1e-3
WIDEST_BLOCK = 2048  # levels of two tied columns together
LEAST_GAIN = 1e-3
LEAST_SHARE = 0.4  # effective share of the chains below which a step is shortened

Blocks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A margin that a model is fitted to. Public.

    Attributes:
        columns: positions, increasing.
        shares: float64, an axis a column; sum 1; may be negative where there is a ridge.
        sigma: standard deviation of one cell's noise, in shares; 0 for exact. It slows down cells
            that the noise swamps.
        ridge: >= 0, in shares: a long fit ends where margin + ridge x theta = shares (theta of the
            clique has mean 0). 0 meets the shares where the targets agree with each other. About
            one sigma stops short of the noise.
            None takes a tenth of sigma for two and more columns, 0 for one.
        slack: float64 of the same shape, in shares: how far a cell may stay from its share. A fit only
            moves cells that are further away, so that noise in which targets contradict each other
            does not drive theta; None: not at all.
    """

    columns: tuple[int, ...]
    shares: np.ndarray
    sigma: float = 0.0
    ridge: float | None = None
    slack: np.ndarray | None = None

    @property
    def pull(self) -> float:
        """The ridge that is used."""
        if self.ridge is not None:
            return self.ridge
        return self.sigma / 10 if len(self.columns) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a fit is run: time against accuracy, never privacy.

    Attributes:
        steps: raking steps.
        sweeps: Gibbs passes after each step.
        passes: raking rounds over all targets within a step.
        gain: share of a step that is taken.
        fall: from this step on the gain falls as 1 / (number of falling steps); None: it does not.
        bound: most that one step changes a cell's theta.
    """

    steps: int = 4
    sweeps: int = 2
    passes: int = 4
    gain: float = 1.0
    fall: int | None = None
    bound: float = 1.5

    def at(self, step: int) -> float:
        """Gain of a step."""
        if self.fall is None or step < self.fall:
            return self.gain
        return self.gain / (step - self.fall + 1)


class Fitted(NamedTuple):
    """A model with every target's columns among its cliques, and chains run on under it."""

    model: LogLinear
    chains: Chains


def fit(
    model: LogLinear,
    chains: Chains,
    targets: Sequence[Target],
    schedule: Schedule = Schedule(),
    *,
    blocks: Blocks | None = None,
    threads: int = 1,
) -> Fitted:
    """Move theta until the chains' margins meet the targets.

    Args:
        model: where to begin; cliques of targets that it lacks are added with theta 0.
        chains: persistent chains, as near to the model as may be.
        targets: distinct cliques; reconciled with each other, or the fit settles between them.
        schedule: how many steps of what.
        blocks: pairs that are redrawn together; None: those that the targets tie closely.
        threads: of the sweeps; never changes a byte.
    """
    model = with_cliques(model, [target.columns for target in targets])
    model = replace(model, blocks=blocks_of(model.sizes, targets) if blocks is None else blocks)
    if listable(model.sizes, model.cliques):
        return Fitted(*_fit_exactly(model, chains, targets, schedule))
    for step in range(schedule.steps):
        even, damp = np.ones(chains.count), DAMP / max(chains.count, 1)
        moved = _Raking(model, chains, targets, schedule, even, damp)
        gain = moved.run(schedule.at(step))
        model = moved.applied(gain)
        chains = sweep(model, moved.resampled(gain), schedule.sweeps, threads=threads)
    return Fitted(model, chains)


def _fit_exactly(
    model: LogLinear, chains: Chains, targets: Sequence[Target], schedule: Schedule
) -> tuple[LogLinear, Chains]:
    """The same for a model whose rows can be listed: rake their probabilities until little moves."""
    state = every_row(model.sizes)
    for _ in range(schedule.steps):
        weights = law(model, chains.rules).ravel() * state.shape[1]
        whole = replace(chains, state=state)
        step = _Raking(model, whole, targets, schedule, weights, damp=TINY)
        moved = step.rake(EXACT_PASSES * schedule.passes)
        model = step.applied(1.0)
        if moved < SETTLED:
            break
    shares = law(model, chains.rules)
    numbers = np.arange(chains.count, dtype=np.uint64)
    points = uniforms_at(numbers, stream_key(chains.seed, EXACT, chains.done))
    fresh = replace(chains, state=draw_law(shares, points, {}), done=chains.done + 1)
    return model, fresh


def gap_of(model: LogLinear, chains: Chains, wanted: Sequence[Target]) -> float:
    """Mean total variation distance of the model from targets of two and more columns; 0 without any."""
    wide = [target for target in wanted if len(target.columns) > 1]
    have = shares_of(model, chains, [target.columns for target in wide])
    gaps = [np.abs(own - target.shares).sum() / 2 for own, target in zip(have, wide, strict=True)]
    return float(np.mean(gaps)) if gaps else 0.0


def agreed(targets: Sequence[Target]) -> Target:
    """The target of all columns, its margins brought to where the others want them, within their slack.

    Its cells are each a little too near to what is expected of them, and pairs in all are far off then.
    """
    whole = max(targets, key=lambda target: target.shares.ndim)
    cells, axes = whole.shares, set(range(whole.shares.ndim))
    for _ in range(AGREEING):
        for part in targets:
            if part is whole:
                continue
            slack = 0.0 if part.slack is None else part.slack
            have = cells.sum(axis=tuple(axes.difference(part.columns)))
            wanted = np.clip(have, part.shares - slack, part.shares + slack)
            shape = [n if j in part.columns else 1 for j, n in enumerate(cells.shape)]
            cells = cells * (wanted / np.maximum(have, TINY)).reshape(shape)
    return replace(whole, shares=cells / cells.sum(), ridge=0.0, slack=None)


def with_cliques(model: LogLinear, cliques: Sequence[tuple[int, ...]]) -> LogLinear:
    """The same distribution with further cliques, theta 0."""
    held = set(model.cliques)
    fresh = [clique for clique in dict.fromkeys(cliques) if clique not in held]
    theta = [np.zeros(tuple(model.sizes[j] for j in clique)) for clique in fresh]
    return replace(model, cliques=(*model.cliques, *fresh), theta=(*model.theta, *theta))


def blocks_of(sizes: Sequence[int], targets: Sequence[Target]) -> Blocks:
    """Pairs of columns so closely tied that redrawing them one by one hardly moves.

    Two columns that are redrawn in turn forget where they were at the rate of their squared
    maximal correlation: the second singular value of p(a, b) / sqrt(p(a) p(b)). Pairs above TIED
    are taken, the closest first, each column once.

    Args:
        sizes: number of codes of each column.
        targets: shares may be noisy.
    Source:
        [Liu, Wong and Kong 1994].
    """
    found = {}
    for columns, shares in ((target.columns, target.shares) for target in targets):
        for a, b in itertools.combinations(range(len(columns)), 2):
            pair = (columns[a], columns[b])
            if pair in found or sizes[pair[0]] * sizes[pair[1]] > WIDEST_BLOCK:
                continue
            others = tuple(k for k in range(len(columns)) if k not in (a, b))
            found[pair] = _tie(np.maximum(shares.sum(axis=others), 0.0))
    blocks: list[tuple[int, int]] = []
    for pair, tie in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        if tie > TIED and not any(set(pair) & set(block) for block in blocks):
            blocks.append(pair)
    return tuple(sorted(blocks))


def _tie(both: np.ndarray) -> float:
    """Squared maximal correlation of two columns; levels below LEAST_LEVEL count for little."""
    p = both / max(float(both.sum()), 1e-300)
    rows = np.sqrt(p.sum(axis=1, keepdims=True) + LEAST_LEVEL)
    columns = np.sqrt(p.sum(axis=0, keepdims=True) + LEAST_LEVEL)
    scaled = p / rows / columns
    # The first singular value is at least (rows' scaled columns) / (|rows| |columns|), so this bounds
    # the second: most tables need no decomposition.
    first = 1.0 / ((1.0 + p.shape[0] * LEAST_LEVEL) * (1.0 + p.shape[1] * LEAST_LEVEL))
    bound = float((scaled * scaled).sum() - first)
    if bound <= TIED:
        return max(bound, 0.0)
    values = np.linalg.svd(scaled, compute_uv=False)
    return float(values[1] ** 2) if len(values) > 1 else 0.0


class _Raking:
    """One step: the chains, their weights, and what is added to theta."""

    def __init__(
        self,
        model: LogLinear,
        chains: Chains,
        targets: Sequence[Target],
        schedule: Schedule,
        weights: np.ndarray,
        damp: float,
    ) -> None:
        self.model, self.chains, self.targets, self.schedule = model, chains, targets, schedule
        self.weights = weights
        goal = _flat([target.shares for target in targets])
        slack = _flat([np.zeros(t.shares.shape) if t.slack is None else t.slack for t in targets])
        cliques, terms, cells = clique_terms(model.sizes, [t.columns for t in targets])
        held = dict(zip(model.cliques, model.theta, strict=True))
        self.raking = Raking(
            cliques,
            terms,
            low=goal - slack,
            high=goal + slack,
            theta=_flat([held[target.columns] for target in targets]),
            change=np.zeros(cells),
            share=np.zeros(cells),
            ratio=np.zeros(cells),
            damp=np.array([damp + target.sigma * (damp > TINY) / 2 for target in targets]),
            ridge=np.array([target.pull for target in targets]),
            places=np.empty(chains.count, dtype=np.uint32),
            moved=np.zeros(1),
        )

    def run(self, gain: float) -> float:
        """Rake; returns the gain that keeps the chains effective."""
        self.rake(self.schedule.passes)
        while gain > LEAST_GAIN and effective(self.weights**gain) < LEAST_SHARE:
            gain /= 2
        return gain

    def rake(self, passes: int) -> float:
        """Weigh the chains toward the targets; returns how far the last pass moved theta, on average."""
        total, bound = float(self.weights.sum()), self.schedule.bound
        raking = self.raking
        for number in range(passes):
            total = rake(self.chains.state, raking, self.weights, total, bound, int(number == 0))
            if raking.moved[0] < SETTLED:
                break
        return float(raking.moved[0])

    def _cut(self, cells: np.ndarray) -> list[np.ndarray]:
        return np.split(cells, self.raking.cliques[1:, 0]) if self.targets else []

    def applied(self, gain: float) -> LogLinear:
        """The model after the step."""
        changes = self._cut(self.raking.change)
        own = {t.columns: change for t, change in zip(self.targets, changes, strict=True)}
        theta = []
        for clique, before in zip(self.model.cliques, self.model.theta, strict=True):
            change = own.get(clique)
            theta.append(before if change is None else before + gain * change.reshape(before.shape))
        return balanced(replace(self.model, theta=tuple(theta)))

    def resampled(self, gain: float) -> Chains:
        """Chains drawn by their weights: each about weight times, with one random offset."""
        key = stream_key(self.chains.seed, RESAMPLE, self.chains.done)
        offset = uniforms_at(np.zeros(1, dtype=np.uint64), key)[0]
        chosen = systematic(self.weights**gain, offset)
        return replace(self.chains, state=np.ascontiguousarray(self.chains.state[:, chosen]))


def _flat(cubes: Sequence[np.ndarray]) -> np.ndarray:
    """The cells of all cubes, float64."""
    return np.concatenate([np.zeros(0), *(np.ravel(cube) for cube in cubes)])


def systematic(weights: np.ndarray, offset: float) -> np.ndarray:
    """As many draws as weights, each about weight times: where offset + 0, 1, ... fall in their running sum.

    Args:
        weights: > 0, float64 (draws,).
        offset: in [0, 1).
    """
    count, sums = len(weights), np.cumsum(weights)
    sums *= count / sums[-1]
    ends = np.ceil(np.minimum(sums, count) - offset).astype(np.int64)  # of points below each sum
    ends[-1] = count
    chosen: np.ndarray = np.repeat(np.arange(count), np.diff(ends, prepend=0))
    return chosen


def effective(weights: np.ndarray) -> float:
    """Effective share of weighted chains: 1 for equal weights."""
    if not len(weights):
        return 1.0
    total = float(weights.sum())
    return total * total / (len(weights) * float((weights * weights).sum()))
