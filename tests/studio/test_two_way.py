"""Two columns crossed in a process of its own: the counts of another reader, and who may see them."""

from __future__ import annotations

import csv
import html
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gibbous as gb
from gibbous.core.column import Column
from gibbous.core.errors import InputRejected
from gibbous.studio.app import Studio
from gibbous.studio.two_way import MOST, crossed, groups
from tests.studio.conftest import Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")


@pytest.fixture
def released(described: Studio, folder: Path) -> Studio:
    """A studio with a release of its data, under facts that tie all three columns together."""
    with open(folder / "schema.toml", "a") as file:
        file.write('\n[[impossible]]\nage = {lower = 90, upper = 100}\nsex = ["F"]\n\n')
        file.write('[[rule]]\nrequire = "income >= age"\n')
    gb.synthesize(
        folder / "people.csv",
        folder / "schema.toml",
        "noisy_pegs",
        epsilon=1.0,
        rows=50,
        sets=2,
        out=folder / "release",
        format="csv",
    )
    return described


def shares(path: Path) -> Counter[tuple[str, int]]:
    """Sex and income in bins of 500, counted by the standard library."""
    with open(path, newline="") as file:
        rows = [(r["sex"], min(int(float(r["income"]) // 500), 9)) for r in csv.DictReader(file)]
    return Counter({cell: n / len(rows) for cell, n in Counter(rows).items()})


@pytest.mark.slow
def test_shares_are_those_that_the_standard_library_counts(released: Studio, folder: Path) -> None:
    found = crossed(folder, "people.csv", "release", ("sex", "income"), ())

    real = shares(folder / "people.csv")
    sets = [shares(path) for path in sorted(folder.glob("release/synthetic_*.csv"))]
    cells = [(sex, bin_) for sex in "FM" for bin_ in range(10)]
    drawn = [sum(one[cell] for one in sets) / 2 for cell in cells]
    assert len(sets) == 2
    assert found["rows"] == ["F", "M"]
    assert np.allclose(np.ravel(found["real"]), [real[cell] for cell in cells])
    assert np.allclose(np.ravel(found["synthetic"]), drawn)
    distance = sum(abs(real[c] - d) for c, d in zip(cells, drawn, strict=True)) / 2
    assert found["distance"] == pytest.approx(distance)


@pytest.mark.slow
def test_records_that_cannot_be_read_are_refused_without_a_value(
    released: Studio, folder: Path
) -> None:
    (folder / "other.csv").write_text("age,sex,income\n1,secret,2\n")

    with pytest.raises(InputRejected) as refused:
        crossed(folder, "other.csv", "release", ("sex", "income"), ())
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "column",
    [
        Column(
            "x", "nominal", levels=tuple(f"l{i}" for i in range(30)), other="rest", missing=True
        ),
        Column("x", "ordinal", levels=tuple(f"l{i}" for i in range(30)), missing=True),
        Column("x", "numeric", edges=tuple(float(i) for i in range(38)), missing=True),
        Column("x", "nominal", levels=tuple(f"l{i}" for i in range(MOST))),
    ],
    ids=["nominal", "ordinal", "numeric", "few"],
)
def test_groups_hold_every_code_once_and_are_few(column: Column) -> None:
    found = groups(column, np.arange(column.size, dtype=float))

    assert len(found) <= MOST
    assert sorted(code for _, codes in found for code in codes) == list(range(column.size))
    assert len({label for label, _ in found}) == len(found)


def test_neighbors_are_put_together_by_their_ends_and_missing_stays_alone() -> None:
    column = Column("x", "numeric", edges=tuple(float(i) for i in range(0, 111, 5)), missing=True)

    found = groups(column, np.ones(column.size))

    assert found[0] == ("[0, 10)", [0, 1])
    assert found[-2][0] == "[100, 110]"
    assert found[-1] == ("(missing)", [22])


def test_the_rarest_levels_are_put_together() -> None:
    column = Column("x", "nominal", levels=tuple("abcdefghijklmnop"))
    counts = np.array([9.0] * 16)
    counts[[0, 3, 5, 7, 9]] = 1.0

    found = groups(column, counts)

    assert found[-1] == ("5 other levels", [0, 3, 5, 7, 9])


@pytest.mark.slow
def test_pairs_are_shown_when_they_are_asked_for_and_the_asking_is_kept(
    released: Studio, folder: Path
) -> None:
    visitor = Visitor(released)
    before = visitor.get("assess?first=sex&second=income").text

    answer = visitor.do("assess/cross", first="sex", second="income")
    page = visitor.get(answer.headers["location"].lstrip("/")).text

    assert "<rect" not in before
    assert page.count("<rect") == 3 * 2 * 10
    real = shares(folder / "people.csv")
    told = re.findall(r'<rect class="real [a-z]+"[^>]*><title>(.*?)</title>', page)
    assert html.unescape(told[0]) == f"F · [0, 500): {100 * real['F', 0]:.2f} %"
    assert 'class="bar red"' in page
    log = (folder / ".studio" / "looked.log").read_text().splitlines()
    assert [json.loads(line)["column"] for line in log] == ["sex", "income"]
    assert "counts as read off the data" in visitor.get("describe").text
    kept = [p for p in (folder / ".studio").rglob("*") if p.is_file()]
    assert all(b"[0, 500)" not in p.read_bytes() for p in kept)


def test_a_column_is_not_crossed_with_itself_nor_with_one_that_is_not_there(
    released: Studio, folder: Path
) -> None:
    visitor = Visitor(released)

    for second in ("sex", "nobody", ""):
        assert "GB2-PAIR" in visitor.do("assess/cross", first="sex", second=second).text
    assert not (folder / ".studio" / "looked.log").exists()


def test_the_pairs_that_are_furthest_from_the_records_come_first() -> None:
    from gibbous.studio.screens.assess import _worst

    detail = [
        {"first": "a", "second": "b", "distance": 0.1},
        {"first": "a", "second": "c", "distance": 0.4},
    ]
    answer = {"findings": [{"name": "tv1", "detail": []}, {"name": "tv2", "detail": detail}]}

    assert [pair["second"] for pair in _worst(answer, ("a", "b", "c"))] == ["c", "b"]
    assert [pair["second"] for pair in _worst(answer, ("a", "b"))] == ["b"]
    assert _worst(None, ("a", "b")) == []
