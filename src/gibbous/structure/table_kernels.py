"""Compiled kernels on small tables: raking one, and taking the noise out of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbous.core.compiled import POWER
from gibbous.core.kernel import kernel

Array = Any
U = np.uint64
LOOSE = 0.01  # cells' worth of freedom that a margin has at least, so that no shift runs away
DOUBLINGS = np.float32(1.4426950408889634)  # 1 / ln 2
MOST = np.float32(126.0)  # doublings below the largest weight: beyond, a weight is as good as 0
BIAS, MANTISSA = np.int32(127), np.int32(23)  # of float32
D0, D1, D2, D3, D4 = (np.float32(c) for c in POWER)
SUMS = {"reassoc", "contract"}  # sums may be taken in another order, as numpy's are


@kernel(fastmath=SUMS)
def rake(cells: Array, sizes: Array, shares: Array, have: Array, passes: int) -> None:
    """Proportional fitting in place; twin: `smoothing.rake`.

    Args:
        cells: float64 (cells,), one axis a column, the last one fastest.
        sizes: int64 (axes,).
        shares: float64: one distribution an axis, one after the other.
        have: float64, as many as the largest of the sizes: room.
        passes: over all axes.
    """
    for _ in range(passes):
        first, inner = 0, len(cells)
        for axis in range(len(sizes)):
            size = sizes[axis]
            inner //= size
            outer = len(cells) // (size * inner)
            for v in range(size):
                have[v] = 0.0
            for o in range(outer):
                for v in range(size):
                    at, total = U((o * size + v) * inner), 0.0
                    for i in range(U(inner)):
                        total += cells[at + i]
                    have[v] += total
            for v in range(size):
                have[v] = shares[first + v] / have[v] if have[v] > 0.0 else 0.0
            for o in range(outer):
                for v in range(size):
                    at, factor = U((o * size + v) * inner), have[v]
                    for i in range(U(inner)):
                        cells[at + i] *= factor
            first += size


class Noisy(NamedTuple):
    """A table with noise, and what is known of it.

    Attributes:
        cells: noisy counts, float64 (cells,), one axis a column, the last one fastest.
        base: of each cell, what the ratios are of, > 0.
        sigma: standard deviation of the noise of a cell.
        sizes: int64 (axes,), of axes whose margins are known; none: no margin is known.
        sums: float64: known margin of each axis, one after the other.
    """

    cells: Array
    base: Array
    sigma: float
    sizes: Array
    sums: Array


class Ratios(NamedTuple):
    """What is expected of the ratios of a table's cells to their bases.

    Attributes:
        atoms: ratios, float64 (atoms,).
        width: standard deviation of the ratios that an atom stands for, in shares of its own.
        before: the law that is expected, float64 (atoms,).
        expected: its weight, in cells.
    """

    atoms: Array
    width: float
    before: Array
    expected: float


class State(NamedTuple):
    """Where the iteration is.

    Attributes:
        law: of the ratios, float64 (atoms,).
        shifts: what is added to counts so that margins are met, float64, as `Noisy.sums`.
        means, variances: of the cells after what was seen, float64 (cells,).
    """

    law: Array
    shifts: Array
    means: Array
    variances: Array


class Room(NamedTuple):
    """Memory of one call of `posterior`; `scale` is `powers`, read as float32."""

    places: Array
    half: Array
    log: Array
    atoms: Array
    chances: Array
    logits: Array
    weights: Array
    powers: Array
    scale: Array
    summed: Array
    margins: Array


def room_of(given: Noisy, ratios: Ratios) -> Room:
    """Room for a table."""
    cells, atoms, axes = len(given.cells), len(ratios.atoms), len(given.sizes)
    powers = np.empty(atoms, dtype=np.int32)
    chances, logits, weights = (np.empty(atoms, dtype=np.float32) for _ in range(3))
    return Room(
        np.empty((cells, axes), dtype=np.int64),
        np.empty((cells, atoms), dtype=np.float32),
        np.empty((cells, atoms), dtype=np.float32),
        ratios.atoms.astype(np.float32),
        chances,
        logits,
        weights,
        powers,
        powers.view(np.float32),
        np.empty(atoms),
        np.empty((2, len(given.sums))),
    )


@kernel()
def _codes(given: Noisy, ratios: Ratios, room: Room) -> None:
    """For each cell its margins; for each cell and atom half the precision and half a logarithm."""
    variance = given.sigma * given.sigma
    for i in range(len(given.cells)):
        rest, end = i, len(given.sums)
        for back in range(len(given.sizes)):
            axis = len(given.sizes) - 1 - back
            size = given.sizes[axis]
            end -= size
            room.places[i, axis] = end + rest % size
            rest //= size
        for a in range(len(ratios.atoms)):
            between = given.base[i] * ratios.atoms[a] * ratios.width
            spread = 1.0 + between * between / variance
            room.half[i, a] = 0.5 / (spread * variance)
            room.log[i, a] = 0.5 * np.log(spread)


@kernel(fastmath=SUMS)
def _weigh(moved: float, base: float, cell: int, room: Room) -> float:
    """Likelihoods of one cell at each atom over the largest one, whose logarithm is returned.

    e^x to 3e-6: a power of two by its bits times a polynomial.
    """
    atoms, chances, logits, weights = room.atoms, room.chances, room.logits, room.weights
    half, log, powers, scale = room.half, room.log, room.powers, room.scale
    away, high, top = np.float32(moved), np.float32(base), np.float32(-np.inf)
    i, count = U(cell), U(len(atoms))
    for a in range(count):
        gap = away - high * atoms[a]
        logits[a] = -(gap * gap * half[i, a] + log[i, a])
        top = max(top, logits[a])
    for a in range(count):
        down = min((top - logits[a]) * DOUBLINGS, MOST)
        whole = np.int32(down)
        part = down - np.float32(whole)
        powers[a] = (BIAS - whole) << MANTISSA
        weights[a] = (D0 + part * (D1 + part * (D2 + part * (D3 + part * D4)))) * chances[a]
    for a in range(count):
        weights[a] *= scale[a]
    return float(top)


@kernel(fastmath=SUMS)
def posterior(given: Noisy, ratios: Ratios, state: State, room: Room, steps: int) -> float:
    """Posterior mean of each cell, given margins, under the law of ratios that makes all cells likeliest.

    Twin: `posterior_means` of its tests.

    Args:
        steps: of the fixed-point iteration, from where `state` is.
    Returns:
        The logarithm of the likelihood, of the margins too.
    """
    noisy, base, sigma, sizes, sums = given
    law, shifts, means, variances = state
    places, half, weights, summed, have = (
        room.places,
        room.half,
        room.weights,
        room.summed,
        room.margins,
    )
    known, variance, found = ratios.atoms, sigma * sigma, 0.0
    count, axes = U(len(law)), len(sizes)
    _codes(given, ratios, room)
    for step in range(steps + 1):
        found = 0.0
        for k in range(len(sums)):
            have[0, k] = 0.0
            have[1, k] = 0.0
        for a in range(count):
            summed[a] = 0.0
            room.chances[a] = law[a]
        for cell in range(len(noisy)):
            i, moved = U(cell), noisy[cell]
            for axis in range(axes):
                moved += shifts[places[i, axis]]
            top = _weigh(moved, base[i], cell, room)
            mixed, mean, square = 0.0, 0.0, 0.0
            for a in range(count):
                weight, expected = float(weights[a]), base[i] * known[a]
                kept = 1.0 - 2.0 * variance * half[i, a]
                within = expected + kept * (moved - expected)
                mixed += weight
                mean += weight * within
                square += weight * (within * within + kept * variance)
            inverse = 1.0 / mixed
            mean *= inverse
            spread = max(square * inverse - mean * mean, 0.0)
            means[i], variances[i] = mean, spread
            for a in range(count):
                summed[a] += weights[a] * inverse
            for axis in range(axes):
                have[0, places[i, axis]] += mean
                have[1, places[i, axis]] += spread / variance
            found += np.log(mixed) + top + (moved * moved - noisy[i] * noisy[i]) / (2.0 * variance)
        for k in range(len(sums)):
            found -= shifts[k] * sums[k] / variance
        if step < steps:
            _follow(given, ratios, state, room, step)
    return found


@kernel()
def _follow(given: Noisy, ratios: Ratios, state: State, room: Room, step: int) -> None:
    """The law that the cells' weights make likeliest, and shifts nearer to the margins of one axis."""
    total = 0.0
    for a in range(len(state.law)):
        state.law[a] = room.summed[a] + ratios.expected * ratios.before[a]
        total += state.law[a]
    for a in range(len(state.law)):
        state.law[a] /= total
    if len(given.sizes) == 0:
        return
    first, axis = 0, step % len(given.sizes)
    for before in range(axis):
        first += given.sizes[before]
    for k in range(first, first + given.sizes[axis]):
        change = (given.sums[k] - room.margins[0, k]) / max(room.margins[1, k], LOOSE)
        state.shifts[k] += min(max(change, -given.sigma), given.sigma)
