"""Studies of park2013 and park2014: their laws by formula, their measures by hand, their pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from gibbous import studies
from gibbous.studies import park2014
from gibbous.studies import park2014_laws as measures
from gibbous.studies.park2013 import Nearest
from gibbous.studies.park2014_data import ROWS, SHAPES, Microdata, correlated, like, read
from gibbous.studies.park2014_laws import (
    Imputer,
    added,
    alpha_printed,
    blocks,
    diverse,
    imputer,
    seeds,
    tilted,
)
from gibbous.studies.sbhg_conditionals import disintegrated, hashed
from gibbous.studies.sbhg_laws import gibbs
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Settings

LEVEL = 1e-4  # of each statistical test, over fixed seeds


def table(codes: Any, sizes: tuple[int, ...]) -> Microdata:
    names = tuple("abcdefgh"[: len(sizes)])
    labels = tuple(tuple(str(v) for v in range(size)) for size in sizes)
    return Microdata("made", names, codes, labels)


def law(sums: Any) -> Any:
    """Probabilities of each line, from running sums."""
    weights = np.diff(sums, axis=1, prepend=0.0)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def small() -> Microdata:
    return table(correlated((3, 4, 2), 400, Draws(1, (1,))), (3, 4, 2))


def test_virtual_records_give_the_printed_probabilities(small: Microdata) -> None:
    one = hashed(small.codes, small.sizes, 1, (0,))

    found = law(added([one], 2.5).cumulative[0])

    n = one.counts
    assert found == pytest.approx((n + 2.5) / (n.sum(axis=1, keepdims=True) + 4 * 2.5))
    assert found[-1] == pytest.approx(np.full(4, 0.25))


def test_alpha_is_that_of_the_paper() -> None:
    assert alpha_printed(1.0, 13) == pytest.approx(1 / math.expm1(1 / 13))
    assert alpha_printed(1.0, 13) == pytest.approx(12.506, abs=5e-4)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_diverse_lines_have_the_entropy_asked_for(small: Microdata, share: float) -> None:
    one = hashed(small.codes, small.sizes, 1, (0, 2))

    found = law(diverse([one], share).cumulative[0])

    entropy = -(found * np.log(np.maximum(found, 1e-300))).sum(axis=1)
    assert (entropy >= share * math.log(4) - 1e-9).all()


def test_without_diversity_lines_are_the_shares_of_the_records(small: Microdata) -> None:
    one = hashed(small.codes, small.sizes, 1, (0,))

    found = law(diverse([one], 0.0).cumulative[0])

    assert found[:-1] == pytest.approx(one.counts[:-1] / one.counts[:-1].sum(axis=1, keepdims=True))


def test_the_exponential_sampler_tends_to_the_mode_and_not_to_the_shares() -> None:
    one = hashed(np.array([[0, 0], [0, 0], [0, 0], [0, 1]]), (1, 2), 1, (0,))

    at = {epsilon: law(tilted([one], epsilon).cumulative[0])[0] for epsilon in (0.1, 50.0, None)}

    assert at[0.1] == pytest.approx(np.exp([0.3, 0.1]) / np.exp([0.3, 0.1]).sum())
    assert at[50.0] == pytest.approx([1.0, 0.0], abs=1e-12)
    assert at[None] == pytest.approx([0.75, 0.25])


@pytest.mark.statistical
def test_the_second_row_of_a_block_is_uniform_where_the_key_was_used() -> None:
    """Without contexts every visit meets the one key: row 1 follows the records, row 2 the reset."""
    found = added([hashed(np.array([[0]] * 90 + [[1]] * 10), (2,), 0, ())], 1e-9)

    rows = blocks(found, np.zeros((20_000, 1), dtype=np.int64), Draws(2, (1,)), block=2)

    first, second = int(rows[:20_000].sum()), int(rows[20_000:].sum())
    assert stats.binomtest(first, 20_000, 0.1).pvalue > LEVEL
    assert stats.binomtest(second, 20_000, 0.5).pvalue > LEVEL
    assert stats.binomtest(second, 20_000, 0.1).pvalue < LEVEL


@pytest.mark.statistical
def test_one_pass_follows_the_product_of_its_conditionals() -> None:
    """The law of one PeGS row from a fixed seed, column by column (park2014, eq. 1)."""
    found = table(correlated((2, 3), 60, Draws(3, (1,))), (2, 3))
    laws = added(disintegrated(found.codes, found.sizes, 1), 4.0)
    first, second = (law(sums) for sums in laws.cumulative)
    start = np.tile([0, 2], (20_000, 1))

    rows = gibbs(laws, start.copy(), Draws(3, (2,)), sweeps=1, records=None)

    line = laws.tables[0].lines(start[:1])[0]
    after = [laws.tables[1].lines(np.array([[v, 0]]))[0] for v in range(2)]
    expected = np.array([first[line][v] * second[after[v]] for v in range(2)]).ravel()
    counts = np.bincount(rows[:, 0] * 3 + rows[:, 1], minlength=6)
    assert stats.chisquare(counts, 20_000 * expected).pvalue > LEVEL
    assert stats.chisquare(counts, np.full(6, 20_000 / 6)).pvalue < LEVEL


def test_imputation_keeps_a_copied_column_and_virtual_mass_loses_it() -> None:
    codes = correlated((3, 3), 400, Draws(4, (1,)))
    codes[:, 1] = codes[:, 0]
    found = table(codes, (3, 3))
    models, start = imputer(found, 400), seeds(found, 2000, Draws(4, (2,)), records=False)

    near, far = (Imputer(models, alpha).rows(start, Draws(4, (3,))) for alpha in (0.0, 1e6))

    assert np.mean(near[:, 0] == near[:, 1]) > 0.9
    assert np.mean(far[:, 0] == far[:, 1]) == pytest.approx(1 / 3, abs=0.05)


def test_B4_an_unknown_key_is_read_as_one_of_its_hamming_nearest_each_as_often() -> None:
    """Against all distances, by brute force; 40 keys of three columns, 2,000 draws for each of 30 rows."""
    draws = Draws(4, (1,))
    codes = (draws.uniform(40, 4) * np.array([5, 4, 6, 2])).astype(np.int64)
    found = hashed(codes, (5, 4, 6, 2), 3, (0, 1, 2))
    keys = np.stack(np.unravel_index(found.keys, (5, 4, 6)), axis=1)
    near = Nearest.of(found)
    asked = (draws.at(2).uniform(30, 4) * np.array([5, 4, 6, 2])).astype(np.int64)

    lines = near.lines(np.repeat(asked, 2_000, axis=0), draws.at(3)).reshape(30, 2_000)

    several = 0
    for row, chosen in zip(asked, lines, strict=True):
        apart = (keys != row[:3]).sum(axis=1)
        nearest = np.flatnonzero(apart == apart.min())
        counts = np.bincount(chosen, minlength=len(keys))
        assert counts.sum() == counts[nearest].sum()
        several += len(nearest) > 1
        assert len(nearest) == 1 or stats.chisquare(counts[nearest]).pvalue > LEVEL
    assert several > 5
    # The numeric neighbor, which was taken before, is often not among them.
    after = np.searchsorted(found.keys, np.ravel_multi_index(tuple(asked[:, :3].T), (5, 4, 6)))
    neighbors = np.minimum(after, len(keys) - 1)
    far = (keys[neighbors] != asked[:, :3]).sum(axis=1)
    least = (keys[None] != asked[:, None, :3]).sum(axis=2).min(axis=1)
    assert (far > least).mean() > 0.15


def test_B4_the_nearest_key_hangs_on_the_sampling_seed_alone() -> None:
    codes = np.array([[0, 1, 1, 0], [0, 1, 4, 1], [0, 3, 0, 0]])
    near = Nearest.of(hashed(codes, (1, 5, 5, 2), 3, (1, 2)))
    rows = np.array([[0, 1, 3, 0]] * 50)

    one, again, other = (near.lines(rows, Draws(seed, (1,))) for seed in (1, 1, 2))

    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert set(one) == {0, 1}


def test_distances_are_0_to_the_table_itself_and_1_to_rows_with_other_levels() -> None:
    codes = np.repeat([[0, 0], [1, 1]], 5, axis=0)
    found = table(codes, (4, 4))

    assert measures.marginal_distance(found, codes) == 0
    assert measures.marginal_distance(found, codes + 2) == 1
    assert measures.conditional_distance(found, codes, "a") == 0
    assert measures.conditional_distance(found, codes[:5], "a") == 0.5  # level 1 of a has no row


def test_a_conditional_distance_sees_what_marginals_do_not() -> None:
    codes = np.array([[0, 0], [1, 1]] * 10)
    crossed = np.array([[0, 1], [1, 0]] * 10)

    assert measures.marginal_distance(table(codes, (2, 2)), crossed) == 0
    assert measures.conditional_distance(table(codes, (2, 2)), crossed, "a") == 1


def test_the_logistic_fit_is_that_of_scikit_learn() -> None:
    codes = correlated((5, 6, 2), 800, Draws(5, (1,)))
    found = table(codes, (5, 6, 2))

    ours = measures.logistic(found, codes, "c", ("a", "b"))

    x = (codes[:, :2] - codes[:, :2].mean(axis=0)) / codes[:, :2].std(axis=0)
    theirs = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000).fit(x, codes[:, 2])
    assert ours == pytest.approx([*theirs.intercept_, *theirs.coef_[0]], abs=1e-3)


def test_an_intruder_with_the_records_misses_none_of_a_function_of_the_key() -> None:
    a = np.arange(200) % 5
    found = table(np.stack([a, (2 * a) % 5], axis=1), (5, 5))
    even = table(np.stack([a, np.arange(200) // 40], axis=1), (5, 5))

    assert measures.attack(found, found.codes, ("a",), "b", found.codes) == 0
    assert measures.attack(even, even.codes, ("a",), "b", even.codes) == pytest.approx(0.8)
    assert measures.guessed_number(found, found.codes, ("a",), "b", found.codes) == 0


def test_an_intruder_without_the_key_guesses_the_likeliest_level_of_all() -> None:
    found = table(np.array([[0, 1], [0, 1], [0, 0], [1, 1]]), (3, 2))

    missed = measures.attack(found, found.codes, ("a",), "b", np.array([[2, 1], [2, 0]]))

    assert missed == 0.5


def test_unique_rows_are_those_with_a_key_of_their_own() -> None:
    found = table(np.array([[0, 0], [0, 0], [1, 0], [2, 1]]), (3, 2))

    assert measures.unique(found, found.codes, ("a",)) == 2
    assert measures.unique(found, found.codes, ("b",)) == 1


def test_labels_with_numbers_are_ordered_by_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("los,name\n10-29,b\n9,a\n0,b\n,b\n".replace("\n,b", "\n90+,b"))

    found = read(path, None)

    assert found.labels[0] == ("0", "9", "10-29", "90+")
    assert found.labels[1] == ("a", "b")
    assert found.codes.tolist() == [[2, 1], [1, 0], [0, 1], [3, 1]]
    assert found.numbers("los", np.array([0, 2, 3])).tolist() == [0, 10, 90]


@pytest.mark.parametrize("name", SHAPES)
def test_constructed_tables_have_the_levels_of_the_public_ones(name: str) -> None:
    found = like(name, 3000, 0)

    assert found.source == f"constructed like {name}"
    assert found.sizes == tuple(SHAPES[name].values())
    assert (found.codes.max(axis=0) < np.array(found.sizes)).all()
    assert abs(float(np.corrcoef(found.codes[:, 0], found.codes[:, 1])[0, 1])) > 0.1


@pytest.mark.shared
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_those_of_the_public_tables(name: str, shared_data: Path) -> None:
    found = read(shared_data / f"{name}.parquet", None, keep=tuple(SHAPES[name]))

    assert found.sizes == tuple(SHAPES[name].values())
    assert found.rows == ROWS[name]


def test_the_demonstration_on_a_given_table_starts_at_no_record() -> None:
    """All records are equal: a seed that is another row was not read off the table."""
    found = table(np.zeros((50, 6), dtype=np.int64), (9,) * 6)
    values = {"shown_epsilon": 1.0, "parents": 1}

    given, public = (
        park2014._demonstration(found, Settings(1, 0, True, values, data))[0]
        for data in (Path("mine.csv"), None)
    )

    assert set(public.values()) == {"seed", "0"}
    assert set(given.values()) - {"seed", "0"}


@pytest.mark.slow
def test_park2014_shows_that_blocks_are_nearer_and_imputation_is_far_at_the_charge() -> None:
    ran = studies.run("park2014", quick=True, workers=1)
    drawn = [figure.name for figure in ran.figures()]

    at = {(r["method"], r["epsilon"]): r for r in ran.rows if r["part"] == "map"}
    assert drawn == ["park2014-histograms", "park2014-utility", "park2014-risk"]
    assert {row["table"] for row in ran.rows} == {"constructed like discharge13"}
    block, pegs = at["Block PeGS with reset", 10.0], at["PeGS", 10.0]
    assert block["marginal"] < 0.7 * pegs["marginal"]
    assert at["perturbed imputation", 10.0]["marginal"] > pegs["marginal"]
    assert at["PeGS", 10.0]["marginal"] < at["PeGS", 0.1]["marginal"]
    assert at["PeGS", 10.0]["file_epsilon"] == 2000  # 200 rows: what the file costs
    assert at["PeGS, seeds are records", 10.0]["file_epsilon"] is None
    assert len(ran.tables()[0].rows) == 14  # the seed, and one line a column


@pytest.mark.slow
def test_park2013_shows_errors_that_grow_with_privacy() -> None:
    ran = studies.run("park2013", quick=True, workers=1)
    drawn = [figure.name for figure in ran.figures()]

    at = {(r["method"], r["value"], r["penalty"]): r for r in ran.rows if "penalty" in r}
    histograms = ["park2013-drg", "park2013-icd9-prcdr"]
    assert drawn == [*histograms, "park2013-mse", "park2013-paths"]
    real = [r["share"] for r in ran.rows if (r["method"], r.get("column")) == ("records", "drg")]
    assert sum(real) == pytest.approx(1)
    assert real == sorted(real, reverse=True)
    assert [len(p) for p in ran.figures()[0].chart.panels.values()] == [2 * len(real)] * 4
    assert at["records", None, 0.01]["mse"] < at["l-diversity", 0.0, 0.01]["mse"]
    assert at["l-diversity", 0.0, 0.01]["mse"] < at["l-diversity", 0.5, 0.01]["mse"]
    assert at["exponential", None, 0.01]["mse"] < at["exponential", 0.5, 0.01]["mse"]
    assert at["exponential", 0.5, 0.01]["even1"] < at["l-diversity", 0.5, 0.01]["even1"]
    assert at["l-diversity", 0.0, 0.01]["copied"] > 0.1
    assert at["exponential", 0.5, 0.01]["file_epsilon"] == 400 * 3 * 7 * 0.5
