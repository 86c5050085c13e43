"""Which files hold a synthetic set: one while it is small, else a folder of parts of equal size."""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.request import Output

MOST_FILES = 50_000  # of all sets; beyond that, parts grow


def fitting(part_rows: int, rows: int, sets: int) -> int:
    """Rows a part, doubled until all sets have at most MOST_FILES files: public numbers alone."""
    while sets * parts(rows, part_rows) > MOST_FILES and part_rows < rows:
        part_rows *= 2
    return part_rows


def parts(rows: int, part_rows: int) -> int:
    """Number of files of a set; an empty set has one."""
    return max(1, -(-rows // part_rows))


def part_span(rows: int, part_rows: int, part: int) -> tuple[int, int]:
    """First row of a part within its set, and the row after its last one."""
    return part * part_rows, min(rows, (part + 1) * part_rows)


def part_name(number: int, rows: int, part_rows: int, part: int, form: str) -> str:
    """Name of one file within the package.

    Args:
        number: of the set, from 1.
        part: from 0.
        form: "parquet" or "csv".
    """
    if parts(rows, part_rows) == 1:
        return f"synthetic_{number}.{form}"
    return f"{set_folder(number, form)}/part-{part:05d}.{form}"


def set_folder(number: int, form: str) -> str:
    """Name of the folder of a set in parts; Parquet readers take it as one table."""
    return f"synthetic_{number}" + ("" if form == "parquet" else f"_{form}")


def set_files(number: int, rows: int, part_rows: int, form: str) -> Iterator[str]:
    """Names of all files of a set, in the order of its rows."""
    for part in range(parts(rows, part_rows)):
        yield part_name(number, rows, part_rows, part, form)


def set_folders(rows: int, output: Output) -> tuple[str, ...]:
    """Names of the folders that sets of so many rows need: none while each is one file."""
    if parts(rows, output.part_rows) == 1:
        return ()
    numbers = range(1, output.sets + 1)
    return tuple(set_folder(number, form) for number in numbers for form in output.formats)
