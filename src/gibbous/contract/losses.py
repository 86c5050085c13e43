"""What a purchase shows of two neighbors, from exact counts and the samplers' scales, against its price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.contract.laws import alike, log_law, redraws, truncation
from gibbous.core.claim import NUMBERS, Claim, approximate, gdp, pure, zcdp
from gibbous.core.codes import Codes
from gibbous.core.tables import Cells, Counts, Dense, NoiseInfo, Sparse
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.gdp import (
    delta_of,
    mu_squared_for,
    square_of_choice,
    square_of_gaussian,
)
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp

SLACK = 1 + 1e-9
Drawn = tuple[str, Fraction, np.ndarray]
"""What a sampler was told and gave: (law, scale, noisy values)."""


@dataclass(slots=True, eq=False)
class Purchase:
    """What one side of a coupled run saw of one purchase.

    Attributes:
        asked: what was asked for; public, and the same on both sides.
        by: the noise or the draw.
        prices: what was paid; one a moment, else one.
        counts: exact cells of each table.
        drawn: calls of samplers, one list a table.
        scores: of a choice, with the sensitivity that is stated.
        steps: its scores as whole numbers, with the scale of the noise that is added to them.
        levels: drawn levels and their log probabilities, call after call.
        words: cryptographic words, call after call.
    """

    kind: str
    asked: tuple[object, ...]
    by: object = None
    prices: list[Claim] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    drawn: list[list[Drawn]] = field(default_factory=list)
    scores: tuple[np.ndarray, Fraction] | None = None
    steps: tuple[np.ndarray, Fraction] | None = None
    levels: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    words: list[np.ndarray] = field(default_factory=list)
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Loss:
    """What a purchase shows of a pair: the true loss and its share of the price, at most 1.

    Attributes:
        claims: pure, zCDP or Gaussian, that the exact counts of the pair really cost.
        survival: the chance that a cell which only one of the tables has is released.
        ratio: of loss and price; 0 where nothing is claimed.
        words: where it is above 1.
    """

    kind: str
    claims: tuple[Claim, ...] = ()
    survival: float = 0.0
    ratio: float = 0.0
    words: str = ""


def loss_of(one: Purchase, two: Purchase) -> Loss:
    if not (one.prices and two.prices) or not all(price.is_dp for price in one.prices):
        return Loss(one.kind)
    if one.prices != two.prices:
        return Loss(one.kind, ratio=math.inf, words="a price depends on the record that differs")
    if one.kind == "choice":
        return _chosen(one, two)
    if one.kind == "draw":
        return _drawn(one, two)
    return _noised(one, two)


def _noised(one: Purchase, two: Purchase) -> Loss:
    """True L1 and squared L2 of all tables over the scales that were drawn with; survival at thresholds."""
    claims: list[Claim] = []
    stays = {1: 0.0, -1: 0.0}  # log of the chance that no cell of one side alone is kept
    price = one.prices[0]
    for place in range(len(one.counts)):
        law = one.by.info() if one.kind == "counts" else None  # type: ignore[attr-defined]
        first, second = one.drawn[place], two.drawn[place]
        change, lone = _change(
            one.counts[place].cells, two.counts[place].cells, price.kind == "pure"
        )
        for kind, scale, *_ in first[:1] if redraws(one.by) else first:
            power = {"geometric": 1, "gaussian": 2}[kind]
            moved = sum(abs(int(c)) ** power for c in change)
            if kind == "geometric":
                claims.append(pure(moved / scale, relation=price.relation))
            elif price.kind == "gdp":
                square = square_of_gaussian(scale) or Fraction(1)
                claims.append(gdp(moved * square, relation=price.relation))
            else:
                claims.append(zcdp(moved / (2 * scale * scale), relation=price.relation))
        if not first or not second:
            return Loss(one.kind, ratio=math.inf, words="a table is released without noise")
        more = truncation(one.by, one.counts[place].cells.values, two.counts[place].cells.values)
        claims += [pure(more, relation=price.relation)] if more else []
        if law is not None and law.threshold is not None and price.kind != "pure":
            for count in lone:
                kept = tail(law, law.threshold - abs(count))
                stays[1 if count > 0 else -1] += math.log1p(-min(kept, 1 - 1e-12))
    told = tuple(claims) if price.kind != "approximate" else _of_one_release(price, claims, one)
    gone = -math.expm1(min(stays.values()))
    if one.kind == "sums":
        ratio = max((_ratio(p, (c,)) for p, c in zip(one.prices, told, strict=True)), default=0.0)
    else:
        ratio = _ratio(price, told)
    if gone:
        ratio = max(ratio, gone / float(price.delta) if price.delta else math.inf)
    what = "sums" if one.kind == "sums" else "counts"
    return Loss(one.kind, told, gone, ratio, f"its {what} differ by more than the noise covers")


def _of_one_release(price: Claim, claims: list[Claim], by: Purchase) -> tuple[Claim, ...]:
    """Gaussian noise of one scale, priced at an epsilon: its delta there, by rho or by mu."""
    rho = sum((claim.rho for claim in claims), Fraction(0))
    if not rho or any(claim.epsilon for claim in claims):
        return tuple(claims)
    scale = by.drawn[0][0][1]
    delta, square = delta_from_zcdp(rho, price.epsilon), square_of_gaussian(scale)
    if square is not None:
        delta = min(delta, delta_of(2 * rho * scale * scale * square, price.epsilon))
    return (approximate(price.epsilon, delta, relation=price.relation),)


def _change(one: Cells, two: Cells, every: bool) -> tuple[list[int], list[int]]:
    """Differences of the cells that both have, and counts (those of the second negative) of the others.

    Args:
        every: a cell that does not occur has noise, too, in law: it is a cell of 0 records.
    """
    if isinstance(one, Dense) and isinstance(two, Dense):
        return (one.values - two.values).ravel().tolist(), []
    assert isinstance(one, Sparse)
    assert isinstance(two, Sparse)
    at, back = both_have(one, two)
    apart = (one.values[at] - two.values[back]).tolist()
    lone = np.delete(one.values, at).tolist() + (-np.delete(two.values, back)).tolist()
    return (apart + lone, []) if every else (apart, lone)


def tail(noise: NoiseInfo, cut: int) -> float:
    """P(X > cut) of the stated law, summed term by term."""
    reach = abs(cut) + math.ceil(60 * noise.scale) + 1
    support = np.arange(-reach, reach + 1)
    power = np.abs(support) / noise.scale
    weights = np.exp(-power if noise.law == "geometric" else -(power**2) / 2)
    return float(weights[support > cut].sum() / weights.sum())


def _chosen(one: Purchase, two: Purchase) -> Loss:
    """The range of the log ratio of the two laws; and the largest change of a score, in sensitivities."""
    assert one.scores is not None
    assert two.scores is not None
    assert one.steps is not None
    assert two.steps is not None
    price, (first, sensitivity), second = one.prices[0], one.scores, two.scores[0]
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        moved = np.where(same, 0.0, np.abs(first - second))
    apart = one.steps[0] - two.steps[0]
    cost = Fraction(int(apart.max()) - int(apart.min())) / one.steps[1]
    claim = {"pure": pure(cost), "gdp": gdp(square_of_choice(cost) if cost else Fraction(0))}.get(
        price.kind, zcdp(cost * cost / 8)
    )
    claim = replace(claim, relation=price.relation)
    law = _ratio(price, (claim,))
    ratio = max(float(moved.max()) / float(sensitivity), law if claim.epsilon else math.sqrt(law))
    words = "a score of a private choice moves by more than its sensitivity"
    return Loss(one.kind, (claim,), 0.0, ratio if ratio == ratio else math.inf, words)


def _drawn(one: Purchase, two: Purchase) -> Loss:
    price = one.prices[0]
    words = "drawn rows are likelier on one side than the price covers"
    if one.levels:
        logs = [a[1] - b[1] for a, b in zip(one.levels, two.levels, strict=True)]
        loss = abs(float(np.concatenate(logs).sum()))
    elif not one.asked[2]:  # no counts were asked for
        loss = 0.0
    else:
        assert isinstance(one.answer, Codes)
        tried = [one.answer]
        if price.kind == "pure":  # whatever comes out, however rarely
            tried += alike(one.counts[0], two.counts[0], one.answer)
        sides = [[log_law(s.by, s.counts, rows) for rows in tried] for s in (one, two)]
        loss = max(abs(a - b) for a, b in zip(*sides, strict=True))
    if math.isnan(loss):
        return Loss(one.kind, ratio=math.nan)
    if math.isinf(loss):
        return Loss(one.kind, ratio=math.inf, words=words)
    claim = pure(Fraction(loss), relation=price.relation)
    # Sums of a thousand logarithms carry an error far below a billionth of a nat.
    ratio = 0.0 if loss < 1e-10 else loss / float(price.epsilon) if price.epsilon else math.inf
    return Loss(one.kind, (claim,), 0.0, ratio, words)


def _ratio(price: Claim, claims: Sequence[Claim]) -> float:
    """The true cost of the claims together as a share of a price of any kind."""
    epsilon = sum((c.epsilon for c in claims), Fraction(0))
    rho = sum((c.rho for c in claims), Fraction(0))
    if claims and claims[0].kind in ("gdp", "approximate"):
        what = {"gdp": "mu_squared", "approximate": "delta"}[claims[0].kind]
        cost, paid = sum(getattr(c, what) for c in claims), getattr(price, what)
        return float(cost / paid) if paid else math.inf if cost else 0.0
    if not epsilon and not rho:
        return 0.0
    if price.kind == "zcdp":
        if epsilon:
            rho += accountant.as_zcdp(pure(epsilon)).rho
        return float(rho / price.rho) if price.rho else math.inf
    if not price.epsilon:
        return math.inf
    if not rho:
        return float(epsilon / price.epsilon)
    if not price.delta or epsilon:
        return math.inf
    return float(delta_from_zcdp(rho, price.epsilon) / price.delta)


def short_of(total: Claim, losses: Sequence[Loss]) -> str:
    """What is wrong with all purchases together; empty where the reserved budget covers them."""
    if not total.is_dp:
        return ""
    gone = -math.expm1(sum(math.log1p(-loss.survival) for loss in losses))
    if gone > float(total.delta) * SLACK:
        return f"a threshold keeps its cells with probability {gone:.3g}"
    wide = {n: getattr(total, n) * Fraction(SLACK) for n in NUMBERS[:-1]}
    budget = replace(total, **wide)
    if total.kind in ("pure", "probabilistic"):
        budget = approximate(wide["epsilon"], wide["delta"], relation=total.relation)
    spent = [claim for loss in losses for claim in loss.claims]
    if budget.kind == "approximate" and any(claim.kind == "gdp" for claim in spent):
        # A page prints epsilon and delta alone; a run that is priced in mu is held to theirs.
        squares = mu_squared_for(budget.epsilon, budget.delta)
        budget = replace(budget, mu_squared=squares)
    if not accountant.within(budget, spent):
        return "all its purchases together show more than the reserved budget covers"
    return ""


def named_cells(cells: Sparse) -> dict[tuple[int, int], int]:
    """(key, level) -> count of the cells of a sparse table."""
    names = zip(cells.keys.tolist(), cells.levels.tolist(), strict=True)
    return dict(zip(names, cells.values.tolist(), strict=True))


def both_have(one: Sparse, two: Sparse) -> tuple[np.ndarray, np.ndarray]:
    """Places in each of the cells that both have."""
    where = {name: place for place, name in enumerate(named_cells(one))}
    held = [(where[name], place) for place, name in enumerate(named_cells(two)) if name in where]
    at, back = np.array(held, dtype=np.int64).reshape(-1, 2).T
    return at, back
