"""The checks of a mechanism's privacy: what it plans, pays, reads and shows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gibbous.contract.cases import binary_schema, neighbors, typical, uneven
from gibbous.contract.coupled import differing, uncovered
from gibbous.contract.printed_guarantee import forms, unkept
from gibbous.contract.random_pairs import trials
from gibbous.contract.runs import (
    ROWS,
    ContractError,
    curated,
    default,
    must,
    relation_of,
    relations,
    release,
    rows_for,
)
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import NUMBERS
from gibbous.core.errors import GibbousError
from gibbous.core.params import describe
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism
from gibbous.core.tables import Dense, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy import accountant
from gibbous.privacy.curator import Curator


def _plan_states_the_whole_cost_before_data(kind: type[Any]) -> None:
    one = default(kind)
    plan = one.plan(binary_schema(), 40, 3)
    must(plan.mechanism == one.about.name, "plan.mechanism is not the registered name")
    kinds = {plan.claim.kind, plan.total.kind}
    # Where one table of geometric noise is better, the plan of an approximate method needs no delta.
    stronger = one.about.kind == "approximate" and kinds == {"pure"}
    must(one.about.kind in kinds or stronger, "kinds differ")
    must(plan.total.relation == relation_of(one), "plan and `relation` disagree")
    if plan.claim.is_dp and plan.claim.unit == "row":
        must(
            plan.total.epsilon >= plan.claim.epsilon * 120, "120 rows cost less than 120 times one"
        )
    if plan.total.is_dp and one.about.releases == "rows":
        single = one.plan(binary_schema(), 120, 1).total
        must(plan.total.epsilon >= single.epsilon, "3 sets of 40 rows cost less than 120 rows")
    if plan.total.is_dp and plan.spends:
        spends = [s.claim for s in plan.spends]
        must(accountant.within(plan.total, spends), "the listed spends exceed the total")
    json.dumps(plan.to_json())


def _the_run_pays_no_more_than_the_plan(kind: type[Any]) -> None:
    one = default(kind)
    rows = rows_for(one)
    plan = one.plan(typical().schema, rows)
    with _watched(one, plan) as (curator, looks):
        one.run(curator, rows)
    must(len(curator.spent) > 0, "nothing was paid")
    if plan.total.is_dp:
        must(accountant.within(plan.total, curator.spent), "more was paid than planned")
        for name in NUMBERS[:-1]:  # what a group costs rests on the listed parts
            paid, told = (
                sum(getattr(claim, name) for claim in claims)
                for claims in (curator.spent, [s.claim for s in plan.spends])
            )
            must(paid <= told or not plan.spends, f"more {name} was paid than the plan lists")
        must(all(looks), "counts were taken before they were paid for")


def _a_smaller_budget_is_refused_before_counting(kind: type[Any]) -> None:
    one = default(kind)
    rows = rows_for(one)
    plan = one.plan(typical().schema, rows)
    total = plan.total
    if not total.is_dp:
        return
    less = dataclasses.replace(total, **{n: getattr(total, n) / 10**6 for n in NUMBERS[:-1]})
    with _watched(one, dataclasses.replace(plan, total=less)) as (curator, looks):
        try:
            one.run(curator, rows)
        except GibbousError:
            must(not looks, "records were counted although the budget did not cover it")
            return
    raise ContractError("a millionth of the budget was enough: the run does not pay what it plans")


@contextmanager
def _watched(one: Mechanism, plan: Plan) -> Iterator[tuple[Curator, list[int]]]:
    """A curator of the typical table, and how many purchases there were before each look at it."""
    case, looks, honest = typical(), list[int](), LocalEngine.tally

    def tally(engine: Any, contexts: Any, **given: Any) -> Any:
        looks.append(len(curator.spent))
        return honest(engine, contexts, **given)

    with curated(one, case.codes(), plan) as curator, patched(LocalEngine, "tally", value=tally):
        yield curator, looks


def _more_epsilon_is_a_larger_claim(kind: type[Any]) -> None:
    if "epsilon" not in {p.name for p in describe(kind)}:
        return
    schema = binary_schema()
    totals = [default(kind, epsilon=e).plan(schema, 40).total for e in (0.5, 1.0, 2.0)]
    must(
        totals[0].epsilon < totals[1].epsilon < totals[2].epsilon,
        "the claim does not grow with epsilon",
    )


def _after_the_run_the_curator_is_closed_to_the_method(kind: type[Any]) -> None:
    one = default(kind)
    case = typical()
    rows = rows_for(one)
    with curated(one, case.codes(), one.plan(case.schema, rows)) as curator:
        output = one.run(curator, rows)
    try:
        one.run(curator, rows)
    except GibbousError:
        must("secret" not in repr(output), "the output holds something secret")
        return
    raise ContractError("the method could read records after the curator was closed")


def _a_key_that_no_record_has_looks_like_zeros(kind: type[Any]) -> None:
    """Dense tables list every cell, whatever the records are."""
    one = default(kind)
    case = typical()
    outputs = [release(one, case.schema, v, rows_for(one)) for v in (case.values, case.values[:3])]
    for output in outputs:
        if not isinstance(output, Tables):
            return
        for table in output.published():
            if table.context.support == "dense":
                must(isinstance(table.cells, Dense), "a dense table does not list every cell")
                must(
                    table.cells.values.shape == (table.context.keys, table.context.levels),
                    "a dense table has the wrong shape",
                )
            else:
                must(
                    table.noise.threshold is not None, "seen keys are released without a threshold"
                )


def _records_reach_the_output_only_by_noise_choices_and_paid_draws(kind: type[Any]) -> None:
    """With the same answers to those, two neighbors (and any order of records) look the same."""
    one = default(kind)
    for pair in (*neighbors(relation_of(one), 6), uneven(relation_of(one))):
        if one.plan(pair.schema, ROWS).total.is_dp:
            told = differing(one, pair, rows_for(one))
            must(not told, f"{told} shows although noise, choices and draws are the same")


def _every_purchase_covers_what_it_shows_of_neighbors(kind: type[Any]) -> None:
    """Exact counts of neighbors, constructed and random, against the noise and the draws of each purchase."""
    for relation in relations(kind):
        one = default(kind, relation=relation, delta=0.01)
        if one.plan(binary_schema(), ROWS).total.is_dp:
            told = uncovered(one, relation, rows_for(one))
            must(not told, f"under {relation}, {told}")
    for trial in trials(kind, 3):
        told = trial.run().words
        must(not told, f"{trial.mechanism}: {told}")


def _the_words_of_the_page_are_kept(kind: type[Any]) -> None:
    """Neighbors as METHODS.md describes them, of rows, persons and flows, against the price it prints."""
    one = default(kind, delta=0.01)
    if not one.plan(binary_schema(), ROWS).total.is_dp:
        return
    for form in forms():
        told = unkept(one, form, rows=rows_for(one))
        must(not told, f"METHODS.md promises more than is kept: {told}")


PRIVACY: tuple[Callable[[type[Any]], None], ...] = (
    _plan_states_the_whole_cost_before_data,
    _the_run_pays_no_more_than_the_plan,
    _a_smaller_budget_is_refused_before_counting,
    _more_epsilon_is_a_larger_claim,
    _after_the_run_the_curator_is_closed_to_the_method,
    _a_key_that_no_record_has_looks_like_zeros,
    _records_reach_the_output_only_by_noise_choices_and_paid_draws,
    _every_purchase_covers_what_it_shows_of_neighbors,
    _the_words_of_the_page_are_kept,
)
