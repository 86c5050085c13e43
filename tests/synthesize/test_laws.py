"""Must show 3: the samplers' rows follow the law that brute force enumerates, and mutants do not.

Every chi-square test has level 1e-6. Its power against each mutant is computed from the noncentral
chi-square law and asserted to be above 0.999 before the mutant is tried.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from gibbous.perturb.add import Add
from gibbous.perturb.tilt import Tilt
from gibbous.sampling import gibbs_rows as rows_module
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks
from tests.synthesize import law as brute
from tests.synthesize.made import conditionals_of, schema_of, words_of

LEVEL = 1e-6
POWER = 0.999
TWO, THREE = (2, 2), (2, 3, 2)
ALPHA = Fraction(1, 4)
DATA_TWO = [(0, 0), (0, 0), (1, 1)]
DATA_THREE = [(0, 2, 1), (1, 2, 1), (0, 0, 0)]


def drawn(
    draw, data: Sequence[brute.Row] | np.ndarray, sizes: brute.Row, rows: int, block: int, seed: int
):  # type: ignore[no-untyped-def]
    """Blocks of rows as tuples, counted."""
    counts = conditionals_of(np.array(data), sizes)
    values = draw(counts, schema_of(sizes), rows, words_of(seed)).values
    shaped = values.reshape(-1, block, len(sizes)).tolist()
    return Counter(tuple(map(tuple, one)) for one in shaped)


def statistic(seen: Counter, law: brute.Law) -> float:  # type: ignore[type-arg]
    total = sum(seen.values())
    assert set(seen) <= set(law)
    return sum((seen[o] - total * p) ** 2 / (total * p) for o, p in law.items())


def fits(seen: Counter, law: brute.Law) -> bool:  # type: ignore[type-arg]
    return statistic(seen, law) <= chi2.isf(LEVEL, len(law) - 1)


def power(right: brute.Law, wrong: brute.Law, blocks: int) -> float:
    shift = blocks * sum((wrong[o] - p) ** 2 / p for o, p in right.items())
    return float(ncx2.sf(chi2.isf(LEVEL, len(right) - 1), len(right) - 1, shift))


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize(("sizes", "data"), [(TWO, DATA_TWO), (THREE, DATA_THREE)])
def test_plain_and_multi_sweep_rows_follow_their_law(
    sizes: brute.Row, data: list[brute.Row], sweeps: int
) -> None:
    seen = drawn(GibbsRows(Add(ALPHA), sweeps), data, sizes, 60_000, 1, seed=sweeps)

    assert fits(seen, brute.law(Counter(data), sizes, brute.add(0.25), sweeps=sweeps))


@pytest.mark.parametrize(("block", "sweeps"), [(3, 1), (2, 2)])
def test_reset_blocks_follow_their_law(block: int, sweeps: int) -> None:
    seen = drawn(ResetBlocks(Add(ALPHA), block, sweeps), DATA_TWO, TWO, 60_000, block, seed=7)

    right = brute.law(
        Counter(DATA_TWO),
        TWO,
        brute.add(0.25),
        rows=block,
        sweeps=sweeps,
        reset="visit",
        chained=True,
    )
    assert fits(seen, right)


def test_reset_blocks_of_three_columns_follow_their_law() -> None:
    seen = drawn(ResetBlocks(Add(ALPHA), 2), DATA_THREE, THREE, 100_000, 2, seed=8)

    right = brute.law(
        Counter(DATA_THREE), THREE, brute.add(0.25), rows=2, reset="visit", chained=True
    )
    assert fits(seen, right)


def test_tilted_rows_follow_their_law() -> None:
    seen = drawn(GibbsRows(Tilt(Fraction(3, 4))), DATA_TWO, TWO, 60_000, 1, seed=9)

    assert fits(seen, brute.law(Counter(DATA_TWO), TWO, brute.tilt(0.75)))


def test_rows_of_plain_draws_are_independent() -> None:
    """Pairs of successive rows follow the product law."""
    seen = drawn(GibbsRows(Add(ALPHA)), DATA_TWO, TWO, 60_000, 2, seed=10)

    one = brute.law(Counter(DATA_TWO), TWO, brute.add(0.25))
    pairs = {(*a, *b): one[a] * one[b] for a, b in itertools.product(one, repeat=2)}
    assert fits(seen, pairs)


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(11, 10)])
def test_a_wrong_alpha_is_noticed(factor: Fraction) -> None:
    records = Counter(DATA_TWO)
    right = brute.law(records, TWO, brute.add(0.25))
    wrong = brute.law(records, TWO, brute.add(0.25 * float(factor)))
    rows = 300_000
    assert power(right, wrong, rows) > POWER

    seen = drawn(GibbsRows(Add(ALPHA * factor)), DATA_TWO, TWO, rows, 1, seed=11)

    assert not fits(seen, right)


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(11, 10)])
def test_a_wrong_alpha_in_reset_blocks_is_noticed(factor: Fraction) -> None:
    records, rows = Counter(DATA_TWO), 600_000
    kind = {"rows": 2, "reset": "visit", "chained": True}
    right = brute.law(records, TWO, brute.add(0.25), **kind)  # type: ignore[arg-type]
    wrong = brute.law(records, TWO, brute.add(0.25 * float(factor)), **kind)  # type: ignore[arg-type]
    assert power(right, wrong, rows // 2) > POWER

    seen = drawn(ResetBlocks(Add(ALPHA * factor), 2), DATA_TWO, TWO, rows, 2, seed=12)

    assert not fits(seen, right)


def test_f2_a_reset_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant follows the law without a reset, and fails the law with it."""
    records, rows = Counter(DATA_TWO), 60_000
    right = brute.law(records, TWO, brute.add(0.25), rows=3, reset="visit", chained=True)
    wrong = brute.law(records, TWO, brute.add(0.25), rows=3, reset="never", chained=True)
    assert power(right, wrong, rows // 3) > POWER
    monkeypatch.setattr(rows_module, "RESET_AT_VISIT", False)

    seen = drawn(ResetBlocks(Add(ALPHA), 3), DATA_TWO, TWO, rows, 3, seed=13)

    assert fits(seen, wrong)
    assert not fits(seen, right)


@pytest.mark.slow
def test_f2_a_reset_at_the_end_of_the_row_is_not_a_reset_at_the_visit() -> None:
    """With two sweeps the two readings differ, and the rows follow the sound one."""
    records, rows = Counter(DATA_TWO), 60_000
    kind = {"rows": 2, "sweeps": 2, "chained": True}
    visit = brute.law(records, TWO, brute.add(0.25), reset="visit", **kind)  # type: ignore[arg-type]
    row = brute.law(records, TWO, brute.add(0.25), reset="row", **kind)  # type: ignore[arg-type]
    assert power(row, visit, rows // 2) > POWER

    seen = drawn(ResetBlocks(Add(ALPHA), 2, 2), DATA_TWO, TWO, rows, 2, seed=14)

    assert fits(seen, visit)
    assert not fits(seen, row)


def test_a_sparse_table_gives_the_law_of_the_dense_one() -> None:
    """F9: a key that no record has is drawn as zeros, so only occurring keys need to be held."""
    counts = conditionals_of(np.array(DATA_THREE), THREE, support="seen")
    dense = conditionals_of(np.array(DATA_THREE), THREE)
    for draw in (GibbsRows(Add(ALPHA), 2), ResetBlocks(Tilt(Fraction(1)), 3)):
        one = draw(counts, schema_of(THREE), 999, words_of(15))
        two = draw(dense, schema_of(THREE), 999, words_of(15))

        assert (one.values == two.values).all()


@pytest.mark.slow
def test_no_records_give_uniform_rows() -> None:
    seen = drawn(GibbsRows(Add(ALPHA), 2), np.zeros((0, 2), dtype=int), TWO, 20_000, 1, seed=16)

    assert fits(seen, {((a, b),): 0.25 for a in (0, 1) for b in (0, 1)})
