"""Drawn rows: prices from public facts, seeds, structural zeros, fallbacks, degenerate tables."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.protocols import RowDraw
from gibbous.core.schema import Column, Impossible, Rule, Schema, impossible_mask
from gibbous.perturb.add import Add
from gibbous.perturb.diverse import Diverse
from gibbous.perturb.mix import Mix
from gibbous.perturb.tilt import Tilt
from gibbous.sampling.blocks import Block
from gibbous.sampling.gibbs_rows import BootstrapRows, GibbsRows, JointRows, ResetBlocks
from gibbous.sampling.structural_zeros import maps_of, uniform_rows, within_groups
from tests.synthesize.law import law
from tests.synthesize.made import (
    conditionals_of,
    context_of,
    counts_of,
    rows_like,
    schema_of,
    words_of,
)

SIZES = (3, 4, 1, 2)
ROWS = rows_like(SIZES, 300, seed=1)
CONTEXTS = [context_of(SIZES, [j], [(j + 1) % 4]) for j in range(4)]
ONE = Add(Fraction(1))
PAID = [
    GibbsRows(ONE, 2),
    GibbsRows(Tilt(Fraction(1, 3))),
    GibbsRows(Mix(Fraction(1, 2))),
    GibbsRows(Diverse(Fraction(3, 2)), fallback="nearest"),
    GibbsRows(Diverse(Fraction(2), "mix", "max_probability")),
    ResetBlocks(ONE, 4, 2),
]


def draw(one: RowDraw, rows: int, sizes=SIZES, data=ROWS, seed: int = 3) -> np.ndarray:  # type: ignore[no-untyped-def]
    counts = conditionals_of(np.asarray(data), sizes)
    return one(counts, schema_of(sizes), rows, words_of(seed)).values


def test_columns_with_one_level_are_free() -> None:
    claim = GibbsRows(ONE, 2).cost(CONTEXTS, 10, "add_remove", 1)

    assert float(claim.epsilon) == pytest.approx(10 * 2 * 3 * math.log(2), rel=1e-9)
    assert float(claim.epsilon) >= 60 * math.log(2)
    assert (claim.kind, claim.unit, claim.relation) == ("pure", "dataset", "add_remove")


def test_a_person_with_many_rows_pays_for_all_of_them() -> None:
    """Seven rows in one key cost ln(1 + 7/alpha) a draw; in a block they may sit in seven keys."""
    draws, tilted, blocks = GibbsRows(ONE), GibbsRows(Tilt(Fraction(1))), ResetBlocks(ONE, 5)

    def ratio(one: RowDraw) -> float:
        seven, single = (one.cost(CONTEXTS, 10, "replace_one", k).epsilon for k in (7, 1))
        return float(seven / single)

    assert ratio(draws) == pytest.approx(math.log(8) / math.log(2))
    assert ratio(tilted) == ratio(blocks) == pytest.approx(7)


def test_f1_a_thousand_rows_in_blocks_of_ten_cost_a_hundred_blocks() -> None:
    one = ResetBlocks(Add.within(Fraction(1, 3)), 10)
    block = one.cost(CONTEXTS, 10, "add_remove", 1).epsilon

    assert block <= 1
    assert one.cost(CONTEXTS, 1000, "add_remove", 1).epsilon == 100 * block
    assert one.cost(CONTEXTS, 1001, "add_remove", 1).epsilon == 101 * block


def test_no_rows_cost_nothing() -> None:
    for one in (GibbsRows(ONE), ResetBlocks(ONE, 5)):
        assert one.cost(CONTEXTS, 0, "add_remove", 1).epsilon == 0


def test_the_price_uses_the_alpha_that_is_drawn_with() -> None:
    """alpha is rounded up to a binary fraction; the price is that of the rounded one, rounded up."""
    add = Add(Fraction(1, 3))
    ones, unit = add.scaled

    claim = GibbsRows(add).cost(CONTEXTS, 1, "add_remove", 1)

    assert float(claim.epsilon) >= 3 * math.log1p(unit / ones)


def test_f10_l_diversity_is_never_called_differential_privacy() -> None:
    claim = GibbsRows(Diverse(Fraction(2))).cost(CONTEXTS, 10, "add_remove", 1)

    assert not claim.is_dp
    assert (claim.kind, claim.l, claim.epsilon) == ("l_diversity", 2, 0)


def test_a_share_claims_the_l_of_the_column_with_the_fewest_levels() -> None:
    claim = GibbsRows(Diverse(share=Fraction(1, 2))).cost(CONTEXTS, 10, "add_remove", 1)

    smallest = min(c.levels for c in CONTEXTS if c.levels > 1)
    assert claim.l <= math.sqrt(smallest) < claim.l + Fraction(1, 10**9)


def test_more_diversity_than_levels_is_refused_before_data() -> None:
    with pytest.raises(ParameterError, match="a column has 2 levels"):
        GibbsRows(Diverse(Fraction(3))).cost(CONTEXTS, 10, "add_remove", 1)


def test_f5_a_nearest_key_fallback_on_exact_counts_is_refused_under_a_dp_claim() -> None:
    with pytest.raises(PrivacyRefused, match="confidential"):
        GibbsRows(ONE, fallback="nearest").cost(CONTEXTS, 10, "add_remove", 1)


def test_reset_blocks_make_no_diversity_claim() -> None:
    with pytest.raises(PrivacyRefused, match="Add, Mix or Tilt"):
        ResetBlocks(Diverse(Fraction(2)), 3).cost(CONTEXTS, 10, "add_remove", 1)


@pytest.mark.parametrize(
    "one", PAID, ids=lambda d: f"{type(d).__name__}-{type(d.perturb).__name__}"
)
@pytest.mark.parametrize("rows", [0, 1, 5, 23])
def test_shape_type_and_range(one: RowDraw, rows: int) -> None:
    values = draw(one, rows)

    assert values.shape == (rows, 4)
    assert values.dtype == np.uint8
    assert (values < np.array(SIZES)).all()


@pytest.mark.parametrize(
    "one", [*PAID, JointRows(), BootstrapRows(2)], ids=lambda d: type(d).__name__
)
def test_degenerate_tables(one: RowDraw) -> None:
    for sizes, data in (
        (SIZES, np.zeros((0, 4), dtype=int)),
        (SIZES, ROWS[:1]),
        ((3,), np.array([[2], [2]])),
        ((1, 2), np.array([[0, 1]] * 5)),
    ):
        if isinstance(one, JointRows | BootstrapRows):
            counts = [counts_of(context_of(sizes, list(range(len(sizes))), []), data)]
            values = one(counts, schema_of(sizes), 9, words_of(1)).values
        else:
            values = draw(one, 9, sizes, data)
        assert (values < np.array(sizes)).all()
        assert values.shape == (9, len(sizes))


def test_f12_seeds_come_from_the_public_domain_and_never_from_a_record() -> None:
    """With uniform conditionals nothing of the records is left, also not in the starting rows."""
    data = np.array([[2, 3, 0, 1]] * 1000)

    values = draw(GibbsRows(Add(Fraction(1 << 50))), 4000, data=data)

    copies = np.mean((values == data[0]).all(axis=1))
    assert copies < 1 / 24 + 5 * math.sqrt(1 / 24 / 4000)


def test_a_last_block_may_be_short() -> None:
    assert draw(ResetBlocks(ONE, 4), 6).shape == (6, 4)


def test_rows_of_a_block_are_a_chain() -> None:
    """With (almost) no perturbation, one visit of each key and a copied column stays in the block."""
    data = np.repeat(np.arange(50), 40)[:, None].repeat(2, axis=1)
    sizes = (50, 50)
    counts = [counts_of(context_of(sizes, [1], [0]), data)]  # column 0 keeps the seed's value

    values = ResetBlocks(Add(Fraction(1, 10**6)), 2)(
        counts, schema_of(sizes), 200, words_of(2)
    ).values.reshape(100, 2, 2)

    assert (values[:, 0, 0] == values[:, 1, 0]).all()
    assert (values[:, 0, 1] == values[:, 0, 0]).mean() > 0.99  # first visit: the data
    assert (values[:, 1, 1] == values[:, 1, 0]).mean() < 0.15  # second visit: uniform


def test_rows_under_uneven_virtual_records_follow_the_law_by_enumeration() -> None:
    data = {(0, 0): 3, (1, 2): 2, (1, 0): 1}
    records = np.array([row for row, n in data.items() for _ in range(n)])
    uneven = (4, 1, 2)
    one = GibbsRows(ONE, own=((1, Add(Fraction(1), uneven)),))

    def weigh(counts: Sequence[int]) -> list[float]:
        virtual = uneven if len(counts) == 3 else (1, 1)
        return [n + a for n, a in zip(counts, virtual, strict=True)]

    sizes, drawn = (2, 3), 40_000
    contexts = [context_of(sizes, [0], [1]), context_of(sizes, [1], [0])]
    counts = [counts_of(context, records) for context in contexts]
    rows = one(counts, schema_of(sizes), drawn, words_of(8)).values
    expected = law(data, sizes, weigh)

    seen = Counter(map(tuple, rows.tolist()))
    chi = sum((seen[row] - drawn * p) ** 2 / (drawn * p) for (row,), p in expected.items())
    assert chi < 20.5  # chi-square with 5 degrees of freedom, .999


@pytest.mark.parametrize("ratios", [(), (3, 1, 2, 5)])
def test_virtual_records_of_impossible_levels_go_to_the_possible_ones(
    ratios: tuple[int, ...],
) -> None:
    add = Add(Fraction(1), ratios)
    block = Block(counts_of(context_of((4,), [0], []), np.zeros((0, 1), dtype=int)), add)
    allowed = np.array([[True, False, True, False]])

    own = block._masked(add.weights(np.zeros((1, 4), dtype=np.int64)), allowed)[0] / add.scaled[1]

    virtual = np.array(ratios or (1, 1, 1, 1))
    lost = virtual[[1, 3]].sum() / 2
    assert own == pytest.approx([virtual[0] + lost, 0, virtual[2] + lost, 0], rel=1e-6)


ZEROS = (
    Impossible((("c0", (0, 1)), ("c1", (0,)))),
    Impossible((("c1", (3,)),)),
    Impossible((("c0", (2,)), ("c1", (1,)), ("c3", (1,)))),
)


@pytest.mark.parametrize("one", [d for d in PAID if not hasattr(d.perturb, "diversity")])
def test_impossible_combinations_are_never_drawn(one: RowDraw) -> None:
    schema = schema_of(SIZES, ZEROS)
    keep = ~impossible_mask(schema, ROWS)

    for data in (ROWS, ROWS[keep]):
        values = one(conditionals_of(data, SIZES), schema, 2000, words_of(4)).values
        assert not impossible_mask(schema, values).any()
        assert len(np.unique(values, axis=0)) > 5


def test_possible_levels_share_the_virtual_records_of_impossible_ones() -> None:
    """Weights n + alpha C / |L|: the price of a replaced record rests on C alpha in every key."""
    data = np.array([[0]] * 5 + [[2]])
    block = Block(counts_of(context_of((3,), [0], []), data), ONE)
    allowed = np.tile([True, True, False], (40_000, 1))

    drawn = block.draw(np.zeros(40_000, dtype=np.uint64), words_of(16), allowed=allowed)

    law = np.array([6.5, 1.5]) / 8
    seen = np.bincount(drawn, minlength=3)
    assert seen[2] == 0
    assert ((seen[:2] - 40_000 * law) ** 2 / (40_000 * law)).sum() < chi2.isf(1e-6, 1)
    unshared = np.array([6, 1]) / 7
    assert ((seen[:2] - 40_000 * unshared) ** 2 / (40_000 * unshared)).sum() > chi2.isf(1e-6, 1)


GROUPED = Schema(
    (
        Column("chapter", "nominal", levels=("a", "b")),
        Column("code", "nominal", levels=("a1", "a2", "a3", "b1", "b2")),
        Column("sex", "binary", levels=("f", "m")),
    ),
    rules=(
        Rule(
            detail="code",
            group="chapter",
            map=(("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")),
        ),
    ),
)
MEMBERS = ((0, 1, 2), (3, 4))
VISITS = np.array([[0, 0, 0]] * 6 + [[0, 1, 1]] * 2 + [[1, 3, 0]] * 4 + [[1, 4, 1]] * 8)


def coarse_to_fine(data: np.ndarray, alpha: float) -> dict[tuple[int, ...], float]:
    """Chapter, then code among the chapter's own, then sex given the chapter; by brute force."""

    def shares(held: np.ndarray, levels: Sequence[int]) -> list[float]:
        counts = [alpha + int((held == level).sum()) for level in levels]
        return [count / sum(counts) for count in counts]

    found = {}
    for chapter, p in enumerate(shares(data[:, 0], (0, 1))):
        own = data[data[:, 0] == chapter]
        for code, q in zip(MEMBERS[chapter], shares(own[:, 1], MEMBERS[chapter]), strict=True):
            for sex, r in enumerate(shares(own[:, 2], (0, 1))):
                found[chapter, code, sex] = p * q * r
    return found


@pytest.mark.parametrize("told", [True, False])
def test_a_code_is_drawn_within_its_chapter_by_the_enumerated_law(told: bool) -> None:
    """The saboteur does not tell the map: codes of other chapters are drawn, or repaired to any."""
    sizes, drawn = (2, 5, 2), 40_000
    contexts = [context_of(sizes, [0], []), *(context_of(sizes, [j], [0]) for j in (1, 2))]
    schema = GROUPED if told else replace(GROUPED, rules=())
    counts = [counts_of(context, VISITS) for context in contexts]

    rows = GibbsRows(ONE)(counts, schema, drawn, words_of(21)).values

    expected = coarse_to_fine(VISITS, 1.0)
    seen = Counter(map(tuple, rows.tolist()))
    chi = sum((seen[row] - drawn * p) ** 2 / (drawn * p) for row, p in expected.items())
    assert (chi < chi2.isf(1e-6, len(expected) - 1)) == told
    assert (set(seen) <= set(expected)) == told


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_codes_within_chapters_keep_the_price_of_a_row(relation: str) -> None:
    """All neighbors of up to two records; the saboteur has half of the virtual records that are priced."""
    sizes = (2, 5, 2)
    contexts = [context_of(sizes, [0], []), *(context_of(sizes, [j], [0]) for j in (1, 2))]
    cells = [(c, code, sex) for c in (0, 1) for code in MEMBERS[c] for sex in (0, 1)]
    priced = float(GibbsRows(ONE).cost(contexts, 1, relation, 1).epsilon)  # type: ignore[arg-type]

    def worst(alpha: float) -> float:
        laws = {}
        for n in range(3):
            for table in itertools.combinations_with_replacement(cells, n):
                laws[table] = coarse_to_fine(np.array(table or np.zeros((0, 3))), alpha)
        pairs = [
            (one, two)
            for one, two in itertools.product(laws, repeat=2)
            if apart(one, two) <= (1 if relation == "add_remove" else 2)
            and (relation == "add_remove" or len(one) == len(two))
        ]
        return max(abs(math.log(laws[a][row] / laws[b][row])) for a, b in pairs for row in laws[a])

    def apart(one: Sequence[object], two: Sequence[object]) -> int:
        a, b = Counter(one), Counter(two)
        return sum(((a - b) + (b - a)).values())

    assert 0.4 * priced < worst(1.0) <= priced
    assert worst(0.1) > priced


@pytest.mark.parametrize("order", [("code", "chapter"), ("chapter",), ("code",)])
def test_a_code_before_its_chapter_or_without_it_is_drawn_among_all(order: tuple[str, ...]) -> None:
    assert maps_of(GROUPED, [GROUPED.index(name) for name in order]) == {}


def test_a_chapter_without_codes_leaves_all_of_them() -> None:
    (maps,) = maps_of(GROUPED, [0, 1, 2]).values()
    state = np.array([[0, 1, 2], [0, 0, 0], [0, 0, 0]])  # the third chapter has none

    allowed = within_groups(maps, state, None)

    assert allowed is not None
    assert allowed.tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1] * 5]


def test_structural_zeros_take_their_virtual_records_with_them_but_in_reset_blocks() -> None:
    """Of rows drawn apart, each draw is priced by the virtual records of one level alone."""
    schema = schema_of((3,), (Impossible((("c0", (2,)),)),))
    counts = [counts_of(context_of((3,), [0], []), np.array([[0]] * 5 + [[2]]))]

    for one, weights in ((GibbsRows(ONE), (6, 1)), (ResetBlocks(ONE, 1), (6.5, 1.5))):
        drawn = one(counts, schema, 40_000, words_of(23)).values[:, 0]
        seen = np.bincount(drawn, minlength=2)
        law_ = np.array(weights) / sum(weights)
        assert ((seen - 40_000 * law_) ** 2 / (40_000 * law_)).sum() < chi2.isf(1e-6, 1)


def test_diversity_with_structural_zeros_is_refused() -> None:
    schema = schema_of(SIZES, ZEROS)

    with pytest.raises(PrivacyRefused, match="impossible combinations"):
        GibbsRows(Diverse(Fraction(3, 2)))(conditionals_of(ROWS, SIZES), schema, 5, words_of(5))


def test_a_schema_without_any_possible_row_is_refused() -> None:
    schema = schema_of((2, 2), (Impossible((("c0", (0, 1)),)),))

    with pytest.raises(UsageError, match="No possible row"):
        uniform_rows(schema, 3, words_of(6))


def test_seed_rows_are_uniform_over_possible_rows() -> None:
    schema = schema_of((2, 3), (Impossible((("c0", (0,)), ("c1", (0,)))),))

    seen = uniform_rows(schema, 20_000, words_of(7))

    share = np.bincount(seen[0].astype(int) * 3 + seen[1], minlength=6) / 20_000
    assert share[0] == 0
    assert np.abs(share[1:] - 0.2).max() < 5 * math.sqrt(0.16 / 20_000)


def test_a_block_shows_nothing() -> None:
    block = Block(counts_of(context_of(SIZES, [0], [1]), ROWS), ONE)

    assert repr(block) == "<Block, secret>"
    with pytest.raises(TypeError):
        pickle.dumps(block)


@pytest.mark.parametrize("support", ["dense", "seen"])
def test_large_tables_take_the_same_draws_as_small_ones(
    support: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gibbous.sampling import blocks

    counts = conditionals_of(ROWS, SIZES, support)
    small = GibbsRows(ONE, 2)(counts, schema_of(SIZES), 500, words_of(8)).values
    monkeypatch.setattr(blocks, "_READY", 0)
    lazy = GibbsRows(ONE, 2)(counts, schema_of(SIZES), 500, words_of(8)).values

    assert (small == lazy).all()


def test_huge_key_spaces_are_held_sparsely() -> None:
    sizes = (2, *([50] * 9))
    data = rows_like(sizes, 400, seed=2)
    context = context_of(sizes, [0], list(range(1, 10)), support="seen")
    block = Block(counts_of(context, data), Add(Fraction(1, 10**6)))

    from gibbous.core.context import keys_of

    keys = keys_of(context, data)
    assert (block.draw(keys, words_of(9)) == data[:, 0]).mean() > 0.95
    absent = block.draw(np.full(4000, 50**9 - 1, dtype=np.uint64), words_of(10))
    assert abs(absent.mean() - 0.5) < 0.05


def test_nearest_takes_the_key_with_the_fewest_changed_parents() -> None:
    sizes = (3, 4, 4, 4)
    data = np.array([[0, 0, 0, 0]] * 5 + [[1, 3, 3, 3]] * 5 + [[2, 3, 0, 0]] * 5)
    context = context_of(sizes, [0], [1, 2, 3], support="seen")
    perturb = Diverse(Fraction(1))
    for support in ("seen", "dense"):
        context = context_of(sizes, [0], [1, 2, 3], support=support)
        block = Block(counts_of(context, data), perturb, "nearest")
        keys = np.array([0, 16 * 3 + 4 * 3 + 2, 16 * 3 + 4 * 1 + 0, 1], dtype=np.uint64)

        assert block.draw(keys, words_of(11)).tolist() == [0, 1, 2, 0]


@pytest.mark.statistical
def test_B4_of_several_nearest_keys_each_is_taken_as_often() -> None:
    """Three keys at the same distance, one farther; 6,000 draws: false alarm 1e-6."""
    sizes = (4, 3, 3)
    data = np.array([[0, 0, 1]] * 9 + [[1, 0, 2]] * 2 + [[2, 1, 0]] + [[3, 2, 2]] * 40)
    context = context_of(sizes, [0], [1, 2], support="seen")
    block = Block(counts_of(context, data), Diverse(Fraction(1)), "nearest")

    drawn = block.draw(np.zeros(6_000, dtype=np.uint64), words_of(13))

    counts = np.bincount(drawn, minlength=4)
    assert counts[3] == 0
    assert ((counts[:3] - 2_000) ** 2 / 2_000).sum() < chi2.isf(1e-6, 2)


def test_joint_rows_are_records_and_follow_their_counts() -> None:
    context = context_of(SIZES, [0, 1, 2, 3], [], support="seen")
    one = JointRows()

    values = one([counts_of(context, ROWS)], schema_of(SIZES), 20_000, words_of(12)).values

    cells, seen = np.unique(values, axis=0, return_counts=True)
    real, held = np.unique(ROWS, axis=0, return_counts=True)
    assert {tuple(c) for c in cells} <= {tuple(c) for c in real}
    expected = held / 300 * 20_000
    found = {tuple(c): n for c, n in zip(cells.tolist(), seen, strict=True)}
    chi = sum(
        (found.get(tuple(c), 0) - e) ** 2 / e for c, e in zip(real.tolist(), expected, strict=True)
    )
    assert chi < chi2.isf(1e-6, len(real) - 1)
    assert one.cost([context], 10, "replace_one", 1).kind == "none"
    assert one.cost([context], 10, "replace_one", 1).relation == "replace_one"


def test_joint_counts_dense_and_sparse_give_the_same_rows() -> None:
    drawn = [
        JointRows()(
            [counts_of(context_of(SIZES, [0, 1, 2, 3], [], support=s), ROWS)],
            schema_of(SIZES),
            100,
            words_of(13),
        ).values
        for s in ("dense", "seen")
    ]

    assert (drawn[0] == drawn[1]).all()


def test_bootstrap_weights_have_the_moments_of_the_dirichlet_law() -> None:
    """Over 3000 sets of a margin with counts (1, 4, 15): mean and variance within 5 sigma."""
    data = np.array([[0]] * 1 + [[1]] * 4 + [[2]] * 15)
    sets, size = 3000, 200
    counts = [counts_of(context_of((3,), [0], []), data)]

    values = BootstrapRows(sets)(counts, schema_of((3,)), sets * size, words_of(14)).values

    shares = np.stack([(values.reshape(sets, size) == v).mean(axis=1) for v in range(3)], axis=1)
    mean = np.array([1, 4, 15]) / 20
    variance = mean * (1 - mean) / 21  # of the weights, plus the draws of one set
    total = variance + (mean * (1 - mean) - variance) / size
    assert (np.abs(shares.mean(axis=0) - mean) < 5 * np.sqrt(total / sets)).all()
    assert shares.var(axis=0) == pytest.approx(total, rel=0.25)


def test_rows_without_a_claim_respect_impossible_combinations() -> None:
    """Two columns that never occur together in the records, and whose margins cross all the time."""
    schema = schema_of((2, 2, 3), (Impossible((("c0", (0,)), ("c1", (1,)))),))
    data = np.array([[0, 0, 1]] * 20 + [[1, 1, 2]] * 20 + [[1, 0, 0]] * 5)
    counts = [counts_of(context_of((2, 2, 3), [c], []), data) for c in range(3)]

    values = BootstrapRows(2)(counts, schema, 400, words_of(3)).values

    assert values.shape == (400, 3)
    assert not ((values[:, 0] == 0) & (values[:, 1] == 1)).any()
    assert ((values[:, 0] == 1) & (values[:, 1] == 1)).any()


def test_gammas_have_mean_and_variance_of_their_shape() -> None:
    from gibbous.sampling.unprotected_rows import gammas

    for shape in (1, 2, 50, 10**6):
        drawn = gammas(np.full(40_000, shape), words_of(15))
        assert abs(drawn.mean() / shape - 1) < 5 / math.sqrt(shape * 40_000)
        assert drawn.var() == pytest.approx(shape, rel=0.08)
