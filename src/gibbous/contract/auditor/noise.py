"""The scale test: is the noise in the tables as large as the tables state? One-sided, exact level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from gibbous.contract.auditor.bounds import expected_energy, law_of, scale_p_value
from gibbous.contract.auditor.canaries import Seen, pooled_noise
from gibbous.contract.auditor.findings import Evidence
from gibbous.core.claim import Relation
from gibbous.core.tables import NoiseInfo

SURE = 2.326  # standard errors: 99 of 100


def by_scale(runs: Sequence[Seen], relation: Relation, level: float) -> Evidence | None:
    """Test all noisy cells together, and those of each table's target columns by themselves.

    Args:
        runs: of one relation; all setups.
        level: of the test.
    Returns:
        The group of cells whose noise fits its stated scale worst; None when no table was seen.
    """
    pooled = pooled_noise(runs)
    if not pooled:
        return None
    groups: dict[str, dict[NoiseInfo, tuple[int, float]]] = {"all cells": _merged(pooled.values())}
    if len(pooled) > 1:
        groups |= {f"tables of column {_named(t)}": laws for t, laws in pooled.items()}
    fits = []
    for name, laws in groups.items():
        cells = {law: n for law, (n, _) in laws.items()}
        energy = sum(e for _, e in laws.values())
        fits.append((scale_p_value(cells, energy), name, cells, energy))
    p_value, name, cells, energy = min(fits, key=lambda f: f[0])
    every = {law: n for law, (n, _) in groups["all cells"].items()}
    p_value = min(1.0, p_value * len(groups))
    return Evidence(
        kind="noise",
        name=f"noisy less exact counts, {sum(every.values()):,} cells",
        relation=relation,
        runs=len(runs),
        violated=p_value <= level,
        claimed=1.0,
        bound=_fitting(cells, energy),
        ceiling=_fitting(every, _flagged(every, level / len(groups))),
        level=level,
        words=f"{name}, p = {p_value:.2g}",
    )


def _merged(
    parts: Iterable[dict[NoiseInfo, tuple[int, float]]],
) -> dict[NoiseInfo, tuple[int, float]]:
    merged: dict[NoiseInfo, tuple[int, float]] = {}
    for laws in parts:
        for law, (cells, energy) in laws.items():
            before = merged.get(law, (0, 0.0))
            merged[law] = (before[0] + cells, before[1] + energy)
    return merged


def _flagged(cells: dict[NoiseInfo, int], level: float) -> float:
    """An energy that is below what flags by the sampling error of 99 of 100 audits."""
    mean = sum(n * expected_energy(law)[0] for law, n in cells.items())
    spread = math.sqrt(sum(n * expected_energy(law)[1] for law, n in cells.items()))
    return max(0.0, mean - (math.sqrt(-2 * math.log(level)) + SURE) * spread)


def _fitting(cells: dict[NoiseInfo, int], energy: float) -> float:
    """The share of the stated scale at which the mean energy is the one that was found."""
    low, high = 0.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        if sum(n * _energy_at(law, middle) for law, n in cells.items()) < energy:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _energy_at(law: NoiseInfo, share: float) -> float:
    """Mean energy of one cell whose real scale is `share` of the stated one."""
    real = replace(law, scale=max(law.scale * share, 1e-3), threshold=None)
    values, chances = law_of(real)
    power = np.abs(values) / law.scale
    return float(chances @ (power if law.law == "geometric" else power**2 / 2))


def _named(targets: tuple[int, ...]) -> str:
    return ", ".join(str(t + 1) for t in targets)
