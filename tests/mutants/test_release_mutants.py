"""Mutants around the draw: a domain, a size, an order or a row that comes from the records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous import pipeline
from gibbous.contract import privacy_checks
from gibbous.contract.cases import binary_schema, neighbors, secret
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import EngineFailure, PrivacyRefused
from gibbous.core.tables import Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import _plans, registry
from gibbous.perturb.add import Add
from gibbous.privacy import curator, entropy
from gibbous.read.infer import infer_schema
from gibbous.sampling import gibbs_rows as rows
from gibbous.sampling.blocks import Block
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks
from gibbous.write import in_memory
from gibbous.write.in_memory import InMemory
from tests.mutants.broken_builds import SCHEMA, assert_blind, faults, killed, people, published
from tests.synthesize import test_exact_epsilon as exact_laws

BLIND = [
    (gb.NoisyPegs(), None),
    (gb.Sbhg(delta=1e-4), None),
    (gb.Laplace(), None),
    (gb.Sba(delta=1e-4), None),
    (gb.Pegs(), 70),
    (gb.BlockPegs(), 70),
    (gb.ExponentialPegs(), 70),
]


class Spied:
    """What a broken build keeps of the records although it must not."""

    def __init__(self) -> None:
        self.codes: Codes | None = None
        self.engine: Any = None
        self._take, self._init = LocalEngine.take, curator.Curator.__init__

    def places(self) -> list[tuple[object, str, Any]]:
        def take(records: LocalEngine, codes: Any) -> None:
            self.codes = codes
            self._take(records, codes)

        def init(held: Any, engine: Any, *given: Any, **more: Any) -> None:
            self.engine = engine
            self._init(held, engine, *given, **more)

        return [(LocalEngine, "take", take), (curator.Curator, "__init__", init)]


@pytest.mark.parametrize(
    ("method", "count"), BLIND, ids=lambda v: v.about.name if v and hasattr(v, "about") else ""
)
def test_the_honest_build_is_blind(method: Any, count: int | None) -> None:
    assert_blind(method, rows=count)


def from_records(change: Any) -> tuple[object, str, Any]:
    """A build that makes its schema from the records and calls it declared."""
    honest = pipeline.synthesize

    def synthesize(data: Any, schema: Any, *given: Any, **more: Any) -> Any:
        return honest(data, change(data, schema), *given, **more)

    return (pipeline, "synthesize", synthesize)


def seen_levels(data: Any, schema: gb.Schema) -> gb.Schema:
    found = infer_schema(data)["region"].levels
    region = replace(schema["region"], levels=tuple(sorted(str(v) for v in found)))
    return replace(schema, columns=(schema.columns[0], region, schema.columns[2]))


def seen_range(data: Any, schema: gb.Schema) -> gb.Schema:
    top = float(data["age"].max())
    age = replace(schema["age"], edges=(0.0, top / 3, 2 * top / 3, top + 1))
    return replace(schema, columns=(*schema.columns[:2], age))


@pytest.mark.parametrize("change", [seen_levels, seen_range], ids=["m07_levels", "m08_bin_edges"])
@pytest.mark.parametrize("method", [gb.NoisyPegs(), gb.Laplace()], ids=["noisy_pegs", "laplace"])
def test_m07_m08_a_domain_from_the_records(change: Any, method: Any) -> None:
    killed(lambda: assert_blind(method), faults(from_records(change)))


def test_m07_m08_a_domain_that_says_where_it_is_from_is_refused() -> None:
    """D4: without the lie about its source the same schema cannot carry a claim."""
    data = people()

    with pytest.raises(PrivacyRefused) as refused:
        gb.synthesize(data, infer_schema(data), gb.NoisyPegs(), ledger=gb.Ledger.ephemeral())
    assert refused.value.exit_code == 5


def test_m09_the_exact_number_of_records_as_default_size() -> None:
    spied = Spied()

    def exact_rows(tables: Tables) -> int:
        assert spied.codes is not None
        return spied.codes.rows

    killed(
        lambda: assert_blind(gb.NoisyPegs()),
        faults(*spied.places(), (Tables, "noisy_rows", exact_rows)),
    )


def test_m09_the_exact_number_of_records_on_the_certificate() -> None:
    spied, honest = Spied(), in_memory.certify

    def certify(facts: Any, *given: Any, **more: Any) -> Any:
        assert spied.codes is not None
        plan = replace(facts.plan, memory_bytes=spied.codes.rows)
        return honest(replace(facts, plan=plan), *given, **more)

    killed(
        lambda: assert_blind(gb.Sbhg(delta=1e-4), rows=9),
        faults(*spied.places(), (in_memory, "certify", certify)),
    )


@pytest.mark.parametrize("name", ["pegs", "exponential_pegs", "block_pegs"])
def test_m15_several_sets_charged_once(name: str) -> None:
    """In the plan alone the curator notices; in plan and run the contract does."""
    kind = registry.load(name)
    schema, values = binary_schema(), neighbors("add_remove")[0].one
    once = (_plans, "paid_rows", lambda mechanism, rows, sets: rows)

    killed(lambda: privacy_checks._plan_states_the_whole_cost_before_data(kind), faults(once))
    one = kind()
    with faults(once):
        low = one.plan(schema, 40, 3)
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        release(one, schema, values, 40, low, sets=3)
    with faults(once):
        short = release(one, schema, values, 40, low, sets=3)
    assert isinstance(short, Codes)
    assert short.rows < 120  # what was not paid for was not drawn


def block_repeats() -> None:
    """One key, two levels, a million records of one: the first draw is it, the others are coins."""
    context = Context((0,), (), (2,), ())
    schema = gb.Schema((gb.Column("x", "binary", levels=(0, 1)),))
    engine = LocalEngine.from_codes(secret(schema, np.zeros((1 << 20, 1), dtype=np.int64)))
    draw = ResetBlocks(Add(Fraction(1)), 64)

    drawn = draw(engine.tally([context]), schema, 64, entropy.words)

    assert drawn.values[:, 0].any()  # 63 fair coins; all alike with probability 2**-63


def test_m16_reset_left_out() -> None:
    killed(block_repeats, faults((rows, "RESET_AT_VISIT", False)))


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_m16_m25_blocks_priced_without_the_second_key_of_a_replaced_record(relation: Any) -> None:
    """Exact loss ln 5 = 1.609 against a price of 1.386."""
    honest = Add.reset_loss
    wrong = (
        Add,
        "reset_loss",
        lambda self, levels, relation, *rest: honest(self, levels, "add_remove", *rest),
    )
    check = exact_laws.test_a_reset_block_costs_more_when_a_record_is_replaced

    if relation == "replace_one":
        killed(check, faults(wrong))
    else:
        with faults(wrong):
            exact_laws.test_a_reset_block_keeps_its_price_under_add_remove()


def test_m17_a_reject_step_on_the_raw_table_meets_the_read_barrier() -> None:
    """F4: when rows are drawn, no engine answers any more."""
    spied, honest = Spied(), InMemory._batches

    def rejecting(result: Any, *given: Any) -> Iterator[Codes]:
        for codes in honest(result, *given):
            (raw,) = spied.engine.tally([Context((0,), (), (2,), ())])
            yield Codes(codes.schema, codes.values[raw.cells.values[0][codes.values[:, 0]] > 0])

    def run() -> None:
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=9, ledger=gb.Ledger.ephemeral())

    broken = (*spied.places(), (InMemory, "_batches", rejecting))
    killed(run, faults(*broken))
    with faults(*broken), pytest.raises(EngineFailure, match="closed"):
        run()


@contextmanager
def smuggled(kept: list[Any]) -> Iterator[None]:
    """A score that keeps the counts it was shown."""
    honest = curator.Curator.choose

    def choose(self: Any, contexts: Any, score: Any, **given: Any) -> int:
        def keeping(counts: Any) -> Any:
            kept.extend(counts)
            return score(counts)

        return honest(self, contexts, keeping, **given)

    with faults((curator.Curator, "choose", choose)):
        yield


def test_m17_counts_that_a_score_kept_are_zero_when_rows_are_drawn() -> None:
    kept: list[Any] = []
    with smuggled(kept):
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=9, ledger=gb.Ledger.ephemeral())

    assert kept
    assert not any(counts.cells.values.any() for counts in kept)


def test_m17_a_method_that_publishes_what_a_score_saw_is_seen_by_blind_runs() -> None:
    honest = curator.Curator.choose

    def leaking(self: Any, contexts: Any, score: Any, **given: Any) -> int:
        seen: list[int] = []
        honest(
            self, contexts, lambda c: seen.append(int(c[0].cells.values[1, 1])) or score(c), **given
        )
        return seen[0] % len(contexts)

    check = privacy_checks._records_reach_the_output_only_by_noise_choices_and_paid_draws
    killed(lambda: check(registry.load("noisy_pegs")), faults((curator.Curator, "choose", leaking)))


def empty_key_is_uniform() -> None:
    """Nobody has x0 = 1: x1 given that key is a coin, never what the nearest key holds."""
    schema = binary_schema(2)
    contexts = [Context((1,), (0,), (2,), (2,)), Context((0,), (1,), (2,), (2,))]
    engine = LocalEngine.from_codes(secret(schema, np.zeros((1 << 20, 2), dtype=np.int64)))

    drawn = GibbsRows(Add(Fraction(1)))(engine.tally(contexts), schema, 400, entropy.words)

    # A row has x1 = 1 with probability 1/4; in none of 400 rows with probability 1e-50.
    assert drawn.values[:, 1].any()


def test_m18_a_nearest_key_of_the_raw_table() -> None:
    def nearest(counts: Any, perturb: Any, empty: Any = "uniform") -> Block:
        return Block(counts, perturb, "nearest")

    killed(empty_key_is_uniform, faults((rows, "Block", nearest)))


def test_m18_f5_a_nearest_key_under_a_claim_is_refused() -> None:
    draw = GibbsRows(Add(Fraction(1)), fallback="nearest")

    with pytest.raises(PrivacyRefused) as refused:
        draw.cost([Context((1,), (0,), (2,), (2,))], 1, "add_remove", 1)
    assert refused.value.exit_code == 5


@pytest.mark.parametrize(
    "method",
    [gb.Pegs(), gb.ExponentialPegs(), gb.BlockPegs(block=1)],
    ids=lambda method: method.about.name,
)
def test_m20_chains_that_start_at_records(method: Any) -> None:
    """F12: the first key that a chain visits would be that of a record."""
    spied = Spied()

    def real(schema: Any, count: int, words: Any, seeds: Any) -> np.ndarray:
        assert spied.codes is not None
        return np.resize(spied.codes.values, (count, len(schema))).T.copy()

    killed(
        lambda: assert_blind(method, rows=70),
        faults(*spied.places(), (rows, "uniform_rows", real)),
    )


def test_m21_rows_in_the_order_of_the_records() -> None:
    spied, honest = Spied(), InMemory._batches

    def aligned(result: Any, *given: Any) -> Iterator[Codes]:
        assert spied.codes is not None
        for codes in honest(result, *given):
            like = np.resize(spied.codes.values[:, 0], codes.rows)
            place = np.argsort(np.argsort(like, kind="stable"), kind="stable")
            own = codes.values[np.argsort(codes.values[:, 0], kind="stable")]
            yield Codes(codes.schema, own[place])

    killed(
        lambda: assert_blind(gb.NoisyPegs(), rows=40),
        faults(*spied.places(), (InMemory, "_batches", aligned)),
    )


def test_the_blind_check_compares_more_than_one_public_thing() -> None:
    found = published(people(), gb.Sbhg(delta=1e-4))

    assert {"set 0", "set 1", "tables", "receipt"} == set(found)
