"""The coupled audit: random runs of every method within their prices, and each fault that it is for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gibbous.contract.cases import binary_schema, secret
from gibbous.contract.coupled import coupled, uncovered
from gibbous.contract.laws import log_law
from gibbous.contract.losses import SLACK
from gibbous.contract.random_pairs import trials
from gibbous.contract.runs import described, release
from gibbous.contract.saboteurs import patched, saboteurs
from gibbous.contract.test_contract import COUPLED_RUNS
from gibbous.core.codes import Codes
from gibbous.core.moment import Moment
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts
from gibbous.disintegrate import records
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import _modips_statistics, _plans, registry
from gibbous.perturb.posterior import Posterior
from gibbous.perturb.smoothed import Smoothed
from gibbous.privacy import curator, entropy
from gibbous.privacy.calibrate import scales
from gibbous.sampling.urn_rows import PriorRows, SmoothedRows, UrnRows
from gibbous.structure import choice, clique_scores
from gibbous.structure.contexts import joint
from tests.contract.broken_methods import OrderRead, SeenLevels
from tests.histograms import exact_laws

Faults = tuple[tuple[object, str, Any], ...]
MANY = 1000  # one random run catches a fault with a chance of .025 or more: all miss it below 1e-10


def claiming() -> list[str]:
    """Methods that claim differential privacy."""
    return [a.name for a in registry.methods() if a.kind not in ("none", "l_diversity")]


def found(name: str, faults: Faults, runs: int = MANY, seed: int = 7) -> str:
    """What the first of some random runs says under faults; empty when none says anything."""
    kind = registry.load(name)
    for trial in trials(kind, runs, seed):
        with ExitStack() as stack:
            for owner, what, value in faults:
                stack.enter_context(patched(owner, what, value=value))
            told = trial.run().words
        if told:
            return told
    return ""


SOME = ("laplace", "modips", "noisy_pegs", "sba", "privbayes", "flows_laplace", "pegs", "dirichlet",
        "parallel", "per_set")  # fmt: skip


@pytest.mark.slow
def test_G2_random_runs_stay_within_their_prices_and_attain_them() -> None:
    """A worst ratio far below 1 would mean that the audit looks past what is paid for.

    A few of each method are made by the contract (`every purchase covers ...`), and 120 of each by its
    slow test, which prints the worst ratio of all.
    """
    seen = [trial.run() for name in SOME for trial in trials(registry.load(name), 3, 3)]
    ratios = [one.ratio for one in seen]

    print(f"coupled audit: {len(seen)} runs, worst loss / price {max(ratios):.12f}")
    assert not [one.words for one in seen if one.words]
    assert len(seen) == 3 * len(SOME)
    assert 0.999 < max(ratios) <= SLACK


def test_G2_the_contract_makes_at_least_two_thousand_random_runs_of_the_built_in_methods() -> None:
    assert len(claiming()) * COUPLED_RUNS >= 2_000


@pytest.mark.slow
def test_G2_random_schemas_hold_every_kind_of_column_unit_and_rule() -> None:
    drawn = list(trials(registry.load("laplace"), 300))
    columns = [c for trial in drawn for c in trial.one.schema]

    assert {c.kind for c in columns} == {"binary", "nominal", "ordinal", "numeric", "date"}
    assert {c.missing for c in columns} == {True, False}
    assert any(c.other for c in columns)
    assert any(c.size == 1 for c in columns)
    assert any(c.size > 256 for c in columns)
    assert any(t.one.values.dtype == np.uint16 for t in drawn)
    assert any(t.one.schema.impossible for t in drawn)
    assert {t.one.schema.unit.max_rows for t in drawn if t.one.schema.unit} == {1, 2, 3}
    assert {t.mechanism.relation for t in drawn} == {"add_remove", "replace_one"}  # type: ignore[attr-defined]
    assert any(0 in (t.one.rows, t.two.rows) for t in drawn)
    assert any(np.abs(n).max(initial=0) > 1e14 for t in drawn for _, n in t.one.numbers)


def test_G2_the_same_run_is_made_again_from_its_seed() -> None:
    one, two = (next(trials(registry.load("sbhg"), 1, 5)) for _ in range(2))

    assert described(Codes(one.one.schema, one.one.values)) == described(
        Codes(two.one.schema, two.one.values)
    )
    assert one.mechanism == two.mechanism


def halved(honest: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, scale, **rest: honest(values, scale / 2, **rest)


HALF: Faults = (
    (entropy, "geometric", halved(entropy.geometric)),
    (entropy, "gaussian", halved(entropy.gaussian)),
)


@pytest.mark.parametrize(
    "name", ["laplace", "modips", "noisy_pegs", "sba", "flows_laplace", "parallel"]
)
def test_G2_half_the_noise_is_caught(name: str) -> None:
    assert "more than the noise covers" in found(name, HALF)


@pytest.mark.parametrize("what", ["threshold forgotten", "keys of empty cells leaked"])
def test_G2_a_table_that_shows_more_than_its_noise_is_caught(what: str) -> None:
    (saboteur,) = (s for s in saboteurs() if s.name == what)
    with saboteur.apply():  # type: ignore[attr-defined]
        told = found("sba", ())

    assert "a table shows more than its noise" in told


@pytest.mark.parametrize("kind", [OrderRead, SeenLevels])
def test_G2_an_unpaid_choice_is_caught(kind: type[Any]) -> None:
    """An order, or a domain, that was read off the records."""
    schema = binary_schema(2)
    one = np.array([[0, 0], [0, 0], [0, 1]])
    sides = [secret(schema, rows) for rows in (one, np.vstack([one, [[1, 0]]]))]

    told = coupled(kind(), *sides).words

    assert "records are counted without a purchase" in told or "shows although" in told


@pytest.mark.slow
def test_G2_a_map_of_scores_that_is_not_public_is_caught() -> None:
    """What follows a score is asked for, too: it must be the same on both sides."""
    turns = itertools.count(1)

    def another(function: Any, **public: Any) -> Any:
        return functools.partial(function, **public | {"kept": public["kept"] / next(turns)})

    broken = ((clique_scores, "functools", SimpleNamespace(partial=another)),)

    assert "what is asked for depends" in found("adaptive_gibbs", broken)


def test_G2_a_look_at_what_an_earlier_choice_kept_is_caught() -> None:
    """Counts of a choice stay inside the curator: asking for them again needs no tally."""
    kind = registry.load("noisy_pegs")
    honest = kind.run

    def peeks(self: Any, held: Any, rows: Any, sets: int = 1) -> Any:
        out = honest(self, held, rows, sets)
        for context in list(held._cache):
            held._count([context], keep=True)
        return out

    assert "records are counted without a purchase" in found("noisy_pegs", ((kind, "run", peeks),))


@pytest.mark.parametrize(("name", "where"), [("noisy_pegs", choice), ("sbhg", choice)])
def test_G2_a_choice_with_the_sensitivity_of_the_other_relation_is_caught(
    name: str, where: Any
) -> None:
    told = found(name, ((where, "steps", lambda relation: 1),))

    assert "moves by more than its sensitivity" in told


def test_G2_a_choice_drawn_with_more_than_is_paid_is_caught() -> None:
    honest = entropy.exponential_choice

    def louder(scores: Any, *, epsilon: Fraction, sensitivity: Any) -> int:
        return honest(scores, epsilon=2 * epsilon, sensitivity=sensitivity)

    assert "moves by more" in found("noisy_pegs", ((entropy, "exponential_choice", louder),))


FORGOTTEN: Faults = (
    (_plans, "most_rows", lambda schema: 1),
    (curator.Curator, "max_rows", property(lambda self: 1)),
)


@pytest.mark.parametrize("name", ["laplace", "modips", "sba", "dirichlet"])
def test_G2_rows_of_a_person_forgotten_in_noise_and_price_are_caught(name: str) -> None:
    assert found(name, FORGOTTEN)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "noisy_pegs", "sbhg", "perturbed_histogram"])
def test_G2_replace_one_priced_as_add_remove_is_caught(name: str) -> None:
    told = found(name, ((scales, "steps", lambda relation: 1),))

    assert "more than the noise covers" in told


def test_G2_a_sum_priced_as_if_no_number_changed_its_sign_is_caught() -> None:
    wrong = lambda self, relation, most: self.bound * most  # noqa: E731

    assert "sums differ by more" in found("modips", ((Moment, "l1", wrong),))


@pytest.mark.parametrize("records", [12, None])
def test_G2_counts_drawn_again_at_two_bounds_are_not_covered_by_the_price_of_one(
    records: int | None,
) -> None:
    """All records in one cell, one moved to an empty one: the worst pair attains the price of both bounds."""
    method = registry.load("modips")(outside="truncate", relation="replace_one", records=records)
    sides = [secret(THREE, np.array([[first]] + [[1]] * 11)) for first in (1, 0)]

    honest = coupled(method, *sides)
    with patched(_modips_statistics, "_ends", value=lambda relation, most: (1, 1)):
        one_end = coupled(method, *sides)

    assert 0.998 < honest.ratio <= SLACK
    assert not honest.words
    assert bool(one_end.words) == (records is not None)


@pytest.mark.slow
def test_G2_parts_by_what_a_record_says_are_caught() -> None:
    """Two parts by the first column: a record that is replaced may change its part."""

    def by_level(codes: Codes, parts: int, words: Any) -> tuple[Codes, ...]:
        return tuple(codes.part(codes.values[:, 0] % parts == n) for n in range(parts))

    assert found("parallel", ((records, "parted", by_level),))


def test_G2_draws_from_counts_that_weigh_more_than_is_priced_are_caught() -> None:
    (raw,) = (s for s in saboteurs() if s.name == "draws from unperturbed counts")
    with raw.apply():  # type: ignore[attr-defined]
        assert "drawn rows are likelier" in found("pegs", ())


def test_G2_a_tenth_of_the_virtual_records_is_caught() -> None:
    """The price is told for all of them."""
    balls, whole = Posterior.balls.fget, Posterior.effective.fget  # type: ignore[attr-defined]
    fewer = property(lambda self: (max(1, balls(self)[0] // 10), balls(self)[1]))

    def told(self: Posterior) -> Fraction | None:
        with patched(Posterior, "balls", value=property(balls)):
            return whole(self)  # type: ignore[no-any-return]

    faults: Faults = ((Posterior, "balls", fewer), (Posterior, "effective", property(told)))
    for name in ("dirichlet", "dp_prior"):
        assert "drawn rows are likelier" in found(name, faults)


def test_G2_what_persons_cost_is_seen_by_the_constructed_pairs_of_the_auditor() -> None:
    kind = registry.load("laplace")
    with ExitStack() as stack:
        for owner, what, value in FORGOTTEN:
            stack.enter_context(patched(owner, what, value=value))
        told = uncovered(kind(), "add_remove")

    assert told.startswith("a person whose rows are all alike, added")


ALPHA = Fraction(3, 4)
THREE = Schema((Column("x", "nominal", levels=("a", "b", "c")),))


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (UrnRows(Posterior(ALPHA, 3)), lambda n, m: exact_laws.urn(n, ALPHA, m)),
        (PriorRows(Posterior(ALPHA, 3)), lambda n, m: exact_laws.prior(n, ALPHA, m)),
        (
            SmoothedRows(Smoothed(Fraction(1, 4), 3, 5)),
            lambda n, m: exact_laws.smoothed(n, Fraction(1, 4), 5, m),
        ),
    ],
    ids=["urn", "prior", "smoothed"],
)
def test_G2_the_laws_of_drawn_rows_are_those_of_enumeration(draw: Any, law: Any) -> None:
    """The log ratio of two tables at every multiset of three rows, against exact fractions."""
    tables = ((2, 0, 1), (2, 1, 1))
    exact = [law(table, 3) for table in tables]
    counts = [_counted(table) for table in tables]

    for drawn in exact_laws.outcomes(3, 3):
        rows = np.repeat(np.arange(3), drawn)[:, None].astype(np.uint8)
        codes = Codes(THREE, rows)
        apart = log_law(draw, [counts[0]], codes) - log_law(draw, [counts[1]], codes)

        assert apart == pytest.approx(math.log(exact[0][drawn] / exact[1][drawn]), abs=1e-12)


def _counted(table: tuple[int, ...]) -> Counts:
    engine = LocalEngine.from_codes(secret(THREE, np.repeat(np.arange(3), table)[:, None]))
    return engine.tally((joint(THREE, "seen"),))[0]


def test_G2_a_coupled_run_leaves_the_code_as_it_was() -> None:
    before = (curator.Curator.choose, entropy._noised, entropy.words, LocalEngine.tally)
    trial = next(trials(registry.load("laplace"), 1))

    trial.run()

    assert before == (curator.Curator.choose, entropy._noised, entropy.words, LocalEngine.tally)
    release(trial.mechanism, trial.one.schema, trial.one.values, None)
