"""What people and machines see: aligned tables, JSON, and the last line, which states the cost first."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gibbous.cli.faults import safe, told

if TYPE_CHECKING:
    from pathlib import Path

    from gibbous.core.plan import Plan
    from gibbous.core.schema import Schema

NOT_DP = "not differentially private"


def line(text: str = "") -> None:
    """One line for people; control characters are shown, not obeyed."""
    print(safe(text))


def as_json(data: object) -> None:
    """The one JSON document of a run on stdout; an object gets the warnings of the run, if any."""
    if told and isinstance(data, dict):
        data = data | {"warnings": [*data.get("warnings", ()), *told]}
    json.dump(data, sys.stdout, ensure_ascii=True, allow_nan=False, indent=2)
    sys.stdout.write("\n")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table, drawn by Rich on a terminal, plain aligned text in a pipe; numbers are right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    numeric = [
        bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(headers))
    ]
    if sys.stdout.isatty():
        _rich(headers, cells, numeric)
        return
    plain(headers, cells, numeric)


def plain(
    headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool] | None = None
) -> None:
    """Aligned text without any library."""
    right = numeric or [False] * len(headers)
    widths = [max(len(row[i]) for row in [headers, *cells]) for i in range(len(headers))]
    for row in [headers, *cells]:
        shown = [
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)
        ]
        line(f"  {'  '.join(shown)}".rstrip())


def quoted(path: object) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))


def counted(count: int, noun: str) -> str:
    """A number with its noun: '1 set', '2 sets'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def figure(value: object, form: str = ".4g") -> str:
    """A number in a table; nothing where there is none, other things as they are."""
    if value is None or value != value:
        return ""
    return format(value, form) if isinstance(value, float) else str(value)


def bytes_words(count: int) -> str:
    """Bytes for people: '3.2 MB'."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def folder(path: Path, *, prefix: bool = False) -> None:
    """The files of a release with their sizes; an inner folder is one line."""
    rows: list[tuple[str, int]] = []
    for entry in sorted(path.iterdir(), key=lambda p: (p.is_dir(), p.name)):
        name = str(entry if prefix else entry.name)
        if entry.is_dir():
            sizes = [p.stat().st_size for p in entry.rglob("*") if p.is_file()]
            rows.append((f"{name}/ ({len(sizes)} files)", sum(sizes)))
        else:
            rows.append((name, entry.stat().st_size))
    width = max((len(name) for name, _ in rows), default=0)
    for name, size in rows:
        line(f"  {name:<{width}}  {bytes_words(size):>10}")


def cost_words(plan: Plan, schema: Schema, uncovered: Sequence[str] = ()) -> str:
    """The total cost of everything released, first the number, then what it does not cover.

    Args:
        plan: of the run; its rows are the rows that were drawn.
        uncovered: facts read off the data that were accepted.
    """
    from gibbous.write.certificate import guarantee

    return bound(guarantee(plan, schema, tuple(uncovered)), plan.total.is_dp)


def bound(guarantee: str, is_dp: bool) -> str:
    """A guarantee as an answer to what a release costs: without differential privacy there is no bound."""
    return guarantee if is_dp else f"no bound ({guarantee})"


def _rich(headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header, right in zip(headers, numeric, strict=True):
        drawn.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(safe(cell)) for cell in row))
    Console(highlight=False).print(drawn)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()


def print_version(wanted: bool) -> None:
    """Print the version and end, where it was asked for."""
    if wanted:
        from importlib.metadata import version

        print(f"gibbous {version('gibbous')}")
        import typer

        raise typer.Exit
