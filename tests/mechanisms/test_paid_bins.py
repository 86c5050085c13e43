"""paid_bins: narrow counts are paid, merged and drawn from; records reach bins through noise alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError, PrivacyRefused, SchemaMismatch, UsageError
from gibbous.core.params import as_json
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.core.tables import KnownCounts, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.encode.encode import encode
from gibbous.mechanisms import paid_bins
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms._narrow_counts import BINS, looks_at
from gibbous.mechanisms._paid_facts import with_paid_facts
from gibbous.mechanisms.paid_bins import PaidBins
from gibbous.mechanisms.parallel import Parallel
from gibbous.mechanisms.per_set import PerSet
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import gaussian_for
from gibbous.sampling.sample import sample
from gibbous.structure import fine_bins
from gibbous.structure.fine_bins import CELLS, CUT, PARTS, counted_edges, finer_edges
from gibbous.write.release_digest import digest_of
from tests.blinded import blinded

SEX = Column("sex", "binary", levels=("f", "m"))
COST = Column("cost", "numeric", edges=(0.0, 5e4, 1e5), decimals=2, missing=True, clamp=True)
STAY = Column("stay", "numeric", edges=(1, 60, 120), integer=True)
DAY = Column("day", "date", edges=(737060.0, 737425.0, 737790.0))
SKEWED = Schema((SEX, COST, STAY, DAY))


def skewed(rows: int, seed: int = 1) -> dict[int, np.ndarray]:
    """Log-normal costs around 3,000, stays that are mostly 2 or 3 days, even days; by position."""
    rng = np.random.default_rng(seed)
    return {
        1: np.round(rng.lognormal(8, 1, rows).clip(0, 1e5), 2),
        2: np.where(rng.random(rows) < 0.7, rng.integers(2, 4, rows), rng.integers(1, 121, rows)),
        3: rng.integers(737060, 737791, rows),
    }


def secret(rows: int, seed: int = 1) -> Codes:
    """The records; every tenth cost is missing."""
    numbers = {j: found.astype(float) for j, found in skewed(rows, seed).items()}
    values = np.zeros((len(SKEWED), rows), dtype=np.uint8)
    values[0] = np.arange(rows) % 2
    for j, found in numbers.items():
        values[j] = np.searchsorted(SKEWED.columns[j].edges[1:-1], found, side="right")
    values[1][::10] = 2
    return Codes(SKEWED, values.T, secret=True, numbers=tuple(numbers.items()))


def run(mechanism: Any, rows: int = 2000, seed: int = 1, out: int | None = None) -> tuple[Any, Any]:
    """What a mechanism releases of these records, and what it paid."""
    engine = LocalEngine.from_codes(secret(rows, seed))
    total = mechanism.plan(SKEWED, out).total
    desk = Curator(engine, total, SKEWED, relation=mechanism.relation)
    return mechanism.run(desk, out), desk.spent


def frame(rows: int, seed: int = 1) -> pl.DataFrame:
    """The same as values."""
    numbers = skewed(rows, seed)
    cost = [None if i % 10 == 0 else c for i, c in enumerate(numbers[1].tolist())]
    days = pl.Series((numbers[3] - 719163).astype(np.int32)).cast(pl.Date)
    sex = ["fm"[i % 2] for i in range(rows)]
    return pl.DataFrame({"sex": sex, "cost": cost, "stay": numbers[2], "day": days})


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "method",
    [
        gb.Laplace(epsilon=2),
        gb.Privbayes(epsilon=1),
        gb.Sbhg(epsilon=3, delta=1e-5),
        PerSet(gb.Laplace(epsilon=1)),
        Parallel(gb.Laplace(epsilon=1), parts=2),
    ],
    ids=lambda m: m.about.name,
)
def test_counts_and_method_cost_together_what_the_method_costs(method: Any, relation: Any) -> None:
    inside = replace(method, relation=relation)
    one = PaidBins(inside, bins=4, share=0.2)

    plan = one.plan(SKEWED, None)
    found, spent = run(one)

    assert plan.total.amount() == inside.plan(SKEWED, None).total.amount()
    assert plan.total.relation == relation
    stated = sum((s.claim.epsilon for s in plan.spends), Fraction(0))
    assert plan.total.epsilon * Fraction(999, 1000) < stated <= plan.total.epsilon
    # A fifth of the budget: two counts of cost and two of stay, the second cut finer, and three more of
    # cost, cut finer each time, for a quarter of the price each.
    tables = float(plan.total.epsilon) / 5 / 4.75
    for claim, share in zip(spent[:5], (2, 2, 0.25, 0.25, 0.25), strict=True):
        assert claim.epsilon == pytest.approx(tables * share, rel=1e-6)
    paid = sum((claim.epsilon for claim in spent), Fraction(0))
    assert plan.total.epsilon * Fraction(99, 100) < paid <= plan.total.epsilon
    assert isinstance(found, Tables)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_gaussian_methods_give_a_share_of_their_whole(relation: Any) -> None:
    one = PaidBins(gb.NoisyPegs(epsilon=1, delta=1e-6, relation=relation), share=0.25)
    whole = mu_squared_for(Fraction(1), Fraction(1, 10**6))

    _, spent = run(one)

    assert {claim.kind for claim in spent} == {"gdp"}
    for claim, share in zip(spent[:5], (2, 2, 0.25, 0.25, 0.25), strict=True):
        assert float(claim.mu_squared) == pytest.approx(float(whole) / 4 / 4.75 * share, rel=1e-6)
    assert whole * Fraction(99, 100) < sum(claim.mu_squared for claim in spent) <= whole


@pytest.mark.slow
def test_bins_hold_about_as_many_records_each_and_numbers_follow_the_narrow_counts() -> None:
    ledger = gb.Ledger.ephemeral()
    one = PaidBins(gb.Laplace(epsilon=90), bins=8, columns=("cost",), grid="log", share=0.5)

    found = gb.synthesize(frame(4000), SKEWED, one, rows=4000, seed=1, ledger=ledger)

    column = found.schema["cost"]
    real, drawn = frame(4000)["cost"].drop_nulls(), found.sets[0]["cost"].drop_nulls()
    counts = np.histogram(real, column.edges)[0]
    assert column.source("bins") == "discovered"
    assert column.bins == 8
    assert np.abs(counts - 450).max() < 75  # narrow bins hold up to 60
    # The largest difference of two samples of 3,600: .046 with probability .001; bins of 50,000: .43.
    assert ks(real.to_numpy(), drawn.to_numpy()) < 0.06
    assert found.sets[0]["cost"].null_count() == pytest.approx(400, abs=110)
    assert found.schema.columns[2:] == SKEWED.columns[2:]


def test_numbers_of_even_bins_have_no_law_inside() -> None:
    even, _ = run(PaidBins(gb.Laplace(), bins=4, within="uniform"))
    paid, _ = run(PaidBins(gb.Laplace(), bins=4))
    steps = paid.schema["stay"].within.edges

    assert even.schema["cost"].within is None
    assert even.schema["cost"].bins <= 4
    assert set(steps) <= set(range(1, 121))
    assert steps[:2] == (1, 2)  # a bound is a value of its own
    assert steps[-2:] == (120, 120)


def ks(one: np.ndarray, two: np.ndarray) -> float:
    """Largest difference of the two distribution functions."""
    at = np.sort(np.concatenate([one, two]))
    below = [np.searchsorted(np.sort(v), at, side="right") / len(v) for v in (one, two)]
    return float(np.abs(below[0] - below[1]).max())


def test_a_release_is_read_verified_and_drawn_from_again(tmp_path: Path) -> None:
    one = PaidBins(gb.Laplace(epsilon=5), bins=4, columns=("stay", "day"))
    made = gb.synthesize(
        frame(500), SKEWED, one, rows=300, sets=2, seed=3, out=tmp_path / "out",
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    found = gb.load(tmp_path / "out")
    gb.verify(tmp_path / "out")

    assert found.schema == made.schema
    assert found.schema["day"].within is not None
    assert found.sample(300, seed=3).equals(made.sets[0])
    assert encode(made.sets[1], found.schema).rows == 300
    assert encode(made.sets[1], SKEWED).rows == 300
    params = found.receipt["method"]["params"]
    assert params["method"] == "laplace"
    assert params["columns"] == ["stay", "day"]
    assert gb.infer.Analysis(found).facts.method == "laplace"


def test_rows_that_were_paid_for_together_keep_the_new_bins() -> None:
    found, spent = run(PaidBins(gb.Dirichlet(epsilon=5), bins=3), rows=200, out=40)

    assert isinstance(found, Codes)
    assert found.rows == 40
    assert found.schema["cost"].within is not None
    assert 4.999 < sum(claim.epsilon for claim in spent) <= 5


# --- records and bins


@pytest.mark.parametrize("within", ["paid", "uniform"])
def test_records_reach_bins_through_noise_alone(within: Any) -> None:
    def blind(seed: int) -> str:
        with blinded():
            return digest_of(run(PaidBins(gb.Laplace(), bins=4, within=within), 300, seed)[0])

    assert blind(1) == blind(40)


@pytest.mark.slow
@pytest.mark.parametrize("look", [None, 0, 1, 2, 3, 4], ids=str)
def test_cut_points_of_raw_counts_are_seen_by_the_blind_run(
    monkeypatch: Any, look: int | None
) -> None:
    """The saboteur: what the engine counted in one of five looks is used without noise.

    Every bin is cut, so that each look says something; None is no saboteur.
    """
    honest, seen = Curator.noisy_counts, list[Any]()

    def raw(desk: Curator, contexts: Any, noise: Any) -> Any:
        tables = honest(desk, contexts, noise)
        seen.append(tables)
        if len(seen) - 1 != look:  # the counts of numbers come first
            return tables
        secrets = desk._count(contexts, keep=False)
        return tuple(replace(t, cells=s.cells) for t, s in zip(tables, secrets, strict=True))

    monkeypatch.setattr(Curator, "noisy_counts", raw)
    monkeypatch.setattr(fine_bins, "FILLED", -math.inf)

    def blind(seed: int) -> str:
        seen.clear()
        with blinded():
            one = PaidBins(gb.Laplace(epsilon=5_000), bins=4, columns=("cost",))
            return digest_of(run(one, 300, seed)[0])

    assert (blind(1) == blind(40)) == (look is None)


@pytest.mark.slow
@pytest.mark.parametrize("raw", [False, True])
def test_what_is_known_of_bins_came_through_noise(monkeypatch: Any, raw: bool) -> None:
    """The saboteur: the method inside is told what the records have in each bin."""

    def blind(seed: int) -> str:
        def told(looks: Any, edges: Any, size: int) -> KnownCounts:
            counts = np.histogram(skewed(300, seed)[2], np.array(edges))[0]
            return KnownCounts(counts.astype(np.float64), np.ones(size))

        if raw:
            monkeypatch.setattr(paid_bins, "counts_of_bins", told)
        with blinded():
            inside = gb.AdaptiveGibbs(epsilon=5, delta=1e-6)
            return digest_of(run(PaidBins(inside, bins=4, columns=("stay",)), 300, seed)[0])

    assert (blind(1) == blind(40)) == (not raw)


@pytest.mark.slow
@pytest.mark.parametrize("method", [gb.Laplace(), gb.NoisyPegs()], ids=lambda m: m.about.name)
def test_counts_that_nobody_charges_are_refused_by_the_curator(
    method: Any, monkeypatch: Any
) -> None:
    """The saboteur: the method inside is given the whole budget beside the narrow counts."""
    honest = PaidBins._split
    greedy = lambda one, *given: replace(honest(one, *given), inside=method)  # noqa: E731
    monkeypatch.setattr(PaidBins, "_split", greedy)

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        run(PaidBins(method))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_noise_of_narrow_counts_covers_real_neighbors(relation: Any, monkeypatch: Any) -> None:
    """A record is in one bin and in one part of it of each column: 6 (replace one: 12).

    It is in one part of a part of cost and of day, and in two more of cost, too, whose noise is louder.
    """
    scales = []
    honest = paid_bins.geometric_for

    def noted(*given: Any) -> Any:
        scales.append(honest(*given))
        return scales[-1]

    monkeypatch.setattr(paid_bins, "geometric_for", noted)
    one = PaidBins(gb.Laplace(epsilon=1, relation=relation), columns=("cost", "stay", "day"))
    run(one)

    sides = 1 if relation == "add_remove" else 2
    first, *later = (noise.info().scale for noise in scales[-4:])
    spent = sides * (6 / first + 2 / later[0] + 1 / later[1] + 1 / later[2])
    assert spent <= 0.2
    assert spent == pytest.approx(0.2, rel=1e-6)
    assert later == pytest.approx([4 * first] * 3, rel=1e-6)


def test_persons_with_several_rows_pay_for_all_of_them() -> None:
    schema = replace(SKEWED, unit=Unit("person", "who", 4))

    alone, crowd = (dict(PaidBins(gb.Laplace()).plan(s, None).errors) for s in (SKEWED, schema))

    name = "noise sd of a narrow bin, counts"
    assert crowd[name] == pytest.approx(4 * alone[name], rel=1e-3)


# --- what stays as it was


def test_without_numeric_columns_the_method_has_the_whole_budget() -> None:
    schema = Schema((SEX, DAY))
    one = PaidBins(gb.Laplace(epsilon=1))

    plan = one.plan(schema, 10)

    assert plan.spends == gb.Laplace(epsilon=1).plan(schema, 10).spends
    assert plan.mechanism == "paid_bins"
    assert plan.numbers == ()


def test_a_column_that_a_structural_zero_names_keeps_its_bins() -> None:
    rule = Impossible((("stay", (1,)), ("sex", (0,))))
    schema = replace(SKEWED, impossible=(rule,))
    one = PaidBins(gb.Laplace(), bins=4)

    assert one.plan(schema, None).numbers == (1,)
    with pytest.raises(UsageError, match="keeps the bins"):
        PaidBins(gb.Laplace(), columns=("stay",)).plan(schema, None)
    with pytest.raises(UsageError, match="columns of PaidBins names 1"):
        PaidBins(gb.Laplace(), columns=(1,)).plan(schema, None)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_record_and_one_record_are_ordinary(rows: int) -> None:
    found, _ = run(PaidBins(gb.Laplace(epsilon=1), bins=4), rows=rows)

    drawn = sample(found, 50, seed=1)
    assert drawn.rows == 50
    assert (drawn.values < np.array(found.schema.sizes)).all()


@pytest.mark.slow
def test_a_budget_that_leaves_no_noise_at_all_is_ordinary() -> None:
    found, _ = run(PaidBins(gb.Laplace(epsilon=10_000), bins=4, share=0.9, columns=("cost",)))

    assert found.schema["cost"].bins == 4


@pytest.mark.slow
def test_one_bin_and_the_schemas_own_bins_are_possible() -> None:
    whole, _ = run(PaidBins(gb.Laplace(), bins=1, columns=("cost",)))
    own, _ = run(PaidBins(gb.Laplace(epsilon=50), bins=2, grid="schema"))

    assert whole.schema["cost"].edges == (0.0, 1e5)
    assert whole.schema["cost"].within is not None
    assert own.schema["stay"].edges == (1, 60, 120)
    assert own.schema["stay"].within.edges == (1, 60, 120, 120)


# --- the rule: bounds alone


BOUNDS = Schema(
    tuple(replace(c, edges=(c.edges[0], c.edges[-1])) if c.binned else c for c in SKEWED)
)


def test_bounds_without_cuts_get_paid_bins_and_cuts_stay_as_they_are() -> None:
    plain = gb.AdaptiveGibbs(epsilon=1, delta=1e-9)

    ruled, declared = with_paid_facts(plain, BOUNDS), with_paid_facts(plain, SKEWED)

    assert isinstance(ruled, PaidBins)
    assert ruled.columns == ("cost", "stay", "day")
    assert declared is plain
    assert gb.plan(SKEWED, plain).spends == plain.plan(SKEWED, None).spends
    assert gb.plan(BOUNDS, plain).mechanism == "paid_bins"
    assert gb.plan(BOUNDS, plain).total.amount() == "epsilon = 1, delta = 1e-09"


def test_bins_of_one_column_are_geometric_beside_one_table_and_of_two_gaussian() -> None:
    """Whichever has less noise in its loudest count; within an account that is decided, what is decided."""
    kinds = {}
    for columns in (("sex", "stay"), ("sex", "stay", "cost")):
        schema = replace(BOUNDS, columns=tuple(c for c in BOUNDS if c.name in columns))
        plan = gb.plan(schema, gb.AdaptiveGibbs(epsilon=1, delta=1e-9))
        kinds[len(columns)] = {spend.claim.kind for spend in plan.spends}
        with in_account("zcdp"):
            within = with_paid_facts(gb.AdaptiveGibbs(), schema).plan(schema, None)
        assert {spend.claim.kind for spend in within.spends} == {"zcdp"}
        assert within.total.measure == "zcdp"

    assert kinds[2] == {"pure"}
    assert len(kinds[3]) == 1
    assert kinds[3] <= {"zcdp", "gdp"}


@pytest.mark.parametrize("method", [gb.Modips(), gb.Pegs(), gb.Contingency()], ids=str)
def test_methods_that_take_no_bins_stay_as_they_are(method: Any) -> None:
    assert with_paid_facts(method, BOUNDS) is method


@pytest.mark.slow
def test_zeros_a_cap_and_a_heap_come_back_as_values() -> None:
    rng = np.random.default_rng(3)
    gain = np.where(rng.random(20_000) < 0.9, 0, np.exp(8 + rng.normal(size=20_000))).astype(int)
    gain[:600], gain[600:1200] = 99_999, 7_688
    gain = np.minimum(gain, 99_999)
    schema = Schema((SEX, Column("gain", "numeric", edges=(0, 99_999), integer=True)))
    real = pl.DataFrame({"sex": ["f", "m"] * 10_000, "gain": gain})

    made = gb.synthesize(
        real, schema, gb.AdaptiveGibbs(epsilon=3, delta=1e-9), rows=20_000, seed=1,
        ledger=gb.Ledger.ephemeral(),
    ).sets[0]["gain"].to_numpy()  # fmt: skip

    # Noise of one count at this budget: sigma is below 15; a sample of 600 has 24.
    for value, room in ((0, 300), (99_999, 200), (7_688, 200)):
        assert abs((made == value).sum() - (gain == value).sum()) < room
    assert abs(made.mean() / gain.mean() - 1) < 0.15


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_price_of_both_counts_covers_every_pair_of_neighbors(relation: Any) -> None:
    """Brute force: over all pairs of records, the squared distance of all counts times 1 / (2 sigma^2)."""
    column = Column("x", "numeric", edges=(0, 12), integer=True)
    narrow = (0.0, 1.0, 4.0, 12.0)
    fine = finer_edges(column, narrow, np.array([90.0, 90, 90, 90]), 1.0, 32)
    cells = [counted_edges(column, narrow), counted_edges(column, fine)]
    rows = [np.concatenate([np.histogram([x], cut)[0] for cut in cells]) for x in range(13)]
    worst = max(
        int(((a - b) ** 2).sum())
        for a in rows
        for b in (rows if relation == "replace_one" else [0 * rows[0]])
    )
    noise = gaussian_for(Fraction(1, 50), 2, relation)

    assert worst == (4 if relation == "replace_one" else 2)
    assert worst / (2 * noise.sigma**2) <= Fraction(1, 50)
    assert worst / (2 * (noise.sigma / 2) ** 2) > Fraction(1, 50)  # half the noise does not


@pytest.mark.parametrize("decimals", [6, None])
def test_of_very_many_bins_with_rows_those_with_most_are_cut(decimals: int | None) -> None:
    """A column of many rows may fill all parts of the second look: their number bounds time and cells."""
    column = Column("x", "numeric", edges=(0, 65_536), decimals=decimals)
    narrow = tuple(float(edge) for edge in range(65_537))
    counts = 100.0 + np.arange(65_536) % 7

    fine = np.array(finer_edges(column, narrow, counts, 1.0, 4096))
    parts = np.histogram(fine[:-1], narrow)[0]

    assert (parts > 1).sum() == CUT
    assert parts.max() == CELLS // CUT
    assert counts[parts > 1].min() == counts.max()


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_five_looks_cost_what_is_spent_on_them(relation: Any) -> None:
    """Brute force: a row is in one cell of each look, whose distances are priced with its own noise."""
    column = Column("x", "numeric", edges=(0, 12), decimals=6)
    narrow, budget = (0.0, 4.0, 12.0), Fraction(1, 50)
    looks = looks_at(
        Schema((column,)),
        {0: narrow},
        lambda share, tables: gaussian_for(budget * share, tables, relation),
        finer=True,
    )
    cuts = [narrow]
    for parts in PARTS:
        filled = np.zeros(len(cuts[-1]))
        filled[[0, -2]] = 90.0
        cuts.append(finer_edges(column, cuts[-1], filled, 1.0, parts))
    price = Fraction(0)
    for cut, look in zip(cuts, looks, strict=True):
        edges = counted_edges(column, cut)
        cells = [np.histogram([x], edges)[0] for x in (0, 1e-6, 0.5, 4, 11.999999, 12)]
        others = cells if relation == "replace_one" else [0 * cells[0]]
        worst = max(int(((a - b) ** 2).sum()) for a in cells for b in others)
        price += worst / (2 * look.noise.sigma**2)  # type: ignore[attr-defined]

    assert [look.bins for look in looks] == list(BINS)
    assert budget * Fraction(999, 1000) < price <= budget


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [6, None])
def test_heaps_of_long_decimals_come_back_to_the_last_place(decimals: int | None) -> None:
    """Values of a thousand rows among ten million: two looks end a ten-thousandth beside them."""
    rng = np.random.default_rng(4)
    heaps = {0.0: 5_000, 4.564348: 2_000, 3.25: 1_500, 9.013377: 1_000, 1.0: 1_000}
    if decimals is None:
        heaps[0.1442925] = 1_000  # of seven places
    rest = rng.uniform(0, 10, 20_000 - sum(heaps.values())).round(6)
    values = np.concatenate([rest, *(np.full(n, v) for v, n in heaps.items())])
    column = Column("x", "numeric", edges=(0, 10), decimals=decimals)
    real = pl.DataFrame({"sex": ["f", "m"] * 10_000, "x": rng.permutation(values)})

    made = gb.synthesize(
        real, Schema((SEX, column)), gb.AdaptiveGibbs(epsilon=3, delta=1e-9), rows=20_000, seed=1,
        ledger=gb.Ledger.ephemeral(),
    ).sets[0]["x"].to_numpy()  # fmt: skip

    for value, count in heaps.items():
        assert abs((made == value).sum() - count) < 0.3 * count, value
    # The others keep their places, and are no heaps.
    other = made[~np.isin(made, list(heaps))]
    assert len(np.unique(other)) > 0.9 * len(other)
    assert ks(other, rest) < 0.05


# --- parameters


def test_parameters_survive_json_and_come_back_equal() -> None:
    one = PaidBins(gb.NoisyPegs(epsilon=2, parents=1), columns=("stay",), share=0.3)

    values = json.loads(json.dumps(as_json(one)))

    assert PaidBins(**values) == one
    assert PaidBins(PerSet(gb.Laplace())).about.title.endswith("on paid bins")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: PaidBins(gb.Pegs()), PrivacyRefused, "whole release"),
        (lambda: PaidBins(gb.Contingency()), PrivacyRefused, "whole release"),
        (lambda: PaidBins(gb.DiversePegs(l=1.5)), PrivacyRefused, "whole release"),
        (lambda: PaidBins(PaidBins()), UsageError, "bought once"),
        (lambda: PerSet(PaidBins()), UsageError, "around paid_bins"),
        (lambda: Parallel(PaidBins()), UsageError, "around paid_bins"),
        (lambda: PaidBins("laplace", share=0.99), GibbousError, "between 0.001"),
        (lambda: PaidBins("laplace", narrow=1), GibbousError, "between 2"),
        (lambda: PaidBins("laplace", bins=0), GibbousError, "bins"),
        (lambda: PaidBins("laplace", grid="even"), GibbousError, "grid"),
        (lambda: PaidBins("laplace", columns=("stya",)).plan(SKEWED, 1), UsageError, "'stay'"),
        (lambda: PaidBins("laplace", columns=("sex",)).plan(SKEWED, 1), UsageError, "keeps"),
        (lambda: PaidBins(gb.Modips()).plan(SKEWED, 1), PrivacyRefused, "looks at numbers"),
        (
            lambda: PaidBins(
                "perturbed_histogram", options={"scale": "paid", "bins": "scott"}
            ).plan(SKEWED, 1),
            PrivacyRefused,
            "cuts bins itself",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error) as caught:
        make()

    assert words in str(caught.value)
    assert caught.value.fix


def test_releases_are_compared_under_the_bounds_that_they_were_made_with() -> None:
    """Each release bought bins of its own: all are compared in those of the first."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"x": np.where(rng.random(3_000) < 0.7, 0, rng.integers(1, 900, 3_000))})
    schema = gb.Schema((gb.Column.numeric("x", lower=0, upper=1_000),), gb.Unit("row"))
    made = [
        gb.synthesize(
            frame, schema, "laplace", epsilon=epsilon, seed=3, ledger=gb.Ledger.ephemeral()
        )
        for epsilon in (1, 5)
    ]

    found = gb.evaluate(frame, made, schema, only=["tv1"])

    assert made[0].schema["x"].edges != made[1].schema["x"].edges
    assert found["tv1"].value < 0.1
    with pytest.raises(SchemaMismatch):
        gb.evaluate(
            frame, made, gb.Schema((gb.Column.numeric("x", lower=0, upper=999),), gb.Unit("row"))
        )


def test_the_method_inside_knows_what_was_counted_of_its_bins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counts that looks have bought are put beside the method's own tables; missing was not counted."""
    seen = []

    def spy(self: Any, curator: Any, rows: int | None, sets: int = 1) -> Any:
        seen.append((curator.schema, curator.known_counts))
        return inside(self, curator, rows, sets)

    inside = gb.AdaptiveGibbs.run
    monkeypatch.setattr(gb.AdaptiveGibbs, "run", spy)
    run(PaidBins(gb.AdaptiveGibbs(epsilon=20, delta=1e-6), columns=("cost", "stay")))

    schema, known = seen[-1]
    assert sorted(known) == [1, 2]
    for j, numbers in ((1, skewed(2000)[1]), (2, skewed(2000)[2])):
        kept = np.delete(numbers, np.arange(0, 2000, 10)) if j == 1 else numbers
        true = np.histogram(kept, np.array(schema.columns[j].edges))[0]
        own = np.isfinite(known[j].variances)
        assert own.sum() == schema.columns[j].bins
        errors = (known[j].values[own] - true) / np.sqrt(known[j].variances[own])
        assert np.abs(errors).max() < 6.5
    assert np.isinf(known[1].variances[-1])  # of missing
