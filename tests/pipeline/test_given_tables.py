"""Rows from noisy tables made elsewhere: what is stated is said as stated, and nothing else is taken."""

from __future__ import annotations

import gzip
import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.cli import main
from gibbous.core.errors import UsageError
from gibbous.core.tables import Dense

ROWS, SIGMA = 20_000, 12.0
LABELS = {
    "region": ["north", "south", "(missing)"],
    "stage": ["0", "1", "2", "3"],
    "code": [str(code) for code in range(200)],
    "age": ["[0, 10)", "[10, 20)", "[20, 30]"],
}
SCHEMA = gb.Schema(
    (
        gb.Column("region", "nominal", levels=("north", "south"), missing=True),
        gb.Column("stage", "ordinal", levels=(0, 1, 2, 3)),
        gb.Column("code", "nominal", levels=tuple(range(200))),
        gb.Column("age", "numeric", edges=(0, 10, 20, 30)),
    ),
    unit=gb.Unit(),
)
TABLES = (("region", "stage"), ("stage", "code"), ("age",))
HEAD = 'maker = "A test office"\n[claim]\nepsilon = 1.0\ndelta = 1e-6\n'


def _records() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    region, age = rng.choice(3, ROWS, p=(0.5, 0.3, 0.2)), rng.choice(3, ROWS, p=(0.2, 0.5, 0.3))
    stage = (region + rng.integers(0, 2, ROWS)) % 4
    code = np.minimum(rng.geometric(0.05, ROWS) * (1 + stage), 200) - 1
    return {"region": region, "stage": stage, "code": code, "age": age}


def _counts(columns: tuple[str, ...], codes: Mapping[str, np.ndarray]) -> np.ndarray:
    sizes = [len(LABELS[column]) for column in columns]
    cells = np.ravel_multi_index([codes[column] for column in columns], sizes)
    return np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)


def _write(folder: Path, head: str = HEAD, scale: float = SIGMA) -> Path:
    """Tables as an office would publish them; normal noise of numpy, since they are constructed."""
    folder.mkdir()
    rng, codes, text = np.random.default_rng(5), _records(), head
    for columns in TABLES:
        counts = _counts(columns, codes)
        noisy = np.rint(counts + rng.normal(0, SIGMA, counts.shape)).astype(int)
        rows = [
            [*labels, str(count)]
            for labels, count in zip(
                itertools.product(*(LABELS[column] for column in columns)),
                noisy.ravel(),
                strict=True,
            )
        ]
        rng.shuffle(rows)
        frame = pl.DataFrame(rows, schema=[*columns, "count"], orient="row")
        name = "_".join(columns) + ".csv"
        frame.write_csv(folder / name)
        text += f'[[table]]\nfile = "{name}"\nnoise = "gaussian"\nscale = {scale}\n'
    (folder / "tables.toml").write_text(text)
    return folder


def _codes(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    found = {}
    for column, labels in LABELS.items():
        values = frame[column]
        if column == "age":
            found[column] = np.clip((values.to_numpy() // 10).astype(int), 0, 2)
        else:
            texts = values.cast(pl.String).fill_null("(missing)")
            found[column] = texts.replace_strict({t: k for k, t in enumerate(labels)}).to_numpy()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("given") / "tables")


@pytest.fixture(scope="module")
def release(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> gb.Release:
    return gb.from_tables(folder, SCHEMA, seed=1, out=tmp_path_factory.mktemp("given") / "release")


def test_rows_follow_the_tables_with_their_noise_taken_out(release: gb.Release) -> None:
    drawn, records = _codes(release.sets[0]), _records()

    def distance(columns: tuple[str, ...], other: np.ndarray) -> float:
        own = _counts(columns, drawn)
        return float(np.abs(own / own.sum() - other / other.sum()).sum() / 2)

    for columns in TABLES:
        counts = _counts(columns, records)
        sums = [
            counts.sum(axis=tuple(b for b in range(counts.ndim) if b != a))
            for a in range(counts.ndim)
        ]
        unrelated = sums[0] if len(sums) == 1 else np.multiply.outer(*sums)
        noise = counts.size * SIGMA * math.sqrt(2 / math.pi) / ROWS / 2  # of the raw tables
        assert distance(columns, counts) < noise + 0.02
        if len(columns) > 1:
            assert distance(columns, counts) < 0.75 * distance(columns, unrelated)
    assert abs(len(release.sets[0]) - ROWS) < 6 * SIGMA * math.sqrt(12)


def test_the_claim_is_the_makers_and_said_to_be(release: gb.Release) -> None:
    claim = release.claim

    assert claim.kind == "approximate"
    assert (claim.epsilon, claim.delta) == (1, Fraction(1, 10**6))
    assert claim.basis == "stated"
    assert claim.words() == "epsilon = 1, delta = 1e-06 in total (add or remove one, stated)"
    assert release.path is not None
    methods = (release.path / "METHODS.md").read_text()
    assert "made elsewhere, by A test office, who states this price" in methods
    assert "The records were counted once" not in methods
    assert "beforehand" not in methods


def test_the_release_is_verified_without_the_tables_of_the_office(release: gb.Release) -> None:
    assert release.path is not None
    report = gb.verify(release.path)

    assert report.claim == release.claim
    assert any("what the maker of the tables states" in line for line in report.checks)


def test_the_tables_are_released_as_they_came(release: gb.Release, folder: Path) -> None:
    assert release.tables is not None
    table = next(t for t in release.tables.published() if t.context.columns == (0, 1))
    given = pl.read_csv(folder / "region_stage.csv", infer_schema=False)
    expected = np.zeros((3, 4), dtype=int)
    for region, stage, count in given.rows():
        expected[LABELS["region"].index(region), int(stage)] = int(count)

    assert isinstance(table.cells, Dense)
    assert (table.cells.values == expected).all()


def test_nothing_is_charged(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path / "home"))

    gb.from_tables(folder, SCHEMA, rows=50, seed=1)

    assert not list((tmp_path / "home").glob("*ledger*"))


@pytest.mark.slow
def test_the_same_tables_and_seed_give_the_same_rows(folder: Path, release: gb.Release) -> None:
    again = gb.from_tables(folder, SCHEMA, seed=1)

    assert again.sets[0].equals(release.sets[0])


@pytest.mark.parametrize("scale", [3.0, 0.5])
def test_a_price_that_the_stated_noise_refutes_is_refused(tmp_path: Path, scale: float) -> None:
    tables = _write(tmp_path / "tables", scale=scale)

    with pytest.raises(UsageError, match="too small for the price that is stated"):
        gb.from_tables(tables, SCHEMA)


def test_persons_of_several_rows_need_more_noise(folder: Path) -> None:
    unit = gb.Unit("person", column="id", max_rows=5)

    with pytest.raises(UsageError, match="too small"):
        gb.from_tables(folder, gb.Schema(SCHEMA.columns, unit=unit))


def _lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / "region_stage.csv"
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")

    return write


def _toml(old: str, new: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / "tables.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return write


def _packed(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "a cell is left out": (_lines(lambda lines: lines[:-1]), "each of its 12 cells once"),
    "a cell stands twice": (_lines(lambda lines: [*lines, lines[-1]]), "each of its 12 cells once"),
    "a level is unknown": (
        _lines(lambda lines: [*lines[:-1], "east,0,4"]),
        "another value of 'region'",
    ),
    "a count is no number": (
        _lines(lambda lines: [*lines[:-1], "north,0,many"]),
        "cells once|no number",
    ),
    "a file is packed": (
        lambda folder: _packed(folder / "region_stage.csv"),
        "other columns|not a CSV file",
    ),
    "a column is unknown": (
        _lines(lambda lines: [lines[0].replace("stage", "phase"), *lines[1:]]),
        "other columns",
    ),
    "there is no count": (
        _lines(lambda lines: [lines[0].replace("count", "n"), *lines[1:]]),
        "other columns",
    ),
    "no table holds a column": (
        _toml('[[table]]\nfile = "age.csv"\nnoise = "gaussian"\nscale = 12.0\n', ""),
        "No table holds the columns 'age'",
    ),
    "nobody made them": (_toml("A test office", " "), "who made the tables"),
    "two prices": (_toml("delta = 1e-6", "rho = 0.1"), "mixes or lacks prices"),
    "a price of nothing": (_toml("epsilon = 1.0", "epsilon = 0"), "is not a price"),
    "a price that is no number": (_toml("epsilon = 1.0", "epsilon = nan"), "is not a price"),
    "a file of another folder": (_toml('"age.csv"', '"../age.csv"'), "a name in the same folder"),
    "a file that is not there": (_toml('"age.csv"', '"old.csv"'), "is missing"),
    "another law": (_toml('"gaussian"', '"uniform"'), "another law of noise"),
    "no scale": (_toml("scale = 12.0", "scale = 0"), "has no scale"),
    "a key that nobody knows": (_toml("scale", "sigma"), "has the keys 'sigma'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, wrong: str) -> None:
    tables, (change, says) = _write(tmp_path / "tables"), WRONG[wrong]
    change(tables)

    with pytest.raises(UsageError, match=says):
        gb.from_tables(tables, SCHEMA)


@pytest.mark.slow
def test_the_command_says_whose_price_it_is_and_that_nothing_was_charged(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCHEMA.save(tmp_path / "schema.toml")
    given = (
        "--from-tables",
        folder,
        "--schema",
        tmp_path / "schema.toml",
        "--rows",
        40,
        "--seed",
        2,
    )

    assert main(["synthesize", *map(str, given), "--out", str(tmp_path / "out")]) == 0

    last = capsys.readouterr().out.splitlines()[-1]
    assert "stated); nothing was charged here. 1 set of 40 rows" in last


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--epsilon", "1"), "describe a new purchase"),
        (("--tables", "release"), "beside --tables"),
        ((), "without a schema"),
    ],
)
def test_what_belongs_to_a_purchase_is_refused(
    folder: Path, flags: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synthesize", "--from-tables", str(folder), *flags, "--out", "out"]) == 2

    assert says in capsys.readouterr().err
