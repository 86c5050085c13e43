"""From a CSV without a schema to a verified release: one command, one reservation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import ModelRejected, PrivacyRefused, SchemaMismatch, UsageError
from gibbous.core.plan import Plan
from gibbous.read.schema_file import load_schema
from gibbous.write.manifest import seal
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures
from tests.discovery.conftest import visits

BUDGET = ("--epsilon", "20", "--delta", "1e-6")
PERSON = ("--id", "patient:2", "--header-is-public")


@pytest.fixture
def data(home: Path) -> Path:  # noqa: F811
    visits(1500).drop("note").write_csv("visits.csv")
    return Path("visits.csv")


@pytest.mark.slow
def test_one_command_makes_a_release_that_verify_accepts(cli: Cli, data: Path) -> None:  # noqa: F811
    done = cli("synthesize", data, *PERSON, *BUDGET, "--out", "release")

    assert done.code == 0, done.err
    assert "total cost: epsilon = 20, delta = 1e-06 in total" in done.out
    assert cli("verify", "release").code == 0
    schema = load_schema(Path("release/schema.toml"))
    assert schema.inferred() == ()
    assert schema["seen"].date_format == "%m/%d/%Y"
    assert "Facts that were paid for" in Path("release/METHODS.md").read_text()
    rows = pl.read_parquet("release/synthetic_1.parquet")
    assert set(rows["sex"].unique()) <= {"F", "M", None}  # noise may leave an empty missing level
    assert abs(len(rows) - 1500) < 200


@pytest.mark.slow
def test_the_ledger_has_one_reservation_of_the_whole(cli: Cli, data: Path) -> None:  # noqa: F811
    cli("synthesize", data, *PERSON, *BUDGET, "--out", "release")

    (account,) = json.loads(cli("ledger", "show", "--json").out)["datasets"]

    assert [entry["claim"]["epsilon"] for entry in account["releases"]] == ["20"]


@pytest.mark.slow
def test_a_bought_schema_is_charged_and_a_release_under_it_adds_to_the_account(
    cli: Cli,  # noqa: F811
    data: Path,
) -> None:
    bought = cli("schema", "discover", data, *PERSON, *BUDGET, "-o", "s.toml")
    used = cli(
        "synthesize", data, "--schema", "s.toml", "--epsilon", "2", "-d", "1e-9", "--out", "release"
    )

    assert (bought.code, used.code) == (0, 0), bought.err + used.err
    (account,) = json.loads(cli("ledger", "show", "--json").out)["datasets"]
    assert [entry["claim"]["epsilon"] for entry in account["releases"]] == ["20", "2"]


REFUSED = [
    (["--unit", "row"], 5, "NAMES", "--header-is-public"),
    (["--header-is-public"], 5, "UNIT", "--unit row"),
    (["--id", "patient", "--header-is-public"], 2, "DISCOVERY", "--id patient:5"),
    (["--id", "patient:0", "--header-is-public"], 2, "DISCOVERY", "--id patient:5"),
    (["--unit", "person", "--header-is-public"], 2, "DISCOVERY", "--id COLUMN:ROWS"),
    (["--unit", "row", "--header-is-public", "--numeric", "agee"], 2, "NOCOLUMN", "'age'"),
    (["--unit", "row", "--header-is-public", "--bounds", "age=9:1"], 2, "DISCOVERY", "age=0:120"),
    (["--unit", "row", "--header-is-public", "--bounds", "age=1"], 2, "DISCOVERY", "age=0:120"),
    (["--unit", "row", "--header-is-public", "--bounds", "age=0:inf"], 2, "DISCOVERY", "age=0:120"),
    (
        ["--unit", "row", "--header-is-public", "--numeric", "age", "--days", "age"],
        2,
        "TWICE",
        "once",
    ),
    (["--unit", "row", "--header-is-public", "--schema", "s.toml"], 2, "NOSCHEMA", "--schema"),
    (["--unit", "row", "--names", "absent.txt"], 2, "FILE", "Check the path"),
    (
        ["--unit", "row", "--header-is-public", "--method", "laplace"],
        5,
        "DISCOVERY",
        "adaptive_gibbs",
    ),
    (["--unit", "row", "--header-is-public", "--discovery-share", "1"], 5, "SHARE", "0.5"),
    ([], 2, "NOSCHEMA", "--header-is-public"),
]


@pytest.mark.parametrize(("flags", "code", "name", "words"), REFUSED, ids=lambda v: str(v)[:50])
def test_what_is_not_said_is_refused_before_anything_is_charged(
    cli: Cli,  # noqa: F811
    data: Path,
    flags: list[str],
    code: int,
    name: str,
    words: str,
) -> None:
    budget = BUDGET[:2] if "laplace" in flags else BUDGET  # laplace has no delta
    done = cli("synthesize", data, *flags, *budget, "--out", "release")

    assert done.code == code
    assert f"-{name}]" in done.err
    assert words in done.err
    assert done.err.endswith("Nothing was released; no budget was spent.\n")
    assert not Path("release").exists()


@pytest.mark.slow
def test_what_was_missed_is_said_to_people_and_to_programs(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    days = [*["2020-01-15"] * 3000, *["2020-05-01"] * 3000, *["1890-03-01"] * 20]
    rows = [f"{'abc'[i % 3] if i % 20 else f'rare{i}'},{day}" for i, day in enumerate(days)]
    data = tmp_path / "far.csv"
    data.write_text("kind,seen\n" + "\n".join(rows) + "\n")
    asked = ("synthesize", data, "--unit", "row", "--header-is-public", *BUDGET)

    shown = cli(*asked, "--out", "shown")
    told = json.loads(cli(*asked, "--out", "told", "--json").out)["warnings"]

    assert told
    assert all(f"warning: {text}" in shown.out for text in told)
    assert any(text.startswith("kind: about ") and "'other'" in text for text in told)


def test_a_first_record_is_not_taken_for_names(cli: Cli, data: Path) -> None:  # noqa: F811
    bare = Path("bare.csv")
    bare.write_text("".join(data.read_text().splitlines(keepends=True)[1:]))

    done = cli("synthesize", bare, "--unit", "row", "--header-is-public", *BUDGET, "--out", "r")

    assert done.code == 3
    assert "NOHEADER" in done.err
    assert "P0" not in done.err


def test_names_of_a_file_must_be_those_of_the_data(cli: Cli, data: Path) -> None:  # noqa: F811
    Path("names.txt").write_text("a\nb\n")

    done = cli("synthesize", data, "--unit", "row", "--names", "names.txt", *BUDGET, "--out", "r")

    assert done.code == 4
    assert "COLUMNS" in done.err


def test_a_plan_says_what_discovery_costs_and_misses_and_opens_nothing(cli: Cli) -> None:  # noqa: F811
    Path("names.txt").write_text("sex\nage\nicd\n")

    done = cli("plan", "--unit", "row", "--names", "names.txt", "--epsilon", "1", "--delta", "1e-9")

    assert done.code == 0
    assert "levels held by fewer rows than about this are missed" in done.out
    assert "kinds, missing cells and decimals of 3 columns" in done.out
    assert "Nothing was read or spent" in done.out


def test_frames_without_a_schema_are_read_like_files_and_types_are_not_trusted(
    home: Path,  # noqa: F811
) -> None:
    frame = visits(1500).select("sex", "age").with_columns(pl.col("age").cast(pl.Int64))
    known = gb.Discovery(("sex", "age"), gb.Unit())

    release = gb.synthesize(frame, known, gb.AdaptiveGibbs(epsilon=20, delta=1e-6), rows=100)

    assert release.schema["age"].source("kind") == "discovered"
    assert release.sets[0].shape == (100, 2)
    assert release.claim.epsilon == 20


def test_the_plan_has_the_total_of_the_method_for_any_names() -> None:
    known = gb.Discovery(("a", "b"), gb.Unit())

    planned: Plan = gb.plan(known, gb.AdaptiveGibbs(epsilon=1, delta=1e-9))

    assert (planned.total.epsilon, planned.total.delta) == (1, gb.plan(known).total.delta)
    assert planned.params["discovery"] == {"share": 0.5}


def test_a_discovery_without_a_unit_is_refused() -> None:
    with pytest.raises(PrivacyRefused, match="privacy unit"):
        gb.Discovery(("a",), None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no column"):
        gb.Discovery(("a",), gb.Unit("person", "b", 2))


def test_a_row_without_an_identifier_is_refused(home: Path) -> None:  # noqa: F811
    frame = pl.DataFrame({"id": ["a", None], "x": ["1", "2"]})

    with pytest.raises(SchemaMismatch, match="identifier"):
        gb.discover_schema(
            frame, gb.Discovery(("id", "x"), gb.Unit("person", "id", 1)), epsilon=1, delta=1e-6
        )


@pytest.mark.parametrize("method", [gb.PaidBins(method="noisy_pegs"), gb.Modips(noise="gaussian")])
def test_a_method_that_looks_at_numbers_is_refused_before_anything_is_charged(
    method: Any, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"age": [str(v) for v in range(60)]})
    ledger = gb.Ledger.open(tmp_path / "ledger.db")

    with pytest.raises(PrivacyRefused, match="looks at numbers"):
        gb.synthesize(frame, gb.Discovery(("age",), gb.Unit()), method, rows=5, ledger=ledger)

    assert not list(ledger.entries())


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [gb.PerSet(method="noisy_pegs"), gb.Parallel(method="noisy_pegs")]
)
def test_a_combinator_is_paid_in_the_account_of_the_facts(method: Any) -> None:
    frame = pl.DataFrame({"sex": ["F", "M"] * 4_000, "age": [str(v % 80) for v in range(8_000)]})

    release = gb.synthesize(
        frame, gb.Discovery(("sex", "age"), gb.Unit()), method, rows=20, sets=2,
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    assert not release.claim.mu_squared
    assert release.claim.epsilon == 1


@pytest.mark.slow
def test_a_schema_that_was_bought_before_is_named_beside_a_total_that_does_not_hold_its_price(
    tmp_path: Path,
) -> None:
    frame = pl.DataFrame({"sex": ["F", "M"] * 4_000, "age": [str(v % 80) for v in range(8_000)]})
    known, ledger = gb.Discovery(("sex", "age"), gb.Unit()), gb.Ledger.open(tmp_path / "l.db")
    method = gb.NoisyPegs(epsilon=2, delta=1e-6)

    bought = gb.discover_schema(frame, known, epsilon=2, delta=1e-6, ledger=ledger)
    later = gb.synthesize(frame, bought, method, rows=9, out=tmp_path / "later", ledger=ledger)
    at_once = gb.synthesize(frame, known, method, rows=9, out=tmp_path / "once", ledger=ledger)

    names = {name: (tmp_path / name / "METHODS.md").read_text() for name in ("later", "once")}
    assert "what was paid before for kind" in later.receipt["guarantee"]
    assert "adds to it" in names["later"]
    assert "**Their price is not part of the total above.**" in names["later"]
    assert "Their price is part of the total above:" not in names["later"]
    assert "paid before" not in at_once.receipt["guarantee"]
    assert "not part of the total" not in names["once"]
    assert "Their price is part of the total above:" in names["once"]
    gb.verify(tmp_path / "once")
    gb.verify(tmp_path / "later")
    receipt = later.receipt.to_json()
    receipt["guarantee"] = at_once.receipt[
        "guarantee"
    ]  # the saboteur: nothing is said of the price
    (tmp_path / "later" / "ledger.json").write_text(json.dumps(receipt))
    seal(tmp_path / "later")
    with pytest.raises(ModelRejected, match="paid for before"):
        gb.verify(tmp_path / "later")


@pytest.mark.slow
def test_bins_are_paid_for_by_the_release_that_cuts_them_and_not_by_the_next(
    tmp_path: Path,
) -> None:
    numbers = gb.Schema((gb.Column("age", "numeric", edges=(0.0, 100.0)),), gb.Unit())
    frame = pl.DataFrame({"age": [float(v % 80) for v in range(800)]})
    ledger = gb.Ledger.open(tmp_path / "l.db")

    first = gb.synthesize(
        frame, numbers, gb.PaidBins(method="laplace", epsilon=4), rows=9, ledger=ledger
    )
    second = gb.synthesize(frame, first.schema, gb.Laplace(epsilon=1), rows=9, ledger=ledger)

    assert "paid before" not in first.receipt["guarantee"]
    assert "what was paid before for bins of age adds to it" in second.receipt["guarantee"]


def test_the_same_schema_of_the_same_records_is_bought_once(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": ["F", "M"] * 4_000, "age": [str(v % 80) for v in range(8_000)]})
    known, ledger = gb.Discovery(("sex", "age"), gb.Unit()), gb.Ledger.open(tmp_path / "l.db")

    def bought(source: pl.DataFrame = frame, epsilon: float = 2, **more: bool) -> gb.Schema:
        return gb.discover_schema(source, known, epsilon=epsilon, delta=1e-6, ledger=ledger, **more)

    def paid() -> int:
        return len(list(ledger.entries()))

    first = bought()
    once = paid()
    again = bought(
        frame.sample(fraction=1, shuffle=True, seed=1)
    )  # the same records in another order
    kept = next((tmp_path / "l.db.releases").glob("schema-*.toml"))

    assert again == first
    assert paid() == once
    assert kept.stat().st_mode & 0o777 == 0o600
    assert bought(fresh=True).names == first.names
    assert paid() == 2 * once
    assert bought(epsilon=3).names == first.names
    assert bought(frame.head(7_000)).names == first.names
    assert paid() == 4 * once
    people = gb.Discovery(("sex", "age"), gb.Unit("person", "age", 100))
    other = gb.discover_schema(frame, people, epsilon=2, delta=1e-6, ledger=ledger)
    assert (other.unit, paid()) == (people.unit, 5 * once)
    assert gb.releases(ledger) == ()


def test_levels_that_are_stated_are_part_of_what_is_bought() -> None:
    plans = [
        gb.plan(
            gb.Discovery(("a", "b"), gb.Unit(), levels={"a": levels}), "adaptive_gibbs", epsilon=1, delta=1e-9
        )
        for levels in ((False, True), ("x", "y"))
    ]  # fmt: skip

    assert plans[0].params["discovery"]["levels"] == {"a": ["false", "true"]}  # as they are counted
    assert plans[0].params != plans[1].params


def test_an_engine_that_is_made_already_is_refused(tmp_path: Path) -> None:
    known, method = gb.Discovery(("age",), gb.Unit()), gb.AdaptiveGibbs(epsilon=1, delta=1e-6)
    made, ledger = gb.engine("local"), tmp_path / "ledger.sqlite"

    with pytest.raises(UsageError, match="Give the engine by name"):
        gb.synthesize(visits(10), known, method, rows=5, engine=made, ledger=ledger)


@pytest.mark.parametrize(
    "stated",
    [
        {"levels": {"a": ["x", "x"]}},
        {"levels": {"a": []}},
        {"bounds": {"a": (-1e308, 1e308)}},
        {"bounds": {"a": (0, 1e18)}},
        {"bounds": {"a": (0, 1e-320)}},
        {"bounds": {"a": (5, 5.000000001)}},
    ],
)
def test_a_statement_that_no_column_can_have_is_refused_before_anything_is_charged(
    stated: dict[str, Any],
) -> None:
    with pytest.raises(gb.GibbousError, match="'a'"):
        gb.Discovery(["a", "b"], gb.Unit(), **stated)


def test_bounds_of_very_small_numbers_may_be_stated() -> None:
    assert gb.Discovery(["a"], gb.Unit(), bounds={"a": (0, 1e-30)}).bounds == (("a", (0, 1e-30)),)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["b", "free"])
def test_a_target_and_weights_work_without_a_schema_even_of_a_column_that_is_left_out(
    target: str, tmp_path: Path
) -> None:
    rows = 2000
    frame = pl.DataFrame(
        {
            "a": ["x", "y"] * (rows // 2),
            "b": ["u", "u", "v", "v"] * (rows // 4),
            "free": [f"text {i}" for i in range(rows)],
        }
    )
    known = gb.Discovery(["a", "b", "free"], gb.Unit())
    method = gb.AdaptiveGibbs(
        epsilon=5, delta=1e-6, target=target, weights={"a": 2, ("a", "free"): 3}
    )

    release = gb.synthesize(
        frame, known, method, rows=100, ledger=gb.Ledger.ephemeral(), out=tmp_path / "out"
    )

    assert release.schema.ignore == ("free",)
    assert gb.verify(tmp_path / "out")


def test_a_target_that_is_no_column_is_refused_before_anything_is_charged() -> None:
    known = gb.Discovery(["a", "b"], gb.Unit())

    with pytest.raises(gb.GibbousError, match=r"Columns are a, b\."):
        gb.plan(known, gb.AdaptiveGibbs(epsilon=1, delta=1e-6, target="c"))


def test_a_bought_schema_that_was_changed_beside_the_ledger_is_bought_again(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 1000})
    known, ledger = gb.Discovery(["a"], gb.Unit()), tmp_path / "ledger.sqlite"

    def bought() -> gb.Schema:
        return gb.discover_schema(frame, known, epsilon=5, delta=1e-6, ledger=ledger)

    first = bought()
    (kept,) = (tmp_path / "ledger.sqlite.releases").glob("schema-*.toml")
    assert bought() == first
    kept.write_text(kept.read_text().replace('"x"', '"A"'))

    assert "A" not in bought().columns[0].levels
    assert len(gb.Ledger.open(ledger).entries()) == 4
