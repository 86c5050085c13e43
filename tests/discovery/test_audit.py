"""What one person alone holds shows with at most the stated probability: 2,000 coupled runs, for two units.

Neighbors are made from the sentence of the guarantee: the table, and the table with one more unit, whose
other rows are the same. The unit alone holds a level, a bound, a kind, a form of days, places of a decimal
and an amount of money, which a note says; where its column is empty but for it, the least noise moves the
rules. A bound of a frequency is exact (Clopper, Pearson), at level 1e-6; each saboteur is caught by the
same comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from gibbous.core.claim import Claim, Relation, zcdp
from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema, Unit
from gibbous.mechanisms import _bought_schema
from gibbous.mechanisms._bought_schema import bought_schema
from gibbous.mechanisms._discovery_parts import Parts
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp
from gibbous.privacy.noise import Gaussian, Thresholded
from gibbous.privacy.text_curator import TextCurator
from gibbous.structure.column_outlines import Outline
from tests.discovery.conftest import PLENTY, engine_of

LEVEL = 1e-6
RUNS = 1000  # on each of two neighbors, for each of two units
FEW_RUNS = 100  # enough for a saboteur
ROWS = 200
UNITS = (Unit(), Unit("person", "id", 5))
RHO = Fraction(1, 8)
TAILS = Fraction(1, 1000)
EMPTY = ("when", "amount", "mark", "price", "stated")


def known_for(unit: Unit) -> Discovery:
    names = ("code", "when", "amount", "mark", "price", "stated", "usual")
    kinds: dict[str, Any] = {"date": ("when",), "numeric": ("amount",)}
    kinds["bounds"] = {"stated": (0, 10)}
    return Discovery((*names, unit.column) if unit.column else names, unit, **kinds)


def table(unit: Unit, *, alone: bool) -> pl.DataFrame:
    """200 persons with one row each; and one whose cells are like nobody's, more often than may count."""
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(ROWS)],
            "code": draw.choice(["a", "b"], ROWS).tolist(),
            **{name: [None] * ROWS for name in EMPTY},
            "usual": [f"{v}.5" for v in draw.integers(10, 20, ROWS)],
        },
        schema_overrides=dict.fromkeys(EMPTY, pl.String),
    )
    if alone:
        only = {"id": "x", "code": "only", "when": "31.12.1999", "amount": "900000.125"}
        person = {**only, "mark": "2021-02-03", "price": "$1,234.50", "stated": "900000.125"}
        person["usual"] = "0.0625"
        frame = pl.concat([frame, pl.DataFrame([person] * (8 if unit.column else 1))])
    return frame if unit.column else frame.drop("id")


Run = tuple[Schema, float]
"""What was bought, and the number of rows that rules saw."""


def bought_often(runs: int, parts: Parts, *, alone: bool, true_rows: bool = False) -> list[Run]:
    """What so many purchases from the same table find.

    Args:
        true_rows: whether rules see the true number of rows, as they never should.
    """
    known = parts.known
    engine = engine_of(table(known.unit, alone=alone).select(known.names), known)
    counted = float(engine._look().rows)
    seen, real, out = [0.0], _bought_schema.outline, []
    with pytest.MonkeyPatch.context() as patch:
        # Public functions of one text at a time: the same for every run, so once is enough.
        patch.setattr(_bought_schema, "classes", once(_bought_schema.classes))
        patch.setattr(_bought_schema, "lenient_codes", once(_bought_schema.lenient_codes))

        def watched(*args: Any, **facts: Any) -> Outline:
            facts["rows"] = counted if true_rows else facts["rows"]
            seen.append(facts["rows"])
            return real(*args, **facts)

        patch.setattr(_bought_schema, "outline", watched)
        for _ in range(runs):
            curator = TextCurator(engine, PLENTY, known.schema(), relation="add_remove")
            out.append((bought_schema(curator, known, parts)[0], seen[-1]))
    return out


def once(rule: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The same rule, asked once for each list of texts and column."""
    asked: dict[Any, np.ndarray] = {}

    def answer(texts: pl.Series, column: Any) -> np.ndarray:
        key = (*texts.to_list(), column)
        if key not in asked:
            asked[key] = rule(texts, column)
        return asked[key]

    return answer


@cache
def least(hits: int, runs: int) -> float:
    return float(beta.ppf(LEVEL, hits, runs - hits + 1)) if hits else 0.0


@cache
def most(hits: int, runs: int) -> float:
    return float(beta.ppf(1 - LEVEL, hits + 1, runs - hits)) if hits < runs else 1.0


def column(schema: Schema, name: str) -> Any:
    return schema[name] if name in schema.names else None


EVENTS: Mapping[str, Callable[[Schema, float], bool]] = {
    "a level": lambda s, _: "only" in s["code"].levels if "code" in s.names else False,
    "a form of days": lambda s, _: getattr(column(s, "when"), "date_format", None) == "%d.%m.%Y",
    "a kind": lambda s, _: getattr(column(s, "mark"), "kind", None) == "date",
    "decimals": lambda s, _: getattr(column(s, "amount"), "decimals", None) == 3,
    "decimals between stated bounds": lambda s, _: s["stated"].decimals == 3,
    "stated bounds": lambda s, _: s["stated"].edges != (0, 10),
    "decimals of a usual column": lambda s, _: getattr(column(s, "usual"), "decimals", 1) == 4,
    "a bound": lambda s, _: (getattr(column(s, "amount"), "edges", None) or [0])[0] == 300_000,
    "a note": lambda s, _: getattr(column(s, "price"), "note", None) is not None,
    "a number of rows": lambda _, rows: rows > ROWS + 0.5,
}


def violations(unit: Unit, runs: int = RUNS, **more: bool) -> list[str]:
    """Events that the claim rules out, in either direction, on what ran."""
    parts = Parts(RHO, TAILS, known_for(unit), "add_remove")
    ours, theirs = (bought_often(runs, parts, alone=alone, **more) for alone in (True, False))
    caught = []
    for name, event in EVENTS.items():
        hits = sum(event(*run) for run in ours), sum(event(*run) for run in theirs)
        for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0):
            delta = float(delta_from_zcdp(RHO, epsilon) if epsilon else math.sqrt(RHO / 2))
            delta += float(TAILS)
            for one, other in (hits, hits[::-1]):
                if least(one, runs) > math.exp(epsilon) * most(other, runs) + delta:
                    caught.append(name)
    return sorted(set(caught))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person of 5 rows"])
def test_no_fact_shows_one_person_more_often_than_the_claim_allows(unit: Unit) -> None:
    """Ten events, five epsilons, both directions; at epsilon 0 by Pinsker's inequality."""
    assert violations(unit) == []


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person of 5 rows"])
@pytest.mark.parametrize(
    ("what", "shows"),
    [
        (("kinds",), {"decimals between stated bounds", "a number of rows"}),
        (("kinds again",), {"decimals between stated bounds", "a number of rows"}),
        (("bounds",), {"a bound"}),
        # A kind and a form show where bounds are found, too.
        (
            ("kinds", "bounds"),
            {"a form of days", "a kind", "decimals", "a bound", "a note"},
        ),
    ],
)
def test_the_audit_of_facts_catches_what_nobody_paid_for(
    monkeypatch: pytest.MonkeyPatch, unit: Unit, what: tuple[str, ...], shows: set[str]
) -> None:
    paid = Parts.noise

    def noise(parts: Parts, which: str, columns: int) -> Gaussian:
        return Gaussian(Fraction(1, 100)) if which in what else paid(parts, which, columns)

    monkeypatch.setattr(Parts, "noise", noise)

    assert shows <= set(violations(unit, FEW_RUNS))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person of 5 rows"])
def test_the_audit_of_facts_catches_the_true_number_of_rows(unit: Unit) -> None:
    assert violations(unit, FEW_RUNS, true_rows=True) == ["a number of rows"]


class Unsafe(Thresholded):
    """Keeps what is above its threshold, and says that it costs next to nothing."""

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        return zcdp(Fraction(1, 100), relation=relation)


def kept_alone(unit: Unit, runs: int) -> tuple[int, Fraction]:
    """How often the level of one unit alone is bought, and the probability that is paid for.

    Noise is small, so that the probability is that of the threshold, and one count more or less is
    a factor of more than ten.
    """
    known = Discovery(("code", unit.column) if unit.column else ("code",), unit)
    rho, tails = Fraction(50, 7) * unit.max_rows**2, Fraction(1, 40)
    parts = Parts(rho, tails, known, "add_remove")
    found = bought_often(runs, parts, alone=True)
    return sum("only" in schema["code"].levels for schema, _ in found), tails


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person of 5 rows"])
def test_a_level_that_one_person_alone_holds_is_kept_as_rarely_as_is_paid_for(unit: Unit) -> None:
    """Without the table of the unit the level cannot be kept: no epsilon comes in."""
    hits, tails = kept_alone(unit, RUNS)

    assert least(hits, RUNS) <= tails
    assert hits > 0


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person of 5 rows"])
def test_the_audit_of_levels_catches_a_threshold_one_too_low(
    monkeypatch: pytest.MonkeyPatch, unit: Unit
) -> None:
    right = Parts.selecting

    def low(parts: Parts, columns: int, share: Fraction | None = None) -> Thresholded:
        noise = right(parts, columns, share)
        return Unsafe(noise.base, noise.threshold - 1)

    monkeypatch.setattr(Parts, "selecting", low)
    hits, tails = kept_alone(unit, FEW_RUNS)

    assert least(hits, FEW_RUNS) > tails


@pytest.mark.slow
@pytest.mark.statistical
def test_the_audit_of_levels_catches_a_threshold_for_rows_where_persons_are_protected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, person = Parts.selecting, UNITS[1]

    def for_rows(parts: Parts, columns: int, share: Fraction | None = None) -> Thresholded:
        noise = right(parts, columns, share)
        rows = replace(parts, known=Discovery(("code",), Unit()), rho=parts.rho / 25)
        return Unsafe(noise.base, right(rows, columns, share).threshold)

    monkeypatch.setattr(Parts, "selecting", for_rows)
    hits, tails = kept_alone(person, FEW_RUNS)

    assert least(hits, FEW_RUNS) > tails
