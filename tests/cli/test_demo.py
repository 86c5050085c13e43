"""The demonstration: real data, a verified release, a readable summary, a ledger of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gibbous.cli import demo_data
from gibbous.cli.defaults import DEFAULT_METHOD

from .conftest import Cli

pytest.importorskip("statsmodels", reason="the demonstration's data are a file of statsmodels")


def test_the_demo_schema_declares_everything_and_holds_the_data(cli: Cli) -> None:
    schema = demo_data.demo_schema()

    done = cli("schema", "check", Path(demo_data.__file__).parents[1] / "data/randhie.schema.toml",
               demo_data.demo_file())  # fmt: skip

    assert done.code == 0, done.err
    assert schema.inferred() == ()
    assert schema.unit is not None
    assert schema.unit.kind == "row"
    assert len(schema) == 10


def test_the_demo_makes_shows_and_verifies_a_release(cli: Cli, home: Path) -> None:
    done = cli("demo")
    checked = cli("verify", "gibbous-demo")
    again = cli("demo", "--quiet")

    assert done.code == 0, done.err
    for words in (
        "20,190 real person-years",
        "the privacy unit is one row",
        "epsilon = 1, delta = 1e-06",
        "noisy table",
        "gibbous verify gibbous-demo",
    ):
        assert words in done.out
    assert done.out.splitlines()[-1].startswith("Verified. Total cost: epsilon = 1")
    assert checked.code == 0
    assert (home / "demo-ledger.sqlite").exists()
    assert not (home / "ledger.sqlite").exists()
    assert again.code == 0
    assert "in gibbous-demo-2." in again.out


def test_the_demo_prints_the_noisy_margin_next_to_the_synthetic_one(cli: Cli) -> None:
    """Both columns are shares of public tables: they add up to one and are close to each other."""
    done = cli("demo", "--out", "release")

    table = done.out.split("share of rows, both columns public:\n")[1].splitlines()[1:14]
    shares = [tuple(map(float, line.split()[-2:])) for line in table]
    for column in zip(*shares, strict=True):
        assert sum(column) == pytest.approx(1, abs=0.01)
    # 20,190 rows and noise of tens of counts: sampling and noise together stay under 0.03.
    assert max(abs(a - b) for a, b in shares) < 0.03


def test_the_demo_of_a_row_method_pays_for_few_rows(cli: Cli) -> None:
    done = cli("demo", "--method", "pegs", "--json")

    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["rows"] == [200, 200]
    assert found["plan"]["total"]["epsilon"] == "400"


def test_the_demo_refuses_an_output_that_exists_and_an_unknown_method(cli: Cli) -> None:
    Path("here").mkdir()

    assert cli("demo", "--out", "here").code == 9
    assert "Did you mean 'sbhg'?" in cli("demo", "--method", "sbgh").err


def test_the_default_method_is_that_of_the_pipeline() -> None:
    from gibbous import pipeline

    assert pipeline.DEFAULT_METHOD == DEFAULT_METHOD
