"""The steward's journey, verb by verb: exit codes, JSON on stdout, and an honest last line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Done

SCHEMA = """
format = "gibbous-schema/1"
[unit]
kind = "row"
[[column]]
name = "region"
kind = "nominal"
levels = ["north", "south", "=risky"]
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 4
integer = true
{source}
[[column]]
name = "member"
kind = "binary"
levels = ["no", "yes"]
"""
CONFIG = """
data = "in.csv"
schema = "schema.toml"
[privacy]
epsilon = 1
delta = 1e-6
[mechanism]
name = "sbhg"
parents = 1
[output]
rows = 40
sets = 2
seed = 7
path = "release"
"""
QUICK = ("--engine", "numpy")


@pytest.fixture
def work(home: Path) -> Path:
    """The working directory, with data, schema, a draft schema and a configuration."""
    folder = Path.cwd()
    regions = ("north", "south", "=risky")
    lines = [f"{regions[i % 3]},{i % 100},{('no', 'yes')[i % 2]}" for i in range(400)]
    (folder / "in.csv").write_text("region,age,member\n" + "\n".join(lines) + "\n")
    (folder / "schema.toml").write_text(SCHEMA.format(source=""))
    (folder / "draft.toml").write_text(SCHEMA.format(source='source = "inferred"'))
    (folder / "release.toml").write_text(CONFIG)
    return folder


def _last(done: Done) -> str:
    assert done.code == 0, done.err
    return done.out.splitlines()[-1]


def test_a_configured_run_plans_spends_verifies_and_is_in_the_ledger(cli: Cli, work: Path) -> None:
    plan = cli("plan", "--config", "release.toml", "--json")
    assert not (work / "release").exists()
    made = cli("synthesize", "--config", "release.toml", *QUICK, "--json")
    checked = cli("verify", "release", "--json")
    shown = cli("ledger", "show", "in.csv", "--schema", "schema.toml", "--json")

    for done in (plan, made, checked, shown):
        assert (done.code, done.err) == (0, "")
    assert json.loads(plan.out)["total"] == json.loads(made.out)["plan"]["total"]
    assert json.loads(made.out)["rows"] == [40, 40]
    assert json.loads(made.out)["claim"]["epsilon"] == "1"
    assert json.loads(checked.out)["ok"] is True
    releases = json.loads(shown.out)["datasets"][0]["releases"]
    assert [(r["state"], r["method"]) for r in releases] == [("committed", "sbhg")]


def test_set_and_flags_reach_the_run(cli: Cli, work: Path) -> None:
    done = cli(
        "plan", "--config", "release.toml", "--set", "privacy.epsilon=0.5", "--set", "parents=2",
        "--rows", "9", "--json",
    )  # fmt: skip

    plan = json.loads(done.out)
    assert (plan["params"]["epsilon"], plan["params"]["parents"], plan["rows"]) == (0.5, 2, 9)


@pytest.mark.slow
def test_csv_is_guarded_unless_raw_is_asked_for(cli: Cli, work: Path) -> None:
    clear = ("--set", "privacy.epsilon=20")  # so that no level falls below the threshold
    common = ("synthesize", "--config", "release.toml", *clear, *QUICK, "--format", "csv", "-q")

    cli(*common, "--out", "guarded")
    cli(*common, "--out", "raw", "--csv-raw")

    assert "\n'=risky," in (work / "guarded" / "synthetic_1.csv").read_text()
    assert "\n=risky," in (work / "raw" / "synthetic_1.csv").read_text()


@pytest.mark.parametrize("form", ["folder", "file"])
def test_more_rows_come_from_the_tables_and_cost_nothing(cli: Cli, work: Path, form: str) -> None:
    import polars as pl

    cli("synthesize", "--config", "release.toml", *QUICK)
    before = cli("ledger", "show", "--json").out
    out = "more" if form == "folder" else "more.parquet"

    done = cli("synthesize", "--tables", "release", "--rows", 70, "--seed", 3, "--out", out)

    assert _last(done).startswith("total cost: nothing; 70 rows")
    path = work / out if form == "file" else work / out / "synthetic_1.parquet"
    assert pl.read_parquet(path).shape == (70, 3)
    assert cli("ledger", "show", "--json").out == before
    again = cli("synthesize", "--tables", "release", "--rows", 70, "--out", out)
    assert again.code == 9


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--method", "sbhg", "--epsilon", "1", "-d", "1e-6"),
            "total cost: epsilon = 1, delta = 1e-06",
        ),
        (
            ("--method", "pegs", "--epsilon", "1", "--rows", "5", "--sets", "2"),
            "epsilon = 1 per row: 10 rows cost 10",
        ),
        (("--method", "contingency", "--rows", "5"), "not differentially private"),
        (("--method", "diverse_pegs", "--rows", "5"), "not differentially private"),
    ],
    ids=["artifact", "row", "none", "l-diversity"],
)
def test_the_last_line_states_the_total_first(
    cli: Cli, work: Path, flags: tuple[str, ...], words: str
) -> None:
    run = cli("synthesize", "in.csv", "--schema", "schema.toml", *flags, *QUICK, "-o", "out")
    plan = cli("plan", "--schema", "schema.toml", *flags)
    quiet = cli("synthesize", "in.csv", "--schema", "schema.toml", *flags, *QUICK, "-o", "b", "-q")

    for done in (run, plan, quiet):
        assert _last(done).startswith("total cost: ")
        assert words in _last(done)
    assert len(quiet.out.splitlines()) == 1


def test_d4_an_inferred_fact_is_refused_or_named_in_the_last_line(cli: Cli, work: Path) -> None:
    spend = (
        "synthesize",
        "in.csv",
        "--schema",
        "draft.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        *QUICK,
        "-o",
        "out",
    )

    refused = [cli("plan", "--schema", "draft.toml", "--epsilon", "1"), cli(*spend)]
    accepted = cli(*spend, "--accept-inferred")
    free = cli(
        "synthesize", "in.csv", "--schema", "draft.toml", "-m", "contingency", "--rows", 3, *QUICK,
        "-o", "c",
    )  # fmt: skip

    for done in refused:
        assert done.code == 5
        assert "bounds, bins, missing of age" in done.err
        assert "--accept-inferred" in done.err
    assert "not differentially private with respect to" in _last(accepted)
    assert "bounds, bins, missing of age" in _last(accepted)
    assert "bounds, bins, missing of age" in (work / "out" / "METHODS.md").read_text()
    assert free.code == 0  # no claim is made, so none is wrong


BUDGETS = [
    ("e1", "sbhg", "0", "1e-6"),
    ("e2-negative", "sbhg", "-1", "1e-6"),
    ("e2-nan", "sbhg", "nan", "1e-6"),
    ("e2-text", "sbhg", "abc", "1e-6"),
    ("e2-missing", "sbhg", None, "1e-6"),
    ("e3-inf", "sbhg", "inf", "1e-6"),
    ("e3-huge", "sbhg", "1e400", "1e-6"),
    ("e4-denormal", "sbhg", "1e-320", "1e-6"),
    ("e4-small", "sbhg", "1e-9", "1e-6"),
    ("e4-large", "sbhg", "1e9", "1e-6"),
    ("e5", "sbhg", "1", "0"),
    ("e6-one", "sbhg", "1", "1"),
    ("e6-negative", "sbhg", "1", "-0.1"),
    ("e6-nan", "sbhg", "1", "nan"),
    ("e11-delta-of-a-pure-method", "laplace", "1", "1e-6"),
    ("f10-budget-of-no-claim", "contingency", "1", None),
    ("f10-budget-of-l-diversity", "diverse_pegs", "1", None),
]


@pytest.mark.parametrize(
    ("method", "epsilon", "delta"), [b[1:] for b in BUDGETS], ids=[b[0] for b in BUDGETS]
)
def test_e_a_wrong_budget_is_refused_before_anything_is_opened(
    cli: Cli, work: Path, method: str, epsilon: str | None, delta: str | None
) -> None:
    (work / "in.csv").unlink()  # a run that opened it would end with 3
    flags = ["--epsilon", epsilon] if epsilon is not None else []
    flags += ["--delta", delta] if delta is not None else []
    common = ("--schema", "schema.toml", "--method", method, "--rows", "9", *flags)

    for done in (cli("plan", *common), cli("synthesize", "in.csv", *common, "-o", "out")):
        assert done.code == 5
        assert done.err.startswith("error[GB5-")


def test_e4_an_unusual_epsilon_is_possible_when_it_is_meant(cli: Cli, work: Path) -> None:
    done = cli("plan", "--schema", "schema.toml", "-m", "sbhg", "-e", "200", "--i-understand")

    assert "epsilon = 200" in _last(done)


def test_h2_a_cap_refuses_the_release_that_would_pass_it(cli: Cli, work: Path) -> None:
    cap = cli("ledger", "cap", "in.csv", "--epsilon", "1.5", "--delta", "1e-5")
    spend = (
        "synthesize",
        "in.csv",
        "--schema",
        "schema.toml",
        "-e",
        "1",
        "-d",
        "1e-6",
        *QUICK,
        "-o",
    )
    (work / "renamed.csv").write_text((work / "in.csv").read_text())

    first = cli(*spend, "one")
    second = cli("synthesize", "renamed.csv", *spend[2:], "two", "--fresh")

    assert "epsilon = 1.5" in _last(cap)
    assert first.code == 0
    assert second.code == 6
    assert "0.5" in second.err
    assert not (work / "two").exists()


def test_before_the_first_release_nothing_was_spent(cli: Cli, home: Path) -> None:
    shown, data = cli("ledger", "show"), cli("ledger", "show", "--json")
    named = cli("ledger", "show", "--ledger", "absent.sqlite")

    assert "nothing was spent" in _last(shown)
    assert json.loads(data.out)["datasets"] == []
    assert named.code == 7
    assert not home.exists()  # looking makes no ledger


def test_h4_a_ledger_that_vanished_is_an_error_not_a_fresh_start(
    cli: Cli, work: Path, home: Path
) -> None:
    cli("ledger", "cap", "in.csv", "--epsilon", "1")
    (home / "ledger.sqlite").unlink()

    done = cli("ledger", "show")

    assert done.code == 7


def test_a_budget_for_the_file_refuses_a_method_that_costs_by_the_row(cli: Cli, work: Path) -> None:
    (work / "in.csv").unlink()

    done = cli(
        "synthesize", "in.csv", "--schema", "schema.toml", "-m", "pegs", "-e", "1", "--rows", 500,
        "--budget", "20", "-o", "out",
    )  # fmt: skip

    assert done.code == 6
    assert "500 rows cost 500" in done.err


def test_each_class_of_failure_has_its_exit_code(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend = ("--schema", "schema.toml", "-e", "1", "-d", "1e-6", *QUICK)
    cli("synthesize", "in.csv", *spend, "-o", "release")
    (work / "empty.csv").write_text("")
    (work / "other.csv").write_text("region,age,member\nwest,1,no\n")
    (work / "broken.sqlite").write_text("not a ledger, but long enough to look like a file" * 50)
    (work / "wide.csv").write_text(",".join(f"c{i}" for i in range(100_000)) + "\n")
    (work / "file").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    codes = {
        2: cli("synthesize", "in.csv", *spend),
        3: cli("synthesize", "empty.csv", *spend, "-o", "out"),
        4: cli("synthesize", "other.csv", *spend, "-o", "out"),
        5: cli("plan", "--schema", "schema.toml", "--epsilon", "0"),
        7: cli("ledger", "show", "--ledger", "broken.sqlite"),
        8: cli("verify", "in.csv"),
        9: cli("synthesize", "in.csv", *spend, "-o", "release"),
        10: cli("schema", "check", "schema.toml", "wide.csv"),
        11: cli("demo"),
    }
    (work / "release" / "METHODS.md").write_text("improved")
    tampered = cli("verify", "release")

    assert {code: done.code for code, done in codes.items()} == {code: code for code in codes}
    assert tampered.code == 8
    for done in [*codes.values(), tampered]:
        assert done.out == ""
        assert done.err.startswith(f"error[GB{done.code}-")


@pytest.mark.parametrize("out", ["missing/folder/out", "file/out"])
def test_i2_an_output_that_cannot_be_written_is_refused_before_the_charge(
    cli: Cli, work: Path, out: str
) -> None:
    (work / "file").write_text("")

    done = cli(
        "synthesize", "in.csv", "--schema", "schema.toml", "-e", "1", "-d", "1e-6", "-o", out
    )

    assert done.code == 9
    assert "no budget was spent" in done.err
    assert "r-" not in cli("ledger", "show").out  # no reservation, or no ledger at all


def test_i7_the_output_cannot_be_the_input(cli: Cli, work: Path) -> None:
    done = cli(
        "synthesize",
        "in.csv",
        "--schema",
        "schema.toml",
        "-e",
        "1",
        "-d",
        "1e-6",
        "-o",
        "in.csv",
        "--overwrite",
    )

    assert done.code == 2
    assert (work / "in.csv").read_text().startswith("region,")


def test_schema_infer_import_and_check(cli: Cli, work: Path) -> None:
    (work / "domain.json").write_text('{"a": 3, "b": 2}')

    inferred = cli("schema", "infer", "in.csv", "-o", "new.toml", "--json")
    exists = cli("schema", "infer", "in.csv", "-o", "new.toml")
    again = cli("schema", "infer", "in.csv", "-o", "new.toml", "--overwrite")
    imported = cli("schema", "import", "domain.json", "-o", "imported.toml")
    checked = cli("schema", "check", "schema.toml", "in.csv", "--json")

    facts = json.loads(inferred.out)["inferred"]
    assert any(fact.startswith("age: ") for fact in facts)
    assert exists.code == 9
    assert again.code == imported.code == 0
    assert (work / "new.toml").stat().st_mode & 0o077 == 0
    assert json.loads(checked.out)["conforms"] is True
    assert json.loads(checked.out)["cells"] == 24


def test_dropped_lines_are_counted_and_reported(cli: Cli, work: Path) -> None:
    with (work / "in.csv").open("a") as file:
        file.write("north,3\n")

    refused = cli("schema", "check", "schema.toml", "in.csv")
    dropped = cli("schema", "check", "schema.toml", "in.csv", "--on-bad-line", "drop")

    assert refused.code == 3
    assert dropped.code == 0
    assert dropped.err.startswith("warning: Dropped: ")


@pytest.mark.slow
def test_nothing_is_asked_when_stdin_is_no_terminal(program: Cli, work: Path) -> None:
    for line in (["synthesize", "in.csv"], ["ledger", "cap", "in.csv"]):
        done = program(*line)
        assert done.code == 2
        assert done.out == ""


def test_two_runs_with_one_seed_differ_in_their_noise(cli: Cli, work: Path) -> None:
    """G1: a seed reaches sampling only."""
    spend = (
        "synthesize",
        "in.csv",
        "--schema",
        "schema.toml",
        "-e",
        "1",
        "-d",
        "1e-6",
        "--seed",
        "7",
        *QUICK,
    )

    assert cli(*spend, "-o", "one").code == cli(*spend, "-o", "two", "--fresh").code == 0

    one, two = (
        b"".join(p.read_bytes() for p in sorted((work / n / "tables").glob("*.parquet")))
        for n in ("one", "two")
    )
    assert one != two


def test_threads_change_nothing_but_the_cores_in_use(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    import polars as pl

    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    cli("synthesize", "--config", "release.toml", *QUICK)
    more = ("synthesize", "--tables", "release", "--rows", 5000, "--seed", 1, "--out")

    one, all_ = cli(*more, "one.parquet", "--threads", 1), cli(*more, "all.parquet")

    assert (one.code, all_.code) == (0, 0)
    assert pl.read_parquet("one.parquet").equals(pl.read_parquet("all.parquet"))
    if before is not None:
        assert os.sched_getaffinity(0) == before


@pytest.mark.slow
def test_warmup_compiles_and_says_where(cli: Cli) -> None:
    done = cli("warmup", "--json")

    assert done.code == 0, done.err
    assert set(json.loads(done.out)) == {"seconds", "cache"}


@pytest.mark.slow
def test_dates_persons_and_catch_alls_survive_the_whole_journey(cli: Cli, home: Path) -> None:
    """A semicolon file in latin-1 with declared dates, a person unit, missing, other and a zero."""
    lines = ["patient;sex;age;admitted;town;pregnant"]
    for i in range(300):
        sex, age = "FM"[i % 2], "NA" if i % 17 == 0 else str(i % 90)
        town = ("Zürich", "Genève", "Olten")[i % 3]
        day = f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/2020"
        lines.append(f"p{i // 4};{sex};{age};{day};{town};{'ja' if i % 10 == 0 else 'nein'}")
    Path("visits.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    Path("visits.toml").write_text(VISITS, encoding="utf-8")
    reading = ("--sep", ";", "--encoding", "latin-1")

    checked = cli("schema", "check", "visits.toml", "visits.csv", *reading)
    done = cli(
        "synthesize", "visits.csv", "-s", "visits.toml", "-e", "1", "-d", "1e-6", "-n", "50",
        "--format", "csv",
        "-o", "out", *reading, *QUICK,
    )  # fmt: skip
    verified = cli("verify", "out")

    assert (checked.code, done.code, verified.code) == (0, 0, 0), (checked, done, verified)
    rows = Path("out/synthetic_1.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "sex,age,admitted,town,pregnant"
    fields = [row.split(",") for row in rows[1:]]
    assert all(day[2] == day[5] == "/" and day.endswith("2020") for _, _, day, _, _ in fields)
    assert not any(sex == "M" and pregnant == "ja" for sex, *_, pregnant in fields)
    assert "any one person (column patient, at most 3 rows of each)" in (
        Path("out/METHODS.md").read_text(encoding="utf-8")
    )


VISITS = """
format = "gibbous-schema/1"
null = "NA"
[unit]
kind = "person"
column = "patient"
max_rows = 3
[[column]]
name = "sex"
kind = "binary"
levels = ["F", "M"]
[[column]]
name = "age"
kind = "numeric"
integer = true
lower = 0
upper = 110
cuts = [18, 65]
missing = true
[[column]]
name = "admitted"
kind = "date"
lower = 2020-01-01
upper = 2020-12-31
by = "month"
format = "%d/%m/%Y"
[[column]]
name = "town"
kind = "nominal"
levels = ["Zürich", "Genève"]
other = "elsewhere"
[[column]]
name = "pregnant"
kind = "binary"
levels = ["ja", "nein"]
[[impossible]]
sex = ["M"]
pregnant = ["ja"]
"""


def test_the_check_of_a_draft_stays_short(cli: Cli, work: Path) -> None:
    done = cli("schema", "check", "draft.toml", "in.csv")

    assert done.code == 0
    assert len(done.out.splitlines()) == 1 + 3 + 2  # header, a line a column, facts left
    assert "facts are inferred and not covered by a guarantee" in done.out


def test_columns_of_another_shape_are_no_metadata(cli: Cli, home: Path) -> None:
    Path("other.json").write_text('{"name": "x", "columns": [{"name": "a"}]}')

    done = cli("schema", "import", "other.json", "-o", "s.toml")

    assert done.code == 2
    assert "in none of the formats that are read" in done.err


def test_a_release_is_written_for_a_group_that_reads_it(cli: Cli, work: Path) -> None:
    spend = ("synthesize", "in.csv", "--schema", "schema.toml", "-e", "1", "-d", "1e-6", *QUICK)

    wrong = cli(*spend, "--mode", "0660", "-o", "one")
    done = cli(*spend, "--mode", "0640", "-o", "one")
    more = cli("synthesize", "--tables", "one", "-n", "5", "--mode", "0640", "-o", "five.csv")

    assert (wrong.code, "0640 (a group may read)" in wrong.err) == (2, True)
    assert (done.code, more.code) == (0, 0), done.err + more.err
    assert {path.stat().st_mode & 0o777 for path in Path("one").iterdir()} == {0o640, 0o750}
    assert Path("five.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.slow
def test_a_release_that_is_made_again_says_that_it_is_free(cli: Cli, work: Path) -> None:
    spend = ("synthesize", "in.csv", "--schema", "schema.toml", "-e", "1", "-d", "1e-6", *QUICK)
    first = cli(*spend, "-o", "one")
    again = cli(*spend, "-o", "one", "--overwrite")
    other = cli(*spend, "-o", "one", "--overwrite", "--fresh", "--json")
    third = cli(*spend, "-o", "one", "--overwrite", "--json")
    elsewhere = cli(*spend, "-o", "two", "--json")
    shutil.rmtree(work / "one")
    shutil.rmtree(work / "two")
    gone = cli(*spend, "-o", "three", "--json")

    assert str(work / "one") in json.loads(elsewhere.out)["bought_from"]
    assert not json.loads(gone.out)["bought_before"]
    assert (
        "its folder is gone or was changed, and the tables with it. It is charged again" in gone.err
    )
    assert "earlier run" not in first.out
    assert f"; paid for by an earlier run ('{work / 'one'}', 20" in _last(again)
    assert "), this one is free. " in _last(again)
    assert [json.loads(done.out)["bought_before"] for done in (other, third)] == [False, True]
    assert "spent: epsilon = 3 " in " ".join(cli("ledger", "show").out.split())
