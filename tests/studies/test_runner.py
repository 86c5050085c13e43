"""Studies are found by name, resume, do not depend on the number of processes, and refuse nonsense."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gibbous import studies
from gibbous.cli import study_verb
from gibbous.cli.flags import ScreenFlags
from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.studies import bowen2016_1
from gibbous.studies import study_parts as registry
from gibbous.studies.panels import Lines, compact, ticks
from gibbous.studies.study_parts import Settings

SHORT: dict[str, Any] = {"quick": True, "reps": 3, "workers": 1}


@pytest.fixture
def undrawn(monkeypatch: Any) -> None:
    """Figures take longer than the study: tests that are not about them leave them out."""
    bare = replace(bowen2016_1.STUDY, figures=lambda rows, settings: ())
    monkeypatch.setattr(bowen2016_1, "STUDY", bare)


def values(name: str = "bowen2016-1") -> Settings:
    study = registry.load(name)
    return Settings(3, 0, True, {**study.full, **study.quick})


def test_every_registered_study_loads_and_names_itself() -> None:
    for name in studies.names():
        study = registry.load(name)

        assert study.name == name
        assert "" not in (study.title, study.paper, study.reproduces)
        assert set(study.quick) <= set(study.full)


def test_an_unknown_study_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'bowen2016-1'"):
        studies.run("bowen2016_1")


def test_cells_have_names_of_their_own_that_files_may_have() -> None:
    for name in studies.names():
        if not name.startswith("bowen"):
            continue
        cells = registry.load(name).cells(values(name))
        assert len({cell.name for cell in cells}) == len(cells)
        assert all(set(c.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.=-") for c in cells)


@pytest.mark.usefixtures("undrawn")
def test_a_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: Any) -> None:
    study = registry.load("bowen2016-1")
    done: list[str] = []

    def stopping(cell: Any, settings: Settings) -> Any:
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(cell.name)
        return study.run_cell(cell, settings)

    monkeypatch.setattr(bowen2016_1, "STUDY", replace(study, run_cell=stopping))
    with pytest.raises(KeyboardInterrupt):
        studies.run("bowen2016-1", out=tmp_path, **SHORT)
    again: list[str] = []
    counted = replace(study, run_cell=lambda c, s: again.append(c.name) or study.run_cell(c, s))
    monkeypatch.setattr(bowen2016_1, "STUDY", counted)

    resumed = studies.run("bowen2016-1", out=tmp_path, **SHORT)
    at_once = studies.run("bowen2016-1", **SHORT)

    cells = study.cells(values())
    assert again[: len(cells) - 4] == [c.name for c in cells if c.name not in done]
    assert resumed.rows == at_once.rows


@pytest.mark.slow
def test_two_processes_find_the_same_figures_as_one() -> None:
    one = studies.run("bowen2016-1", **SHORT)
    two = studies.run("bowen2016-1", **(SHORT | {"workers": 2}))

    assert one.rows == two.rows


def test_another_seed_is_another_study() -> None:
    assert (
        studies.run("bowen2016-1", **SHORT).rows != studies.run("bowen2016-1", seed=1, **SHORT).rows
    )


@pytest.mark.slow
def test_the_folder_holds_rows_tables_settings_and_figures_for_its_owner(
    tmp_path: Path, monkeypatch: Any
) -> None:
    study = bowen2016_1.STUDY
    two = replace(study, figures=lambda rows, settings: study.figures(rows, settings)[-2:])
    monkeypatch.setattr(bowen2016_1, "STUDY", two)

    ran = studies.run("bowen2016-1", out=tmp_path, **SHORT)

    assert pl.read_parquet(tmp_path / "rows.parquet").equals(ran.frame())
    tables = json.loads((tmp_path / "tables.json").read_text())["tables"]
    assert [t["name"] for t in tables] == [t.name for t in ran.tables()]
    assert json.loads((tmp_path / "study.json").read_text())["reps"] == 3
    figures = {path.stem for path in tmp_path.glob("*.svg")}
    assert figures == {"bowen2016-1-width", "bowen2016-1-guarantee"}
    assert not any(path.stat().st_mode & 0o077 for path in tmp_path.rglob("*"))


def test_a_drawing_is_the_same_with_its_marks_written_once() -> None:
    mark = '<path transform="translate({},2.5)" d="M0,0L1,1" fill="#000" />'
    text = f"<svg><g>{''.join(mark.format(x) for x in (1, 2, 3, 4))}</g><path d='M1'/></svg>"

    found = compact(text, "f")

    assert found.count("M0,0L1,1") == 1
    assert [f'<use href="#f-m0" x="{x}" y="2.5"/>' in found for x in (1, 2, 3, 4)] == [True] * 4
    assert "<path d='M1'/>" in found
    assert compact(found, "g").count("<use") == 4
    assert "<use" not in compact(text.replace(mark.format(4), ""), "f")


@pytest.mark.usefixtures("undrawn")
def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    studies.run("bowen2016-1", out=tmp_path, **SHORT)

    with pytest.raises(UsageError, match="other reps"):
        studies.run("bowen2016-1", out=tmp_path, **(SHORT | {"reps": 4}))
    with pytest.raises(UsageError, match="pi, study"):
        studies.run("bowen2016-3", out=tmp_path, **SHORT)
    with pytest.raises(UsageError, match="resuming it was turned off"):
        studies.run("bowen2016-1", out=tmp_path, resume=False, **SHORT)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reps": 0}, "reps=0"),
        ({"workers": 0}, "workers=0"),
        ({"data": "adult.csv"}, "takes no table"),
        ({"schema": "adult.toml"}, "takes no table"),
        ({"repeats": 5}, "no keyword 'repeats'"),
    ],
    ids=lambda v: str(v),
)
def test_nonsense_is_refused_before_anything_runs(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        studies.run("bowen2016-1", **given)


def test_a_table_is_part_of_what_a_study_is(tmp_path: Path, monkeypatch: Any) -> None:
    """Other records or another schema, another study; its figures are confidential."""
    taking = replace(bowen2016_1.STUDY, takes_data=True, figures=lambda rows, settings: ())
    monkeypatch.setattr(bowen2016_1, "STUDY", taking)
    data, schema = tmp_path / "a.csv", tmp_path / "a.toml"
    data.write_text("a\n1\n")
    schema.write_text("")

    ran = studies.run("bowen2016-1", out=tmp_path / "s", data=data, schema=schema, **SHORT)
    data.write_text("a\n2\n")

    assert ran.confidential
    assert ran.to_json()["confidential"]
    with pytest.raises(UsageError, match="other data"):
        studies.run("bowen2016-1", out=tmp_path / "s", data=data, schema=schema, **SHORT)
    with pytest.raises(UsageError, match="without a table"):
        studies.run("bowen2016-1", schema=schema, **SHORT)


@pytest.mark.usefixtures("undrawn")
def test_the_verb_prints_tables_and_where_the_files_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study_verb.run("bowen2016-1", tmp_path / "s", dict(SHORT), ScreenFlags())

    said = capsys.readouterr().out
    assert "Usable repeats of the Laplace sanitizer" in said
    assert "modips, clipped" in said
    assert said.splitlines()[-1] == f"bowen2016-1: 3 repeats, 200 rows; in {tmp_path / 's'}."


def test_json_is_one_document_and_quiet_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    study_verb.run("bowen2016-1", None, dict(SHORT), ScreenFlags(json=True))
    found = json.loads(capsys.readouterr().out)
    study_verb.run("bowen2016-1", None, dict(SHORT), ScreenFlags(quiet=True))
    said = capsys.readouterr().out

    assert found["study"] == "bowen2016-1"
    assert found["settings"]["reps"] == 3
    assert said == "bowen2016-1: 3 repeats, 200 rows; nothing was written (--out).\n"


def test_a_file_is_not_a_folder_for_a_study(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")

    with pytest.raises(OutputNotWritten, match="is a file"):
        study_verb.run("bowen2016-1", tmp_path / "x", dict(SHORT), ScreenFlags(quiet=True))


def test_panels_leave_out_what_has_no_place() -> None:
    rows = [
        {"x": 1.0, "y": y, "by": "a", "panel": p}
        for p, y in (("one", 0.5), ("one", None), ("two", 0.0), ("two", float("inf")))
    ]

    def drawn(kind: Any) -> Any:
        return (
            Lines(x="x", y="y", by="by", panel="panel", scales=("linear", kind))
            .chart(rows)
            .to_dict()
        )

    assert [p["title"] for p in drawn("linear")["concat"]] == ["one", "two"]
    assert [p["title"] for p in drawn("log")["concat"]] == ["one"]


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((0.001, 0.1), [0.001, 0.01, 0.1]),
        ((0.5, 50.0), [1.0, 3.0, 10.0, 30.0]),
        ((1e-9, 1e9), [1e-9, 1e-5, 0.1, 1e3, 1e7]),
        ((1.2, 9.0), [2.0, 4.0, 6.0, 8.0]),
        ((0.031, 0.034), [0.031, 0.032, 0.033, 0.034]),
        ((5.0, 5.0), [5.0]),
    ],
)
def test_a_logarithmic_axis_has_few_lines_at_round_numbers(
    ends: tuple[float, float], found: list[float]
) -> None:
    assert ticks(*ends) == found


def test_every_line_of_a_panel_has_a_color_and_a_mark_of_its_own() -> None:
    names = [f"method {k}" for k in range(13)]
    rows = [{"x": x, "y": 1.0, "by": n, "panel": "one"} for n in names for x in (1, 2)]

    drawn = Lines(x="x", y="y", by="by", panel="panel").chart(rows).to_dict()

    marks = drawn["concat"][0]["layer"][-1]["encoding"]
    assert marks["color"]["scale"]["domain"] == names
    for part in ("color", "shape"):
        assert len(set(marks[part]["scale"]["range"])) == 13
    assert marks["x"]["axis"]["values"] == [1, 2]  # no label between two whole numbers


def test_ends_of_an_axis_that_are_whole_numbers_are_not_its_only_lines() -> None:
    rows = [{"x": x, "y": x / 2, "by": "one", "panel": "one"} for x in (0, 1)]

    drawn = Lines(x="x", y="y", by="by", panel="panel", limits=(0.0, 1.0)).chart(rows).to_dict()

    axis = drawn["concat"][0]["layer"][-1]["encoding"]["y"]["axis"]
    assert axis.get("tickCount") == 5
    assert "values" not in axis
