"""The sets of a release that is on disk: read, scanned or named when asked for, checked before use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.release import Lazy, SetReader
from gibbous.write import manifest
from gibbous.write.durable_files import refusing, rejected
from gibbous.write.parquet_guard import guarded_read, guarded_scan
from gibbous.write.set_files import parts, set_files

if TYPE_CHECKING:
    import polars as pl


def lazy_sets(folder: Path, receipt: Mapping[str, Any]) -> Lazy:
    """The sets of a package.

    Args:
        folder: of the package.
        receipt: its certificate; `rows` and `sets` were checked.
    Raises:
        ModelRejected: SHA256SUMS is not a list of digests.
    """
    names = [names_of(receipt, number) for number in range(1, receipt["sets"] + 1)]
    sums = manifest.digests(folder)
    return Lazy(
        [
            SetReader(
                read=partial(_read, folder, own, sums),
                scan=partial(_scan, folder, own, sums),
                files=partial(_checked, folder, own, sums),
            )
            for own in names
        ]
    )


def names_of(receipt: Mapping[str, Any], number: int, form: str = "parquet") -> tuple[str, ...]:
    """Names of the files of one set, counted from 1.

    Raises:
        ModelRejected: the certificate does not say how large its files are.
    """
    rows = receipt["rows"][number - 1]
    return tuple(set_files(number, rows, part_rows_of(receipt), form))


def part_rows_of(receipt: Mapping[str, Any]) -> int:
    """Rows a file: what the certificate says; a set is one file where it does not say.

    Raises:
        ModelRejected: it is not a number of rows, or makes more files than a release has.
    """
    with refusing("RECEIPT", "ledger.json does not say how large its files are"):
        most = max(receipt["rows"])
        part_rows = receipt["files"].get("part_rows", max(most, 1))
        whole = type(part_rows) is int and part_rows >= 1
        if whole and sum(parts(rows, part_rows) for rows in receipt["rows"]) <= manifest.MAX_FILES:
            return int(part_rows)
    raise rejected("RECEIPT", "the number of rows a file in ledger.json is not possible")


def _checked(folder: Path, names: tuple[str, ...], sums: dict[str, str]) -> tuple[Path, ...]:
    for name in names:
        if name not in sums or not (folder / name).is_file():
            raise rejected("MISSING", f"{name} is missing")
        manifest.check_file(folder, name, sums[name])
    return tuple(folder / name for name in names)


def _read(folder: Path, names: tuple[str, ...], sums: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    frames = [guarded_read(path) for path in _checked(folder, names, sums)]
    if len(frames) == 1:
        return frames[0]
    if len({tuple(frame.schema.items()) for frame in frames}) > 1:
        raise rejected("COLUMNS", f"the parts of {names[0].partition('/')[0]} have other columns")
    return pl.concat(frames)


def _scan(folder: Path, names: tuple[str, ...], sums: dict[str, str]) -> pl.LazyFrame:
    return guarded_scan(_checked(folder, names, sums))
