"""A study that was run: tidy figures, means over repeats, the risk-utility map and its front."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core import durable
from gibbous.core.errors import InputRejected, OutputNotWritten, UsageError
from gibbous.core.exact import is_finite
from gibbous.core.finding import Better
from gibbous.core.json_values import plain
from gibbous.core.keywords import answering
from gibbous.frontier.grid import REFERENCES
from gibbous.frontier.runner import parquet, tidy, write_study

if TYPE_CHECKING:
    import polars as pl

AXES = {
    "epsilon_proven": "epsilon proven for the whole file",
    "epsilon_claimed": "epsilon of one unit, as the papers plot it",
    "l": "l of entropy l-diversity",
}
LEVEL = 0.95
_STRUCTURE = ("label", "mechanism", "epsilon", "delta", "l", "repeat", "kind", "unit")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """What `compare` returns.

    Attributes:
        rows: one dictionary a run and finding: label, mechanism, epsilon, delta, l, repeat, kind and
            unit of the claim, epsilon_claimed, epsilon_proven, delta_proven, metric, subject, value,
            low, high, better, rows, seconds, cpu_seconds, memory_planned, failed.
        facts: the settings, and whether the records are public.
    """

    rows: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        runs = {(r["label"], r.get("epsilon"), r.get("l"), r["repeat"]) for r in self.rows}
        return f"<Study: {len(runs)} runs of {len({r['label'] for r in self.rows})} tables>"

    @property
    def confidential(self) -> bool:
        """Whether its figures were computed against records that are not public."""
        return not self.facts.get("public_data", False)

    def metrics(self) -> tuple[str, ...]:
        """Names of the findings, in order."""
        return tuple(dict.fromkeys(r["metric"] for r in self.rows if r["metric"]))

    def failed(self) -> tuple[tuple[str, str], ...]:
        """(label, reason) of runs that were refused, or whose method ended with an error."""
        return tuple(dict.fromkeys((r["label"], r["failed"]) for r in self.rows if r.get("failed")))

    def frame(self) -> pl.DataFrame:
        """One row a run and finding, tidy."""
        costs = ("epsilon_claimed", "epsilon_proven", "delta_proven")
        return tidy(self.rows, (*_STRUCTURE, *costs))

    def points(self) -> list[dict[str, Any]]:
        """One dictionary a table and budget: each finding's mean over repeats under its name, the ends
        of a 95 % t-interval of that mean under name_low and name_high (absent for one repeat). A
        finding of several columns is first averaged over these.
        """
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            if row["metric"]:
                key = (row["label"], row.get("epsilon"), row.get("l"))
                groups.setdefault(key, []).append(row)
        return [_point(rows) for rows in groups.values()]

    def front(self, x: str = "epsilon_proven", y: str = "tv2") -> pl.DataFrame:
        """The points that no other point beats in both risk and utility, by x."""
        import polars as pl

        from gibbous.reporting.risk_utility import front

        points = [
            {**p, "cost_x": self._cost(x, p[x]), "cost_y": self._cost(y, p[y])}
            for p in self._known(x, y)
            if p["label"] not in REFERENCES
        ]
        best = sorted(front(points, x="cost_x", y="cost_y"), key=lambda p: float(p[x]))
        columns = ["label", "mechanism", "epsilon", "l", "kind", "unit", x, y]
        return pl.DataFrame([{c: point.get(c) for c in dict.fromkeys(columns)} for point in best])

    def ru_map(self, x: str = "epsilon_proven", y: str = "tv2", *, ci: bool = True) -> RuMap:
        """The risk-utility map.

        Args:
            x: "epsilon_proven" (of the whole file), "epsilon_claimed" (of one unit, the papers' axis),
                "l", or a finding (an empirical risk).
            y: a finding.
            ci: error bars: 95 % t-intervals of the means over repeats.
        Returns:
            A map with `save(path)` for .html, .svg, .png and .json.
        Raises:
            UsageError: there is no such axis, or no point that has both.
        """
        points = self._known(x, y)
        return RuMap(
            points=tuple(points),
            x=x,
            y=y,
            titles=(self._title(x), self._title(y)),
            better=(self._better(x), self._better(y)),
            intervals=ci,
            confidential=self.confidential,
            references=tuple(
                (p["label"], float(p[y]))
                for p in self.points()
                if p["label"] in REFERENCES and is_finite(p.get(y)) and not is_finite(p.get(x))
            ),
        )

    def write(self, folder: str | Path) -> Path:
        """Write study.parquet and points.json into a folder, readable by their owner alone.

        Raises:
            OutputNotWritten: a file cannot be written.
        """
        text = json.dumps(plain(self.to_json()), indent=1)
        files = {"study.parquet": parquet(self.frame()), "points.json": text.encode()}
        write_study(Path(folder), files)
        return Path(folder)

    @staticmethod
    @answering
    def load(folder: str | Path) -> Study:
        """Read what `write` wrote.

        Raises:
            InputRejected: the folder holds no study.
        """
        import polars as pl

        place = Path(folder)
        try:
            rows = pl.read_parquet(place / "study.parquet").to_dicts()
            facts = json.loads((place / "points.json").read_text(encoding="utf-8"))["facts"]
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
            raise InputRejected(
                "STUDY",
                f"{str(place)!r} holds no study.",
                "gibbous compare writes study.parquet and points.json into its folder.",
                "Give that folder.",
            ) from None
        return Study(tuple(rows), facts)

    def to_json(self) -> dict[str, Any]:
        """Settings, points and refusals as plain values."""
        return {
            "confidential": self.confidential,
            "facts": dict(self.facts),
            "points": self.points(),
            "failed": [{"label": label, "reason": why} for label, why in self.failed()],
        }

    def _known(self, x: str, y: str) -> list[dict[str, Any]]:
        allowed = [*AXES, *self.metrics()]
        for axis in (x, y):
            if axis not in allowed:
                raise UsageError(
                    "AXIS",
                    f"There is no axis {axis!r}.",
                    f"Axes are {', '.join(allowed)}.",
                    "Choose one of these, or add the finding to metrics.",
                )
        points = [p for p in self.points() if is_finite(p.get(x)) and is_finite(p.get(y))]
        if not points:
            raise UsageError(
                "NOPOINT",
                f"No run has both {x} and {y}.",
                "A point of the map has a finite value on both axes.",
                "Choose another axis: methods without a claim have no epsilon.",
            )
        return points

    def _title(self, axis: str) -> str:
        """What an axis is called, with its better direction where that is not a cost."""
        if axis in AXES:
            return AXES[axis]
        row, better = next(r for r in self.rows if r["metric"] == axis), self._better(axis)
        words = f"near {row['ideal']:g} is better" if better == "near" else f"{better} is better"
        return f"{row.get('title', axis)} ({words})"

    def _better(self, axis: str) -> Better:
        if axis in AXES:
            return "higher" if axis == "l" else "lower"
        row = next(r for r in self.rows if r["metric"] == axis)
        # A finding that is best near a value which nobody stated is read as a distance.
        return "lower" if row["better"] == "near" and row.get("ideal") is None else row["better"]

    def _cost(self, axis: str, value: float) -> float:
        """How far a value is from what would be best: the lower, the better."""
        better = self._better(axis)
        if better == "near":
            ideal = next(r["ideal"] for r in self.rows if r["metric"] == axis)
            return abs(value - float(ideal))
        return value if better == "lower" else -value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RuMap:
    """A risk-utility map: points and how they are drawn.

    Attributes:
        points: as `Study.points`, with finite x and y.
        better: direction of each; "near": near its ideal, which the title names.
        intervals: whether error bars are drawn.
        references: (name, y) of tables that have no x.
    """

    points: tuple[Mapping[str, Any], ...]
    x: str
    y: str
    titles: tuple[str, str]
    better: tuple[Better, Better]
    intervals: bool
    confidential: bool
    references: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        return f"<RuMap of {len(self.points)} points: {self.y} over {self.x}>"

    def chart(self) -> Any:
        """An Altair chart.

        Raises:
            EngineFailure: the extra "report" is not installed.
        """
        from gibbous.reporting.risk_utility import ru_map

        chart = ru_map(
            self.points,
            self.x,
            self.y,
            by="label",
            titles=self.titles,
            better=self.better,
            intervals=self.intervals,
            references=self.references,
        )
        if self.confidential:
            chart = chart.properties(title="Confidential: computed against real records")
        return chart

    def save(self, path: str | Path) -> Path:
        """Write the map: .html (self-contained), .svg, .png or .json (its points).

        Its owner alone may read the file; one that is there is replaced.

        Raises:
            UsageError: another ending.
            OutputNotWritten: the file cannot be written.
        """
        target = Path(path)
        if target.suffix not in (".html", ".svg", ".png", ".json"):
            raise UsageError(
                "MAPFILE",
                f"{target.name!r} has no ending that a map can be written as.",
                "Endings are .html, .svg, .png and .json.",
                "Rename it.",
            )
        fresh = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
        try:
            durable.write_private(fresh, b"")  # what follows keeps its mode
            if target.suffix == ".json":
                fresh.write_text(json.dumps(plain([dict(p) for p in self.points]), indent=1))
            elif target.suffix == ".html":
                self.chart().properties(width="container").save(str(fresh), inline=True)
            else:
                self.chart().save(str(fresh))
            os.replace(fresh, target)
        except OSError as error:
            raise OutputNotWritten(
                "MAP",
                f"The map cannot be written to {str(target)!r} ({error.strerror}).",
                "Its folder exists and may be written to.",
                "Choose another path.",
            ) from None
        return target


def _point(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    from gibbous.core.extras import need

    first = rows[0]
    kept = (*_STRUCTURE, "epsilon_claimed", "epsilon_proven", "delta_proven")
    point = {name: first.get(name) for name in kept if name != "repeat"}
    for name in ("seconds", "cpu_seconds", "rows"):
        values = [r[name] for r in rows if r.get(name) is not None]
        point[name] = float(np.mean(values)) if values else None
    for metric in dict.fromkeys(r["metric"] for r in rows):
        values = _by_repeat([r for r in rows if r["metric"] == metric])
        point[metric] = mean = float(np.mean(values)) if values else math.nan
        if len(values) > 1:
            spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            reach = spread * need("scipy.stats", "evaluate").t.ppf((1 + LEVEL) / 2, len(values) - 1)
            point |= {f"{metric}_low": mean - float(reach), f"{metric}_high": mean + float(reach)}
    return point


def _by_repeat(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """One number a repeat: a finding of several columns or formulas is their mean there.

    The columns of one repeat share its noise: as values of their own they would make intervals of
    differences between columns.
    """
    repeats: dict[Any, list[float]] = {}
    for row in rows:
        if is_finite(row["value"]):
            repeats.setdefault(row["repeat"], []).append(row["value"])
    return [float(np.mean(values)) for values in repeats.values()]
