"""verify and load refuse whatever was changed, whoever recomputed the digests."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.claim import approximate
from gibbous.core.errors import LedgerUnusable, ModelRejected
from gibbous.core.schema import Schema
from gibbous.core.tables import NoiseInfo, Tables
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.chain import chained, encode
from gibbous.write import manifest, set_check
from gibbous.write.certificate_check import check_price
from gibbous.write.load import load
from gibbous.write.parquet_guard import guarded_read
from gibbous.write.release_texts import release_texts
from gibbous.write.table_files import read_tables
from gibbous.write.verify import verify
from tests.write import made

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin")
    made.write(folder / "rel", Ledger.ephemeral(), format="csv")
    made.write(folder / "rows", Ledger.ephemeral(), result=made.codes(100, 3))
    return folder


@pytest.fixture
def rel(origin: Path, tmp_path: Path) -> Path:
    shutil.copytree(origin / "rel", tmp_path / "rel")
    return tmp_path / "rel"


def reseal(folder: Path) -> None:
    """What someone does who changes a release and hides it."""
    for name in ("manifest.json", "SHA256SUMS"):
        (folder / name).unlink(missing_ok=True)
    manifest.seal(folder)


def edit(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    document = json.loads((folder / name).read_text())
    change(document)
    (folder / name).write_text(json.dumps(document))
    reseal(folder)


def test_an_untouched_release_is_accepted_and_says_what_was_checked(rel: Path) -> None:
    report = verify(rel)

    assert report.claim == made.TOTAL
    assert report.rows == (50, 50)
    assert len(report.checks) >= 6
    assert json.dumps(report.to_json())


def test_k2_flipped_bits_are_refused(rel: Path) -> None:
    rng = random.Random(4)
    names = sorted(str(p.relative_to(rel)) for p in rel.rglob("*") if p.is_file())
    for _ in range(60):
        path = rel / rng.choice(names)
        whole = path.read_bytes()
        damaged = bytearray(whole)
        bit = rng.randrange(len(whole) * 8)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ModelRejected):
            verify(rel)
        path.write_bytes(whole)
    verify(rel)


@pytest.mark.parametrize("name", ["tables/table_001.parquet", "ledger.json", "SHA256SUMS"])
def test_k2_truncated_or_lengthened_files_are_refused(rel: Path, name: str) -> None:
    whole = (rel / name).read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole + b"garbage\n"):
        (rel / name).write_bytes(damaged)
        with pytest.raises(ModelRejected):
            load(rel)


def test_k2_broken_parquet_with_right_digests_is_refused_without_a_crash(rel: Path) -> None:
    path, rng = rel / "tables/table_001.parquet", random.Random(6)
    whole = path.read_bytes()
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(4):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        reseal(rel)
        try:
            tables = load(rel).tables
        except ModelRejected:
            continue
        assert tables is not None  # a bit that means nothing: the digest of the numbers is right


def test_k1_a_pickle_is_refused_and_never_unpickled(rel: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(rel / "pwned"), "w"))

    (rel / "model.pkl").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ModelRejected):
        verify(rel)
    (rel / "model.pkl").unlink()
    (rel / "tables" / "table_001.parquet").write_bytes(pickle.dumps(Evil()))
    reseal(rel)
    for reader in (verify, load):
        with pytest.raises(ModelRejected):
            reader(rel)
    assert not (rel / "pwned").exists()


def forget(document: dict[str, Any], *keys: Any) -> None:
    for key in keys[:-1]:
        document = document[key]
    del document[keys[-1]]


def put(value: object, *keys: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put(10**12, "items", 0, "rows"),
        put(-1, "items", 0, "rows"),
        put([10**6, 10**6, 10**6], "items", 0, "context", "parent_sizes"),
        put([2**62], "items", 0, "context", "target_sizes"),
        put([-1], "items", 0, "context", "targets"),
        put([99], "items", 0, "context", "targets"),
        put([1], "items", 0, "context", "targets"),
        put({"kind": "hashed", "buckets": 3, "seed": 0}, "items", 2, "context", "key"),
        put({"kind": "hashed", "buckets": 2, "seed": 0}, "items", 2, "context", "key"),
        put({"kind": "hashed", "buckets": 2**70, "seed": 0}, "items", 2, "context", "key"),
        put({"kind": "eval"}, "items", 2, "context", "key"),
        put("NaN", "items", 0, "noise", "scale"),
        put(0, "items", 0, "noise", "scale"),
        put(1.5, "items", 2, "noise", "threshold"),
        put("cauchy", "items", 0, "noise", "law"),
        put("../../secret.parquet", "items", 0, "file"),
        put("table_002.parquet", "items", 0, "file"),
        put("some", "items", 0, "cells"),
        put([0, 0, 1, 2, 3], "recipe", "order"),
        put([0, 1, 2, 3, 4, 5], "recipe", "order"),
        put([0, 1], "recipe", "order"),
        put("ancestral", "recipe", "draw"),
        put("walk", "recipe", "draw"),
        put(0, "recipe", "sweeps"),
        put(2**40, "recipe", "sweeps"),
        put(-1, "recipe", "kappa"),
        put("guess", "recipe", "fallback"),
        put("bake", "recipe", "fit"),
        put("gibbous-tables/2", "format"),
        put([], "items"),
        put(None, "extra"),
    ],
)
def test_k3_k4_k5_wrong_table_descriptions_are_refused(rel: Path, change: Any) -> None:
    edit(rel, "tables/tables.json", change)

    with pytest.raises(ModelRejected) as caught:
        read_tables(rel / "tables", made.SCHEMA)  # before any digest of the numbers
    assert caught.value.exit_code == 8
    with pytest.raises(ModelRejected):
        load(rel)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.with_columns(pl.col("count") + 1),
        lambda f: f.with_columns(pl.col("count").cast(pl.Float64)),
        lambda f: f.with_columns(pl.lit(None, dtype=pl.Int64).alias("count")),
        lambda f: f.with_columns(pl.lit(200, dtype=pl.UInt8).alias("code.sex")),
        lambda f: f.reverse(),
        lambda f: f.head(3),
        lambda f: pl.concat([f, f]),
        lambda f: f.select(pl.all().reverse()),
        lambda f: f.rename({"count": "n"}),
    ],
)
def test_k5_wrong_cells_with_right_digests_are_refused(rel: Path, change: Any) -> None:
    path = rel / "tables" / "table_001.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    reseal(rel)

    with pytest.raises(ModelRejected):
        load(rel)


def test_k3_a_file_that_claims_many_cells_is_refused_before_it_is_read(rel: Path) -> None:
    path = rel / "tables" / "table_003.parquet"
    frame = pl.read_parquet(path)
    pl.concat([frame] * 1000).write_parquet(path)
    reseal(rel)

    with pytest.raises(ModelRejected, match="listed"):
        load(rel)


@pytest.mark.parametrize(
    "change",
    [
        put("0.5", "total", "epsilon"),
        put("0", "total", "delta"),
        put("-1", "total", "epsilon"),
        put("pure", "total", "kind"),
        put("replace_one", "total", "relation"),
        put("row", "total", "unit"),
        put("replace_one", "relation"),
        put("0.5", "claim", "epsilon"),
        put("0.5", "plan", "total", "epsilon"),
        put("2", "plan", "spends", 0, "claim", "epsilon"),
        put("-1", "plan", "spends", 0, "claim", "epsilon"),
        put({"epsilon": "0.001"}, "method", "params"),
        put("[" * 200_000, "plan", "spends", 0, "claim", "fixed"),
        put("[" * 200_000, "ledger", "entries", "reserve", "public"),
        put([50, 51], "rows"),
        put([50], "rows"),
        put(3, "sets"),
        put(-1, "sets"),
        put(["sex: levels"], "uncovered"),
        put(False, "differentially_private"),
        put("epsilon = 0.1", "guarantee"),
        put("ab" * 32, "digest"),
        put(None, "tables"),
        put("r-0000000000000000", "ledger", "reservation"),
        put("ab" * 32, "ledger", "head"),
        put("ab" * 32, "ledger", "entries", "commit", "previous"),
        put("zz", "ledger", "entries", "commit", "sealed"),
        put("{}", "ledger", "entries", "reserve", "public"),
        put({}, "ledger", "entries"),
        put("other", "method", "name"),
        put({"words": "one person", "max_rows": 2}, "unit"),
        put("gibbous-receipt/9", "format"),
    ],
)
def test_k7_a_certificate_that_says_something_else_is_refused(rel: Path, change: Any) -> None:
    edit(rel, "ledger.json", change)

    with pytest.raises(ModelRejected):
        verify(rel)


@pytest.mark.parametrize("more", ["; in fact epsilon = 0.01", "\n  ok: signed by 'an office'"])
def test_the_guarantee_in_words_says_nothing_more_than_the_facts(rel: Path, more: str) -> None:
    edit(rel, "ledger.json", lambda receipt: receipt.update(guarantee=receipt["guarantee"] + more))

    with pytest.raises(ModelRejected, match="say something else"):
        verify(rel)


def test_a_guarantee_of_another_version_is_one_line(rel: Path) -> None:
    def change(receipt: dict[str, Any]) -> None:
        receipt["versions"]["gibbous"] = "0.0.1"
        receipt["guarantee"] += "\n  ok: signed by 'an office'"

    edit(rel, "ledger.json", change)

    with pytest.raises(ModelRejected, match="say something else"):
        verify(rel)


def test_noises_that_add_up_in_very_many_ways_are_refused_at_once() -> None:
    """Sixteen sets of two parts each, whose noise differs: 65,536 ways."""

    def part(scale: float) -> Tables:
        one = made.tables()
        return replace(
            one, items=tuple(replace(t, noise=NoiseInfo("geometric", scale)) for t in one.items)
        )

    copies = tuple(
        replace(made.tables(), items=(), extra=(), parts=(part(5.0 + k), part(6.5 + k)))
        for k in range(16)
    )
    whole = replace(made.tables(), items=(), extra=(), copies=copies)

    with pytest.raises(ModelRejected, match="more than 4096 ways"):
        check_price(whole, made.TOTAL, 1)


def forged(receipt: dict[str, Any], epsilon: str) -> None:
    """A smaller claim everywhere, with ledger entries that hash."""
    for claim in (receipt["total"], receipt["claim"], receipt["plan"]["total"]):
        claim["epsilon"] = epsilon
    receipt["plan"]["claim"]["epsilon"] = receipt["plan"]["spends"][0]["claim"]["epsilon"] = epsilon
    words = receipt["guarantee"]
    receipt["guarantee"] = words.replace("epsilon = 1", f"epsilon = {epsilon}")
    entries = receipt["ledger"]["entries"]
    public = json.loads(entries["reserve"]["public"])
    public["claim"]["epsilon"] = epsilon
    entries["reserve"]["public"] = encode(public).decode()
    for entry in entries.values():
        sealed, previous = bytes.fromhex(entry["sealed"]), bytes.fromhex(entry["previous"])
        entry["hash"] = chained(previous, sealed, entry["public"].encode()).hex()
    receipt["ledger"]["head"] = entries["commit"]["hash"]


def test_k7_a_forged_chain_is_found_by_the_ledger_that_paid(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "home" / "ledger.sqlite")
    rel = tmp_path / "rel"
    made.write(rel, ledger)
    verify(rel, ledger=tmp_path / "home" / "ledger.sqlite")
    edit(rel, "ledger.json", lambda receipt: forged(receipt, "2"))
    receipt = json.loads((rel / "ledger.json").read_text())
    for name, text in release_texts(
        receipt, made.SCHEMA, load(rel).tables, manifest.digests(rel)
    ).items():
        (rel / name).write_bytes(text)
    reseal(rel)

    verify(
        rel
    )  # nobody can tell without the ledger: a price that is too high is no lie about noise
    with pytest.raises(ModelRejected, match="did not pay"):
        verify(rel, ledger=ledger)


def test_k7_another_ledger_did_not_pay(rel: Path) -> None:
    with pytest.raises(ModelRejected, match="did not pay"):
        verify(rel, ledger=Ledger.ephemeral())
    with pytest.raises(LedgerUnusable):
        Ledger.ephemeral().verify(json.loads((rel / "ledger.json").read_text())["ledger"]["head"])


def rewrite(rel: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    frame = pl.read_parquet(rel / name)
    change(frame).write_parquet(rel / name)
    reseal(rel)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.with_columns(pl.lit("x").alias("sex")),
        lambda f: f.with_columns(pl.lit(None, dtype=pl.String).alias("sex")),
        lambda f: f.with_columns(pl.lit(101).alias("age")),
        lambda f: f.with_columns(pl.lit(float("nan")).alias("pay")),
        lambda f: f.with_columns(pl.lit("1").alias("extra")),
        lambda f: f.drop("age"),
        lambda f: f.select(sorted(f.columns)),
        lambda f: f.head(10),
        lambda f: f.rename({"sex": "Sex"}),
    ],
)
def test_rows_outside_the_schema_are_refused(rel: Path, change: Any) -> None:
    rewrite(rel, "synthetic_2.parquet", change)

    with pytest.raises(ModelRejected):
        verify(rel)


def test_a_csv_that_differs_from_its_parquet_is_refused(rel: Path) -> None:
    path = rel / "synthetic_1.csv"
    whole = path.read_text()
    header, first, rest = whole.split("\n", 2)
    other = {"f": "m", "m": "f"}[first[0]] + first[1:]
    for text in ("", header, "\n".join((header, rest)), "\n".join((header, other, rest)),
                 whole.replace("'=1+1", "=1+1"), whole.replace(",-,", ",1,")):  # fmt: skip
        assert text != whole
        path.write_text(text)
        reseal(rel)
        with pytest.raises(ModelRejected, match="synthetic_1"):
            verify(rel)


def test_a_csv_that_has_other_numbers_in_the_same_bins_is_refused(rel: Path) -> None:
    path = rel / "synthetic_1.csv"
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    age = rows[0].index("age")
    rows[1][age] = str(int(rows[1][age]) ^ 1)  # edges are even
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    reseal(rel)

    with pytest.raises(ModelRejected, match="column 3"):
        verify(rel)


def test_names_with_quotes_commas_and_line_ends_are_read_back(tmp_path: Path) -> None:
    names = ('size "inch"', "a,b", "two\nlines", "age", "pay")
    schema = Schema(tuple(replace(c, name=n) for c, n in zip(made.SCHEMA, names, strict=True)))
    made.write(
        tmp_path / "rel", Ledger.ephemeral(), result=made.codes(100, 3, schema), schema=schema, format="csv"
    )  # fmt: skip

    assert verify(tmp_path / "rel").rows == (50, 50)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.csv"])
def test_a_schema_that_names_a_file_of_a_map_is_refused_unread(rel: Path, path: str) -> None:
    (rel.parent / "secret.csv").write_text("hunter2,sex\na,f\n")
    with (rel / "schema.toml").open("a") as file:
        file.write(f'\n[[rule]]\ndetail = "region"\ngroup = "sex"\nmap = "{path}"\n')
    reseal(rel)

    with pytest.raises(ModelRejected, match="not a table") as refused:
        verify(rel)

    assert "hunter2" not in str(refused.value)
    assert "root:" not in str(refused.value)


def test_a_packed_file_in_place_of_a_csv_is_refused_and_not_unpacked(rel: Path) -> None:
    path = rel / "synthetic_1.csv"
    path.write_bytes(gzip.compress(path.read_bytes()))
    reseal(rel)

    with pytest.raises(ModelRejected, match="synthetic_1"):
        verify(rel)


@pytest.mark.parametrize("columns", ["all", "one"])
def test_a_csv_is_compared_slice_by_slice(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gibbous.core.codes import Codes
    from gibbous.core.schema import Column, Schema
    from gibbous.write.rows import write_files

    codes = made.codes(40, 1)
    if (
        columns == "one"
    ):  # missing values are blank lines, also at the start of what is read at once
        schema = Schema((Column("x", "nominal", levels=("a", "b"), missing=True),))
        values = np.array([[2, 2, 0, 1, 2] * 8], dtype=np.uint8)
        codes = Codes(schema, values.T)
    paths = {form: tmp_path / f"a.{form}" for form in ("parquet", "csv")}
    write_files([codes], codes.schema, paths, seed=1)
    monkeypatch.setattr(set_check, "SLICE", 7)
    whole = paths["csv"].read_bytes()

    for block in (8, 100, 10_000):
        monkeypatch.setattr(set_check, "BLOCK", block)
        list(set_check.check_both(*paths.values(), codes.schema, 40, raw=False))
    for text in (whole[:-3], whole + whole.split(b"\n", 1)[1][:30] + b"\n", b""):
        paths["csv"].write_bytes(text)
        with pytest.raises(ModelRejected, match=r"a\.csv"):
            list(set_check.check_both(*paths.values(), codes.schema, 40, raw=False))


def test_paid_rows_must_be_those_of_the_ledger_entry(origin: Path, tmp_path: Path) -> None:
    rel = tmp_path / "rel"
    shutil.copytree(origin / "rows", rel)
    verify(rel)
    frame = pl.read_parquet(rel / "synthetic_1.parquet")
    rewrite(rel, "synthetic_1.parquet", lambda f: f.reverse())
    assert not frame.reverse().equals(frame)

    with pytest.raises(ModelRejected, match="its rows"):
        verify(rel)


def test_only_what_the_manifest_lists_is_there(rel: Path) -> None:
    for name in ("notes.txt", ".hidden", "tables/extra_999.parquet", "synthetic_3.parquet"):
        (rel / name).write_bytes(b"x")
        with pytest.raises(ModelRejected):
            verify(rel)
        (rel / name).unlink()
    (rel / "METHODS.md").rename(rel / "away")
    with pytest.raises(ModelRejected):
        verify(rel)


def test_k8_links_folders_and_paths_outside_are_refused(rel: Path) -> None:
    (rel / "synthetic_3.parquet").symlink_to("/etc/passwd")
    with pytest.raises(ModelRejected, match="link"):
        verify(rel)
    (rel / "synthetic_3.parquet").unlink()
    (rel / "more").mkdir()
    with pytest.raises(ModelRejected):
        verify(rel)
    (rel / "more").rmdir()
    (rel.parent / "link").symlink_to(rel)
    with pytest.raises(ModelRejected):
        verify(rel.parent / "link")
    sums = (rel / "SHA256SUMS").read_text()
    (rel / "SHA256SUMS").write_text(sums + "ab" * 32 + "  ../../etc/passwd\n")
    with pytest.raises(ModelRejected):
        verify(rel)


def test_internal_files_are_refused_whatever_they_are_called(rel: Path) -> None:
    words = "contains unprotected statistics of the confidential data: internal"
    (rel / "report.public.html").write_text(f"<p>{words}</p>")
    reseal(rel)

    with pytest.raises(ModelRejected, match="internal"):
        verify(rel)


def test_k6_a_private_checkpoint_is_refused(rel: Path) -> None:
    (rel / "tables" / "table_001.parquet").write_bytes(b"PRIVATE counts")
    reseal(rel)

    with pytest.raises(ModelRejected, match="private"):
        load(rel)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"format": NaN}', "[" * 100_000])
def test_k2_json_that_is_no_document_is_refused(rel: Path, text: str) -> None:
    for name in ("ledger.json", "tables/tables.json"):
        (rel / name).write_text(text)
        reseal(rel)
        with pytest.raises(ModelRejected):
            verify(rel)


def test_k4_a_newer_release_says_so(rel: Path) -> None:
    document = json.loads((rel / "manifest.json").read_text())
    (rel / "manifest.json").write_text(json.dumps(document | {"format": "gibbous-release/2"}))

    with pytest.raises(ModelRejected, match="gibbous-release/2"):
        verify(rel)


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(io.BytesIO(b"PK").getvalue())
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        for reader in (verify, load):
            with pytest.raises(ModelRejected):
                reader(path)


def test_load_checks_a_set_when_it_is_read(rel: Path) -> None:
    release = load(rel)
    (rel / "synthetic_2.parquet").write_bytes(b"PAR1")

    assert len(release.sets[0]) == 50
    with pytest.raises(ModelRejected):
        release.sets[1]


def test_tables_with_ancestral_orders_are_checked_for_cycles(rel: Path) -> None:
    # 0 given 1, 1 given 2, 2 given 3 and 0, 3 given 4, 4 given 0: a ring cannot be drawn.
    ring = {t.context.targets[0]: t.context.parents for t in made.tables().items}
    assert ring == {0: (1,), 1: (2,), 2: (3, 0), 3: (4,), 4: (0,)}
    edit(rel, "tables/tables.json", lambda document: document["recipe"].update(draw="ancestral"))

    with pytest.raises(ModelRejected, match="order"):
        load(rel)


def test_the_digest_of_a_file_is_not_trusted_from_the_file(rel: Path) -> None:
    fake = hashlib.sha256(b"").hexdigest()
    sums = (rel / "SHA256SUMS").read_text().splitlines()
    (rel / "SHA256SUMS").write_text("".join(f"{fake}{line[64:]}\n" for line in sums))

    with pytest.raises(ModelRejected):
        verify(rel)


def test_a_claim_that_was_charged_otherwise_is_refused(tmp_path: Path) -> None:
    total = approximate(Fraction(2), Fraction("1e-6"))
    made.write(tmp_path / "rel", Ledger.ephemeral(), planned=made.plan(total=total))
    assert verify(tmp_path / "rel").claim == total
    assert np.isclose(float(total.epsilon), 2)


def test_a_path_that_is_not_utf8_says_nothing_about_the_release(tmp_path: Path) -> None:
    """Before: a sound release was called damaged, since the reader of Parquet did not find it."""
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))

    with pytest.raises(ModelRejected, match="only paths that are UTF-8 text"):
        guarded_read(place / "a.parquet")
