"""The scale test: is the noise in the tables as large as the tables state? One-sided, exact level."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from gibbous.contract.auditor.bounds import expected_energy, law_of, scale_p_value
from gibbous.contract.auditor.canaries import Seen, pooled_noise
from gibbous.core.tables import NoiseInfo

SURE = 2.326  # standard errors: 99 of 100


@dataclass(frozen=True, slots=True)
class ScaleTest:
    """The group of cells whose noise fits its stated scale worst.

    Attributes:
        cells: noisy cells compared with exact counts, in all groups.
        group: in words.
        p_value: after correction for the number of groups.
        scale: the scale that fits, as a share of the stated one.
        shows: shares below it are shown in 99 of 100 audits, over all cells.
    """

    cells: int
    group: str
    p_value: float
    scale: float
    shows: float


def scale_test(runs: Iterable[Seen], level: float) -> ScaleTest | None:
    """Test all noisy cells together, and those of each table's target columns by themselves.

    Args:
        runs: of one relation; all setups.
        level: of the test, for what it could have shown.
    Returns:
        None when no table was seen.
    """
    pooled = pooled_noise(runs)
    if not pooled:
        return None
    groups: dict[str, dict[NoiseInfo, tuple[int, float]]] = {"all cells": _merged(pooled.values())}
    if len(pooled) > 1:
        groups |= {f"tables of column {_named(t)}": laws for t, laws in pooled.items()}
    found = []
    for name, laws in groups.items():
        cells = {law: n for law, (n, _) in laws.items()}
        energy = sum(e for _, e in laws.values())
        found.append((scale_p_value(cells, energy), name, cells, energy))
    p_value, name, cells, energy = min(found, key=lambda f: f[0])
    every = {law: n for law, (n, _) in groups["all cells"].items()}
    return ScaleTest(
        cells=sum(every.values()),
        group=name,
        p_value=min(1.0, p_value * len(groups)),
        scale=_fitting(cells, energy),
        shows=_fitting(every, _flagged(every, level / len(groups))),
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
