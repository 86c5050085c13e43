"""Whole releases, written and read back: models, tables and any estimator, without a real record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import ModelRejected, UsageError
from gibbous.evaluation.inference.analysis import Analysis
from gibbous.evaluation.inference.noise_replicates import EARLY
from gibbous.infer import combine, load_release
from tests.infer.made import METHODS, records, release

ONCE = ("noisy_pegs", "sbhg", "laplace", "sba")
FEW = 6  # replicates: these tests are about plumbing


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("releases")
    for name in METHODS:
        release(name, out=base / name)
    return {name: base / name for name in METHODS}


@pytest.mark.parametrize("method", ONCE)
def test_a_model_of_noised_tables_has_noise_in_its_variance(
    method: str, folders: dict[str, Path]
) -> None:
    found = load_release(folders[method]).glm("ill ~ sex", "binomial", replicates=FEW).combined

    assert found.rule == "unified"
    assert "noised once" in found.why
    assert "noisy number of rows" in found.why
    assert "V_s: noise of the published law drawn 6 times" in found.why
    assert (found.noise >= 0).all()
    assert found.sampling + found.synthesis + found.noise == pytest.approx(np.ones(2))


def test_much_noise_is_seen_in_the_variance(
    folders: dict[str, Path],
) -> None:
    found = load_release(folders["loud"]).glm("ill ~ sex", "binomial", replicates=FEW).combined

    assert (found.noise > 0.01).all()


@pytest.mark.parametrize("method", ["pegs", "contingency"])
def test_paid_rows_need_the_number_of_records(method: str, folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="number of records is not known"):
        load_release(folders[method]).glm("ill ~ sex", "binomial")


@pytest.mark.parametrize("method", ["pegs", "contingency"])
def test_paid_rows_are_combined_by_what_differs_between_sets(
    method: str, folders: dict[str, Path]
) -> None:
    found = load_release(folders[method], records=1_500).glm("ill ~ sex", "binomial").combined

    assert "B shows" in found.why
    assert (found.noise == 0).all()


def test_the_estimate_is_near_that_of_the_records(folders: dict[str, Path]) -> None:
    real = records()
    ill, male = real["ill"] == "yes", real["sex"] == "m"
    odds = np.log(
        (ill & male).sum() * (~ill & ~male).sum() / ((~ill & male).sum() * (ill & ~male).sum())
    )

    found = load_release(folders["laplace"]).glm("ill ~ sex", "binomial", replicates=FEW).combined

    assert abs(found.estimate[1] - odds) < 4 * found.se[1]


def test_the_summary_says_estimate_rule_reason_shares_and_what_is_left_out(
    folders: dict[str, Path],
) -> None:
    text = (
        load_release(folders["noisy_pegs"])
        .glm("ill ~ sex + age", "binomial", replicates=FEW)
        .summary()
    )

    for words in (
        "estimate",
        "se",
        "df",
        "low 95 %",
        "sampling",
        "synthesis",
        "noise",
        "rule: unified",
    ):
        assert words in text
    for bias in ("note: Projection", "note: Prior", "note: Binning"):
        assert bias in text


def test_a_level_that_no_set_has_is_said(folders: dict[str, Path]) -> None:
    fit = load_release(folders["contingency"], records=1_500).glm("ill ~ region", "binomial")

    assert "region[T.sea]: not estimated in any set (a level" in fit.summary()
    assert "rows of all sets have missing values" in fit.summary()
    assert json.dumps(fit.to_json(), allow_nan=False)


def test_a_released_table_is_used_directly(folders: dict[str, Path]) -> None:
    analysis = load_release(folders["laplace"])
    tables = analysis.release.tables
    assert tables is not None
    noisy = tables.items[0].cells.values.reshape(2, 2, 9, 5).sum(axis=(2, 3))

    found = analysis.table(["sex", "ill"])

    assert found.source == "released table"
    assert [row["share"] for row in found.rows()] == pytest.approx(
        (noisy.T / noisy.sum()).reshape(-1).tolist()
    )
    assert found.frame().columns == ["sex", "ill", "share", "se", "low", "high"]
    assert "The table itself was released" in str(found)


def test_columns_that_no_released_table_holds_come_from_the_rows(folders: dict[str, Path]) -> None:
    analysis = load_release(folders["sbhg"])

    found = analysis.table(["ill", "sex", "region"], replicates=FEW)

    sets = list(analysis.release.sets)
    shares = [
        s.filter(
            (pl.col("ill") == "yes") & (pl.col("sex") == "m") & (pl.col("region") == "west")
        ).height
        / s.height
        for s in sets
    ]
    row = next(r for r in found.rows() if tuple(r.values())[:3] == ("yes", "m", "west"))
    assert found.source == "rows"
    assert row["share"] == pytest.approx(np.mean(shares))
    assert 0 <= row["low"] < row["share"] < row["high"] <= 1


def test_shares_sum_to_one_and_a_share_below_zero_has_an_interval_at_zero(
    folders: dict[str, Path],
) -> None:
    found = load_release(folders["laplace"]).table(["region", "ill"])

    assert sum(row["share"] for row in found.rows()) == pytest.approx(1)
    assert all(row["low"] <= max(row["share"], 0) <= row["high"] for row in found.rows())
    assert all(row["high"] > 0 for row in found.rows())


def test_a_released_table_becomes_json(folders: dict[str, Path]) -> None:
    found = load_release(folders["laplace"]).table(["ill"])

    assert json.dumps(found.to_json(), allow_nan=False)
    assert json.dumps(found.combined.to_json(), allow_nan=False)
    assert found.combined.df[0] > 1_000


def test_a_table_without_intervals_draws_nothing_anew(folders: dict[str, Path]) -> None:
    found = load_release(folders["sbhg"]).table(["ill", "region"], ci=False)

    assert found.frame().columns == ["ill", "region", "share"]
    assert "note" not in str(found)


def test_a_rule_for_sets_makes_the_table_from_rows(folders: dict[str, Path]) -> None:
    found = load_release(folders["laplace"]).table(["ill"], rule="reiter2003")

    assert found.source == "rows"
    assert found.combined.rule == "reiter2003"


def test_any_estimator_of_a_frame(folders: dict[str, Path]) -> None:
    def mean_age(frame: pl.DataFrame) -> tuple[float, float]:
        age = frame["age"].to_numpy()
        return float(age.mean()), float(age.var(ddof=1) / len(age))

    near, loud = (
        load_release(folders[name]).combine(mean_age, replicates=count)
        for name, count in (("laplace", FEW), ("loud", 2 * FEW))
    )

    assert near.estimate.shape == ()
    assert float(near.estimate) == pytest.approx(45, abs=4)
    assert float(loud.noise) > 0


def test_an_estimator_that_returns_something_else_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="did not return two numbers"):
        load_release(folders["laplace"]).combine(lambda frame: frame)  # type: ignore[arg-type, return-value]


def test_an_analysis_says_how_its_sets_were_made_to_combine(folders: dict[str, Path]) -> None:
    analysis = load_release(folders["loud"])
    noise = analysis.noise_variance(lambda f: (f["ill"] == "yes").mean(), replicates=FEW)  # type: ignore[arg-type, return-value]

    found = combine([0.3, 0.31, 0.29], [1e-4] * 3, release=analysis, noise_variance=noise)

    assert found.records == analysis.facts.records
    assert float(found.noise) > 0
    assert any(text.startswith("Clipping") for text in found.warnings)


@pytest.mark.parametrize("rule", ["reiter2003", "raghunathan2003", "raab2016", "unified"])
def test_published_rules_are_available(rule: Any, folders: dict[str, Path]) -> None:
    found = load_release(folders["laplace"]).glm("ill ~ sex", "binomial", rule=rule, replicates=FEW)

    assert found.combined.rule == rule


def test_one_set_is_enough_for_the_unified_rule_and_not_for_others() -> None:
    analysis = Analysis(release("laplace", sets=1))

    assert np.isfinite(analysis.glm("ill ~ sex", "binomial", replicates=FEW).combined.se).all()
    with pytest.raises(UsageError, match="two sets or more"):
        analysis.glm("ill ~ sex", "binomial", rule="reiter2003")


def test_the_same_seed_gives_the_same_intervals(folders: dict[str, Path]) -> None:
    one, two = (
        load_release(folders["laplace"]).glm("ill ~ sex", "binomial", replicates=FEW, seed=4)
        for _ in range(2)
    )

    assert one.to_json() == two.to_json()


@pytest.mark.parametrize("columns", ["ill", [], ["nope"], ["ill", "ill"]])
def test_a_table_of_wrong_columns_is_refused(columns: Any, folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="the release has ill, sex, age, region"):
        load_release(folders["laplace"]).table(columns)


def test_a_folder_that_is_no_release_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ModelRejected) as caught:
        load_release(tmp_path)

    assert caught.value.exit_code == 8


def test_progress_is_told(folders: dict[str, Path]) -> None:
    seen: list[tuple[str, int, int]] = []

    load_release(folders["laplace"]).glm(
        "ill ~ sex", "binomial", replicates=4, progress=lambda *a: seen.append(a)
    )

    assert seen[0] == ("noise again", 0, 4)
    assert seen[-1] == ("noise again", 4, 4)


@pytest.mark.slow
def test_a_provisional_answer_is_that_of_the_first_ten_redraws(folders: dict[str, Path]) -> None:
    analysis, early = load_release(folders["laplace"]), []

    final = analysis.glm("ill ~ sex", "binomial", replicates=12, first=early.append)
    ten = analysis.glm("ill ~ sex", "binomial", replicates=EARLY, first=early.append)

    (provisional,) = early
    assert provisional.provisional
    assert not final.provisional
    assert provisional.summary().splitlines()[0].endswith("sets: 3, provisional")
    assert provisional.combined.to_json() == ten.combined.to_json()
    assert provisional.combined.se != pytest.approx(final.combined.se)


def test_the_levels_that_others_are_compared_with_are_said(folders: dict[str, Path]) -> None:
    found = load_release(folders["laplace"]).glm(
        "ill ~ sex", "binomial", replicates=0, reference={"ill": "yes"}
    )

    assert found.summary().splitlines()[-1] == "compared with: ill = yes, sex = f"
    assert found.to_json()["references"] == {"ill": "yes", "sex": "f"}


THREADS = """
import sys
from threadpoolctl import threadpool_info
from gibbous.infer import load_release

seen = []


def look(_):
    seen.extend(pool["num_threads"] for pool in threadpool_info())
    return [0.0], [1.0]


analysis = load_release(sys.argv[1])
analysis.glm("ill ~ sex", "binomial", replicates=12, first=look)
analysis.combine(look, replicates=2)
assert seen and set(seen) == {1}, seen
"""


@pytest.mark.slow
def test_a_fit_takes_one_thread_where_nobody_said_so(folders: dict[str, Path]) -> None:
    free = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}

    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(folders["laplace"])],
        env=free,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
