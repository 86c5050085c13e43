"""Days with a time of day, and clock times: bought like other kinds, and read as days and as hours."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.column import Column
from gibbous.encode.cell_text import (
    DAYS,
    HOURS,
    column_codes,
    column_numbers,
    lenient_codes,
    numbers_as_read,
)
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures
from tests.discovery.conftest import bought

FIRST = datetime.datetime(2020, 1, 1)


def times(form: str, rows: int = 4000) -> list[str]:
    minutes = np.random.default_rng(5).integers(0, 700 * 24 * 60, rows)
    return [(FIRST + datetime.timedelta(minutes=int(m))).strftime(form) for m in minutes]


@pytest.mark.parametrize("form", [form for form in DAYS if "%M" in form])
def test_days_with_a_time_of_day_are_days_of_that_form(form: str) -> None:
    looks = (bought(pl.DataFrame({"x": times(form)}))["x"] for _ in range(3))
    column = next(look for look in looks if not look.missing)  # noise says missing in 1 of 100

    assert (column.kind, column.date_format, column.missing) == ("date", form, False)
    assert column.edges[0] <= FIRST.toordinal()
    assert column.edges[-1] >= FIRST.toordinal() + 699


def test_compact_days_are_days_where_that_is_stated_and_whole_numbers_elsewhere() -> None:
    texts = [text if n % 50 else "99999999" for n, text in enumerate(times("%Y%m%d"))]
    frame = pl.DataFrame({"x": texts, "y": texts, "z": pl.Series(texts).cast(pl.Int64)})

    schema, *more = (bought(frame, date=("x", "z")) for _ in range(4))

    for name in ("x", "z"):
        column = schema[name]
        assert (column.kind, column.date_format, column.missing) == ("date", "%Y%m%d", True)
        assert column.edges[0] <= FIRST.toordinal() < FIRST.toordinal() + 699 <= column.edges[-1]
        # Noise is taken for a far end in one purchase of a hundred.
        widths = [one[name].edges[-1] - one[name].edges[0] for one in (schema, *more)]
        assert min(widths) < 3 * 366
    assert schema["y"].kind == "numeric"
    short = pl.Series(["2020115", "+2020115", "202001150", "20201301", "2020 115"])
    stated = Column("x", "date", edges=schema["x"].edges, clamp=True, date_format="%Y%m%d")
    assert np.isnan(numbers_as_read(short, stated)).all()


def test_the_day_is_that_which_is_written_whatever_the_time_and_the_zone() -> None:
    day = float(FIRST.toordinal())
    edges = (day, day + 1, day + 2, day + 3)
    column = Column("x", "date", edges=edges, clamp=True, date_format="%Y-%m-%d %H:%M:%S")
    texts = ["2020-01-02 00:00:00", "2020-01-02 23:59:59.999Z", "2020-01-02 23:59:59 -05:00"]

    assert lenient_codes(pl.Series(texts), column).tolist() == [1, 1, 1]


@pytest.mark.parametrize("form", DAYS)
def test_days_of_frames_have_the_code_of_their_text(form: str) -> None:
    day = float(FIRST.toordinal())
    edges = (day, day + 1, day + 2, day + 3)
    column = Column("x", "date", edges=edges, clamp=True, date_format=form)
    values = pl.Series([FIRST.date() + datetime.timedelta(days=n) for n in range(3)])

    assert column_codes(values, column).tolist() == [0, 1, 2]
    assert column_codes(values.cast(pl.Datetime), column).tolist() == [0, 1, 2]
    assert column_numbers(values, column).tolist() == [day, day + 1, day + 2]


def test_clock_times_are_hours_and_what_is_none_is_missing() -> None:
    column = bought(pl.DataFrame({"x": times("%H:%M"), "y": times("%H:%M:%S")}))["y"]
    texts = pl.Series(["0:00", "13:45", "23:59:59.9", "24:00", "noon", None])
    known = Column("x", "ordinal", HOURS, missing=True, sources=column.sources)

    assert (column.kind, column.levels, column.missing) == ("ordinal", HOURS, False)
    assert dict(column.sources)["kind"] == dict(column.sources)["levels"] == "discovered"
    assert lenient_codes(texts, known).tolist() == [0, 13, 23, 24, 24, 24]
    assert column_codes(pl.Series([datetime.time(7, 30)]), known).tolist() == [7]


@pytest.mark.slow
def test_one_command_releases_both_and_verify_accepts(cli: Cli, home: Path) -> None:  # noqa: F811
    rows = 6000
    clock = np.random.default_rng(1).choice(["08:15", "08:45", "17:30"], rows).tolist()
    frame = pl.DataFrame({"seen": times("%Y-%m-%d %H:%M:%S", rows), "at": clock})
    frame.write_csv("stays.csv")
    words = ("--unit", "row", "--header-is-public", "--epsilon", "5", "--delta", "1e-9")

    done = cli("synthesize", "stays.csv", *words, "--format", "csv", "--out", "release")

    assert done.code == 0, done.err
    assert cli("verify", "release").code == 0
    made = pl.read_csv("release/synthetic_1.csv", infer_schema=False)
    assert made["seen"].str.contains(r"^\d{4}-\d\d-\d\d 00:00:00$").all()
    # Noise makes the bounds wider about once in a hundred times, and a few rows may lie there then.
    assert made["seen"].str.contains(r"^202[01]").mean() > 0.95
    share = {hour: (made["at"] == hour).mean() for hour in ("08:00", "17:00")}
    assert share == pytest.approx({"08:00": 2 / 3, "17:00": 1 / 3}, abs=0.05)
