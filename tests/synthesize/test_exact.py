"""Exact draws from integer weights: no bias, whatever the total; numpy and compiled agree."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.sampling.exact_draws import accumulate, bounded, draw_levels, search, uniform_levels
from tests.synthesize.made import words_of


def scripted(words: list[int]):  # type: ignore[no-untyped-def]
    stock = iter(words)
    return lambda count: np.array([next(stock) for _ in range(count)], dtype=np.uint64)


def test_words_below_the_excess_are_thrown_away() -> None:
    excess = (1 << 64) % 10  # 6: words 0..5 would make some remainders likelier

    drawn = bounded(np.full(3, 10, dtype=np.uint64), scripted([excess - 1, excess, 7, 2, 13]))

    assert drawn.tolist() == [3, 6, 7]  # the first was drawn again twice: 2 is refused, 13 is not


def test_every_remainder_has_the_same_number_of_words() -> None:
    """The accepted words, 2**64 mod total to 2**64, are a whole number of runs."""
    for total in (1, 2, 3, 10, 2**32 + 1, 2**62 + 12345, 2**63 - 1, 2**63):
        low = (1 << 64) % total
        assert ((1 << 64) - low) % total == 0
        edge = bounded(np.array([total], dtype=np.uint64), scripted([low]))
        assert int(edge[0]) == low % total
        if low:
            again = bounded(np.array([total], dtype=np.uint64), scripted([low - 1, low]))
            assert int(again[0]) == low % total


def test_a_total_just_above_half_the_words_shows_no_modulo_bias() -> None:
    """Modulo without rejection would give the lower half twice the chance: 8192 draws see it."""
    total = 3 << 62
    drawn = bounded(np.full(8192, total, dtype=np.uint64), words_of(1))

    low = np.mean(drawn < np.uint64(1 << 62))

    assert abs(low - 1 / 3) < 5 * np.sqrt(2 / 9 / 8192)  # 5 sigma; biased would be 1/2


def test_compiled_and_numpy_searches_agree() -> None:
    generator = np.random.default_rng(2)
    weights = generator.integers(0, 50, (300, 41)).astype(np.uint64)
    weights[:, 7] += np.uint64(1)
    sums = accumulate(weights)
    slots = generator.integers(0, 300, 5000)
    points = bounded(sums[slots, -1], words_of(3))

    from gibbous.sampling.alias_kernels import search_rows

    found = np.empty(len(slots), dtype=np.int64)
    search_rows(sums, slots, points, found)

    assert (found == search(sums, slots, points)).all()
    assert (weights[slots, found] > 0).all()
    assert (
        draw_levels(sums, slots, words_of(4))
        == search(sums, slots, bounded(sums[slots, -1], words_of(4)))
    ).all()


def test_a_level_is_drawn_with_its_share_exactly() -> None:
    """All 12 points of a total of 12 give each level its weight."""
    sums = accumulate(np.array([[3, 0, 4, 5]], dtype=np.uint64))

    levels = search(sums, np.zeros(12, dtype=np.int64), np.arange(12, dtype=np.uint64))

    assert np.bincount(levels, minlength=4).tolist() == [3, 0, 4, 5]


def test_probabilities_are_read_to_52_bits_and_zeros_stay_zeros() -> None:
    sums = accumulate(np.array([[0.25, 0.0, 0.75], [0.0, 0.0, 0.0]]))

    assert sums[0].tolist() == [2**50, 2**50, 2**52]
    assert sums[1].tolist() == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_uniform_levels_cover_the_domain(size: int) -> None:
    drawn = uniform_levels(size, 500, words_of(5))

    assert set(drawn.tolist()) == set(range(size))
