"""The guess on stretches against every division there is; tails, gaps, bins cut finer."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.schema import Column
from gibbous.structure.dyadic import dyadic
from gibbous.structure.fine_bins import CELLS, inside_of, measure_of, rows_of
from gibbous.structure.stretches import EMPTY, FORMS, HEAVY, stretches
from gibbous.structure.stretches import PRICE as USUAL

PRICE = 6.0


def best(counts: np.ndarray) -> np.ndarray:
    """The guess of least cost over all stretches and forms, by trying them all."""
    cells = len(counts)

    def one(first: int, last: int) -> tuple[float, np.ndarray]:
        own = counts[first:last]
        fits = [(float((own**2).sum()) + EMPTY, np.zeros(len(own)))]
        for power, rate in FORMS:
            form = np.exp(-((rate * np.arange(len(own))) ** power))
            for shape in (form, form[::-1]):
                fit = shape * max(float(shape @ own) / float(shape @ shape), 0.0)
                fits.append((float(((own - fit) ** 2).sum()) + PRICE, fit))
        for _, rate in HEAVY:
            shape = np.arange(first + 1, last + 1) ** -rate
            fit = shape * max(float(shape @ own) / float(shape @ shape), 0.0)
            fits.append((float(((own - fit) ** 2).sum()) + PRICE + USUAL, fit))
        return min(fits, key=lambda fit: fit[0])

    tried = []
    for many in range(cells):
        for cut in itertools.combinations(range(1, cells), many):
            each = [one(a, b) for a, b in itertools.pairwise((0, *cut, cells))]
            guess = np.concatenate([fit for _, fit in each])
            tried.append((sum(cost for cost, _ in each), guess))
    return min(tried, key=lambda one: one[0])[1]


@pytest.mark.parametrize("seed", range(10))
def test_no_division_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.normal(scale=2.0, size=6) + rng.choice([0, 0, 5, 9], 6)
    if seed > 5:
        counts += 900.0 * np.arange(1, 7) ** -2.5  # where a heavy form costs less
    guess = best(counts)

    # Of a number of rows that says nothing.
    found = stretches(counts, 1.0, price=PRICE, rows=(float(guess.sum()), 1e9))

    assert found == pytest.approx(guess)


@pytest.mark.parametrize(("power", "rate"), [(2, 0.08), (1, 0.1)])
def test_a_fading_tail_below_the_noise_keeps_its_rows(power: int, rate: float) -> None:
    """A bell or an exponential law whose last cells are below the noise: its sum there, means of 40 draws."""
    cells = np.arange(60)
    true = 900.0 * np.exp(-((rate * cells) ** power))
    tail = slice(16, None)
    rng = np.random.default_rng(4)
    noisy = [true + rng.normal(scale=60.0, size=60) for _ in range(40)]

    kept, cut = (
        np.mean([guess(counts, 60.0)[tail].sum() for counts in noisy]) / true[tail].sum()
        for guess in (stretches, dyadic)
    )

    assert abs(kept - 1) < 0.12
    assert abs(kept - 1) < abs(cut - 1)


def test_a_tail_of_a_power_law_keeps_its_mean() -> None:
    """Of cells alike: an exponential law that fits what is seen of it misses a quarter of its sum.

    30,000 rows, in the mean of 60 draws within 8 %; with forms that fade by cells alone 13 to 25 % are lost.
    """
    cells, rng = np.arange(200), np.random.default_rng(6)
    true = (cells + 1.0) ** -2.3
    true *= 30_000 / true.sum()
    noisy = [true + rng.normal(scale=35.0, size=200) for _ in range(60)]

    found = [stretches(counts, 35.0, rows=(30_000.0, 70.0)) for counts in noisy]

    means = [one @ (cells + 1) / one.sum() for one in found]
    assert abs(np.median(means) / (true @ (cells + 1) / true.sum()) - 1) < 0.08


@pytest.mark.slow
def test_noise_far_away_is_seldom_taken_for_rows() -> None:
    """300 draws of counts that halve from cell to cell: at the price of other stretches, 4 have a far one."""
    true, rng = 16_000 * 0.5 ** np.arange(101), np.random.default_rng(12)
    noisy = [true + rng.normal(scale=40.0, size=101) for _ in range(300)]

    far = [stretches(counts, 40.0, rows=(32_000.0, 80.0))[20:].sum() > 100 for counts in noisy]

    assert sum(far) <= 1
    counts = true + np.where(np.arange(101) == 90, 240.0, 0)  # six deviations in one cell
    assert stretches(counts, 40.0, rows=(32_240.0, 80.0))[90] > 200
    counts = true + np.where(np.arange(101) == 90, 170.0, 0)
    assert stretches(counts, 40.0, rows=(32_170.0, 80.0))[90] < 40


def test_hidden_rows_are_near_those_that_are_shown() -> None:
    """300 of 11,300 rows are in no stretch; evenly over 100 cells, they would double the mean."""
    counts = np.r_[5_000.0, 3_000.0, 2_000.0, 1_000.0, np.zeros(96)]

    found = stretches(counts, 20.0, rows=(11_300.0, 20.0))

    assert found.sum() == pytest.approx(11_300, abs=10)
    assert found[4:14].sum() > 45
    assert found[20:].sum() < 60


def test_stretches_hold_no_more_rows_than_there_are() -> None:
    """Noise that looks like a long thin stretch: the number of rows says that most of it is none.

    What is given back is what least squares gives: by the uncertainty of each stretch's rows.
    """
    counts = np.r_[20_000.0, np.full(60, 30.0)]

    free, bound = (stretches(counts, 40.0, rows=(20_000.0, error)) for error in (1e9, 40.0))

    excess = free.sum() - 20_000.0
    assert excess > 1_500
    alike = 1 + 60  # single cells that the two stretches are as uncertain as, and one of the total
    assert bound.sum() == pytest.approx(free.sum() - excess * alike / (alike + 1))
    assert bound[0] == pytest.approx(free[0] - excess / (alike + 1))
    thin = stretches(counts, 40.0, rows=(20_000.0, 1.0))
    assert thin[1:].sum() < 40


def test_noise_alone_is_nothing_and_a_single_value_stays_alone() -> None:
    counts = np.random.default_rng(1).normal(scale=10.0, size=500)
    counts[[0, 400]] += (5_000.0, 300.0)

    found = stretches(counts, 10.0)

    assert np.delete(found, [0, 400]).sum() < 10.0  # one standard deviation of the noise
    assert found[400] == pytest.approx(counts[400], abs=1.0)
    assert stretches(np.array([-3.0]), 1.0).tolist() == [0.0]


@pytest.mark.parametrize("known", [True, False])
def test_rows_below_the_noise_are_not_moved_to_where_it_is_largest(known: bool) -> None:
    """Even rows of 50 a cell under noise of 200: with rows where they stand out alone, one run in five
    has half of them in ten neighboring cells."""
    rng, cells = np.random.default_rng(7), 120
    heaped = 0
    for _ in range(40):
        counts = 50.0 + rng.normal(scale=200.0, size=cells)
        shares = stretches(counts, 200.0, rows=(6_000.0, 300.0) if known else None)
        sums = np.convolve(shares / max(shares.sum(), 1.0), np.ones(10), mode="valid")
        heaped += bool(sums.max() > 0.5)

    assert heaped <= (0 if known else 2)


def test_rows_that_no_stretch_shows_are_spread() -> None:
    counts = np.zeros(100)
    counts[0] = 5_000.0

    found = stretches(counts, 20.0, rows=(6_000.0, 10.0))

    assert found[0] == pytest.approx(5_010, abs=1)
    assert found[2:] == pytest.approx(10.0, abs=0.2)
    assert stretches(counts, 20.0, rows=(5_000.0, 10.0))[2:].sum() < 1e-6


@pytest.mark.parametrize("beside", [40.0, 60.0, 80.0])
def test_rows_beside_the_only_value_that_is_shown_are_not_put_next_to_it(beside: float) -> None:
    """600 of 30,000 records are beside a value, fewer in each cell than the noise hides.

    A law that fades from that value was shown in all cells, with 30 of these records next to it.
    """
    counts = np.r_[29_400.0, np.full(129, 600 / 129)]
    counts[1] = beside

    found = stretches(counts, 25.0, rows=(30_000.0, 250.0))

    assert found[20:].sum() > 150


def test_a_bin_that_is_cut_finer_keeps_the_rows_that_no_part_shows() -> None:
    """One heap of 900 among 4,000 rows: dropping what lies below the noise would move them onto it."""
    parts = np.random.default_rng(2).normal(loc=4.0, scale=40.0, size=1_000)
    parts[123] += 900.0

    found = inside_of(parts, 4_900.0, 40.0, CELLS)

    assert found.sum() == pytest.approx(4_900)
    assert found[123] == pytest.approx(900, abs=4 * 40)
    assert np.delete(found, 123) == pytest.approx((4_900 - found[123]) / 999)
    assert inside_of(parts[:100], 400.0, 40.0, CELLS).tolist() == [4.0] * 100


def test_a_logarithmic_grid_is_measured_in_equal_steps() -> None:
    money = Column("x", "numeric", edges=(1, 10**6), decimals=2)
    whole = Column("x", "numeric", edges=(0, 100), integer=True)

    steps = measure_of(money, (1.0, 10.0, 100.0, 1000.0, 10.0**6))

    assert steps[1:3] == pytest.approx([np.log(101 / 11), np.log(1001 / 101)])
    assert (measure_of(whole, tuple(map(float, range(101)))) == 1).all()
    below = replace(money, edges=(-(10.0**6), -1.0))
    turned = measure_of(below, (-(10.0**6), -1000.0, -100.0, -10.0, -1.0))
    assert turned[:4] == pytest.approx(steps[:4][::-1])
    straddling = replace(money, edges=(-10.0, 0.0))
    assert np.isfinite(measure_of(straddling, (-10.0, -1.0, 0.0))).all()
    assert (measure_of(money, (1.0, 1.01, 10.0, 10.0**6)) > 0).all()


def test_rows_with_a_number_are_known_from_all_columns() -> None:
    """Against 4,000 draws: the mean is right, and so is the stated standard deviation."""
    rng, sigma = np.random.default_rng(3), 30.0
    true = {0: np.r_[np.full(60, 90.0), 600.0], 1: np.r_[np.full(20, 300.0), 0.0]}
    bins = {0: 60, 1: 20}

    found = [
        rows_of(
            {j: one + rng.normal(scale=sigma, size=len(one)) for j, one in true.items()},
            bins,
            sigma,
        )
        for _ in range(4_000)
    ]

    for j, rows in ((0, 5_400.0), (1, 6_000.0)):
        known = np.array([one[j][0] for one in found])
        assert known.mean() == pytest.approx(rows, abs=5 * known.std() / np.sqrt(4_000))
        assert known.std() == pytest.approx(found[0][j][1], rel=0.06)
        assert known.std() < sigma * np.sqrt(len(true[j]))
