"""What a plan warns of before data: a number of rows that is published, and a delta without a use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.plan import Plan

SCHEMA = gb.Schema(
    (
        gb.Column("a", "nominal", levels=("x", "y", "z")),
        gb.Column("b", "binary", levels=("n", "y")),
        gb.Column("c", "ordinal", levels=("low", "mid", "high")),
    )
)
PAID = [
    gb.Pegs(),
    gb.BlockPegs(),
    gb.ExponentialPegs(),
    gb.PerturbedImputation(),
    gb.Dirichlet(),
    gb.Parallel(gb.BlockPegs(), parts=2),
    gb.Parallel(gb.PerturbedImputation(), parts=2),
]


def _about(plan: Plan, word: str) -> list[str]:
    return [text for text in plan.warnings if word in text]


@pytest.mark.parametrize("method", PAID, ids=lambda m: f"{m.about.name}-{m.about.title[:9]}")
def test_a_number_of_rows_is_published_and_said_to_be_once(method: Any) -> None:
    plan = method.plan(SCHEMA, 50)

    assert len(_about(plan, "published as given")) == 1


def test_no_such_warning_where_the_number_of_records_is_public_or_nothing_is_claimed() -> None:
    public = replace(gb.BlockPegs(), relation="replace_one")

    assert not _about(public.plan(SCHEMA, 50), "published as given")
    assert not _about(gb.Contingency().plan(SCHEMA, 50), "published as given")
    assert not _about(gb.DiversePegs().plan(SCHEMA, 50), "published as given")


def test_tables_leave_the_noisy_number_of_rows_as_a_way_out() -> None:
    (given,) = _about(gb.Laplace().plan(SCHEMA, 50), "published as given")

    assert "leave it out for the noisy number" in given
    assert not _about(gb.Laplace().plan(SCHEMA, None), "published as given")


@pytest.mark.parametrize("method", [gb.Modips, gb.Privbayes])
def test_a_delta_that_pure_noise_has_no_use_for_is_named(method: Any) -> None:
    pure = method(noise="laplace", delta=1e-8).plan(SCHEMA, None)
    used = method(noise="gaussian", delta=1e-8).plan(SCHEMA, None)
    own = method(noise="laplace").plan(SCHEMA, None)

    (said,) = _about(pure, "delta = 1e-08 is not used")
    assert "gaussian" in said
    assert pure.total.delta == 0
    assert not _about(used, "not used")
    assert not _about(own, "not used")


def test_regressions_of_a_small_table_need_little_memory() -> None:
    few = gb.PerturbedImputation().plan(SCHEMA, 100).memory_bytes
    wide = gb.Schema(tuple(replace(SCHEMA.columns[0], name=f"c{k}") for k in range(30)))

    many = gb.PerturbedImputation().plan(wide, 100).memory_bytes

    assert few < 100_000  # 18 combinations, however many records
    assert many > 100_000_000  # a million records stand for what is not known


def test_the_audit_of_paid_rows_on_parts_is_that_of_the_method_inside() -> None:
    paid = gb.Parallel(gb.BlockPegs(), parts=2).about

    assert paid.audited == f"inside: {gb.BlockPegs.about.audited}"
    assert gb.Parallel(gb.Laplace(), parts=2).about.audited == gb.Parallel.about.audited
