"""The main job end to end: schema and table in, charged and verified release out."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import (
    BudgetExhausted,
    OutputNotWritten,
    ParameterError,
    PrivacyRefused,
    SchemaMismatch,
    UsageError,
)
from gibbous.core.request import Output
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.pipeline import sample_more
from gibbous.write.load import load

SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("region", "nominal", levels=("01", "02", "NA"), missing=True),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 60.0, 100.0), integer=True),
    ),
    name="tiny",
)


def table(rows: int = 600) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sex": ["f" if i % 3 else "m" for i in range(rows)],
            "region": [("01", "02", "NA", None)[i % 4] for i in range(rows)],
            "age": [(i * 7) % 100 for i in range(rows)],
        }
    )


@pytest.fixture
def ledger() -> Any:
    return gb.Ledger.ephemeral()


def test_release_in_memory_has_sets_inside_the_schema(ledger: Any) -> None:
    release = gb.synthesize(
        table(), SCHEMA, gb.NoisyPegs(epsilon=2.0), rows=300, sets=2, seed=1, ledger=ledger
    )

    assert [len(s) for s in release.sets] == [300, 300]
    assert release.sets[0].columns == ["sex", "region", "age"]
    assert set(release.sets[0]["region"].unique()) <= {"01", "02", "NA", None}
    assert release.sets[0]["age"].is_between(0, 100).all()
    assert not release.sets[0].equals(release.sets[1])


def test_the_ledger_is_charged_once_with_the_total_of_the_plan(ledger: Any) -> None:
    method = gb.Sbhg(epsilon=1.0, delta=1e-4)
    release = gb.synthesize(table(), SCHEMA, method, rows=10, sets=3, ledger=ledger)

    entries = ledger.entries()
    assert len([e for e in entries if e.kind == "reserve"]) == 1
    assert release.claim.epsilon == Fraction(1)


def test_the_number_of_rows_defaults_to_a_noisy_count(ledger: Any) -> None:
    sizes = {
        len(gb.synthesize(table(), SCHEMA, gb.Laplace(epsilon=1.0), ledger=ledger).sets[0])
        for _ in range(6)
    }

    # The sum of 32 geometric cells has sd 8; six equal values have probability below 1e-6.
    assert len(sizes) > 1
    assert all(abs(size - 600) < 200 for size in sizes)


def test_more_rows_from_the_public_tables_cost_nothing(ledger: Any) -> None:
    release = gb.synthesize(table(), SCHEMA, gb.NoisyPegs(), rows=50, seed=3, ledger=ledger)
    before = len(ledger.entries())

    more = release.sample(1000, seed=8)

    assert len(more) == 1000
    assert more.equals(release.sample(1000, seed=8))
    assert len(ledger.entries()) == before


@pytest.mark.parametrize(
    "asked", [{"rows": -1}, {"rows": 2.5}, {"rows": "3"}, {"rows": 3, "seed": "x"}]
)
def test_further_rows_and_their_seed_are_whole_numbers(asked: Any, ledger: Any) -> None:
    release = gb.synthesize(table(), SCHEMA, gb.Laplace(), rows=5, ledger=ledger)

    with pytest.raises(UsageError, match="whole number"):
        release.sample(**asked)
    assert len(release.sample(np.int64(3), seed=np.int64(1))) == 3


def test_g1_a_seed_fixes_sampling_and_never_noise(ledger: Any) -> None:
    one, two = (
        gb.synthesize(table(), SCHEMA, gb.NoisyPegs(), rows=50, seed=3, ledger=ledger)
        for _ in range(2)
    )

    # Columns are chosen with noise, so even shapes may differ; all cells agree with chance below 1e-9.
    a, b = ([t.cells.values.tolist() for t in r.tables.items + r.tables.extra] for r in (one, two))
    assert a != b


def test_inferred_facts_are_refused_under_a_claim_unless_accepted(ledger: Any) -> None:
    schema = Schema(
        (Column("sex", "binary", levels=("f", "m"), sources=(("levels", "inferred"),)),)
    )
    data = table().select("sex")

    with pytest.raises(PrivacyRefused, match="levels of sex"):
        gb.synthesize(data, schema, gb.NoisyPegs(), rows=5, ledger=ledger)
    release = gb.synthesize(
        data, schema, gb.NoisyPegs(), rows=5, ledger=ledger, accept_inferred=True
    )

    assert release.receipt["uncovered"] == ["sex: levels"]


def test_h2_an_exhausted_cap_is_refused_before_counting(tmp_path: Path) -> None:
    class Exploding(LocalEngine):
        def tally(self, *args: object, **kwargs: object) -> Any:
            raise AssertionError("records were counted")

    ledger = gb.Ledger.ephemeral()
    first = LocalEngine()
    dataset = first.scan(table(), SCHEMA, key=ledger.key)
    ledger.cap(dataset, Fraction(10), Fraction(0))

    with pytest.raises(BudgetExhausted):
        gb.synthesize(
            table(), SCHEMA, gb.Pegs(epsilon=1.0), rows=500, ledger=ledger, engine=Exploding()
        )


def test_h2_a_file_that_the_ledger_knows_is_refused_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, source = gb.Ledger.ephemeral(), tmp_path / "data.csv"
    table().write_csv(source)
    gb.synthesize(source, SCHEMA, gb.Laplace(epsilon=1.0), rows=5, ledger=ledger)
    dataset = ledger.entries()[0].dataset
    ledger.cap(dataset, Fraction(3), Fraction(0))

    def opened(*args: object, **kwargs: object) -> Any:
        raise AssertionError("the file was opened")

    monkeypatch.setattr(LocalEngine, "scan", opened)
    with pytest.raises(BudgetExhausted):
        gb.synthesize(source, SCHEMA, gb.Pegs(epsilon=1.0), rows=500, ledger=ledger, engine="numpy")


def test_h11_the_same_file_stays_the_same_data_set_under_another_null_token(tmp_path: Path) -> None:
    ledger, source = gb.Ledger.ephemeral(), tmp_path / "data.csv"
    table().write_csv(source, null_value="?")
    for null in ("?", "none"):
        schema = Schema(
            (*SCHEMA.columns[:1], Column("region", "nominal", levels=("01", "02", "NA"), other="x"),
             SCHEMA.columns[2]) if null == "none" else SCHEMA.columns,
            null=null,
        )  # fmt: skip
        gb.synthesize(source, schema, gb.Laplace(epsilon=1.0), rows=5, ledger=ledger)

    assert len(ledger.accounts()) == 1


def test_a_row_method_states_the_total_of_the_file() -> None:
    plan = gb.plan(SCHEMA, gb.Pegs(epsilon=1.0), rows=500)

    assert plan.headline() == "epsilon = 1 per row: 500 rows cost 500"
    assert plan.total.epsilon == 500


def test_a_budget_that_does_not_cover_the_file_is_refused_before_reading() -> None:
    class Unopened:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("the source was touched")

    with pytest.raises(BudgetExhausted, match="500"):
        gb.synthesize(Unopened(), SCHEMA, gb.Pegs(epsilon=1.0), rows=500, budget=10)


def test_e1_to_e6_privacy_parameters_outside_their_range_are_refused() -> None:
    for epsilon in (0, -1.0, float("nan"), float("inf"), 1e-320, 1e9):
        with pytest.raises(PrivacyRefused):
            gb.plan(SCHEMA, gb.Laplace(epsilon=epsilon), rows=100)
    for delta in (0.0, 1.0, -0.5, float("nan"), 0.02):
        with pytest.raises(PrivacyRefused):
            gb.plan(SCHEMA, gb.Sbhg(epsilon=1.0, delta=delta), rows=100)


def test_e4_an_explicit_word_allows_a_large_epsilon() -> None:
    plan = gb.plan(SCHEMA, gb.Laplace(epsilon=1e4), rows=100, understand=True)

    assert plan.total.epsilon == 10**4


def test_e7_a_budget_is_read_as_its_decimal_text() -> None:
    assert gb.plan(SCHEMA, gb.Laplace(epsilon=0.1), rows=9).total.epsilon == Fraction(1, 10)


def test_c9_an_undeclared_level_is_refused_before_any_charge(ledger: Any) -> None:
    bad = table().with_columns(pl.lit("Zaphod-SECRET-7").alias("sex"))

    with pytest.raises(SchemaMismatch) as caught:
        gb.synthesize(bad, SCHEMA, gb.NoisyPegs(), rows=5, ledger=ledger)

    assert "Zaphod" not in str(caught.value)
    assert ledger.entries() == ()


def test_an_unset_privacy_unit_is_refused() -> None:
    schema = Schema(SCHEMA.columns, unit=None)

    with pytest.raises((PrivacyRefused, UsageError), match="unit"):
        gb.plan(schema, gb.NoisyPegs(), rows=5)


def test_a_person_unit_costs_its_rows(ledger: Any) -> None:
    schema = Schema(SCHEMA.columns, unit=Unit("person", "who", 2))
    data = table().with_columns(pl.Series("who", [i // 3 for i in range(600)]))
    release = gb.synthesize(data, schema, gb.Laplace(epsilon=1.0), rows=20, ledger=ledger)

    # Two rows a person: the noise is twice as wide, and at most two of three rows are counted.
    assert release.tables.items[0].noise.scale == pytest.approx(2.0)
    assert abs(release.tables.items[0].cells.values.sum() - 400) < 150


def test_impossible_combinations_are_never_drawn(ledger: Any) -> None:
    schema = Schema(SCHEMA.columns, impossible=(Impossible((("sex", (1,)), ("region", (0,)))),))
    data = table().filter(~((pl.col("sex") == "m") & pl.col("region").eq_missing("01")))
    for method in (gb.NoisyPegs(epsilon=0.5), gb.Laplace(epsilon=0.5)):
        rows = gb.synthesize(data, schema, method, rows=3000, ledger=ledger).sets[0]

        assert rows.filter((pl.col("sex") == "m") & pl.col("region").eq_missing("01")).is_empty()


def test_a_package_is_written_verified_and_loaded(tmp_path: Path, ledger: Any) -> None:
    out = tmp_path / "release"
    source = tmp_path / "data.csv"
    table().write_csv(source)
    gb.synthesize(
        source, SCHEMA, gb.Sbhg(epsilon=1.0, delta=1e-4), rows=70, sets=2, seed=7, out=out,
        format="csv", ledger=ledger,
    )  # fmt: skip

    gb.verify(out)
    loaded = gb.load(out)

    assert {p.name for p in out.iterdir()} >= {
        "synthetic_1.parquet", "synthetic_2.csv", "schema.toml", "tables", "ledger.json",
        "METHODS.md", "manifest.json", "SHA256SUMS",
    }  # fmt: skip
    assert [len(s) for s in loaded.sets] == [70, 70]
    assert loaded.sample(70, seed=7).equals(loaded.sets[0])
    assert json.loads((out / "ledger.json").read_text())["total"]["epsilon"] == "1"


def test_i1_an_existing_output_is_refused_before_the_charge(tmp_path: Path, ledger: Any) -> None:
    (tmp_path / "release").mkdir()

    with pytest.raises(OutputNotWritten):
        gb.synthesize(
            table(), SCHEMA, gb.NoisyPegs(), rows=5, out=tmp_path / "release", ledger=ledger
        )

    assert ledger.entries() == ()


def test_nothing_is_written_into_a_release(tmp_path: Path, ledger: Any) -> None:
    release = tmp_path / "release"
    gb.synthesize(table(), SCHEMA, gb.NoisyPegs(), rows=5, out=release, ledger=ledger)
    inside = (release / "more", release / "more.csv", release / "tables" / "more")

    for out in inside:
        with pytest.raises(OutputNotWritten, match="inside the release"):
            sample_more(load(release), Output(5, out=out))
        with pytest.raises(OutputNotWritten, match="inside the release"):
            gb.synthesize(table(), SCHEMA, gb.NoisyPegs(), rows=5, out=out, ledger=ledger)

    gb.verify(release)
    assert len(ledger.entries()) == 2  # one reservation and its commit


@pytest.mark.parametrize(("strict", "charges"), [(False, 1), (True, 2)])
def test_a_run_that_died_before_its_tables_is_charged_again_only_when_that_is_asked_for(
    strict: bool, charges: int, tmp_path: Path
) -> None:
    class Dying(LocalEngine):
        def tally(self, *args: object, **kwargs: object) -> Any:
            raise KeyboardInterrupt

    ledger = gb.Ledger.open(tmp_path / "home" / "ledger.sqlite")
    ask = {"rows": 9, "seed": 1, "out": tmp_path / "release", "ledger": ledger, "strict": strict}
    with pytest.raises(KeyboardInterrupt):
        gb.synthesize(table(), SCHEMA, gb.Laplace(epsilon=1), engine=Dying(), **ask)

    gb.synthesize(table(), SCHEMA, gb.Laplace(epsilon=1), engine=LocalEngine(), **ask)

    states = [posting.state for posting in ledger.accounts()[0].releases]
    assert states == ["open"] * (charges - 1) + ["committed"]
    assert ledger.accounts()[0].totals[0].epsilon == charges


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_sets_come_back_as_the_kind_that_went_in(kind: str, ledger: Any) -> None:
    frame: Any = table()
    frame = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "polars": frame.clone}[kind]()

    release = gb.synthesize(frame, SCHEMA, gb.NoisyPegs(), rows=20, ledger=ledger)

    assert type(release.sets[0]) is type(frame)
    assert type(release.sample(5, seed=1)) is type(frame)


def test_c18_one_rare_row_changes_no_public_byte_except_through_noise(
    tmp_path: Path, ledger: Any
) -> None:
    files = []
    for name, data in (("a", table()), ("b", table(601))):
        gb.synthesize(
            data, SCHEMA, gb.Laplace(), rows=30, seed=1, out=tmp_path / name, ledger=ledger
        )
        files.append({p.name: p for p in (tmp_path / name).rglob("*") if p.is_file()})

    assert files[0].keys() == files[1].keys()
    for same in ("schema.toml", "METHODS.md"):
        assert files[0][same].read_bytes() == files[1][same].read_bytes()


class TestSynthesizer:
    def test_fit_and_sample(self, ledger: Any) -> None:
        model = gb.Synthesizer(gb.NoisyPegs(), seed=2, ledger=ledger).fit(table(), SCHEMA)

        assert len(model.sample(17)) == 17
        assert model.claim_.epsilon == 1
        assert model.set_params(seed=3).get_params()["seed"] == 3

    def test_never_hands_out_more_rows_than_were_paid_for(self, ledger: Any) -> None:
        model = gb.Synthesizer(gb.Pegs(epsilon=1.0), ledger=ledger).fit(table(), SCHEMA, rows=10)

        assert len(model.sample(6)) == 6
        with pytest.raises(UsageError, match="n >= 0"):
            model.sample(-3)
        with pytest.raises(PrivacyRefused, match="NoisyPegs"):
            model.sample(5)

    def test_a_row_method_needs_rows(self, ledger: Any) -> None:
        with pytest.raises(ParameterError):
            gb.Synthesizer(gb.Pegs(epsilon=1.0), ledger=ledger).fit(table(), SCHEMA)

    def test_unknown_parameters_are_answered(self) -> None:
        with pytest.raises(UsageError, match="method"):
            gb.Synthesizer().set_params(random_state=1)
