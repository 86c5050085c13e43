"""How adaptive_gibbs divides its budget, and its rounds of choices and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Table
from gibbous.mechanisms import _plans
from gibbous.mechanisms._adaptive_model import (
    BETWEEN,
    CLOSED,
    GOAL_CELLS,
    ROUND,
    Known,
    bought,
    fitted,
    most_chains,
)
from gibbous.mechanisms._budget import Budget
from gibbous.sampling.loglinear import margins
from gibbous.sampling.loglinear.laws import listable, outer
from gibbous.structure.clique_scores import (
    Candidates,
    care_of,
    expected_errors,
    pick,
)
from gibbous.structure.cliques import (
    Limits,
    cells_of,
    context_of,
    few_celled,
    larger,
    pairs,
)
from gibbous.structure.emphasis import Emphasis, shared
from gibbous.structure.merging import LEAST_GROUPS, model_sizes

FIRST = Fraction(1, 10)  # of rho: 1-way tables, before anything is known
MOST_ONE_WAY = Fraction(9, 10)  # of rho, on 1-way tables altogether
USUAL_ERROR, USUAL_SHARE, GROWTH = 0.0078, 0.3, 0.23
LOUD_ERROR, LOUD_GROWTH = 0.072, 0.8  # 1-way error from which on pairs get less and less
HOPELESS = 1.0  # 1-way error from which on no pair is expected to beat its noise: none is bought
LOOK = Fraction(1, 50)  # of rho: whether columns are tied, where records are few
NEARLY_NONE = 0.1  # standard deviation of a cell: below it, one of more than a hundred cells is off
QUIETER = 0.5  # noise of pairs in the table of all columns, over that of pairs bought in rounds
PICKS = 16  # cheapest picks a column, if every pick were a cheapest one
STILL = 0.65  # share of the expected error: a round that moves the model less buys less noise next
FASTER = 4  # times the budget of a pick after such a round, while a pick a column can be paid for
SLOWLY = 4  # rounds of one price, about; for the time that is left
WIDE, MOST_WIDENED = 32, 4  # columns from which on a round takes more than a quarter of them
CAREFUL = 8  # rounds of few picks: what is tied most is found by models that know little
OPENING = Fraction(1, 3)  # of what follows the 1-way tables: pairs of a target, before all rounds
PATIENCE = 40  # rounds after which each round is bought at twice the price of the last one
PAIRS_A_COLUMN = 2  # about as many as are bought, for the number of chains
CANDIDATE = 32  # bytes a cell: the Curator's count, the expected one, the chains' and a distance
GOAL = 96  # bytes a cell of a margin that rows are closed to: sums, shares, and its layout twice
LISTED = 640  # bytes a cell of the table of all columns: counts, estimates, shares, codes
CHAIN = 64  # bytes a chain beside its codes: weights, places, an order


@dataclass(frozen=True, slots=True)
class Split:
    """How the budget is divided: what `plan` prints and `run` spends.

    Attributes:
        schema: public.
        budget: what is divided: rho, or mu squared.
        choice: share of a pick that pays for choosing it.
        limits: of the tables that are measured.
        sizes: codes of each column of the model, at most.
        two_way: cells of the tables of all pairs together.
        free: columns with more than one code in the model.
        at_once: whether the table of all columns is bought, and nothing else.
        first: of rho, for 1-way tables before anything is known; all of it where there are no pairs.
        emphasis: what tables count for.
    """

    schema: Schema
    budget: Budget
    choice: Fraction
    limits: Limits
    sizes: tuple[int, ...]
    two_way: int
    free: int
    at_once: bool
    first: Fraction
    emphasis: Emphasis

    @property
    def rho(self) -> Fraction:
        """The whole budget, which all shares are shares of: rho, or mu squared."""
        return self.budget.whole

    def one_way_error(self, rows: float) -> float:
        """Mean distance of 1-way tables that USUAL_SHARE of rho would leave, as the noise says."""
        sizes = self.schema.sizes
        sigma = self.budget.noise(self.rho * exact(USUAL_SHARE), len(sizes)).info().scale
        return _plans.HALF * (sum(sizes) / len(sizes)) * sigma / rows

    def top_up(self, rows: float) -> Fraction:
        """What more 1-way tables cost: a public rule of rho, the noisy rows and the schema."""
        if self.first == self.rho:
            return Fraction(0)
        error = self.one_way_error(rows)
        if error >= HOPELESS:
            return self.rho - self.first
        usual = USUAL_SHARE * (error / USUAL_ERROR) ** GROWTH
        share = exact(round(max(usual, 0.5 * (error / LOUD_ERROR) ** LOUD_GROWTH), 6))
        return self.rho * min(MOST_ONE_WAY, max(FIRST, share)) - self.first

    def picks(self, turn: int) -> int:
        """Tables of a round: a quarter of the columns, later half; of wide tables more: rounds stay few."""
        widened = min(MOST_WIDENED * WIDE, max(WIDE, self.free))
        few = max(2, -(-self.free * widened // (4 * WIDE)))
        return few if turn < CAREFUL else max(few, min(WIDE // 2, -(-self.free // 2)))

    @property
    def most_rounds(self) -> int:
        """No more rounds than this: from `PATIENCE` on the price of a pick doubles."""
        return PATIENCE + 1 + math.ceil(math.log2(PICKS * 4))

    def pair_sigma(self, left: Fraction) -> float:
        """Noise of a cell, in counts, if what is left bought PAIRS_A_COLUMN tables a column; or 0."""
        price = left / (PAIRS_A_COLUMN * max(2, self.free))
        return self.budget.noise(price, 1).info().scale if left > 0 else 0.0

    def sigmas(self) -> tuple[float, float]:
        """Least and greatest sigma of a round's tables."""
        rest = self.rho * (1 - MOST_ONE_WAY - LOOK) * (1 - self.choice)
        cheapest = rest / (PICKS * max(2, self.free))
        if self.emphasis != Emphasis():
            # Beside heavier tables one gets at least this part of an equal share.
            cheapest *= (1 - OPENING) * exact(round(self.emphasis.spread ** (-2 / 3), 6))
        prices = (self.rho - self.first, cheapest)
        least, greatest = (self.budget.noise(price, 1).info().scale for price in prices)
        return least, greatest

    def memory(self) -> int:
        """Bytes that a run holds beyond records and 1-way tables: candidates, chains, goals of the rows."""
        size, limit = self.sizes, self.limits.all_cells
        more = cells_of_triples(size) + sum(cells_of(size, c) for c in few_celled(size))
        tables = min(self.two_way, limit) + min(limit, more)
        width = 1 if max(size, default=1) <= 256 else 2
        rows = max(most_chains(size), CLOSED) * (3 * width * len(size) + CHAIN)
        whole = LISTED * math.prod(size) if self.at_once else 0
        return whole + CANDIDATE * tables + GOAL * min(self.two_way, GOAL_CELLS) + rows


def split_of(
    schema: Schema, budget: Budget, *, choice: Fraction, cells: int, emphasis: Emphasis
) -> Split:
    """The split of a budget under a schema; see `Split`.

    Args:
        cells: of the largest table that is measured.
    """
    limits = Limits(cells)
    sizes = model_sizes(schema, cells)
    two = pairs(sizes, limits)
    two_way = sum(sizes[a] * sizes[b] for a, b in two)
    return Split(
        schema,
        budget,
        budget.choices(choice),
        limits,
        sizes,
        two_way,
        free=sum(size > 1 for size in sizes),
        at_once=False,
        first=budget.whole * FIRST if two else budget.whole,
        emphasis=emphasis,
    )


def at_once(split: Split, budget: Budget, *, decided: bool = False) -> Split | None:
    """The split where the table of all columns is bought, and nothing else; None where rounds say more.

    Every pair is a margin of that table. It is bought where it has no more cells than the tables of all
    pairs; and where its noise is geometric and, added up, QUIETER in pairs than in rounds and no louder in
    single columns. Margins of more columns are quieter still. Its cells have to be few enough to be listed,
    and rare levels of a wide column say more in groups, unless the noise is NEARLY_NONE.

    Args:
        split: where the budget goes in rounds.
        budget: for the one table.
        decided: by the plan, on a schema of no fewer levels.
    """
    sizes, limits = split.schema.sizes, split.limits
    cells, two = math.prod(sizes), [sizes[a] * sizes[b] for a, b in pairs(sizes, limits)]
    if cells > limits.cells or not listable(sizes, [tuple(range(len(sizes)))]):
        return None
    spread = math.sqrt(budget.noise(budget.whole).info().variance)
    wide = len(two) > 0 and max(sizes) > LEAST_GROUPS
    if not decided and wide and spread > NEARLY_NONE:
        return None
    if not decided and cells > max(sum(two), *sizes):
        if budget.measure != "pure":
            return None
        ones, usual = [size for size in sizes if size > 1], split.rho * exact(USUAL_SHARE)
        single = split.budget.noise(usual, len(sizes)).info().scale
        for tables, most in ((two, QUIETER * split.pair_sigma(split.rho - usual)), (ones, single)):
            added_up = spread * math.fsum(math.sqrt(cells * own) for own in tables)
            if added_up > most * sum(tables):
                return None
    return replace(
        split, budget=budget, sizes=sizes, two_way=sum(two), at_once=True, first=budget.whole
    )


def cells_of_triples(sizes: Sequence[int]) -> int:
    """Cells of all triples of columns with more than one code: an elementary symmetric polynomial."""
    free = [size for size in sizes if size > 1]
    one, two, three = (sum(size**k for size in free) for k in (1, 2, 3))
    return (one**3 - 3 * one * two + 2 * three) // 6


def gone(turn: int, rounds: float) -> int:
    """Percent of all rounds that are over, as it seems: prices grow FASTER about every fourth round.

    Args:
        turn: rounds that are over.
        rounds: what is left would pay for so many at the present price.
    """
    return int(100 * turn / (turn + 1 + SLOWLY * math.log(max(1.0, rounds), FASTER)))


def measure_in_rounds(curator: CuratorLike, known: Known, split: Split, left: Fraction) -> Known:
    """Spend: round by round the tables that the model is most wrong about, to the last fraction."""
    known, left = opened(curator, known, split, left)
    unit = left / (PICKS * max(2, split.free))
    turn, last = 0, False
    while not last:
        picks = split.picks(turn)
        curator.report("rounds", gone(turn, float(left / (picks * unit))), 100)
        last = left <= (picks + 2) * unit
        if last:
            picks = max(1, min(picks, int(left / unit)))
            unit = left / picks
        choice = unit * split.choice
        some = candidates(known, split, unit - choice)
        if not some.cliques:  # merged columns may be wider than the schema's bound by a few groups
            break
        picked: Sequence[int] = range(len(some.cliques))
        if len(some.cliques) > picks:  # else there is nothing to choose between, nor to pay for
            epsilon, measure = split.budget.pick_epsilon(choice), split.budget.measure
            picked = pick(curator, some, picks, epsilon=epsilon, accounting=measure, turn=turn)
            left -= len(picked) * split.budget.pick_price(epsilon)
        price = left if last else min(left, len(picked) * (unit - choice))
        known, cost = measured(curator, known, some, picked, split, price)
        left -= cost
        if last and not known.listed:  # the last fit begins anew, from the tree
            break
        known = fitted(known, ROUND)
        turn += 1
        if moved(some, picked, known) < STILL:
            unit = max(unit, min(unit * FASTER, left / max(2, split.free)))
        unit *= 2 if turn >= PATIENCE else 1
    curator.report("rounds", 100, 100)
    return known


def opened(
    curator: CuratorLike, known: Known, split: Split, left: Fraction
) -> tuple[Known, Fraction]:
    """Spend: all pairs of the target within the limits, at once; nothing without a target."""
    price = left * OPENING
    some = candidates(known, split, price / max(1, split.free - 1))
    target = split.emphasis.target
    own = [at for at, clique in enumerate(some.cliques) if target in clique]
    if not own:
        return known, left
    known, cost = measured(curator, known, some, own, split, price)
    return fitted(known, ROUND), left - cost


def candidates(known: Known, split: Split, price: Fraction) -> Candidates:
    """What may be measured next, what is expected there, and what error at a price a table.

    Of what was measured before, the estimate is expected; else what the model says. A model whose rows can
    be listed meets its tables, so it speaks for itself, and no cell is taken to stand out: interactions of
    few columns lie in many cells, each a little off.
    """
    sizes, limits = known.sizes, split.limits
    cliques = pairs(sizes, limits) + larger(sizes, known.references, limits)
    scale, sigma = known.rows / known.chains.count, split.budget.noise(price, 1).info().scale
    counts = margins(known.chains, sizes, cliques) if cliques else ()
    exact = known.listed
    held = {} if exact else known.estimates
    expected = tuple(
        held[clique][1].ravel() if clique in held else table.ravel() * scale
        for clique, table in zip(cliques, counts, strict=True)
    )
    errors = expected_errors(expected, sigma, scale, [care_of(clique) for clique in cliques])
    contexts = tuple(context_of(sizes, c) for c in cliques)
    before = np.array([known.components.precision(clique) for clique in cliques])
    # Of a cell's variance this part is the clique's own: what fewer columns say is known.
    part = [1.0 - 1.0 / size for size in sizes]
    own = np.array([math.prod([part[j] for j in clique]) for clique in cliques])
    noise = np.where(exact, np.inf, np.sqrt(own / (before + sigma**-2)))
    spread, weights = own * (1.0 + scale), split.emphasis.of(cliques)
    return Candidates(cliques, contexts, expected, errors, weights, noise, spread)


def measured(
    curator: CuratorLike,
    known: Known,
    some: Candidates,
    picked: Sequence[int],
    split: Split,
    price: Fraction,
) -> tuple[Known, Fraction]:
    """Spend: release the picked cliques once, for a price altogether; those that count more with less noise.

    Returns:
        What is known then, and what was paid.
    """
    references, paid, found = dict(known.references), Fraction(0), list[Table]()
    for weight, each in shared(price, some.weights[list(picked)]).items():
        own = [at for at in picked if some.weights[at] == weight]
        noise = split.budget.noise(each * len(own), len(own))
        found += curator.noisy_counts([some.contexts[at] for at in own], noise)
        paid += split.budget.cost(noise, len(own))
    for at in picked:
        clique = some.cliques[at]
        if clique not in references:
            apart = known.rows * outer([known.shares[j] for j in clique])
            seen = some.expected[at].reshape(apart.shape)
            references[clique] = ((1 - BETWEEN) * seen + BETWEEN * apart, apart)
    return bought(replace(known, references=references), found), paid


def moved(before: Candidates, picked: Sequence[int], known: Known) -> float:
    """How far the model went on the picked cliques: L1 in counts, over the error expected of them."""
    scale = known.rows / known.chains.count
    after = margins(known.chains, known.sizes, [before.cliques[at] for at in picked])
    distance = sum(
        float(np.abs(counts.ravel() * scale - before.expected[at]).sum())
        for counts, at in zip(after, picked, strict=True)
    )
    return distance / max(float(before.errors[list(picked)].sum()), 1e-9)
