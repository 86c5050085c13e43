"""park2014: rows of the study in, the statements of its section 4 beside ours out."""

from __future__ import annotations

from collections.abc import Sequence

from gibbous.studies.study_parts import Printed, Row, Settings, less, value_of


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Table 3 and the statements about figures 4 to 9, at epsilon 0.1 and 10 a row."""
    from gibbous.studies.park2014 import BLOCK, BOOTSTRAP, PEGS, PMI

    maps = [row for row in rows if row["part"] == "map"]

    def of(measure: str, method: str, epsilon: float | None) -> float | None:
        return value_of(maps, measure, method=method, epsilon=epsilon)

    low, high = 0.1, 10.0
    distances = {"marginal": "marginal distance", "given_age": "distance given age",
                 "given_hosp": "distance given hospital"}  # fmt: skip
    near = [
        row
        for measure, words in distances.items()
        for figure in ("fig. 5" if measure == "marginal" else "fig. 6",)
        for row in (
            *(Printed(figure, f"{words}, {method} at ε = 10", 0, of(measure, method, high), 0.2)
              for method in (PEGS, BLOCK, PMI)),
            *(Printed(figure, f"{words} at ε = {at:g}: {one} less {other}", 0,
                      less(of(measure, one, at), of(measure, other, at)), side="below")
              for one, other, at in ((BLOCK, PEGS, low), (BLOCK, PMI, low), (PEGS, BLOCK, high))),
        )
    ]  # fmt: skip
    fits = [
        Printed("fig. 7", f"{measure} coefficients, distance at ε = {at:g}: Block PeGS less {other}", 0,
                less(of(measure, BLOCK, at), of(measure, other, at)), side="below")
        for measure in ("linear", "logistic")
        for at in (low, high)
        for other in (PEGS, PMI)
    ]  # fmt: skip
    intruders = [
        Printed("fig. 9", f"{words} at ε = 10: {method} less bootstrap", 0,
                less(of(measure, method, high), of(measure, BOOTSTRAP, None)), side="above")
        for measure, words in (("mdc_missed", "diagnoses missed"), ("unique", "unique rows"))
        for method in (PEGS, BLOCK, PMI)
    ] + [
        Printed("fig. 9", f"error in procedures, {method}: ε = 0.1 less 10", 0,
                less(of("nproc_error", method, low), of("nproc_error", method, high)), side="above")
        for method in (PEGS, BLOCK)
    ]  # fmt: skip
    return (*_sampled(rows, settings), *near, *fits, *intruders)


def _sampled(rows: Sequence[Row], settings: Settings) -> list[Printed]:
    """Table 3 and figure 4; what a column of a row that is drawn anew becomes is chance."""
    from gibbous.studies.park2014 import BLOCK, PEGS

    steps = [row for row in rows if row["part"] == "demonstration"]
    names = [name for name in steps[0] if name.startswith("value_")]
    kept = sum(steps[0][name] == steps[-1][name] for name in names)
    out = [Printed("table 3", f"of {len(names)} columns, not changed by a pass", 4, float(kept), 3)]
    shares: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["part"] == "histograms":
            shares.setdefault((row["column"], row["method"]), []).append(row["share"])
    block = f"{BLOCK}, one block"
    for column in dict.fromkeys(column for column, _ in shares):
        real, ours, theirs = (shares[column, method] for method in ("records", PEGS, block))
        even = [1 / len(real)] * len(real)
        for words, other, side in (
            ("the records", real, "below"),
            ("the uniform law", even, "above"),
        ):
            gap = _half(ours, other) - _half(theirs, other)
            quantity = f"{column}, distance to {words}: PeGS less one block"
            out.append(Printed("fig. 4", quantity, 0, gap, side=side))  # type: ignore[arg-type]
    costs = {row["method"]: row["true_epsilon"] for row in rows if row["part"] == "histograms"}
    ratio = costs[PEGS] / (costs[block] * settings.values["rows"])
    out.append(
        Printed("fig. 4", "privacy cost of PeGS over rows times that of one block", 1, ratio)
    )
    return out


def _half(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2
