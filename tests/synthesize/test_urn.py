"""The drawing code: every word of an urn leads where the exact law says, and rows follow that law."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from gibbous.contract.cases import secret
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.dirichlet import Dirichlet
from gibbous.perturb.posterior import Posterior
from gibbous.perturb.smoothed import Smoothed
from gibbous.privacy.calibrate.dirichlet import WHOLE
from gibbous.sampling import urn_rows
from gibbous.sampling.urn_rows import EARLIER, RECORD, UNIFORM, PriorRows, SmoothedRows, UrnRows
from gibbous.structure.contexts import joint
from tests.histograms import exact_laws

TWO = Schema((Column("a", "nominal", levels=(0, 1)), Column("b", "nominal", levels=(0, 1, 2))))
ONE = Schema((Column("x", "nominal", levels=(0, 1, 2)),))


def counts(schema: Schema, *rows: tuple[int, ...]) -> list[Counts]:
    """Secret counts of a few records, as a draw gets them."""
    values = np.array(rows, dtype=np.int64).reshape(len(rows), len(schema))
    engine = LocalEngine.from_codes(secret(schema, values))
    return list(engine.tally((joint(schema, "seen"),)))


def table(*cells: int) -> list[Counts]:
    """One column with so many records a level."""
    return counts(ONE, *((level,) for level, n in enumerate(cells) for _ in range(n)))


# --- every boundary of the urn


@pytest.mark.parametrize("records", [0, 1, 3])
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(5), Fraction(10**7)])
@pytest.mark.parametrize("put_back", [True, False])
def test_each_ball_leads_to_its_place(records: int, alpha: Fraction, put_back: bool) -> None:
    posterior = Posterior(alpha, 4)
    ones, unit = posterior.balls
    whole = 4 * ones
    for t in range(3):
        places = [(UNIFORM, 0), (UNIFORM, 0)]
        points = [0, whole - 1]
        for number in range(records):
            places += [(RECORD, number)] * 2
            points += [whole + unit * number, whole + unit * (number + 1) - 1]
        for earlier in range(t if put_back else 0):
            places += [(EARLIER, earlier)] * 2
            at = whole + unit * (records + earlier)
            points += [at, at + unit - 1]
        total = whole + unit * (records + (t if put_back else 0))
        assert points[-1] == total - 1
        for place, point in zip(places, points, strict=True):
            length = 5 if put_back else 1
            totals = np.array(
                [whole + unit * (records + (s if put_back else 0)) for s in range(t + 1)]
            )
            all_points = np.zeros(t + 1, dtype=np.uint64)
            all_points[t] = point

            kind, number = urn_rows.origins(
                posterior, records, t + 1, exact_laws.aimed(all_points, totals), length=length
            )

            assert (kind[t], number[t] if kind[t] != UNIFORM else 0) == place


def test_each_urn_starts_anew_and_repeats_only_its_own_values() -> None:
    posterior = Posterior(Fraction(1, 1 << 28), 2)
    words = exact_laws.seeded(0)

    kind, number = urn_rows.origins(posterior, 1, 4000, words, length=4)

    place, earlier = np.arange(4000), kind == EARLIER
    assert earlier.sum() > 1500
    assert (number[earlier] // 4 == place[earlier] // 4).all()
    assert (number[earlier] < place[earlier]).all()
    assert not earlier[::4].any()


def test_the_share_of_the_uniform_law_is_exact_to_one_word() -> None:
    mixture = Smoothed(Fraction(1, 3), 4, 10)
    cut = mixture.parts
    points = np.array([0, cut - 1, cut, WHOLE - 1], dtype=np.uint64)
    totals = np.full(4, WHOLE, dtype=np.uint64)

    found = urn_rows.uniform_share(mixture, 4, exact_laws.aimed(points, totals))

    assert found.tolist() == [True, True, False, False]
    assert 0 <= Fraction(cut, WHOLE) - Fraction(1, 3) < Fraction(1, WHOLE)


# --- rows follow the exact law


def fits(drawn: Counter[exact_laws.Counts], law: exact_laws.Law) -> float:
    """P-value of a chi-square test."""
    total = sum(drawn.values())
    keys = list(law)
    return float(chisquare([drawn[k] for k in keys], [float(law[k]) * total for k in keys]).pvalue)


def tallied(values: np.ndarray, sets: int, levels: int = 3) -> Counter[exact_laws.Counts]:
    """Counts a level of each set of equal size."""
    return Counter(
        tuple(np.bincount(part, minlength=levels).tolist()) for part in values.reshape(sets, -1)
    )


@pytest.mark.statistical
def test_sets_follow_the_dirichlet_multinomial_law() -> None:
    # Level 1e-4; with a quarter more, or a fifth less alpha the same test fails below 1e-4.
    sets, draws, alpha = 20_000, 3, Fraction(1, 2)
    rows = UrnRows(Posterior(alpha, 3), sets)

    values = rows(table(3, 1, 0), ONE, sets * draws, exact_laws.seeded(1)).values[:, 0]

    drawn = tallied(values, sets)
    assert fits(drawn, exact_laws.urn((3, 1, 0), alpha, draws)) > 1e-4
    assert fits(drawn, exact_laws.urn((3, 1, 0), alpha * Fraction(5, 4), draws)) < 1e-4
    assert fits(drawn, exact_laws.urn((3, 1, 0), alpha * Fraction(4, 5), draws)) < 1e-4
    assert fits(drawn, exact_laws.prior((3, 1, 0), alpha, draws)) < 1e-4


@pytest.mark.statistical
def test_dp_prior_rows_follow_the_posterior_mean() -> None:
    # Level 1e-4; rows of one call in threes are 20,000 multinomial draws.
    alpha = Fraction(1, 2)

    values = PriorRows(Posterior(alpha, 3))(
        table(3, 1, 0), ONE, 60_000, exact_laws.seeded(2)
    ).values

    drawn = tallied(values[:, 0], 20_000)
    assert fits(drawn, exact_laws.prior((3, 1, 0), alpha, 3)) > 1e-4
    assert fits(drawn, exact_laws.prior((3, 1, 0), alpha * Fraction(5, 4), 3)) < 1e-4
    assert fits(drawn, exact_laws.urn((3, 1, 0), alpha, 3)) < 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("records", [2, 4, 9])
def test_smoothed_rows_follow_the_mixture(records: int) -> None:
    # Level 1e-4 a case; fewer, as many and more records than the mixture is made for.
    share = Fraction(1, 4)

    values = SmoothedRows(Smoothed(share, 3, records))(
        table(3, 1, 0), ONE, 30_000, exact_laws.seeded(3)
    ).values

    drawn = tallied(values[:, 0], 15_000)
    assert fits(drawn, exact_laws.smoothed((3, 1, 0), share, records, 2)) > 1e-4
    assert fits(drawn, exact_laws.smoothed((3, 1, 0), share / 2, records, 2)) < 1e-4


# --- tables of several columns, and odd ones


def test_rows_of_an_overwhelming_table_are_its_records() -> None:
    rows = [(1, 2), (0, 1)]
    posterior = Posterior(Fraction(1, 1 << 28), 6)

    drawn = UrnRows(posterior)(counts(TWO, *(rows * 500)), TWO, 200, exact_laws.seeded(4)).values

    assert {tuple(row) for row in drawn.tolist()} == set(rows)


def test_without_records_every_law_is_uniform() -> None:
    for draw in (
        PriorRows(Posterior(Fraction(3), 6)),
        SmoothedRows(Smoothed(Fraction(1, 100), 6, 10)),
        UrnRows(Posterior(Fraction(10**6), 6)),
    ):
        drawn = draw(counts(TWO), TWO, 6000, exact_laws.seeded(5)).values

        cells = np.bincount(drawn[:, 0].astype(int) * 3 + drawn[:, 1], minlength=6)
        assert chisquare(cells).pvalue > 1e-4


def test_dense_and_seen_counts_give_the_same_rows() -> None:
    values = np.array([(0, 1), (1, 2), (1, 2)])
    engine = LocalEngine.from_codes(secret(TWO, values))
    seen, dense = (list(engine.tally((joint(TWO, s),))) for s in ("seen", "dense"))  # type: ignore[arg-type]
    draw = UrnRows(Posterior(Fraction(1, 5), 6), 2)

    drawn = [draw(c, TWO, 100, exact_laws.seeded(6)).values for c in (seen, dense)]

    assert isinstance(seen[0].cells, Sparse)
    assert isinstance(dense[0].cells, Dense)
    assert np.array_equal(*drawn)


def test_a_table_wider_than_one_word_keeps_its_columns() -> None:
    wide = Schema(tuple(Column(f"x{j}", "nominal", levels=tuple(range(64))) for j in range(13)))
    row = tuple((7 * j + 3) % 64 for j in range(13))
    posterior = Posterior(Fraction(1, 1 << 28), 2)  # a prior that is never drawn from here

    drawn = PriorRows(posterior)(counts(wide, *([row] * 50)), wide, 20, exact_laws.seeded(7)).values

    assert joint(wide, "seen").parents
    assert {tuple(r) for r in drawn.tolist()} == {row}


def test_impossible_records_and_rows_do_not_appear() -> None:
    rule = Impossible((("a", (1,)), ("b", (0, 2))))
    schema = Schema(TWO.columns, impossible=(rule,))
    held = counts(schema, *([(1, 2)] * 30 + [(0, 0)] * 3))

    for draw in (
        UrnRows(Posterior(Fraction(1, 2), 6)),
        PriorRows(Posterior(Fraction(1, 2), 6)),
        SmoothedRows(Smoothed(Fraction(1, 2), 6, 3)),
    ):
        drawn = draw(held, schema, 400, exact_laws.seeded(8)).values.tolist()

        assert {tuple(r) for r in drawn} <= {(0, 0), (0, 1), (0, 2), (1, 1)}
        assert (0, 0) in {tuple(r) for r in drawn}


def test_more_records_than_an_urn_holds_are_read_as_many_as_it_holds() -> None:
    held = table(1, 1, 1)
    held[0].cells.values[:] = (1 << 33, 5, 5)
    records = urn_rows.Records(held, ONE)

    assert records.total == 1 << 32
    assert records.rows(np.array([0, (1 << 32) - 1])).tolist() == [[0, 0]]


# --- prices


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("most", [1, 3])
def test_each_draw_prices_the_integers_that_it_uses(relation: Any, most: int) -> None:
    posterior, mixture = Posterior(Fraction(7), 12), Smoothed(Fraction(1, 3), 12, 30)

    prices = [
        draw.cost((), 20, relation, most)
        for draw in (UrnRows(posterior, 4), PriorRows(posterior), SmoothedRows(mixture))
    ]

    assert [p.epsilon for p in prices] == [
        4 * posterior.urn_loss(5, most),
        posterior.fixed_loss(20, most),
        mixture.loss(20, most),
    ]
    assert {(p.kind, p.relation) for p in prices} == {("pure", relation)}


@pytest.mark.parametrize(
    "draw",
    [
        UrnRows(Posterior(Fraction(7), 5)),
        PriorRows(Posterior(Fraction(7), 5)),
        SmoothedRows(Smoothed(Fraction(1, 3), 5, 30)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_a_prior_for_fewer_cells_than_the_table_has_is_not_priced(draw: Any) -> None:
    with pytest.raises(ValueError, match="fewer cells"):
        draw.cost((joint(TWO, "seen"),), 20, "add_remove", 1)


def test_one_cell_and_no_rows_cost_nothing() -> None:
    single = Posterior(Fraction(7), 1)

    assert UrnRows(single).cost((), 20, "add_remove", 1).epsilon == 0
    assert PriorRows(Posterior(Fraction(7), 5)).cost((), 0, "add_remove", 1).epsilon == 0
    assert Smoothed(Fraction(1), 5, 5).loss(7) == 0


def test_the_records_of_an_urn_do_not_show_themselves() -> None:
    records = urn_rows.Records(table(2, 1, 0), ONE)

    assert repr(records) == "<Records, secret>"


def test_a_person_unit_is_priced_by_its_rows() -> None:
    schema = Schema(ONE.columns, unit=Unit("person", "id", 3))
    one, three = (Dirichlet(epsilon=1).plan(s, 10) for s in (ONE, schema))

    name = "alpha, virtual records a cell"
    assert dict(three.errors)[name] > 2 * dict(one.errors)[name]


def test_all_orders_of_a_set_are_equally_likely() -> None:
    # The urn repeats earlier values, and must not favor early places: exchangeable by enumeration.
    sets = 30_000
    values = UrnRows(Posterior(Fraction(1, 2), 3), sets)(
        table(1, 0, 0), ONE, 3 * sets, exact_laws.seeded(9)
    ).values[:, 0]

    drawn = Counter(tuple(row) for row in values.reshape(sets, 3).tolist())

    groups = [set(itertools.permutations(p)) for p in ((0, 0, 1), (0, 1, 2), (1, 1, 2))]
    for group in groups:
        assert chisquare([drawn[g] for g in sorted(group)]).pvalue > 1e-4
