"""What a command tells its reader to do next can be done as it is told."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROWS = [f"{'fm'[i % 2]};{i % 5};Zürich" for i in range(60)]


@pytest.mark.parametrize("sep", [";", "\t"])
def test_the_check_that_a_draft_names_reads_the_file_as_the_draft_did(
    sep: str, cli: Cli, home: Path
) -> None:
    text = "\n".join(["sex;stays;town", *ROWS]).replace(";", sep) + "\n"
    Path("my visits.csv").write_text(text, encoding="latin-1")

    drafted = cli(
        "schema", "infer", "my visits.csv", "-o", "s.toml", "--sep", sep, "--encoding", "latin-1"
    )
    told = shlex.split(drafted.out.rpartition("Next: gibbous ")[2])
    checked = cli(*told)

    assert told[:4] == ["schema", "check", "s.toml", "my visits.csv"]
    assert (checked.code, checked.err) == (0, "")


def test_a_draft_of_a_usual_file_names_no_flags(cli: Cli, home: Path) -> None:
    Path("x.csv").write_text("x\n" + "1\n2\n" * 30)

    drafted = cli("schema", "infer", "x.csv", "-o", "s.toml")

    assert "a draft of 1 column. " in drafted.out
    assert drafted.out.endswith("Next: gibbous schema check s.toml x.csv\n")


def test_data_and_schema_in_the_wrong_order_are_answered_with_the_right_one(
    cli: Cli, home: Path
) -> None:
    done = cli("schema", "check", "x.csv", "s.toml")

    assert done.code == 2
    assert done.err.startswith("error[GB2-ORDER]: ")
    assert "`gibbous schema check s.toml x.csv`" in done.err


@pytest.mark.parametrize(("epsilon", "late"), [("0.5", True), ("1", False)])
def test_a_cap_that_comes_too_late_says_so(epsilon: str, late: bool, cli: Cli, home: Path) -> None:
    Path("x.csv").write_text("x\n" + "a\nb\n" * 30)
    Path("s.toml").write_text(
        'format = "gibbous-schema/1"\n[unit]\nkind = "row"\n'
        '[[column]]\nname = "x"\nkind = "binary"\nlevels = ["a", "b"]\n'
    )
    spent = cli("synthesize", "x.csv", "-s", "s.toml", "-m", "laplace", "-e", "1", "-o", "r")
    assert spent.code == 0, spent.err

    done = cli("ledger", "cap", "x.csv", "--epsilon", epsilon)

    assert "left: epsilon = 0, delta = 0." in done.out
    assert ("More than that was released already" in done.out) == late


def test_columns_with_the_same_note_share_a_line(cli: Cli) -> None:
    rows = "".join(f'"{i},5";{i}%;"1.{i:03d},0";x\n' for i in range(40))
    Path("eu.csv").write_text("a;b;c;d\n" + rows)

    done = cli("schema", "infer", "eu.csv", "--sep", ";", "--out", "schema.toml")

    assert done.code == 0, done.err
    notes = [line for line in done.out.splitlines() if line.startswith("  '")]
    assert [line.partition(":")[0] for line in notes] == ["  'a', 'c'", "  'b'"]
    assert all("draft again" in line for line in notes)


def test_a_release_without_rows_says_so(cli: Cli) -> None:
    """No records, and noise of a hundredth: the noisy number is 0."""
    Path("data.csv").write_text("a\n")
    level = '[[column]]\nname = "a"\nkind = "binary"\nlevels = ["x", "y"]\n'
    Path("s.toml").write_text('format = "gibbous-schema/1"\n[unit]\nkind = "row"\n' + level)
    asked = ("synthesize", "data.csv", "--schema", "s.toml", "--epsilon", 90, "--delta", "1e-9")

    done = cli(*asked, "--out", "o")
    other = cli(*asked, "--json", "--out", "p")

    assert done.code == other.code == 0
    assert "warning: no rows: the noisy number of records is 0" in done.out
    assert json.loads(other.out)["warnings"][0].startswith("no rows")
