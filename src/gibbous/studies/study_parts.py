"""What a study consists of: settings in, cells, rows of figures, tables and drawings out; studies by name."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean

Row = Mapping[str, Any]
"""One tidy line of results: names of columns to numbers, texts, booleans or None."""
MODULES = {
    "bowen2016-1": "gibbous.studies.bowen2016_1",
    "bowen2016-2": "gibbous.studies.bowen2016_2",
    "bowen2016-3": "gibbous.studies.bowen2016_3",
    "park2013": "gibbous.studies.park2013",
    "park2014": "gibbous.studies.park2014",
    "sbhg-1": "gibbous.studies.sbhg_1",
    "sbhg-2": "gibbous.studies.sbhg_2",
    "sbhg-3": "gibbous.studies.sbhg_3",
    "onthemap": "gibbous.studies.onthemap",
}
"""Name -> the module that defines STUDY."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One independent part of a study, run in one process and kept when it is done.

    Attributes:
        name: of letters, digits, ".", "_", "=" and "-": a file is named after it.
        params: what the part is about, JSON values.
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the rows of a study depend on.

    Attributes:
        reps: repeats of each simulated setting.
        quick: the short setting that tests use.
        values: the study's own settings, JSON values.
        data: a table given with --data; None: the study's own.
        schema: the schema file of that table; None: the study knows it, or infers it.
    """

    reps: int
    seed: int
    quick: bool
    values: Mapping[str, Any]
    data: Path | None = None
    schema: Path | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is printed."""

    name: str
    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A drawing: `run` writes it as NAME.svg.

    Attributes:
        title: what it shows, in one line.
        chart: of `gibbous.studies.panels.Lines`.
    """

    name: str
    title: str
    chart: Any


Verdict = Literal["agrees", "differs", "not in this run"]


@dataclass(frozen=True, slots=True)
class Printed:
    """A number that a paper prints, or a statement as a number that has a sign, beside ours.

    Attributes:
        place: where in the paper.
        value: as printed; of a statement, where it turns.
        ours: what came out; None where this run has no such row.
        tolerance: how far ours may be away, or on the wrong side.
        side: "near" the value, or "above" or "below" it.
    """

    place: str
    quantity: str
    value: float
    ours: float | None
    tolerance: float = 0.0
    side: Literal["near", "above", "below"] = "near"

    @property
    def verdict(self) -> Verdict:
        """Whether ours is where the paper has it."""
        if self.ours is None:
            return "not in this run"
        gap = self.ours - self.value
        far = {"near": abs(gap), "above": -gap, "below": gap}[self.side]
        return "agrees" if far <= self.tolerance else "differs"


@dataclass(frozen=True, slots=True)
class Study:
    """One study. A module of this package makes one and calls it STUDY.

    Attributes:
        paper: where it is from, with the section.
        reproduces: what of the paper comes out of it, in one or two sentences.
        full: settings as the paper has them; "reps" is taken out of them.
        quick: settings for a run of seconds, laid over `full`.
        cells: the independent parts for some settings, in a fixed order.
        run_cell: the rows of one part; depends on its arguments alone (other processes call it).
        tables: what is printed, from all rows in the order of the cells.
        figures: what is drawn, from the same rows.
        printed: what the paper prints beside it, from the same rows.
        takes_data: whether --data and --schema mean something here.
    """

    name: str
    title: str
    paper: str
    reproduces: str
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    cells: Callable[[Settings], Sequence[Cell]]
    run_cell: Callable[[Cell, Settings], list[dict[str, Any]]]
    tables: Callable[[Sequence[Row], Settings], tuple[Table, ...]]
    figures: Callable[[Sequence[Row], Settings], tuple[Figure, ...]]
    printed: Callable[[Sequence[Row], Settings], tuple[Printed, ...]]
    takes_data: bool = False


def summary(printed: tuple[Printed, ...]) -> str:
    """How many rows there are of each verdict."""
    times = Counter(row.verdict for row in printed)
    words = ", ".join(
        f"{times[verdict]} {verdict.rstrip('s')}" for verdict in get_args(Verdict) if times[verdict]
    )
    return f"{len(printed)} printed numbers and statements: {words}."


def value_of(rows: Sequence[Row], measure: str, **keys: Any) -> float | None:
    """A measure of the first row with these values; None where there is none."""
    for row in rows:
        if all(row.get(name) == value for name, value in keys.items()):
            found = row.get(measure)
            return None if found is None else float(found)
    return None


def less(one: float | None, other: float | None) -> float | None:
    """Their difference; None where one is not known."""
    return None if one is None or other is None else one - other


def rounded(value: Any) -> Any:
    """A number as a table shows it, with four digits; anything else as it is."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def names() -> tuple[str, ...]:
    """Names of all studies; loads none."""
    return tuple(MODULES)


def load(name: str) -> Study:
    """The study of a name; UsageError if there is no such study, with the nearest name."""
    if name not in MODULES:
        raise UsageError(
            "UNKNOWNSTUDY",
            f"There is no study {name!r}.",
            f"Studies are {', '.join(MODULES)}.",
            did_you_mean(name, MODULES, "Choose one of these.", likeness=0.5),
        )
    study: Study = importlib.import_module(MODULES[name]).STUDY
    return study
