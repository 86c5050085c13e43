"""Numbers beside codes: grids, sums, recoding, parts; exact, priced, and forgotten with the curator."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from gibbous.core.claim import Relation, pure, zcdp
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import EngineFailure, PrivacyRefused, UsageError
from gibbous.core.moment import Moment, moment
from gibbous.core.number_grid import MOST, from_grid, grid_of, to_grid
from gibbous.core.recode import Edges, Groups, recoded, recoded_schema
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.encode.decode import decode
from gibbous.encode.encode import Encoder
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import (
    gaussian_for,
    geometric_for,
    moment_gaussian_for,
    moment_geometric_for,
)
from gibbous.structure.contexts import joint

COST = Column("cost", "numeric", edges=(0.0, 10.0, 50.0, 100.0), decimals=1, missing=True)
DAYS = Column("days", "numeric", edges=(0, 3, 7, 30), integer=True)
SCHEMA = Schema((Column("sex", "binary", levels=("f", "m")), COST, DAYS))


def margin(schema: Schema, column: int) -> Context:
    return Context((column,), (), (schema.sizes[column],), ())


def frame(rows: int = 500) -> pl.DataFrame:
    words = np.random.default_rng(5)
    cost = np.round(words.uniform(0, 100, rows), 1)
    days = words.integers(0, 31, rows)
    sex = words.integers(0, 2, rows)
    return pl.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "cost": pl.Series(cost).set(pl.Series(words.uniform(size=rows) < 0.1), None),
            "days": days,
        }
    )


def records(data: pl.DataFrame) -> Codes:
    encoder = Encoder(SCHEMA, data.height, numbers=(1, 2))
    for part in data.iter_slices(77):
        encoder.add(part)
    return encoder.finish()


def test_numbers_are_kept_beside_their_bins_whatever_the_type_of_the_column() -> None:
    data = frame()
    text = data.with_columns(pl.col("cost").cast(pl.String), pl.col("days").cast(pl.String))

    for one in (data, text):
        codes = records(one)
        known = data["cost"].is_not_null().to_numpy()
        assert np.array_equal(codes.number(1)[known], data["cost"].drop_nulls().to_numpy())
        assert np.array_equal(codes.number(2), data["days"].to_numpy().astype(float))
        assert np.array_equal(codes.values[:, 1] == 3, ~known)


def test_days_become_ordinals() -> None:
    column = Column("day", "date", edges=(736000, 737100, 738000))
    data = pl.DataFrame({"day": ["2018-11-01", "2019-01-02"]})
    encoder = Encoder(Schema((column,)), 2, numbers=(0,))

    encoder.add(data)

    days = [datetime.date(2018, 11, 1), datetime.date(2019, 1, 2)]
    assert encoder.finish().number(0).tolist() == [day.toordinal() for day in days]


def test_sums_equal_those_of_a_dictionary() -> None:
    data = frame()
    codes = records(data)
    grids = {1: grid_of(COST), 2: grid_of(DAYS)}
    sexes, context = ["f", "m"], margin(SCHEMA, 0)
    for factors in [(1,), (2,), (1, 1), (1, 2), (2, 2)]:
        found = (
            LocalEngine.from_codes(codes).sums([moment(SCHEMA, context, factors)])[0].cells.values
        )
        wanted = [0, 0]
        for sex, cost, days in data.iter_rows():
            values = {1: cost, 2: days}
            if any(values[f] is None for f in factors):
                continue
            product = 1
            for f in factors:
                product *= round((Fraction(str(values[f])) - grids[f].center) / grids[f].step)
            wanted[sexes.index(sex)] += product
        assert found.ravel().tolist() == wanted


def test_a_grid_is_exact_at_the_declared_precision_and_never_wider_than_its_bound() -> None:
    columns = [
        COST,
        DAYS,
        Column("x", "numeric", edges=(0.0, 1e6), decimals=2),
        Column("y", "numeric", edges=(-3.0, 7.0)),
        Column("z", "numeric", edges=(5, 5), integer=True),
        Column("w", "numeric", edges=(0, 10**12), integer=True),
    ]
    for column in columns:
        grid = grid_of(column)
        ends = np.array([float(grid.low), float(grid.high)])
        assert grid.half <= MOST
        assert np.abs(to_grid(np.array([-1e30, 1e30, *ends]), grid)).max() <= grid.half
        assert (
            np.abs(from_grid(to_grid(ends, grid), grid) - ends).max() <= float(grid.step) / 2 + 1e-9
        )
    tenths = np.arange(0, 1001) / 10
    assert np.allclose(from_grid(to_grid(tenths, grid_of(COST)), grid_of(COST)), tenths, atol=1e-12)
    with pytest.raises(UsageError):
        grid_of(SCHEMA.columns[0])


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("factors", [(1,), (1, 1), (1, 2)])
def test_the_price_of_a_moment_is_the_largest_change_that_enumeration_finds(
    relation: Relation, factors: tuple[int, ...]
) -> None:
    small = Schema(
        (
            Column("c", "binary", levels=("a", "b")),
            Column("u", "numeric", edges=(0, 4), integer=True),
            Column("v", "numeric", edges=(-3, 3), integer=True),
        )
    )
    one = moment(small, margin(small, 0), factors)
    halves = [grid_of(c).half if c.binned else 0 for c in small]

    def sums(row: tuple[int, int, int] | None) -> np.ndarray:
        out = np.zeros(2)
        if row is not None:
            out[row[0]] = np.prod([row[f] for f in factors])
        return out

    ranges = [range(-halves[f], halves[f] + 1) if f in factors else [0] for f in (1, 2)]
    rows = list(itertools.product([0, 1], *ranges))
    others = [None] if relation == "add_remove" else rows
    changes = [sums(a) - sums(b) for a in rows for b in others]
    l1 = max(np.abs(c).sum() for c in changes)
    l2 = max((c**2).sum() for c in changes)

    assert one.l1(relation, 1) == l1
    assert one.l2_squared(relation, 1) == l2


def test_noisy_moments_are_charged_exactly_and_refused_beyond_the_budget() -> None:
    one = moment(SCHEMA, margin(SCHEMA, 0), (1,))
    other = moment(SCHEMA, margin(SCHEMA, 0), (1, 2))
    half = Fraction(1, 2)
    noises = [moment_geometric_for(half, m) for m in (one, other)]
    curator = Curator(
        LocalEngine.from_codes(records(frame())), pure(Fraction(1)), SCHEMA, relation="add_remove"
    )

    tables = curator.noisy_moments([one, other], noises)

    assert half - Fraction(1, 10**6) < noises[0].moment_cost(one, "add_remove", 1).epsilon <= half
    assert [t.cells.values.shape for t in tables] == [(1, 2), (1, 2)]
    assert tables[0].noise.scale >= one.bound / 0.5
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        curator.noisy_moments([one], noises[:1])
    gauss = moment_gaussian_for(half, one, "replace_one", 1)
    assert gauss.moment_cost(one, "replace_one", 1).rho <= half
    assert gauss.sigma**2 == pytest.approx(4 * one.bound**2, rel=1e-6)


def test_the_noise_of_moments_has_its_stated_scale() -> None:
    one = Moment(margin(SCHEMA, 0), (2,), 15)
    codes = Codes(
        SCHEMA, np.zeros((1, 3), dtype=np.uint8), True, ((1, np.zeros(1)), (2, np.zeros(1)))
    )
    spread = []
    for _ in range(400):
        curator = Curator(
            LocalEngine.from_codes(codes), zcdp(Fraction(1)), SCHEMA, relation="add_remove"
        )
        found = curator.noisy_moments([one], [moment_gaussian_for(Fraction(1), one)])
        spread.append(found[0].cells.values[0, 1])
    # 15 / sqrt(2) = 10.6; the standard error of the sd of 400 draws is 0.38: false alarm 1e-6.
    assert abs(np.std(spread) - 10.6) < 1.9


def test_without_kept_numbers_nothing_is_summed() -> None:
    engine = LocalEngine.from_codes(Codes(SCHEMA, np.zeros((2, 3), dtype=np.uint8), True))

    with pytest.raises(EngineFailure, match="only its bins"):
        engine.sums([moment(SCHEMA, margin(SCHEMA, 0), (1,))])


def test_recoded_counts_equal_those_of_recoded_values() -> None:
    data = frame()
    changes = {1: Edges((0.0, 20.0, 100.0)), 2: Groups(np.array([0, 0, 1]))}
    curator = Curator(
        LocalEngine.from_codes(records(data)), pure(Fraction(10**6)), SCHEMA, relation="add_remove"
    )

    view = curator.recoded(changes)
    table = view.noisy_counts([joint(view.schema)], geometric_for(10**6, 1))[0]

    assert view.schema["days"].edges == (0, 7, 30)
    assert view.schema["cost"].edges == (0.0, 20.0, 100.0)
    wanted = np.zeros((2, 3, 2), dtype=int)
    for sex, cost, days in data.iter_rows():
        wanted["fm".index(sex), 2 if cost is None else int(cost >= 20), int(days >= 7)] += 1
    assert np.array_equal(table.cells.values.reshape(2, 3, 2), wanted)
    assert curator.spent == view.spent
    assert len(curator.spent) == 1
    curator.close()
    with pytest.raises(EngineFailure, match="closed"):
        view.noisy_counts([joint(view.schema)], geometric_for(1, 1))


def test_groups_of_levels_keep_structural_zeros_that_can_still_be_told() -> None:
    schema = Schema(
        (
            Column("a", "nominal", levels=("x", "y", "z")),
            Column("b", "ordinal", levels=("1", "2", "3", "4")),
        ),
        impossible=(
            Impossible((("a", (0, 1)), ("b", (3,)))),
            Impossible((("a", (0,)), ("b", (0,)))),
        ),
    )

    found = recoded_schema(
        schema, {0: Groups(np.array([0, 0, 1])), 1: Groups(np.array([0, 0, 1, 2]))}
    )

    assert found["a"].levels == ("x and 1 more", "z")
    assert found["b"].levels == ("1 and 1 more", "3", "4")
    assert found["b"].kind == "ordinal"
    assert found.impossible == (Impossible((("a", (0,)), ("b", (2,)))),)
    with pytest.raises(UsageError, match="groups"):
        recoded_schema(schema, {0: Groups(np.array([0, 2, 2]))})
    codes = Codes(schema, np.array([[2, 3], [1, 0]], dtype=np.uint8))
    assert recoded(codes, {0: Groups(np.array([0, 0, 1]))}).values.tolist() == [[1, 3], [0, 0]]


def test_a_structural_zero_over_new_bins_is_dropped_whole() -> None:
    """What is left of such a rule would forbid more than was declared."""
    rules = (
        Impossible((("sex", (0,)), ("days", (2,)))),
        Impossible((("sex", (1,)), ("cost", (2,)))),
    )

    found = recoded_schema(replace(SCHEMA, impossible=rules), {2: Edges((0, 10, 30))})

    assert found.impossible == rules[1:]


def test_groups_never_forget_that_a_fact_was_read_off_the_records() -> None:
    for fact in ("bounds", "bins", "missing"):
        guessed = Schema((replace(COST, sources=((fact, "inferred"),)),))

        mixed = recoded_schema(guessed, {0: Groups(np.array([0, 1, 0, 1]))})

        assert mixed["cost"].kind == "nominal"
        assert mixed.inferred() == ("cost: levels",)
    paid = Schema((replace(COST, sources=(("bins", "discovered"),)),))
    found = recoded_schema(paid, {0: Groups(np.array([0, 1, 0, 1]))})["cost"]
    assert found.sources == (("levels", "discovered"),)


def test_a_moment_of_another_schema_is_refused_before_anything_is_paid() -> None:
    """Under wider bounds a record adds more than the price of the narrow moment says."""
    schema = Schema((DAYS,))
    codes = Codes(schema, np.zeros((3, 1), dtype=np.uint8), True, ((0, np.full(3, 1000.0)),))
    curator = Curator(
        LocalEngine.from_codes(codes), pure(Fraction(1)), schema, relation="add_remove"
    )
    wide, cell = curator.recoded({0: Edges((0, 1000))}), Context((), (), (), ())
    narrow, own = moment(schema, cell, (0,)), moment(wide.schema, cell, (0,))

    with pytest.raises(PrivacyRefused, match="bound"):
        wide.noisy_moments([narrow], [moment_geometric_for(1, narrow)])

    assert curator.spent == ()
    assert own.bound > 30 * narrow.bound
    assert len(wide.noisy_moments([own], [moment_geometric_for(1, own)])) == 1


def test_parts_hold_every_record_once_and_pay_beside_each_other() -> None:
    codes = records(frame())
    curator = Curator(
        LocalEngine.from_codes(codes), pure(Fraction(1)), SCHEMA, relation="add_remove"
    )
    context = margin(SCHEMA, 2)

    parts = curator.split(3)
    exact = [part._count([context], keep=False)[0].cells.values for part in parts]
    for part in parts:
        part.noisy_counts([context], geometric_for(1, 1))

    assert np.array_equal(sum(exact), np.bincount(codes.values[:, 2], minlength=3)[None])
    assert all(100 < one.sum() < 240 for one in exact)  # 167 +- 11
    assert [len(part.spent) for part in parts] == [1, 1, 1]
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        parts[0].noisy_counts([context], geometric_for(Fraction(1, 100), 1))
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        curator.noisy_counts([context], geometric_for(Fraction(1, 100), 1))


def test_what_the_whole_paid_counts_in_every_part() -> None:
    curator = Curator(
        LocalEngine.from_codes(records(frame())), zcdp(Fraction(1)), SCHEMA, relation="add_remove"
    )
    context = margin(SCHEMA, 0)
    curator.noisy_counts([context], gaussian_for(Fraction(1, 2), 1))

    one, two = curator.split(2)
    one.noisy_counts([context], gaussian_for(Fraction(1, 2), 1))

    with pytest.raises(PrivacyRefused):
        two.noisy_counts([context], gaussian_for(Fraction(3, 5), 1))
    two.noisy_counts([context], gaussian_for(Fraction(1, 2), 1))


def test_persons_with_several_rows_are_not_divided() -> None:
    schema = Schema(SCHEMA.columns, unit=Unit("person", "id", 2))
    curator = Curator(LocalEngine(), pure(Fraction(1)), schema, relation="add_remove")

    with pytest.raises(PrivacyRefused, match="divided at random"):
        curator.split(2)


def test_drawn_numbers_are_decoded_within_bounds_at_their_precision() -> None:
    values = np.array([[0, 0, 0], [1, 3, 2]], dtype=np.uint8)
    codes = Codes(SCHEMA, values, numbers=((1, np.array([-5.0, 4.0])), (2, np.array([2.4, 99.0]))))

    found = decode(codes, seed=1)

    assert found["cost"].to_list() == [0.0, None]
    assert found["days"].to_list() == [2, 30]
