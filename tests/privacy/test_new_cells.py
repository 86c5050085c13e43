"""Prices of texts that one unit alone has, against exact enumeration; and sums of zCDP with a delta."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from gibbous.core.claim import approximate, pure, zcdp
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.privacy import accountant
from gibbous.privacy.calibrate import stable
from gibbous.privacy.calibrate.tails import gaussian_tail
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp
from gibbous.privacy.noise import Gaussian, Thresholded, selecting_for
from tests.privacy.exact_divergence import hockey_stick, kept_cell, noise_law, partitions

SIGMA, THRESHOLD = 4, 14
LAW = noise_law(2 * SIGMA * SIGMA, power=2)


def shown(rows: tuple[int, ...]) -> float:
    """Exact probability that one of the lone cells is kept."""
    none = 1.0
    for count in rows:
        none *= kept_cell(count, LAW, THRESHOLD)["dropped"]
    return 1.0 - none


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
def test_delta_covers_every_way_of_splitting_rows_over_new_levels_and_wastes_little(
    rows: int,
) -> None:
    delta = float(stable.new_cells_delta(SIGMA, THRESHOLD, 1, rows))

    worst = max(shown(split) for split in partitions(rows))

    assert worst <= delta <= 1.1 * worst


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_table_a_column_adds_up(rows: int) -> None:
    delta = float(stable.new_cells_delta(SIGMA, THRESHOLD, 2, rows))

    worst = max(
        shown(one + two) for one, two in product(list(partitions(rows)), list(partitions(rows)))
    )

    assert worst <= delta <= 1.1 * worst


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_the_sum_over_a_split_is_largest_at_one_of_its_two_ends(rows: int) -> None:
    threshold, most = 60, [Fraction(0)]
    tail = [gaussian_tail(9, threshold - count) for count in range(rows + 1)]
    for total in range(1, rows + 1):
        most.append(max(tail[part] + most[total - part] for part in range(1, total + 1)))

    delta = stable.new_cells_delta(9, threshold, 1, rows)

    assert most[rows] <= delta <= most[rows] * Fraction(1_000_001, 1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_price_of_kept_texts_covers_the_exact_divergence(relation: str) -> None:
    noise = Thresholded(Gaussian(Fraction(SIGMA)), THRESHOLD)
    price = noise.cost(1, relation, 1)  # type: ignore[arg-type]
    states = [(0, 1), (1, 2), (13, 14), (40, 41)]
    changes = [[gain] for gain in states]
    if relation == "replace_one":
        changes = [[gain, lose[::-1]] for gain, lose in product(states, states)]

    for epsilon in (0.3, 1.0, 2.0):
        bound = float(delta_from_zcdp(price.rho, epsilon) + price.delta)
        for cells in changes:
            laws = [(kept_cell(a, LAW, THRESHOLD), kept_cell(b, LAW, THRESHOLD)) for a, b in cells]
            assert hockey_stick(laws, epsilon) <= bound
            assert hockey_stick([pair[::-1] for pair in laws], epsilon) <= bound


def test_a_threshold_one_too_low_is_caught_by_the_exact_law() -> None:
    goal = Fraction(1, 1000)
    noise = selecting_for(Fraction(1, 2 * SIGMA * SIGMA), goal, 1)
    law = noise_law(2 * float(noise.base.sigma) ** 2, power=2)  # type: ignore[union-attr]

    kept = [1 - kept_cell(1, law, noise.threshold - low)["dropped"] for low in (0, 1)]

    assert kept[0] <= goal < kept[1]


def listed_cell(count: int) -> dict[int, float]:
    """Law of a cell of a public list: its noisy count, without a threshold."""
    return {count + noise: p for noise, p in LAW.items()}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_exact_law_of_a_column_with_a_list_is_within_its_price(relation: str) -> None:
    """A row in a cell of the list; one that leaves a lone cell beside the list for a cell of it."""
    noise = Thresholded(Gaussian(Fraction(SIGMA)), THRESHOLD)
    price = noise.cost(1, relation, 1)  # type: ignore[arg-type]
    moves = [[(listed_cell(0), listed_cell(1))], [(listed_cell(3), listed_cell(4))]]
    if relation == "replace_one":
        lone = kept_cell(1, LAW, THRESHOLD), kept_cell(0, LAW, THRESHOLD)
        moves = [[*cells, lone] for cells in moves]

    for epsilon in (0.3, 1.0):
        bound = float(delta_from_zcdp(price.rho, epsilon) + price.delta)
        for cells in moves:
            assert hockey_stick(cells, epsilon) <= bound
            assert hockey_stick([pair[::-1] for pair in cells], epsilon) <= bound


def test_the_exact_law_catches_a_list_of_the_texts_that_occur() -> None:
    price = Thresholded(Gaussian(Fraction(SIGMA)), THRESHOLD).cost(1, "add_remove", 1)
    bound = float(delta_from_zcdp(price.rho, 1) + price.delta)

    assert hockey_stick([(listed_cell(1), kept_cell(0, LAW, THRESHOLD))], 1.0) > bound


def test_the_threshold_of_persons_is_higher_than_that_of_rows() -> None:
    one, five = (stable.new_cells_threshold(50, "1e-9", 10, rows) for rows in (1, 5))

    assert five > one


def test_a_threshold_below_the_rows_of_a_person_is_refused() -> None:
    with pytest.raises(ParameterError, match="below the 5 rows"):
        stable.new_cells_delta(1, 4, 1, 5)


def test_delta_of_kept_texts_counts_in_every_total() -> None:
    kept = zcdp(Fraction(1, 100), delta=Fraction(1, 10**6))
    total = approximate(Fraction(1), Fraction(2, 10**6))
    fits = delta_from_zcdp(Fraction(1, 100), 1) <= Fraction(1, 10**6)

    assert accountant.within(total, [kept]) is fits
    assert not accountant.within(approximate(Fraction(1), Fraction(1, 10**6)), [kept, kept])
    assert not accountant.within(zcdp(Fraction(1)), [kept])
    assert accountant.within(zcdp(Fraction(1), delta=Fraction(1, 10**6)), [kept])
    assert kept.then(kept).delta == Fraction(2, 10**6)
    with pytest.raises(PrivacyRefused):
        accountant.within(pure(Fraction(9)), [kept])
    with pytest.raises(PrivacyRefused, match="smaller delta"):
        accountant.as_approximate(kept, Fraction(1, 10**6))
    assert accountant.as_approximate(kept, Fraction(2, 10**6)).epsilon > 0


def test_a_group_gets_the_rule_of_the_total_where_texts_were_kept() -> None:
    kept = zcdp(Fraction(1, 1000), delta=Fraction(1, 10**9))
    total = approximate(Fraction(1), Fraction(1, 10**6))

    assert accountant.for_group(total, 3, [kept]) == accountant.for_group(total, 3)
    with pytest.raises(PrivacyRefused):
        accountant.for_group(kept, 3)
