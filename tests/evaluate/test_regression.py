"""Regression coefficients: normal equations, odds ratios, overlaps by hand, designs that lack levels."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import GibbousError, ResourceLimit, UsageError
from gibbous.core.finding import Finding
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.measure import Options
from gibbous.evaluation.tables import Subject, side, subject
from gibbous.evaluation.utility import model_rows as formula
from gibbous.evaluation.utility import regression
from gibbous.evaluation.utility.model_rows import parse, rows
from gibbous.evaluation.utility.regression import Estimates, fit, overlap, standardized

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=(0, 50, 100), missing=True),
        Column("body mass", "numeric", edges=(0, 25, 50)),
        Column("day", "date", edges=(733000, 733100, 733400)),
        Column("town", "nominal", levels=("a", "b", "c", "d"), missing=True),
        Column("ill", "binary", levels=("no", "yes")),
        Column("stage", "ordinal", levels=("I", "II", "III")),
        Column("stay", "numeric", edges=(0, 10, 200)),
    )
)


def test_least_squares_are_the_normal_equations() -> None:
    real = _people(200, 1).with_columns(pl.col("town").fill_null("a"))
    x = np.column_stack(
        [np.ones(200), *(real["town"].to_numpy() == t for t in "bcd"), real["body mass"]]
    ).astype(float)
    y = real["stay"].to_numpy()
    inverse = np.linalg.inv(x.T @ x)
    truth = inverse @ x.T @ y
    errors = np.sqrt(np.diag(inverse) * np.sum((y - x @ truth) ** 2) / (200 - 5))

    found = _by_term(_coefficients(real, real, "stay ~ town + `body mass`"))

    names = ["Intercept", "town[T.b]", "town[T.c]", "town[T.d]", "body mass"]
    assert [found[n]["real"] for n in names] == pytest.approx(truth)
    assert [found[n]["real_se"] for n in names] == pytest.approx(errors)
    assert math.isnan(found["town[T.(missing)]"]["real"])


def test_logit_on_a_two_by_two_table_is_the_log_odds_ratio() -> None:
    counts = {("no", "a"): 30, ("yes", "a"): 10, ("no", "b"): 12, ("yes", "b"): 21}
    table = _crossed(counts, "ill")

    found = _by_term(_coefficients(table, table, "ill ~ town"))

    assert found["Intercept"]["real"] == pytest.approx(math.log(10 / 30))
    assert found["town[T.b]"]["real"] == pytest.approx(math.log((21 * 30) / (12 * 10)))
    error = math.sqrt(1 / 30 + 1 / 10 + 1 / 12 + 1 / 21)
    assert found["town[T.b]"]["real_se"] == pytest.approx(error, rel=1e-6)
    half = 1.959964 * error
    assert found["town[T.b]"]["real_high"] - found["town[T.b]"]["real"] == pytest.approx(half)


def test_multinomial_is_a_log_odds_ratio_a_level_against_the_most_frequent_one() -> None:
    counts = {
        ("I", "a"): 9, ("II", "a"): 20, ("III", "a"): 13,
        ("I", "b"): 16, ("II", "b"): 24, ("III", "b"): 6,
    }  # fmt: skip
    table = _crossed(counts, "stage")

    detail = _coefficients(table, table, "stage ~ town").detail

    found = {(row["level"], row["term"]): row["real"] for row in detail}
    assert found["I", "Intercept"] == pytest.approx(math.log(9 / 20))
    assert found["III", "town[T.b]"] == pytest.approx(math.log((6 / 24) / (13 / 20)))
    assert found["I", "town[T.b]"] == pytest.approx(math.log((16 / 24) / (9 / 20)))
    assert {level for level, _ in found} == {"I", "III"}


def test_two_levels_as_multinomial_are_the_logit_up_to_the_base() -> None:
    used = rows(parse("ill ~ age + stage", SCHEMA), side(_people(400, 2), SCHEMA))

    logit = fit("logit", used)
    other = fit("multinomial", used, levels=2, base=1)

    assert other.estimate == pytest.approx(-logit.estimate, rel=1e-5)
    assert other.se == pytest.approx(logit.se, rel=1e-5)


def test_overlap_by_hand() -> None:
    cases = {
        "equal": (0, 2, 0, 2, 1.0),
        "half": (0, 2, 1, 3, 0.5),
        "inside": (0, 4, 1, 2, (1 / 4 + 1) / 2),
        "apart": (0, 1, 2, 3, 0.0),
        "synthetic missing": (0, 1, math.nan, math.nan, 0.0),
        "real missing": (math.nan, math.nan, 0, 1, math.nan),
    }
    ends = np.array([case[:4] for case in cases.values()]).T

    found = overlap(_estimates(ends[0], ends[1]), _estimates(ends[2], ends[3]))

    assert found == pytest.approx([case[4] for case in cases.values()], nan_ok=True)


def test_standardized_difference_by_hand() -> None:
    real, other = _estimates([-1.0, 0], [1.0, 0]), _estimates([0.0, 1], [4.0, 2])

    assert standardized(real, other)[0] == pytest.approx(2 / (1 / 1.959964))
    assert math.isnan(standardized(real, other)[1])


@pytest.mark.parametrize(
    "formula", ["stay ~ age + town", "ill ~ age + town + stage", "stage ~ age + ill"]
)
def test_a_copy_of_the_records_is_ideal_and_independent_columns_are_not(formula: str) -> None:
    real = _people(1500, 3)

    near, shared = regression.findings(_subject(real, real), Options(formulas=(formula,)))

    # One set of N = n rows: T = W (N/n + 1/m) = 2 W.
    assert near.value == pytest.approx(0, abs=1e-9)
    assert shared.value == pytest.approx((1 + 1 / math.sqrt(2)) / 2, abs=1e-3)
    assert dict(near.null)["independent"] > 2 * dict(near.null)["bootstrap"]
    assert dict(shared.null)["independent"] < dict(shared.null)["bootstrap"] - 0.1
    assert near.name == "coefficients"
    assert shared.name == "ci_overlap"
    assert near.subject[0] == formula.split(" ")[0]


@pytest.mark.statistical
def test_a_resample_is_one_standard_error_away() -> None:
    """|b* - b| / se is about |normal|: mean .798, over 60 resamples of 8 coefficients that depend on
    each other; within .06, while standard errors 10 % off would give .718 or .878."""
    real = _people(800, 4)
    rng = np.random.default_rng(1)
    sets = [real[rng.integers(800, size=800)] for _ in range(60)]

    found = regression.findings(
        _subject(real, sets), Options(formulas=("stay ~ age + town + stage",))
    )[0]

    assert np.mean(found.sets) == pytest.approx(0.798, abs=0.06)


def test_sets_are_combined_before_they_are_compared() -> None:
    real, sets = _people(500, 5), [_people(250, s) for s in (6, 7, 8)]
    formula = "stay ~ age + ill"
    found = _coefficients(real, sets, formula)
    alone = [_by_term(_coefficients(real, one, formula)) for one in sets]

    for term, row in _by_term(found).items():
        own = [one[term]["synthetic"] for one in alone]
        # A set alone: T = v (N/n + 1); three: W (N/n + 1/3). N and n are rows that the fit can use.
        known = real["age"].count()
        size = np.mean([s["age"].count() for s in sets])
        within = [
            one[term]["synthetic_se"] ** 2 / (s["age"].count() / known + 1)
            for one, s in zip(alone, sets, strict=True)
        ]
        assert row["synthetic"] == pytest.approx(np.mean(own))
        expected = math.sqrt(np.mean(within) * (size / known + 1 / 3))
        assert row["synthetic_se"] == pytest.approx(expected)
    assert len(found.sets) == 3
    assert found.value < np.mean(found.sets)


def test_levels_that_a_table_lacks_leave_the_design_the_same() -> None:
    real = _people(300, 9).with_columns(pl.col("town").fill_null("a"))
    few = real.filter(pl.col("town").is_in(["a", "b"]))
    formula = parse("stay ~ town*ill", SCHEMA)
    whole = rows(formula, side(real, SCHEMA))

    part = rows(formula, side(few, SCHEMA), whole.spec)
    found = _by_term(_coefficients(real, few, "stay ~ town"))

    assert part.terms == whole.terms
    assert part.matrix[:, part.terms.index("town[T.c]")].tolist() == [0.0] * len(few)
    assert math.isfinite(found["town[T.c]"]["real"])
    assert math.isnan(found["town[T.c]"]["synthetic"])
    assert found["town[T.c]"]["overlap"] == 0
    assert found["town[T.b]"]["synthetic"] == pytest.approx(found["town[T.b]"]["real"])


def test_what_a_function_learns_is_learned_from_the_real_records() -> None:
    real, moved = _people(300, 10), _people(300, 11)
    formula = parse("stay ~ center(`body mass`) + poly(`body mass`, 2)", SCHEMA)
    first = rows(formula, side(real, SCHEMA))

    other = rows(formula, side(moved, SCHEMA), first.spec)

    assert other.matrix[:, 1] == pytest.approx(
        moved["body mass"].to_numpy() - real["body mass"].mean()
    )
    again = rows(formula, side(real, SCHEMA), first.spec)
    assert again.matrix == pytest.approx(first.matrix)


def test_the_synthetic_rows_are_centered_where_the_real_ones_are() -> None:
    real = _people(300, 10)
    moved = real.with_columns(pl.col("body mass") + 5)

    found = _by_term(_coefficients(real, moved, "stay ~ center(`body mass`)"))

    slope, base = found["center(`body mass`)"], found["Intercept"]
    assert slope["synthetic"] == pytest.approx(slope["real"])
    assert base["synthetic"] == pytest.approx(base["real"] - 5 * slope["real"])


def test_missing_numbers_are_dropped_and_counted_and_missing_levels_are_a_level() -> None:
    real = _people(400, 12)
    gone = real["age"].null_count()
    assert gone > 0
    assert real["town"].null_count() > 0

    found = _coefficients(real, real, "stay ~ age + town")
    used = rows(parse("stay ~ age + town", SCHEMA), side(real, SCHEMA))

    assert f"Real: {gone} rows left out for missing numbers." in found.note
    assert len(used.target) == 400 - gone
    assert "town[T.(missing)]" in used.terms


def test_days_count_from_the_first_declared_one() -> None:
    real = _people(100, 13)
    day = np.array([d.toordinal() for d in real["day"]]) - 733000

    used = rows(parse("stay ~ day", SCHEMA), side(real, SCHEMA))

    assert used.matrix[:, 1].tolist() == day.tolist()


def test_a_logarithm_of_zero_is_a_row_left_out() -> None:
    real = _people(50, 14).with_columns(
        stay=pl.when(pl.int_range(50) < 3).then(0.0).otherwise("stay")
    )

    used = rows(parse("log(stay) ~ town", SCHEMA), side(real, SCHEMA))

    assert used.dropped == 3
    assert used.target == pytest.approx(np.log(real["stay"].to_numpy()[3:]))


def test_separation_leaves_the_other_coefficients_as_they_are() -> None:
    # All of town d are ill: its coefficient is infinite; the others are those without town d.
    real = _people(600, 15).with_columns(pl.col("town").fill_null("a"))
    real = real.with_columns(
        ill=pl.when(pl.col("town") == "d").then(pl.lit("yes")).otherwise("ill")
    )

    found = _coefficients(real, real, "ill ~ town + stage")
    without = _coefficients(*[real.filter(pl.col("town") != "d")] * 2, "ill ~ town + stage")

    rows_, rest = _by_term(found), _by_term(without)
    assert math.isnan(rows_["town[T.d]"]["real"])
    assert "Real: 1 terms" in found.note
    assert "1 coefficients are infinite (separation)" in found.note
    for term in ("town[T.b]", "town[T.c]", "stage[T.III]", "Intercept"):
        assert rows_[term]["real"] == pytest.approx(rest[term]["real"], abs=1e-5)
        assert rows_[term]["real_se"] == pytest.approx(rest[term]["real_se"], rel=1e-3)


def test_complete_separation_by_a_number_has_no_coefficients() -> None:
    real = _people(200, 16)
    split = real.with_columns(
        ill=pl.when(pl.col("body mass") > 25).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )

    found = regression.findings(_subject(split, split), Options(formulas=("ill ~ `body mass`",)))

    assert math.isnan(found[0].value)
    assert math.isnan(found[1].value)
    assert "2 coefficients do not exist in the real records" in found[0].note


@pytest.mark.parametrize("seed", range(3))
def test_a_strong_but_finite_effect_is_not_taken_for_separation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    real = _people(3000, 17)
    odds = 0.8 * (real["body mass"].to_numpy() - 25)
    ill = np.where(rng.random(3000) < 1 / (1 + np.exp(-odds)), "yes", "no")
    real = real.with_columns(ill=pl.Series(ill))

    found = _by_term(_coefficients(real, real, "ill ~ `body mass`"))

    row = found["body mass"]
    assert row["real"] == pytest.approx(0.8, abs=4 * row["real_se"])


def test_separation_of_a_level_that_few_records_have_is_found() -> None:
    real = _people(4000, 26).with_columns(pl.col("town").fill_null("a").replace("d", "c"))
    rare = real.with_columns(
        town=pl.when(pl.int_range(4000) < 3).then(pl.lit("d")).otherwise("town"),
        ill=pl.when(pl.int_range(4000) < 3).then(pl.lit("no")).otherwise("ill"),
    )

    found = _by_term(_coefficients(rare, rare, "ill ~ town + age"))

    assert math.isnan(found["town[T.d]"]["real"])
    assert math.isfinite(found["town[T.c]"]["real"])
    assert math.isfinite(found["age"]["real"])


def test_a_poorly_known_intercept_is_not_taken_for_separation() -> None:
    # Days far from their origin: the intercept's error is 2,000 times that of an intercept alone.
    real = _people(600, 27)

    found = _by_term(_coefficients(real, real, "ill ~ I(age / 100 + 500)"))
    plain = _by_term(_coefficients(real, real, "ill ~ age"))

    assert found["I(age / 100 + 500)"]["real"] == pytest.approx(
        100 * plain["age"]["real"], rel=1e-3
    )
    assert math.isfinite(found["Intercept"]["real"])


def test_collinear_and_constant_terms_are_left_out_in_order() -> None:
    real = _people(200, 18)

    found = _by_term(_coefficients(real, real, "stay ~ age + I(2*age) + I(0*age) + ill"))
    plain = _by_term(_coefficients(real, real, "stay ~ age + ill"))

    assert math.isnan(found["I(2 * age)"]["real"])
    assert math.isnan(found["I(0 * age)"]["real"])
    for term, row in plain.items():
        assert found[term]["real"] == pytest.approx(row["real"])


def test_a_target_of_one_level_or_without_residual_is_not_defined() -> None:
    real = _people(60, 19)
    well = real.with_columns(ill=pl.lit("no"))
    exact = real.with_columns(stay=2 * pl.col("body mass") + 1)

    one = regression.findings(_subject(well, real), Options(formulas=("ill ~ age",)))
    other = regression.findings(_subject(real, well), Options(formulas=("ill ~ age",)))
    line = regression.findings(_subject(exact, real), Options(formulas=("stay ~ `body mass`",)))

    assert math.isnan(one[0].value)
    assert math.isnan(other[0].value)
    assert other[1].value == 0
    assert math.isnan(line[0].value)
    assert "the fit does not exist" in one[0].note


def test_terms_of_any_size_are_fitted() -> None:
    real = _people(500, 20)

    plain = _by_term(_coefficients(real, real, "ill ~ age"))["age"]
    large = _by_term(_coefficients(real, real, "ill ~ I(age * 1000000000)"))

    assert large["I(age * 1000000000)"]["real"] * 1e9 == pytest.approx(plain["real"])


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("stay ~ height", "'height'"),
        ("height ~ stay", "'height'"),
        ("stay", "one target"),
        ("stay ~ +*", "one target"),
        ("stay ~ age ~ ill", "one target"),
        ("stay ~ age | ill", "one target"),
        ("stay + age ~ ill", "more than one target"),
        ("stay ~ stay + age", "both sides"),
        ("stay ~ np.log(age)", "more than arithmetic"),
        ("stay ~ I(age.real)", "more than arithmetic"),
        ("stay ~ {9**9**9}", "more than arithmetic"),
        ("stay ~ {[c for c in (1, 2)]}", "more than arithmetic"),
        ("stay ~ I(lambda: age)", "'stay ~ I(lambda: age)'"),
        ('stay ~ __import__("os").getcwd()', "'stay ~ __import__"),
        ("stay ~ open(age)", "not known"),
        ("stay ~ C(age)", "as category"),
        ("stay ~ I(age * 2 ** 99)", "more than arithmetic"),
        ("stay ~ I(age * (9 ** 9) ** 9)", "more than arithmetic"),
        ('stay ~ C(town, "a" * 10 ** 10)', "more than arithmetic"),
        ("I(ill) ~ age", "a target that has levels"),
        ("1 ~ age", "no column as target"),
        ("stay ~ log(town)", "cannot be computed"),
    ],
)
def test_formulas_that_do_not_fit_the_schema_are_refused(formula: str, words: str) -> None:
    real = _people(40, 21)

    with pytest.raises(UsageError) as error:
        regression.findings(_subject(real, real), Options(formulas=("stay ~ age", formula)))

    assert words in str(error.value)
    assert error.value.exit_code == 2


def test_a_formula_runs_nothing_before_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    called: list[str] = []
    monkeypatch.setattr(os, "getcwd", lambda: called.append("ran") or "")

    for text in ('stay ~ __import__("os").getcwd()', 'stay ~ {__import__("os").getcwd()}'):
        with pytest.raises(GibbousError):
            parse(text, SCHEMA)

    assert called == []


def test_a_design_that_is_too_large_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formula, "CELLS", 20 * 100)
    real = _people(101, 22)

    # 5 + 5 * 3 terms: an upper bound, without the levels that are left out as base.
    text = "stay ~ 0 + town + town:stage"
    with pytest.raises(ResourceLimit, match="20 terms"):
        rows(parse(text, SCHEMA), side(real, SCHEMA))
    for finding in regression.findings(_subject(real, real), Options(formulas=(text,))):
        assert math.isnan(finding.value)
        assert "20 terms on 101 rows" in finding.note
    assert math.isfinite(_coefficients(real[:100], real[:100], text).value)


def test_an_empty_fit_has_no_coefficients() -> None:
    nothing = _people(30, 23).with_columns(age=pl.lit(None, dtype=pl.Float64))
    used = rows(parse("stay ~ age", SCHEMA), side(nothing, SCHEMA))

    found = fit("ols", used)

    assert np.isnan(found.estimate).all()
    assert found.rows == 0
    assert found.dropped == 30
    assert "no rows" in found.note
    for finding in regression.findings(
        _subject(nothing, nothing), Options(formulas=("stay ~ age",))
    ):
        assert math.isnan(finding.value)
        assert "not defined" in finding.note


def test_without_formulas_there_is_no_finding() -> None:
    real = _people(20, 24)

    assert regression.findings(_subject(real, real)) == []


def _people(size: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 90, size)
    mass = rng.uniform(18, 40, size)
    town = np.array(["a", "b", "c", "d", None])[rng.choice(5, size, p=[0.3, 0.3, 0.2, 0.15, 0.05])]
    ill = rng.random(size) < 1 / (1 + np.exp(-(age - 55) / 12 - (town == "c")))
    stage = np.clip((age / 30 + ill + rng.normal(0, 0.7, size)).astype(int) - 1, 0, 2)
    stay = np.clip(10 + 0.3 * age + 8 * ill + 4 * (town == "b") + rng.normal(0, 6, size), 0, 200)
    first = datetime.date.fromordinal(733000)
    frame = pl.DataFrame(
        {
            "age": age,
            "body mass": mass,
            "day": [first + datetime.timedelta(int(d)) for d in rng.integers(0, 400, size)],
            "town": town.tolist(),
            "ill": np.where(ill, "yes", "no"),
            "stage": np.array(["I", "II", "III"])[stage],
            "stay": stay,
        }
    )
    gone = pl.Series(rng.random(size) < 0.04)
    return frame.with_columns(age=pl.when(gone).then(None).otherwise("age"))


def _crossed(counts: dict[tuple[str, str], int], target: str) -> pl.DataFrame:
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    frame = _people(len(pairs), 1)
    return frame.with_columns(
        pl.Series(target, [level for level, _ in pairs]), pl.Series("town", [t for _, t in pairs])
    )


def _estimates(low: Any, high: Any) -> Estimates:
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return Estimates((low + high) / 2, (high - low) / 2 / 1.959964, low, high)


def _coefficients(real: Any, synthetic: Any, formula: str) -> Finding:
    return regression.findings(_subject(real, synthetic), Options(formulas=(formula,)))[0]


def _by_term(finding: Finding) -> dict[str, Any]:
    return {row["term"]: row for row in finding.detail}


def _subject(real: pl.DataFrame, synthetic: Any) -> Subject:
    return subject(real, synthetic, SCHEMA, seed=3)
