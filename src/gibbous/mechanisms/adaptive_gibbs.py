"""adaptive_gibbs: cliques chosen round by round, measured with noise, and a log-linear model of all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gibbous.core.about import About
from gibbous.core.claim import Claim, Relation, approximate, zcdp
from gibbous.core.exact import exact, root_down
from gibbous.core.keywords import answering_class
from gibbous.core.params import Rule, at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _adaptive_known, _plans, _rounds
from gibbous.mechanisms._adaptive_known import Known
from gibbous.mechanisms._adaptive_memory import working_bytes
from gibbous.mechanisms.limits import budget
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import gaussian_for
from gibbous.structure.cliques import Limits, pairs
from gibbous.structure.contexts import margins as one_ways

PROOF = "docs/proofs/adaptive_gibbs.md"
part = Rule(lambda v: 0 < v < 0.5, "> 0 and < 0.5")

FIRST = Fraction(1, 10)  # of rho: 1-way tables, before anything is known
MOST_ONE_WAY = Fraction(1, 2)  # of rho, on 1-way tables altogether
USUAL_ERROR, USUAL_SHARE, GROWTH = 0.0078, 0.3, 0.23
PICKS = 16  # cheapest picks a column, if every pick were a cheapest one
STILL = 0.65  # share of the expected error: a round that moves the model less buys less noise next
FASTER = 4  # times the budget of a pick after such a round
WIDE, MOST_WIDENED = 32, 4  # columns from which on a round takes more than a quarter of them
PATIENCE = 40  # rounds after which each round is bought at twice the price of the last one


@answering_class
@dataclass(frozen=True, slots=True)
class AdaptiveGibbs:
    """Buy noisy 1-way tables, then round by round the tables that the model is most wrong about.

    A log-linear model of any set of tables is fitted by persistent Gibbs chains; rows are drawn
    from it, and the few values that bring the rows' margins to the model's are changed.
    Of columns of more than 128 levels the model sees groups, made of the noisy 1-way tables.

    How the budget is divided is a public rule, the same for all data (rho from epsilon and delta).
    A tenth of rho buys 1-way tables. Where the table of all columns has no more cells than those of
    all pairs together, it is bought with the rest. Else let e be the 1-way error that 0.3 rho would
    leave at the noisy number of rows: 1-way tables are topped up to 0.3 (e / 0.0078)^0.23 of rho, at
    most half; the rest buys picks at 1 / (16 columns) of it each, of which the share `choice` pays
    for choosing. After a round that moved the model by less than 0.65 of the expected error, a pick
    costs four times as much; from round 40 on, twice as much each round. The last round spends what
    is left. A round takes a quarter as many picks as there are columns m, times m / 32 (at most 4)
    where m is above 32. From some 110 columns on each pick looks at one part of the candidates, so
    that those of a round look at about 2^19.

    Guarantee:
        (epsilon, delta)-DP for everything released, by zero-concentrated composition, add/remove or
        replace one; any number of rows and sets is free. Proven here: docs/proofs/adaptive_gibbs.md.
        Audited: contract, with half the noise and an undivided budget as saboteurs; unpaid choices,
        an overspent last round and raw margins in tests/adaptive_gibbs.
    Source:
        This project, after McKenna et al. (2022) (AIM: choice, annealing), Xiao et al. (2023)
        (components), Cai et al. (2021) (PrivMRF), Zhang et al. (2021) (PrivSyn).
    """

    about: ClassVar[About] = About(
        name="adaptive_gibbs",
        title="Adaptive Gibbs",
        paper="this project, after AIM (McKenna et al. 2022)",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="nothing: no paper describes this mechanism",
        proven="(epsilon, delta) for all tables and choices together; any number of rows; both relations",
        audited="noisy cells of the running code; half the noise and undivided budgets are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    delta: float = param(1e-9, probability, help="Keep it well under 1/records.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    choice: float = param(
        0.05, part, unit="share of rho", help="Spent on choosing, of what follows."
    )
    cells: int = param(20_000, at_least(4), help="Largest table that is measured, in cells.")
    sweeps: int = param(10, at_least(1), help="Gibbs passes a fresh row; costs time, not privacy.")

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        total = approximate(
            exact(self.epsilon), exact(self.delta), relation=self.relation, source=PROOF
        )
        rho, limits = self._rho(), Limits(self.cells)
        first = self._first(schema)
        ones = self._gaussian(schema, first, len(schema))
        spends = [
            Spend(
                f"{len(schema)} one-way tables",
                self._price(first),
                f"gaussian noise, sigma {ones.info().scale:.6g} counts",
            )
        ]
        sizes = _adaptive_known.model_sizes(schema, limits)
        cells = sum(sizes[a] * sizes[b] for a, b in pairs(sizes, limits))
        if first < rho:
            spends.append(
                Spend(
                    self._rest(schema), self._price(rho - first), self._detail(schema, rho - first)
                )
            )
        size = sorted(schema.sizes)[len(schema) // 2]
        final = self._gaussian(schema, max(first, rho * exact(USUAL_SHARE)), len(schema))
        two_way = self._gaussian(schema, rho / 2, max(1, 3 * len(schema)))
        errors, warnings = _plans.noise_errors(
            final.info(),
            rows,
            one_way=size * final.info().scale,
            two_way=size * size * two_way.info().scale,
        )
        found = _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=total,
            contexts=one_ways(schema),
            spends=tuple(spends),
            published="nothing: no paper describes this mechanism",
            errors=errors,
            warnings=warnings,
            more_cells=min(cells, limits.all_cells),
        )
        return replace(found, memory_bytes=found.memory_bytes + working_bytes(sizes, limits))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: 1-way tables, then rounds of choices and tables, to the last fraction."""
        schema = curator.schema
        left, known = self._rho(), Known(schema, schema)
        for share in (self._first(schema), None):
            price = share if share is not None else self._top_up(schema, known.rows)
            price = min(price, left)
            if price > 0:
                noise = self._gaussian(schema, price, len(schema))
                known = _adaptive_known.bought(known, curator.noisy_counts(one_ways(schema), noise))
                left -= self._cost(schema, noise, len(schema))
        known = _adaptive_known.begun(known, Limits(self.cells))
        merged = _adaptive_known.changes(known.model.merged if known.model else ())
        curator = curator.recoded(merged) if merged else curator
        if self._first(schema) < self._rho():
            whole = _rounds.whole(schema, Limits(self.cells))
            spend = self._at_once if whole else self._rounds
            known = _rounds.concluded(spend(curator, known, left))
        model = _rounds.finished(known)
        recipe = Recipe("loglinear", (), sweeps=self.sweeps)
        return Tables(schema, known.tables, recipe, model=model)

    def _at_once(self, curator: CuratorLike, known: Known, left: Fraction) -> Known:
        """Spend: the table of all columns, where it is smaller than those of all pairs."""
        found = _rounds.cross_table(known)
        noise = self._gaussian(curator.schema, left, 1)
        return _rounds.measured(known, curator, found, (0,), noise)

    def _rounds(self, curator: CuratorLike, known: Known, left: Fraction) -> Known:
        schema, whole = curator.schema, left
        unit = left / (PICKS * max(2, self._free(schema)))
        picks, number, last = self._picks(schema), 0, False
        while not last:
            curator.report("rounds", int(100 * (1 - left / whole)), 100)
            last = left <= (picks + 2) * unit
            if last:
                picks = max(1, min(picks, int(left / unit)))
                unit = left / picks
            choice = unit * exact(self.choice)
            sigma = self._gaussian(schema, unit - choice, 1).info().scale
            found = _rounds.candidates(known, sigma, Limits(self.cells))
            epsilon = root_down(8 * choice)
            if (
                not found.cliques
            ):  # merged columns may be wider than the schema's bound by a few groups
                break
            picked = _rounds.choose_and_measure(
                known, curator, found, picks, epsilon=epsilon, turn=number
            )
            if len(found.cliques) > picks:
                left -= len(picked) * epsilon**2 / 8
            price = left if last else min(left, len(picked) * (unit - choice))
            noise = self._gaussian(schema, price, len(picked))
            known = _rounds.measured(known, curator, found, picked, noise)
            left -= self._cost(schema, noise, len(picked))
            known = _rounds.fitted(known, _rounds.ROUND)
            number += 1
            unit *= FASTER if _rounds.moved(found, picked, known) < STILL else 1
            unit *= 2 if number >= PATIENCE else 1
        curator.report("rounds", 100, 100)
        return known

    def _rho(self) -> Fraction:
        return rho_from_approx(exact(self.epsilon), exact(self.delta))

    def _first(self, schema: Schema) -> Fraction:
        """Budget of the 1-way tables before anything is known; all of it where there are no pairs."""
        rho = self._rho()
        sizes = _adaptive_known.model_sizes(schema, Limits(self.cells))
        return rho * FIRST if pairs(sizes, Limits(self.cells)) else rho

    def _top_up(self, schema: Schema, rows: float) -> Fraction:
        """What further 1-way tables cost: a public rule of rho, the noisy rows and the schema."""
        rho, first = self._rho(), self._first(schema)
        if first == rho or _rounds.whole(schema, Limits(self.cells)):
            return Fraction(0)
        sigma = self._gaussian(schema, rho * exact(USUAL_SHARE), len(schema)).info().scale
        levels = sum(schema.sizes) / len(schema)
        error = _plans.HALF * levels * sigma / rows
        share = exact(round(USUAL_SHARE * (error / USUAL_ERROR) ** GROWTH, 6))
        return rho * min(MOST_ONE_WAY, max(FIRST, share)) - first

    def _rest(self, schema: Schema) -> str:
        if _rounds.whole(schema, Limits(self.cells)):
            return "the table of all columns"
        return "rounds: one-way tables, choices, tables"

    def _detail(self, schema: Schema, rest: Fraction) -> str:
        if _rounds.whole(schema, Limits(self.cells)):
            return (
                f"gaussian noise, sigma {self._gaussian(schema, rest, 1).info().scale:.6g} counts"
            )
        low, high = self._sigmas(schema)
        return (
            f"at most {self._most_rounds()} rounds of {self._picks(schema)} tables, gaussian noise, "
            f"sigma {high:.6g} counts or less, never below {low:.6g}"
        )

    def _picks(self, schema: Schema) -> int:
        """Tables a round: a quarter of the columns; of wide tables more, so that rounds stay few."""
        free = self._free(schema)
        widened = min(MOST_WIDENED * WIDE, max(WIDE, free))
        return max(2, -(-free * widened // (4 * WIDE)))

    def _most_rounds(self) -> int:
        """No more rounds than this: from `PATIENCE` on the price of a pick doubles."""
        return PATIENCE + 1 + math.ceil(math.log2(PICKS * 4))

    def _sigmas(self, schema: Schema) -> tuple[float, float]:
        """Least and greatest sigma of a round's tables."""
        rest = self._rho() - self._first(schema)
        least = (self._rho() * (1 - MOST_ONE_WAY)) * (1 - exact(self.choice))
        cheapest = least / (PICKS * max(2, self._free(schema)))
        one, most = (self._gaussian(schema, price, 1).info().scale for price in (rest, cheapest))
        return one, most

    def _gaussian(self, schema: Schema, rho: Fraction, tables: int) -> Noise:
        return gaussian_for(rho, tables, self.relation, _plans.most_rows(schema))

    def _cost(self, schema: Schema, noise: Noise, tables: int) -> Fraction:
        return noise.cost(tables, self.relation, _plans.most_rows(schema)).rho

    def _price(self, rho: Fraction) -> Claim:
        return zcdp(rho, relation=self.relation, source=PROOF)

    def _free(self, schema: Schema) -> int:
        """Columns with more than one code in the model."""
        return sum(size > 1 for size in _adaptive_known.model_sizes(schema, Limits(self.cells)))
