"""M1: a marker in every cell, many ways to fail, and the marker is nowhere to be seen."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Cli

MARKER = "Zaphod-SECRET-7"
ROW = f"{MARKER},{MARKER},{MARKER}\n"
GOOD = "a,b,c\n" + 5 * ROW
SCHEMA = """
format = "gibbous-schema/1"
{top}
[unit]
{unit}
"""
ROW_UNIT = 'kind = "row"'


def _column(name: str, rest: str) -> str:
    return f'[[column]]\nname = "{name}"\n{rest}\n'


PLAIN = 'kind = "nominal"\nlevels = ["x", "y"]'
KINDS = {
    "nominal": PLAIN,
    "nominal-missing": PLAIN + "\nmissing = true",
    "ordinal": 'kind = "ordinal"\nlevels = ["low", "high"]',
    "whole-levels": 'kind = "ordinal"\nlevels = [1, 2, 3]',
    "decimal-levels": 'kind = "nominal"\nlevels = [0.5, 1.5]',
    "boolean": 'kind = "binary"\nlevels = [false, true]',
    "binary": 'kind = "binary"\nlevels = ["no", "yes"]',
    "numeric": 'kind = "numeric"\nlower = 0\nupper = 9\nbins = 3',
    "clamped": 'kind = "numeric"\nlower = 0\nupper = 9\nbins = 3\nclamp = true',
    "integer": 'kind = "numeric"\nlower = 0\nupper = 9\nbins = 3\ninteger = true',
    "date": "kind = \"date\"\nlower = 2000-01-01\nupper = 2020-01-01\nby = 'year'",
    "date-format": (
        'kind = "date"\nlower = 2000-01-01\nupper = 2020-01-01\nby = "year"\nformat = "%d/%m/%Y"'
    ),
}
FILES: dict[str, bytes] = {
    "ragged.csv": (GOOD + f"{MARKER},{MARKER}\n").encode(),
    "long.csv": (GOOD + f"{MARKER},{MARKER},{MARKER},{MARKER}\n").encode(),
    "duplicate.csv": ("a,b,b\n" + ROW).encode(),
    "case.csv": ("a,b,B\n" + ROW).encode(),
    "blank.csv": ("a,b,\n" + ROW).encode(),
    "latin.csv": GOOD.encode() + f"{MARKER},{MARKER},caf\xe9\n".encode("latin-1"),
    "utf16.csv": GOOD.encode("utf-16"),
    "nul.csv": (GOOD + f"{MARKER},\0{MARKER},{MARKER}\n").encode(),
    "quote.csv": (GOOD + f'{MARKER},"{MARKER},{MARKER}\n' + 3 * ROW).encode(),
    "semicolon.csv": GOOD.replace(",", ";").encode(),
    "cut.csv.gz": gzip.compress(GOOD.encode() * 50)[:-20],
    "notgzip.csv.gz": GOOD.encode(),
    "text.parquet": GOOD.encode(),
    "magic.parquet": b"PAR1" + GOOD.encode() + b"PAR1",
    "huge.csv": ("a,b,c\n" + f"{MARKER},{MARKER}," + MARKER * 200_000 + "\n").encode(),
    "wide.csv": (",".join(f"c{i}" for i in range(3000)) + "\n").encode(),
}


@pytest.fixture
def places(home: Path, tmp_path: Path) -> Path:
    """A folder for the planted inputs, outside of everything that gibbous may write to."""
    folder = tmp_path / "confidential"
    folder.mkdir()
    return folder


def _schema(folder: Path, name: str, top: str = "", unit: str = ROW_UNIT, **columns: str) -> Path:
    path = folder / f"{name}.toml"
    text = SCHEMA.format(top=top, unit=unit) + "".join(_column(n, c) for n, c in columns.items())
    path.write_text(text)
    return path


def _paths(folder: Path) -> Iterator[tuple[object, ...]]:
    """Command lines that must fail after the data were opened."""
    (folder / "good.csv").write_text(GOOD)
    frame = pl.DataFrame({"a": [MARKER] * 4, "b": [MARKER] * 4, "c": [MARKER] * 4})
    frame.write_parquet(folder / "good.parquet")
    frame.with_columns(c=pl.concat_list("a", "b")).write_parquet(folder / "nested.parquet")
    frame.with_columns(c=pl.col("a").cast(pl.Binary)).write_parquet(folder / "binary.parquet")
    (folder / "cut.parquet").write_bytes((folder / "good.parquet").read_bytes()[:-30])
    every = _schema(folder, "every", a=PLAIN, b=PLAIN, c=PLAIN)
    spend = ("-e", "1", "-d", "1e-6", "--out", "release", "--engine", "numpy")
    for kind, column in KINDS.items():
        schema = _schema(folder, f"kind-{kind}", a=column, b=PLAIN, c=PLAIN)
        for data in ("good.csv", "good.parquet"):
            yield "schema", "check", schema, folder / data
        yield "synthesize", folder / "good.csv", "--schema", schema, *spend
    other = _schema(folder, "other", a=PLAIN, b=PLAIN, d=PLAIN)
    fewer = _schema(folder, "fewer", a=PLAIN, b=PLAIN)
    person = _schema(
        folder, "person", unit='kind = "person"\ncolumn = "id"\nmax_rows = 2', a=PLAIN, b=PLAIN
    )
    for schema in (other, fewer, person):
        yield "schema", "check", schema, folder / "good.csv"
        yield "synthesize", folder / "good.parquet", "--schema", schema, *spend
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
        yield "schema", "check", every, folder / name
        yield "synthesize", folder / name, "--schema", every, *spend
        if name not in ("case.csv", "semicolon.csv", "huge.csv"):
            yield "ledger", "cap", folder / name, "--epsilon", "1"
            yield "schema", "infer", folder / name, "--out", "draft.toml"
    for name in ("nested.parquet", "binary.parquet", "cut.parquet"):
        yield "schema", "check", every, folder / name
        yield "synthesize", folder / name, "--schema", every, *spend


@pytest.mark.slow
def test_m1_no_error_path_shows_or_keeps_a_cell(cli: Cli, places: Path, tmp_path: Path) -> None:
    failed = 0
    for line in _paths(places):
        done = cli(*line, *(["--debug"] if failed % 2 else []))

        assert done.code != 0, line
        assert done.code != 1, (line, done.err)  # 1 would be a bug that happens to be silent
        assert MARKER not in done.out + done.err, line
        assert done.err.startswith(f"error[GB{done.code}-"), line
        failed += 1
    written = [p for p in tmp_path.rglob("*") if p.is_file() and places not in p.parents]
    assert failed >= 60
    assert [p for p in written if MARKER.encode() in p.read_bytes()] == []
    assert not (tmp_path / "work" / "release").exists()


def test_m1_a_fault_in_a_thread_or_a_destructor_is_silent(program: Cli, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, threading\n"
        "from gibbous.cli import entry, release_verbs\n"
        f"def work(*_):\n"
        f"    def fail(): raise ValueError({MARKER!r})\n"
        f"    t = threading.Thread(target=fail); t.start(); t.join()\n"
        f"    class D:\n"
        f"        def __del__(self): raise ValueError({MARKER!r})\n"
        f"    D()\n"
        f"    import warnings; warnings.warn({MARKER!r})\n"
        f"    raise KeyError({MARKER!r})\n"
        "release_verbs.warmup = work\n"
        "sys.argv = ['gibbous', 'warmup', '--debug']\n"
        "sys.exit(entry.main())\n"
    )

    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True
    )

    assert done.returncode == 1
    assert MARKER not in done.stdout + done.stderr
    assert "error[GB1-INTERNAL]: Unexpected KeyError" in done.stderr
