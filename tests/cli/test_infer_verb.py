"""`gibbous infer`: what is printed, what machines get, and the exit codes of what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gibbous.cli import infer_verb
from gibbous.cli.faults import report
from gibbous.cli.flags import ScreenFlags
from gibbous.cli.measuring_verbs import InferFlags
from gibbous.core.errors import GibbousError
from tests.infer.made import release

GIVEN: dict[str, Any] = {
    "formula": "ill ~ sex",
    "family": "binomial",
    "rule": "auto",
    "level": 0.95,
    "records": None,
    "replicates": 8,
    "seed": 0,
    "json": False,
    "quiet": False,
}


def run(folder: Path, given: dict[str, Any]) -> None:
    screen = ScreenFlags(json=given["json"], quiet=given["quiet"])
    model = {name: value for name, value in given.items() if name not in ("json", "quiet")}
    infer_verb.run(folder, InferFlags(**model), screen)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("releases") / "laplace"
    release("laplace", sets=2, out=out)
    return out


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("releases") / "single"
    release("laplace", sets=1, out=out)
    return out


def test_people_see_coefficients_rule_reason_and_what_entered(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, GIVEN)

    text = capsys.readouterr().out
    assert "sex[T.m]" in text
    assert "rule: unified. Chosen because tables were noised once" in text
    assert "from ledger.json: sets = 2; rows = 1500 each; sanitized = once" in text
    assert "the noisy number of rows of the tables" in text
    assert text.splitlines()[-1].startswith("2 coefficients by unified at 95 %")


def test_machines_get_one_json_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, GIVEN | {"json": True})

    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["estimates"]] == ["Intercept", "sex[T.m]"]
    assert found["entered"]["rows"] == [1500, 1500]
    assert found["rule"] == "unified"


def test_quiet_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, GIVEN | {"quiet": True})

    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"formula": "cured ~ sex"}, 2, "Columns are ill, sex, age, region"),
        ({"formula": "ill ~ "}, 2, "cannot be used"),
        ({"family": "probit"}, 2, "gaussian, binomial, multinomial, poisson"),
        ({"rule": "rubin"}, 2, "unified, raghunathan2003, reiter2003, raab2016"),
        ({"level": 95.0}, 2, "level=0.95"),
        ({"records": -1}, 2, "records is > 0"),
        ({"replicates": 1}, 2, "two or more"),
    ],
    ids=lambda v: str(v),
)
def test_wrong_input_has_its_exit_code(
    given: dict[str, Any], code: int, words: str, folder: Path
) -> None:
    with pytest.raises(GibbousError, match=words) as caught:
        run(folder, GIVEN | given)

    assert report(caught.value, []) == code


@pytest.mark.parametrize("rule", ["reiter2003", "raghunathan2003"])
def test_one_set_with_a_rule_that_needs_two_is_a_usage_error(rule: str, single: Path) -> None:
    with pytest.raises(GibbousError, match="two sets or more") as caught:
        run(single, GIVEN | {"rule": rule})

    assert caught.value.exit_code == 2


def test_a_folder_that_is_no_release_is_rejected(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(GibbousError) as caught:
            run(path, GIVEN)

        assert caught.value.exit_code == 8


def test_a_damaged_set_is_rejected(tmp_path: Path) -> None:
    out = tmp_path / "damaged"
    release("laplace", sets=2, out=out)
    with (out / "synthetic_2.parquet").open("r+b") as file:
        file.seek(64)
        file.write(b"\0\0\0\0")

    with pytest.raises(GibbousError) as caught:
        run(out, GIVEN)

    assert caught.value.exit_code == 8


def test_a_provisional_table_comes_first_and_the_final_one_last(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, GIVEN | {"replicates": 12, "reference": ["sex=m", "ill=yes"]})

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Provisional, from few redraws of the noise")
    assert sum(line.strip().startswith("sex[T.f]") for line in lines) == 2
    assert sum(line.strip() == "compared with: ill = yes, sex = m" for line in lines) == 2


@pytest.mark.slow
def test_few_redraws_and_machines_get_the_final_answer_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, GIVEN)
    assert "Provisional" not in capsys.readouterr().out

    run(folder, GIVEN | {"replicates": 12, "json": True})
    told = capsys.readouterr()
    assert json.loads(told.out)["references"] == {"ill": "no", "sex": "f"}
    early = [json.loads(line) for line in told.err.splitlines() if "provisional" in line]
    assert [one["provisional"]["references"] for one in early] == [{"ill": "no", "sex": "f"}]


def test_a_formula_without_a_left_side_asks_for_shares(
    single: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = GIVEN | {"formula": "~ ill + `sex`", "rule": "measurement"}
    run(single, asked)
    shown = capsys.readouterr().out
    run(single, asked | {"json": True})
    found = json.loads(capsys.readouterr().out)

    assert "4 shares by measurement at 95 %. Nothing was spent." in shown
    assert [(one["ill"], one["sex"]) for one in found["shares"]][:2] == [("no", "f"), ("no", "m")]
    assert found["entered"]["method"] == "laplace"
