"""Which account is charged: the records decide, accounts can be joined, other content is refused."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.claim import no_claim, pure
from gibbous.core.dataset import DataSet
from gibbous.core.errors import BudgetExhausted, LedgerUnusable, PrivacyRefused, UsageError
from gibbous.privacy.ledger import LedgerWarning
from gibbous.read.source import ReadOptions

SCHEMA = gb.Schema(
    (gb.Column("smokes", "binary", levels=("no", "yes")),),
    unit=gb.Unit(source="declared"),
    ignore=("note", "more"),
)
FRAME = pl.DataFrame(
    {"smokes": ["no", "yes", "no", "no"] * 5, "note": ["NA", "-99", "x", None] * 5}
)
APPENDED = pl.concat([FRAME, FRAME[:1]])
OLD, NEW, THIRD = (bytes([n]) * 32 for n in (1, 2, 3))


@pytest.fixture
def ledger(tmp_path: Path) -> gb.Ledger:
    return gb.Ledger.open(tmp_path / "home" / "ledger.sqlite")


def release(source: Any, ledger: gb.Ledger, schema: gb.Schema = SCHEMA, **rest: Any) -> None:
    method = gb.Laplace(epsilon=rest.pop("epsilon", 1))
    gb.synthesize(source, schema, method, rows=3, seed=1, ledger=ledger, **rest)


def cap(source: Any, ledger: gb.Ledger, epsilon: int = 1, **rest: Any) -> DataSet:
    data = ledger.dataset(source)
    ledger.cap(data, Fraction(epsilon), Fraction(0), **rest)
    return data


def charge(ledger: gb.Ledger, data: bytes, epsilon: str = "0.5") -> None:
    ledger.reserve(data, pure(Fraction(epsilon)), mechanism="m", request=b"r")


# -- the name ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        replace(SCHEMA, null="-99"),
        replace(SCHEMA, null="x"),
        replace(SCHEMA, null="NA"),
        replace(SCHEMA, columns=(gb.Column("smokes", "binary", levels=("yes", "no")),)),
    ],
)
@pytest.mark.parametrize("written", ["frame", "csv", "parquet"])
def test_C_no_schema_opens_another_account(
    again: gb.Schema, written: str, tmp_path: Path, ledger: gb.Ledger
) -> None:
    source: Any = FRAME
    if written != "frame":
        source = tmp_path / f"a.{written}"
        getattr(FRAME, f"write_{written}")(source)
    cap(source, ledger)
    release(source, ledger)

    with pytest.raises(BudgetExhausted):
        release(source, ledger, again)
    assert len(ledger.accounts()) == 1


def test_C_a_stamp_that_was_set_back_does_not_stand_for_the_records(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    path = tmp_path / "a.csv"
    FRAME.write_csv(path)
    before, facts = cap(path, ledger), path.stat()
    path.write_text(path.read_text().replace("no,x", "no,y", 1))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert path.stat().st_size == facts.st_size
    assert ledger.dataset(path) != before
    with pytest.raises(PrivacyRefused, match="was read from this path"):
        release(path, ledger)


class NeverOpened:
    """An engine that fails the test when records are asked for."""

    name = "never"

    def scan(self, *_: object, **__: object) -> bytes:
        raise AssertionError("the records were opened")

    def close(self) -> None:
        """Nothing is held."""


def test_C_a_spent_out_file_is_refused_before_it_is_opened(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    path = tmp_path / "a.csv"
    FRAME.write_csv(path)
    cap(path, ledger)
    release(path, ledger)

    with pytest.raises(BudgetExhausted):
        release(path, ledger, engine=NeverOpened, fresh=True)


def test_C_an_unchanged_file_that_is_read_as_other_records_is_refused(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("smokes,note\nno,é\nyes,b\n".encode())
    release(path, ledger)
    options = ReadOptions(encoding="latin-1")

    with pytest.raises(PrivacyRefused, match="this very file"):
        release(path, ledger, options=options)
    ledger.link(ledger.dataset(path, options=options), ledger.dataset(path))
    release(path, ledger, options=options)

    assert [len(account.releases) for account in ledger.accounts()] == [2]


# -- other content of a capped account -----------------------------------------------------------

CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "a row appended": lambda f: pl.concat([f, f[:1]]),
    "a row dropped": lambda f: f[1:],
    "a value changed": lambda f: f.with_columns(pl.col("note").replace("x", "y")),
    "an ignored column dropped": lambda f: f.drop("note"),
    "an ignored column added": lambda f: f.with_columns(more=pl.lit(1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_C_changed_data_of_a_capped_account_are_refused(change: str, ledger: gb.Ledger) -> None:
    cap(FRAME, ledger, 5)
    changed, head = CHANGES[change](FRAME), ledger.head

    with pytest.raises(PrivacyRefused, match="has the columns of these data") as caught:
        release(changed, ledger)

    assert caught.value.code == "GB5-OTHERCONTENT"
    assert ledger.head == head
    with pytest.raises(PrivacyRefused, match="columns"):
        cap(changed, ledger)


def test_C_another_table_at_the_path_of_a_capped_one_is_refused(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    path = tmp_path / "a.parquet"
    FRAME.write_parquet(path)
    cap(path, ledger)
    FRAME.select(pl.col("smokes"), pl.col("note").alias("more")).write_parquet(path)

    with pytest.raises(PrivacyRefused, match="was read from this path"):
        release(path, ledger)


def test_C_other_columns_and_accounts_without_a_cap_are_no_reason(ledger: gb.Ledger) -> None:
    release(FRAME, ledger)
    release(APPENDED, ledger)
    cap(pl.DataFrame({"age": [1, 2]}), ledger)

    release(APPENDED.rename({"note": "more"}), ledger)

    assert len(ledger.accounts()) == 4


def test_C_an_engine_that_tells_no_columns_is_compared_by_path_alone(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    cap(FRAME, ledger)
    ledger.check(NEW, pure(Fraction(1)))
    ledger.check(DataSet(NEW, place="elsewhere"), pure(Fraction(1)))
    path = tmp_path / "a.parquet"
    FRAME[1:].write_parquet(path)
    known = cap(path, ledger, new_data="others")

    with pytest.raises(PrivacyRefused, match="from this path"):
        ledger.check(DataSet(NEW, place=known.place), pure(Fraction(1)))


def test_C_declared_new_data_have_an_account_of_their_own_and_the_reason_is_kept(
    ledger: gb.Ledger,
) -> None:
    cap(FRAME, ledger)

    release(APPENDED, ledger, new_data=" the panel of 2025 ")
    release(APPENDED, ledger, fresh=True)

    account = ledger.account(ledger.dataset(APPENDED))
    assert (account.new_data, len(account.releases)) == (("the panel of 2025",), 2)
    with pytest.raises(PrivacyRefused):  # for these data alone, not for the next version
        release(pl.concat([APPENDED, FRAME[:2]]), ledger)


def test_C_data_released_before_the_cap_of_their_like_are_refused_after_it(
    ledger: gb.Ledger,
) -> None:
    release(APPENDED, ledger)
    with pytest.warns(LedgerWarning, match="which has releases, has the columns"):
        cap(FRAME, ledger)

    with pytest.raises(PrivacyRefused, match="which has a cap"):
        release(APPENDED, ledger, fresh=True)


@pytest.mark.parametrize("reason", ["  ", "x" * 501])
def test_C_a_reason_is_words(reason: str, ledger: gb.Ledger) -> None:
    with pytest.raises(UsageError, match="reason"):
        release(FRAME, ledger, new_data=reason)


# -- links ---------------------------------------------------------------------------------------


def test_C_linked_accounts_have_one_sum_and_one_cap(ledger: gb.Ledger) -> None:
    cap(FRAME, ledger, 2)
    release(FRAME, ledger)
    new = ledger.dataset(APPENDED)

    ledger.link(new, ledger.dataset(FRAME))
    release(APPENDED, ledger)

    for source in (FRAME, APPENDED):
        with pytest.raises(BudgetExhausted):
            release(source, ledger, epsilon=0.01)
        assert ledger.account(ledger.dataset(source)).left == (0, 0)
    (account,) = gb.Ledger.read(ledger.path).accounts()
    assert (account.linked, len(account.releases)) == ((new,), 2)
    ledger.verify(ledger.head)


def test_C_what_was_spent_before_a_link_counts_too(ledger: gb.Ledger) -> None:
    ledger.cap(OLD, Fraction(1), Fraction(0))
    for data in (OLD, NEW, NEW):
        charge(ledger, data)

    ledger.link(NEW, OLD)

    assert ledger.spent(NEW) == ledger.spent(OLD)
    assert ledger.spent(OLD)[0].epsilon == Fraction(3, 2)
    with pytest.raises(BudgetExhausted):
        charge(ledger, NEW, "0.001")


def test_C_joined_caps_are_the_smaller_and_a_later_cap_replaces_both(ledger: gb.Ledger) -> None:
    ledger.cap(OLD, Fraction(3), Fraction("1e-9"))
    ledger.cap(NEW, Fraction(2), Fraction("1e-6"))

    ledger.link(NEW, OLD)

    assert ledger.account(OLD).left == (Fraction(2), Fraction("1e-9"))
    ledger.cap(NEW, Fraction(7), Fraction(0))
    assert ledger.account(OLD).left == (Fraction(7), Fraction(0))


def test_C_links_run_in_no_circle_and_lead_to_known_data(ledger: gb.Ledger) -> None:
    for data in (OLD, NEW, THIRD):
        charge(ledger, data)
    ledger.link(NEW, OLD)
    ledger.link(THIRD, NEW)
    head = ledger.head

    for one, other in ((OLD, NEW), (OLD, THIRD), (NEW, OLD), (THIRD, OLD), (OLD, OLD)):
        with pytest.raises(UsageError, match="already"):
            ledger.link(one, other)
    with pytest.raises(UsageError, match="has no data set"):
        ledger.link(OLD, bytes(32))

    assert ledger.head == head
    assert [account.dataset for account in ledger.accounts()] == [OLD]


def test_C_accounts_that_no_sum_covers_are_not_linked(ledger: gb.Ledger) -> None:
    ledger.cap(OLD, Fraction(3), Fraction(0))
    ledger.cap(THIRD, Fraction(3), Fraction(0), "replace_one")
    ledger.reserve(NEW, no_claim(), mechanism="m", request=b"r")

    for data, words in ((NEW, "no budget bounds"), (THIRD, "neighbor relation")):
        with pytest.raises(PrivacyRefused, match=words):
            ledger.link(data, OLD)

    assert len(ledger.accounts()) == 3


def test_C_a_forged_link_breaks_the_chain(ledger: gb.Ledger) -> None:
    charge(ledger, OLD)
    charge(ledger, NEW)
    ledger.link(NEW, OLD)
    ledger.close()
    with sqlite3.connect(ledger.path) as file:  # type: ignore[arg-type]
        file.execute("DROP TRIGGER no_update")
        forged = f"replace(CAST(private AS TEXT), '{OLD.hex()}', '{THIRD.hex()}')"
        file.execute(f"UPDATE entries SET private = CAST({forged} AS BLOB) WHERE seq = 3")
    file.close()

    with pytest.raises(LedgerUnusable, match="entry 3 was changed"):
        gb.Ledger.read(ledger.path)


@pytest.mark.parametrize(
    "links", [[(NEW, OLD), (OLD, NEW)], [(OLD, OLD)], [(NEW, OLD), (NEW, THIRD)]]
)
def test_links_in_a_circle_or_twice_are_refused_by_whoever_reads_them(
    ledger: gb.Ledger, links: list[tuple[bytes, bytes]]
) -> None:
    """Chained as they should be by somebody with the file: no reader follows them for ever."""
    charge(ledger, OLD)
    with ledger._store.appending() as writer:
        for one, other in links:
            private = {"dataset": one.hex(), "into": other.hex(), "at": ""}
            writer.append({"kind": "link"}, private)
    ledger.close()

    for opened in (gb.Ledger.open, gb.Ledger.read):
        with pytest.raises(LedgerUnusable, match="does not say what was charged"):
            opened(ledger.path).accounts()


# -- nicknames -----------------------------------------------------------------------------------


def test_C_a_nickname_or_digits_stand_for_the_account(ledger: gb.Ledger) -> None:
    for data in (OLD, NEW, THIRD):
        charge(ledger, data)
    ledger.nickname(OLD, "first")
    ledger.nickname(OLD, "survey")
    ledger.nickname(NEW, "survey-2")
    ledger.link(NEW, OLD)

    assert [ledger.named(words) for words in ("survey", "survey-2", "first")] == [OLD, OLD, None]
    assert ledger.named(THIRD.hex()[:8]) == THIRD
    assert ledger.account(NEW).nickname == "survey"
    with pytest.raises(UsageError, match="already"):
        ledger.nickname(THIRD, "survey")


@pytest.mark.parametrize("nickname", ["", "a b", "../x", "deadbeef", "a" * 65, "x.csv"])
def test_C_a_nickname_is_no_path_and_no_fingerprint(nickname: str, ledger: gb.Ledger) -> None:
    with pytest.raises(UsageError, match="no nickname"):
        ledger.nickname(OLD, nickname)


def test_C_digits_that_fit_several_data_sets_name_none(ledger: gb.Ledger) -> None:
    charge(ledger, OLD)
    charge(ledger, OLD[:31] + b"\0")

    with pytest.raises(UsageError, match="2 data sets"):
        ledger.named(OLD.hex()[:8])


# -- ledgers of an older gibbous -----------------------------------------------------------------


def older(ledger: gb.Ledger, *, capped: bool) -> None:
    """Turn every entry into what version 1 wrote: no columns, no place; and its file into version 1."""
    with ledger._store.appending() as writer:
        claim = pure(Fraction(1)).to_json()
        public = {"kind": "reserve", "id": "r-1", "claim": claim, "mechanism": "m",
                  "protects": "one row", "rows": 3}  # fmt: skip
        private = {"dataset": OLD.hex(), "at": "2025-01-01T00:00Z"}
        writer.append(public, {**private, "request": "00", "label": "old", "stamp": "00"})
        if capped:
            numbers = {"epsilon": "2", "delta": "0", "relation": "add_remove", "protects": None}
            writer.append({"kind": "cap", **numbers}, private)
    ledger._store._connection().execute("PRAGMA user_version=1")
    ledger.close()


def version(path: Path | None) -> int:
    file = sqlite3.connect(str(path))
    found = int(file.execute("PRAGMA user_version").fetchone()[0])
    file.close()
    return found


def test_C_an_older_ledger_opens_and_its_cap_is_not_left_behind(ledger: gb.Ledger) -> None:
    older(ledger, capped=True)
    again = gb.Ledger.open(ledger.path)

    assert again.account(OLD).left == (Fraction(1), Fraction(0))
    with pytest.raises(PrivacyRefused, match="older gibbous"):
        release(FRAME, again)
    assert version(ledger.path) == 1  # untouched until something is written
    again.link(again.dataset(FRAME), OLD)
    release(FRAME, again)
    again.close()

    assert gb.Ledger.read(ledger.path).account(OLD).left == (0, 0)
    assert version(ledger.path) == 2


def test_C_a_new_account_beside_an_older_one_without_a_cap_is_not_silent(
    ledger: gb.Ledger,
) -> None:
    older(ledger, capped=False)
    again = gb.Ledger.open(ledger.path)

    with pytest.warns(LedgerWarning, match="older gibbous"):
        release(FRAME, again)
    release(FRAME, again)  # once

    assert len(again.accounts()) == 2


def test_C_an_entry_of_a_kind_from_the_future_is_refused(ledger: gb.Ledger) -> None:
    with ledger._store.appending() as writer:
        writer.append({"kind": "gift"}, {"dataset": OLD.hex(), "at": ""})

    with pytest.raises(LedgerUnusable, match="kind that this gibbous does not know"):
        ledger.entries()
