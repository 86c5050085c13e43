"""The name of a data set is the one that its releases are charged to, before the first of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import BudgetExhausted, InputRejected

SCHEMA = gb.Schema((gb.Column("a", "ordinal", levels=(1, 2), missing=True),), null="NA")
FRAME = pl.DataFrame({"a": ["1", "2", "NA", "2"] * 5})
METHOD = gb.Laplace(epsilon=1)


@pytest.fixture
def ledger(tmp_path: Path) -> gb.Ledger:
    return gb.Ledger.open(tmp_path / "home" / "ledger.sqlite")


@pytest.fixture(params=["frame", "csv", "parquet"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    if request.param == "frame":
        return FRAME.with_columns(pl.col("a").replace("NA", None).cast(pl.Int64))
    path = tmp_path / f"a.{request.param}"
    if request.param == "csv":
        FRAME.write_csv(path)
    else:
        FRAME.with_columns(pl.col("a").replace("NA", None).cast(pl.Int64)).write_parquet(path)
    return path


def test_a_cap_before_the_first_release_holds_for_it(source: object, ledger: gb.Ledger) -> None:
    data = ledger.dataset(source, schema=SCHEMA)
    ledger.cap(data, Fraction("1.5"), Fraction(0))
    gb.synthesize(source, SCHEMA, METHOD, rows=3, seed=1, ledger=ledger)

    with pytest.raises(BudgetExhausted):
        gb.synthesize(source, SCHEMA, METHOD, rows=3, seed=1, ledger=ledger, fresh=True)

    assert ledger.account(data).left == (Fraction("0.5"), Fraction(0))
    assert [account.dataset for account in ledger.accounts()] == [data]


def test_C_a_file_is_named_without_the_schema_too(tmp_path: Path, ledger: gb.Ledger) -> None:
    path = tmp_path / "a.csv"
    FRAME.write_csv(path)
    gb.synthesize(path, SCHEMA, METHOD, rows=3, seed=1, ledger=ledger)

    assert ledger.dataset(path) == ledger.accounts()[0].dataset


def test_other_records_and_other_ledgers_give_other_names(ledger: gb.Ledger) -> None:
    more = pl.concat([FRAME, FRAME.head(1)])

    names = {
        ledger.dataset(FRAME, schema=SCHEMA),
        ledger.dataset(more, schema=SCHEMA),
        gb.Ledger.ephemeral().dataset(FRAME, schema=SCHEMA),
    }

    assert len(names) == 3
    assert all(len(name) == 32 for name in names)


def test_naming_writes_nothing_and_refuses_as_reading_does(
    tmp_path: Path, ledger: gb.Ledger
) -> None:
    head = ledger.head
    ledger.dataset(FRAME, schema=SCHEMA)

    with pytest.raises(InputRejected):
        ledger.dataset(tmp_path / "absent.csv")

    assert ledger.head == head
