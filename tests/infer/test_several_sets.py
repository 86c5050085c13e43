"""Inference from sets with noise of their own: the rule is chosen by itself, and covers as it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.release import Receipt, Release
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Tables
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combined_estimate import Combined
from gibbous.evaluation.inference.combining_rules import Noise
from gibbous.evaluation.inference.noise_replicates import noise_variance, redrawn
from gibbous.evaluation.inference.release_facts import facts_of
from gibbous.evaluation.inference.released_tables import margin, shares
from gibbous.infer import Analysis
from gibbous.mechanisms.modips import Modips
from gibbous.mechanisms.parallel import Parallel
from gibbous.mechanisms.per_set import PerSet
from gibbous.sampling.sample import prepared, sample
from tests.mechanisms.linked_columns import MIXED, SCHEMA, frame, people, tables

PAIR = Schema(tuple(Column(name, "binary", levels=("no", "yes")) for name in ("a", "y")))
LAW = np.array([0.35, 0.25, 0.15, 0.25])  # of (a, y)
TRUTH = 0.5  # P(y)


def described(
    found: Tables, rows: int, sets: int, method: str = "laplace", **params: Any
) -> Release:
    """A release around tables, as facts_of reads it."""
    known: Any = None
    receipt = Receipt(
        {"rows": [rows] * sets, "sets": sets, "method": {"name": method, "params": params}}
    )
    return Release((), found.schema, known, known, found, receipt)


def once(mechanism: Any, sets: int, number: int, rng: Any) -> tuple[Combined, Combined, Combined]:
    """One release of 300 fresh records: the automatic rule, what B alone shows, and no noise at all."""
    cell = rng.choice(4, 300, p=LAW)
    found = release(mechanism, PAIR, np.stack([cell // 2, cell % 2], axis=1), None, sets=sets)
    assert isinstance(found, Tables)
    q = np.array(
        [
            sample(found, 300, seed=number, set_index=index, threads=1).values[:, 1].mean()
            for index in range(sets)
        ]
    )
    about = described(found, 300, sets)
    one = margin(found.of_set(0), (1,))
    assert one is not None
    noise = shares(one, 300.0)[2].variance[1]  # of one noising, by the delta method
    return (
        combine(q, q * (1 - q) / 300, release=about, noise_variance=noise),
        combine(q, q * (1 - q) / 300, release=about),
        combine(q, q * (1 - q) / 300, release=about, rule="raab2016"),
    )


@pytest.mark.statistical
def test_intervals_from_sets_with_noise_of_their_own_cover_through_whole_releases() -> None:
    """250 releases, laplace at epsilon .25 over 4 sets; noise has no seed.

    The rule covers .935 (400 releases): 210 or fewer of 250 with probability 2e-7, and 5e-6 at .925. Without
    the noise .805 do, and the difference of .13 is 7 or fewer of 250 with probability 2e-8.
    """
    runs, rng = 250, np.random.default_rng(8)
    mechanism = PerSet(gb.Laplace(epsilon=0.25))
    found = [once(mechanism, 4, number, rng) for number in range(runs)]

    covered = [
        np.mean([one[rule].low <= TRUTH <= one[rule].high for one in found]) for rule in range(3)
    ]
    true = np.var([one[0].estimate for one in found])
    variances = np.array([[one[rule].se ** 2 for rule in range(2)] for one in found]) / true

    assert covered[0] > 0.84
    assert covered[1] > 0.84
    assert covered[2] < covered[0] - 0.03  # the noise is more than half of the variance
    # A variance from 250 releases is known within 9 %; V_s whole, not 1/m, would make it 2.5 times. The delta
    # method divides by a noisy total: one release in some thousand has one near 0, and would be the mean.
    assert 0.6 < np.median(variances[:, 0]) < 1.6
    assert 0.6 < np.mean(variances[:, 1]) < 1.8


def test_the_rule_is_read_off_the_release_and_its_reason_says_why() -> None:
    facts = {
        name: facts_of(described(tables(method, sets=3), 100, 3, **given))
        for name, method, given in (
            ("once", gb.Laplace(), {}),
            ("each", PerSet(gb.Laplace()), {"method": "per_set", "params": {}}),
        )
        for given in [{"method": "per_set"} if name == "each" else {}]
    }
    q, v, noise = np.array([0.4, 0.5, 0.45]), np.full(3, 0.002), Noise(np.array([0.003]))

    once, each = (combine(q, v, release=facts[n], noise_variance=noise) for n in ("once", "each"))

    assert facts["once"].sanitized == "once"
    assert facts["each"].sanitized == "per_set"
    ratio = 100 / facts["once"].records  # type: ignore[operator]
    assert once.se**2 == pytest.approx(0.002 * ratio + 0.003 + 0.002 / 3)
    ratio = 100 / facts["each"].records  # type: ignore[operator]
    assert each.se**2 == pytest.approx(0.002 * ratio + 0.003 / 3 + 0.002 / 3)
    assert "V_s/m" in each.why
    assert "every set was noised for itself" in each.why
    assert "V_s + W/m" in once.why


def test_posterior_draws_of_a_cell_model_add_the_sampling_variance() -> None:
    found = gb.synthesize(
        people(600), MIXED, Modips(epsilon=8), rows=400, sets=3, seed=1,
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip
    about = facts_of(found, 600)

    result = combine(
        np.array([1.0, 1.1, 0.9]), np.full(3, 0.02), release=about, noise_variance=0.005
    )

    assert about.draws == "posterior"
    sampling = 0.02 * 400 / 600
    assert result.se**2 == pytest.approx(sampling + 0.005 + (sampling + 0.02) / 3)


def test_unknown_noise_of_sets_of_their_own_is_measured_between_them() -> None:
    about = facts_of(described(tables(PerSet(gb.Laplace()), sets=3), 100, 3), 100)
    q, v = np.array([0.4, 0.5, 0.45]), np.full(3, 0.002)

    found = combine(q, v, release=about, noise_variance=Noise(np.array([np.nan])))

    assert found.se**2 == pytest.approx(0.002 + q.var(ddof=1) / 3)
    assert "B shows" in found.why


def test_tables_that_were_chosen_for_each_set_leave_the_noise_to_b() -> None:
    alike = tables(PerSet(gb.Laplace()), sets=2)
    other = replace(alike, copies=(tables(gb.NoisyPegs()),))

    assert facts_of(described(alike, 10, 2)).alike
    assert not facts_of(described(other, 10, 2)).alike


@pytest.mark.parametrize(
    ("name", "params", "method"),
    [
        ("per_set", {"method": "laplace", "options": []}, "laplace"),
        ("parallel", {"method": "per_set", "options": [["method", "sba"]]}, "sba"),
        ("laplace", {"epsilon": 1}, "laplace"),
    ],
)
def test_the_method_inside_is_the_one_that_biases(name: str, params: Any, method: str) -> None:
    known = described(tables(gb.Laplace()), 10, 1)
    receipt = known.receipt.to_json() | {"method": {"name": name, "params": params}}

    assert facts_of(replace(known, receipt=Receipt(receipt))).method == method


def test_a_margin_of_several_noisings_has_their_average_and_a_part_of_the_variance() -> None:
    found = tables(PerSet(gb.Laplace()), sets=4)
    each = [margin(found.of_set(index), (0,)) for index in range(4)]

    together = margin(found, (0,))

    assert together is not None
    assert together.counts == pytest.approx(np.mean([one.counts for one in each if one], axis=0))
    assert together.variance == pytest.approx(each[0].variance / 4)  # type: ignore[union-attr]
    assert together.tables == 4


def test_a_margin_of_parts_is_their_sum_with_all_of_their_noise() -> None:
    found = tables(Parallel(gb.Laplace(), parts=3))
    each = [margin(part, (1, 0)) for part in found.parts]

    together = margin(found, (1, 0))

    assert together is not None
    assert together.counts == pytest.approx(np.sum([one.counts for one in each if one], axis=0))
    assert together.variance == pytest.approx(3 * each[0].variance)  # type: ignore[union-attr]


def test_columns_that_one_part_did_not_count_together_have_no_released_margin() -> None:
    found = tables(Parallel(gb.Laplace(), parts=2))
    narrow = tables(gb.NoisyPegs(parents=0))

    assert margin(replace(found, parts=(found.parts[0], narrow)), (0, 1)) is None


def test_a_table_of_merged_levels_is_no_margin_of_the_levels() -> None:
    found = tables(gb.Laplace())
    context = replace(found.items[0].context, target_sizes=(2, 2, 3))
    merged = replace(found, items=(replace(found.items[0], context=context),))

    assert margin(merged, (1,)) is None
    assert margin(merged, (0,)) is not None


def test_redrawn_noise_reaches_every_part_and_every_sum_of_a_model() -> None:
    parts = tables(Parallel(gb.Laplace(), parts=2))
    cells = gb.synthesize(
        people(300), MIXED, Modips(epsilon=5), rows=5, ledger=gb.Ledger.ephemeral()
    ).tables
    assert cells is not None

    one, two = redrawn(parts, 3, 0), redrawn(cells, 3, 0)

    for before, after in zip(parts.parts, one.parts, strict=True):
        assert (before.items[0].cells.values != after.items[0].cells.values).any()
    assert (
        one.parts[0].items[0].cells.values.tolist() != one.parts[1].items[0].cells.values.tolist()
    )
    before, after = cells.model, two.model
    assert before is not None
    assert [s.table.noise for s in before.sums] == [s.table.noise for s in after.sums]  # type: ignore[union-attr]
    assert any(
        (a.table.cells.values != b.table.cells.values).any()
        for a, b in zip(before.sums, after.sums, strict=True)  # type: ignore[union-attr]
    )


def test_noise_of_one_set_is_what_the_bootstrap_finds_whatever_the_number_of_sets() -> None:
    found = tables(PerSet(gb.Laplace(epsilon=4)), sets=3)

    def share(codes: Codes) -> np.ndarray:
        return np.array([codes.values[:, 0].mean()])

    several, alone = (
        noise_variance(t, share, seed=2, replicates=30, rows=2_000)
        for t in (found, found.of_set(0))
    )

    assert several.variance == pytest.approx(alone.variance)
    assert several.variance[0] > 0


@pytest.mark.parametrize(
    "method",
    [PerSet(gb.Laplace(epsilon=5)), Parallel(gb.NoisyPegs(epsilon=5))],
    ids=["sets", "parts"],
)
def test_models_and_tables_run_from_the_release_alone(method: Any) -> None:
    found = gb.synthesize(frame(600), SCHEMA, method, sets=3, seed=2, ledger=gb.Ledger.ephemeral())
    analysis = Analysis(found)

    fit = analysis.glm("x2 ~ x0", "binomial", replicates=4)
    shares = analysis.table(["x0"])

    assert np.isfinite(fit.combined.se).all()
    assert abs(float(shares.combined.estimate[0]) - 0.5) < 0.15
    assert prepared(found.tables).schema == SCHEMA
