"""`gibbous audit`: what it prints, its JSON document, its exit codes."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gibbous.cli import audit_verb
from gibbous.cli.flags import ScreenFlags
from gibbous.cli.measuring_verbs import AuditFlags
from gibbous.contract.auditor import setups as auditor_setups
from gibbous.core.errors import OutputNotWritten, ParameterError, UsageError
from gibbous.mechanisms import registry
from gibbous.sampling import conditionals

FEW = (60.0, 8, 0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer canaries a run."""
    monkeypatch.setattr(auditor_setups, "WIDE", 256)


def run(
    method: str,
    *setting: str,
    epsilon: str | None = None,
    relation: str | None = "add_remove",
    effort: tuple[float, int | None, int] = FEW,
    out: Path | None = None,
    json: bool = False,
    quiet: bool = False,
) -> int:
    flags = AuditFlags(method, epsilon, None, relation, list(setting), *effort)
    return audit_verb.run(flags, out, ScreenFlags(json=json, quiet=quiet))


@pytest.mark.slow
def test_a_sound_method_exits_0_and_the_last_line_is_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run("laplace", epsilon="1")

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0] == "laplace(epsilon=1.0, relation=add_remove, fit=clip)"
    assert any(line.startswith("  self-test without noise: flagged") for line in lines)
    assert lines[-1].startswith("verdict: nothing found. Claimed epsilon = 1, at least ")


@pytest.mark.slow
def test_json_is_one_document_and_out_holds_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("laplace", "epsilon=0.5", out=tmp_path / "audit.json", json=True)

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert printed == json.loads((tmp_path / "audit.json").read_text())
    assert printed["params"]["epsilon"] == 0.5
    assert printed["verdict"] == "nothing found"


def test_quiet_prints_the_verdict_alone(capsys: pytest.CaptureFixture[str]) -> None:
    run("bootstrap", relation=None, quiet=True)

    assert capsys.readouterr().out == (
        "verdict: nothing to audit. bootstrap claims no guarantee; not differentially private.\n"
    )


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.slow
def test_a_release_with_a_diverse_column_is_audited_for_both_of_its_claims(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: bool
) -> None:
    if broken:
        monkeypatch.setattr(conditionals, "_diverse", lambda shares, context, recipe: shares)

    code = run("noisy_pegs", "diverse=diagnosis=1.5", epsilon="1", json=True)

    printed = json.loads(capsys.readouterr().out)
    of_values = [e for e in printed["evidence"] if e["kind"] == "diversity"]
    assert code == (5 if broken else 0)
    assert printed["params"]["diverse"] == ["diagnosis=1.5"]
    assert [(e["claimed"], e["violated"]) for e in of_values] == [(1.5, broken)]
    assert printed["claimed_epsilon"] == 1
    assert "drawn 'diagnosis'" in printed["claim"]


@pytest.mark.slow
def test_a_broken_method_exits_5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point = EntryPoint("undivided", "tests.contract.broken_methods:Undivided", registry.GROUP)
    monkeypatch.setattr(registry, "_found", lambda: {"undivided": point})

    code = run("undivided", epsilon="1", relation=None, quiet=True)

    assert code == 5
    assert capsys.readouterr().out.startswith("verdict: VIOLATION.")


@pytest.mark.slow
def test_runs_that_cannot_refute_the_claim_exit_10() -> None:
    assert run("pegs", epsilon="8", effort=(60.0, 4, 0), quiet=True) == 10


def test_l_diversity_is_audited_as_such_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("diverse_pegs", "l=1.25", relation=None)

    text = capsys.readouterr().out
    assert code == 0
    assert "claimed 1.25" in text
    assert "not differential privacy" in text


def test_a_file_in_the_way_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("mine")

    with pytest.raises(OutputNotWritten) as refused:
        run("laplace", out=tmp_path / "audit.json", effort=(1e9, 10**9, 0))

    assert refused.value.exit_code == 9
    assert (tmp_path / "audit.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("method", "setting", "near"),
    [
        ("laplase", (), "laplace"),
        ("laplace", ("epsilom=1",), "epsilon"),
        ("laplace", ("epsilon",), "KEY=VALUE"),
        ("laplace", ("epsilon=1", "epsilon=2"), "twice"),
    ],
)
def test_a_mistake_exits_2_with_the_nearest_word(
    method: str, setting: tuple[str, ...], near: str
) -> None:
    with pytest.raises(UsageError, match=near) as refused:
        run(method, *setting)

    assert refused.value.exit_code == 2


def test_an_epsilon_that_is_no_number_exits_5() -> None:
    with pytest.raises(ParameterError):
        run("laplace", epsilon="much")
