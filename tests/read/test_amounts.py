"""`amounts=True`: amounts as people write them are read as numbers, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.read.source import ReadOptions, read_columns
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures

CELLS = {
    "$1,234.50": "1234.50",
    "12 %": "12",
    "49.5%": "49.5",
    "(22.47)": "-22.47",
    "($3.00)": "-3.00",
    "-$5": "-5",
    "$-5": "-5",
    "5 €": "5",
    "USD 5": "5",
    "5,472": "5472",
    "1,234,567": "1234567",
    "1 234.50": "1234.50",
    "1'234": "1234",
    "1\xa0234": "1234",
}
OTHERS = (
    "12", "+5", "1.5", "-.5", "1e5", "00123", "5,47", "1,2,3", "12,34,567", "1,234.5.6", "(5", "5)", "(-5)",
    "--5", "$", "%", "-", "12-3", "5 kg", "A 5", "V57,1", "31.12.2020", "2020-12-31", "10:30", "$5 to $6",
)  # fmt: skip


def read(folder: Path, cells: list[str], decimal: str = ".", *, amounts: bool = True) -> list[str]:
    path = folder / "d.csv"
    path.write_text("x;y\n" + "".join(f"{cell};a\n" for cell in cells))
    options = ReadOptions(sep=";", decimal=decimal, amounts=amounts)
    return read_columns(path, options=options)["x"].to_list()


def test_amounts_become_plain_numbers(tmp_path: Path) -> None:
    assert dict(zip(CELLS, read(tmp_path, list(CELLS)), strict=True)) == CELLS


def test_other_cells_stay(tmp_path: Path) -> None:
    assert read(tmp_path, list(OTHERS)) == list(OTHERS)


def test_without_the_switch_all_cells_stay(tmp_path: Path) -> None:
    assert read(tmp_path, list(CELLS), amounts=False) == list(CELLS)


def test_with_a_decimal_comma_points_stand_between_thousands(tmp_path: Path) -> None:
    cells = {"1.234,50 €": "1234.50", "(3,5 %)": "-3.5", "1.234": "1234", "$1,234.50": "$1,234.50"}

    assert dict(zip(cells, read(tmp_path, list(cells), ","), strict=True)) == cells


@given(
    cents=st.integers(-(10**12), 10**12),
    between=st.sampled_from([",", " ", "'", ""]),
    mark=st.sampled_from(["$", "€", "EUR", "%", ""]),
    before=st.booleans(),
    brackets=st.booleans(),
)
def test_any_amount_is_read_as_the_number_that_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    cents: int,
    between: str,
    mark: str,
    before: bool,
    brackets: bool,
) -> None:
    number = f"{abs(cents) / 100:,.2f}".replace(",", between)
    marked = f"{mark}{number}" if before else f"{number}{mark}"
    cell = f"({marked})" if brackets and cents < 0 else f"-{marked}" if cents < 0 else marked

    (found,) = read(tmp_path_factory.getbasetemp(), [cell])

    assert float(found) == cents / 100


@pytest.mark.slow
def test_columns_of_amounts_are_kept_without_a_schema_with_the_switch_and_without(
    cli: Cli,  # noqa: F811
) -> None:
    costs = [f"${1 + i % 3},{i % 900 + 100:03d}" for i in range(900)]
    pl.DataFrame({"cost": costs, "sex": ["F", "M"] * 450}).write_csv("d.csv")
    asked = [
        "synthesize", "d.csv", "--unit", "row", "--header-is-public", "--epsilon", "20", "--delta", "1e-6",
        "--rows", "200", "--out",
    ]  # fmt: skip

    without = cli(*asked, "without")
    read_otherwise = ("--amounts", "--new-data", "the same file, read otherwise, in a test")
    done = cli(*asked, "release", *read_otherwise)

    assert done.code == without.code == 0, done.err + without.err
    for folder in ("without", "release"):
        rows = pl.read_parquet(f"{folder}/synthetic_1.parquet")
        assert 2000 < rows["cost"].mean() < 3200  # type: ignore[operator]
    assert "$1,234.50 is read as 1234.50" in Path("without/schema.toml").read_text()
    assert "is read as" not in Path("release/schema.toml").read_text()
    found = cli("evaluate", "d.csv", "without", "--schema", "without/schema.toml")
    assert found.code == 0, found.err
