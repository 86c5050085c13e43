"""`gibbous ledger`: data sets by file and by name, links, and what must never be silent."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path

import pytest

from gibbous.cli import faults
from gibbous.write.package import Package
from tests.cli.conftest import Cli, Done

SCHEMA = """format = "gibbous-schema/1"
[unit]
kind = "row"

[[column]]
name = "smokes"
kind = "binary"
levels = ["no", "yes"]
"""
ROWS = "smokes\n" + "no\nyes\n" * 20


@pytest.fixture
def data(home: Path) -> Path:
    Path("s.toml").write_text(SCHEMA)
    Path("d.csv").write_text(ROWS)
    Path("later.csv").write_text(ROWS + "no\n")
    return Path("d.csv")


def release(cli: Cli, source: str, *more: str) -> Done:
    return cli(
        "synthesize", source, "-s", "s.toml", "-m", "laplace", "-e", "0.5", "-n", "9", "--seed", "1",
        "--overwrite", "-o", "out", "--json", *more,
    )  # fmt: skip


@pytest.mark.slow
def test_C_a_later_version_is_linked_by_nickname_and_charged_to_the_same_cap(
    data: Path, cli: Cli
) -> None:
    assert cli("ledger", "cap", data, "-e", "1").code == 0
    assert "Named survey." in cli("ledger", "name", data, "survey").out
    assert release(cli, "d.csv").code == 0
    refused = release(cli, "later.csv")
    linked = cli("ledger", "link", "later.csv", "survey")
    assert release(cli, "later.csv").code == 0
    shown = cli("ledger", "show", "survey")

    assert (refused.code, "gibbous ledger link DATA" in refused.err) == (5, True)
    assert "one account from now on. Nothing was spent." in linked.out
    assert "1 data set; " in shown.out
    assert "left:  epsilon = 0, delta = 0" in shown.out
    assert "data set survey (" in shown.out
    assert release(cli, "later.csv").code == 0  # bought before
    assert release(cli, "later.csv", "--fresh").code == 6
    assert (
        json.loads(cli("ledger", "cap", "survey", "-e", "2", "--json").out)["nickname"] == "survey"
    )


def test_C_new_data_are_declared_with_a_reason_that_is_shown(data: Path, cli: Cli) -> None:
    cli("ledger", "cap", data, "-e", "1")

    assert cli("ledger", "cap", "later.csv", "-e", "1").code == 5
    assert release(cli, "later.csv", "--new-data", "the women of 2025").code == 0

    shown = cli("ledger", "show")
    assert "declared new: the women of 2025" in shown.out


@pytest.mark.slow
def test_D_a_ledger_put_back_without_its_anchor_is_told_on_stderr_and_in_json(
    data: Path, cli: Cli, home: Path
) -> None:
    release(cli, "d.csv")
    gc.collect()  # closes the file, as the end of a process does
    shutil.copy(home / "ledger.sqlite", "old.sqlite")
    release(cli, "d.csv")
    gc.collect()
    shutil.copy("old.sqlite", home / "ledger.sqlite")
    (home / "ledger.sqlite.anchor").unlink()

    done = release(cli, "d.csv")

    assert done.code == 0
    assert done.err.startswith("warning: The anchor")
    assert "is missing" in json.loads(done.out)["warnings"][0]


def test_D_show_does_not_say_nothing_was_spent_where_an_anchor_knows_a_head(
    data: Path, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIBBOUS_ANCHOR", str(Path("anchor").absolute()))
    release(cli, "d.csv")
    shutil.rmtree(home)

    shown = cli("ledger", "show")

    assert shown.code == 7
    assert "knows its head" in shown.err
    assert "nothing was spent." not in shown.out
    assert not home.exists()


def test_F_show_makes_nothing(data: Path, cli: Cli, home: Path) -> None:
    none = cli("ledger", "show")
    assert (none.code, home.exists()) == (0, False)
    missing = cli("ledger", "show", "--ledger", "x/absent.sqlite")
    assert (missing.code, Path("x").exists()) == (7, False)
    release(cli, "d.csv")
    for ending in (".lock", ".anchor"):
        (home / f"ledger.sqlite{ending}").unlink()

    shown = cli("ledger", "show")

    assert (shown.code, shown.err.startswith("warning: The anchor")) == (0, True)
    assert not faults.told, "the next command in this process would print them as its own"
    assert not list(home.glob("*.anchor")) + list(home.glob("*.lock"))


def test_F_no_lock_is_made_beside_a_file_that_is_no_ledger(data: Path, cli: Cli) -> None:
    before = sorted(Path().iterdir())

    done = release(cli, "d.csv", "--ledger", "s.toml")

    assert (done.code, "is not a ledger" in done.err) == (7, True)
    assert sorted(Path().iterdir()) == before


def test_show_tells_how_a_stopped_run_goes_on_and_the_same_command_does(
    data: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Package, "write_sets", stopped)
        assert release(cli, "d.csv").code == 130
    after = cli("ledger", "show").out
    again = release(cli, "d.csv")
    done = cli("ledger", "show").out

    assert "tables paid, rows unfinished. Resume with the command" in after
    assert "at no further cost (" in after
    assert again.code == 0
    assert "unfinished" not in done
    assert done.count("epsilon = 0.5") == after.count("epsilon = 0.5")
