"""Copies and parts: which tables a set is drawn from, how totals add up; rows never depend on cuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.context import Context
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Table, Tables
from gibbous.sampling.mixed_rows import PATTERN, part_shares, places
from gibbous.sampling.sample import prepared, sample, stream
from tests.mechanisms.linked_columns import SCHEMA
from tests.synthesize.made import sample_reference

JOINT = Context((0, 1, 2), (), (2, 3, 2), ())


def joint(counts: list[int] | np.ndarray, scale: float = 1.0) -> Tables:
    table = Table(
        JOINT, Dense(np.array(counts, np.int64).reshape(1, 12)), NoiseInfo("geometric", scale)
    )
    return Tables(SCHEMA, (table,), Recipe("ancestral", (0,)))


def only(cell: int, count: int = 100) -> Tables:
    """All records in one cell."""
    return joint(np.eye(12, dtype=np.int64)[cell] * count)


def parted(*parts: Tables, shares: tuple[float, ...] = ()) -> Tables:
    return Tables(SCHEMA, (), Recipe("ancestral", ()), parts=parts, shares=shares)


def cells(tables: Tables, rows: int, **given: int) -> np.ndarray:
    values = sample(tables, rows, seed=given.pop("seed", 4), **given).values.astype(np.int64)
    return values[:, 0] * 6 + values[:, 1] * 2 + values[:, 2]


def test_each_set_is_drawn_from_its_own_copy() -> None:
    release = replace(only(0), copies=(only(5), only(11)))

    drawn = [set(cells(release, 50, set_index=index).tolist()) for index in range(3)]

    assert drawn == [{0}, {5}, {11}]
    assert release.noisings == 3


def test_a_release_without_copies_serves_every_set() -> None:
    release = only(7)

    assert release.of_set(9) is release
    assert release.noisings == 1


def test_a_copy_cannot_have_copies() -> None:
    with pytest.raises(ValueError, match="no copies"):
        replace(only(0), copies=(replace(only(1), copies=(only(2),)),))


def test_tables_and_parts_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="not from both"):
        replace(only(0), parts=(only(1),))


def test_every_table_of_copies_and_parts_counts_as_published() -> None:
    copied = replace(only(0), copies=(only(1), only(2)))

    assert len(copied.published()) == 3
    assert len(parted(copied, copied).published()) == 6


def test_the_number_of_records_is_averaged_over_copies_and_added_over_parts() -> None:
    copied = replace(only(0, 90), copies=(only(0, 110), only(0, 130)))

    assert copied.noisy_rows() == 110
    assert parted(only(0, 90), only(1, 110)).noisy_rows() == 200


def test_copies_with_less_noise_count_for_more() -> None:
    sharp, loud = joint(np.full(12, 10), 1.0), joint(np.full(12, 20), 10.0)
    # The exact variances of two-sided geometric noise, 2 q / (1 - q)^2.
    one, two = (2 * q / (1 - q) ** 2 for q in (np.exp(-1.0), np.exp(-0.1)))
    expected = (120 / one + 240 / two) / (1 / one + 1 / two)

    assert replace(sharp, copies=(loud,)).noisy_rows() == round(expected)


def test_rows_of_parts_come_in_the_shares_of_their_noisy_totals() -> None:
    release = parted(only(0, 300), only(5, 100))

    drawn = cells(release, PATTERN)

    assert np.bincount(drawn, minlength=12)[[0, 5]].tolist() == [49152, 16384]


def test_public_shares_go_before_noisy_totals() -> None:
    release = parted(only(0, 300), only(5, 100), shares=(0.5, 0.5))

    assert np.bincount(cells(release, PATTERN), minlength=12)[[0, 5]].tolist() == [32768, 32768]


def test_parts_without_records_share_alike() -> None:
    assert part_shares(parted(only(0, -3), only(1, -9))).tolist() == [0.5, 0.5]


def test_places_of_the_pattern_are_the_shares_to_within_one() -> None:
    shares = np.array([0.1, 1 / 3, 1 - 0.1 - 1 / 3])

    found = places(shares)

    assert found.sum() == PATTERN
    assert np.abs(found - shares * PATTERN).max() < 1


@pytest.mark.parametrize("seed", [0, 7, 2**70])
def test_rows_of_parts_are_the_same_however_they_are_cut(seed: int) -> None:
    rng = np.random.default_rng(3)
    release = parted(*(joint(rng.integers(1, 50, 12)) for _ in range(3)))
    whole = sample(release, 3_000, seed=seed, set_index=1).values

    pieces = [sample(release, 700, seed=seed, set_index=1, start=s).values for s in (0, 700, 1_400)]
    chunks = [c.values for c in stream(release, 3_000, seed=seed, set_index=1, chunk=377)]
    twin = sample_reference(release, 3_000, seed=seed, set_index=1).values

    assert (np.concatenate(pieces) == whole[:2_100]).all()
    assert (np.concatenate(chunks) == whole).all()
    assert (twin == whole).all()


def test_rows_beyond_the_pattern_go_on_where_it_ends() -> None:
    release = parted(only(0, 300), only(5, 100))
    whole = cells(release, PATTERN + 500)

    assert (cells(release, 600, start=PATTERN - 100) == whole[PATTERN - 100 : PATTERN + 500]).all()


def test_parts_mix_within_a_set_and_differ_between_sets() -> None:
    release = parted(only(0), only(5))
    first, second = cells(release, 2_000, set_index=0), cells(release, 2_000, set_index=1)

    # Two fair mixtures agree in half of the rows; sd of the share is .011.
    assert abs((first == second).mean() - 0.5) < 0.06
    assert abs((first[:1_000] == 0).mean() - 0.5) < 0.08


def test_parts_have_streams_of_their_own() -> None:
    even = joint(np.full(12, 100))
    drawn = sample(parted(even, even), 4_000, seed=2).values
    pattern = prepared(parted(even, even))

    # Were both parts one stream, the rows of the two would repeat each other in order.
    one, two = (sample(even, 2_000, seed=s).values for s in (1, 2))
    assert pattern.shares.tolist() == [0.5, 0.5]  # type: ignore[union-attr]
    assert (one != two).any()
    counts = np.bincount(drawn[:, 1], minlength=3)
    # Uniform levels of 4,000 rows: chi-square with 2 df, level 1e-6.
    assert ((counts - 4_000 / 3) ** 2 / (4_000 / 3)).sum() < 27.6


def test_copies_within_parts_are_chosen_by_the_set() -> None:
    release = parted(replace(only(0), copies=(only(1),)), replace(only(2), copies=(only(3),)))

    drawn = [set(cells(release, 200, set_index=index).tolist()) for index in (0, 1)]

    assert drawn == [{0, 2}, {1, 3}]
    assert release.noisings == 2
