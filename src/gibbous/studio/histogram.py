"""The counts of one column of confidential records, made by a process of its own; for the operator alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gibbous.core.column import Column
from gibbous.core.errors import InputRejected

MOST = 40  # levels, or bins
SECONDS = 300


def counts(folder: Path, data: str, column: Column, reading: Sequence[str]) -> list[dict[str, Any]]:
    """How often each level occurs, the most frequent first; numbers in bins of equal width.

    Raises:
        InputRejected: the records could not be counted.
    """
    asked = {
        "data": data,
        "column": column.name,
        "numeric": column.binned,
        "reading": list(reading),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gibbous.studio.histogram"],
        input=json.dumps(asked),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        raise InputRejected(
            "UNCOUNTED",
            f"Column {column.name!r} could not be counted.",
            "The file is read as the schema says.",
            "Hold the data against the schema first: it says what is wrong.",
        )
    counted: list[dict[str, Any]] = json.loads(done.stdout)
    top = max((one["count"] for one in counted), default=1)
    return [one | {"share": 100 * one["count"] / top} for one in counted]


def _count(asked: dict[str, Any]) -> list[dict[str, Any]]:
    import polars as pl

    from gibbous.read.source import ReadOptions, read_columns

    told = dict(zip(asked["reading"][::2], asked["reading"][1::2], strict=True))
    options = ReadOptions(**{flag[2:]: text for flag, text in told.items()})
    values = read_columns(asked["data"], options=options)[asked["column"]]
    numbers = values.cast(pl.Float64, strict=False) if asked["numeric"] else values
    if asked["numeric"] and numbers.drop_nulls().len() and numbers.n_unique() > MOST:
        low, high = float(numbers.min() or 0), float(numbers.max() or 0)
        width = (high - low) / 20 or 1.0
        bins = ((numbers - low) / width).floor().clip(0, 19)
        rows = pl.DataFrame({"bin": bins}).group_by("bin").len().sort("bin").rows()
        return [
            {"level": "missing" if b is None else f"{low + b * width:g} to {low + (b + 1) * width:g}",
             "count": n} for b, n in rows
        ]  # fmt: skip
    table = values.value_counts(sort=True).head(MOST).rows()
    return [{"level": "missing" if v is None else str(v), "count": n} for v, n in table]


if __name__ == "__main__":
    try:
        sys.stdout.write(json.dumps(_count(json.loads(sys.stdin.read()))))
    except Exception:  # noqa: BLE001 - texts of libraries hold values of cells
        sys.exit(1)
