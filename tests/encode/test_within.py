"""A law within bins: numbers follow its steps, stay in their bins, and it travels with the schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.recode import Edges, Groups, recoded_schema
from gibbous.core.schema import Column, Schema, Within
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode
from gibbous.read.schema_write import schema_toml

STAY = Column(
    "stay", "numeric", edges=(0, 10, 100), integer=True, missing=True,
    within=Within((0, 2, 10, 20, 50, 100), (3, 1, 5, 0, 5)),
)  # fmt: skip
DAY = Column(
    "day", "date", edges=(737060.0, 737425.0, 737790.0),
    within=Within((737060.0, 737100.0, 737425.0, 737790.0), (1, 3, 2)),
)  # fmt: skip
COST = Column(
    "cost", "numeric", edges=(0.0, 100.0), decimals=2, within=Within((0.0, 0.5, 100.0), (9, 1))
)
SCHEMA = Schema((STAY, DAY, COST))


def drawn(rows: int) -> Codes:
    codes = np.stack([np.arange(rows) % 3, np.arange(rows) % 2, np.zeros(rows)]).astype(np.uint8)
    return Codes(SCHEMA, codes.T)


def test_numbers_follow_the_weights_within_their_bins_and_are_even_on_a_step() -> None:
    """Seeded: the counts are fixed; they are binomial within 4.5 standard deviations of the weights."""
    found = decode(drawn(30_000), seed=3)

    stay = found["stay"].drop_nulls().to_numpy()
    counts = np.histogram(stay, [0, 2, 10, 20, 50, 101])[0]
    assert counts[3] == 0
    expected = np.array([7500, 2500, 5000, 0, 5000])
    assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected)).all()
    whole = np.bincount(stay, minlength=101)
    assert abs(whole[0] - whole[1]) < 4.5 * np.sqrt(7500)
    assert whole[50:101].min() > 50
    assert found["cost"].to_numpy().astype(float).mean() == pytest.approx(5.25, abs=0.7)
    low = found["cost"].to_numpy().astype(float)
    assert (low < 0.5).mean() == pytest.approx(0.9, abs=0.01)


def test_codes_come_back_and_missing_stays_missing() -> None:
    codes = drawn(600)

    found = decode(codes, seed=1)

    assert (encode(found, SCHEMA).values == codes.values).all()
    assert found["stay"].null_count() == 200


def test_rows_are_the_same_however_they_are_cut() -> None:
    whole = decode(drawn(600), seed=3)

    part = decode(drawn(600).part(slice(200, 350)), seed=3, start_row=200)

    assert part.equals(whole[200:350])
    assert not decode(drawn(600), seed=4).equals(whole)


def test_a_schema_file_holds_the_law(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(schema_toml(SCHEMA))

    assert Schema.load(path) == SCHEMA
    assert "steps = [2, 10, 20, 50]" in path.read_text()
    assert "steps = [2019-02-10, 2020-01-01]" in path.read_text()


def test_many_steps_are_lines_that_people_can_scroll_past(tmp_path: Path) -> None:
    edges = tuple(float(i) for i in range(301))
    law = Within(edges, tuple(range(1, 301)))
    schema = Schema((Column("x", "numeric", edges=(0.0, 150.0, 300.0), within=law),))
    path = tmp_path / "schema.toml"

    path.write_text(schema_toml(schema))

    assert Schema.load(path) == schema
    assert len(path.read_text().splitlines()) < 60
    assert max(map(len, path.read_text().splitlines())) <= 100


def test_a_schema_without_the_law_is_written_as_before() -> None:
    plain = Schema((replace(STAY, within=None),))

    assert "steps" not in schema_toml(plain)
    assert "weights" not in schema_toml(plain)


def test_new_cut_points_lose_the_law_and_joined_bins_keep_it() -> None:
    cut = recoded_schema(SCHEMA, {0: Edges((0, 50, 100))})
    joined = recoded_schema(SCHEMA, {0: Groups(np.array([0, 0, 1]))})

    assert cut["stay"].within is None
    assert joined["stay"].edges == (0, 100)
    assert joined["stay"].within == STAY.within


@pytest.mark.parametrize(
    "within",
    [
        Within((0, 2, 100), (1, 1)),  # no step begins where the second bin does
        Within((0, 10, 90), (1, 1)),
        Within((0, 10, 100), (1,)),
        Within((0, 10, 10, 100), (1, 1, 1)),
        Within((0, 0.5, 10, 100), (1, 1, 1)),
        Within((0, 10, 100), (1, -1)),
        Within((0, 10, 100), (1, True)),
        Within((0, 2, 10, 100), (0, 0, 1)),
        Within((0, 10, float("nan"), 100), (1, 1, 1)),
        Within((), ()),
    ],
    ids=lambda w: str(w.edges),
)
def test_steps_that_do_not_fit_the_bins_are_refused(within: Within) -> None:
    with pytest.raises(UsageError, match="Correct"):
        replace(STAY, within=within)


@pytest.mark.parametrize(
    "lines", ["steps = [2, 10]", "steps = [2, 10]\nweights = [1, 0.5, 2]", "weights = [1]"]
)
def test_a_file_with_half_a_law_is_refused_with_its_key(lines: str, tmp_path: Path) -> None:
    text = schema_toml(Schema((replace(STAY, within=None),))) + lines + "\n"
    path = tmp_path / "schema.toml"
    path.write_text(text)

    with pytest.raises(UsageError, match=r"weights|steps") as caught:
        Schema.load(path)

    assert caught.value.fix


def test_a_categorical_column_has_no_steps() -> None:
    with pytest.raises(UsageError, match="categorical"):
        Column("sex", "binary", levels=("f", "m"), within=Within((0, 1), (1,)))
