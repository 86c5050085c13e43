"""onthemap: mean commutes of small destinations, two radii of the domain, and DP alternatives.

One draw of a method is a table of flows; each destination's mean great-circle commute is compared
with the true one, as in the four figures of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gibbous.evaluation.flows import SIZES
from gibbous.evaluation.flows_trips import Trips
from gibbous.studies import panels
from gibbous.studies.onthemap_data import RANGES, Commutes, constructed, given
from gibbous.studies.onthemap_laws import METHODS, PRINTED, Method
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import (
    Cell,
    Figure,
    Printed,
    Row,
    Settings,
    Study,
    Table,
    less,
    rounded,
)

_NUMBER: Final = 61  # of this study, in the path of every draw
_CLASSES: Final = ("short", "moderate", "long")
TRUTH: Final = "true table"
_MEAN: Final = "Mean commute a destination"
_BY: Final = "synthetic minus true, miles, by people"
_HEAD: Final = ("miles", "epsilon", "method", "people", "destinations", "bias", "error", "no trips")
_SHOWN: Final = ("epsilon", "method", "class", "destinations", "bias", "error", "empty")


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a radius of the domain, epsilon and method; shrinking at the first epsilon alone."""
    values = settings.values
    ranges = values["given_ranges"] if settings.data is not None else values["ranges"]
    return tuple(
        Cell(
            f"reach={reach:g}.epsilon={epsilon:g}.method={k}",
            {"reach": float(reach), "epsilon": float(epsilon), "method": k},
        )
        for reach in ranges
        for place, epsilon in enumerate(values["epsilon"])
        for k, method in enumerate(METHODS)
        if (place == 0 or not method.shrinks) and (settings.data is None or not method.printed)
    )


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row a destination, and one for the table as a whole, averaged over repeats."""
    reach, method = float(cell.params["reach"]), METHODS[cell.params["method"]]
    truth = _truth(settings, reach)
    epsilon = float(cell.params["epsilon"])
    drawn = _drawn(method, truth, settings, epsilon, int(cell.params["method"]))
    mine = Trips.of(truth.flows, truth.geography)
    facts = {"reach": reach, "epsilon": epsilon, "method": method.label, "promise": method.promise}
    short = truth.cuts[0]
    columns = {"": _compared(mine, drawn, np.inf), "short_": _compared(mine, drawn, short)}
    rows = [
        facts | {"level": "destination", "destination": k, "people": int(people)}
        | {f"{name}{what}": _plain(v[k]) for name, part in columns.items() for what, v in part.items()}
        for k, people in enumerate(mine.totals)
        if people
    ]  # fmt: skip
    shares = np.mean([one.shares(truth.cuts) for one in drawn], axis=0)
    whole = facts | {"level": "table", "destination": None, "people": truth.flows.records}
    whole |= {
        f"real_{k}": _plain(v) for k, v in zip(_CLASSES, mine.shares(truth.cuts), strict=True)
    }
    whole |= {f"share_{k}": _plain(v) for k, v in zip(_CLASSES, shares, strict=True)}
    whole["drawn_people"] = float(np.mean([one.flows.records for one in drawn]))
    return [*rows, whole]


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Bias and error by size of destination, all and short trips; classes of commutes."""
    del settings
    shown_tables = []
    for kind, title in (("", "all trips"), ("short_", "short trips")):
        lines = [
            (f"{r['reach']:g}", *(r[name] for name in _SHOWN))
            for r in _by_size(rows, kind)
        ]  # fmt: skip
        shown_tables.append(
            Table(
                "bias" if not kind else "bias-short",
                f"{_MEAN}, {title}: {_BY}",
                _HEAD,
                tuple(lines),
            )
        )
    return (*shown_tables, _classes(rows))


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """The paper's figures 1 to 4 (each point a destination), and the error by size, all methods."""
    del settings
    drawn = [
        Figure(
            f"onthemap-commutes{'-short' if kind else ''}",
            f"mean commute a destination, {'short' if kind else 'all'} trips",
            _points(rows, kind),
        )
        for kind in ("", "short_")
    ]
    order = [m.label for m in METHODS]
    for kind, title in (("", "all trips"), ("short_", "short trips")):
        shown = [
            {**r, "panel": f"within {r['reach']:g} miles, ε = {r['epsilon']:g}"}
            for r in _by_size(rows, kind)
            if r["error"] is not None
        ]
        chart = panels.Lines(
            x="middle", y="error", by="method", panel="panel", order=order, columns=2,
            titles=("people of the destination", f"error of mean commute, miles, {title}"),
            scales=("log", "log"), height=240,
        ).chart(shown)  # fmt: skip
        drawn.append(
            Figure(f"onthemap-error{'-short' if kind else ''}", f"error by size, {title}", chart)
        )
    return tuple(drawn)


def _truth(settings: Settings, reach: float) -> Commutes:
    if settings.data is not None:
        return given(settings, reach)
    values = settings.values
    return constructed(settings.seed, reach, float(values["scale"]), float(values["jobs"]))


def _drawn(
    method: Method, truth: Commutes, settings: Settings, epsilon: float, number: int
) -> list[Trips]:
    delta, reach = float(settings.values["delta"]), truth.geography.reach
    out = []
    for rep in range(settings.reps):
        draws = Draws(settings.seed, (_NUMBER, round(reach), round(1000 * epsilon), number, rep))
        out.append(Trips.of(method.law(truth, epsilon, delta, draws), truth.geography))
    return out


def _compared(mine: Trips, drawn: Sequence[Trips], below: float) -> dict[str, np.ndarray]:
    """Of each destination: true mean, that of the first draw, mean bias and error over draws."""
    real = mine.means(below)
    gaps = np.array([one.means(below) for one in drawn]) - real
    known = np.isfinite(gaps)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, gaps, 0.0)
    lost = ~known.any(axis=0)
    return {
        "real": real,
        "first": drawn[0].means(below),
        "bias": np.where(lost, np.nan, filled.sum(axis=0) / count),
        "error": np.where(lost, np.nan, np.abs(filled).sum(axis=0) / count),
    }


def _by_size(rows: Sequence[Row], kind: str) -> list[dict[str, Any]]:
    """One row a method, radius and class of size; `empty` is the share of destinations without trips."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["level"] == "destination" and row[f"{kind}real"] is not None:
            size = max(k for k, low in enumerate(SIZES) if row["people"] >= low)
            groups.setdefault((row["reach"], row["epsilon"], row["method"], size), []).append(row)
    out = []
    for (reach, epsilon, method, size), mine in sorted(groups.items(), key=_place):
        known = [r for r in mine if r[f"{kind}bias"] is not None]
        ends = f"{SIZES[size]} to {SIZES[size + 1] - 1}" if size < len(SIZES) - 1 else ""
        out.append(
            {
                "reach": reach,
                "epsilon": epsilon,
                "method": method,
                "class": ends or f"{SIZES[size]}+",
                "middle": float(np.median([r["people"] for r in mine])),
                "destinations": len(mine),
                "bias": _mean([r[f"{kind}bias"] for r in known]),
                "error": _mean([r[f"{kind}error"] for r in known]),
                "empty": round(1 - len(known) / len(mine), 3),
            }
        )
    return out


def _place(item: tuple[tuple[Any, ...], Any]) -> tuple[Any, ...]:
    reach, epsilon, method, size = item[0]
    return -reach, -epsilon, [m.label for m in METHODS].index(method), size


def _classes(rows: Sequence[Row]) -> Table:
    lines: list[tuple[Any, ...]] = []
    for row in rows:
        if row["level"] != "table":
            continue
        miles = f"{row['reach']:g}"
        if not lines or lines[-1][0] != miles:
            true = (rounded(row[f"real_{k}"]) for k in _CLASSES)
            lines.append((miles, "", TRUTH, *true, row["people"]))
        shares = (rounded(row[f"share_{k}"]) for k in _CLASSES)
        people = round(row["drawn_people"])
        lines.append((miles, row["epsilon"], row["method"], *shares, people))
    headers = ("miles", "epsilon", "method", *_CLASSES, "people")
    return Table("classes", "Shares of short, moderate and long commutes", headers, tuple(lines))


def _points(rows: Sequence[Row], kind: str) -> Any:
    """People of a destination and its mean commute: true, as printed, and ours (figures 1 to 4)."""
    shown = (PRINTED, "onthemap, shrunk", "onthemap, grid cells")
    names = [TRUTH, *(n for n in shown if any(r["method"] == n for r in rows))]
    first, points = rows[0]["epsilon"], list[Row]()
    for row in rows:
        if (row["level"], row["epsilon"]) == ("destination", first) and row["method"] in names:
            place = {"x": row["people"], "panel": f"within {row['reach']:g} miles"}
            if row["method"] == names[1]:
                points.append(place | {"y": row[f"{kind}real"], "by": TRUTH})
            points.append(place | {"y": row[f"{kind}first"], "by": row["method"]})
    return panels.Lines(
        x="x", y="y", by="by", panel="panel", order=names, columns=2, scales=("log", "linear"),
        titles=("people of the destination", "mean commute, miles"), joined=False, shared=False,
        height=230,
    ).chart(points)  # fmt: skip


def _mean(values: Sequence[float]) -> float | None:
    return rounded(float(np.mean(values))) if values else None


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Quantiles of commutes that the table is made of, and the statements about figures 1 to 4."""
    far, near = (float(r) for r in RANGES)
    of = {
        (r["reach"], k): (r[f"real_{k}"], r[f"share_{k}"])
        for r in rows
        for k in _CLASSES
        if (r["level"], r["method"]) == ("table", PRINTED)
    }
    sized = {
        (kind, r["reach"], r["class"]): r
        for kind in ("", "short_")
        for r in _by_size(rows, kind)
        if r["method"] == PRINTED
    }
    classes = list(dict.fromkeys(key[2] for key in sized))
    few, many = (classes[0], classes[-1]) if classes else ("", "")

    def at(kind: str, reach: float, people: str, measure: str) -> float | None:
        row = sized.get((kind, reach, people))
        return None if row is None else row[measure]

    def over(reach: float, trips: str) -> float | None:
        return less(*reversed(of[reach, trips])) if (reach, trips) in of else None

    real = [of.get((far, k), (None, None))[0] for k in _CLASSES]
    middle = [None if (gap := over(r, "moderate")) is None else abs(gap) for r in (near, far)]
    given = settings.data is not None
    return (
        Printed("s6", "share of commutes below 6.23 miles", 0.5, None if given else real[0], 0.03),
        Printed("s6", "share of commutes beyond 21.54 miles", 0.1, None if given else real[2], 0.03),
        Printed("fig. 1", "200 miles: share of long commutes, printed method less truth", 0,
                over(far, "long"), side="above"),
        Printed("fig. 1", f"200 miles: bias at {few} people less that at {many}", 0,
                less(at("", far, few, "bias"), at("", far, many, "bias")), side="above"),
        Printed("fig. 2", f"200 miles, {few} people: error of short trips less that of all", 0,
                less(at("short_", far, few, "error"), at("", far, few, "error")), side="below"),
        Printed("fig. 2", f"200 miles, {few} people: bias of short trips", 0,
                at("short_", far, few, "bias"), side="below"),
        Printed("fig. 2", f"200 miles: error of short trips at {many} people less that at {few}", 0,
                less(at("short_", far, many, "error"), at("short_", far, few, "error")), side="below"),
        Printed("fig. 3", f"bias at {few} people: 100 miles less 200", 0,
                less(at("", near, few, "bias"), at("", far, few, "bias")), side="below"),
        Printed("fig. 3", "miss in the share of moderate commutes: 100 miles less 200", 0,
                less(middle[0], middle[1]), side="below"),
        Printed("fig. 3", "100 miles: share of long commutes, printed method less truth", 0,
                over(near, "long"), side="above"),
    )  # fmt: skip


STUDY = Study(
    name="onthemap",
    title="Commutes to small destinations, two domains and what DP costs",
    paper="onthemap, s6",
    reproduces=(
        "Figures 1 to 4: mean commute distance by people of the destination, candidate origins within "
        "200 and within 100 miles, all and short trips; and differentially private tables beside them."
    ),
    full={
        "reps": 2,
        "ranges": list(RANGES),
        "given_ranges": [60.0, 30.0],
        "scale": 1.0,
        "jobs": 15.0,
        "destinations": 120,
        "epsilon": [8.569, 4.6],
        "delta": 1e-5,
    },
    quick={"scale": 0.1, "destinations": 12},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
    takes_data=True,
)
