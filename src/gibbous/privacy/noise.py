"""Integer noise for counts, with its exact price: exact cells and a public law in, noisy cells out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Claim, Measure, Relation, approximate, gdp, pure, zcdp
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.exact import Number
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, silent
from gibbous.core.tables import Cells, Dense, NoiseInfo, Sparse
from gibbous.privacy import entropy
from gibbous.privacy.calibrate.gdp import sigma_for, square_of_gaussian
from gibbous.privacy.calibrate.rounding import positive
from gibbous.privacy.calibrate.scales import (
    dyadic_root_up,
    geometric_epsilon,
    geometric_scale,
    l2_squared,
)
from gibbous.privacy.calibrate.stable import (
    new_cells_delta,
    new_cells_threshold,
    stable_gaussian,
    stable_gaussian_cost,
    stable_geometric,
    stable_geometric_cost,
)

PROOF = "docs/proofs/noise.md"
PROOF_GAUSSIAN = "docs/proofs/gaussian.md"
PROOF_STABLE = "docs/proofs/stable.md"
PROOF_NEW_CELLS = "docs/proofs/discovery.md"


@dataclass(frozen=True, slots=True)
class Geometric:
    """Two-sided geometric noise: P(g) proportional to exp(-|g| / scale).

    Guarantee:
        (L1 / scale)-DP. L1 = tables x rows a unit under add_remove, twice that under replace_one.
        Basis: proven (docs/proofs/noise.md).
    Source:
        [Ghosh, Roughgarden, Sundararajan 2009].

    Attributes:
        scale: b in counts; stored as the float64 at or above it that the sampler takes.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", entropy.noise_scale(positive("scale", self.scale)))

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on `tables` histograms of the same records, from the scale alone."""
        epsilon = geometric_epsilon(self.scale, tables, relation, max_rows)
        return pure(epsilon, relation=relation, source=PROOF)

    def moment_cost(self, moment: Moment, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on the sums of one moment: L1 / scale."""
        epsilon = Fraction(moment.l1(relation, max_rows)) / self.scale
        return pure(epsilon, relation=relation, source=PROOF)

    def info(self) -> NoiseInfo:
        """What is published about it."""
        return NoiseInfo("geometric", float(self.scale))

    def add(self, cells: Cells, *, progress: Progress = silent) -> Dense:
        """Noisy counts of every cell; PrivacyRefused if the cells are only those that occur."""
        return Dense(entropy.geometric(_every_cell(cells), self.scale, progress=progress))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Discrete Gaussian noise: P(g) proportional to exp(-g^2 / (2 sigma^2)).

    Guarantee:
        L2^2 / (2 sigma^2)-zCDP, and L2 (1 + c) / sigma-Gaussian DP with the c of this sigma. L2^2 =
        tables x (rows a unit)^2 under add_remove, twice that under replace_one. Basis: proven
        (docs/proofs/noise.md, docs/proofs/gaussian.md).
    Source:
        [Canonne, Kamath, Steinke 2020]; [Dong, Roth, Su 2022].

    Attributes:
        sigma: in counts; stored as the float64 at or above it that the sampler takes.
        measure: in which it is priced: "zcdp" or "gdp".
    """

    sigma: Fraction
    measure: Measure = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", entropy.noise_scale(positive("sigma", self.sigma)))

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on `tables` histograms of the same records, from sigma alone."""
        return self._price(l2_squared(tables, relation, max_rows), relation)

    def moment_cost(self, moment: Moment, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on the sums of one moment."""
        return self._price(moment.l2_squared(relation, max_rows), relation)

    def info(self) -> NoiseInfo:
        """What is published about it."""
        return NoiseInfo("gaussian", float(self.sigma))

    def _price(self, squared: int, relation: Relation) -> Claim:
        if self.measure == "zcdp":
            rho = squared / (2 * self.sigma * self.sigma)
            return zcdp(rho, relation=relation, source=PROOF)
        one = square_of_gaussian(self.sigma)
        if one is None:
            raise ParameterError(
                "SIGMA",
                f"Gaussian noise of sigma {float(self.sigma):g} cannot be priced in mu.",
                "The constant of discrete Gaussian noise is certified for larger sigma.",
                "Price it in rho, or let the noise be made by gaussian_for.",
            )
        return gdp(squared * one, relation=relation, source=PROOF_GAUSSIAN)

    def add(self, cells: Cells, *, progress: Progress = silent) -> Dense:
        """Noisy counts of every cell; PrivacyRefused if the cells are only those that occur."""
        return Dense(entropy.gaussian(_every_cell(cells), self.sigma, progress=progress))


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Noise on the cells that occur, of which those with noisy > threshold are kept.

    Guarantee:
        (epsilon, delta)-DP with delta from the exact tail of the integer noise. Basis: proven
        (docs/proofs/stable.md). Gaussian noise that states no epsilon: delta-approximate zCDP with
        the rho of the noise, which adds up with other zCDP purchases (docs/proofs/discovery.md).
    Source:
        [sbhg, sec. 4; Vadhan 2017, thm. 3.5], with several tables and the tight constant.

    Attributes:
        base: the noise.
        threshold: t in counts, >= 0; a cell is kept iff its noisy count is > t.
        epsilon: where delta is stated, for Gaussian noise; None for geometric, whose scale fixes it,
            and for Gaussian noise that is priced in rho.
    """

    base: Geometric | Gaussian
    threshold: int
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        if self.threshold < 0 or (self.epsilon is not None and isinstance(self.base, Geometric)):
            raise ParameterError(
                "THRESHOLD",
                "The thresholded noise is incomplete.",
                "The threshold is a whole number >= 0; Gaussian noise may state an epsilon, "
                "geometric noise does not.",
                "Use stable_geometric_for or stable_gaussian_for.",
            )

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price on `tables` histograms of the same records; ParameterError if the threshold is too low."""
        if isinstance(self.base, Geometric):
            epsilon, delta = stable_geometric_cost(
                self.base.scale, self.threshold, tables, relation, max_rows
            )
        elif self.epsilon is None:
            delta = new_cells_delta(self.base.sigma, self.threshold, tables, max_rows)
            epsilon = Fraction(0)
        else:
            epsilon = self.epsilon
            delta = stable_gaussian_cost(
                self.base.sigma, self.threshold, epsilon, tables, relation, max_rows
            )
        if delta >= 1:
            raise ParameterError(
                "THRESHOLD",
                f"Threshold {self.threshold} keeps cells of a single unit with certainty.",
                "delta is below 1.",
                "Let the threshold be computed from epsilon and delta.",
            )
        if isinstance(self.base, Gaussian) and self.epsilon is None:
            base = self.base.cost(tables, relation, max_rows)
            return replace(base, delta=delta, source=PROOF_NEW_CELLS)
        return approximate(epsilon, delta, relation=relation, source=PROOF_STABLE)

    def info(self) -> NoiseInfo:
        """What is published about it."""
        return replace(self.base.info(), threshold=self.threshold)

    def add(self, cells: Cells, *, progress: Progress = silent) -> Cells:
        """Noisy cells above the threshold; of a Dense, the others become 0.

        Cells without a record are dropped before the noise, whatever an engine lists. How many are
        left is secret, so no progress is told of them.
        """
        if isinstance(cells, Dense):
            noisy = self.base.add(cells, progress=progress).values
            return Dense(np.where(noisy > self.threshold, noisy, 0))
        occur = cells.values > 0
        values = self.base.add(Dense(cells.values[occur])).values
        kept = values > self.threshold
        return Sparse(cells.keys[occur][kept], cells.levels[occur][kept], values[kept])


def geometric_for(
    epsilon: Number, tables: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Geometric:
    """Geometric noise for `tables` tables whose price is at most epsilon, exactly."""
    noise = Geometric(geometric_scale(epsilon, tables, relation, max_rows))
    assert noise.cost(tables, relation, max_rows).epsilon <= positive("epsilon", epsilon)
    return noise


def gaussian_for(
    budget: Number,
    tables: int,
    relation: Relation = "add_remove",
    max_rows: int = 1,
    measure: Measure = "zcdp",
) -> Gaussian:
    """Discrete Gaussian noise for `tables` tables whose price in its measure is at most a budget, exactly."""
    noise = _gaussian(budget, l2_squared(tables, relation, max_rows), measure)
    assert noise.cost(tables, relation, max_rows).price <= positive("budget", budget)
    return noise


def moment_geometric_for(
    epsilon: Number, moment: Moment, relation: Relation = "add_remove", max_rows: int = 1
) -> Geometric:
    """Geometric noise for the sums of one moment whose price is at most epsilon, exactly."""
    noise = Geometric(moment.l1(relation, max_rows) / positive("epsilon", epsilon))
    assert noise.moment_cost(moment, relation, max_rows).epsilon <= positive("epsilon", epsilon)
    return noise


def moment_gaussian_for(
    budget: Number,
    moment: Moment,
    relation: Relation = "add_remove",
    max_rows: int = 1,
    measure: Measure = "zcdp",
) -> Gaussian:
    """Discrete Gaussian noise for the sums of one moment whose price is at most a budget, exactly."""
    noise = _gaussian(budget, moment.l2_squared(relation, max_rows), measure)
    assert noise.moment_cost(moment, relation, max_rows).price <= positive("budget", budget)
    return noise


def _gaussian(budget: Number, squared: int, measure: Measure) -> Gaussian:
    number = positive("budget", budget)
    if measure == "gdp":
        return Gaussian(sigma_for(number, Fraction(squared)), measure)
    return Gaussian(dyadic_root_up(squared / (2 * number)))


def stable_geometric_for(
    epsilon: Number,
    delta: Number,
    tables: int,
    relation: Relation = "add_remove",
    max_rows: int = 1,
) -> Thresholded:
    """Thresholded geometric noise for `tables` tables whose price is within (epsilon, delta), exactly."""
    scale, threshold = stable_geometric(epsilon, delta, tables, relation, max_rows)
    noise = Thresholded(Geometric(scale), threshold)
    return _within(noise, epsilon, delta, tables, relation, max_rows)


def stable_gaussian_for(
    epsilon: Number,
    delta: Number,
    tables: int,
    relation: Relation = "add_remove",
    max_rows: int = 1,
    *,
    delta_noise: Number | None = None,
) -> Thresholded:
    """Thresholded Gaussian noise for `tables` tables whose price is within (epsilon, delta), exactly.

    Args:
        delta_noise: the part of delta that pays for the noise; half of it when None.
    """
    sigma, threshold = stable_gaussian(
        epsilon, delta, tables, relation, max_rows, delta_noise=delta_noise
    )
    noise = Thresholded(Gaussian(sigma), threshold, positive("epsilon", epsilon))
    return _within(noise, epsilon, delta, tables, relation, max_rows)


def selecting_for(
    rho: Number, delta: Number, tables: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Thresholded:
    """Thresholded Gaussian noise for `tables` tables whose price is within (rho, delta), exactly."""
    base = gaussian_for(rho, tables, relation, max_rows)
    noise = Thresholded(base, new_cells_threshold(base.sigma, delta, tables, max_rows))
    assert noise.cost(tables, relation, max_rows).delta <= positive("delta", delta)
    return noise


def _within(
    noise: Thresholded,
    epsilon: Number,
    delta: Number,
    tables: int,
    relation: Relation,
    max_rows: int,
) -> Thresholded:
    price = noise.cost(tables, relation, max_rows)
    assert price.epsilon <= positive("epsilon", epsilon)
    assert price.delta <= positive("delta", delta)
    return noise


def _every_cell(cells: Cells) -> np.ndarray:
    if isinstance(cells, Sparse):
        raise PrivacyRefused(
            "SEENKEYS",
            "Plain noise was asked for on only the cells that occur.",
            "Which cells occur is itself confidential: they need a stability threshold.",
            "Count the context with support='dense', or use thresholded noise.",
        )
    return cells.values
