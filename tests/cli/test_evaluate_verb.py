"""`gibbous evaluate`: what its user reads, what is written, and what is refused."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.cli import evaluate_verb
from gibbous.cli.evaluate_verb import JSON, REPORT
from gibbous.cli.flags import ReadingFlags, ScreenFlags
from gibbous.cli.measuring_verbs import EvaluateFlags
from gibbous.core.errors import GibbousError, OutputNotWritten, UsageError
from gibbous.core.schema import Column, Schema
from gibbous.read.schema_file import schema_toml

SCHEMA = Schema(
    (
        Column("age", "ordinal", levels=("young", "middle", "old")),
        Column("sex, at birth", "binary", levels=("f", "m")),
        Column("ward", "nominal", levels=("a", "b", "c"), missing=True),
    )
)
SECRET = "zz-secret"


def run(flags: EvaluateFlags, out: Path | None, json: bool, quiet: bool) -> None:
    screen = ScreenFlags(json=json, quiet=quiet)
    evaluate_verb.run(flags, ReadingFlags(), out, screen)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvaluateFlags:
    """A request for counting findings of two small files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(schema_toml(SCHEMA), encoding="utf-8")
    _frame(1).write_parquet(tmp_path / "real.parquet")
    _frame(2).write_csv(tmp_path / "synthetic.csv")
    return EvaluateFlags(
        real=tmp_path / "real.parquet",
        synth=[tmp_path / "synthetic.csv"],
        schema=tmp_path / "schema.toml",
        keys=[],
        sensitive=[],
        targets=[],
        given=[],
        only=["tv1,tv2", "association", "correlation"],
        holdout=None,
        fraction=None,
        seed=0,
    )


def test_the_table_shows_values_beside_references_and_says_that_it_is_confidential(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str]
) -> None:
    run(asked, None, False, False)

    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == "300 real records; 1 synthetic set of 300 rows; no holdout."
    header = next(line for line in lines if "finding" in line)
    assert header.split()[:3] == ["finding", "value", "better"]
    assert {"bootstrap", "holdout", "independent"} <= set(header.split())
    tv1 = next(line for line in lines if line.strip().startswith("tv1"))
    assert "\u2193" in tv1
    assert " to " in tv1
    assert "correlation: Not defined" in text
    assert "left out" not in text  # nothing that was asked for
    assert lines[-1].startswith("4 findings. Confidential: ")
    assert not list(Path().glob("*report*"))


def test_what_was_asked_for_and_needs_an_option_is_named(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str]
) -> None:
    run(replace(asked, only=["risk"]), None, False, False)

    text = capsys.readouterr().out
    assert "left out, because they need keys" in text
    assert "need targets" not in text


def test_a_formula_is_told_by_its_target_even_where_that_is_a_key(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("statsmodels")
    formulas = ["ward ~ age"]
    given = replace(asked, only=["ci_overlap"], keys=["ward", "age"], formula=formulas)

    run(given, None, False, False)

    assert "ci_overlap (ward, ...)" in capsys.readouterr().out


def test_quiet_prints_the_last_line_and_json_one_document(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str]
) -> None:
    run(asked, None, False, True)
    last = capsys.readouterr().out.splitlines()
    run(asked, None, True, False)
    document = json.loads(capsys.readouterr().out)

    assert len(last) == 1
    assert "Confidential" in last[0]
    assert [f["name"] for f in document["findings"]] == ["tv1", "tv2", "association", "correlation"]
    assert document["confidential"] is True
    assert document["path"] is None
    assert "no ledger has charged" in document["facts"]["notice"]


@pytest.mark.slow
def test_the_report_and_its_numbers_are_written_for_the_owner_alone(
    asked: EvaluateFlags, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(replace(asked, holdout=asked.real), tmp_path / "internal", False, True)

    out = tmp_path / "internal"
    assert {REPORT, JSON} <= {p.name for p in out.iterdir()}
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in out.iterdir())
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    found = json.loads((out / JSON).read_text(encoding="utf-8"))
    assert [f["name"] for f in found["findings"]] == ["tv1", "tv2", "association", "correlation"]
    assert found["findings"][0]["null"].keys() == {"bootstrap", "holdout", "independent"}
    page = (out / REPORT).read_text(encoding="utf-8")
    assert "CONFIDENTIAL" in page
    assert str(out) in capsys.readouterr().out
    assert not list(tmp_path.glob(".*partial*"))


def test_an_existing_folder_is_refused_before_anything_is_computed(
    asked: EvaluateFlags, tmp_path: Path
) -> None:
    (tmp_path / "internal").mkdir()
    absent = replace(asked, real=tmp_path / "absent.parquet")

    with pytest.raises(OutputNotWritten):
        run(absent, tmp_path / "internal", False, False)


def test_a_failed_evaluation_leaves_no_folder(asked: EvaluateFlags, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(replace(asked, keys=["agee"]), tmp_path / "internal", False, False)

    assert sorted(os.listdir(tmp_path)) == ["real.parquet", "schema.toml", "synthetic.csv"]


def test_lists_are_split_at_commas_unless_the_whole_is_a_column(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str]
) -> None:
    one = replace(asked, keys=["sex, at birth", "age"], sensitive=["ward"], only=["risk"])
    run(one, None, True, False)
    document = json.loads(capsys.readouterr().out)
    run(one, None, False, False)
    text = capsys.readouterr().out

    assert document["facts"]["keys"] == ["sex, at birth", "age"]
    assert "keys: sex, at birth, age; sensitive: ward" in text
    row = next(
        line for line in text.splitlines() if line.strip().startswith("intruder_mode (ward)")
    )
    assert "margin" in row
    with pytest.raises(UsageError, match="'birth'"):
        run(replace(one, keys=["age,birth"]), None, False, False)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a: replace(a, schema=None), 2),
        (lambda a: replace(a, only=["tv7"]), 2),
        (lambda a: replace(a, targets=["nobody"]), 2),
        (lambda a: replace(a, only=["tstr"]), 2),
        (lambda a: replace(a, real=Path("absent.parquet")), 3),
        (lambda a: replace(a, synth=[_written("bad.csv", _frame(3).drop("age"))]), 4),
        (
            lambda a: replace(
                a, synth=[_written("odd.csv", _frame(3).with_columns(ward=pl.lit(SECRET)))]
            ),
            4,
        ),
        (lambda a: replace(a, holdout=_written("none.csv", _frame(3).head(0))), 2),
        (lambda a: replace(a, synth=[_folder("folder")]), 8),
    ],
    ids=[
        "no schema",
        "unknown finding",
        "unknown column",
        "needs targets",
        "no file",
        "column lost",
        "unknown level",
        "empty holdout",
        "not a release",
    ],
)
def test_each_mistake_has_its_exit_code_and_shows_no_value(
    asked: EvaluateFlags, change: Callable[[EvaluateFlags], EvaluateFlags], code: int
) -> None:
    with pytest.raises(GibbousError) as caught:
        run(change(asked), None, False, False)

    assert caught.value.exit_code == code
    assert SECRET not in caught.value.render()


def test_arrows_become_words_where_the_terminal_has_none(
    asked: EvaluateFlags, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate_verb, "_can_print", str.isascii)

    run(replace(asked, only=["tv1", "u_distance"]), None, False, False)

    text = capsys.readouterr().out
    assert text.isascii()
    tv1 = next(line for line in text.splitlines() if line.strip().startswith("tv1"))
    assert tv1.split()[2] == "lower"
    assert "near 1" in text


def _frame(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 3, 300)
    ward = (age + rng.integers(0, 2, 300)) % 4
    return pl.DataFrame(
        {
            "age": np.array(["young", "middle", "old"])[age],
            "sex, at birth": np.array(["f", "m"])[rng.integers(0, 2, 300)],
            "ward": [None if w == 3 else "abc"[w] for w in ward],
        }
    )


def _written(name: str, frame: pl.DataFrame) -> Path:
    path = Path(name).absolute()
    frame.write_csv(path)
    return path


def _folder(name: str) -> Path:
    path = Path(name).absolute()
    path.mkdir()
    return path
