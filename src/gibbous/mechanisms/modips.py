"""modips: noisy counts, sums and second moments, and from them normal numbers within noisy cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.cell_model import Draws, NoisySum, Values
from gibbous.core.claim import Measure, Relation
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.moment import Moment
from gibbous.core.params import at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, MomentNoise, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._budget import Budget, budget_of
from gibbous.mechanisms._modips_statistics import (
    Covariance,
    Split,
    Truncated,
    coarsening,
    divided,
    moments,
    truncated_for,
    weights,
)
from gibbous.mechanisms.limits import budget
from gibbous.sampling.cells.cell_index import cell_context, numeric_columns
from gibbous.sampling.cells.cell_moments import fitted

MAX_CELLS = 1 << 24  # noisy numbers: at 5 to 9 microseconds of vetted noise each, two minutes
A_MEAN = 1000  # records of the mean whose expected error a plan states


@answering_class
@dataclass(frozen=True, slots=True)
class Modips:
    """Buy noisy counts of all cells and noisy sums of numbers and products; draw from their posterior.

    A cell is a combination of the categorical columns. Rows of a set: shares of cells from a
    Dirichlet, means and covariances from a normal-inverse-Wishart law, then a cell and numbers that
    are normal within it and clipped to the bounds. Everything after the noise is free.

    Guarantee:
        noise = "laplace": epsilon-DP; "gaussian": (epsilon, delta)-DP by zero-concentrated
        composition; add/remove or replace one, for everything released; rows and sets are free.
        Claimed by the paper: epsilon/m for each of m sets, from cell means whose sensitivity uses
        private cell counts. Proven here, for sums: docs/proofs/modips.md. Audited: contract; half
        the noise on sums, sums priced without their bound and unpaid truncation.
    Source:
        [bowen2016, s3.2, s4]; sums in place of cell means, sanitized once.
    """

    about: ClassVar[About] = About(
        name="modips",
        title="Model-based synthesis",
        paper="bowen2016, s3.2",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon, from cell means with sensitivities that use private cell counts",
        proven="epsilon (laplace) or (epsilon, delta) (gaussian) for noisy counts and sums; both relations",
        audited="noisy cells of the running code; half the noise, sums priced without their bound and "
        "unpaid truncation are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    noise: Literal["laplace", "gaussian"] = param("laplace", help="gaussian needs delta.")
    delta: float = param(1e-6, probability, help="Used with noise = gaussian alone.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    split: Split = param("optimal", help="How counts, sums and products divide the budget.")
    covariance: Covariance = param("pooled", help="One covariance for all cells, or one each.")
    outside: Literal["clip", "truncate"] = param(
        "clip", help="Negative counts: read as 0, or drawn again at the price that has."
    )
    records: int | None = param(
        None,
        at_least(1),
        unit="records",
        help="Public n; with outside = truncate no noisy count is above it, either.",
    )
    draws: Draws = param("posterior", help="Parameters of a set: drawn, or as fitted.")
    values: Values = param(
        "matched",
        help="Clipped numbers keep the wanted mean and variance, or the law before it does.",
    )
    prior: float = param(
        2 / 3, at_least(0), unit="records", help="Virtual records of the whole table."
    )

    def __post_init__(self) -> None:
        check(self)
        if self.outside == "truncate" and self.noise != "laplace":
            raise ParameterError(
                "TRUNCATE",
                f"outside of Modips is 'truncate' with {self.noise} noise.",
                "Truncated counts are proven for noise='laplace' alone.",
                "Use outside='clip', which costs nothing with either noise.",
            )
        if self.outside == "clip" and self.records is not None:
            raise ParameterError(
                "TRUNCATE",
                f"records of Modips is {self.records}, and outside is 'clip'.",
                "Only counts that are drawn again have an upper bound.",
                "Use outside='truncate', or leave records out.",
            )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            ResourceLimit: too many cells, sums or parameters; the figure is named.
            ParameterError: outside = "truncate" for a schema with numeric columns.
        """
        split = self._split(schema)
        _check_size(schema, split)
        info, cells = split.counts_noise.info(), cell_context(schema)
        sd, ways = (
            math.sqrt(info.variance),
            sorted(cells.target_sizes)[len(cells.target_sizes) // 2],
        )
        errors, warnings = _plans.noise_errors(
            info,
            rows,
            one_way=sd * math.sqrt(cells.cells * ways),
            two_way=sd * math.sqrt(cells.cells) * ways,
        )
        plan = _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(cells,),
            spends=self._spends(split),
            published=f"epsilon = {self.epsilon:g}, divided over the sets",
            outlook=(errors + split.mean_errors(), (*warnings, *_plans.unused_delta(self))),
            more_cells=sum(one.context.cells for one in split.sums),
        )
        return replace(plan, numbers=numeric_columns(schema))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cells once, sum numbers and products once, add noise once."""
        schema = curator.schema
        split, changes = self._split(schema, curator.measure), coarsening(schema)
        coarse = curator.recoded(changes) if changes else curator
        counts = coarse.noisy_counts((cell_context(schema),), split.counts_noise)
        tables = coarse.noisy_moments(split.sums, split.sum_noises) if split.sums else ()
        bought = tuple(NoisySum(one.factors, t) for one, t in zip(split.sums, tables, strict=True))
        model = fitted(
            schema, counts[0], bought, prior=self.prior, draws=self.draws, values=self.values
        )
        return Tables(schema, counts, Recipe("cells", ()), model=model)

    def _split(self, schema: Schema, measure: Measure | None = None) -> _Split:
        if self.outside == "truncate" and numeric_columns(schema):
            raise ParameterError(
                "TRUNCATE",
                "outside of Modips is 'truncate', and the schema has numeric columns.",
                "Truncation is proven for counts alone.",
                "Use outside='clip', which costs nothing.",
            )
        sums, most = moments(schema, self.covariance), _plans.most_rows(schema)
        budget = budget_of(self, schema, measure=measure)
        first, *others = divided(budget.whole, weights(sums), self.split, self.noise)
        counts = budget.noise(first)
        if self.outside == "truncate":
            counts = truncated_for(first, self.relation, most, self.records)
        noises = tuple(
            budget.moment_noise(part, one) for one, part in zip(sums, others, strict=True)
        )
        return _Split(budget, schema, sums, (first, *others), counts, noises)

    def _spends(self, split: _Split) -> list[Spend]:
        info, names = split.counts_noise.info(), split.schema.names
        detail = f"{info.law} noise, scale {info.scale:.6g} counts"
        spends = [split.budget.spend("counts of all cells", split.parts[0], detail)]
        for one, part, noise in zip(split.sums, split.parts[1:], split.sum_noises, strict=True):
            what = " times ".join(names[factor] for factor in one.factors)
            where = (
                "in each cell" if one.context == cell_context(split.schema) else "of all records"
            )
            scale = noise.info().scale
            detail = f"{info.law} noise, scale {scale:.6g} grid steps, bound {one.bound}"
            spends.append(split.budget.spend(f"sums of {what} {where}", part, detail))
        return spends


@dataclass(frozen=True, slots=True)
class _Split:
    """How the budget is divided: what `plan` prints and `run` spends.

    Attributes:
        sums: numbers and products that are summed.
        parts: epsilon, rho or mu squared of the counts, then of each sum.
        counts_noise, sum_noises: what these buy.
    """

    budget: Budget
    schema: Schema
    sums: tuple[Moment, ...]
    parts: tuple[Fraction, ...]
    counts_noise: Noise
    sum_noises: tuple[MomentNoise, ...]

    def mean_errors(self) -> tuple[tuple[str, float], ...]:
        """Noise of a cell's mean; the same for all columns, in units of their ranges."""
        if not self.sums:
            return ()
        sd = math.sqrt(self.sum_noises[0].info().variance)
        name = f"noise sd of a cell mean of {A_MEAN} records, share of the range"
        return ((name, sd / (2 * self.sums[0].bound * A_MEAN)),)


def _check_size(schema: Schema, split: _Split) -> None:
    cells, width = cell_context(schema).cells, len(numeric_columns(schema))
    again = split.counts_noise.draws() if isinstance(split.counts_noise, Truncated) else 1.0
    numbers = cells * again + sum(one.context.cells for one in split.sums)
    model = cells * (1 + width + width**2)
    if max(numbers, model) > MAX_CELLS:
        raise ResourceLimit(
            "JOINT",
            f"The table of the categorical columns has {cells:.4g} cells, with {numbers:.4g} noisy "
            f"numbers and {model:.4g} parameters.",
            f"modips adds noise to every one of at most {MAX_CELLS:,}.",
            "Use coarser or fewer columns, or adaptive_gibbs, which measures a few columns at a time.",
        )
