"""Errors and kills at the n-th file call of real runs: what was printed is true, and is charged once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import saboteurs
from tests.faults.injected import COMMANDS, Fault, Runner, compiled
from tests.faults.storm import Storm, report
from tests.faults.words import untrue
from tests.needs import need

FEW = (
    Fault("fsync", 6, "EIO", "lasting"),  # of the reservation
    Fault("write", 25, "ENOSPC", "lasting"),
    Fault("rename", 10, "EIO"),
    Fault("write", 12, mode="kill"),
)
SABOTEURS = {
    saboteurs.says_nothing_was_spent: ("tables", "rename"),
    saboteurs.removes_what_was_paid_for: ("tables", "rename"),
    saboteurs.calls_every_error_damage: ("tables", "fsync"),
    saboteurs.believes_a_failed_commit: ("tables", "fsync"),
}
SHARES = {
    "tables": 60,
    "rows": 155,
    "replaced": 40,
    "redrawn": 25,
    "resumed": 25,
    "further": 30,
    "cap": 350,
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = compiled(tmp_path_factory.mktemp("shim"))
    if made is None:
        need("C compiler")
    return made


@pytest.fixture(scope="module")
def runner(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("says"), shim)
    yield made
    made.close()


@pytest.fixture(scope="module")
def storm(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    return Storm(tmp_path_factory.mktemp("tables"), runner, "tables")


@pytest.mark.slow
def test_G1_four_faults_of_a_run_are_told_as_they_are(storm: Storm) -> None:
    errors, kills, wrong = report(storm.cases(FEW))

    assert wrong == []
    assert (errors, kills) == (3, 1)


@pytest.mark.slow
def test_i12_each_removal_that_fails_is_told_as_it_is(storm: Storm) -> None:
    """EIO on unlink was a traceback once."""
    removals = [f for f in storm.faults if f.kind == "unlink" and f.mode == "once"]

    errors, _, wrong = report(storm.cases([replace(f, error="EIO") for f in removals[:3]]))

    assert wrong == []
    assert errors == 3


@pytest.mark.slow
def test_G1_a_build_that_says_wrongly_that_nothing_was_spent_is_caught(storm: Storm) -> None:
    patch = f"{saboteurs.__name__}.{saboteurs.says_nothing_was_spent.__name__}"

    _, _, wrong = report(storm.cases([Fault("rename", 10)], (patch,)))

    assert "EIO once at rename 10: untrue: no budget was spent." in wrong


@pytest.mark.slow
def test_G1_without_a_compiler_the_calls_of_python_are_met(tmp_path: Path) -> None:
    (tmp_path / "says").mkdir()
    runner = Runner(tmp_path / "says", None)
    try:
        storm = Storm(tmp_path / "cap", runner, "cap")
        errors, kills, wrong = report(storm.cases(storm.some(4)))
    finally:
        runner.close()

    assert wrong == []
    assert errors + kills == 4


@pytest.mark.slow
@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda s: s.__name__)
def test_G1_each_saboteur_is_caught(saboteur: object, runner: Runner, tmp_path: Path) -> None:
    name, kind = SABOTEURS[saboteur]  # type: ignore[index]
    storm = Storm(tmp_path / name, runner, name)
    patch = f"{saboteurs.__name__}.{saboteur.__name__}"  # type: ignore[attr-defined]
    chosen = [f for f in storm.faults if (f.kind, f.error, f.mode) == (kind, "EINTR", "once")]

    assert any(untrue(case) for case in storm.cases(chosen[::-1], (patch,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_G1_hundreds_of_faults_are_told_as_they_are_and_cost_once(
    name: str, runner: Runner, tmp_path: Path
) -> None:
    storm = Storm(tmp_path / name, runner, name)

    errors, kills, wrong = report(storm.cases(storm.some(SHARES[name])))

    assert wrong == []
    assert errors + kills == min(SHARES[name], len(storm.faults))


def test_G1_the_whole_storm_injects_more_than_five_hundred_errors() -> None:
    kills = 0.26  # at most this share of all faults of a run is a kill

    assert sum(SHARES.values()) * (1 - kills) > 500
