"""A metric in a separate package, found by its entry point, is computed like a built-in one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.errors import EngineFailure, UsageError
from gibbous.core.finding import Finding
from gibbous.evaluation import metrics
from gibbous.evaluation.measure import Measured, Metric, Options

PAGE = Path(__file__).parents[2] / "docs/how-to/new-metric.md"
SCHEMA = """
format = "gibbous-schema/1"
[unit]
kind = "row"
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 2
[[column]]
name = "sex"
kind = "binary"
levels = ["f", "m"]
"""
CARD = Metric("halo", "A halo", "utility", "lower", "Nothing.", "nobody", needs=("keys",))


@pytest.mark.slow
def test_the_metric_of_the_page_in_its_own_package_is_evaluated(tmp_path: Path) -> None:
    package = tmp_path / "project" / "crescent"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "mean_gap.py").write_text(_block("python"))
    (package.parent / "pyproject.toml").write_text(_block("toml"))
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--target", str(site), str(package.parent)],
        check=True,
    )  # fmt: skip
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "real.csv").write_text("age,sex\n20,f\n40,m\n")
    (tmp_path / "synthetic.csv").write_text("age,sex\n60,f\n70,m\n")
    call = [sys.executable, "-m", "gibbous", "evaluate", "real.csv", "synthetic.csv"]

    done = subprocess.run(
        [*call, "--schema", "schema.toml", "--metrics", "mean_gap", "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(site), *sys.path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["name"] == "mean_gap"
    assert finding["value"] == pytest.approx(0.35)
    assert finding["confidential"] is True
    assert {"bootstrap", "independent"} <= set(dict(finding["null"]))


def test_a_metric_says_what_it_needs_and_is_marked_as_confidential(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def findings(subject: Any, _: Options) -> list[Finding]:
        from gibbous.evaluation.measure import assemble

        return [assemble(CARD, [Measured(0.0)] * len(subject.sets), {}), _public(CARD)]

    _register(monkeypatch, SimpleNamespace(METRICS=(CARD,), findings=findings))
    table, schema = _table()

    found = gb.evaluate(table, table, schema, keys="sex", only="halo")

    assert [one.name for one in found] == ["halo", "halo"]
    assert all(one.confidential for one in found)
    assert gb.evaluate(table, table, schema, only="tv1").facts["left_out"] == {}
    with pytest.raises(UsageError, match=r"halo.*keys"):
        gb.evaluate(table, table, schema, only="halo")
    with pytest.raises(UsageError, match="Did you mean 'halo'"):
        gb.evaluate(table, table, schema, only="hallo")


@pytest.mark.parametrize(
    "thing", [SimpleNamespace(), SimpleNamespace(METRICS=(), findings=print)], ids=["no", "empty"]
)
def test_a_broken_metric_names_its_package(monkeypatch: pytest.MonkeyPatch, thing: Any) -> None:
    _register(monkeypatch, thing)
    table, schema = _table()

    with pytest.raises(EngineFailure, match=r"halo.*uninstall the package"):
        gb.evaluate(table, table, schema, only="halo")


def _register(monkeypatch: pytest.MonkeyPatch, thing: Any) -> None:
    monkeypatch.setattr(sys.modules[__name__], "HALO", thing, raising=False)
    point = EntryPoint("halo", f"{__name__}:HALO", metrics.GROUP)
    own = metrics._points()
    monkeypatch.setattr(metrics, "_points", lambda: own | {"halo": point})


def _public(card: Metric) -> Finding:
    return Finding(
        card.name, card.title, card.group, 1.0, card.better, "D.", "S", confidential=False
    )


def _table() -> tuple[Any, gb.Schema]:
    import polars as pl

    frame = pl.DataFrame({"age": [20.0, 40.0], "sex": ["f", "m"]})
    age = gb.Column("age", "numeric", edges=(0, 50, 100))
    return frame, gb.Schema((age, gb.Column("sex", "binary", levels=("f", "m"))))


def _block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
