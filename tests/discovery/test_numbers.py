"""Numbers under a bought schema: bounds are bought, then bins with a share of what the method has."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.discovery import Discovery
from gibbous.core.recode import Edges, recoded, recoded_schema
from gibbous.core.schema import Column, Schema, Source, Unit, Within
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Table, Tables
from gibbous.encode.cell_text import column_numbers, lenient_codes
from gibbous.encode.encode import Encoder
from gibbous.mechanisms._discovery import Discovering
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.text_curator import TextCurator
from gibbous.schema_discovery import _at_bounds, _at_ends, left_out, missed
from gibbous.structure.fine_bins import just_above, just_below
from tests.discovery.conftest import bought, engine_of, visits

ROWS = 12_000


def spending() -> pl.DataFrame:
    """Amounts (seven in ten are 0), numbers with many places, whole numbers with a heap, and codes."""
    draw = np.random.default_rng(3)
    amounts = np.where(draw.random(ROWS) < 0.7, 0, np.exp(draw.normal(5, 1, ROWS)))
    heap = np.where(draw.random(ROWS) < 0.2, 500, draw.integers(0, 2_000, ROWS))
    codes = draw.choice([*range(1, 61, 5), *range(901, 961, 5)], ROWS)
    return pl.DataFrame(
        {
            "amount": [f"{v:.6f}" for v in amounts],
            "level": [f"{v:.4f}" for v in draw.normal(40, 9, ROWS)],
            "heap": heap.astype(str).tolist(),
            "code": codes.astype(str).tolist(),
        }
    )


@pytest.mark.statistical
def test_zeros_heaps_and_codes_come_back_from_a_csv_without_a_schema() -> None:
    """At epsilon 3, about 1 in 10,000: a share of 12,000 rows is off by .017, a KS distance by .02."""
    frame = spending()
    known = Discovery(tuple(frame.columns), Unit())

    release = gb.synthesize(
        frame, known, gb.AdaptiveGibbs(epsilon=3, delta=1e-6), ledger=gb.Ledger.ephemeral()
    )

    rows = release.sets[0]
    for name in ("amount", "level", "heap", "code"):
        true, drawn = (t[name].cast(pl.Float64).to_numpy() for t in (frame, rows))
        assert ks_2samp(true, drawn).statistic < 0.05, name
    for name, value in (("amount", 0), ("heap", 500)):
        true, drawn = ((t[name].cast(pl.Float64) == value).mean() for t in (frame, rows))
        assert drawn == pytest.approx(true, abs=0.03), name
    codes = set(frame["code"].cast(pl.Int64))
    assert (rows["code"].cast(pl.Int64).is_in(codes)).mean() > 0.9


@pytest.mark.slow
def test_bins_are_paid_from_what_discovery_leaves() -> None:
    frame = spending()
    known = Discovery(tuple(frame.columns), Unit())
    method = Discovering(gb.AdaptiveGibbs(epsilon=1, delta=1e-6), known)
    total = method.plan(known.schema(), None).total
    curator = TextCurator(engine_of(frame, known), total, known.schema(), relation="add_remove")

    tables = method.run(curator, None)

    paid = [one.rho for one in curator.spent]
    tails = sum(one.delta for one in curator.spent)
    assert sum(paid) <= rho_from_approx(Fraction(1), Fraction(1, 10**6) - tails)
    assert sum(paid) > 0.97 * rho_from_approx(Fraction(1), Fraction(1, 10**6))
    assert isinstance(tables, Tables)
    assert {c.name for c in tables.schema if c.within is not None} == {"amount", "level", "heap"}
    assert curator.spent[-1].relation == total.relation


def read(frame: pl.DataFrame, schema: Schema) -> Codes:
    """What a method sees of the text of a frame."""
    known = Discovery(tuple(frame.columns), Unit())
    engine = engine_of(frame, known).coded(schema, lenient_codes, column_numbers)
    found = engine._look()
    assert isinstance(found, Codes)
    return found


def test_numbers_of_texts_are_those_that_a_reader_finds() -> None:
    frame, schema = visits(1_000), bought(visits(1_000))
    places = [j for j, column in enumerate(schema) if column.bins == 1 and column.binned]
    assert len(places) >= 2

    reader = Encoder(schema, frame.height, numbers=places)
    reader.add(frame.select(schema.names))
    found, wanted = read(frame, schema), reader.finish()

    assert [place for place, _ in found.numbers] == places
    for place in places:
        assert (found.number(place) == wanted.number(place)).all()


@pytest.mark.slow
def test_a_record_changes_one_bin_of_a_number_by_one_whatever_the_cut_points() -> None:
    """Brute force over every record of a small table; cells that do not parse among them."""
    frame = visits(60).with_columns(
        pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("?")).otherwise("cost").alias("cost")
    )
    schema = bought(visits(2_000).drop("patient", "note"), rho=1e6)
    place = schema.names.index("cost")
    column = schema.columns[place]
    low, high = column.edges[0], column.edges[-1]
    cuts = {place: Edges((low, low + (high - low) / 7, low + (high - low) / 3, high))}
    wider = recoded_schema(schema, cuts)

    def counts(rows: pl.DataFrame) -> np.ndarray:
        seen = recoded(read(rows, schema), cuts)
        return np.bincount(seen.by_column[place], minlength=wider.columns[place].size)

    whole = counts(frame)
    for left in range(frame.height):
        change = whole - counts(frame.filter(pl.int_range(pl.len()) != left))
        assert sorted(change.tolist()) == [0] * (len(change) - 1) + [1]


def test_a_bought_bound_that_many_rows_have_is_named_and_no_other() -> None:
    steps = (-100.0, -99.0, 0.0, 500.0, 500.0)

    def column(
        *weights: int, source: str = "discovered", edges: tuple[float, ...] = steps
    ) -> Column:
        law = Within(edges, weights)
        facts: dict[str, object] = {
            "integer": True,
            "within": law,
            "sources": (("bounds", source),),
        }
        return Column("x", "numeric", edges=(edges[0], edges[-1]), **facts)  # type: ignore[arg-type]

    assert list(_at_bounds(column(20, 500, 470, 10))) == [(-100.0, 0.02), (500.0, 0.01)]
    assert list(_at_bounds(column(4, 500, 492, 4))) == []
    assert list(_at_bounds(column(20, 500, 470, 10, source="declared"))) == []
    assert list(_at_bounds(column(500, 100, 400, edges=(1.0, 2.0, 9.0, 9.0)))) == [(9.0, 0.4)]
    positive = column(100, 400, 500, edges=(12.0, 13.0, 99.0, 99.0))
    assert list(_at_bounds(positive)) == [(12.0, 0.1), (99.0, 0.5)]
    assert list(_at_bounds(column(17, 966, 17, edges=(10.0, 11.0, 69.0, 69.0)))) == []  # even


def test_an_end_of_whole_numbers_is_named_where_rows_pile_up() -> None:
    def ends(
        counts: list[int], source: Source = "discovered", first: int = 3
    ) -> list[tuple[float, float]]:
        levels = tuple(range(first, first + 4))
        column = Column("x", "ordinal", levels, sources=(("levels", source),))
        context = Context((0,), (), (4,), ())
        table = Table(context, Dense(np.array([counts])), NoiseInfo("gaussian", 1.0))
        tables = Tables(Schema((column,)), (table,), Recipe("ancestral", (0,)))
        return list(_at_ends(column, tables, 0))

    assert ends([400, 300, 100, 200]) == [(6.0, 0.2)]
    assert ends([900, 50, 30, 20]) == [(3.0, 0.9)]
    assert ends([900, 50, 30, 20], first=0) == []  # where counts begin
    assert ends([300, 300, 300, 100]) == []
    assert ends([400, 300, 100, 200], "declared") == []


def told_of(tables: Tables, **stated: list[str]) -> list[str]:
    plan = SimpleNamespace(params={"discovery": stated})
    release = SimpleNamespace(schema=tables.schema, tables=tables, plan=plan)
    return list(missed(release))  # type: ignore[arg-type]


def test_missing_cells_of_stated_numbers_are_named_from_half_a_percent_on() -> None:
    paid: tuple[tuple[str, Source], ...] = (("levels", "discovered"), ("missing", "discovered"))
    public: tuple[tuple[str, Source], ...] = (("missing", "discovered"),)
    bought: tuple[tuple[str, Source], ...] = (("kind", "discovered"),)

    def column(name: str, kind: str, sources: tuple[tuple[str, Source], ...]) -> Column:
        return Column(name, kind, (3, 4), missing=True, sources=sources)  # type: ignore[arg-type]

    schema = Schema(
        (
            column("n", "ordinal", paid),
            column("l", "ordinal", public),
            column("k", "ordinal", bought),
        )
    )
    counts = np.array([[600, 304, 96]])
    tables = Tables(
        schema,
        tuple(
            Table(Context((j,), (), (3,), ()), Dense(counts), NoiseInfo("gaussian", 1.0))
            for j in range(3)
        ),
        Recipe("ancestral", (0, 1, 2)),
    )

    assert told_of(tables) == [
        "n: about 9.6% of rows are missing; cells that do not read as numbers count among them."
    ]


def test_what_is_left_out_is_said_by_what_was_stated_and_no_flag_twice() -> None:
    schema = Schema((Column("k", "nominal", ("a",)),), ignore=("usd", "day", "id"))

    usd, day, other = left_out(schema, {"numeric": ["usd", "k"], "date": ["day"]})

    assert "numbers below 1e15, as was stated: usd. Write them as 12.50" in usd
    assert "days from 1850 to 2149, as was stated: day. Write them as 2024-01-31" in day
    assert "were found: id. State what is known (--numeric" in other
    assert not any("--numeric" in line or "--days" in line for line in (usd, day))
    assert len(list(left_out(schema, None))) == 1


def test_a_bound_of_days_is_named_as_a_day_and_no_share_is_above_one() -> None:
    first = 737425.0  # 2020-01-01
    law = Within((first, first + 1, first + 9, first + 9), (0, 50, 50))
    sources: tuple[tuple[str, Source], ...] = (("kind", "discovered"), ("bounds", "discovered"))
    day = Column("x", "date", edges=(first, first + 9), clamp=True, within=law, sources=sources)
    kind = Column("k", "nominal", ("a",), other="other", sources=(("kind", "discovered"),))
    noisy = Table(
        Context((1,), (), (2,), ()), Dense(np.array([[-9, 99]])), NoiseInfo("gaussian", 9.0)
    )
    tables = Tables(Schema((day, kind)), (noisy,), Recipe("ancestral", (0,)))

    said = told_of(tables)

    assert "recode such days (those before 1850 or after 2149 are never found)" in said[0]
    assert "x: about 50.0% of rows have 2020-01-10, which is a bound" in said[0]
    assert said[1].startswith(
        "k: about 100.0% of rows are in 'other' (rare levels). If they are numbers"
    )


@pytest.mark.parametrize("places", [0, 2, 6, None])
@pytest.mark.parametrize("value", [-1e15, -0.5, 0.0, 1e-12, 3.25, 1e12, 9e15])
def test_the_next_value_of_a_column_is_another_float(places: int | None, value: float) -> None:
    column = Column("x", "numeric", edges=(-1e16, 1e16), decimals=places)

    assert just_below(column, value) < value < just_above(column, value)


@pytest.mark.parametrize("stated", [{}, {"bounds": {"a": (0, 1e13)}}])
@pytest.mark.slow
def test_large_numbers_with_more_places_than_a_float_has_there_are_released(
    stated: dict[str, Any],
) -> None:
    """Steps of a millionth at 1e12 are no steps of floats: such a column ended a run that was charged."""
    amounts = np.random.default_rng(4).random(2_000) * 1e13
    frame = pl.DataFrame({"a": np.round(amounts, 6), "b": ["x", "y"] * 1_000})
    known = gb.Discovery(["a", "b"], gb.Unit(), **stated)

    release = gb.synthesize(
        frame,
        known,
        gb.AdaptiveGibbs(epsilon=10, delta=1e-6),
        rows=2_000,
        ledger=gb.Ledger.ephemeral(),
    )

    assert release.sets[0]["a"].mean() == pytest.approx(amounts.mean(), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("others", "said"), [(0, True), (1_000, False)])
def test_a_column_of_which_one_value_was_found_is_named(others: int, said: bool) -> None:
    frame = pl.DataFrame({"a": [0] * (3_000 - others) + [1] * others, "b": ["x", "y"] * 1_500})
    method = gb.AdaptiveGibbs(epsilon=10, delta=1e-6)

    release = gb.synthesize(
        frame, gb.Discovery(["a", "b"], gb.Unit()), method, rows=50, ledger=gb.Ledger.ephemeral()
    )

    assert any("a: every row has 0." in line for line in missed(release)) == said


@pytest.mark.slow
@pytest.mark.parametrize(("top", "said"), [(1e-12, True), (1e-7, True), (1e-3, False)])
def test_numbers_below_the_grid_of_bounds_are_named(top: float, said: bool) -> None:
    frame = pl.DataFrame(
        {"a": np.random.default_rng(4).random(2_000) * top, "b": ["x", "y"] * 1_000}
    )
    method = gb.AdaptiveGibbs(epsilon=10, delta=1e-6)

    release = gb.synthesize(
        frame, gb.Discovery(["a", "b"], gb.Unit()), method, rows=50, ledger=gb.Ledger.ephemeral()
    )

    assert any("too close to 0" in line for line in missed(release)) == said


@pytest.mark.slow
@pytest.mark.parametrize(("middle", "said"), [(1.6e9, True), (1_500, False), (3e7, False)])
def test_numbers_in_a_small_part_of_their_bounds_are_named(middle: float, said: bool) -> None:
    """Seconds of ten days since 1970; years, of which each is a bin; amounts over two powers of ten."""
    rng = np.random.default_rng(5)
    spread = {1.6e9: 1e6, 1_500: 25, 3e7: 1e7}[middle]
    numbers = np.abs(rng.normal(middle, spread, 6_000)).astype(int)
    frame = pl.DataFrame({"a": numbers, "b": ["x", "y"] * 3_000})
    method = gb.AdaptiveGibbs(epsilon=10, delta=1e-6)

    release = gb.synthesize(
        frame, gb.Discovery(["a", "b"], gb.Unit()), method, rows=50, ledger=gb.Ledger.ephemeral()
    )

    assert any("a: nearly all numbers lie between" in line for line in missed(release)) == said


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(("spread", "said"), [(0.5, False), (2.5, True)])
@pytest.mark.slow
def test_a_sum_that_few_rows_hold_is_named(spread: float, said: bool, declared: bool) -> None:
    """A lognormal spread of 2.5: a hundredth of the rows hold more than half; of .5, some 3 %."""
    costs = np.round(np.random.default_rng(4).lognormal(6, spread, 6_000), 2)
    frame = pl.DataFrame({"a": costs, "b": ["x", "y"] * 3_000})
    method = gb.AdaptiveGibbs(epsilon=10, delta=1e-6)

    known: Any = gb.Discovery(["a", "b"], gb.Unit())
    if declared:
        amounts = gb.Column("a", "numeric", edges=(0.0, 1e7), decimals=2, clamp=True)
        known = gb.Schema((amounts, gb.Column("b", "nominal", levels=("x", "y"))))

    release = gb.synthesize(frame, known, method, rows=50, ledger=gb.Ledger.ephemeral())

    told = [line for line in missed(release) if "a: a hundredth of the rows hold" in line]
    assert len(told) == said
    assert all(("became it" in line) != declared for line in told)
