"""park2013: rows of the study in, its tables, figures and printed statements out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gibbous.studies import panels
from gibbous.studies.study_parts import (
    Figure,
    Printed,
    Row,
    Settings,
    Table,
    less,
    rounded,
    value_of,
)

DIVERSE: Final = "l-diversity"
EXPONENTIAL: Final = "exponential"
ORIGINAL: Final = "records"
CODES: Final = ("drg", "icd9_prcdr")
TARGET: Final = "days_n"
SHOWN: Final = ("days", "icd9_prcdr=NA")
LEVELS: Final = 60  # of a histogram that are drawn


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Marginals (figures 2 and 3), LASSO errors (figure 4), coefficients (figure 5), and costs."""
    rows = [row for row in rows if "penalty" in row]
    first = [row for row in rows if row["penalty"] == settings.values["penalties"][0]]
    where = f"{rows[0]['table']}, {rows[0]['records']:,} records"
    marginals = tuple(
        (row["method"], _named(row), *(rounded(row[n]) for n in (
            "far0", "even0", "levels0", "far1", "even1", "levels1", "copied")))
        for row in first
    )  # fmt: skip
    headers = ("method", "log l or epsilon")
    of = tuple(
        f"{code}: {what}" for code in CODES for what in ("to records", "to uniform", "levels")
    )
    shown_tables = [
        Table("marginals", f"Half L1 distances of the marginals: {where}",
              (*headers, *of, "rows that are records"), marginals)
    ]  # fmt: skip
    penalties = settings.values["penalties"]
    named = (("mse", "Error on the records"), ("b0", f"Coefficient of {SHOWN[0]}"),
             ("b1", f"Coefficient of {SHOWN[1]}"))  # fmt: skip
    for measure, title in named:
        lines = [
            (row["method"], _named(row),
             *(rounded(r[measure]) for r in rows
               if (r["method"], r["value"]) == (row["method"], row["value"])))
            for row in first
        ]  # fmt: skip
        shown = (*headers, *(f"penalty {p:g}" for p in penalties))
        shown_tables.append(
            Table(measure, f"{title}, target log(1 + {TARGET})", shown, tuple(lines))
        )
    costs = tuple(
        (row["method"], _named(row), row["charged"], row["file_epsilon"], rounded(row["likeliest"]))
        for row in first
        if row["method"] != ORIGINAL
    )
    shown = (*headers, "epsilon charged", "epsilon of the file, without the nearest key",
             "largest probability of a level that the entropy allows")  # fmt: skip
    return (*shown_tables, Table("costs", "What is charged, and what it costs", shown, costs))


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Figures 2 and 3 (histograms of both codes), figure 4 and figure 5."""
    del settings
    lines = [
        {**row, "setting": f"{row['method']} {_named(row)}".strip()}
        for row in rows
        if "penalty" in row
    ]
    order = tuple(dict.fromkeys(line["setting"] for line in lines))
    common: dict[str, Any] = {"x": "penalty", "by": "setting", "order": order, "columns": 2}
    panes = [
        {**line, "panel": title}
        for title in (DIVERSE, EXPONENTIAL)
        for line in lines
        if line["method"] in (title, ORIGINAL)
    ]
    paths = [
        {**line, "panel": f"{title}: {name}", "b": line[f"b{place}"]}
        for title in (DIVERSE, EXPONENTIAL)
        for place, name in enumerate(SHOWN)
        for line in lines
        if line["method"] in (title, ORIGINAL)
    ]
    errors = panels.Lines(
        y="mse", panel="panel", scales=("log", "log"), titles=("penalty λ", "mean squared error"),
        **common,
    )  # fmt: skip
    slopes = panels.Lines(
        y="b", panel="panel", scales=("log", "linear"), shared=False,
        titles=("penalty λ", "coefficient"), reference=0.0, **common,
    )  # fmt: skip
    return (
        *(_histogram(rows, column) for column in CODES),
        Figure("park2013-mse", "LASSO: error on the records", errors.chart(panes)),
        Figure("park2013-paths", "LASSO: coefficients", slopes.chart(paths)),
    )


def _histogram(rows: Sequence[Row], column: str) -> Figure:
    """Shares of the levels, those of the records in each panel beside those of a method."""
    mine = [row for row in rows if row.get("column") == column]
    real = [row for row in mine if row["method"] == ORIGINAL]
    points = []
    for row in mine:
        panel = f"{'log l' if row['method'] == DIVERSE else 'ε'} = {_named(row)}"
        if row["level"] < LEVELS and row["method"] != ORIGINAL:
            points.append({**row, "panel": panel, "by": "synthetic rows"})
            points.append({**real[row["level"]], "panel": panel, "by": "records"})
    chart = panels.Lines(
        x="level", y="share", by="by", panel="panel", order=("records", "synthetic rows"),
        titles=("level, the most frequent in the records first", "share of rows"),
        reference=1 / len(real), scales=("linear", "log"), height=110,
    ).chart(points)  # fmt: skip
    title = f"Histograms of {column}, the first {min(LEVELS, len(real))} of {len(real)} levels"
    return Figure(f"park2013-{column.replace('_', '-')}", f"{title}; dashed: uniform", chart)


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """The statements about figures 2 to 5: the paper prints no numbers."""
    weak, strong = settings.values["penalties"][0], settings.values["penalties"][-1]

    def of(measure: str, method: str, value: float | None, penalty: float = weak) -> float | None:
        return value_of(rows, measure, method=method, value=value, penalty=penalty)

    out = []
    for place, (figure, code) in enumerate(zip(("fig. 2", "fig. 3"), CODES, strict=True)):
        far, even = f"far{place}", f"even{place}"
        out += [
            Printed(figure, f"{code}, distance to records: log l = {high} less {low}", 0,
                    less(of(far, DIVERSE, high), of(far, DIVERSE, low)), side="above")
            for low, high in ((0.0, 0.1), (0.1, 0.2), (0.2, 0.5))
        ] + [
            Printed(figure, f"{code}, distance to records at ε = 10", 0, of(far, EXPONENTIAL, 10.0), 0.1),
            Printed(figure, f"{code}, distance to the uniform law at log l = 0.5", 0,
                    of(even, DIVERSE, 0.5), 0.1),
            Printed(figure, f"{code}, distance to the uniform law at ε = 0.5", 0,
                    of(even, EXPONENTIAL, 0.5), 0.1),
        ]  # fmt: skip
    mse = {log: of("mse", DIVERSE, log, 0.01) for log in (0.0, 0.1, 0.2, 0.5)}
    real = [r["mse"] for r in rows if r["method"] == ORIGINAL and "penalty" in r]
    spread, base = max(real) - min(real), of("mse", ORIGINAL, None, 0.01)
    four = "fig. 4"
    out += [
        Printed(four, f"error at penalty 0.01: log l = {high} less {low}", 0,
                less(mse[high], mse[low]), side="above")
        for low, high in ((0.0, 0.1), (0.1, 0.2), (0.0, 0.5))
    ] + [
        Printed(four, f"error at log l = {log} less that of the records, over their spread by penalty", 1,
                None if (gap := less(mse[log], base)) is None else gap / spread, side="below")
        for log in (0.1, 0.2, 0.5)
    ] + [
        Printed(four, "error at penalty 0.01: ε = 0.5 less ε = infinity", 0,
                less(of("mse", EXPONENTIAL, 0.5, 0.01), of("mse", EXPONENTIAL, None, 0.01)), side="above"),
    ]  # fmt: skip
    five = "fig. 5"
    named = [
        (ORIGINAL, None, "records"),
        (DIVERSE, 0.0, "log l = 0"),
        (DIVERSE, 0.2, "log l = 0.2"),
    ]
    out += [
        Printed(five, f"coefficient of days at penalty {strong:g}, {words}", 0.01,
                of("b0", method, value, strong), side="above")
        for method, value, words in (*named, (EXPONENTIAL, 50.0, "ε = 50"), (EXPONENTIAL, 1.0, "ε = 1"))
    ] + [
        Printed(five, f"coefficient of no procedure at penalty {weak:g}, {words}", 0,
                of("b1", method, value), side="below")
        for method, value, words in named
    ]  # fmt: skip
    return tuple(out)


def _named(row: Row) -> str:
    if row["method"] == ORIGINAL:
        return ""
    return "infinity" if row["value"] is None else f"{row['value']:g}"
