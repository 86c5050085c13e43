"""The release package: whole or absent, private, the same bytes for the same seed, never charged twice."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gibbous.core.claim import l_diverse, no_claim
from gibbous.core.errors import OutputNotWritten, PrivacyRefused, ResourceLimit, UsageError
from gibbous.core.request import Output
from gibbous.core.schema import Column, Schema
from gibbous.privacy.ledger import Ledger
from gibbous.write.load import load
from gibbous.write.output_path import check_output
from gibbous.write.release_digest import digest_of
from gibbous.write.sampled_rows import write_file
from gibbous.write.sidecars import SIDECARS
from gibbous.write.verify import verify
from tests.needs import need
from tests.write import made
from tests.write.nursery import Child, Connection


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.ephemeral()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_package_has_the_files_of_the_reference_and_nothing_beside_it(
    tmp_path: Path, ledger: Ledger
) -> None:
    release = made.write(tmp_path / "rel", ledger, format="csv")

    assert set(contents(tmp_path / "rel")) == {
        "synthetic_1.parquet", "synthetic_2.parquet", "synthetic_1.csv", "synthetic_2.csv",
        "schema.toml", "codebook.html", *SIDECARS, "METHODS.md", "ledger.json", "manifest.json", "SHA256SUMS",
        "tables/tables.json", "tables/extra_001.parquet",
        *(f"tables/table_00{i}.parquet" for i in range(1, 6)),
    }  # fmt: skip
    assert os.listdir(tmp_path) == ["rel"]
    assert [len(s) for s in release.sets] == [50, 50]


def test_the_digests_are_what_sha256sum_reads(tmp_path: Path, ledger: Ledger) -> None:
    need("sha256sum")
    made.write(tmp_path / "rel", ledger)

    done = subprocess.run(
        ["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path / "rel", check=False
    )
    assert done.returncode == 0


def test_the_same_seed_gives_the_same_bytes_except_the_ledger_entry(
    tmp_path: Path, ledger: Ledger
) -> None:
    for name in ("a", "b"):
        made.write(tmp_path / name, ledger, format="csv")

    a, b = contents(tmp_path / "a"), contents(tmp_path / "b")
    differ = {name for name in a if a[name] != b[name]}
    assert differ == {"ledger.json", "manifest.json", "SHA256SUMS"}
    one, two = (json.loads(files["ledger.json"]) for files in (a, b))
    assert {k for k in one if one[k] != two[k]} == {"ledger"}


def test_i11_files_are_private_under_an_open_umask(tmp_path: Path, ledger: Ledger) -> None:
    before = os.umask(0)
    try:
        made.write(tmp_path / "rel", ledger, format="csv")
    finally:
        os.umask(before)

    found = [tmp_path / "rel", *(tmp_path / "rel").rglob("*")]
    modes = {p.is_dir(): stat.S_IMODE(p.stat().st_mode) for p in found}
    assert modes == {True: 0o700, False: 0o600}


def test_i1_an_existing_output_is_refused_unless_it_may_be_replaced(
    tmp_path: Path, ledger: Ledger
) -> None:
    made.write(tmp_path / "rel", ledger)
    before = contents(tmp_path / "rel")

    with pytest.raises(OutputNotWritten) as caught:
        made.write(tmp_path / "rel", ledger, result=made.tables(2))
    assert caught.value.exit_code == 9
    assert contents(tmp_path / "rel") == before

    made.write(tmp_path / "rel", ledger, result=made.tables(2), overwrite=True)
    assert contents(tmp_path / "rel") != before
    verify(tmp_path / "rel")
    assert os.listdir(tmp_path) == ["rel"]


def test_i1_overwrite_replaces_a_release_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("work of years")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "home")

    for name in ("home", "file", "link"):
        with pytest.raises(OutputNotWritten):
            check_output(tmp_path / name, overwrite=True)
    assert (tmp_path / "home" / "thesis.tex").exists()


def test_i2_a_missing_or_read_only_parent_is_refused_at_plan_time(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritten):
        check_output(tmp_path / "no" / "rel")
    need("/proc")
    with pytest.raises(OutputNotWritten):
        check_output("/proc/rel")


def test_i7_the_output_is_never_the_input(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a\n1\n")
    os.link(data, tmp_path / "hard.csv")
    (tmp_path / "folder").mkdir()
    inside = tmp_path / "folder" / "data.csv"
    inside.write_text("a\n1\n")

    for out, source in (
        (data, data), (tmp_path / "hard.csv", data), (tmp_path / "folder", str(inside)),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            check_output(out, overwrite=True, source=source)
        assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a\0b", "a\nb", "a\udcff"])
def test_i13_an_unusable_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        check_output(name)


def test_i13_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritten):
        check_output(tmp_path / ("x" * 201))


def test_i14_the_second_of_two_runs_into_one_folder_is_refused(
    tmp_path: Path, ledger: Ledger
) -> None:
    def second(step: str) -> None:
        if step == "commit":
            with pytest.raises(OutputNotWritten, match="Another run"):
                made.write(tmp_path / "rel", ledger, seed=8)

    made.write(tmp_path / "rel", ledger, stop=second)

    verify(tmp_path / "rel")
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 1


@pytest.mark.parametrize("step", ["reserve", "draw", "commit", "set", "finish"])
def test_an_error_on_the_way_leaves_nothing_visible_and_costs_once(
    tmp_path: Path, ledger: Ledger, step: str
) -> None:
    def fail(at: str) -> None:
        if at == step:
            raise ResourceLimit("DISK", "The disk is full.", "It must not.", "Make room.")

    with pytest.raises(ResourceLimit) as caught:
        made.write(tmp_path / "rel", ledger, stop=fail)
    left = os.listdir(tmp_path)
    release = made.write(tmp_path / "rel", ledger, result=made.tables(5))

    assert all(name.startswith(".rel.partial-") for name in left)
    assert bool(left) == (step in ("set", "finish"))  # what was paid for and durable is kept
    entries = [e for e in ledger.entries() if e.kind == "reserve"]
    assert len(entries) == 1
    if step == "reserve":
        assert "no budget was spent" in str(caught.value)
    else:
        assert entries[0].id in str(caught.value)
    assert release.receipt["ledger"]["reservation"] == entries[0].id
    assert os.listdir(tmp_path) == ["rel"]
    verify(tmp_path / "rel", ledger=ledger)


def test_i5_an_interrupt_leaves_nothing_visible(tmp_path: Path, ledger: Ledger) -> None:
    def interrupt(at: str) -> None:
        if at == "commit":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.write(tmp_path / "rel", ledger, stop=interrupt)

    assert os.listdir(tmp_path) == []


def test_another_request_sweeps_what_a_dead_run_left(tmp_path: Path, ledger: Ledger) -> None:
    def fail(at: str) -> None:
        if at == "set":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.write(tmp_path / "rel", ledger, stop=fail)
    assert len(os.listdir(tmp_path)) == 1

    made.write(tmp_path / "rel", ledger, seed=8)

    assert os.listdir(tmp_path) == ["rel"]
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 2


def test_damaged_tables_of_a_committed_run_are_not_passed_off_as_the_paid_ones(
    tmp_path: Path, ledger: Ledger
) -> None:
    def fail(at: str) -> None:
        if at == "set":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.write(tmp_path / "rel", ledger, stop=fail)
    table = next(tmp_path.glob(".rel.partial-*/package/tables/table_001.parquet"))
    pl.read_parquet(table).with_columns(pl.col("count") + 1).write_parquet(table)
    made.write(tmp_path / "rel", ledger, result=made.tables(5))

    assert len([e for e in ledger.entries() if e.kind == "reserve"]) == 2
    verify(tmp_path / "rel", ledger=ledger)


def test_a_seed_that_was_drawn_is_kept_over_a_kill_and_written_down(
    tmp_path: Path, ledger: Ledger
) -> None:
    seeds: list[int] = []

    def fail(at: str) -> None:
        if at == "set":
            state = json.loads(next(tmp_path.glob(".rel.partial-*/state.json")).read_text())
            seeds.append(state["seed"])
            if len(seeds) == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.write(tmp_path / "rel", ledger, seed=None, stop=fail)
    release = made.write(tmp_path / "rel", ledger, seed=None, stop=fail)

    assert set(seeds) == {release.receipt["seed"]}


def full(says: Connection, folder: Path, size: int) -> None:
    """Write a release where no file can grow beyond `size` bytes from the draw on; say the error."""
    ledger = Ledger.open(folder / "ledger.sqlite")

    def stop(step: str) -> None:
        if step == "draw":
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    try:
        made.write(folder / "rel", ledger, stop=stop, planned=made.plan(rows=3000), format="csv")
    except ResourceLimit as error:
        says.send(type(error).__name__)


@pytest.mark.parametrize("size", [0, 300, 2_000, 20_000, 60_000])
def test_i3_a_full_disk_leaves_nothing_at_the_final_path(tmp_path: Path, size: int) -> None:
    child = Child(full, tmp_path, size)
    said = child.rest()

    assert (said, child.ended()) == ([ResourceLimit.__name__], 0)
    assert not (tmp_path / "rel").exists()
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    made.write(tmp_path / "rel", ledger, planned=made.plan(rows=3000), format="csv")
    assert len([e for e in ledger.entries() if e.kind == "reserve"]) <= 2


def test_drawn_rows_are_what_is_committed(tmp_path: Path, ledger: Ledger) -> None:
    codes = made.codes(100, 3)
    release = made.write(tmp_path / "rel", ledger, result=codes)

    assert release.tables is None
    assert not (tmp_path / "rel" / "tables").exists()
    assert release.receipt["digest"] == digest_of(codes) == ledger.entries()[-1].sha256
    with pytest.raises(PrivacyRefused, match="NoisyPegs"):
        release.sample(1)


def test_secret_codes_are_never_written(tmp_path: Path, ledger: Ledger) -> None:
    secret = replace(made.codes(100, 3), secret=True)

    with pytest.raises(ValueError, match="never"):
        made.write(tmp_path / "rel", ledger, result=secret)


def test_f1_the_total_of_the_file_stands_first(tmp_path: Path, ledger: Ledger) -> None:
    made.write(tmp_path / "rel", ledger, result=made.codes(100, 3))

    receipt = json.loads((tmp_path / "rel" / "ledger.json").read_text())
    text = (tmp_path / "rel" / "METHODS.md").read_text()
    assert receipt["total"]["epsilon"] == "100"
    assert receipt["claim"]["epsilon"] == "1"
    assert text.splitlines()[2].startswith("**epsilon = 100 in total")
    assert "epsilon = 1 per row: 100 rows cost 100" in text


def test_inferred_facts_are_named_where_the_guarantee_is_stated(
    tmp_path: Path, ledger: Ledger
) -> None:
    columns = list(made.SCHEMA.columns)
    columns[0] = replace(columns[0], sources=(("levels", "inferred"),))
    schema = replace(made.SCHEMA, columns=tuple(columns))
    tables = replace(made.tables(), schema=schema)
    release = made.write(
        tmp_path / "rel", ledger, result=tables, schema=schema, uncovered=schema.inferred()
    )

    assert release.receipt["uncovered"] == ["sex: levels"]
    assert release.receipt["differentially_private"] is False
    text = (tmp_path / "rel" / "METHODS.md").read_text()
    assert "not differentially private with respect to levels of sex" in text
    assert verify(tmp_path / "rel").uncovered == ("sex: levels",)


@pytest.mark.parametrize("claim", [no_claim(unit="dataset"), l_diverse(Fraction(3), unit="row")])
def test_a_release_without_a_dp_claim_says_so_loudly(
    tmp_path: Path, ledger: Ledger, claim: Any
) -> None:
    made.write(tmp_path / "rel", ledger, planned=made.plan(total=claim))

    text = (tmp_path / "rel" / "METHODS.md").read_text()
    assert "NOT DIFFERENTIALLY PRIVATE" in text
    assert "not differentially private" in verify(tmp_path / "rel").guarantee


def test_k9_markup_in_names_does_not_act(tmp_path: Path, ledger: Ledger) -> None:
    evil = "<script>alert(1)</script>|\n# x `y` **z** [a](b)"
    schema = Schema((Column(evil, "binary", levels=("a", "b"), sources=(("levels", "inferred"),)),))
    tables = made.tables().extra[0]
    single = replace(made.tables(), schema=schema, items=(tables,), extra=())
    recipe = replace(single.recipe, order=(0,))
    made.write(
        tmp_path / "rel", ledger, result=replace(single, recipe=recipe), schema=schema,
        uncovered=schema.inferred(),
    )  # fmt: skip

    text = (tmp_path / "rel" / "METHODS.md").read_text()
    assert "<script>" not in text.replace("\\<", "")
    assert "\n# x" not in text
    verify(tmp_path / "rel")


def test_m5_the_certificate_holds_no_count_but_public_or_noisy_ones(
    tmp_path: Path, ledger: Ledger
) -> None:
    release = made.write(tmp_path / "rel", ledger, planned=made.plan(rows=None))

    receipt = release.receipt
    assert receipt["rows_from"] == "noisy count"
    assert release.tables is not None
    assert receipt["rows"] == [release.tables.noisy_rows()] * 2
    assert made.DATASET.hex() not in json.dumps(receipt.to_json())


def test_m1_no_file_holds_the_marker_of_the_input_path(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "Zaphod-SECRET-7" / "ledger.sqlite")
    (tmp_path / "out").mkdir()
    made.write(tmp_path / "out" / "rel", ledger, format="csv")

    assert not [n for n, data in contents(tmp_path / "out").items() if b"Zaphod" in data]
    assert not [
        n for n, data in contents(tmp_path / "out").items() if str(tmp_path).encode() in data
    ]


def test_a_release_is_frozen_and_shows_no_rows(tmp_path: Path, ledger: Ledger) -> None:
    release = made.write(tmp_path / "rel", ledger)
    shown = (
        repr(release) + repr(release.receipt) + repr(release.sets) + json.dumps(release.to_json())
    )

    assert "NA" not in repr(release)
    assert "=1+1" not in shown
    release.receipt["total"]["epsilon"] = "0"
    assert release.receipt["total"]["epsilon"] == "1"
    with pytest.raises(AttributeError):
        release.claim = no_claim()  # type: ignore[misc]


def test_load_gives_back_what_was_written(tmp_path: Path, ledger: Ledger) -> None:
    release = made.write(tmp_path / "rel", ledger)
    loaded = load(tmp_path / "rel")

    assert loaded.schema == made.SCHEMA
    assert (loaded.claim, loaded.plan) == (release.claim, release.plan)
    assert loaded.receipt.to_json() == release.receipt.to_json()
    assert digest_of(loaded.tables) == digest_of(made.tables())  # type: ignore[arg-type]
    assert loaded.tables is not None
    assert loaded.tables.recipe == made.tables().recipe
    assert all(a.equals(b) for a, b in zip(loaded.sets, release.sets, strict=True))
    assert loaded.sets[-1].columns == list(made.SCHEMA.names)


def test_one_file_appears_whole_and_replaces_nothing(tmp_path: Path) -> None:
    target = check_output(tmp_path / "more.csv")
    write_file([made.codes(30, 1)], made.SCHEMA, target, Output(format="csv", seed=1))

    assert len(pl.read_csv(target)) == 30
    with pytest.raises(OutputNotWritten):
        write_file([made.codes(30, 2)], made.SCHEMA, target, Output(format="csv", seed=1))
    assert os.listdir(tmp_path) == ["more.csv"]
