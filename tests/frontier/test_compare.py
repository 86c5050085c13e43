"""compare(): runs that are measured, resumed, charged or refused; nothing synthetic is kept."""

from __future__ import annotations

import math
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.claim import Claim
from gibbous.core.errors import InputRejected, SchemaMismatch, UnknownKeyword, UsageError
from gibbous.frontier.cell_worker import DELTA, NO_ROWS, Worker, budget
from gibbous.frontier.compare import compare
from gibbous.frontier.runner import BROKE
from gibbous.frontier.study_file import load
from gibbous.privacy.accountant import as_approximate

SCHEMA = gb.Schema(
    (
        gb.Column("a", "nominal", levels=("x", "y", "z")),
        gb.Column("b", "binary", levels=("no", "yes")),
        gb.Column("c", "ordinal", levels=(1, 2, 3, 4)),
    )
)

EXAMPLE = """data = "adult.csv"
schema = "adult.schema.toml"

[study]
epsilon = [0.1, 1, 10]
repeats = 3
metrics = ["tv2", "tv3"]

[[methods]]
name = "noisy_pegs"
delta = 1e-9
"""


def records(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, rows)
    return pl.DataFrame(
        {
            "a": np.array(["x", "y", "z"])[a],
            "b": np.array(["no", "yes"])[(a + rng.integers(0, 2, rows)) % 2],
            "c": rng.integers(1, 5, rows),
        }
    )


def run(**more: Any) -> Any:
    settings: dict[str, Any] = {"repeats": 1, "workers": 1, "metrics": ["tv1", "tv2"]} | more
    methods = settings.pop("methods", {"noisy": gb.NoisyPegs(), "rowwise": gb.Pegs()})
    return compare(settings.pop("source", records()), SCHEMA, methods, **settings)


def test_every_run_is_measured_with_its_costs() -> None:
    study = run(epsilon=[1, 4], rows=50)

    points = {(p["label"], p["epsilon"]): p for p in study.points()}
    assert len(points) == 2 + 4
    assert points["noisy", 4]["epsilon_proven"] == pytest.approx(4)
    assert points["rowwise", 4]["epsilon_claimed"] == pytest.approx(4)
    assert points["rowwise", 4]["epsilon_proven"] == pytest.approx(200)
    assert points["rowwise", 4]["rows"] == 50
    assert points["resampled records", None]["tv2"] < points["noisy", 1]["tv2"]


def test_more_budget_is_closer() -> None:
    study = run(methods=["noisy_pegs"], epsilon=[0.02, 20], repeats=3)

    points = {p["epsilon"]: p for p in study.points()}
    assert points[20]["tv1"] < 0.5 * points[0.02]["tv1"]


def test_rows_left_out_are_as_many_as_there_are_records() -> None:
    points = {p["label"]: p for p in run(holdout=0.25).points()}

    assert points["rowwise"]["rows"] == 300


def test_a_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: Any) -> None:
    done: list[str] = []
    honest = Worker.run

    def counted(self: Worker, cell: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(cell.name)
        return honest(self, cell)

    monkeypatch.setattr(Worker, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        run(resume=tmp_path, epsilon=[1, 2])
    done.clear()
    monkeypatch.setattr(Worker, "run", honest)
    again: list[str] = []
    monkeypatch.setattr(Worker, "run", lambda self, c: again.append(c.name) or honest(self, c))

    study = run(resume=tmp_path, epsilon=[1, 2])

    assert len(again) == 6 - 3
    assert len(study.points()) == 6
    assert not (tmp_path / "cells").stat().st_mode & 0o077
    assert not (tmp_path / "study.json").stat().st_mode & 0o077


def test_a_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    run(resume=tmp_path)

    with pytest.raises(UsageError, match="other seed"):
        run(resume=tmp_path, seed=9)
    with pytest.raises(UsageError, match="other data"):
        run(resume=tmp_path, source=records(401))


@pytest.mark.slow
def test_two_processes_measure_the_same_references() -> None:
    one = run(methods=["noisy_pegs"])
    two = run(methods=["noisy_pegs"], workers=2, repeats=1)

    def references(study: Any) -> list[Any]:
        return [r["value"] for r in study.rows if not r["mechanism"]]

    assert references(one) == references(two) != []


def test_a_study_file_names_a_table_of_a_database_or_a_path_beside_it(tmp_path: Path) -> None:
    address = "postgres://me@host/db::people"
    for text, wanted in ((address, address), ("parts/*.csv", tmp_path / "parts" / "*.csv")):
        (tmp_path / "study.toml").write_text(EXAMPLE.replace("adult.csv", text))

        assert load(tmp_path / "study.toml").source == wanted


@pytest.mark.slow
def test_a_table_of_a_database_or_a_folder_is_studied_as_its_rows_are(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "people.sqlite") as held:
        held.execute("CREATE TABLE people (a TEXT, b TEXT, c INTEGER)")
        held.executemany("INSERT INTO people VALUES (?, ?, ?)", records().rows())
    held.close()
    (tmp_path / "parts").mkdir()
    for place in range(2):
        records().slice(200 * place, 200).write_csv(tmp_path / "parts" / f"{place}.csv")
    sources = [records(), f"sqlite://{tmp_path}/people.sqlite::people", f"{tmp_path}/parts/*.csv"]

    studies = [run(source=source, methods=["noisy_pegs"]) for source in sources]

    figures = [[r["value"] for r in study.rows if not r["mechanism"]] for study in studies]
    assert figures[0] != []
    assert figures[1:] == [figures[0]] * 2


def test_nothing_is_charged_unless_a_ledger_is_given(tmp_path: Path) -> None:
    book = tmp_path / "book.sqlite"

    run(methods={"noisy": gb.NoisyPegs(delta=1e-6)}, epsilon=[1, 2], ledger=book)

    ledger = gb.Ledger.open(book)
    assert len(ledger.entries()) >= 2
    assert run(methods=["noisy_pegs"]).facts["charged"] is False


def test_a_rho_is_put_on_the_epsilon_axis_with_the_delta_it_holds_at() -> None:
    claim = Claim("zcdp", rho=Fraction("0.5"))

    found = budget(claim, claim)

    assert found["epsilon_proven"] == float(as_approximate(claim, DELTA).epsilon)
    assert found["delta_proven"] == 1e-9


@pytest.mark.parametrize("basis", ["published", "heuristic"])
def test_a_claim_without_a_proof_has_no_place_on_the_axis_of_proofs(basis: Any) -> None:
    claim = Claim("pure", epsilon=Fraction(2), basis=basis)

    found = budget(claim, claim)

    assert (found["epsilon_claimed"], found["epsilon_proven"]) == (2, math.inf)


def test_a_refused_run_is_told_and_the_others_go_on() -> None:
    wide = gb.Schema(
        tuple(gb.Column(f"x{j}", "nominal", levels=tuple(range(30))) for j in range(8))
    )
    rows = pl.DataFrame({f"x{j}": np.arange(60) % 30 for j in range(8)})

    study = compare(rows, wide, ["laplace", "bootstrap"], repeats=1, workers=1, metrics=["tv1"])

    assert [label for label, _ in study.failed()] == ["laplace"]
    assert "cells" in study.failed()[0][1]
    assert "bootstrap" in {p["label"] for p in study.points()}


def test_a_method_that_breaks_is_told_without_its_message_and_runs_again_once_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, *given: Any) -> Any:
        raise ValueError("the secret of record 7")

    honest = gb.NoisyPegs.run
    monkeypatch.setattr(gb.NoisyPegs, "run", broken)
    first = run(resume=tmp_path)
    monkeypatch.setattr(gb.NoisyPegs, "run", honest)
    again = run(resume=tmp_path)

    assert first.failed() == (("noisy", f"{BROKE}: ValueError inside the method noisy_pegs."),)
    assert "rowwise" in {p["label"] for p in first.points()}
    assert not any("secret" in file.read_text() for file in tmp_path.rglob("*.json"))
    assert again.failed() == ()
    assert "noisy" in {p["label"] for p in again.points()}


def test_a_damaged_file_of_a_run_is_made_again_and_damaged_settings_are_refused(
    tmp_path: Path,
) -> None:
    first = run(methods=["bootstrap"], resume=tmp_path)
    for file in (tmp_path / "cells").iterdir():
        file.write_text('[{"label": ')

    again = run(methods=["bootstrap"], resume=tmp_path)

    assert len(again.points()) == len(first.points())
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(UsageError, match="another folder"):
        run(methods=["bootstrap"], resume=tmp_path)


def test_a_set_without_rows_is_told_and_not_measured() -> None:
    study = run(methods={"noisy": gb.NoisyPegs()}, rows=0)

    assert study.failed() == (("noisy", NO_ROWS),)
    assert "noisy" not in {p["label"] for p in study.points()}


def test_figures_are_confidential_unless_the_data_are_public() -> None:
    assert run(methods=["bootstrap"]).confidential
    assert not run(methods=["bootstrap"], public_data=True).confidential


def test_wrong_requests_are_refused_before_a_run() -> None:
    with pytest.raises(UsageError, match="no_such"):
        run(metrics=["no_such"])
    with pytest.raises(UsageError, match="age"):
        run(keys=["age"])
    with pytest.raises(UsageError, match="share"):
        run(holdout=1.5)
    with pytest.raises(UsageError, match="repeats"):
        run(repeats=0)
    with pytest.raises(SchemaMismatch):
        run(source=records().rename({"a": "other"}))
    with pytest.raises(UnknownKeyword):
        run(random_state=1)


def test_the_example_of_a_study_file_is_one(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(EXAMPLE)

    plan = load(path)

    assert plan.source == tmp_path / "adult.csv"
    assert plan.settings["epsilon"] == [0.1, 1, 10]
    assert dict(plan.methods["noisy_pegs"].params) == {"delta": 1e-9}
    assert plan.y == ("tv2", "tv3")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("repeats", "repeat"), "Did you mean 'repeats'"),
        (("repeats = 3", "repeats = true"), "a whole number"),
        (('name = "noisy_pegs"', 'name = "noisy_pgs"'), "noisy_pegs"),
        (("delta = 1e-9", "dleta = 1e-9"), "Did you mean 'delta'"),
        (('schema = "adult.schema.toml"', ""), "schema"),
        (("[study]", "[study"), "not TOML"),
    ],
)
def test_a_fault_of_a_study_file_is_named(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(EXAMPLE.replace(*change))

    with pytest.raises(UsageError) as caught:
        load(path)

    assert told in str(caught.value)


def test_data_that_are_not_there_are_an_input_that_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputRejected, match="cannot be read"):
        run(source=tmp_path / "nowhere.parquet", epsilon=[1])


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.slow
def test_numbers_with_bounds_alone_are_measured_in_bins_of_the_records(
    charged: bool, tmp_path: Path
) -> None:
    """Methods that buy bins of their own are measured in the same ones as all others."""
    rng = np.random.default_rng(4)
    pay = np.where(rng.random(3000) < 0.5, 0.0, rng.gamma(2, 40, 3000).clip(0, 999))
    frame = pl.DataFrame({"pay": pay, "ill": np.where(pay > 80, "y", "n")})
    schema = gb.Schema(
        (
            gb.Column("pay", "numeric", lower=0, upper=1000, decimals=2),
            gb.Column("ill", "binary", levels=("n", "y")),
        ),
        gb.Unit(),
    )

    found = compare(
        frame,
        schema,
        {"tables": gb.NoisyPegs(delta=1e-6), "plain": gb.Laplace()},
        epsilon=[5],
        repeats=1,
        metrics=["tv1", "tv2"],
        workers=1,
        holdout=0.2,
        ledger=tmp_path / "ledger.db" if charged else None,
    )

    points = {p["label"]: p for p in found.points()}
    independent = points["independent columns"]["tv2"]
    assert independent > 0.2
    for label in ("tables", "plain"):
        assert points[label]["tv2"] < independent / 2
        assert 0 < points[label]["tv1"] < 0.1
