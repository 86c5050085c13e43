"""Draws from regressions: the twin, exact laws, the price by enumeration, and a saboteur that shows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from gibbous.contract.saboteurs import saboteurs
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.schema import Impossible, Schema, impossible_mask
from gibbous.core.tables import Counts
from gibbous.disintegrate.records import LocalEngine
from gibbous.perturb.add import Add
from gibbous.sampling.imputation.imputed_rows import (
    PARTS,
    WIDEST,
    Floor,
    ImputedRows,
    add_scores,
    parts,
    scores,
)
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals
from gibbous.structure.contexts import joint
from tests.imputation.made import LINKED, linked, records_from, repeated, schema_of

EACH = Fraction(1, 3)  # nats a draw
ALPHA = 1 / math.expm1(1 / 3)
SPIKES = np.array([[0.0, -np.inf, -np.inf], [-np.inf, 0.0, -np.inf], [0.0, 0.0, 0.0]])


def floor() -> Add:
    return Add.within(EACH, PARTS)


def law_of(logs: np.ndarray, add: Floor | None, allowed: np.ndarray | None = None) -> np.ndarray:
    """The law that a draw follows exactly, from its integer weights (laws, levels)."""
    whole = parts(logs, allowed).astype(np.int64)
    weights = whole.astype(np.float64) if add is None else add.weights(whole).astype(np.float64)
    weights = weights if allowed is None else weights * allowed
    return weights / weights.sum(axis=1, keepdims=True)


def counted(schema: Schema, values: np.ndarray) -> tuple[Counts, ...]:
    codes = np.asfortranarray(np.asarray(values).astype(np.uint8).reshape(-1, len(schema)))
    contexts: tuple[Context, ...] = (joint(schema, "seen"),)
    return LocalEngine.from_codes(Codes(schema, codes, secret=True)).tally(contexts)


Models = tuple[Conditional, ...]


@pytest.fixture(scope="module")
def models() -> Models:
    return fitted(linked(200), LINKED)


def fitted(values: np.ndarray, sizes: tuple[int, ...]) -> Models:
    return conditionals(records_from(values, sizes), Fit())


def row_law(models: Models, sizes: tuple[int, ...], add: Floor | None) -> np.ndarray:
    """Law of one row after one pass from a uniform seed row, over all rows in mixed-radix order."""
    cells = np.array(list(itertools.product(*map(range, sizes)))).T
    law = np.full(cells.shape[1], 1 / cells.shape[1])
    for model in models:
        step = 1
        for size in sizes[model.target + 1 :]:
            step *= size
        own = cells[model.target]
        rest = np.arange(cells.shape[1]) - own * step
        given = np.bincount(rest, law, minlength=cells.shape[1])[rest]
        law = given * law_of(scores(model, cells), add)[np.arange(len(own)), own]
    return law


def losses(tables: list[np.ndarray], sizes: tuple[int, ...], add: Floor) -> Iterator[float]:
    """Largest log ratio between the laws of one row, for each ordered pair of tables."""
    laws = [row_law(fitted(table, sizes), sizes, add) for table in tables]
    for one, two in itertools.permutations(laws, 2):
        yield float(np.log(one / two).max())


def test_the_compiled_scores_equal_their_twin_bit_for_bit(models: Models) -> None:
    state = linked(1000, seed=9).T.astype(np.uint8).copy()

    for model in models:
        fast = np.tile(model.base, (800, 1))
        add_scores(state, 100, model.others, model.starts, np.ascontiguousarray(model.table), fast)

        assert (fast == scores(model, state)[100:900]).all()


def test_a_law_is_whole_parts_that_sum_to_all_of_them_whatever_the_scores_are() -> None:
    rng = np.random.default_rng(2)
    logs = rng.normal(0, 30, (4000, 7))
    logs[rng.random(logs.shape) < 0.2] = -np.inf
    logs[:5] = [[-np.inf] * 7, [np.nan] * 7, [np.inf] + [0] * 6, [1e308] * 7, [-1e308] * 7]
    allowed = rng.random(logs.shape) < 0.6
    allowed[:, 3] = True

    free, masked = parts(logs, None), parts(logs, allowed)

    for whole in (free, masked):
        assert (whole.sum(axis=1) == PARTS).all()
        assert (whole <= PARTS).all()
    assert (masked[~allowed] == 0).all()
    assert (free[:3].max(axis=1) - free[:3].min(axis=1) < 7).all()
    odds = np.exp(logs[5:] - logs[5:].max(axis=1, keepdims=True))
    assert np.abs(free[5:] / PARTS - odds / odds.sum(axis=1, keepdims=True)).max() < 7 / PARTS


def test_weights_follow_the_formula_and_fit_the_widest_column() -> None:
    logs = np.log(np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]]))
    share = np.exp(logs)

    found = law_of(logs, floor())

    assert found == pytest.approx((share + ALPHA) / (1 + 3 * ALPHA), rel=1e-6)
    wide = np.full((1, WIDEST), -np.inf)
    wide[0, 5] = 0.0
    for epsilon in (Fraction(1, 10**5), Fraction(1), Fraction(700)):
        add = Add.within(epsilon, PARTS)
        kept = add.weights(parts(wide, None).astype(np.int64))[0]
        ratio = Fraction(int(kept[5]), int(kept[4]))
        assert math.log(ratio) <= add.loss(WIDEST, "add_remove", PARTS) <= epsilon


@pytest.mark.parametrize("mask", [False, True])
def test_one_draw_costs_its_price_between_any_two_laws_and_the_price_is_reached(mask: bool) -> None:
    rng = np.random.default_rng(3)
    logs = np.vstack([SPIKES, rng.normal(0, 4, (60, 3)), np.full((1, 3), np.nan)])
    allowed = np.tile([True, True, False], (len(logs), 1)) if mask else None

    found = np.log(law_of(logs, floor(), allowed)[:, :2])

    worst = float((found[:, None] - found[None, :]).max())
    price = float(floor().loss(3, "replace_one", PARTS))
    assert price - 1e-9 < worst <= price + 1e-12
    assert price == pytest.approx(1 / 3, abs=1e-7)


def test_a_row_costs_epsilon_between_tables_of_one_record_and_no_pair_costs_more() -> None:
    """All tables of up to three records of two binary columns; two opposite records reach epsilon."""
    cells = list(itertools.product((0, 1), repeat=2))
    tables = [
        np.array(held, dtype=int).reshape(-1, 2)
        for count in range(4)
        for held in itertools.combinations_with_replacement(cells, count)
    ]
    draw = ImputedRows(floor())
    price = float(draw.cost([joint(schema_of((2, 2)))], 1, "add_remove", 1).epsilon)

    found = list(losses(tables, (2, 2), floor()))

    assert price == pytest.approx(2 / 3, abs=1e-7)
    assert price - 1e-8 < max(found) <= price + 1e-12


@pytest.mark.slow
def test_regressed_tables_cost_no_more_than_tables_of_one_record() -> None:
    tables = [linked(120), linked(119), linked(300, seed=8), np.zeros((60, 3), dtype=int)]
    price = 1.0  # three draws of a third

    found = list(losses(tables, LINKED, floor()))

    assert 0.01 < max(found) <= price


def test_draws_that_forget_alpha_cost_more_than_their_price() -> None:
    saboteur = next(s for s in saboteurs() if s.breaks == "draw")
    tables = [np.zeros((1, 2), dtype=int), np.ones((1, 2), dtype=int)]

    with saboteur.apply():
        found = max(losses(tables, (2, 2), floor()))

    assert found > 5 * (2 / 3)


def test_the_price_counts_rows_passes_and_columns_and_not_the_rows_of_a_unit() -> None:
    contexts = [joint(schema_of((2, 3, 1, 4)))]
    one = ImputedRows(floor(), 2).cost(contexts, 5, "add_remove", 1)

    persons = ImputedRows(floor(), 2).cost(contexts, 5, "replace_one", 40)

    assert one.epsilon == persons.epsilon == 5 * 2 * 3 * floor().loss(2, "add_remove", PARTS)
    assert ImputedRows(None).cost(contexts, 5, "add_remove", 1).kind == "none"


def test_perturbed_rows_at_alpha_zero_are_imputed_rows_byte_for_byte() -> None:
    class Zero:
        """The floor at alpha = 0, which no budget reaches."""

        def weights(self, counts: np.ndarray) -> np.ndarray:
            return counts.astype(np.uint64)

        def loss(self, levels: int, relation: object, max_rows: int = 1) -> Fraction:
            raise AssertionError("alpha = 0 has no price")

    schema = schema_of(LINKED)
    counts = counted(schema, linked(200))

    plain = ImputedRows(None, 2)(counts, schema, 500, repeated(1)).values
    zero = ImputedRows(Zero(), 2)(counts, schema, 500, repeated(1)).values  # type: ignore[arg-type]

    assert (plain == zero).all()


def test_the_law_approaches_imputation_as_the_budget_grows(models: Models) -> None:
    exact = row_law(models, LINKED, None)

    apart = [
        np.abs(row_law(models, LINKED, Add.within(Fraction(e), PARTS)) - exact).sum() / 2
        for e in (1, 5, 20, 700)
    ]

    assert apart[0] > 0.1
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("private", [True, False])
def test_drawn_rows_follow_the_law_of_one_pass(models: Models, private: bool) -> None:
    """Chi-square over all 24 rows, 200,000 draws, fixed words; level 1e-6.

    The same rows are told from the law with 0.9 and 1.1 times the alpha; unperturbed ones from the
    law at 5 nats a draw.
    """
    schema, rows = schema_of(LINKED), 200_000
    add = Add.within(Fraction(2), PARTS) if private else None
    drawn = ImputedRows(add)(counted(schema, linked(200)), schema, rows, repeated(7)).values
    seen = np.bincount(drawn.astype(int) @ [8, 2, 1], minlength=24)

    def chi_square(other: Floor | None) -> float:
        expected = rows * row_law(models, LINKED, other)
        return float(((seen - expected) ** 2 / expected).sum())

    limit = 77.8  # of chi-square with 23 degrees of freedom at 1e-6
    assert chi_square(add) < limit
    wrong = [Add(add.alpha * Fraction(k, 10)) for k in (9, 11)] if add else []
    for other in wrong or [Add.within(Fraction(5), PARTS)]:
        assert chi_square(other) > limit


def test_impossible_rows_are_never_drawn() -> None:
    schema = schema_of(LINKED, (Impossible((("x0", (1,)), ("x1", (0, 2)))),))
    values = linked(300)
    values = values[~impossible_mask(schema, values)]

    for add in (None, floor()):
        rows = ImputedRows(add, 2)(counted(schema, values), schema, 3000, repeated(3)).values
        assert not impossible_mask(schema, rows).any()
        assert len(np.unique(rows @ [8, 2, 1])) > 15


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row_are_ordinary(rows: int) -> None:
    schema = schema_of(LINKED)

    drawn = ImputedRows(floor())(counted(schema, linked(60)), schema, rows, repeated(3))

    assert drawn.values.shape == (rows, 3)
