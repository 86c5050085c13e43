"""Studies of sbhg: its formula against simulation, its printed steps, and what they publish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous import studies
from gibbous.privacy.calibrate.sba import survival
from gibbous.studies import sbhg_1, sbhg_2, sbhg_laws
from gibbous.studies.park2014_data import Microdata, correlated
from gibbous.studies.sbhg_conditionals import disintegrated, drawn, hashed, information, ranked
from gibbous.studies.seeded_draws import Draws, multinomial
from gibbous.studies.study_parts import Cell, Settings, load

LEVEL = 1e-4  # of each statistical test, over fixed seeds


def settings(name: str, **values: Any) -> Settings:
    study = load(name)
    merged = {**study.full, **study.quick, **values}
    return Settings(int(merged.pop("reps")), 3, True, merged)


def table(codes: Any, levels: int = 4) -> Microdata:
    names = tuple("abcdefghijkl"[: codes.shape[1]])
    return Microdata("made", names, codes, (tuple(map(str, range(levels))),) * len(names))


@pytest.mark.parametrize(
    ("epsilon", "printed", "corrected"), [(6, 2946.2, 2967.8), (10, -83.7, 799.7)]
)
def test_proposition_1_as_printed_and_corrected_have_their_golden_values(
    epsilon: float, printed: float, corrected: float
) -> None:
    cell = Cell("x", {"kind": sbhg_1.TABLES[0], "epsilon": epsilon})

    found = {r["series"]: r for r in sbhg_1.run_cell(cell, settings("sbhg-1", chains=1))}

    assert found[sbhg_1.SERIES[0]]["l1"] == pytest.approx(printed, abs=0.05)
    assert found[sbhg_1.SERIES[1]]["l1"] == pytest.approx(corrected, abs=0.05)
    simulated = found[sbhg_1.SERIES[2]]
    assert simulated["l1"] == pytest.approx(corrected, abs=4 * simulated["se"])
    assert abs(simulated["l1"] - printed) > 10 * simulated["se"]


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "follows"), [(1.0, True), (1.1, False)])
def test_cells_survive_with_the_chance_of_laplace_noise(scale: float, *, follows: bool) -> None:
    counts = np.full(40_000, 3)

    kept = (sbhg_laws.sba(counts, Draws(1, (1,)), scale=4 * scale, threshold=9.0) > 0).sum()

    chance = float(survival(np.array(3.0), 4.0, 9.0))
    assert bool(stats.binomtest(int(kept), 40_000, chance).pvalue > LEVEL) is follows


def test_cells_without_records_get_no_noise() -> None:
    noisy = sbhg_laws.sba(np.array([0, 50, 0]), Draws(1, (2,)), scale=100.0, threshold=-1e9)

    assert noisy[0] == noisy[2] == 0
    assert noisy[1] != 50


def test_hashed_counts_are_those_of_a_loop_over_records() -> None:
    codes = correlated((4, 3, 5), 300, Draws(2, (1,)))

    found = hashed(codes, (4, 3, 5), 1, (2, 0))

    for row in codes[:40]:
        same = codes[(codes[:, 2] == row[2]) & (codes[:, 0] == row[0])]
        line = found.counts[found.lines(row[None])[0]]
        assert line.tolist() == np.bincount(same[:, 1], minlength=3).tolist()
    assert found.counts.sum() == 300


def test_a_key_without_records_has_a_line_of_zeros() -> None:
    found = hashed(np.zeros((5, 2), dtype=np.int64), (3, 3), 0, (1,))

    assert found.counts[found.lines(np.array([[0, 2]]))[0]].tolist() == [0, 0, 0]


def test_mutual_information_ranks_a_copy_first_and_is_the_entropy_of_it() -> None:
    codes = correlated((4, 4, 4), 500, Draws(2, (2,)))
    codes[:, 2] = codes[:, 0]

    order = ranked(codes, (4, 4, 4))

    p = np.bincount(codes[:, 0]) / 500
    assert order[0][0] == 2
    assert order[2][0] == 0
    assert information(np.diag(np.bincount(codes[:, 0]))) == pytest.approx(-(p * np.log(p)).sum())
    assert information(np.outer([1, 2], [3, 6])) == pytest.approx(0, abs=1e-12)


@pytest.mark.statistical
def test_levels_are_drawn_by_weight_and_a_line_of_zeros_draws_none() -> None:
    sums = np.cumsum([[1.0, 0.0, 3.0, 6.0], [0.0, 0.0, 0.0, 0.0]], axis=1)
    lines = np.repeat([0, 1], [20_000, 5])

    level, some = drawn(sums, lines, Draws(3, (1,)).uniform(20_005))

    counts = np.bincount(level[:20_000], minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], [2000, 6000, 12_000]).pvalue > LEVEL
    assert some[:20_000].all()
    assert not some[20_000:].any()


def test_u_is_the_sum_over_occupied_cells_and_the_rest_is_outside() -> None:
    real = np.array([[0], [0], [0], [1]])
    made = np.array([[0], [1], [1], [2]])

    found = sbhg_laws.error(real, made, (3,))

    assert found["u"] == pytest.approx((3 - 1) ** 2 / 3 + (1 - 2) ** 2 / 1)
    assert found["outside"] == 0.25
    assert found["l1"] == 2 + 1 + 1
    assert found["degrees"] == 1
    assert found["shown"] == 1.0


@pytest.mark.statistical
def test_u_of_rows_drawn_from_the_records_is_the_occupied_cells_less_one() -> None:
    """Mean over 400 draws within 4 standard errors; exact for any counts."""
    codes = correlated((5, 5), 300, Draws(4, (1,)))
    cells, x = np.unique(codes @ np.array([5, 1]), return_counts=True)

    z = multinomial(Draws(4, (2,)), np.full(400, 300.0), np.tile(x / 300, (400, 1)))

    u = ((x - z) ** 2 / x).sum(axis=1)
    assert u.mean() == pytest.approx(len(cells) - 1, abs=4 * u.std() / 20)


def test_the_printed_acceptance_test_publishes_records_alone() -> None:
    """Line 13 of algorithm 3: no row but a record comes out; with the test on keys others do."""
    found = table(correlated((4,) * 6, 150, Draws(5, (1,))))
    given: dict[str, Any] = {"parents": 1, "epsilon": 5.0, "delta": 0.1, "sweeps": 3}

    by_line_13 = sbhg_laws.printed(found, Draws(5, (2,)), accept="record", **given)
    by_key = sbhg_laws.printed(found, Draws(5, (2,)), accept="key", **given)

    assert sbhg_laws.error(found.codes, by_line_13, found.sizes)["outside"] == 0
    assert sbhg_laws.error(found.codes, by_key, found.sizes)["outside"] > 0.2


@pytest.mark.statistical
def test_without_noise_and_with_all_columns_kept_rows_follow_the_records() -> None:
    """Mean of U / expected over 10 runs of 400 rows within 0.2 of 1; with one column kept it fails."""
    found = table(correlated((3, 3, 3), 400, Draws(6, (1,))), 3)

    def ratio(parents: int) -> float:
        runs = []
        for run in range(10):
            rows = sbhg_laws.printed(
                found, Draws(6, (2, run)), parents=parents, epsilon=None, delta=0.1, sweeps=20,
                accept="key",
            )  # fmt: skip
            one = sbhg_laws.error(found.codes, rows, found.sizes)
            runs.append(one["u"] / one["degrees"])
        return float(np.mean(runs))

    assert ratio(2) == pytest.approx(1, abs=0.2)
    assert ratio(1) > 1.2


def test_starts_have_all_their_cells_in_the_noisy_tables() -> None:
    found = table(correlated((4,) * 4, 400, Draws(7, (1,))))
    noisy = sbhg_laws.noised(
        disintegrated(found.codes, found.sizes, 1), Draws(7, (2,)), epsilon=0.2
    )

    rows = sbhg_laws.starts(found.codes, noisy, Draws(7, (3,)))

    assert noisy.survives(rows).all()
    assert not noisy.survives(found.codes).all()


@pytest.mark.statistical
def test_delta_of_several_tables_is_the_chance_that_a_lone_record_shows() -> None:
    tables, delta, epsilon = 10, 0.1, 0.1
    threshold = sbhg_laws.threshold_printed(epsilon, delta)

    noisy = sbhg_laws.sba(
        np.ones((20_000, tables)), Draws(8, (1,)), scale=2 / epsilon, threshold=threshold
    )

    shown = int((noisy > 0).any(axis=1).sum())
    true = sbhg_laws.true_delta(tables, delta)
    assert true == pytest.approx(0.4013, abs=5e-5)
    assert stats.binomtest(shown, 20_000, true).pvalue > LEVEL
    assert stats.binomtest(shown, 20_000, delta).pvalue < LEVEL


def test_small_u_on_the_sparse_table_comes_from_starting_at_records() -> None:
    """From starts that survived, U is at least a hundred times that of rows drawn from the records."""
    given = settings("sbhg-2", reps=2)
    rows = {}
    for method in (sbhg_2.EMPIRICAL, sbhg_2.RECORD, sbhg_2.LINE_9):
        params = {"kind": "sparse", "method": method, "k": 2, "epsilon": 0.1, "delta": 0.1}
        rows[method] = sbhg_2.run_cell(Cell("x", params), given)[0]

    near = rows[sbhg_2.EMPIRICAL]["u3"]
    assert near == pytest.approx(rows[sbhg_2.EMPIRICAL]["u3_degrees"], rel=0.2)
    assert rows[sbhg_2.RECORD]["u3"] == pytest.approx(near, rel=0.2)
    assert rows[sbhg_2.RECORD]["shown"] > 0.5
    assert rows[sbhg_2.LINE_9]["u3"] > 100 * near


@pytest.mark.slow
def test_sbhg_3_runs_on_a_given_table_and_says_so(tmp_path: Any) -> None:
    path = tmp_path / "mine.csv"
    codes = correlated((4, 3, 2), 300, Draws(9, (1,)))
    path.write_text("x,y,z\n" + "\n".join(",".join(map(str, row)) for row in codes) + "\n")

    ran = studies.run("sbhg-3", quick=True, workers=1, data=path)
    drawn = [figure.name for figure in ran.figures()]

    assert drawn == ["sbhg-3-u-u", "sbhg-3-two-ratio"]
    assert ran.confidential
    assert {row["table"] for row in ran.rows} == {"mine.csv"}
    assert {row["records"] for row in ran.rows} == {300}
    by = {(row["method"], row["epsilon"]): row for row in ran.rows}
    assert by["privbayes", 1.6]["true_delta"] == 0
    assert by["SBHG as printed, starts that survived", 1.6]["true_delta"] >= 1 - 0.95**3
    assert by["sbhg, as proven", 1.6]["true_delta"] == 1e-6


def test_seeded_methods_draw_the_same_rows_again() -> None:
    found = table(correlated((4,) * 4, 100, Draws(10, (1,))))
    given: dict[str, Any] = {"parents": 2, "epsilon": 1.0, "delta": 0.1, "sweeps": 2}

    one, two = (sbhg_laws.printed(found, Draws(10, (2,)), **given) for _ in range(2))

    assert np.array_equal(one, two)


@pytest.mark.slow
def test_sbhg_2_says_what_each_method_costs_at_least() -> None:
    ran = studies.run("sbhg-2", quick=True, workers=1, reps=1)
    drawn = [figure.name for figure in ran.figures()]

    by = {(r["kind"], r["method"], r["k"], r["delta"]): r["true_delta"] for r in ran.rows}
    assert drawn == ["sbhg-2-k", "sbhg-2-seconds", "sbhg-2-budget"]
    assert by["sparse", sbhg_2.LINE_9, 2, 0.1] == pytest.approx(0.4013, abs=5e-5)
    assert by["sparse", sbhg_2.RECORD, 2, 0.1] > 0.55  # most lone records come out as they are
    assert by["sparse", sbhg_2.SOUND, 2, 1e-4] == 1e-4
