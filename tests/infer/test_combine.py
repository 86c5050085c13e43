"""Which rule is chosen, why, what is said beside it, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous.core.errors import UsageError
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combining_rules import Noise
from gibbous.evaluation.inference.release_facts import Facts

Q = [1.0, 1.4, 0.9]
V = [0.04, 0.05, 0.06]
ONCE = Facts(sets=3, rows=100.0, records=80.0, records_from="the noisy count", sanitized="once")
PAID = Facts(sets=3, rows=100.0, records=80.0, sanitized="per_set", method="pegs")


def test_auto_on_noised_tables_adds_the_noise_once() -> None:
    found = combine(Q, V, release=ONCE, noise_variance=0.02)

    assert float(found.variance) == pytest.approx(0.05 * 100 / 80 + 0.02 + 0.05 / 3)
    assert found.rule == "unified"
    assert "noised once" in found.why
    assert "n = 80 (the noisy count)" in found.why
    assert float(found.noise) == pytest.approx(0.02 / float(found.variance))


def test_auto_on_paid_sets_measures_what_differs_between_them() -> None:
    found = combine(Q, V, release=PAID)

    assert float(found.variance) == pytest.approx(0.05 * 100 / 80 + 0.07 / 3)
    assert "B shows" in found.why


def test_auto_on_one_paid_set_falls_back_on_how_rows_are_drawn() -> None:
    one = Facts(sets=1, rows=100.0, records=80.0, sanitized="per_set", method="pegs")
    unknown = Facts(sets=1, rows=100.0, records=80.0, sanitized="per_set", draws="posterior")

    fitted = combine(Q[:1], V[:1], release=one)
    posterior = combine(Q[:1], V[:1], release=unknown)

    assert float(fitted.variance) == pytest.approx(0.04 * 1.25 + 0.04)
    assert float(posterior.variance) == pytest.approx(0.04 * 1.25 * 2 + 0.04)
    assert "V_s" not in fitted.why + posterior.why
    assert "ONE SET" in posterior.warnings[0]
    assert not fitted.warnings


def test_the_interval_is_students() -> None:
    found = combine(Q, V, rule="reiter2003", level=0.9)
    half = stats.t.ppf(0.95, float(found.df)) * float(found.se)

    assert float(found.high) == pytest.approx(1.1 + half)
    assert float(found.low) == pytest.approx(1.1 - half)
    assert found.interval == (found.low, found.high)


def test_an_infinite_number_of_degrees_of_freedom_is_the_normal_law() -> None:
    found = combine(Q, V, rule="raab2016", rows=100, records=100)

    assert float(found.high - found.estimate) == pytest.approx(1.959964 * float(found.se))


@pytest.mark.parametrize("rule", ["reiter2003", "raghunathan2003"])
def test_one_set_is_refused_by_rules_that_need_two(rule: Any) -> None:
    with pytest.raises(UsageError, match="two sets or more") as caught:
        combine([1.0], [0.1], rule=rule, rows=10, records=10)

    assert caught.value.exit_code == 2


def test_t_f_below_zero_is_replaced_and_said() -> None:
    found = combine([1.0, 1.01], [0.1, 0.1], rule="raghunathan2003", rows=50, records=100)

    assert float(found.variance) == pytest.approx(0.05)
    assert any("T_f was below" in text for text in found.warnings)


def test_t_f_below_zero_without_sizes_is_refused() -> None:
    with pytest.raises(UsageError, match="T_f is not positive"):
        combine([1.0, 1.01], [0.1, 0.1], rule="raghunathan2003")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rule": "reiter2003", "release": ONCE}, "N = n only"),
        ({"rule": "reiter2003", "release": ONCE}, "misses noise"),
        ({"rule": "raab2016", "release": ONCE}, "no term for noise"),
        ({"rule": "raghunathan2003", "release": PAID}, "overestimates"),
        ({"release": ONCE}, "THE NOISE IS NOT IN THIS INTERVAL"),
        ({"release": ONCE, "noise_variance": [math.nan]}, "NOT IN SOME"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_rule_that_does_not_fit_is_told_off(given: dict[str, Any], words: str) -> None:
    found = combine(Q, V, **given)

    assert any(words in text for text in found.warnings)


def test_a_fitting_rule_is_not_told_off() -> None:
    assert combine(Q, V, release=ONCE, noise_variance=0.02).warnings == ()


def test_equal_sets_are_noticed() -> None:
    found = combine([1.0] * 3, V, release=ONCE, noise_variance=0.02)

    assert any("or not at all" in text for text in found.warnings)


def test_sets_that_differ_far_too_much_are_noticed_and_others_are_not() -> None:
    wild = combine([1.0, 9.0, 4.0], V, release=ONCE, noise_variance=0.02)
    posterior = combine([1.0, 9.0, 4.0], V, release=ONCE, noise_variance=0.02, draws="posterior")

    assert any("differ far more" in text for text in wild.warnings)
    assert posterior.warnings == ()


@pytest.mark.parametrize(("shift", "said"), [(0.01, False), (0.2, True), (-0.2, True)])
def test_a_one_sided_shift_of_more_than_a_quarter_of_the_error_is_said(
    shift: float, said: bool
) -> None:
    noise = Noise(np.array([0.02]), shift=np.array([shift]))

    found = combine(Q, V, release=ONCE, noise_variance=noise)

    assert any("to one side" in text for text in found.warnings) == said


@pytest.mark.parametrize(("error", "said"), [(0.002, False), (0.03, True)])
def test_noise_cut_to_nothing_is_said_where_it_may_matter(error: float, said: bool) -> None:
    q, v = np.column_stack([Q, Q]), np.column_stack([V, V])
    noise = Noise(np.array([0.0, 0.02]), error=np.array([error, 0.03]))
    known = Noise(np.array([0.0, 0.02]))

    found = combine(q, v, release=ONCE, noise_variance=noise)
    sure = combine(q, v, release=ONCE, noise_variance=known)

    share = 2 * error / (0.05 * 100 / 80 + 0.05 / 3)
    words = [
        text for text in found.warnings if text.startswith("V_s of 1 of 2 estimates came out at 0")
    ]
    assert len(words) == said
    assert all(f"up to {100 * share:.0f} %" in text for text in words)
    assert found.df[0] < sure.df[0]


def test_noise_that_was_not_found_is_unknown_and_not_nothing() -> None:
    q, v = np.column_stack([Q, Q]), np.column_stack([V, V])

    found = combine(q, v, release=ONCE, noise_variance=[0.02, math.nan])

    assert math.isnan(found.noise[1])
    assert np.isfinite(found.se).all()
    assert found.se[1] < found.se[0]


def test_biases_of_the_release_are_repeated() -> None:
    facts = Facts(rows=10.0, records=10.0, biases=("Clipping: ...",))

    assert "Clipping: ..." in combine(Q, V, release=facts).warnings


def test_several_estimates_and_their_names() -> None:
    found = combine([[1.0, 2.0], [3.0, 4.0]], [[0.1, 0.2]] * 2, rows=9, records=9, names=("a", "b"))

    assert found.estimate.tolist() == [2.0, 3.0]
    assert [one["name"] for one in found.records_of()] == ["a", "b"]
    assert found.frame()["name"].to_list() == ["a", "b"]


def test_a_number_stays_a_number() -> None:
    assert combine(Q, V, rows=9, records=9).estimate.shape == ()


def test_an_estimate_that_one_set_lacks_is_combined_over_the_others() -> None:
    found = combine([[1.0, np.nan], [3.0, 4.0]], [[0.1, np.nan], [0.1, 0.2]], rows=9, records=9)

    assert found.estimate.tolist() == [2.0, 4.0]
    assert found.sets.tolist() == [2, 1]
    assert any("over fewer" in text for text in found.warnings)


def test_an_estimate_that_no_set_has_is_not_a_number() -> None:
    found = combine([[1.0, np.nan]] * 2, [[0.1, np.nan]] * 2, rows=9, records=9)

    assert math.isnan(found.estimate[1])
    assert math.isnan(found.se[1])
    assert "-" in str(found).splitlines()[2]


def test_json_is_plain_and_undefined_numbers_are_null() -> None:
    found = combine([[1.0, np.nan]] * 2, [[0.1, np.nan]] * 2, rule="raab2016", rows=9, records=9)

    text = json.dumps(found.to_json(), allow_nan=False)

    assert json.loads(text)["estimates"][1]["estimate"] is None
    assert json.loads(text)["estimates"][0]["df"] is None


def test_the_text_is_a_table_with_rule_reason_and_notes() -> None:
    text = str(combine(Q, V, release=ONCE, names=("share",)))

    assert text.splitlines()[0].split()[:3] == ["estimate", "se", "df"]
    assert text.splitlines()[1].startswith("share")
    assert "rule: unified. Chosen because" in text
    assert "note: THE NOISE" in text


@pytest.mark.parametrize(
    ("estimates", "variances", "given", "name"),
    [
        (Q, V[:2], {}, "ESTIMATES"),
        ([], [], {}, "ESTIMATES"),
        (["a"], ["b"], {}, "ESTIMATES"),
        (Q, [-1.0, 1.0, 1.0], {}, "VARIANCES"),
        (Q, V, {}, "SIZES"),
        (Q, V, {"rows": 9}, "SIZES"),
        (Q, V, {"rows": 9, "records": 0}, "RECORDS"),
        (Q, V, {"rows": True, "records": 9}, "ROWS"),
        (Q, V, {"rule": "rubin"}, "RULE"),
        (Q, V, {"level": 1.5}, "LEVEL"),
        (Q, V, {"noise_variance": [1.0, 2.0]}, "NOISE"),
        (Q, V, {"noise_variance": -1.0}, "NOISE"),
        (Q, V, {"noise_variance": math.inf}, "NOISE"),
        (Q, V, {"noise_variance": Noise(np.array([math.inf]))}, "NOISE"),
        (Q, V, {"noise_variance": "much"}, "ESTIMATES"),
        (Q, V, {"rows": 9, "records": math.inf}, "RECORDS"),
        (Q, V, {"names": ("a", "b"), "rows": 9, "records": 9}, "NAMES"),
        (Q, V, {"sanitized": "twice"}, "DRAWN"),
        (Q[:2], V[:2], {"release": ONCE}, "SETS"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_wrong_input_is_a_usage_error_in_three_parts(
    estimates: Any, variances: Any, given: dict[str, Any], name: str
) -> None:
    with pytest.raises(UsageError) as caught:
        combine(estimates, variances, **given)

    assert caught.value.code == f"GB2-{name}"
    assert caught.value.wrong
    assert caught.value.allowed
    assert caught.value.fix


def test_sizes_given_go_before_those_of_the_release() -> None:
    found = combine(Q, V, release=ONCE, records=50, noise_variance=Noise(np.array([0.0])))

    assert found.records == 50
    assert "n = 50 (given)" in found.why


def test_an_estimate_that_one_set_lacks_is_told_also_where_it_is_the_only_one() -> None:
    found = combine([1.0, np.nan, 1.2], [0.1, 0.1, 0.1], rows=100, records=100)

    assert float(found.sets) == 2
    assert any("do not exist in every set" in text for text in found.warnings)
