"""`decimal=","`: numbers with a decimal comma are read as numbers, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gibbous.core.errors import UsageError
from gibbous.read.source import ReadOptions, read_columns
from tests.cli.conftest import Cli, cli, home  # noqa: F401 - fixtures

CELLS = {
    "987,00": "987.00",
    "1.234,50": "1234.50",
    "-1.234.567,8": "-1234567.8",
    "1.234": "1234",
    ",5": ".5",
    "12": "12",
    "1.5": "1.5",
    "12.34": "12.34",
    "1234.567,8": "1234.567,8",
    "1,234.50": "1,234.50",
    "31.12.2020": "31.12.2020",
    "V57,1": "V57,1",
    "1,2,3": "1,2,3",
    "": None,
}


def written(path: Path, name: str = "x") -> Path:
    path.write_text(f"{name};y\n" + "".join(f"{cell};a\n" for cell in CELLS))
    return path


def test_each_cell_is_read_as_its_form_says(tmp_path: Path) -> None:
    frame = read_columns(written(tmp_path / "d.csv"), options=ReadOptions(sep=";", decimal=","))

    assert dict(zip(CELLS, frame["x"], strict=True)) == CELLS


def test_without_the_switch_cells_stay(tmp_path: Path) -> None:
    frame = read_columns(written(tmp_path / "d.csv"), options=ReadOptions(sep=";"))

    assert [cell or "" for cell in frame["x"]] == list(CELLS)


def test_another_mark_is_refused() -> None:
    with pytest.raises(UsageError, match="decimal"):
        ReadOptions(decimal=";")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--unit", "row", "--header-is-public"], []])
def test_a_file_with_commas_becomes_numbers_with_and_without_a_schema(
    cli: Cli,  # noqa: F811
    flags: list[str],
) -> None:
    costs = [f"{1 + i % 3}.{i % 900 + 100:03d},50" for i in range(900)]
    pl.DataFrame({"cost": costs, "sex": ["F", "M"] * 450}).write_csv("d.csv", separator=";")
    reading = ["--sep", ";", "--decimal", ","]
    if not flags:
        Path("s.toml").write_text(
            'format = "gibbous-schema/1"\n[unit]\nkind = "row"\n'
            '[[column]]\nname = "cost"\nkind = "numeric"\nlower = 0\nupper = 5000\nbins = 50\n'
            '[[column]]\nname = "sex"\nkind = "binary"\nlevels = ["F", "M"]\n'
        )
        done = cli("schema", "check", "s.toml", "d.csv", *reading)
        assert done.code == 0, done.err
        flags = ["--schema", "s.toml"]

    done = cli(
        "synthesize", "d.csv", *flags, *reading, "--epsilon", "20", "--delta", "1e-6",
        "--rows", "200", "--out", "release",
    )  # fmt: skip

    assert done.code == 0, done.err
    rows = pl.read_parquet("release/synthetic_1.parquet")
    assert rows["cost"].dtype.is_float()
    assert 2000 < rows["cost"].mean() < 3200  # type: ignore[operator]
