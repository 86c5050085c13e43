"""Diverse columns of noisy_pegs: every law that rows are drawn from, enumerated as the program draws it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import GibbousError, ModelRejected, ParameterError
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Table, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.privacy.calibrate import diversity
from gibbous.privacy.curator import Curator
from gibbous.sampling import conditionals
from gibbous.sampling.program import Program, Step, prepare
from gibbous.structure import choice
from gibbous.write.certificate_check import check_diversity
from gibbous.write.release_digest import recipe_json
from gibbous.write.table_files import read_tables, write_tables

SCHEMA = Schema(
    tuple(
        Column(name, "nominal", levels=tuple(map(str, range(size))))
        for name, size in (("town", 2), ("job", 3), ("illness", 3))
    )
)
NOISE = NoiseInfo("gaussian", 1.0)
ILLNESS = 2
CRITERIA = ("entropy", "max_probability")
ASKED = pytest.mark.parametrize(("l", "criterion"), [*itertools.product((1.25, 2.0), CRITERIA)])


def table(target: int, parents: tuple[int, ...], values: Any) -> Table:
    sizes = tuple(SCHEMA.sizes[p] for p in parents)
    context = Context((target,), parents, (SCHEMA.sizes[target],), sizes)
    cells = np.array(values, dtype=np.int64).reshape(context.keys, context.levels)
    return Table(context, Dense(cells), NOISE)


def tiny(values: Any, l: float, criterion: Any) -> Tables:
    """Illness given town, of six noisy counts."""
    items = (table(0, (), [5, 3]), table(1, (), [2, 1, 4]), table(ILLNESS, (0,), values))
    asked = Recipe(
        "ancestral", (0, 1, 2), kappa=1.0, fit="rake", diverse=((ILLNESS, l),), criterion=criterion
    )
    return Tables(SCHEMA, items, asked, (table(ILLNESS, (), np.sum([values[:3], values[3:]], 0)),))


def every_tiny(l: float, criterion: Any) -> Iterator[Tables]:
    """All noisy tables of six counts, each -2, 1 or 40: some keys have no count above 0."""
    for values in itertools.product((-2, 1, 40), repeat=6):
        yield tiny(values, l, criterion)


def drawn_laws(step: Step) -> list[list[Fraction]]:
    """The law of each slot over all 64-bit words: cells of 32 bits, thresholds of 24; no float at all."""
    assert step.packed is not None
    levels = step.packed.shape[1]
    edges = [
        -(-(i << 32) // levels) for i in range(levels + 1)
    ]  # least word w with w levels >> 32 = i
    laws = []
    for cells in step.packed[:-1].tolist():
        law = [Fraction(0)] * levels
        for i, cell in enumerate(cells):
            share = Fraction(edges[i + 1] - edges[i], 1 << 32)
            own = Fraction(cell >> 8, 1 << 24)
            law[i] += share * own
            law[cell & 0xFF] += share * (1 - own)
        laws.append(law)
    return laws


def keeps(law: list[Fraction], l: float, criterion: str) -> bool:
    """The criterion, by its definition and in 40 digits."""
    if criterion == "max_probability":
        return max(law) <= 1 / Fraction(l)
    with mpmath.workdps(40):
        parts = [mpmath.mpf(p.numerator) / p.denominator for p in law if p]
        return bool(-mpmath.fsum(p * mpmath.log(p) for p in parts) >= mpmath.log(mpmath.mpf(l)))


def all_kept(l: float, criterion: Any) -> bool:
    """Whether every law of every tiny table keeps the criterion."""
    for tables in every_tiny(l, criterion):
        program = prepare(tables)
        assert isinstance(program, Program)
        if not all(keeps(law, l, criterion) for law in drawn_laws(program.steps[ILLNESS])):
            return False
    return True


@pytest.mark.slow
@ASKED
def test_every_law_of_every_tiny_table_is_diverse_as_it_is_drawn(l: float, criterion: Any) -> None:
    assert all_kept(l, criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_laws_of_some_tiny_tables_are_diverse_as_they_are_drawn(criterion: Any) -> None:
    for tables in itertools.islice(every_tiny(2.0, criterion), 0, None, 40):
        program = prepare(tables)
        assert isinstance(program, Program)
        assert all(keeps(law, 2.0, criterion) for law in drawn_laws(program.steps[ILLNESS]))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_laws_that_are_left_as_they_are_are_caught(
    criterion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditionals, "_diverse", lambda shares, context, recipe: shares)

    assert not all_kept(2.0, criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_laws_without_room_for_rounding_are_caught(
    criterion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = diversity.diverse_law
    monkeypatch.setattr(
        diversity, "diverse_law", lambda law, l, criterion, moved: own(law, l, criterion, 1e-18)
    )

    assert not all_kept(2.0, criterion)


@ASKED
def test_a_law_is_moved_along_the_line_to_the_uniform_one_and_no_further(
    l: float, criterion: Any
) -> None:
    for values in ((40, 0, 1, 1, 1, 1), (40, 1, -2, 0, 40, 1), (-2, -2, 0, 40, 40, 0)):
        asked = tiny(values, l, criterion)
        before = conditionals.conditionals(replace(asked, recipe=replace(asked.recipe, diverse=())))
        after = conditionals.conditionals(asked)
        assert before[ILLNESS].shares is not None
        assert after[ILLNESS].shares is not None
        for own, mixed in zip(before[ILLNESS].shares, after[ILLNESS].shares, strict=True):
            exact = [Fraction(p) for p in own]
            beta = 1 - np.ptp(mixed) / np.ptp(own) if np.ptp(own) > 0 else 0.0
            if keeps(exact, l * (1 + 1e-5), criterion):
                assert beta == pytest.approx(0, abs=1e-14)
            assert mixed == pytest.approx((1 - beta) * own + beta / 3)
            if beta < 1e-3:  # no more than the room for rounding
                continue
            less = (1 - beta + 1e-4) * own + (beta - 1e-4) / 3
            assert not keeps([Fraction(p) for p in less], l, criterion)


# --- given the rest of the row


def rows_law(tables: Tables) -> np.ndarray:
    """The law of a whole row, by enumerating every path through the steps; (town, job, illness)."""
    program = prepare(tables)
    assert isinstance(program, Program)
    law = np.full(SCHEMA.sizes, 0.0)
    if not program.chained:
        law[0, 0, 0] = 1.0  # every column is drawn once, whatever stood there
        steps = [program.steps[i] for i in program.order]
    else:
        first = [np.array(drawn_laws(step)[0], dtype=float) for step in program.start]
        law = np.einsum("i,j,k->ijk", *first)
        steps = [program.steps[i] for _ in range(program.sweeps) for i in program.order]
    for step in steps:
        fresh, laws = np.zeros_like(law), np.array(drawn_laws(step), dtype=float)
        assert step.conditional is not None
        context, target = step.conditional.context, step.targets[0]
        for row in itertools.product(*map(range, SCHEMA.sizes)):
            key = 0
            for parent, size in zip(context.parents, context.parent_sizes, strict=True):
                key = key * size + row[parent]
            slot = step.slots[key] if step.slots is not None else key
            for level, chance in enumerate(laws[slot]):
                fresh[*row[:target], level, *row[target + 1 :]] += law[row] * chance
        law = fresh
    return law


def least_effective_levels(law: np.ndarray) -> float:
    """exp of the least entropy of illness, given town and job."""
    joint = law.reshape(-1, SCHEMA.sizes[ILLNESS])
    held = joint[joint.sum(axis=1) > 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        given = held / held.sum(axis=1, keepdims=True)
        parts = np.where(given > 0, given * np.log(given), 0.0)
    return float(np.exp(-parts.sum(axis=1)).min())


def records(rows: int = 600) -> np.ndarray:
    """Illness follows job, job follows town."""
    rng = np.random.default_rng(5)
    town = rng.integers(0, 2, rows)
    job = np.where(rng.random(rows) < 0.9, 2 * town, rng.integers(0, 3, rows))
    illness = np.where(rng.random(rows) < 0.97, job, rng.integers(0, 3, rows))
    return np.stack([town, job, illness], axis=1)


def curator_of(mechanism: NoisyPegs) -> Curator:
    codes = Codes(SCHEMA, np.asfortranarray(records().astype(np.uint8)), secret=True)
    total = mechanism.plan(SCHEMA, None).total
    return Curator(LocalEngine.from_codes(codes), total, SCHEMA, relation=mechanism.relation)


CYCLE = {"town": ["job"], "job": ["town"], "illness": ["town", "job"]}


@pytest.mark.parametrize("contexts", [{}, CYCLE], ids=["chosen", "in a cycle"])
def test_a_drawn_value_is_diverse_given_all_the_rest_of_its_row(contexts: Any) -> None:
    mechanism = NoisyPegs(epsilon=40, contexts=contexts, sweeps=3, diverse={"illness": 1.8})
    plain = NoisyPegs(epsilon=40, contexts=contexts, sweeps=3)

    law, usual = (rows_law(one.run(curator_of(one), None)) for one in (mechanism, plain))

    assert law.sum() == pytest.approx(1)
    assert least_effective_levels(law) >= 1.8 - 1e-9
    assert least_effective_levels(usual) < 1.6


def test_a_diverse_column_that_others_are_drawn_from_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Job told from illness alone: its own law given the rest is no longer the one that was mixed."""
    own = choice._tree
    monkeypatch.setattr(choice, "_tree", lambda search, free, leaves: own(search, free, ()))
    mechanism = NoisyPegs(epsilon=40, parents=1, diverse={"job": 1.8, "illness": 1.8})

    found = [rows_law(mechanism.run(curator_of(mechanism), None)) for _ in range(3)]

    assert (
        min(map(least_effective_levels, found)) < 1.7
        or min(least_effective_levels(law.swapaxes(1, 2)) for law in found) < 1.7
    )


@pytest.mark.parametrize("asked", [{"illness": 2}, {"job": 2, "illness": 2}, {"town": 2, "job": 3}])
def test_a_diverse_column_is_the_context_of_none(asked: dict[str, float]) -> None:
    tables = NoisyPegs(epsilon=40, diverse=asked).run(curator_of(NoisyPegs(epsilon=40)), None)

    contexts = {SCHEMA.names[p] for item in tables.items for p in item.context.parents}
    assert not contexts & set(asked)


# --- what it costs, and what is said


def test_diversity_costs_nothing_and_changes_no_noise() -> None:
    contexts = {"illness": ["town", "job"]}
    plain = NoisyPegs(epsilon=1, contexts=contexts)
    asked = NoisyPegs(epsilon=1, contexts=contexts, diverse={"illness": 2})
    told, usual = asked.plan(SCHEMA, 100), plain.plan(SCHEMA, 100)
    curators = curator_of(plain), curator_of(asked)
    found = [one.run(curator, None) for one, curator in zip((plain, asked), curators, strict=True)]

    assert (told.total, told.claim, told.spends) == (usual.total, usual.claim, usual.spends)
    assert curators[0].spent == curators[1].spent
    assert [t.noise for t in found[0].items] == [t.noise for t in found[1].items]


def test_the_plan_says_what_is_bounded_and_what_is_not() -> None:
    plan = NoisyPegs(epsilon=1, diverse={"illness": 2}).plan(SCHEMA, 100)

    (said,) = plan.beside
    assert (said.claim.kind, said.claim.l, said.claim.epsilon) == ("l_diversity", 2, 0)
    assert "given all other values of its row, its entropy is at least ln 2" in said.detail
    assert "beside it: each drawn value of 'illness'" in str(plan)
    assert any("not what an attacker concludes" in text for text in plan.warnings)
    assert plan.total.is_dp
    assert "beside" not in NoisyPegs(epsilon=1).plan(SCHEMA, 100).to_json()


def test_a_release_is_held_to_what_it_says_of_drawn_values() -> None:
    method = NoisyPegs(epsilon=1, diverse={"illness": 2})
    told = method.plan(SCHEMA, 100)
    receipt = {"plan": told.to_json(), "total": told.total.to_json()}
    kept = tiny((4, 0, 1, 2, 2, 2), 2.0, "entropy")
    check_diversity(
        Tables(SCHEMA, (), Recipe("ancestral", ()), parts=(kept, kept)), receipt, SCHEMA
    )
    less = tiny((4, 0, 1, 2, 2, 2), 1.5, "entropy")

    for tables in (None, less, replace(kept, copies=(less,))):
        with pytest.raises(ModelRejected, match="not drawn as diverse as it says"):
            check_diversity(tables, receipt, SCHEMA)


def test_combinators_hand_it_on() -> None:
    inside = NoisyPegs(epsilon=1, diverse="illness=2")
    for outside in (gb.PerSet(inside), gb.Parallel(inside, parts=2)):
        assert outside.plan(SCHEMA, 100, 2).beside == inside.plan(SCHEMA, 100).beside


def test_what_cannot_be_kept_is_refused_before_any_data() -> None:
    numbers = Schema((*SCHEMA.columns, Column("age", "numeric", edges=(0.0, 40.0, 80.0))))
    ruled = replace(SCHEMA, impossible=(Impossible((("town", (0,)), ("illness", (1,)))),))
    for schema, asked, words in (
        (SCHEMA, {"diverse": {"illness": 4}}, "l is 4 for column 'illness' of 3 levels"),
        (SCHEMA, {"diverse": {"ilness": 2}}, "Did you mean 'illness'"),
        (
            SCHEMA,
            {"diverse": {"job": 2}, "contexts": {"illness": ["job"]}},
            "is a context of another column",
        ),
        (numbers, {"diverse": {"age": 2}}, "a column of numbers or dates"),
        (ruled, {"diverse": {"illness": 2}}, "with rules or impossible combinations"),
    ):
        with pytest.raises(GibbousError, match=words):
            NoisyPegs(epsilon=1, **asked).plan(schema, None)
    for bad in (
        {"illness": 1},
        {"illness": "many"},
        ("illness=2", "illness=3"),
        {"illness": np.nan},
    ):
        with pytest.raises(ParameterError, match="one number above 1 a column"):
            NoisyPegs(epsilon=1, diverse=bad)


def test_tables_are_read_back_with_their_diversity_and_others_read_as_before(tmp_path: Any) -> None:
    asked = tiny((4, 0, 1, 2, 2, 2), 2.0, "max_probability")
    usual = replace(asked, recipe=replace(asked.recipe, diverse=(), criterion="entropy"))
    write_tables(asked, tmp_path / "tables")

    assert read_tables(tmp_path / "tables", SCHEMA).recipe == asked.recipe
    assert not {"diverse", "criterion"} & recipe_json(usual).keys()


@pytest.mark.parametrize("diverse", [((7, 2.0),), ((ILLNESS, 4.0),), ((0, 2.0),)])
def test_a_diversity_that_the_tables_cannot_keep_is_rejected(tmp_path: Any, diverse: Any) -> None:
    asked = tiny((4, 0, 1, 2, 2, 2), 2.0, "entropy")
    write_tables(replace(asked, recipe=replace(asked.recipe, diverse=diverse)), tmp_path / "tables")

    with pytest.raises(ModelRejected):
        read_tables(tmp_path / "tables", SCHEMA)
