"""Deliberately broken builds: every audit must catch the saboteur that breaks what it audits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.core.claim import Claim, Relation
from gibbous.core.context import Context
from gibbous.core.protocols import Noise, Progress, silent
from gibbous.core.tables import Cells, Dense, NoiseInfo, Sparse, Table
from gibbous.privacy import curator, entropy


@dataclass(frozen=True, slots=True)
class Saboteur:
    """A named fault.

    Attributes:
        breaks: "noise" (cost too small for what is released), "keys", "reset" or "draw".
        apply: a context manager under which the fault is in force.
    """

    name: str
    breaks: str
    apply: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Underpriced:
    """Noise that tells the price of one scale and adds another.

    Attributes:
        told: whose price and law are told.
        factor: of the scale that is told.
        drop_threshold: cells below the threshold are kept.
        leak_keys: cells that no record has are exact zeros, and all others are kept as they are.
    """

    told: Noise
    factor: Fraction = Fraction(1)
    drop_threshold: bool = False
    leak_keys: bool = False

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """The price that is told."""
        return self.told.cost(tables, relation, max_rows)

    def info(self) -> NoiseInfo:
        """What is told about the noise."""
        return self.told.info()

    def add(self, cells: Cells, *, progress: Progress = silent) -> Cells:
        """Less noise than told, or more cells."""
        info = self.told.info()
        scale = Fraction(info.scale) * self.factor
        make = entropy.geometric if info.law == "geometric" else entropy.gaussian
        noisy = make(cells.values.ravel(), scale, progress=progress).reshape(cells.values.shape)
        if isinstance(cells, Dense):
            return Dense(np.where(cells.values == 0, 0, noisy) if self.leak_keys else noisy)
        if self.leak_keys:
            return cells
        keep = noisy > (0 if self.drop_threshold or info.threshold is None else info.threshold)
        return Sparse(cells.keys[keep], cells.levels[keep], noisy[keep])


def saboteurs() -> tuple[Saboteur, ...]:
    return (
        Saboteur("half the noise", "noise", lambda: _noised(factor=Fraction(1, 2))),
        Saboteur("no noise", "noise", lambda: _noised(factor=Fraction(1, 1000))),
        Saboteur("threshold forgotten", "threshold", lambda: _noised(drop_threshold=True)),
        Saboteur("budget not divided by the tables", "split", lambda: _counted_with(_undivided)),
        Saboteur("keys of empty cells leaked", "keys", lambda: _noised(leak_keys=True)),
        Saboteur("reset left out", "reset", _no_reset),
        Saboteur("draws from unperturbed counts", "draw", _raw_draws),
    )


@contextmanager
def _counted_with(broken: Callable[[Noise, int], Noise]) -> Iterator[None]:
    """Noisy counts with other noise: `broken` of the honest one and of the number of tables."""
    honest = curator.Curator.noisy_counts

    def noisy_counts(
        self: curator.Curator, contexts: Sequence[Context], noise: Noise
    ) -> tuple[Table, ...]:
        return honest(self, contexts, broken(noise, len(contexts)))

    with patched(curator.Curator, "noisy_counts", value=noisy_counts):
        yield


def _noised(**fault: Any) -> object:
    return _counted_with(lambda noise, _: Underpriced(noise, **fault))


def _undivided(noise: Noise, tables: int) -> Noise:
    """Noise of one table's scale for all tables, and an accountant that looks away."""
    share = Fraction(1, max(tables, 1))
    if noise.info().law == "gaussian":
        share = Fraction(float(share) ** 0.5)
    return Underpriced(noise, share)


def _no_reset() -> object:
    from gibbous.sampling import gibbs_rows

    return patched(gibbs_rows, "RESET_AT_VISIT", value=False)


def _raw_draws() -> object:
    """Draws whose price is told for alpha, and made with a thousandth of it."""
    from gibbous.perturb import add

    honest = add.Add.weights

    def weights(self: add.Add, counts: np.ndarray) -> np.ndarray:
        return honest(self, counts * 1000)

    return patched(add.Add, "weights", value=weights)


@contextmanager
def patched(owner: object, name: str, *, value: object) -> Iterator[None]:
    """Within it, `owner.name` is another value: how a fault is put in force."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
