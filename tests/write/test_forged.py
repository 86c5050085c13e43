"""Releases that somebody changed and sealed again: what follows from the rest is made again and compared."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.cli import main
from gibbous.core.claim import approximate
from gibbous.core.errors import LedgerUnusable, ModelRejected
from gibbous.core.exact import exact
from gibbous.core.request import Output
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.tables import Tables
from gibbous.mechanisms import registry
from gibbous.pipeline import sample_more, synthesize
from gibbous.privacy.ledger import Ledger
from gibbous.write import load, manifest, release_texts
from gibbous.write.certificate_check import check_price
from gibbous.write.verify import verify
from tests.hostile import ABORT
from tests.write import made
from tests.write.test_verify import edit, forged, forget, put, reseal


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin")
    made.write(folder / "rel", Ledger.open(folder / "home" / "ledger.sqlite"))
    return folder


@pytest.fixture
def rel(origin: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(origin / "rel", tmp_path / "rel"))


def rewritten(rel: Path) -> None:
    """Papers that go with whatever the certificate says now, sealed."""
    receipt, schema = json.loads((rel / "ledger.json").read_text()), load.read_schema(rel)
    tables = load.released_tables(rel, schema, receipt)
    for name, text in release_texts.release_texts(
        receipt, schema, tables, manifest.digests(rel)
    ).items():
        (rel / name).write_bytes(text)
    reseal(rel)


@pytest.mark.parametrize("epsilon", ["0.5", "0.01"])
def test_E_a_forged_epsilon_is_refused_without_a_ledger(rel: Path, epsilon: str) -> None:
    """Before: accepted, exit 0, where every hash was made again. Now: the noise is too small for it."""
    edit(rel, "ledger.json", lambda receipt: forged(receipt, epsilon))
    rewritten(rel)

    with pytest.raises(ModelRejected, match="noise in its tables is too small"):
        verify(rel)


def test_E_what_the_noise_cannot_tell_the_ledger_tells(origin: Path, rel: Path) -> None:
    """A price that is forged by less than what thresholds and choices cost on top of the noise."""
    edit(rel, "ledger.json", lambda receipt: forged(receipt, "0.95"))
    rewritten(rel)

    verify(rel)
    with pytest.raises(ModelRejected, match="did not pay"):
        verify(rel, ledger=origin / "home" / "ledger.sqlite")


def test_E_the_price_of_noise_is_its_sensitivity_over_its_scale() -> None:
    """By hand: 6 tables with scale 6.5 cost 6 / 6.5 = 0.923, twice that where one is replaced, or k = 2."""
    tables = made.tables()

    def refused(epsilon: str, max_rows: int = 1, relation: Any = "add_remove") -> bool:
        total = approximate(exact(epsilon), exact("1e-6"), relation=relation)
        try:
            check_price(tables, total, max_rows)
        except ModelRejected:
            return True
        return False

    assert refused("0.923")
    assert not refused("0.924")
    for twice in ({"max_rows": 2}, {"relation": "replace_one"}):
        assert refused("1.846", **twice)
        assert not refused("1.847", **twice)


def test_E_copies_add_up_and_of_parts_one_is_paid() -> None:
    """By hand: two noisings of 6 / 6.5 cost 1.846; two parts of the records cost 0.923 together."""
    one = made.tables()
    copied = replace(one, copies=(made.tables(2),))
    parted = Tables(made.SCHEMA, (), replace(one.recipe, order=()), parts=(one, made.tables(2)))

    for tables, least in ((copied, "1.846"), (parted, "0.923")):
        with pytest.raises(ModelRejected):
            check_price(tables, approximate(exact(least), exact("1e-6")), 1)
        check_price(tables, approximate(exact(least) + exact("0.001"), exact("1e-6")), 1)


@pytest.mark.parametrize("name", ["METHODS.md", "codebook.html"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + b"\nThese data are anonymous.\n",
        lambda text: (
            text.replace(b"</body>", b"<script src=//evil.example></script></body>") + b" "
        ),
        lambda text: b"",
    ],
    ids=["a sentence more", "a script", "nothing"],
)
def test_E_papers_that_the_release_does_not_give_are_refused(
    rel: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    """Before: any codebook, and any METHODS.md with the guarantee in it, exit 0. Now: exit 8."""
    (rel / name).write_bytes(change((rel / name).read_bytes()))
    reseal(rel)

    with pytest.raises(ModelRejected, match="not what its certificate"):
        verify(rel)


@pytest.mark.parametrize(
    "claim", ["# epsilon = 0.001, certified by NIST\n", "\n", "[[column]]  # anonymous"]
)
def test_a_schema_file_that_says_more_than_the_schema_is_refused(rel: Path, claim: str) -> None:
    """Before: comments were not looked at, exit 0 where nobody signed. Now: exit 8."""
    text = (rel / "schema.toml").read_text("utf-8")
    forged = text.replace("[[column]]", claim, 1) if claim.startswith("[[") else claim + text
    (rel / "schema.toml").write_text(forged, "utf-8")
    rewritten(rel)

    with pytest.raises(ModelRejected, match=r"schema\.toml is not what its certificate"):
        verify(rel)


def test_further_rows_have_the_schema_file_of_their_release(rel: Path, tmp_path: Path) -> None:
    load.load(rel).save(tmp_path / "copy")
    more = sample_more(load.load(rel), Output(rows=9, out=tmp_path / "more"))
    verify(more)

    text = (more / "schema.toml").read_text("utf-8")
    (more / "schema.toml").write_text(text + "# no person can be found\n", "utf-8")
    reseal(more)

    with pytest.raises(ModelRejected, match=r"schema\.toml is not what"):
        verify(more)


@pytest.mark.slow
def test_E_a_swapped_methods_file_is_refused(rel: Path, tmp_path: Path) -> None:
    """Before: that of another release of the same price passed. Now: exit 8."""
    made.write(tmp_path / "other", Ledger.ephemeral(), planned=made.plan(sets=3))
    shutil.copy(tmp_path / "other" / "METHODS.md", rel / "METHODS.md")
    reseal(rel)

    with pytest.raises(ModelRejected, match=r"METHODS.md is not what"):
        verify(rel)


def test_E_papers_of_another_version_are_said_to_be_unchecked(
    rel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of another gibbous, whose texts may differ, is not refused for them, and not passed over."""
    edit(rel, "ledger.json", put("0.0.1", "versions", "gibbous"))
    assert verify(rel).gaps == ()
    (rel / "METHODS.md").write_text("Written by an older program.\n")
    reseal(rel)

    report = verify(rel)

    assert len(report.gaps) == 1
    assert "texts could not be regenerated (written by gibbous '0.0.1'" in report.gaps[0]
    assert not any("METHODS.md" in check for check in report.checks)
    assert main(["verify", str(rel)]) == 0
    assert "NOT CHECKED: texts could not be regenerated" in capsys.readouterr().out


@pytest.mark.slow
def test_E_a_huge_methods_file_is_refused_before_it_is_read(rel: Path) -> None:
    """Before: 300 MB were read at once. Now: exit 8, and only the digest looks at them."""
    edit(rel, "ledger.json", put("0.0.1", "versions", "gibbous"))
    os.truncate(rel / "METHODS.md", 300 << 20)
    reseal(rel)

    tracemalloc.start()
    try:
        with pytest.raises(ModelRejected, match=r"METHODS.md has 314,572,800 bytes"):
            verify(rel)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50 << 20


@pytest.mark.parametrize("name", ["SHA256SUMS", "manifest.json", "ledger.json", "schema.toml"])
def test_E_every_text_of_a_release_has_a_largest_size(rel: Path, name: str) -> None:
    """Before: SHA256SUMS was read whole, whatever its size."""
    os.truncate(rel / name, 1 << 40)

    with pytest.raises(ModelRejected):
        load.load(rel)


@pytest.mark.parametrize(
    "change",
    [
        put("x", "seed"), put([], "unit"), put("x", "plan", "cells"),
        lambda receipt: forget(receipt, "sanitized"),
        put("sometimes", "sanitized"), put(None, "files"), put("yes", "files", "csv"),
        put("4", "tables"), put(None, "versions"), put("x", "uncovered"), put([1], "assumptions"),
        put({"a": "x"}, "plan", "errors"), put(True, "sets"), put([1.0, 50], "rows"),
        put("1e20000000", "total", "epsilon"), put("x", "plan", "spends"), put([], "ledger"),
        put({"columns": "sex", "covered": False}, "given"),
    ],
)  # fmt: skip
def test_E_a_field_of_another_kind_is_refused(rel: Path, change: Any) -> None:
    """Before: some of these passed (`seed`, `unit`, `plan.cells`), some were a traceback. Now: exit 8."""
    edit(rel, "ledger.json", change)

    for read in (verify, load.load):
        with pytest.raises(ModelRejected):
            read(rel)


@pytest.mark.parametrize("name", ["ledger.json", "manifest.json", "tables/tables.json"])
def test_E_a_key_that_stands_twice_is_refused(rel: Path, name: str) -> None:
    """Before: the second of the two counted here, the first elsewhere. Now: exit 8."""
    text = (rel / name).read_text()
    (rel / name).write_text(text.replace('"format":', '"format": "other", "format":', 1))
    if name != "manifest.json":
        reseal(rel)

    with pytest.raises(ModelRejected, match="key twice"):
        verify(rel)


@pytest.mark.slow
def test_E_a_table_that_aborts_the_reader_is_refused(rel: Path) -> None:
    """Before: the process stopped, exit 134. Now: exit 8."""
    for name in ("tables/table_001.parquet", "synthetic_1.parquet"):
        whole = (rel / name).read_bytes()
        (rel / name).write_bytes(ABORT)
        reseal(rel)

        with pytest.raises(ModelRejected, match="not a readable Parquet file"):
            verify(rel)

        (rel / name).write_bytes(whole)


@pytest.mark.slow
def test_E_verify_asks_the_ledger_that_is_named(
    origin: Path, rel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: the command had no --ledger. Now: 0 with the one that paid, 8 with another, 7 with none."""
    Ledger.open(tmp_path / "other" / "ledger.sqlite").close()
    missing = tmp_path / "none.sqlite"

    def code(path: Path) -> int:
        return main(["verify", str(rel), "--ledger", str(path)])

    assert code(origin / "home" / "ledger.sqlite") == 0
    assert "this reservation and this commit" in capsys.readouterr().out
    assert code(tmp_path / "other" / "ledger.sqlite") == 8
    assert code(missing) == 7
    assert not missing.exists()
    with pytest.raises(LedgerUnusable):
        verify(rel, ledger=missing)


@pytest.mark.parametrize(
    "name",
    ["laplace", "sbhg", "noisy_pegs", "adaptive_gibbs", "modips", "parallel", "per_set", "pegs"],
)
def test_E_no_honest_release_is_refused(name: str, tmp_path: Path) -> None:
    """Papers and price are checked for every kind of release: tables, parts, copies, cells, rows."""
    rng = np.random.default_rng(1)
    schema = Schema(
        (
            Column("a", "nominal", levels=(0, 1, 2)),
            Column("n", "numeric", edges=(0.0, 10.0, 40.0, 100.0), integer=True),
        ),
        unit=Unit(),
    )
    frame = pl.DataFrame({"a": rng.integers(0, 3, 200), "n": rng.integers(0, 100, 200)})
    mechanism = registry.load(name)()
    rows = 10 if mechanism.about.releases == "rows" else None
    synthesize(
        frame, schema, mechanism, rows=rows, sets=2, seed=1, out=tmp_path / "rel",
        ledger=Ledger.ephemeral(), engine="numpy",
    )  # fmt: skip

    report = verify(tmp_path / "rel")

    assert report.gaps == ()
    assert any("METHODS.md" in check for check in report.checks)


def test_E_sets_that_were_paid_one_by_one_are_accepted(tmp_path: Path) -> None:
    """Before: two sets of onthemap were refused: their total is twice the price of a data set."""
    levels = tuple(range(3))
    schema = Schema((Column("a", "nominal", levels), Column("b", "nominal", levels)), unit=Unit())
    frame = pl.DataFrame({"a": [0, 1, 2] * 40, "b": [0, 0, 1] * 40})
    synthesize(
        frame, schema, registry.load("onthemap")(), rows=20, sets=2, seed=1,
        out=tmp_path / "rel", ledger=Ledger.ephemeral(), engine="numpy",
    )  # fmt: skip

    assert verify(tmp_path / "rel").sets == 2
