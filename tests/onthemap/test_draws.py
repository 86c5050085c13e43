"""The draws of the running code follow the enumerated laws; too few virtual records are caught."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from gibbous.contract.cases import secret
from gibbous.contract.runs import release
from gibbous.contract.saboteurs import patched
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.mechanisms.onthemap import Onthemap
from gibbous.privacy.calibrate.probabilistic import good_odds, is_good
from gibbous.privacy.noise import Geometric
from gibbous.sampling.flows import domain, flow_rows, polya_urns
from gibbous.sampling.flows.domain import Held
from gibbous.sampling.flows.flow_rows import plain_urns, shared_out
from gibbous.sampling.flows.grid import WholeGrid, exponential_gaps, survival, survivors
from gibbous.sampling.flows.polya_urns import Urns, draw_people, scaled
from gibbous.sampling.flows.reach import Ground
from gibbous.sampling.flows.scheme import (
    By,
    Coarsen,
    Scheme,
    alpha_for,
    profile,
    shrunken_alpha,
)
from gibbous.structure.regions import miles, places
from tests.onthemap.laws import compositions, disclosing, law, seeded, shrunken_law

LEVEL = 1e-8  # of each statistical test below
LEAST = 20.0  # expected outputs of a class: the chi-square law holds far out in its tail
Draws = Counter[tuple[int, ...]]


def schema(destinations: int, origins: int) -> Schema:
    return Schema(
        (
            Column("work", "nominal", levels=tuple(f"d{i}" for i in range(destinations))),
            Column("home", "nominal", levels=tuple(f"o{i}" for i in range(origins))),
        )
    )


def p_value(seen: Draws, truth: dict[tuple[int, ...], float]) -> float:
    """Chi-square of outputs against their law; the rarest together, LEAST of them or more."""
    total = seen.total()
    common = sorted(truth, key=lambda s: truth[s])
    rare = 0.0
    while common and (rare < LEAST or truth[common[0]] * total < LEAST):
        rare += truth[common.pop(0)] * total
    observed = [seen[s] for s in common]
    expected = [truth[s] * total for s in common]
    observed.append(total - sum(observed))
    expected.append(total - sum(expected))
    return float(chisquare(observed, expected, sum_check=False).pvalue)


def many(records: tuple[int, ...], alpha: float, m: int, copies: int, seed: int) -> Draws:
    """The urn's outputs for many equal destinations."""
    k, n = len(records), sum(records)
    ones, unit = scaled(alpha, 1, k, n, m)
    held = Held.of(
        np.repeat(np.arange(copies), k),
        np.tile(np.arange(k), copies),
        np.tile(np.array(records), copies),
        copies,
        k,
    )
    on = held.counts > 0
    urns = Urns(
        np.full(copies, m),
        held.records,
        np.full(copies, unit, dtype=np.uint64),
        np.full(copies, ones * k, dtype=np.uint64),
        held.cells[on],
        np.cumsum(held.counts[on]),
        held.starts,
    )
    people = np.empty(copies * m, dtype=np.uint8)
    draw_people(urns, lambda g, p: (p // np.uint64(ones)).astype(np.int64), seeded(seed), people)
    return Counter(
        tuple(np.bincount(one, minlength=k).tolist()) for one in people.reshape(copies, m)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("records", [(2, 1, 1), (0, 0, 4), (1, 3, 0)])
def test_the_urn_follows_the_dirichlet_multinomial_law(records: tuple[int, ...]) -> None:
    seen = many(records, 0.3, 4, 40_000, 11)

    assert p_value(seen, law(records, np.full(3, 0.3), 4)) > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [0.19, 0.43])
def test_the_same_test_notices_another_alpha(wrong: float) -> None:
    seen = many((2, 1, 1), 0.3, 4, 40_000, 12)

    assert p_value(seen, law((2, 1, 1), np.full(3, wrong), 4)) < LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 997, 1 << 20])
def test_the_law_is_the_same_when_threads_share_the_destinations_and_draw_slices(size: int) -> None:
    copies = 20_000 if size > 1 else 4_000
    with patched(polya_urns, "CHUNK", value=7_001), patched(polya_urns, "SLICE", value=size):
        seen = many((2, 1, 1), 0.3, 4, copies, 13)

    assert seen.total() == copies
    assert p_value(seen, law((2, 1, 1), np.full(3, 0.3), 4)) > LEVEL


@pytest.mark.statistical
def test_the_order_of_people_tells_nothing() -> None:
    k, n, m, copies = 3, 3, 2, 40_000
    ones, unit = scaled(0.5, 1, k, n, m)
    held = Held.of(
        np.repeat(np.arange(copies), 2),
        np.tile([0, 2], copies),
        np.tile([1, 2], copies),
        copies,
        k,
    )
    urns = Urns(
        np.full(copies, m),
        held.records,
        np.full(copies, unit, dtype=np.uint64),
        np.full(copies, ones * k, dtype=np.uint64),
        held.cells,
        held.sums,
        held.starts,
    )

    people = np.empty(copies * m, dtype=np.int64)
    draw_people(urns, lambda g, p: (p // np.uint64(ones)).astype(np.int64), seeded(5), people)

    first, second = people.reshape(copies, m).T
    pairs = Counter(zip(first.tolist(), second.tolist(), strict=True))
    assert (
        chisquare(np.bincount(first, minlength=3), [copies * w for w in (1 / 3, 1 / 9, 5 / 9)])[1]
        > LEVEL
    )
    both = pairs[0, 2] + pairs[2, 0]
    assert binom.cdf(pairs[0, 2], both, 0.5) > LEVEL / 2
    assert binom.sf(pairs[0, 2], both, 0.5) > LEVEL / 2


def outputs(one: Any, records: tuple[int, ...], copies: int) -> Draws:
    """What one run draws for many destinations with the same records."""
    mine = np.repeat(np.arange(len(records)), records)
    table = np.column_stack([np.repeat(np.arange(copies), len(mine)), np.tile(mine, copies)])
    drawn = release(one, schema(copies, len(records)), table, None).values
    cells = np.zeros((copies, len(records)), dtype=int)
    np.add.at(cells, (drawn[:, 0].astype(int), drawn[:, 1].astype(int)), 1)
    return Counter(tuple(row) for row in cells.tolist())


@pytest.mark.statistical
def test_the_whole_mechanism_with_shrinking_follows_the_mixture_over_domains() -> None:
    copies, steps = 1500, ((0.0, 0.6), (40.0, 0.2))
    here = places(["a", "b", "c"], [45.0, 45.0, 45.0], [-93.0, -93.1, -94.5])
    there = places(np.arange(copies), np.full(copies, 45.0), np.full(copies, -93.0))
    one = Onthemap(
        epsilon=4.0, delta=0.05, destination="work", keep=steps, origins=here, destinations=there
    )
    kept = np.array([0.6, 0.6, 0.2])

    seen = outputs(one, (2, 1, 0), copies)

    alpha = shrunken_alpha(Scheme(4.0, 0.05, keep=steps), kept, None, 3, 3)
    prior = np.full(3, alpha)
    assert p_value(seen, shrunken_law((2, 1, 0), prior, 3, kept)) > LEVEL
    assert p_value(seen, law((2, 1, 0), prior, 3)) < LEVEL


@pytest.mark.statistical
def test_a_tenth_of_the_virtual_records_is_caught_by_the_law() -> None:
    one = Onthemap(epsilon=1.2, delta=0.01, destination="work")
    found = profile(None, 3)
    alpha = alpha_for(Scheme(1.2, 0.01), found, 3, 3)
    truth = law((1, 2, 0), np.full(3, found.effective(alpha, 3, 3)), 3)

    honest = outputs(one, (1, 2, 0), 2000)
    with patched(flow_rows, "ALPHA_FACTOR", value=0.1):
        broken = outputs(one, (1, 2, 0), 2000)

    assert p_value(honest, truth) > LEVEL
    assert p_value(broken, truth) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_every_accepted_output_is_good(spread: float) -> None:
    n, cells = 6, 40
    here = places(np.arange(cells), density=np.arange(cells))
    scheme = Scheme(2.0, 0.2, accept="good", spread=spread, origins=here)
    held = Held.of(np.zeros(n, dtype=int), np.arange(n), np.ones(n), 1, cells)
    weights = scheme.weights(cells)
    _, _, alpha = plain_urns(scheme, held, held.records, weights)
    ratios = np.ones(cells) if weights is None else weights / weights.min()
    gamma, a = good_odds(2.0, 0.2), alpha[0] * ratios
    one = Onthemap(
        epsilon=2.0, delta=0.2, destination="work", accept="good", spread=spread, origins=here
    )
    table = np.column_stack([np.zeros(n), np.arange(n)]).astype(int)
    records = np.bincount(np.arange(n), minlength=cells)

    drawn = [
        np.bincount(release(one, schema(1, cells), table, None).values[:, 1], minlength=cells)
        for _ in range(60)
    ]

    assert all(is_good(s, records, a, gamma) for s in drawn)


@pytest.mark.statistical
def test_accepted_outputs_follow_the_law_given_good() -> None:
    records, copies = (1, 0, 0, 3), 1500
    scheme = Scheme(1.2, 0.5, accept="good")
    found = profile(None, 4)
    a = np.full(4, found.effective(alpha_for(scheme, found, 4, 4), 4, 4))
    plain = law(records, a, 4)
    good = {
        s: p * is_good(np.array(s), np.array(records), a, scheme.limit()) for s, p in plain.items()
    }
    share = sum(good.values())

    seen = outputs(
        Onthemap(epsilon=1.2, delta=0.5, destination="work", accept="good"), records, copies
    )

    assert share < 0.85  # a sixth is rejected
    assert p_value(seen, {s: p / share for s, p in good.items()}) > LEVEL
    assert p_value(seen, plain) < LEVEL


def test_people_are_shared_out_by_public_totals() -> None:
    records = np.array([5, 0, 3, 2])

    assert shared_out(records, None).tolist() == [5, 0, 3, 2]
    assert shared_out(records, 20).tolist() == [10, 0, 6, 4]
    assert shared_out(records, 7).tolist() == [4, 0, 2, 1]
    assert shared_out(np.zeros(3, dtype=int), 7).tolist() == [3, 2, 2]


def test_each_destination_keeps_its_total() -> None:
    table = np.array([[0, 1]] * 4 + [[2, 0]] * 3)
    one = Onthemap(destination="work")

    drawn = release(one, schema(3, 5), table, None, sets=2)

    assert np.bincount(drawn.values[:, 0], minlength=3).tolist() == [8, 0, 6]
    assert np.bincount(drawn.values[:7, 0], minlength=3).tolist() == [4, 0, 3]


def test_coarsening_draws_places_of_the_region_by_public_density() -> None:
    here = places(list("abcdef"), density=[0, 3, 1, 5, 0, 0], parents={"county": list("xxxyyz")})
    one = Onthemap(epsilon=40, delta=1e-6, destination="work", level="county", origins=here)
    table = np.repeat([[0, 0]], 400, axis=0)

    drawn = np.bincount(release(one, schema(1, 6), table, None).values[:, 1], minlength=6)

    assert drawn[:3].sum() == 400
    assert drawn[0] <= 2  # nobody lives there: kept possible, never likely
    assert 240 < drawn[1] < 350  # three quarters: +- 5 sd


FOUR = places(list("abcd"), [45.0, 45.1, 47.0, 47.3], [-93.0] * 4, density=[1, 1, 3, 1])
SQUARES = np.array([0, 1, 2, 2])
"""c and d lie in one square as wide as half of their distance, and have twice the density of a and b."""


def squared(copies: int, epsilon: float, coarsen: Coarsen, by: By) -> Onthemap:
    there = places(np.arange(copies), np.full(copies, 45.0), np.full(copies, -93.0))
    return Onthemap(
        epsilon=epsilon,
        delta=0.02,
        destination="work",
        coarsen=coarsen,
        coarsen_by=by,
        origins=FOUR,
        destinations=there,
    )


@pytest.mark.statistical
@pytest.mark.parametrize("coarsen", ["fixed", "auto"])
@pytest.mark.parametrize(("by", "width"), [("distance", 0.5), ("density", 2.0)])
def test_squares_follow_the_law_of_the_coarser_table_and_places_their_density(
    by: By, width: float, coarsen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "AUTO", {by: (0.0, width)})  # four have too many virtual people
    given: Coarsen = "auto" if coarsen == "auto" else width
    records, copies = (1, 1, 0, 2), 4000
    found = profile(None, 3)
    alpha = found.effective(alpha_for(Scheme(2.0, 0.02), found, 4, 4), 4, 4)
    coarse = law((1, 1, 2), np.full(3, alpha), 4)

    seen = outputs(squared(copies, 2.0, given, by), records, copies)
    with patched(flow_rows, "ALPHA_FACTOR", value=0.1):
        few = outputs(squared(copies, 2.0, given, by), records, copies)

    def together(draws: Draws) -> Draws:
        added: Draws = Counter()
        for one, times in draws.items():
            added[(one[0], one[1], one[2] + one[3])] += times
        return added

    assert p_value(together(seen), coarse) > LEVEL
    assert p_value(together(few), coarse) < LEVEL  # a tenth of the virtual records
    c, d = (sum(one[place] * times for one, times in seen.items()) for place in (2, 3))
    assert binom.cdf(c, c + d, 0.75) > LEVEL / 2
    assert binom.sf(c, c + d, 0.75) > LEVEL / 2


def _halved(which: list[int], side: np.ndarray, weight: np.ndarray) -> list[list[int]]:
    """All nodes of a k-d tree, by recursion."""
    if len(which) == 1:
        return [which]
    long = side[which]
    along = int(np.ptp(long[:, 0]) <= np.ptp(long[:, 1]))
    which = sorted(which, key=lambda i: (side[i, along], i))
    sums = np.cumsum(weight[which]) - weight[which] / 2
    cut = min(max(int((sums <= weight[which].sum() / 2).sum()), 1), len(which) - 1)
    return [which, *_halved(which[:cut], side, weight), *_halved(which[cut:], side, weight)]


@pytest.mark.parametrize("reach", [0.0, 120.0])
def test_cells_by_density_are_the_largest_halves_that_weigh_a_share_of_what_is_nearer(
    reach: float,
) -> None:
    draws, n, share = np.random.default_rng(8), 150, 0.4
    lat, lon = draws.uniform(43, 47, n), draws.uniform(-95, -91, n)
    density = draws.lognormal(1, 1.5, n) * (draws.random(n) < 0.9)
    here = places(np.arange(n), lat, lon, density=density)
    there = places(["d"], [44.6], [-92.5])
    scheme = Scheme(
        2.0, 1e-3, reach=reach, coarsen=share, by="density", origins=here, destinations=there
    )

    found = Ground.of(scheme, n).squares(0, share)

    far = miles(44.6, -92.5, lat, lon)
    weight = np.maximum(density / density.mean(), 2.0**-20)
    truth = np.arange(n)
    side = np.column_stack([lat, lon * np.cos(np.radians(lat.mean()))])
    for node in reversed(_halved(list(range(n)), side, weight)):  # parents after their children
        nearest = min(weight[far < far[i]].sum() for i in node)
        if weight[node].sum() <= share * nearest:
            truth[node] = min(node)
    beyond = (far > reach) & (reach > 0)
    for one in np.unique(truth):
        for part in (beyond, ~beyond):
            mine = np.flatnonzero((truth == one) & part)
            assert (found[mine] == mine.min(initial=n)).all()
    assert 20 < len(np.unique(found)) < 80
    assert (found[found] == found).all()


def test_no_output_in_squares_discloses_more_than_is_stated() -> None:
    # Every table of 4 records and 4 origins, every output of 4 people: the whole law, places included.
    epsilon, delta, density = 1.5, 0.05, np.array([1.0, 1.0, 0.75, 0.25])
    found = profile(None, 3)
    alpha = found.effective(alpha_for(Scheme(epsilon, delta), found, 4, 4), 4, 4)

    def whole(records: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        coarse = law((records[0], records[1], records[2] + records[3]), np.full(3, alpha), 4)
        return {
            s: coarse[s[0], s[1], s[2] + s[3]] * float(binom.pmf(s[2], s[2] + s[3], density[2]))
            for s in compositions(4, 4)
        }

    laws = {x: whole(x) for x in compositions(4, 4)}
    missed = max(
        sum(laws[x][s] for s, loss in disclosing(x, laws).items() if loss > epsilon + 1e-9)
        for x in laws
    )

    assert missed <= delta


def test_squares_are_as_wide_as_their_share_of_the_distance_and_heed_reach() -> None:
    draws = np.random.default_rng(4)
    here = places(
        np.arange(900),
        np.append(draws.uniform(40, 50, 899), np.nan),
        np.append(draws.uniform(-100, -86, 899), np.nan),
    )
    there = places(["d"], [45.0], [-93.0])
    far = miles(45.0, -93.0, here.lat, here.lon)
    for coarsen, reach in ((0.2, 0.0), (1.0, 0.0), (0.5, 150.0)):
        scheme = Scheme(2.0, 1e-3, coarsen=coarsen, reach=reach, origins=here, destinations=there)

        found = Ground.of(scheme, 900).squares(0, coarsen)

        assert (found[found] == found).all()  # each square is named by its first origin
        assert (np.flatnonzero(found == found[899]) == 899).all()  # unknown: apart
        for square in np.unique(found[:899]):
            inside = np.flatnonzero(found == square)
            least = far[inside].min()
            corner = miles(
                here.lat[inside].min(), here.lon[inside].min(), here.lat[inside], here.lon[inside]
            )
            # The diagonal, where degrees of longitude are up to a seventh longer than at the corner.
            assert corner.max() <= 1.5 * 1.2 * coarsen * 2 * least + 1e-6
            assert not reach or len({bool(one <= reach) for one in far[inside]}) == 1
    assert len(np.unique(found)) < 450


@pytest.mark.slow
def test_squares_move_commutes_less_than_virtual_people_everywhere_do() -> None:
    draws = np.random.default_rng(7)
    lat, lon = draws.uniform(38, 48, 400), draws.uniform(-105, -80, 400)
    far = miles(lat[:, None], lon[:, None], lat[None], lon[None])
    near = np.where(far < 1, 30.0, np.exp(-far / 15))
    pairs = draws.multinomial(60_000, (near / near.sum()).ravel()).reshape(400, 400)
    table = np.repeat(np.argwhere(pairs), pairs[pairs > 0], axis=0)
    here = places(np.arange(400), lat, lon)

    def moved(coarsen: float) -> float:
        one = Onthemap(
            epsilon=4.6,
            delta=1e-6,
            destination="work",
            coarsen=coarsen,
            origins=here,
            destinations=here,
        )
        drawn = release(one, schema(400, 400), table, None).values.astype(int)
        steps = [1, 5, 10, 20, 40, 80, 160, 320, 640]
        told, real = (
            np.bincount(np.digitize(far[t[:, 0], t[:, 1]], steps), minlength=10) / len(t)
            for t in (drawn, table)
        )
        return float(np.abs(told - real).sum() / 2)

    assert moved(1.0) < moved(0.0) / 4


@pytest.mark.slow
@pytest.mark.parametrize("by", ["distance", "density"])
def test_widths_of_squares_follow_from_totals_and_places_alone(by: By) -> None:
    draws = np.random.default_rng(5)
    here = places(np.arange(60), draws.uniform(44, 46, 60), draws.uniform(-94, -92, 60))
    scheme = Scheme(4.6, 1e-3, coarsen="auto", by=by, origins=here, destinations=here)
    totals = np.array([0, 3, 40, 400, 4000, 10**6] * 10)

    def widths(seed: int) -> tuple[float, ...]:
        rng = np.random.default_rng(seed)
        cells = rng.multinomial(totals, rng.dirichlet(np.full(60, 0.1), size=60))
        groups, where = np.nonzero(cells)
        held = Held.of(groups, where, cells[groups, where], 60, 60)
        return domain.in_squares(scheme, held).widths

    found = widths(1)

    assert found == widths(2) == widths(3)
    assert [found[place] for place in range(6)] == sorted(found[:6], reverse=True)
    assert found[0] == 2.0
    assert found[5] == 0.0


@pytest.mark.slow
def test_squares_leave_a_quarter_of_the_error_of_constructed_counties() -> None:
    draws, n, people = np.random.default_rng(1), 1500, 50_000
    lat, lon = draws.uniform(28, 48, n), draws.uniform(-122, -70, n)
    homes = draws.lognormal(0, 1.4, n)
    jobs = homes * draws.lognormal(0, 0.3, n)
    far = miles(lat[:, None], lon[:, None], lat[None], lon[None])
    pull = homes[:, None] * jobs[None] * np.where(far < 1, 30.0, np.exp(-far / 15) + 1e-7)
    pairs = draws.multinomial(people, (pull / pull.sum()).ravel()).reshape(n, n)
    table = np.repeat(np.argwhere(pairs)[:, ::-1], pairs[pairs > 0], axis=0)
    here = places(np.arange(n), lat, lon)
    real = np.bincount(table[:, 0] * n + table[:, 1], minlength=n * n) / people

    def apart(coarsen: Coarsen) -> float:
        one = Onthemap(destination="work", coarsen=coarsen, origins=here, destinations=here)
        drawn = release(one, schema(n, n), table, None).values.astype(int)
        told = np.bincount(drawn[:, 0] * n + drawn[:, 1], minlength=n * n) / people
        return float(np.abs(told - real).sum() / 2)

    whole = apart(0.0)

    assert apart(1.0) < whole / 4
    assert apart("auto") < whole / 4


def test_a_region_with_a_place_within_reach_keeps_its_records() -> None:
    here = places(list("abc"), [45.0, 46.0, 49.0], [-93.0] * 3, parents={"county": ["x", "y", "y"]})
    there = places(["d"], [45.0], [-93.0])
    one = Onthemap(
        epsilon=40, destination="work", reach=100, level="county", origins=here, destinations=there
    )

    drawn = release(one, schema(1, 3), np.array([[0, 1]] * 30), None)

    assert (drawn.values[:, 1] > 0).all()  # though the center of y is 173 miles away


def test_domains_that_are_made_in_batches_keep_each_destinations_own_people() -> None:
    lat = 45.0 + np.arange(12)
    here, there = places(np.arange(12), lat, [-93.0] * 12), places(np.arange(12), lat, [-93.0] * 12)
    one = Onthemap(epsilon=40, destination="work", reach=100, origins=here, destinations=there)
    table = np.repeat(np.column_stack([np.arange(12), np.arange(12)]), np.arange(12), axis=0)

    with patched(domain, "BATCH", value=4):
        drawn = release(one, schema(12, 12), table, None).values

    np.testing.assert_array_equal(drawn, table)


def test_records_beyond_reach_count_at_the_nearest_origin_within_it() -> None:
    far = [[45.0, 46.4, 45.0, 48.0, 45.1, np.nan], [-93.0, -93.0, -94.9, -93.0, -97.0, np.nan]]
    here = places(list("abcdef"), *far)
    there = places(["d", "e"], [45.0, 48.0], [-93.0, -93.0])
    scheme = Scheme(2.0, 1e-3, reach=100, origins=here, destinations=there)
    groups, cells = np.repeat([0, 1], 6), np.tile(np.arange(6), 2)

    found = domain.within_reach(scheme, Held.of(groups, cells, cells + 1, 2, 6))

    # d: north of it is b, 97 miles away, west of it c; e has d's neighbors and itself beyond, but one.
    assert found.part(0)[0].tolist() == [0, 1, 2, 5]
    assert found.part(0)[1].tolist() == [1, 2 + 4, 3 + 5, 6]
    assert found.part(1)[0].tolist() == [3, 5]
    assert found.part(1)[1].tolist() == [1 + 2 + 3 + 4 + 5, 6]
    np.testing.assert_array_equal(found.records, [21, 21])


def test_origins_beyond_reach_are_never_drawn() -> None:
    here = places(["near", "far"], [45.0, 48.0], [-93.0, -93.0])
    there = places(["d"], [45.0], [-93.0])
    one = Onthemap(epsilon=0.5, destination="work", reach=100, origins=here, destinations=there)

    drawn = release(one, schema(1, 2), np.array([[0, 0], [0, 0], [0, 1]]), None)

    assert drawn.values[:, 1].tolist() == [0, 0, 0]


@pytest.mark.statistical
def test_simulated_empty_cells_follow_the_law_of_noising_them_all() -> None:
    scale, threshold, cells, runs = Fraction(3, 2), 1, 600, 60

    found = [survivors(cells, scale, threshold, seeded(100 + i)) for i in range(runs)]

    q = float(survival(scale, threshold))
    values = np.concatenate([v for _, v in found])
    spots = np.concatenate([p for p, _ in found]).astype(int)
    ratio = np.exp(-1 / float(scale))
    assert binom.cdf(len(values), cells * runs, q) > LEVEL / 2
    assert binom.sf(len(values), cells * runs, q) > LEVEL / 2
    steps = np.arange(8)
    law_of = (1 - ratio) * ratio**steps
    seen = np.bincount(np.minimum(values - threshold - 1, 8), minlength=9)
    assert chisquare(seen, len(values) * np.append(law_of, ratio**8)).pvalue > LEVEL
    assert chisquare(np.bincount(spots // 50, minlength=12)).pvalue > LEVEL
    wrong = np.exp(-1 / (float(scale) * 0.8))
    off = np.append((1 - wrong) * wrong**steps, wrong**8)
    assert chisquare(seen, len(values) * off).pvalue < LEVEL


@pytest.mark.statistical
def test_the_whole_grid_looks_like_noise_on_every_cell() -> None:
    base, shape = Geometric(Fraction(1)), (40, 25)
    counts = np.zeros(shape, dtype=np.int64)
    counts[3, 4], counts[20, 0] = 40, 2  # noise takes 38 once in 10^16
    keys, levels = np.nonzero(counts)
    noise = WholeGrid(base, 1, *shape)
    cells = Sparse(keys.astype(np.uint64), levels.astype(np.uint64), counts[keys, levels])

    total, big = 0, 0
    for _ in range(40):
        kept = noise.add(cells)
        assert isinstance(kept, Sparse)
        flat = kept.keys * np.uint64(25) + kept.levels
        assert (np.diff(flat.astype(np.int64)) > 0).all()
        total += len(flat)
        big += int(((kept.keys == 3) & (kept.levels == 4)).sum())

    q = float(survival(Fraction(1), 1))
    expected = 40 * (998 * q) + 40 * 2
    assert abs(total - expected) < 5 * np.sqrt(40 * 998 * q) + 40
    assert big == 40
    assert noise.cost(1, "add_remove", 1).epsilon == 1


def test_gaps_of_the_largest_scale_do_not_overflow() -> None:
    found = exponential_gaps(np.full(2000, 1 << 53), seeded(3))

    assert (found >= 0).all()
    assert found.mean() / 2**53 == pytest.approx(1, abs=0.2)


def test_urns_and_held_cells_do_not_show_what_they_hold() -> None:
    held = Held.of(np.zeros(1, dtype=int), np.array([7]), np.array([731]), 1, 9)
    urns = Urns(*[np.array([731])] * 7)

    assert "731" not in f"{held!r} {urns!r} {secret(schema(1, 2), np.array([[0, 1]]))!r}"
