"""Models against closed forms and another fit; and what happens where the rows do not determine them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.inference.models import Fitted, fit, parse
from gibbous.evaluation.tables import side

SCHEMA = Schema(
    (
        Column("y", "binary", levels=("no", "yes")),
        Column("g", "nominal", levels=("a", "b", "c"), missing=True),
        Column("h", "binary", levels=("low", "high")),
        Column("x", "numeric", edges=(0, 5, 10), missing=True),
        Column("z", "numeric", edges=(-20, 0, 20)),
        Column("visits", "ordinal", levels=(0, 1, 2, 5)),
        Column("odd name", "binary", levels=("n", "y")),
        Column("dx10", "binary", levels=("n", "y")),
    )
)


def rows(count: int = 400, seed: int = 2) -> dict[str, list[object]]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, count)
    g = rng.integers(0, 3, count)
    return {
        "y": [("no", "yes")[int(v)] for v in rng.random(count) < 0.2 + 0.05 * x],
        "g": [("a", "b", "c")[v] for v in g],
        "h": [("low", "high")[v] for v in rng.integers(0, 2, count)],
        "x": x.tolist(),
        "z": np.clip(1 + 0.5 * x - g + rng.normal(size=count), -20, 20).tolist(),
        "visits": [(0, 1, 2, 5)[v] for v in rng.integers(0, 4, count)],
        "odd name": [("n", "y")[v] for v in rng.integers(0, 2, count)],
        "dx10": [("n", "y")[v] for v in rng.integers(0, 2, count)],
    }


def fitted(formula: str, family: str, data: dict[str, list[object]]) -> Fitted:
    table = side(pl.DataFrame(data, strict=False), SCHEMA)
    return fit(parse(formula, family, SCHEMA), table.codes, table.frame)


def test_gaussian_is_least_squares() -> None:
    data = rows()
    found = fitted("z ~ x + g", "gaussian", data)
    g = np.array(data["g"])
    design = np.column_stack([np.ones(400), g == "b", g == "c", data["x"]]).astype(float)
    beta, residual, *_ = np.linalg.lstsq(design, np.array(data["z"], dtype=float), rcond=None)
    cover = np.linalg.inv(design.T @ design) * residual[0] / (400 - 4)

    by_name = dict(zip(found.names, found.estimates, strict=True))
    spread = dict(zip(found.names, found.variances, strict=True))
    order = ["Intercept", "g[T.b]", "g[T.c]", "x"]

    assert [by_name[n] for n in order] == pytest.approx(beta.tolist(), abs=1e-10)
    assert [spread[n] for n in order] == pytest.approx(np.diag(cover).tolist(), rel=1e-8)


def test_a_saturated_logit_is_the_log_odds() -> None:
    data = rows()
    y, h = np.array(data["y"]) == "yes", np.array(data["h"]) == "high"
    found = fitted("y ~ h", "binomial", data)
    cells = [[(y & h).sum(), (~y & h).sum()], [(y & ~h).sum(), (~y & ~h).sum()]]
    (a, b), (c, d) = cells

    assert found.names == ("Intercept", "h[T.high]")
    assert found.estimates[1] == pytest.approx(math.log(a * d / (b * c)), abs=1e-6)
    assert found.variances[1] == pytest.approx(1 / a + 1 / b + 1 / c + 1 / d, rel=1e-5)


def test_a_multinomial_of_one_factor_is_the_log_odds_of_each_level() -> None:
    data = rows()
    g, h = np.array(data["g"]), np.array(data["h"]) == "high"
    found = fitted("g ~ h", "multinomial", data)
    n = {level: (((g == level) & h).sum(), ((g == level) & ~h).sum()) for level in "abc"}

    assert found.names == ("b: Intercept", "b: h[T.high]", "c: Intercept", "c: h[T.high]")
    for place, level in ((1, "b"), (3, "c")):
        want = math.log(n[level][0] * n["a"][1] / (n[level][1] * n["a"][0]))
        assert found.estimates[place] == pytest.approx(want, abs=1e-5)
        assert found.variances[place] == pytest.approx(
            sum(1 / k for k in (*n[level], *n["a"])), rel=1e-4
        )


def test_a_poisson_model_of_one_factor_is_the_log_of_means() -> None:
    data = rows()
    visits, h = np.array(data["visits"]), np.array(data["h"]) == "high"

    found = fitted("visits ~ h", "poisson", data)

    want = math.log(visits[h].mean() / visits[~h].mean())
    assert found.estimates[1] == pytest.approx(want, abs=1e-6)
    assert found.variances[1] == pytest.approx(1 / visits[h].sum() + 1 / visits[~h].sum(), rel=1e-5)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
def test_rows_counted_together_give_what_another_library_gives_for_all_of_them(family: str) -> None:
    """Whole numbers, decimals and levels; statsmodels on the rows one by one."""
    import statsmodels.api as sm

    data = rows()
    data["x"] = [float(int(v)) for v in data["x"]]
    y = {"binomial": "y", "poisson": "visits", "gaussian": "z"}[family]
    found = fitted(f"{y} ~ g + x", family, data)
    g = np.array(data["g"])
    design = np.column_stack([np.ones(400), g == "b", g == "c", data["x"]]).astype(float)
    response = np.array(data[y]) == "yes" if y == "y" else np.array(data[y], dtype=float)
    done = sm.GLM(response, design, family=getattr(sm.families, family.capitalize())()).fit()

    order = [found.names.index(n) for n in ("Intercept", "g[T.b]", "g[T.c]", "x")]
    assert found.estimates[order] == pytest.approx(done.params, rel=1e-6, abs=1e-8)
    assert np.sqrt(found.variances[order]) == pytest.approx(done.bse, rel=1e-6)


def test_separated_rows_take_few_steps_and_leave_the_others_what_they_are_without_them() -> None:
    """As one coefficient goes to infinity the rows of its level say nothing of the rest."""
    data = rows(2_000)
    data["y"] = ["no" if g == "c" else y for y, g in zip(data["y"], data["g"], strict=True)]
    apart = {k: [v for v, g in zip(c, data["g"], strict=True) if g != "c"] for k, c in data.items()}

    found = fitted("y ~ g + x", "binomial", data)
    rest = fitted("y ~ g + x", "binomial", apart)

    assert found.separated == ("g[T.c]",)
    kept = [i for i, n in enumerate(found.names) if n != "g[T.c]"]
    assert found.estimates[kept] == pytest.approx(rest.estimates[kept], abs=1e-6)
    assert found.variances[kept] == pytest.approx(rest.variances[kept], rel=1e-5)


def test_a_reference_level_moves_contrasts_and_turns_the_outcome() -> None:
    """log odds of no against yes are those of yes against no, turned; c against a is c less a."""
    data = rows()
    data["g"][:10] = [None] * 10
    table = side(pl.DataFrame(data, strict=False), SCHEMA)
    asked = {"y": "yes", "g": "c"}
    model = parse("y ~ g + x", "binomial", SCHEMA, asked)

    usual = fitted("y ~ g + x", "binomial", data)
    turned = fit(model, table.codes, table.frame)

    one = dict(zip(usual.names, usual.estimates, strict=True))
    two = dict(zip(turned.names, turned.estimates, strict=True))
    assert model.references == asked
    assert set(two) == {"Intercept", "g[T.a]", "g[T.b]", "x"}
    assert two["x"] == pytest.approx(-one["x"], abs=1e-7)
    assert two["g[T.a]"] == pytest.approx(one["g[T.c]"], abs=1e-7)
    assert two["g[T.b]"] == pytest.approx(one["g[T.c]"] - one["g[T.b]"], abs=1e-7)


def test_the_reference_of_a_multinomial_outcome_is_the_class_that_others_are_held_against() -> None:
    table = side(pl.DataFrame(rows(), strict=False), SCHEMA)
    found = fit(parse("g ~ h", "multinomial", SCHEMA, {"g": "b"}), table.codes, table.frame)
    usual = fitted("g ~ h", "multinomial", rows())

    assert found.names[:2] == ("a: Intercept", "a: h[T.high]")
    assert found.estimates[1] == pytest.approx(-usual.estimates[1], abs=1e-6)


def test_without_a_wish_the_first_levels_are_the_references_and_numbers_have_none() -> None:
    assert parse("y ~ g + x", "binomial", SCHEMA).references == {"y": "no", "g": "a"}
    assert parse("visits ~ g + x", "poisson", SCHEMA).references == {"g": "a"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"g": "d"}, "Column g has no level 'd'.*a, b, c"),
        ({"x": "1"}, "'x', which is not a column with levels of this formula"),
        ({"h": "low"}, "'h', which is not a column"),
        ({"visits": "1"}, "'visits', which is not a column"),
    ],
)
def test_a_reference_that_is_no_level_of_the_formula_is_refused(
    asked: dict[str, str], words: str
) -> None:
    family = "poisson" if "visits" in asked else "binomial"
    with pytest.raises(UsageError, match=words):
        parse(f"{'visits' if family == 'poisson' else 'y'} ~ g + x", family, SCHEMA, asked)


def test_levels_are_in_the_order_of_the_schema_whether_they_occur_or_not() -> None:
    data = rows()
    data["g"] = ["c" if v == "b" else v for v in data["g"]]

    found = fitted("y ~ g", "binomial", data)

    assert found.names == ("Intercept", "g[T.b]", "g[T.c]")
    assert found.absent == ("g[T.b]",)
    assert np.isnan(found.estimates).tolist() == [False, True, False]


def test_without_the_reference_level_only_what_is_determined_is_estimated() -> None:
    data = rows()
    data["g"] = ["b" if v == "a" else v for v in data["g"]]

    found = fitted("z ~ x + g", "gaussian", data)

    known = {n for n, v in zip(found.names, found.estimates, strict=True) if not math.isnan(v)}
    assert known == {"x"}
    assert set(found.absent) == {"Intercept", "g[T.b]", "g[T.c]"}


def test_separation_is_noticed_and_does_not_spoil_the_other_coefficients() -> None:
    data = rows()
    data["y"] = ["yes" if g == "c" else y for y, g in zip(data["y"], data["g"], strict=True)]

    found = fitted("y ~ g + h", "binomial", data)

    assert found.separated == ("g[T.c]",)
    assert np.isfinite(found.estimates[[0, 1, 3]]).all()


def test_a_rare_but_estimable_level_is_not_called_separated() -> None:
    data = rows()
    data["g"] = ["c" if i < 4 else "a" for i in range(400)]
    data["y"][:4] = ["yes", "no", "no", "no"]

    assert fitted("y ~ g", "binomial", data).separated == ()


@pytest.mark.parametrize(
    ("formula", "family", "fate"),
    [("y ~ h", "binomial", "separated"), ("g ~ h", "multinomial", "absent")],
)
def test_a_response_that_never_varies_determines_nothing(
    formula: str, family: str, fate: str
) -> None:
    data = rows()
    data["y"], data["g"] = ["yes"] * 400, ["b"] * 400

    found = fitted(formula, family, data)

    assert np.isnan(found.estimates).all()
    assert getattr(found, fate) == found.names


def test_without_the_level_that_others_are_compared_with_nothing_is_estimated() -> None:
    data = rows()
    data["g"] = ["c" if v == "a" else v for v in data["g"]]

    found = fitted("g ~ h", "multinomial", data)

    assert found.absent == found.names
    assert found.separated == ()


def test_an_outcome_level_that_does_not_occur_is_not_estimated() -> None:
    data = rows()
    data["g"] = ["c" if v == "b" else v for v in data["g"]]

    found = fitted("g ~ h", "multinomial", data)

    assert np.isnan(found.estimates).tolist() == [True, True, False, False]


def test_rows_with_missing_values_are_left_out_and_counted() -> None:
    data = rows()
    data["g"][:10] = [None] * 10
    data["x"][5:20] = [None] * 15

    found = fitted("z ~ x + g", "gaussian", data)
    rest = fitted("z ~ x + g", "gaussian", {k: v[20:] for k, v in data.items()})

    assert found.dropped == 20
    assert found.estimates == pytest.approx(rest.estimates)


def test_a_column_that_is_missing_throughout_is_refused() -> None:
    data = rows()
    data["x"] = [None] * 400

    with pytest.raises(UsageError, match="No row of a set has values"):
        fitted("z ~ x", "gaussian", data)


def test_terms_may_be_functions_products_and_names_in_backticks() -> None:
    found = fitted("y ~ log(x) + g:h + `odd name`", "binomial", rows())

    assert "log(x)" in found.names
    assert "g[T.b]:h[high]" in found.names
    assert "odd name[T.y]" in found.names
    assert np.isfinite(found.estimates).all()


def test_a_name_may_hold_digits_and_a_formula_numbers() -> None:
    found = fitted("dx10 ~ I(x**2) + I(1.5 * z)", "binomial", rows())

    assert found.names == ("Intercept", "I(x ** 2)", "I(1.5 * z)")
    assert np.isfinite(found.estimates).all()


def test_the_response_may_be_a_function_of_a_number() -> None:
    data = rows()
    found = fitted("log(x) ~ 1", "gaussian", data)

    assert found.estimates[0] == pytest.approx(float(np.mean(np.log(data["x"]))))


def test_log_of_zero_is_refused() -> None:
    data = rows()
    data["x"][0] = 0.0

    with pytest.raises(UsageError, match="finite everywhere"):
        fitted("y ~ log(x)", "binomial", data)


@pytest.mark.parametrize(
    ("formula", "family", "name"),
    [
        ("y ~ nope", "binomial", "COLUMN"),
        ("nope ~ x", "gaussian", "COLUMN"),
        ("y", "binomial", "FORMULA"),
        ("y ~ ", "binomial", "FORMULA"),
        ("y ~ 0", "binomial", "FORMULA"),
        ("~ x", "gaussian", "FORMULA"),
        ("1 ~ x", "gaussian", "FORMULA"),
        ("y ~ x ~ g", "binomial", "FORMULA"),
        ("y ~ __import__('os')", "binomial", "FORMULA"),
        ("y ~ {x}", "binomial", "FORMULA"),
        ("y ~ x.real", "binomial", "FORMULA"),
        ("y ~ poly(x, 2)", "binomial", "FORMULA"),
        ("y ~ x | g", "binomial", "FORMULA"),
        ("y ~ C(x)", "binomial", "FORMULA"),
        ("I(x * 2 ** 99) ~ g", "gaussian", "FORMULA"),
        ("y ~ I(9 ** 9 ** 9 * x)", "binomial", "FORMULA"),
        ("y ~ I(((9 ** 9) ** 9) * x)", "binomial", "FORMULA"),
        ("y ~ exp(x)(2)", "binomial", "FORMULA"),
        ("y ~ I((x, z))", "binomial", "FORMULA"),
        ("y ~ x", "probit", "FAMILY"),
        ("x ~ g", "binomial", "RESPONSE"),
        ("g ~ x", "binomial", "RESPONSE"),
        ("x ~ g", "multinomial", "RESPONSE"),
        ("g ~ x", "gaussian", "RESPONSE"),
        ("g ~ x", "poisson", "RESPONSE"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(formula: str, family: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(formula, family, SCHEMA)

    assert caught.value.code == f"GB2-{name}"


def test_an_absent_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(UsageError, match=r"'nope'.*y, g, h, x, z, visits, odd name, dx10"):
        parse("y ~ x + nope", "binomial", SCHEMA)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ (x", "cannot be used"),
        ("y ~ x +", "cannot be used"),
        ("y ~ * x", "cannot be used"),
        ("y ~ log(g)", "cannot be computed"),
    ],
)
def test_a_formula_that_cannot_be_computed_is_refused(formula: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fitted(formula, "binomial", rows())


@pytest.mark.parametrize("formula", ["z ~ z", "z ~ x + log(z)", "`odd name` ~ x * `odd name`"])
def test_a_response_among_its_own_terms_is_refused(formula: str) -> None:
    with pytest.raises(UsageError, match="on both sides"):
        parse(formula, "gaussian", SCHEMA)


def test_rare_outcomes_do_not_take_the_frequent_ones_with_them() -> None:
    # 10,000 "b", 60 "a", 12 "c", no "c" with h low: plain Newton steps leave the numbers here.
    data = rows(10_072)
    data["g"] = ["b"] * 10_000 + ["a"] * 60 + ["c"] * 12
    data["h"] = ["low", "high"] * 5_000 + ["low", "high"] * 30 + ["high"] * 12

    found = fitted("g ~ h", "multinomial", data)
    by_name = dict(zip(found.names, found.estimates, strict=True))

    assert by_name["b: Intercept"] == pytest.approx(math.log(5_000 / 30), abs=1e-7)
    assert by_name["b: h[T.high]"] == pytest.approx(0.0, abs=1e-7)
    se = dict(zip(found.names, np.sqrt(found.variances), strict=True))
    assert se["b: Intercept"] == pytest.approx(math.sqrt(1 / 5_000 + 1 / 30), rel=1e-6)
    assert found.separated == ("c: Intercept", "c: h[T.high]")
    assert found.absent == ()


def test_fewer_rows_than_terms_determine_nothing() -> None:
    found = fitted("z ~ x + g + h", "gaussian", {k: v[:3] for k, v in rows().items()})

    assert np.isnan(found.estimates).all()


def test_a_square_root_is_computed() -> None:
    data = rows()
    roots = fitted("z ~ sqrt(x)", "gaussian", data)

    design = np.column_stack([np.ones(400), np.sqrt(np.array(data["x"], dtype=float))])
    expected = np.linalg.lstsq(design, np.array(data["z"], dtype=float), rcond=None)[0]

    np.testing.assert_allclose(roots.estimates, expected, rtol=1e-8)
