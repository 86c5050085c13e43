"""The demonstration: real data, a verified release, a readable summary, two reports, a ledger of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gibbous.cli import demo_verb
from gibbous.read import demo_data
from tests.cli.conftest import Cli

pytest.importorskip("statsmodels", reason="the demonstration's data are a file of statsmodels")


def test_the_demo_schema_declares_everything_and_holds_the_data(cli: Cli) -> None:
    schema = demo_data.demo_schema()

    done = cli("schema", "check", Path(demo_data.__file__).parents[1] / "data/randhie.schema.toml",
               demo_data.demo_file())  # fmt: skip

    assert done.code == 0, done.err
    assert schema.ignore == (demo_data.PERSON,)
    assert schema.inferred() == ()
    assert schema.unit is not None
    assert schema.unit.kind == "row"
    assert len(schema) == 10


def test_years_of_a_person_lie_in_one_file_and_are_as_many_as_the_experiment_had(
    tmp_path: Path,
) -> None:
    import polars as pl

    sizes = demo_data.write_records(tmp_path / "records.csv", tmp_path / "holdout.csv")
    records, holdout = (
        pl.read_csv(tmp_path / name, infer_schema=False) for name in ("records.csv", "holdout.csv")
    )
    persons = [set(table["person"]) for table in (records, holdout)]
    same = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]

    assert sizes == (records.height, len(persons[0]))
    assert records.height + holdout.height == demo_data.ROWS
    assert not persons[0] & persons[1]
    assert abs(len(persons[1]) / (len(persons[0]) + len(persons[1])) - 0.2) < 0.001
    for table in (records, holdout):
        years = table.group_by("person").len()["len"]
        assert years.max() == demo_data.YEARS
        assert float((years == 3).mean() + (years == 5).mean()) > 0.8  # type: ignore[operator]
        assert (table.group_by("person").agg(pl.struct(same).n_unique())[same[0]] == 1).all()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the libraries of reports: the demonstration is fast, then."""
    monkeypatch.setattr(demo_verb, "REPORT", ("a_library_that_nobody_has",))


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 2,000 person-years: reports cost by the record, and what they hold does not."""
    path = tmp_path / "few.csv"
    lines = demo_data.demo_file().read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2_001]))
    monkeypatch.setattr(demo_data, "demo_file", lambda: path)


@pytest.mark.usefixtures("bare")
@pytest.mark.slow
def test_the_demo_makes_shows_and_verifies_a_release_and_its_noisy_margin(
    cli: Cli, home: Path
) -> None:
    done = cli("demo")
    checked = cli("verify", "gibbous-demo")
    again = cli("demo", "--quiet", "--method", "noisy_pegs")

    assert done.code == 0, done.err
    for words in (
        "16,143 real person-years of 4,648 persons",
        "A person is protected with all their years",
        "--id person:5 --numeric mdvis,",
        "epsilon = 3, delta = 1e-06",
        "\n  choosing and measuring\n",  # no terminal: a line a stage
        "noisy table",
        "gibbous verify gibbous-demo",
        'pip install "gibbous[report]"',
    ):
        assert words in done.out
    assert done.out.splitlines()[-1].startswith("Verified. Total cost: epsilon = 3")
    assert checked.code == 0
    assert (home / "demo-ledger.sqlite").exists()
    assert not (home / "ledger.sqlite").exists()
    assert again.code == 0
    assert "in gibbous-demo-2." in again.out
    assert sorted(path.name for path in Path("gibbous-demo-internal").iterdir()) == [
        "holdout.csv",
        "records.csv",
    ]
    _check_margin(done.out)


def _check_margin(text: str) -> None:
    """Both columns are shares of public tables: they add up to one and are close to each other."""
    table = text.split("share of rows, both columns public:\n")[1].split("\n\n")[0].splitlines()[1:]
    shares = [tuple(map(float, line.split()[-2:])) for line in table]
    for column in zip(*shares, strict=True):
        assert sum(column) == pytest.approx(1, abs=0.01)
    # 16,143 rows and noise of tens of counts: sampling and noise together stay under 0.04.
    assert max(abs(a - b) for a, b in shares) < 0.04


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_demo_ends_with_both_reports(cli: Cli) -> None:
    done = cli("demo", "--method", "noisy_pegs")  # fast; reports differ in nothing by the method
    checked = cli("verify", "gibbous-demo")

    assert done.code == 0, done.err
    assert checked.code == 0, checked.err
    public = Path("gibbous-demo/report.public.html")
    inside = Path("gibbous-demo-internal")
    internal = inside / "report.internal.html"
    assert f"  {public}\n" in done.out
    assert f"  {internal}\n    CONFIDENTIAL" in done.out
    assert inside.stat().st_mode & 0o777 == 0o700
    text = json.loads((inside / "report.internal.json").read_text())
    names = {found["name"] for found in text["findings"]}
    assert {"tv1", "tv4", "association", "coefficients", "tstr", "intruder_mode", "cap"} <= names
    assert text["facts"]["rows"]["real"] + text["facts"]["rows"]["holdout"] == 2_000
    assert internal.read_text().count("<figure ") >= 6
    assert "CONFIDENTIAL" not in public.read_text()


@pytest.mark.usefixtures("bare")
def test_the_demo_of_a_row_method_pays_for_few_rows(cli: Cli) -> None:
    done = cli("demo", "--method", "pegs", "--json")

    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["rows"] == [200, 200]
    assert found["plan"]["total"]["epsilon"] == "1200"


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_demo_of_a_row_method_has_reports_too(cli: Cli) -> None:
    done = cli("demo", "--method", "pegs", "--json")

    assert done.code == 0, done.err
    json.loads(done.out)
    assert Path("gibbous-demo/report.public.json").exists()
    assert Path("gibbous-demo-internal/report.internal.json").exists()


def test_the_demo_refuses_an_output_that_exists_and_an_unknown_method(cli: Cli) -> None:
    Path("here").mkdir()

    assert cli("demo", "--out", "here").code == 9
    assert "Did you mean 'sbhg'?" in cli("demo", "--method", "sbgh").err
