"""Rows from public tables: compiled equals numpy, bytes do not depend on the cut, laws are right."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from gibbous.core.context import Hashed, Key, MinHash, Radix
from gibbous.core.errors import UsageError
from gibbous.core.schema import Impossible, impossible_mask
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.sampling import program as program_module
from gibbous.sampling import sample as sample_module
from gibbous.sampling import warmup
from gibbous.sampling.program import prepare
from gibbous.sampling.sample import sample, stream
from tests.synthesize.made import NOISE, context_of, noisy, rows_like, sample_reference, schema_of

SIZES = (3, 4, 2, 5, 3)
ROWS = rows_like(SIZES, 2000, seed=1)
ZEROS = (
    Impossible((("c0", (0, 1)), ("c1", (0,)))),
    Impossible((("c1", (3,)),)),
    Impossible((("c2", (1,)), ("c3", (1, 2)), ("c4", (0,)))),
)


def gibbs(
    key: Key = Radix(),  # noqa: B008
    support: str = "dense",
    *,
    fallback: str = "prefix",
    sizes=SIZES,  # type: ignore[no-untyped-def]
    rows=ROWS,  # type: ignore[no-untyped-def]
    impossible: tuple[Impossible, ...] = (),
    sweeps: int = 2,
    kappa: float = 0.5,
) -> Tables:
    p = len(sizes)
    items = tuple(
        noisy(
            context_of(sizes, [j], [(j + i) % p for i in range(1, min(4, p))], key, support),
            rows,
            j,
        )
        for j in range(p)
    )
    recipe = Recipe("gibbs", tuple(range(p)), sweeps, kappa, fallback)  # type: ignore[arg-type]
    return Tables(schema_of(sizes, impossible), items, recipe)


def chain(impossible: tuple[Impossible, ...] = (), **recipe: object) -> Tables:
    items = tuple(
        noisy(context_of(SIZES, [j], list(range(max(0, j - 2), j))), ROWS, j) for j in range(5)
    )
    return Tables(
        schema_of(SIZES, impossible),
        items,
        replace(Recipe("ancestral", (0, 1, 2, 3, 4), kappa=1.0), **recipe),  # type: ignore[arg-type]
    )


def joint(support: str = "dense", impossible: tuple[Impossible, ...] = ()) -> Tables:
    table = noisy(context_of(SIZES, range(5), [], support=support), ROWS, 1)
    return Tables(schema_of(SIZES, impossible), (table,), Recipe("ancestral", (0,)))


def mixed_widths() -> Tables:
    sizes = (300, 3, 2)
    return gibbs(sizes=sizes, rows=rows_like(sizes, 500, 2), support="seen")


GRID = [
    pytest.param(
        gibbs(key, support, fallback=fallback), id=f"{type(key).__name__}-{support}-{fallback}"
    )
    for key, support, fallback in itertools.product(
        (Radix(), Hashed(16), MinHash(2, 16)), ("dense", "seen"), ("prefix", "nearest", "reject")
    )
]
OTHERS = [
    pytest.param(chain(), id="chain"),
    pytest.param(chain(ZEROS), id="chain with zeros"),
    pytest.param(joint(), id="joint"),
    pytest.param(joint("seen"), id="joint sparse"),
    pytest.param(joint("dense", ZEROS), id="joint with zeros"),
    pytest.param(gibbs(impossible=ZEROS), id="gibbs with zeros"),
    pytest.param(
        gibbs(support="seen", fallback="reject", impossible=ZEROS), id="sparse with zeros"
    ),
    pytest.param(mixed_widths(), id="more than 256 levels"),
]


@pytest.mark.parametrize("tables", GRID + OTHERS)
def test_compiled_equals_numpy_bit_for_bit(tables: Tables) -> None:
    assert (
        sample(tables, 3000, seed=5).values == sample_reference(tables, 3000, seed=5).values
    ).all()


@pytest.mark.parametrize("tables", GRID)
@pytest.mark.parametrize("spread", [1 << 18, 0])
def test_searched_keys_give_the_rows_of_mapped_keys(
    tables: Tables, spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three lookups (one conditional a key, a map, open addressing) agree."""
    usual = sample(tables, 700, seed=6).values
    monkeypatch.setattr(program_module, "_SPREAD", spread)
    mapped = sample(tables, 700, seed=6).values
    monkeypatch.setattr(program_module, "DIRECT", 0)
    searched = sample(tables, 700, seed=6).values

    assert (usual == mapped).all()
    assert (usual == searched).all()


@pytest.mark.parametrize("tables", [GRID[0], *OTHERS])
def test_threads_chunks_and_start_change_no_byte(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_module, "_SLICE", 500)
    whole = sample(tables, 3000, seed=7, threads=1).values

    parts = [b.values for b in stream(tables, 3000, seed=7, chunk=701, threads=2)]
    tail = sample(tables, 100, seed=7, start=2900, threads=2).values

    assert (np.concatenate(parts) == whole).all()
    assert (tail == whole[2900:]).all()
    assert [len(p) for p in parts] == [701] * 4 + [196]


def test_g1_the_seed_and_the_set_decide_the_rows() -> None:
    tables = gibbs()
    one = sample(tables, 500, seed=1).values

    assert (sample(tables, 500, seed=1).values == one).all()
    assert (sample(tables, 500, seed=2).values != one).any()
    assert (sample(tables, 500, seed=1, set_index=1).values != one).any()
    assert (sample(prepare(tables), 500, seed=1).values == one).all()


def test_g2_successive_rows_and_sets_are_not_copies() -> None:
    tables = gibbs(sweeps=1)
    sets = [sample(tables, 4000, seed=1, set_index=i).values for i in range(8)]

    agree = [np.mean((a == b).all(axis=1)) for a, b in itertools.combinations(sets, 2)]
    shifted = np.mean((sets[0][1:] == sets[0][:-1]).all(axis=1))
    assert max(*agree, shifted) < 0.2
    assert len({s.tobytes() for s in sets}) == 8


@pytest.mark.parametrize("tables", GRID + OTHERS)
def test_every_value_is_in_the_schema_and_possible(tables: Tables) -> None:
    codes = sample(tables, 2000, seed=8)

    assert codes.values.shape == (2000, len(tables.schema))
    assert codes.values.dtype == tables.schema.code_dtype()
    assert (codes.values < np.array(tables.schema.sizes)).all()
    assert not impossible_mask(tables.schema, codes.values).any()
    assert not codes.secret


@pytest.mark.parametrize("tables", [GRID[0], GRID[3], *OTHERS])
def test_no_rows(tables: Tables) -> None:
    assert sample(tables, 0, seed=1).values.shape == (0, len(tables.schema))
    assert list(stream(tables, 0, seed=1)) == []


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1), (1, 4)])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_degenerate_tables(sizes: tuple[int, ...], count: int) -> None:
    rows = rows_like(sizes, count, 1)
    for tables in (
        gibbs(sizes=sizes, rows=rows),
        gibbs(sizes=sizes, rows=rows, support="seen", fallback="reject"),
    ):
        values = sample(tables, 50, seed=1).values
        assert (values < np.array(sizes)).all()
        assert (values == sample_reference(tables, 50, seed=1).values).all()


@pytest.mark.parametrize("fallback", ["prefix", "nearest", "reject"])
def test_tables_without_any_positive_count_give_uniform_rows(fallback: str) -> None:
    tables = gibbs(rows=ROWS[:0], fallback=fallback, support="seen", kappa=0.0)

    values = sample(tables, 20_000, seed=2).values

    for j, size in enumerate(SIZES):
        share = np.bincount(values[:, j], minlength=size) / 20_000
        assert np.abs(share - 1 / size).max() < 5 * np.sqrt(0.25 / 20_000)


def test_joint_tables_without_any_positive_count_give_uniform_rows() -> None:
    table = Table(context_of(SIZES, range(5), []), Dense(np.full((1, 360), -1)), NOISE)
    tables = Tables(schema_of(SIZES), (table,), Recipe("ancestral", (0,)))

    values = sample(tables, 36_000, seed=3).values

    seen = np.bincount(np.ravel_multi_index(values.T.astype(int), SIZES), minlength=360)
    assert ((seen - 100) ** 2 / 100).sum() < chi2.isf(1e-6, 359)


def exact(context, values: np.ndarray) -> Table:  # type: ignore[no-untyped-def]
    return Table(context, Dense(values), NoiseInfo("geometric", 1.0))


def test_ancestral_rows_follow_the_product_of_conditionals() -> None:
    sizes = (3, 4)
    first = np.array([[5, 0, 15]])
    second = np.array([[1, 2, 3, 4], [9, 9, 9, 9], [0, 10, 0, 30]])
    tables = Tables(
        schema_of(sizes),
        (exact(context_of(sizes, [1], [0]), second), exact(context_of(sizes, [0], []), first)),
        Recipe("ancestral", (1, 0)),
    )
    law = (first[0] / 20)[:, None] * second / second.sum(axis=1, keepdims=True)

    values = sample(tables, 40_000, seed=4).values

    seen = np.zeros((3, 4))
    np.add.at(seen, (values[:, 0], values[:, 1]), 1)
    held = law > 0
    assert seen[~held].sum() == 0
    statistic = ((seen - 40_000 * law)[held] ** 2 / (40_000 * law[held])).sum()
    assert statistic < chi2.isf(1e-6, held.sum() - 1)
    wrong = law * [1.05, 1, 1, 1]  # 5 % more of one level is seen
    wrong /= wrong.sum()
    assert ((seen - 40_000 * wrong)[held] ** 2 / (40_000 * wrong[held])).sum() > statistic


def test_joint_rows_follow_the_clipped_cells() -> None:
    sizes = (3, 4)
    cells = np.array([[5, -2, 7, 0, 20, 1, 3, -9, 0, 0, 11, 2]])
    tables = Tables(
        schema_of(sizes), (exact(context_of(sizes, [1, 0], []), cells),), Recipe("ancestral", (0,))
    )
    law = np.maximum(cells[0], 0) / np.maximum(cells[0], 0).sum()

    values = sample(tables, 40_000, seed=5).values.astype(int)

    seen = np.bincount(values[:, 1] * 3 + values[:, 0], minlength=12)
    held = law > 0
    assert seen[~held].sum() == 0
    assert ((seen - 40_000 * law)[held] ** 2 / (40_000 * law[held])).sum() < chi2.isf(
        1e-6, held.sum() - 1
    )


def test_gibbs_rows_follow_the_law_of_their_sweeps() -> None:
    """Two binary columns, start from the margins, three sweeps: matrix products are the truth."""
    sizes = (2, 2)
    joint_counts = np.array([[30, 5], [10, 55]])
    tables = Tables(
        schema_of(sizes),
        (
            exact(context_of(sizes, [0], [1]), joint_counts.T.copy()),
            exact(context_of(sizes, [1], [0]), joint_counts),
        ),
        Recipe("gibbs", (0, 1), sweeps=3),
    )
    from gibbous.sampling.conditionals import margins

    start = margins(tables)
    law = np.outer(start[0], start[1])
    for _ in range(3):
        law = joint_counts / joint_counts.sum(axis=0) * law.sum(axis=0)
        law = (
            joint_counts / joint_counts.sum(axis=1, keepdims=True) * law.sum(axis=1, keepdims=True)
        )

    values = sample(tables, 60_000, seed=6).values

    seen = np.zeros((2, 2))
    np.add.at(seen, (values[:, 0], values[:, 1]), 1)
    assert ((seen - 60_000 * law) ** 2 / (60_000 * law)).sum() < chi2.isf(1e-6, 3)


def test_masked_conditionals_keep_the_ratios_of_what_is_possible() -> None:
    sizes = (2, 3)
    zeros = (Impossible((("c0", (1,)), ("c1", (0,)))),)
    tables = Tables(
        schema_of(sizes, zeros),
        (
            exact(context_of(sizes, [0], []), np.array([[10, 30]])),
            exact(context_of(sizes, [1], [0]), np.array([[6, 3, 1], [50, 10, 30]])),
        ),
        Recipe("ancestral", (0, 1)),
    )
    law = np.array([[0.25 * 0.6, 0.25 * 0.3, 0.25 * 0.1], [0, 0.75 * 0.25, 0.75 * 0.75]])

    values = sample(tables, 40_000, seed=7).values

    seen = np.zeros((2, 3))
    np.add.at(seen, (values[:, 0], values[:, 1]), 1)
    held = law > 0
    assert seen[1, 0] == 0
    assert ((seen - 40_000 * law)[held] ** 2 / (40_000 * law[held])).sum() < chi2.isf(1e-6, 4)


def test_a_value_without_any_possible_partner_is_drawn_again() -> None:
    """c0 = 0 leaves nothing for c1: ancestral draws come to a dead end there, rows do not."""
    sizes = (2, 2)
    zeros = (Impossible((("c0", (0,)), ("c1", (0,)))), Impossible((("c0", (0,)), ("c1", (1,)))))
    for recipe in (Recipe("ancestral", (0, 1)), Recipe("gibbs", (0, 1))):
        tables = Tables(
            schema_of(sizes, zeros),
            (
                exact(context_of(sizes, [0], []), np.array([[90, 10]])),
                exact(context_of(sizes, [1], [0]), np.array([[5, 5], [5, 5]])),
            ),
            recipe,
        )
        values = sample(tables, 500, seed=8).values
        assert (values[:, 0] == 1).all()
        assert (values == sample_reference(tables, 500, seed=8).values).all()


def test_an_impossible_schema_is_refused() -> None:
    zeros = (Impossible((("c0", (0, 1, 2)),)),)

    with pytest.raises(UsageError, match="No possible row"):
        sample(gibbs(impossible=zeros), 10, seed=1)


def test_reject_never_leaves_the_noisy_support_and_keeps_the_previous_value() -> None:
    """Only (0, 0) and (1, 1) are known: a chain started elsewhere stays where it is."""
    sizes = (2, 2)
    cells = Sparse(np.array([0], dtype=np.uint64), np.array([0], dtype=np.uint64), np.array([9]))
    noise = NoiseInfo("geometric", 1.0, 2)
    items = tuple(
        Table(context_of(sizes, [j], [1 - j], support="seen"), cells, noise) for j in (0, 1)
    )
    extra = tuple(exact(context_of(sizes, [j], []), np.array([[1, 1]])) for j in (0, 1))
    tables = Tables(schema_of(sizes), items, Recipe("gibbs", (0, 1), 5, fallback="reject"), extra)

    values = sample(tables, 4000, seed=9).values

    cells_seen = np.bincount(values[:, 0] * 2 + values[:, 1], minlength=4) / 4000
    assert cells_seen[1] == cells_seen[2] == 0  # both move to (0, 0) at their first known key
    assert cells_seen[[0, 3]] == pytest.approx([0.75, 0.25], abs=0.03)


def test_an_ancestral_order_draws_parents_first() -> None:
    with pytest.raises(ValueError, match="parents before"):
        prepare(chain(order=(4, 3, 2, 1, 0)))


def test_gibbs_needs_one_column_a_table() -> None:
    with pytest.raises(ValueError, match="one column a table"):
        prepare(replace(joint(), recipe=Recipe("gibbs", (0,))))


def test_columns_without_a_table_come_from_their_margin() -> None:
    ones = exact(context_of(SIZES, [4], []), np.array([[0, 1, 3]]))
    tables = replace(
        chain(), recipe=Recipe("ancestral", (0, 1)), extra=(ones,), items=chain().items[:2]
    )

    values = sample(tables, 4000, seed=10).values

    assert np.bincount(values[:, 4], minlength=3) / 4000 == pytest.approx([0, 0.25, 0.75], abs=0.05)
    assert np.bincount(values[:, 2], minlength=2) / 4000 == pytest.approx([0.5, 0.5], abs=0.05)


def test_reconciled_tables_are_drawn_from() -> None:
    ones = tuple(noisy(context_of(SIZES, [j], []), ROWS, 20 + j) for j in range(5))
    tables = replace(chain(fit="rake"), extra=ones)

    values = sample(tables, 20_000, seed=11).values

    for j, size in enumerate(SIZES):
        real = np.bincount(ROWS[:, j], minlength=size) / len(ROWS)
        drawn = np.bincount(values[:, j], minlength=size) / 20_000
        assert np.abs(real - drawn).max() < 0.03


def test_progress_is_told_by_rows() -> None:
    told: list[tuple[str, int, int]] = []

    list(stream(chain(), 250, seed=1, chunk=100, progress=lambda *a: told.append(a)))

    assert told == [("rows", 0, 250), ("rows", 100, 250), ("rows", 200, 250), ("rows", 250, 250)]


@pytest.mark.slow
def test_warmup_compiles_and_reports() -> None:
    told: list[int] = []

    warmup(progress=lambda stage, done, total: told.append(done))

    assert told == sorted(told)
    assert told[-1] == 3


def test_B4_sbhg_rows_start_from_noisy_margins_and_keep_what_no_key_tells() -> None:
    """As the page of sbhg says. The law is worked out by hand for two tables of which few cells are left.

    a given b = 0: level 0 has 30 counts, level 1 has 10; b given a = 2: level 1 has 20. Rows start with
    a = 0, 1, 2 in shares 3, 1, 2 of 6 and, apart from it, b = 0, 1 in shares 2, 1 of 3. With b = 0 column a
    is redrawn; with b = 1 its key is unknown and it stays, and so does b unless a = 2. Four rows in eighteen
    are (0, 1) or (1, 1), which no table holds and no acceptance step refuses.
    """
    noise = NoiseInfo("geometric", 1.0, 5)
    b_0, a_2, levels = (np.array(n, dtype=np.uint64) for n in ([0, 0], [2], [0, 1]))
    cells = (Sparse(b_0, levels, np.array([30, 10])), Sparse(a_2, levels[1:], np.array([20])))
    items = tuple(
        Table(context_of((3, 3), [j], [1 - j], support="seen"), found, noise)
        for j, found in enumerate(cells)
    )
    recipe = Recipe("gibbs", (0, 1), sweeps=10, fallback="reject")

    rows = sample(Tables(schema_of((3, 3)), items, recipe), 4_000, seed=1).values

    found = np.bincount(rows[:, 0] * 3 + rows[:, 1], minlength=9)
    expected = 4_000 * np.array([9, 3, 0, 3, 1, 0, 0, 2, 0]) / 18
    assert found[expected == 0].sum() == 0
    off = (found - expected)[expected > 0]
    assert (off**2 / expected[expected > 0]).sum() < chi2.isf(1e-4, 4)
