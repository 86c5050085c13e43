"""What one person alone holds shows with at most the stated probability: the running code, 5 rows each.

Neighbors are made from the sentence of the guarantee: the table, and the table with one more person. The
person alone holds a level, a form of days, places of a decimal and a far value. Each test of a
frequency has level 1e-6, and a saboteur that it catches.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from gibbous.core.claim import Claim, Relation, zcdp
from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema, Unit
from gibbous.mechanisms import _bought_schema
from gibbous.mechanisms._bought_schema import Parts, bought_schema
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp
from gibbous.privacy.noise import Gaussian, Thresholded, gaussian_for, selecting_for
from gibbous.privacy.text_curator import TextCurator
from tests.discovery.conftest import PLENTY, engine_of

LEVEL = 1e-6
KNOWN = Discovery(("id", "code", "when", "amount"), Unit("person", "id", 5))
TAILS = Fraction(1, 20)


def table(*, alone: bool) -> pl.DataFrame:
    """400 persons with one row each; and one who holds five rows that are like nobody's."""
    draw = np.random.default_rng(3)
    rows = 400
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "code": draw.choice(["a", "b"], rows).tolist(),
            "when": [f"2020-0{d}-1{d}" for d in draw.integers(1, 9, rows)],
            "amount": [f"{v}.5" for v in draw.integers(10, 20, rows)],
        }
    )
    if not alone:
        return frame
    person = {"id": "x", "code": "only", "when": "31.12.1999", "amount": "900000.125"}
    return pl.concat([frame, pl.DataFrame([person] * 5)])


def least(hits: int, runs: int) -> float:
    return float(beta.ppf(LEVEL, hits, runs - hits + 1)) if hits else 0.0


def most(hits: int, runs: int) -> float:
    return float(beta.ppf(1 - LEVEL, hits + 1, runs - hits)) if hits < runs else 1.0


def shown(noise: Thresholded, runs: int) -> int:
    """How often the text that one person alone has is among those that are kept."""
    engine, hits = engine_of(table(alone=True), KNOWN), 0
    for _ in range(runs):
        curator = TextCurator(engine, PLENTY, KNOWN.schema(), relation="add_remove")
        (kept,) = curator.noisy_texts(["code"], noise, lambda name, texts: texts)
        hits += "only" in kept
    return hits


@pytest.mark.statistical
def test_a_level_that_one_person_alone_holds_is_kept_as_rarely_as_is_paid_for() -> None:
    """Finds a threshold that is five counts too low (below) with power above 0.999."""
    runs = 4000

    hits = shown(selecting_for(Fraction(1, 2), TAILS, 1, max_rows=5), runs)

    assert least(hits, runs) <= TAILS
    assert hits > 0


@pytest.mark.statistical
def test_the_audit_of_levels_catches_a_threshold_for_rows_where_persons_are_protected() -> None:
    runs = 4000
    right = selecting_for(Fraction(1, 2), TAILS, 1, max_rows=5)
    wrong = Thresholded(right.base, right.threshold - 4)  # as if q(1) were the worst

    assert least(shown(wrong, runs), runs) > TAILS


class Unsafe(Thresholded):
    """Keeps whatever is above 0, and says that it costs next to nothing."""

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        return zcdp(Fraction(1, 100), relation=relation)


EVENTS = {
    "a level": lambda s: "only" in s["code"].levels if "code" in s.names else False,
    "a form of days": lambda s: "when" in s.names and s["when"].date_format == "%d.%m.%Y",
    "decimals": lambda s: "amount" in s.names and s["amount"].decimals == 3,
    "a bound": lambda s: (
        "amount" in s.names and s["amount"].binned and s["amount"].edges[-1] >= 900_000
    ),
}
RUNS = 100
RHO = Fraction(1, 8)


def found(*, alone: bool) -> list[Schema]:
    engine, schemas = engine_of(table(alone=alone), KNOWN), []
    parts = Parts(RHO, Fraction(1, 1000), KNOWN, "add_remove")
    for _ in range(RUNS):
        curator = TextCurator(engine, PLENTY, KNOWN.schema(), relation="add_remove")
        schemas.append(bought_schema(curator, KNOWN, parts))
    return schemas


def violations() -> list[str]:
    """Events that the claim rules out at its epsilons, on what ran."""
    ours, theirs = found(alone=True), found(alone=False)
    caught = []
    for name, event in EVENTS.items():
        with_, without = sum(map(event, ours)), sum(map(event, theirs))
        for epsilon in (0.25, 0.5, 1.0, 2.0):
            delta = float(delta_from_zcdp(RHO, epsilon)) + 1e-3
            if least(with_, RUNS) > math.exp(epsilon) * most(without, RUNS) + delta:
                caught.append(name)
    return caught


@pytest.mark.slow
@pytest.mark.statistical
def test_no_fact_shows_one_person_more_often_than_the_claim_allows() -> None:
    """Four events, four epsilons, level 1e-6 each."""
    assert violations() == []


@pytest.mark.slow
@pytest.mark.statistical
def test_the_audit_of_facts_catches_kinds_and_bounds_that_nobody_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unpaid(rho: Fraction, *shape: object) -> Gaussian:
        return gaussian_for(rho * 10**6, *shape)  # type: ignore[arg-type]

    monkeypatch.setattr(_bought_schema, "gaussian_for", unpaid)

    assert "a bound" in violations()


@pytest.mark.slow
@pytest.mark.statistical
def test_the_audit_of_facts_catches_levels_kept_without_a_threshold_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        _bought_schema, "selecting_for", lambda *_: Unsafe(Gaussian(Fraction(4)), 0)
    )

    assert "a level" in violations()
