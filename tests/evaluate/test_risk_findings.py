"""Risk findings as a whole: planted releases are told apart, and options are answered."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gibbous.core.finding import Finding
from gibbous.core.schema import Column, Schema
from gibbous.evaluation import metrics
from gibbous.evaluation.measure import NOTHING, Options
from gibbous.evaluation.risk.uniques import replicated_share, stranger_share
from gibbous.evaluation.tables import Side, Subject, independent, side

SCHEMA = Schema(
    (
        Column("age", "ordinal", levels=tuple(range(20))),
        Column("town", "nominal", levels=tuple(range(30))),
        Column("sex", "binary", levels=("f", "m")),
        Column("pay", "numeric", edges=tuple(float(e) for e in range(0, 101, 5))),
        Column("ill", "nominal", levels=tuple(range(6))),
    )
)
KEYS, SENSITIVE = ("age", "town", "sex"), "ill"
NAMES = tuple(name for name in metrics.names() if metrics.card(name).group == "risk")
NEED_HOLDOUT = ("dcr", "membership_distance", "membership_density")


def findings(subject: Subject, options: Options = NOTHING) -> list[Finding]:
    return metrics.compute(subject, options, options.only or NAMES)[0]


def left_out(options: Options = NOTHING) -> dict[str, str]:
    return metrics.left_out(NAMES, SCHEMA, options)


def population(rows: int, seed: int) -> Side:
    """Draws from one law: pay and illness depend on age, town is skewed."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 20, rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "town": np.minimum((rng.random(rows) ** 2 * 30).astype(int), 29),
            "sex": rng.choice(["f", "m"], rows).tolist(),
            "pay": np.clip(5 * age + rng.normal(0, 10, rows), 0, 100),
            "ill": (age // 4 + (rng.random(rows) < 0.4)) % 6,
        }
    )
    return side(frame, SCHEMA)


REAL, HOLDOUT = population(600, 1), population(600, 2)
RISKS = ("dcr", "membership_distance", "membership_density")
ATTACKS = ("intruder_mode", "disco", "cap", "replicated_unique")


def first(found: list[Finding], name: str) -> Finding:
    return next(one for one in found if one.name == name)


def scored(release: Side, real: Side = REAL, holdout: Side | None = HOLDOUT) -> list[Finding]:
    return findings(
        Subject(SCHEMA, real, (release,), holdout, 1), Options(keys=KEYS, sensitive=(SENSITIVE,))
    )


def test_a_copy_is_found_by_every_attack() -> None:
    found = scored(REAL)

    for name in RISKS:
        one = first(found, name)
        assert one.value > (0.9 if name == "membership_density" else 0.98)
        assert one.interval is not None
        assert one.interval[0] > 0.85
    gain = first(found, "link_gain")
    assert gain.value > dict(gain.null)["outsiders"] + 0.1
    for name in ATTACKS:
        one = first(found, name)
        assert one.interval is not None
        assert dict(one.null)["outsiders"] < one.interval[0] - 0.05
    copied = first(found, "replicated_unique")
    assert copied.value == dict(copied.null)["all unique records"] > 0
    assert dict(copied.null)["outsiders"] == 0


def test_a_tenth_of_copies_among_fresh_rows_is_found() -> None:
    mixed = population(600, 3)
    frame = pl.concat([REAL.frame[:60], mixed.frame[60:]])
    found = scored(side(frame, SCHEMA))

    at_one = first(found, "membership_density").detail[1]
    at_ten = first(found, "membership_distance").detail[0]

    assert at_one["false alarms"] <= 0.01
    assert at_one["found, low"] > 0.04
    assert at_ten["found, low"] > at_ten["false alarms, high"]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["fresh", "independent"])
def test_rows_that_know_no_record_score_as_outsiders_do(kind: str) -> None:
    """20 populations, intervals of 95 %: fewer than 15 covering has probability below 4e-4."""
    held = dict.fromkeys((*RISKS, *ATTACKS, "intruder_mean"), 0)
    for seed in range(20):
        real, holdout, other = (population(400, 1000 + 3 * seed + k) for k in range(3))
        release = other if kind == "fresh" else independent(other, seed)
        for one in findings(
            Subject(SCHEMA, real, (release,), holdout, seed),
            Options(keys=KEYS, sensitive=(SENSITIVE, "pay")),
        ):
            if one.name in RISKS:
                assert one.interval is not None
                held[one.name] += one.interval[0] <= 0.5 <= one.interval[1]
            elif one.name in held and one.subject[-1] != ("pay" if one.name in ATTACKS else ""):
                low, high = one.note.split("95 %: ")[1].rstrip(").").split(" to ")
                held[one.name] += float(low) <= 0 <= float(high)

    assert min(held.values()) >= 15, held


@pytest.mark.statistical
def test_replicated_uniques_of_outsiders_have_the_expectation_of_records() -> None:
    """300 populations of unequal sizes; 4 standard errors; the larger side's own uniques would fail."""
    keys = ("age", "town")
    gaps, wrong = [], []
    for seed in range(300):
        real, holdout, fresh = (
            population(300, seed),
            population(60, seed + 500),
            population(200, seed + 900),
        )
        inside = replicated_share(real, fresh, keys).value
        gaps.append(inside - stranger_share(holdout, real, fresh, keys).value)
        wrong.append(inside - replicated_share(holdout, fresh, keys).value)

    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(300)
    assert abs(np.mean(wrong)) > 4 * np.std(wrong) / math.sqrt(300)


def test_every_finding_has_its_name_its_references_and_plain_details() -> None:
    found = findings(
        Subject(SCHEMA, REAL, (population(500, 5), population(400, 6)), HOLDOUT, 1),
        Options(keys=KEYS, sensitive=("ill", "pay"), fraction=0.2),
    )

    assert tuple(dict.fromkeys(one.name for one in found)) == NAMES
    for one in found:
        assert one.group == "risk"
        assert len(one.sets) == 2
        assert not math.isnan(one.value)
        assert one.null
        assert len({tuple(row) for row in one.detail}) == 1, one.name
        json.dumps(one.to_json(), allow_nan=False)
    assert len([one for one in found if one.name == "cap"]) == 2
    real, release = first(found, "population_unique").detail
    assert 0 < real["right match"] < 1
    assert math.isnan(release["right match"])


def test_without_a_holdout_metrics_that_need_one_are_undefined_and_say_how_to_get_one() -> None:
    found = scored(population(300, 5), holdout=None)

    for name in NEED_HOLDOUT:
        one = first(found, name)
        assert math.isnan(one.value)
        assert one.interval is None
        assert "give them as holdout" in one.note
    assert "outsiders" not in dict(first(found, "cap").null)
    assert not math.isnan(first(found, "cap").value)


def test_a_holdout_that_was_used_shows() -> None:
    used = first(scored(population(100, 5), holdout=REAL), "dcr")
    kept = first(scored(population(100, 5)), "dcr")

    assert "100.0% of the holdout records have the codes of a record" in used.note
    assert "100.0% of the holdout" not in kept.note


def test_without_keys_only_distances_are_left() -> None:
    found = findings(Subject(SCHEMA, REAL, (HOLDOUT,), population(100, 5), 1))

    assert tuple(one.name for one in found) == NEED_HOLDOUT
    assert set(left_out()) == set(NAMES) - set(NEED_HOLDOUT)
    assert set(left_out(Options(keys=KEYS, sensitive=("ill",)))) == {"intruder_mean"}
    assert not left_out(Options(keys=KEYS, sensitive=("pay",)))


def test_left_out_is_what_findings_leave_out() -> None:
    table = Subject(SCHEMA, REAL.take(np.arange(50)), (HOLDOUT.take(np.arange(50)),), None, 1)

    for keys, sensitive in (
        ((), ()),
        (KEYS, ()),
        (KEYS, ("ill",)),
        (KEYS, ("pay",)),
        ((), ("ill",)),
    ):
        options = Options(keys=keys, sensitive=sensitive)
        found = {one.name for one in findings(table, options)}

        assert found == set(NAMES) - set(left_out(options))


def test_only_computes_what_was_asked() -> None:
    table = Subject(SCHEMA, REAL, (HOLDOUT,), None, 1)

    found = findings(table, Options(keys=KEYS, sensitive=("ill",), only=("cap", "output_k")))

    assert [one.name for one in found] == ["cap", "output_k"]


def test_the_seed_fixes_every_number() -> None:
    real, other, spare = (t.take(np.arange(200)) for t in (REAL, HOLDOUT, population(200, 7)))

    runs = [
        [
            one.to_json()
            for one in findings(
                Subject(SCHEMA, real, (other,), spare, seed), Options(keys=KEYS, sensitive=("ill",))
            )
        ]
        for seed in (1, 1, 2)
    ]

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize(
    "table",
    [REAL.take(np.array([0])), REAL.take(np.zeros(9, dtype=int))],
    ids=["one row", "nine equal rows"],
)
def test_tiny_and_constant_tables_have_findings(table: Side) -> None:
    found = findings(
        Subject(SCHEMA, table, (table,), table, 1), Options(keys=KEYS, sensitive=("ill", "pay"))
    )

    assert {one.name for one in found} == set(NAMES)
    for one in found:
        json.dumps(one.to_json(), allow_nan=False)


def test_a_single_column_schema_works() -> None:
    alone = Schema((Column("a", "nominal", levels=(0, 1, 2)),))
    table = side(pl.DataFrame({"a": [0, 1, 2, 2]}), alone)

    found = findings(Subject(alone, table, (table,), table, 1), Options(keys=("a",)))

    assert first(found, "replicated_unique").value == 0.5
    assert first(found, "membership_distance").value == 0.5


def test_columns_that_are_all_missing_are_answered() -> None:
    schema = Schema((*SCHEMA.columns[:2], replace(SCHEMA["pay"], missing=True)))
    frame = REAL.frame.select("age", "town").with_columns(pay=pl.lit(None, pl.Float64))
    table = side(frame, schema)

    found = findings(
        Subject(schema, table, (table,), table, 1), Options(keys=("age",), sensitive=("pay",))
    )

    error = first(found, "intruder_mean")
    assert math.isnan(error.value)
    assert "no numbers" in error.note
