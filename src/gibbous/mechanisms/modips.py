"""modips: noisy counts, sums and second moments, and from them normal numbers within noisy cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.about import About
from gibbous.core.cell_model import Draws, NoisySum, Values
from gibbous.core.claim import Claim, Relation, approximate, pure, zcdp
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.moment import Moment
from gibbous.core.params import at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, MomentNoise, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._modips_noise import truncated_for
from gibbous.mechanisms._modips_statistics import (
    Covariance,
    Split,
    coarsening,
    divided,
    moments,
    weights,
)
from gibbous.mechanisms.limits import budget
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import (
    gaussian_for,
    geometric_for,
    moment_gaussian_for,
    moment_geometric_for,
)
from gibbous.synthesize.cells.fit import fitted
from gibbous.synthesize.cells.layout import cell_context, numeric_columns

PROOF = "docs/proofs/modips.md"
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
        the noise on sums, sums priced without their bound and unpaid truncation in tests/modips.
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

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            ResourceLimit: too many cells, sums or parameters; the figure is named.
            ParameterError: outside = "truncate" for a schema with numeric columns.
        """
        sums = self._moments(schema)
        self._check_size(schema, sums)
        parts = self._parts(sums)
        noise = self._counts_noise(schema, parts[0])
        sd, cells = math.sqrt(noise.info().variance), cell_context(schema)
        ways = sorted(cells.target_sizes)[len(cells.target_sizes) // 2]
        errors, warnings = _plans.noise_errors(
            noise.info(),
            rows,
            one_way=sd * math.sqrt(cells.cells * ways),
            two_way=sd * math.sqrt(cells.cells) * ways,
        )
        found = _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=self._total(),
            contexts=(cells,),
            spends=self._spends(schema, sums, parts, noise),
            published=f"epsilon = {self.epsilon:g}, divided over the sets",
            errors=errors + self._mean_errors(schema, sums, parts),
            warnings=(*warnings, *_plans.unused_delta(self)),
            more_cells=sum(one.context.cells for one in sums),
        )
        return replace(found, numbers=numeric_columns(schema))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cells once, sum numbers and products once, add noise once."""
        schema = curator.schema
        sums = self._moments(schema)
        parts = self._parts(sums)
        changes = coarsening(schema)
        coarse = curator.recoded(changes) if changes else curator
        counts = coarse.noisy_counts((cell_context(schema),), self._counts_noise(schema, parts[0]))
        bought: tuple[NoisySum, ...] = ()
        if sums:
            noises = [
                self._sum_noise(schema, one, part)
                for one, part in zip(sums, parts[1:], strict=True)
            ]
            tables = coarse.noisy_moments(sums, noises)
            bought = tuple(
                NoisySum(one.factors, table) for one, table in zip(sums, tables, strict=True)
            )
        model = fitted(
            schema, counts[0], bought, prior=self.prior, draws=self.draws, values=self.values
        )
        return Tables(schema, counts, Recipe("cells", ()), model=model)

    def _moments(self, schema: Schema) -> tuple[Moment, ...]:
        if self.outside == "truncate" and numeric_columns(schema):
            raise ParameterError(
                "TRUNCATE",
                "outside of Modips is 'truncate', and the schema has numeric columns.",
                "Truncation is proven for counts: sums have no public bounds where the number of "
                "records is private.",
                "Use outside='clip', which costs nothing.",
            )
        return moments(schema, self.covariance)

    def _check_size(self, schema: Schema, sums: Sequence[Moment]) -> None:
        cells, width = cell_context(schema).cells, len(numeric_columns(schema))
        numbers = cells + sum(one.context.cells for one in sums)
        model = cells * (1 + width + width**2)
        if max(numbers, model) > MAX_CELLS:
            raise ResourceLimit(
                "JOINT",
                f"The table of the categorical columns has {cells:.4g} cells, with {numbers:.4g} noisy "
                f"numbers and {model:.4g} parameters.",
                f"modips adds noise to every one of at most {MAX_CELLS:,}.",
                "Use coarser or fewer columns, or adaptive_gibbs, which measures a few columns at a time.",
            )

    def _total(self) -> Claim:
        if self.noise == "laplace":
            return pure(exact(self.epsilon), relation=self.relation, source=PROOF)
        return approximate(
            exact(self.epsilon), exact(self.delta), relation=self.relation, source=PROOF
        )

    def _parts(self, sums: Sequence[Moment]) -> tuple[Fraction, ...]:
        """Of epsilon or rho: for the counts, then for each moment."""
        whole = exact(self.epsilon)
        if self.noise == "gaussian":
            whole = rho_from_approx(whole, exact(self.delta))
        return divided(whole, weights(sums), self.split, self.noise)

    def _counts_noise(self, schema: Schema, part: Fraction) -> Noise:
        most = _plans.most_rows(schema)
        if self.noise == "gaussian":
            return gaussian_for(part, 1, self.relation, most)
        if self.outside == "truncate":
            return truncated_for(part, self.relation, most)
        return geometric_for(part, 1, self.relation, most)

    def _sum_noise(self, schema: Schema, one: Moment, part: Fraction) -> MomentNoise:
        make = moment_gaussian_for if self.noise == "gaussian" else moment_geometric_for
        return make(part, one, self.relation, _plans.most_rows(schema))

    def _spends(
        self, schema: Schema, sums: Sequence[Moment], parts: Sequence[Fraction], noise: Noise
    ) -> tuple[Spend, ...]:
        info = noise.info()
        detail = f"{info.law} noise, scale {info.scale:.6g} counts"
        found = [Spend("counts of all cells", self._price(parts[0]), detail)]
        names, law = schema.names, info.law
        for one, part in zip(sums, parts[1:], strict=True):
            scale = self._sum_noise(schema, one, part).info().scale
            what = " times ".join(names[factor] for factor in one.factors)
            where = "in each cell" if one.context == cell_context(schema) else "of all records"
            detail = f"{law} noise, scale {scale:.6g} grid steps, bound {one.bound}"
            found.append(Spend(f"sums of {what} {where}", self._price(part), detail))
        return tuple(found)

    def _price(self, part: Fraction) -> Claim:
        if self.noise == "laplace":
            return pure(part, relation=self.relation, source=PROOF)
        return zcdp(part, relation=self.relation, source=PROOF)

    def _mean_errors(
        self, schema: Schema, sums: Sequence[Moment], parts: Sequence[Fraction]
    ) -> tuple[tuple[str, float], ...]:
        """Noise of a cell's mean; the same for all columns, in units of their ranges."""
        if not sums:
            return ()
        sd = math.sqrt(self._sum_noise(schema, sums[0], parts[1]).info().variance)
        name = f"noise sd of a cell mean of {A_MEAN} records, share of the range"
        return ((name, sd / (2 * sums[0].bound * A_MEAN)),)
