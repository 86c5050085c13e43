"""The counts of one column of confidential records, made by a process of its own; for the operator alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gibbous.core.column import Column
from gibbous.core.errors import InputRejected
from gibbous.studio.words import refusal, words
from gibbous.studio.workplace import SCRATCH, doors

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
    counted: list[dict[str, Any]] = answered("gibbous.studio.histogram", folder, asked)
    top = max((one["count"] for one in counted), default=1)
    return [one | {"share": 100 * one["count"] / top} for one in counted]


def answered(module: str, folder: Path, asked: Mapping[str, Any]) -> Any:
    """What a module of ours says of records, read by a process of its own; its complaints are withheld.

    Args:
        module: run as a program, it answers with `tell`.
    Raises:
        InputRejected: the records could not be counted.
    """
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-P", "-m", module],
            input=json.dumps(asked),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=os.environ | doors(folder / SCRATCH),
        )
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise refusal("UNCOUNTED", SECONDS, kind=InputRejected)


def tell(count: Callable[[dict[str, Any]], Any]) -> None:
    """Answer what standard input asks; without a message where that fails: texts of libraries hold values."""
    try:
        sys.stdout.write(json.dumps(count(json.loads(sys.stdin.read()))))
    except Exception:  # noqa: BLE001 - texts of libraries hold values of cells
        sys.exit(1)


def reading_of(asked: Mapping[str, Any]) -> Any:
    """How text is read, of the flags that were asked with."""
    from gibbous.read.source import ReadOptions

    flags = asked["reading"]
    return ReadOptions(**{f[2:]: text for f, text in zip(flags[::2], flags[1::2], strict=True)})


def _count(asked: dict[str, Any]) -> list[dict[str, Any]]:
    import polars as pl

    from gibbous.read.source import read_columns

    named = words()["assess"]
    values = read_columns(asked["data"], options=reading_of(asked))[asked["column"]]
    numbers = values.cast(pl.Float64, strict=False) if asked["numeric"] else values
    if asked["numeric"] and numbers.drop_nulls().len() and numbers.n_unique() > MOST:
        low, high = float(numbers.min() or 0), float(numbers.max() or 0)
        width = (high - low) / 20 or 1.0
        bins = ((numbers - low) / width).floor().clip(0, 19)
        rows = pl.DataFrame({"bin": bins}).group_by("bin").len().sort("bin").rows()
        return [
            {"level": named["missing"] if b is None else
             named["span"].format(f"{low + b * width:g}", f"{low + (b + 1) * width:g}"), "count": n}
            for b, n in rows
        ]  # fmt: skip
    table = values.value_counts(sort=True).head(MOST).rows()
    return [{"level": named["missing"] if v is None else str(v), "count": n} for v, n in table]


if __name__ == "__main__":
    tell(_count)
