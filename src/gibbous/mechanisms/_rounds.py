"""The rounds of adaptive_gibbs: one more purchase, and the model fitted to all that is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gibbous.core.cores import usable_cores
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Goal, LogLinear
from gibbous.mechanisms._adaptive_known import CHAINS, Known, bought, model_sizes, most_chains
from gibbous.structure.cliques import (
    Candidates,
    Clique,
    Limits,
    care_of,
    context_of,
    expected_errors,
    pairs,
    pick,
    triples,
)
from gibbous.structure.components import centered
from gibbous.structure.reconcile import rake
from gibbous.structure.smoothing import denoised
from gibbous.synthesize.loglinear import (
    Schedule,
    Target,
    fit,
    margins,
    sweep,
)
from gibbous.synthesize.loglinear.laws import law, listable

ROUND = 2 * (Schedule(steps=2, sweeps=2, passes=1, gain=0.5),)
LAST = tuple(
    Schedule(steps=3, sweeps=2, passes=1, gain=gain)
    for gain in (0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.07, 0.05)
)
CROWDED = (
    3.0  # cliques a column from which on steps are shortened: each adds its own sampling noise
)
EXACT = Schedule(steps=4, passes=4)  # of a model whose rows can be listed: ends when settled
HOLD, UNSURE = 0.04, 3.0  # see `held_back`
APART = 4  # sweeps after which copies of a chain have gone their own ways
SAMPLED = 0.1  # of a cell's noise, in variance, that the chains of the last fit may add
AGAIN = 4  # steps of the last fit after which tables are compared with the model anew
BETWEEN = 0.02  # of the independent table in a reference: between chains nothing was seen
DAMPED = 0.06  # of a cell's noise: below it, a fit takes smaller steps
RAKES = 4
AVERAGED = 12  # times that the chains are counted for the margins of the rows
GOAL_CELLS = 4_000_000  # most cells of all margins that rows are closed to
GOAL_PAIRS = 2_016  # all pairs of 64 columns: of wider tables only measured ones are closed to
WEIGHT_ONE_WAY = 3.0
CLOSED = 65_536  # most rows that are closed to their margins together


def threads() -> int:
    """Threads of the sweeps; they never change a byte."""
    return min(4, usable_cores())


def whole(schema: Schema, limits: Limits) -> bool:
    """Whether the table of all columns is no larger than those of all pairs together."""
    sizes = model_sizes(schema, limits)
    both = sum(sizes[a] * sizes[b] for a, b in pairs(sizes, limits))
    return math.prod(sizes) <= min(both, limits.cells)


def cross_table(known: Known) -> Candidates:
    """The table of all columns with more than one level, as the only candidate."""
    sizes = known.sizes
    clique = tuple(j for j, size in enumerate(sizes) if size > 1)
    expected = known.rows * _outer([known.shares[j] for j in clique]).ravel()
    return Candidates((clique,), (context_of(sizes, clique),), (expected,), np.zeros(1))


def candidates(known: Known, sigma: float, limits: Limits) -> Candidates:
    """What may be measured next, and what the model expects there."""
    assert known.chains is not None
    sizes = known.sizes
    cliques = pairs(sizes, limits) + triples(sizes, known.references, limits)
    scale = known.rows / known.chains.count
    found = margins(known.chains, sizes, cliques) if cliques else ()
    expected = tuple(counts.ravel() * scale for counts in found)
    errors = expected_errors(expected, sigma, scale, [care_of(clique) for clique in cliques])
    return Candidates(cliques, tuple(context_of(sizes, c) for c in cliques), expected, errors)


def measured(
    known: Known, curator: CuratorLike, found: Candidates, picked: Sequence[int], noise: Noise
) -> Known:
    """Spend: release the picked cliques once."""
    tables = curator.noisy_counts([found.contexts[at] for at in picked], noise)
    references = dict(known.references)
    for at in picked:
        clique = found.cliques[at]
        if clique not in references:
            independent_ = known.rows * _outer([known.shares[j] for j in clique])
            seen = found.expected[at].reshape(independent_.shape)
            references[clique] = ((1 - BETWEEN) * seen + BETWEEN * independent_, independent_)
    return bought(replace(known, references=references), tables)


def concluded(known: Known) -> Known:
    """Fitted for the last time, to tables that are compared with all that the model now knows."""
    if listable(known.sizes):
        return fitted(known, LAST)
    known = resized(known)
    for first in range(0, len(LAST), AGAIN):
        known = fitted(seen_again(known), LAST[first : first + AGAIN])
    return known


def resized(known: Known) -> Known:
    """With as many chains as the last fit needs."""
    assert known.model is not None
    assert known.chains is not None
    have, count = known.chains.count, chains_needed(known)
    # Fewer: spread evenly over those there are. More: copies, which then go their own ways.
    kept = np.arange(count) * have // count if count < have else np.arange(count) % have
    chains = replace(known.chains, state=np.ascontiguousarray(known.chains.state[:, kept]))
    if count > have:
        chains = sweep(known.model, chains, APART, threads=threads())
    return replace(known, chains=chains)


def chains_needed(known: Known) -> int:
    """Chains whose sampling adds no more than SAMPLED to the variance of the noise in a cell.

    A cell of a table of c cells expects rows / c records. Counted over the chains it varies by
    rows^2 / (c chains), as bought by sigma^2; the table with the median ratio decides.
    """
    ratios = []
    for clique in known.references:
        counts, sigma = known.components.table(clique)
        ratios.append(known.rows**2 / (counts.size * sigma**2))
    wanted = float(np.median(ratios)) / SAMPLED if ratios else 0.0
    return int(np.clip(wanted, CHAINS[0], most_chains(known.sizes)))


def seen_again(known: Known) -> Known:
    """With a third reference for each clique: what the model says of it by its other cliques.

    That is its margin with the clique's own theta taken out, at the same 1-way shares. Columns that
    say nearly the same lend each other their tables this way.
    """
    assert known.model is not None
    assert known.chains is not None
    cliques = tuple(known.references)
    theta = dict(zip(known.model.cliques, known.model.theta, strict=True))
    references = {}
    counted = margins(known.chains, known.sizes, cliques) if cliques else ()
    for clique, counts in zip(cliques, counted, strict=True):
        own = [known.shares[j] for j in clique]
        apart = _outer(own)
        seen = (1 - BETWEEN) * counts / known.chains.count + BETWEEN * apart
        without = rake(seen * np.exp(-np.clip(theta[clique], -10.0, 10.0)) + 1e-12, own)
        third = known.rows * ((1 - BETWEEN) * without + BETWEEN * apart)
        references[clique] = (*known.references[clique][:2], third)
    return replace(known, references=references)


def fitted(known: Known, schedules: Sequence[Schedule]) -> Known:
    """With the model moved towards all that was bought."""
    assert known.model is not None
    assert known.chains is not None
    model, chains, wanted = known.model, known.chains, targets(known)
    if listable(model.sizes):
        # Without Monte Carlo there is nothing to average: fewer steps, each to the end.
        schedules = (len(schedules) // 2) * (EXACT,)
    crowd = sum(len(clique) for clique in known.references) / len(model.sizes)
    for schedule in schedules:
        gain = schedule.gain * min(1.0, CROWDED / max(crowd, 1.0))
        step = replace(schedule, gain=gain)
        done = fit(model, chains, held_back(model, wanted), step, threads=threads())
        model, chains = done.model, done.chains
    return replace(known, model=model, chains=chains)


def targets(known: Known) -> list[Target]:
    """What the model is fitted to: 1-way shares, and measured cliques without their noise."""
    found = [Target((j,), shares) for j, shares in enumerate(known.shares)]
    for clique, references in known.references.items():
        counts, sigma = known.components.table(clique)
        cells = denoised(counts, sigma, references) * possible(known.seen, clique)
        shares = rake(cells + 1e-12, [known.shares[j] for j in clique])
        found.append(Target(clique, shares, DAMPED * sigma / known.rows))
    return found


def held_back(model: LogLinear, wanted: Sequence[Target]) -> list[Target]:
    """Targets moved a little against what the model already holds: a fit ends at target x exp(-h theta).

    Noise makes targets contradict each other, most of all around columns that say nearly the same.
    Met as they are, no theta satisfies them and it grows without end. Held back by h, which is HOLD
    where the noise swamps a cell and falls with noise / cell, it stays bounded and cells that are
    known well are met.
    """
    theta = dict(zip(model.cliques, model.theta, strict=True))
    ones = {target.columns[0]: target.shares for target in wanted if len(target.columns) == 1}
    found = []
    for target in wanted:
        own = theta.get(target.columns)
        if len(target.columns) > 1 and own is not None:
            unsure = np.minimum(
                1.0, UNSURE * target.sigma / DAMPED / np.maximum(target.shares, 1e-300)
            )
            moved_ = target.shares * np.exp(-HOLD * unsure * centered(own))
            shares = rake(moved_, [ones[j] for j in target.columns], RAKES)
            found.append(replace(target, shares=shares))
        else:
            found.append(target)
    return found


def moved(before: Candidates, picked: Sequence[int], known: Known) -> float:
    """How far the model went on the picked cliques: L1 in counts, over the error expected of them."""
    assert known.chains is not None
    cliques = [before.cliques[at] for at in picked]
    scale = known.rows / known.chains.count
    after = margins(known.chains, known.sizes, cliques)
    distance = sum(
        float(np.abs(counts.ravel() * scale - before.expected[at]).sum())
        for counts, at in zip(after, picked, strict=True)
    )
    return distance / max(float(before.errors[list(picked)].sum()), 1e-9)


def finished(known: Known) -> LogLinear:
    """The model with what fresh rows are brought to: its own margins of pairs, averaged over sweeps."""
    assert known.model is not None
    assert known.chains is not None
    sizes, chains = known.sizes, known.chains
    wanted = goal_pairs(sizes, known.references)
    sums = [np.zeros(tuple(sizes[j] for j in pair)) for pair in wanted]
    if wanted and not listable(sizes):
        for _ in range(AVERAGED):
            chains = sweep(known.model, chains, 2, threads=threads())
            for total, counts in zip(sums, margins(chains, sizes, wanted), strict=True):
                total += counts
    if listable(sizes):
        exact = law(known.model, chains.rules)
        sums = [margin(exact, pair) for pair in wanted]
    goals = [Goal((j,), shares, WEIGHT_ONE_WAY) for j, shares in enumerate(known.shares)]
    for pair, total in zip(wanted, sums, strict=True):
        own = [known.shares[j] for j in pair]
        smooth = (total + 1e-6 * total.sum() * _outer(own)) * possible(known.seen, pair)
        goals.append(Goal(pair, rake(smooth + 1e-15, own)))
    natural = known.rows * 1.005
    closed = int(natural / math.ceil(natural / CLOSED) + 32)  # blocks of one size, none cut short
    return replace(known.model, goals=tuple(goals), closed=closed)


def goal_pairs(sizes: Sequence[int], measured_: Collection[Clique]) -> tuple[Clique, ...]:
    """Pairs that rows are closed to: all of them, or of wide tables those inside a measured clique."""
    limits = Limits(GOAL_CELLS, GOAL_CELLS)
    if math.comb(sum(size > 1 for size in sizes), 2) <= GOAL_PAIRS:
        return pairs(sizes, limits)
    held = {pair for clique in measured_ for pair in itertools.combinations(clique, 2)}
    return pairs(sizes, limits, among=held)


def margin(table: np.ndarray, columns: Clique) -> np.ndarray:
    """Sums over all other axes."""
    summed: np.ndarray = table.sum(axis=tuple(a for a in range(table.ndim) if a not in columns))
    return summed


def possible(schema: Schema, clique: Clique) -> np.ndarray:
    """1 where a clique's cell may hold rows, 0 where a structural zero covers all of it."""
    mask = np.ones(tuple(schema.columns[j].size for j in clique))
    for rule in schema.impossible:
        where = {schema.index(name): list(codes) for name, codes in rule.where}
        if set(where) <= set(clique):
            every = [where.get(j, list(range(schema.columns[j].size))) for j in clique]
            mask[np.ix_(*every)] = 0.0
    return mask


def choose_and_measure(
    known: Known,
    curator: CuratorLike,
    found: Candidates,
    picks: int,
    *,
    epsilon: Fraction,
    turn: int,
) -> tuple[int, ...]:
    """Spend: the picks of a round; nothing is paid where there is nothing to choose between."""
    if len(found.cliques) <= picks:
        return tuple(range(len(found.cliques)))
    return pick(curator, found, picks, epsilon=epsilon, turn=turn)


def _outer(shares: Sequence[np.ndarray]) -> np.ndarray:
    table = np.ones(())
    for one in shares:
        table = np.multiply.outer(table, one)
    return table
