"""Scripts of other tools: with the real packages, and with ours in their import lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gibbous as gb
from gibbous.coming_from import sdv, smartnoise
from tests.frame.tree import DOCS, blocks
from tests.needs import need, peer_python

PAGE = DOCS / "how-to" / "coming-from.md"
BUDGET: dict[str, Any] = {"epsilon": 4, "delta": 1e-9}
ROWS = pd.DataFrame(
    {
        "id": range(2000),
        "age": [i % 90 for i in range(2000)],
        "sex": ["F", "M"] * 1000,
        "ok": [True, False] * 1000,
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta([i % 100 for i in range(2000)], unit="D"),
    }
)  # fmt: skip


def by_the_real_package(module: str, language: str, folder: Path, said: str) -> str:
    """What a script of the page prints at its end, run where the package is."""
    (script,) = blocks(PAGE, language)
    python = peer_python(module)
    assert python is not None
    command = [python, "-W", "ignore", "-c", f"{script}\n{said}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def changed(language: str, *lines: tuple[str, str]) -> dict[str, Any]:
    """Names that a script of the page has made, with some of its lines as ours."""
    (script,) = blocks(PAGE, language)
    for theirs, ours in lines:
        assert theirs in script
        script = script.replace(theirs, ours)
    names: dict[str, Any] = {}
    exec(compile(script, f"{language}.py", "exec"), names)
    return names


def test_the_script_for_smartnoise_runs(tmp_path: Path) -> None:
    need("smartnoise-sql")

    said = by_the_real_package("snsql", "python snsql", tmp_path, "print(list(counts[0]))")

    assert said == "['married', 'n']"


def test_the_script_for_sdv_runs_and_its_metadata_are_read(tmp_path: Path) -> None:
    need("sdv")

    said = by_the_real_package(
        "sdv", "python sdv", tmp_path, "stays.to_csv('stays.csv', index=False); print(len(made))"
    )

    assert int(said) == 100
    schema = gb.import_schema(tmp_path / "metadata.json", data=pd.read_csv(tmp_path / "stays.csv"))
    assert schema.names == ("age", "sex")
    assert len(schema.inferred()) == 7
    theirs = sdv.Metadata.load_from_json(tmp_path / "metadata.json")
    assert {n: c["sdtype"] for n, c in theirs.columns.items()} == {
        "age": "numerical",
        "sex": "categorical",
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore:Left out")
def test_the_script_for_sdv_runs_with_its_import_line_changed(home: Path) -> None:
    names = changed(
        "python sdv",
        ("from sdv.metadata import Metadata\n", ""),
        ("from sdv.single_table import", "from gibbous.coming_from.sdv import Metadata,"),
        (
            "GaussianCopulaSynthesizer(metadata)",
            "GaussianCopulaSynthesizer(metadata, epsilon=4, delta=1e-9)",
        ),
    )

    assert len(names["made"]) == 100
    assert names["synthesizer"].release.claim.is_dp
    assert len(gb.releases()) == 1


def test_the_script_for_smartnoise_runs_with_its_import_line_changed(home: Path) -> None:
    names = changed(
        "python snsql",
        ("import snsql\n", "import gibbous.coming_from.smartnoise as snsql\n"),
        ("from snsql import Privacy", "from gibbous.coming_from.smartnoise import Privacy"),
    )

    assert names["counts"][0] == ["married", "n"]
    assert 300 < sum(count for _, count in names["counts"][1:]) < 500
    again = names["reader"].execute_df(
        "SELECT AVG(stays.age) AS a FROM hospital.stays WHERE age > 3"
    )
    assert 20 < again["a"][0] < 80
    assert len(gb.releases()) == 1


@pytest.mark.slow
def test_what_sdv_does_with_metadata_and_rows_is_done(tmp_path: Path) -> None:
    metadata = sdv.Metadata.detect_from_dataframe(ROWS, "stays")
    metadata.set_primary_key("id")
    metadata.update_column("ok", sdtype="categorical")
    metadata.save_to_json(tmp_path / "m.json")
    metadata = sdv.Metadata.load_from_json(tmp_path / "m.json")
    made = sdv.GaussianCopulaSynthesizer(metadata, **BUDGET, ledger=gb.Ledger.ephemeral())
    made.fit(ROWS)
    made.save(tmp_path / "out")

    assert set(made.sample(7).columns) == {"age", "sex", "ok", "day"}
    assert set(made.sample()["sex"].unique()) == {"F", "M"}
    assert len(made.sample_remaining_columns(pd.DataFrame({"sex": ["F", "M"]}))) == 2
    assert sdv.CTGANSynthesizer.load(tmp_path / "out").claim == made.release.claim
    assert json.loads((tmp_path / "m.json").read_text())["tables"]["stays"]["primary_key"] == "id"


def test_a_synthesizer_of_smartnoise_spends_its_epsilon_once() -> None:
    made = smartnoise.Synthesizer.create("mst", **BUDGET, ledger=gb.Ledger.ephemeral())
    found = made.fit_sample(ROWS[["age", "sex"]], preprocessor_eps=0.5, continuous_columns=["age"])

    assert found["age"].between(0, 200).all()
    assert float(made.release.claim.epsilon) <= 4
    assert len(made.sample(9)) == 9


METADATA = sdv.Metadata.detect_from_dataframe(ROWS)
SENTENCES: list[tuple[Callable[[], object], str]] = [
    (lambda: sdv.GaussianCopulaSynthesizer(METADATA), "without a budget"),
    (lambda: sdv.TVAESynthesizer(METADATA, epsilon=1), "without a budget"),
    (lambda: sdv.CTGANSynthesizer(METADATA, **BUDGET, epochs=3), "takes no 'epochs'"),
    (lambda: sdv.GaussianCopulaSynthesizer(METADATA, **BUDGET).sample(3), "Nothing is fitted"),
    (lambda: sdv.GaussianCopulaSynthesizer(METADATA, **BUDGET).get_parameters(), "no guarantee"),
    (lambda: sdv.Metadata({"tables": {"a": {}, "b": {}}}), "There are 2 tables"),
    (lambda: smartnoise.Privacy(epsilon=1), "without a budget"),
    (lambda: smartnoise.Synthesizer.create("aim"), "without a budget"),
    (lambda: smartnoise.Synthesizer.create("aim", **BUDGET).fit(ROWS, transformer=1), "no 'transf"),
    (lambda: smartnoise.from_df(ROWS, privacy=smartnoise.Privacy(**BUDGET), metadata={
        "": {"s": {"t": {"row_privacy": True, "sex": {"type": "string"}}}}}), "state no bounds"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), SENTENCES, ids=[words for _, words in SENTENCES])
def test_what_has_no_guarantee_is_a_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(gb.GibbousError, match=words):
        call()

    assert not hasattr(sdv.GaussianCopulaSynthesizer(METADATA, **BUDGET), "get_parameters")
