"""What paid discovery does not spend goes to the method, is stated, and is no more than was left."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import zcdp
from gibbous.core.discovery import Discovery
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.plan import Plan
from gibbous.mechanisms import _discovery
from gibbous.mechanisms._discovery import Discovering
from gibbous.mechanisms._discovery_parts import ALONE, SHARES, Parts
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.text_curator import TextCurator
from gibbous.read.schema_file import load_schema, parse_schema
from gibbous.read.schema_write import schema_toml
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures
from tests.discovery.conftest import engine_of, visits

METHOD = gb.AdaptiveGibbs(epsilon=1, delta=1e-6)


def plain(rows: int = 20_000) -> pl.DataFrame:
    """Levels that one look shows whole: most of what discovery may spend is left."""
    draw = np.random.default_rng(3)
    return pl.DataFrame({f"c{i}": draw.choice(["F", "M"], rows) for i in range(6)})


def run(frame: pl.DataFrame, method: Any = METHOD, **known: Any) -> tuple[Plan, Plan, TextCurator]:
    """The plan before and after a run, and who sold it."""
    made = Discovering(method, Discovery.of(frame, gb.Unit(), **known))
    shells = made.known.schema()
    before = made.plan(shells, None)
    curator = TextCurator(engine_of(frame, made.known), before.total, shells, relation="add_remove")
    result = made.run(curator, None)
    return before, made.plan(result.schema, None), curator


@pytest.mark.slow
@pytest.mark.parametrize("table", ["plain", "visits"])
def test_all_that_was_reserved_is_spent_by_discovery_and_the_method_together(table: str) -> None:
    """From the purchases alone: rho of (epsilon, 3/4 delta) is met to 4 %, and the plan says who got it."""
    frame = plain() if table == "plain" else visits().drop("patient", "note")

    before, after, curator = run(frame)

    whole = rho_from_approx(Fraction(1), Fraction(75, 10**8))
    paid = sum(claim.rho for claim in curator.spent)
    assert 0.96 * whole < paid <= whole
    for plan in (before, after):
        assert plan.total == before.total
        listed = [spend.claim.rho for spend in plan.spends]
        assert 0.96 * whole < sum(listed) <= whole
    share = sum(spend.claim.rho for spend in before.spends[:3]) / whole
    assert share == pytest.approx(0.5, rel=1e-9)
    left = sum(spend.claim.rho for spend in after.spends[:3]) / whole
    assert left < 0.35 if table == "plain" else left <= share


@pytest.mark.slow
def test_the_method_gets_what_was_left_and_not_more() -> None:
    """The price of the schema is read off the Curator when it was bought, the rest off the plan after it."""
    paid, honest = list[Fraction](), _discovery.bought_schema

    def watched(curator: TextCurator, known: Discovery, parts: Parts) -> Any:
        found = honest(curator, known, parts)
        paid.append(sum((claim.rho for claim in curator.spent), Fraction(0)))
        return found

    with patched(_discovery, "bought_schema", value=watched):
        before, after, _ = run(plain())

    whole = rho_from_approx(Fraction(1), Fraction(75, 10**8))
    assert paid[0] < 0.35 * whole
    assert sum(s.claim.rho for s in before.spends[3:]) <= 0.5 * whole
    for_method = sum(s.claim.rho for s in after.spends[3:])
    assert 0.96 * (whole - paid[0]) < for_method <= whole - paid[0]


@pytest.mark.slow
def test_whoever_hands_on_more_than_was_left_is_refused() -> None:
    """The saboteur: a tenth of discovery's rho more than is left."""
    honest = Parts.left

    def more(parts: Parts, spent: Any) -> Fraction:
        return honest(parts, spent) + Fraction(1, 10)

    with (
        patched(Parts, "left", value=more),
        pytest.raises(PrivacyRefused, match="more than it planned"),
    ):
        run(plain())


@pytest.mark.parametrize("left", [0, Fraction(1, 3), Fraction(99, 1000), 1])
def test_what_is_left_is_rounded_down_and_never_part_of_kinds_and_usual_levels(left: Any) -> None:
    known = Discovery(("a", "b"), gb.Unit())
    parts = Parts(Fraction(1, 7), Fraction(1, 10**9), known, "add_remove", METHOD, SHARES)
    spent = [zcdp(parts.rho * (1 - Fraction(left)))]

    found = parts.left(spent)

    assert found <= min(Fraction(left), 1 - SHARES["kinds"] - SHARES["levels"])
    assert found > min(Fraction(left), 1 - SHARES["kinds"] - SHARES["levels"]) - Fraction(1, 1000)
    listed = sum(s.claim.rho for s in replace(parts, unspent=found).spends())
    assert listed == parts.rho * (1 - found)


def test_the_parts_are_a_whole_before_a_method_and_alone() -> None:
    assert sum(SHARES.values()) == sum(ALONE.values()) == 1
    assert ALONE["more"] == 0
    assert {SHARES[w] / ALONE[w] for w in ALONE if ALONE[w]} == {1 - SHARES["more"]}


def test_before_a_method_a_column_that_lost_little_is_not_looked_at_for_much() -> None:
    """A twentieth of its rows is worth a column's part; the threshold of the plan holds anyway."""
    known = Discovery(tuple("abcdefghij"), gb.Unit())
    alone = Parts(Fraction(1, 100), Fraction(1, 10**9), known, "add_remove")
    before = replace(alone, method=METHOD, shares=SHARES)

    (much,) = alone.divided([0.05], 2)[1]
    (little,) = before.divided([0.05], 2)[1]
    (least,) = before.divided([0.001], 2)[1]

    assert much > 0.2
    assert little == pytest.approx(0.1)
    assert least == SHARES["rare"] / 10


@pytest.mark.slow
def test_a_release_says_what_was_left_and_verify_accepts_it(cli: Cli, home: Path) -> None:  # noqa: F811
    plain().write_csv("plain.csv")

    done = cli("synthesize", "plain.csv", "--unit", "row", "--header-is-public",
               "--epsilon", "1", "--delta", "1e-6", "--out", "out")  # fmt: skip

    assert done.code == 0, done.err
    schema = load_schema(Path("out/schema.toml"))
    assert 0.3 < schema.unspent < 0.9
    assert load_schema(Path("out/schema.toml")) == schema
    assert cli("verify", "out").code == 0


def test_what_was_left_is_read_back_and_is_a_part() -> None:
    schema = gb.Schema((gb.Column("a", "nominal", levels=("x", "y")),))
    text = schema_toml(replace(schema, unspent=0.125))

    assert "unspent = 0.125" in text
    assert parse_schema(text).unspent == 0.125
    assert "unspent" not in schema_toml(schema)
    for wrong in ("1", "1.5", "-0.1", "nan", "true", "'much'"):
        with pytest.raises(UsageError, match="unspent is no part"):
            parse_schema(text.replace("0.125", wrong))
