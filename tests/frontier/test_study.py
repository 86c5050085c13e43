"""Studies: means and intervals by hand, the front by brute force, axes, maps that can be opened."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous.core.errors import InputRejected, OutputNotWritten, UsageError
from gibbous.frontier.study import Study


def row(label: str, epsilon: float, repeat: int, value: float, **more: Any) -> dict[str, Any]:
    return {
        "label": label,
        "mechanism": "sbhg",
        "epsilon": epsilon,
        "repeat": repeat,
        "epsilon_proven": epsilon * 100,
        "epsilon_claimed": epsilon,
        "metric": "tv2",
        "better": "lower",
        "value": value,
        **more,
    }


VALUES = {("a", 1.0): [0.3, 0.5, 0.4], ("a", 2.0): [0.2, 0.2, 0.2], ("b", 1.0): [0.9, 0.1, 0.2]}


def study(**facts: Any) -> Study:
    rows = [
        row(label, epsilon, i, value)
        for (label, epsilon), values in VALUES.items()
        for i, value in enumerate(values)
    ]
    return Study(tuple(rows), facts)


def test_points_are_means_with_t_intervals() -> None:
    points = {(p["label"], p["epsilon"]): p for p in study().points()}

    for key, values in VALUES.items():
        low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
        point = points[key]
        assert point["tv2"] == pytest.approx(np.mean(values))
        if np.std(values):
            assert (point["tv2_low"], point["tv2_high"]) == (
                pytest.approx(low),
                pytest.approx(high),
            )


def test_one_repeat_has_no_interval() -> None:
    points = Study((row("a", 1.0, 0, 0.3),)).points()

    assert "tv2_low" not in points[0]


def test_columns_of_a_finding_are_averaged_before_repeats_are() -> None:
    far_apart = {"age": [0.1, 0.2, 0.3], "sex": [0.7, 0.8, 0.9]}
    rows = [
        row("a", 1.0, i, value, subject=column)
        for column, values in far_apart.items()
        for i, value in enumerate(values)
    ]

    (point,) = Study(tuple(rows)).points()

    low, high = stats.t.interval(0.95, 2, 0.5, stats.sem([0.4, 0.5, 0.6]))
    assert point["tv2"] == pytest.approx(0.5)
    assert (point["tv2_low"], point["tv2_high"]) == (pytest.approx(low), pytest.approx(high))


def test_nearest_to_its_ideal_is_best_where_a_finding_has_one() -> None:
    values = {"copies": 0.1, "good": 1.1, "far": 3.0}
    rows = tuple(row(k, 1.0, 0, v, better="near", ideal=1.0) for k, v in values.items())
    made = Study(rows, {"public_data": True})

    drawn = made.ru_map("epsilon_proven", "tv2")

    assert made.front("epsilon_proven", "tv2")["label"].to_list() == ["good"]
    assert "near 1 is better" in drawn.titles[1]
    assert "strokeDash" not in json.dumps(drawn.chart().to_dict())


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_what_nothing_beats(seed: int) -> None:
    numbers = np.random.default_rng(seed).integers(1, 12, (30, 2)) / 10
    rows = [row(str(i), float(e), 0, float(v)) for i, (e, v) in enumerate(numbers)]
    points = Study(tuple(rows)).points()

    front = Study(tuple(rows)).front("epsilon_claimed", "tv2")

    def beaten(p: dict[str, Any]) -> bool:
        return any(
            q["epsilon_claimed"] <= p["epsilon_claimed"]
            and q["tv2"] <= p["tv2"]
            and (q["epsilon_claimed"], q["tv2"]) != (p["epsilon_claimed"], p["tv2"])
            for q in points
        )

    best = {(p["epsilon_claimed"], p["tv2"]) for p in points if not beaten(p)}
    found = {(r["epsilon_claimed"], r["tv2"]) for r in front.to_dicts()}
    assert found == best


def test_both_axes_of_a_row_wise_method_are_there() -> None:
    points = study().points()

    assert [p["epsilon_proven"] / p["epsilon_claimed"] for p in points] == [100] * 3


def test_an_unknown_axis_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="epsilon_proven"):
        study().ru_map("epsilon", "tv2")


def test_a_method_without_a_claim_has_no_place_on_the_epsilon_axis() -> None:
    rows = (row("a", 1.0, 0, 0.3, epsilon_proven=math.inf),)

    with pytest.raises(UsageError, match="finite"):
        Study(rows).ru_map("epsilon_proven", "tv2")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "html", "json", "png"])
def test_a_map_is_written_in_every_form(tmp_path: Path, ending: str) -> None:
    path = study(public_data=True).ru_map("epsilon_proven", "tv2").save(tmp_path / f"map.{ending}")

    assert path.stat().st_size > 100
    if ending == "html":
        assert "https://cdn" not in path.read_text()
    if ending == "json":
        assert {p["label"] for p in json.loads(path.read_text())} == {"a", "b"}


def test_a_map_of_confidential_records_says_so(tmp_path: Path) -> None:
    told = study().ru_map("epsilon_proven", "tv2").save(tmp_path / "a.svg").read_text()
    silent = study(public_data=True).ru_map().save(tmp_path / "b.svg").read_text()

    assert "Confidential" in told
    assert "Confidential" not in silent


def test_a_map_goes_to_a_known_ending_and_an_existing_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ending"):
        study().ru_map().save(tmp_path / "map.gif")
    with pytest.raises(OutputNotWritten):
        study().ru_map().save(tmp_path / "none" / "map.json")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "html", "json", "png"])
def test_what_a_study_writes_is_for_its_owner_alone(tmp_path: Path, ending: str) -> None:
    before = os.umask(0)
    try:
        folder = study().write(tmp_path / "new" / "study")
        drawn = study().ru_map().save(folder / f"map.{ending}")
    finally:
        os.umask(before)

    names = {path.name for path in folder.iterdir()}
    assert names == {"study.parquet", "points.json", drawn.name}
    assert not any(p.stat().st_mode & 0o077 for p in (folder, *folder.iterdir()))


def test_a_study_is_written_tidy(tmp_path: Path) -> None:
    import polars as pl

    study().write(tmp_path)

    frame = pl.read_parquet(tmp_path / "study.parquet")
    assert frame.height == 9
    assert set(frame["epsilon_claimed"]) == {1.0, 2.0}
    assert json.loads((tmp_path / "points.json").read_text())["confidential"] is True


def test_a_written_study_is_loaded_as_it_was(tmp_path: Path) -> None:
    written = study(public_data=True)

    found = Study.load(written.write(tmp_path / "study"))

    assert found.facts == {"public_data": True}
    assert found.points() == written.points()
    assert found.metrics() == ("tv2",)


@pytest.mark.parametrize("text", [None, "", "[]", '{"points": []}'])
def test_a_folder_without_a_study_is_refused(tmp_path: Path, text: str | None) -> None:
    folder = study().write(tmp_path / "study")
    if text is None:
        (folder / "study.parquet").write_bytes(b"PAR1")
    else:
        (folder / "points.json").write_text(text)

    with pytest.raises(InputRejected, match="holds no study"):
        Study.load(folder)
