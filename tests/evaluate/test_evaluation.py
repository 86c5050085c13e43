"""One evaluation as a whole: what it finds, what it says it left out, and how it answers mistakes."""

from __future__ import annotations

import importlib
import json
import math
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import (
    EngineFailure,
    GibbousError,
    InputRejected,
    OutputNotWritten,
    SchemaMismatch,
    UsageError,
)
from gibbous.core.extras import need, require
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.evaluation import write_findings
from gibbous.evaluation.findings import Findings
from gibbous.evaluation.measure import NOTHING, Metric
from gibbous.evaluation.metrics import card, left_out, names
from gibbous.reporting.evaluate_and_report import evaluate

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=(0, 20, 40, 60, 100), integer=True),
        Column("sex", "binary", levels=("f", "m")),
        Column("ward", "nominal", levels=("a", "b", "c"), missing=True),
        Column("stay", "numeric", edges=(0, 2, 5, 50), missing=True),
        Column("died", "binary", levels=("no", "yes")),
    )
)
COUNTING = ("tv1", "tv2", "marginal_distance", "association", "correlation", "u_distance")


@pytest.mark.slow
def test_every_finding_that_the_options_allow_is_made() -> None:
    found = evaluate(
        _frame(1, 240),
        [_frame(2, 200), _frame(3, 200)],
        SCHEMA,
        keys=("age", "sex"),
        sensitive="stay",
        targets=("died", "stay"),
        formulas="stay ~ age + sex",
        holdout=_frame(4, 150),
    )

    assert {one.name for one in found} == set(names())
    assert found.facts["left_out"] == {}
    assert found.facts["rows"] == {"real": 240, "synthetic": [200, 200], "holdout": 150}
    assert found.facts["keys"] == ["age", "sex"]
    order = [one.group for one in found]
    assert order == sorted(order, reverse=True)  # utility, then risk
    for one in found:
        assert len(one.sets) == 2
        assert one.definition.endswith(".")
        assert one.source
        assert one.confidential
        assert not math.isnan(one.value) or one.note
        assert len({tuple(row) for row in one.detail}) <= 1
    json.dumps(found.to_json(), allow_nan=False)
    assert len(found.frame()) == len(found)


def test_without_options_what_needs_them_is_left_out_and_named() -> None:
    found = evaluate(_frame(1, 120), _frame(2, 100), SCHEMA, only=("utility",))

    left = found.facts["left_out"]
    assert left["tstr"] == "targets"
    assert left["coefficients"] == "formulas"
    assert "disco" not in left  # risk was not asked for
    assert left_out(["disco"], SCHEMA, NOTHING)["disco"] == "keys and a sensitive column"
    assert not {one.name for one in found} & set(left)
    assert {"tv1", "pmse"} <= {one.name for one in found}
    assert {one.group for one in found} == {"utility"}


def test_only_computes_what_is_asked_for() -> None:
    stages: list[tuple[str, int, int]] = []

    found = evaluate(
        _frame(1, 90),
        _frame(2, 90),
        SCHEMA,
        only=("tv2", "association"),
        progress=lambda *stage: stages.append(stage),
    )

    assert [one.name for one in found] == ["tv2", "association"]
    assert stages[:2] == [("read", 0, 1), ("read", 1, 1)]
    assert stages[2:] == [("compare", 0, 2), ("compare", 1, 2), ("compare", 2, 2)]
    assert set(found.facts["elapsed_s"]) == {"all", "margins", "association"}


def test_the_same_request_gives_the_same_findings_and_another_seed_other_references() -> None:
    def made(seed: int) -> list[object]:
        return evaluate(_frame(1, 150), _frame(2, 150), SCHEMA, only=COUNTING, seed=seed).to_json()[
            "findings"
        ]

    assert made(5) == made(5)
    assert made(5) != made(6)


def test_every_card_of_a_module_is_registered_under_its_name() -> None:
    """A new built-in metric is added to metrics.BUILT_IN, or this fails."""
    assert {metric.name for metric in _metrics()} == set(names())
    assert [card(name).name for name in names()] == list(names())


def test_every_metric_is_on_the_page_of_metrics_with_its_direction() -> None:
    page = Path(__file__).parents[2] / "docs/reference/metrics.md"
    rows = [line.split("|")[1:3] for line in page.read_text().splitlines() if line[:3] == "| `"]

    for metric in _metrics():
        said = [row[1].split()[0] for row in rows if f"`{metric.name}`" in row[0]]
        assert metric.better in said, metric.name


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: evaluate(f, f, SCHEMA, keys=("agee",)), UsageError, r"keys.*'agee'.*age, sex"),
        (lambda f: evaluate(f, f, SCHEMA, sensitive="x"), UsageError, r"sensitive.*'x'"),
        (lambda f: evaluate(f, f, SCHEMA, targets="x"), UsageError, r"targets.*'x'"),
        (lambda f: evaluate(f, f, SCHEMA, given="x"), UsageError, r"given.*'x'"),
        (lambda f: evaluate(f, f, SCHEMA, keys=("age", "age")), UsageError, "more than once"),
        (
            lambda f: evaluate(f, f, SCHEMA, keys=("age", "sex"), sensitive="sex"),
            UsageError,
            "keys and sensitive",
        ),
        (lambda f: evaluate(f, f, SCHEMA, formulas="stay ~ nothing"), UsageError, "nothing"),
        (lambda f: evaluate(f, f, SCHEMA, fraction=0.0), UsageError, "fraction is 0"),
        (lambda f: evaluate(f, f, SCHEMA, fraction=1.5), UsageError, "fraction is 1.5"),
        (lambda f: evaluate(f, f, SCHEMA, only="tv9"), UsageError, r"'tv9'.*tv1, tv2.*groups"),
        (lambda f: evaluate(f, f, SCHEMA, only="tstr"), UsageError, "tstr.*targets"),
        (lambda f: evaluate(f, f, SCHEMA, keys="age", only="cap"), UsageError, "cap.*sensitive"),
        (lambda f: evaluate(f, [], SCHEMA), UsageError, "no synthetic set"),
        (lambda f: evaluate(f, f.head(0), SCHEMA), UsageError, "synthetic table has no rows"),
        (lambda f: evaluate(f.head(0), f, SCHEMA), UsageError, "real table has no rows"),
        (
            lambda f: evaluate(f, f, SCHEMA, holdout=f.head(0)),
            UsageError,
            "holdout table has no rows",
        ),
        (lambda f: evaluate(f, f.drop("ward"), SCHEMA), SchemaMismatch, "ward"),
        (
            lambda f: evaluate(f.with_columns(extra=1), f, SCHEMA),
            SchemaMismatch,
            "extra",
        ),
        (
            lambda f: evaluate(f, f.with_columns(sex=pl.lit("secret-x")), SCHEMA),
            SchemaMismatch,
            "sex",
        ),
        (
            lambda f: evaluate(f.with_columns(age=pl.lit(None, pl.Int64)), f, SCHEMA),
            SchemaMismatch,
            r"age.*missing",
        ),
        (lambda f: evaluate(f, Path("absent.parquet"), SCHEMA), InputRejected, "absent"),
    ],
    ids=lambda value: "" if callable(value) else str(getattr(value, "__name__", value)),
)
def test_mistakes_are_answered_with_what_is_wrong_and_no_value(
    call: Callable[[pl.DataFrame], object], error: type[GibbousError], words: str
) -> None:
    with pytest.raises(error, match=rf"(?s){words}") as caught:
        call(_frame(1, 40))

    assert "secret-x" not in str(caught.value)
    assert caught.value.allowed
    assert caught.value.fix


def test_mistakes_in_names_are_found_before_any_row_is_read() -> None:
    with pytest.raises(UsageError, match="'agee'"):
        evaluate(Path("absent.parquet"), Path("absent.parquet"), SCHEMA, keys="agee")


def test_a_column_that_is_missing_throughout_is_compared_like_any_other() -> None:
    empty = [pl.lit(None, pl.Float64).alias("stay"), pl.lit(None, pl.String).alias("ward")]
    real = _frame(1, 80).with_columns(empty)

    found = evaluate(
        real,
        _frame(2, 80),
        SCHEMA,
        keys=("age", "ward"),
        sensitive="stay",
        targets=("stay", "ward"),
        formulas="stay ~ age",
        holdout=_frame(4, 40).with_columns(empty),
    )

    assert found["tv1"].value > 0.1
    assert all(not math.isnan(one.value) or one.note for one in found)


def test_one_row_on_each_side_is_enough() -> None:
    found = evaluate(
        _frame(1, 1),
        _frame(2, 1),
        SCHEMA,
        keys=("age",),
        sensitive="died",
        targets=("died",),
        formulas="stay ~ age",
    )

    assert all(not math.isnan(one.value) or one.note for one in found)
    assert found["tv1"].interval is None


def test_a_release_is_compared_under_the_schema_it_was_made_with(tmp_path: Path) -> None:
    release = gb.synthesize(
        _frame(1, 60),
        SCHEMA,
        gb.NoisyPegs(epsilon=1, delta=1e-6),
        rows=50,
        sets=2,
        seed=1,
        out=tmp_path / "release",
        ledger=gb.Ledger.ephemeral(),
    )

    for source in (release, tmp_path / "release", [release]):
        found = evaluate(_frame(1, 60), source, SCHEMA, only="tv1")
        assert len(found["tv1"].sets) == 2
        assert found.facts["releases"][0]["method"] == "noisy_pegs"
        assert found.facts["releases"][0]["claim"]["epsilon"] == "1"
    changed = replace(SCHEMA["age"], edges=(0, 30, 60, 100))
    other = replace(SCHEMA, columns=(changed, *SCHEMA.columns[1:]))
    with pytest.raises(SchemaMismatch, match=r"differ.*'age'.*schema\.toml"):
        evaluate(_frame(1, 60), release, other)
    fewer = replace(SCHEMA, columns=SCHEMA.columns[:-1])
    with pytest.raises(SchemaMismatch, match=r"only in the release: 'died'"):
        evaluate(_frame(1, 60), release, fewer)


def test_findings_are_written_once_for_their_owner(tmp_path: Path) -> None:
    found = evaluate(_frame(1, 40), _frame(2, 40), SCHEMA, only="tv1")

    path = write_findings(found, tmp_path / "findings.json")

    assert json.loads(path.read_text()) == json.loads(json.dumps(found.to_json()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OutputNotWritten):
        write_findings(Findings((), {}), path)


def test_a_missing_library_is_answered_with_the_command_that_brings_it() -> None:
    with pytest.raises(EngineFailure, match=r'nothing_like_it.*pip install "gibbous\[report\]"'):
        need("nothing_like_it.inside", "report")
    with pytest.raises(EngineFailure, match=r'pip install "gibbous\[evaluate\]"'):
        require(("numpy", "nothing_like_it"), "evaluate")

    assert need("numpy.linalg", "evaluate") is np.linalg
    require(("numpy",), "evaluate")


def test_a_library_that_misses_a_part_of_its_own_is_not_called_absent() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"numpy\.nothing"):
        need("numpy.nothing", "evaluate")


def _metrics() -> list[Metric]:
    values = [value for module in _modules() for value in vars(module).values()]
    items = [i for value in values for i in (value if isinstance(value, tuple) else (value,))]
    return [item for item in items if isinstance(item, Metric)]


def _modules() -> list[object]:
    parents = ("gibbous.evaluation.utility", "gibbous.evaluation.risk")
    found = []
    for parent in parents:
        folder = Path(str(importlib.import_module(parent).__file__)).parent
        found += [
            importlib.import_module(f"{parent}.{path.stem}")
            for path in sorted(folder.glob("*.py"))
            if path.stem != "__init__"
        ]
    return found


def _frame(seed: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    ward = np.where(rng.random(rows) < 0.3, 0, rng.integers(0, 3, rows))
    stay = np.clip(rng.gamma(2, 1 + age / 40), 0, 49.9)
    return pl.DataFrame(
        {
            "age": age,
            "sex": np.where(rng.random(rows) < 0.5, "f", "m"),
            "ward": [
                None if u < 0.1 else "abc"[w] for u, w in zip(rng.random(rows), ward, strict=True)
            ],
            "stay": [None if u < 0.1 else s for u, s in zip(rng.random(rows), stay, strict=True)],
            "died": np.where(rng.random(rows) < 0.1 + age / 300, "yes", "no"),
        },
        schema_overrides={"stay": pl.Float64, "ward": pl.String},
    )
