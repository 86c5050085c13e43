"""Releases and findings for the tests of reports, with names that try to break out of a page."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

import gibbous as gb
from gibbous.core.finding import Finding
from gibbous.evaluation.findings import Findings

SCRIPT = "<script>alert('x')</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>&amp;"
HEBREW = "שלום עולם"
LONG = "very long name " * 14
MARKUP = "</title></style><svg onload=alert(1)>{{ 7919 * 7919 }}"
NASTY = (SCRIPT, QUOTES, HEBREW, LONG.strip(), MARKUP)


def nasty_schema() -> gb.Schema:
    """Columns and levels with hostile, long and right-to-left names."""
    return gb.Schema(
        (
            gb.Column(SCRIPT, "nominal", levels=NASTY),
            gb.Column(QUOTES, "ordinal", levels=("low", "mid", "high"), missing=True),
            gb.Column(HEBREW, "numeric", edges=(0, 10, 20, 50), integer=True, clamp=True),
            gb.Column("plain", "binary", levels=("no", "yes")),
        ),
        name=MARKUP,
    )


def nasty_frame(rows: int = 400) -> pl.DataFrame:
    """Records under `nasty_schema`."""
    places = range(rows)
    return pl.DataFrame(
        {
            SCRIPT: [NASTY[i % 5] for i in places],
            QUOTES: [("low", "mid", "high", None)[(i // 3) % 4] for i in places],
            HEBREW: [i * 7 % 50 for i in places],
            "plain": ["yes" if i % 4 == 0 else "no" for i in places],
        }
    )


def nasty_release(out: Path, method: object | None = None, **options: object) -> gb.Release:
    """A release of these records on disk."""
    chosen = method or gb.NoisyPegs(epsilon=2, delta=1e-6)
    given = {"seed": 5, "sets": 2, "ledger": gb.Ledger.ephemeral(), **options}
    found = gb.synthesize(nasty_frame(), nasty_schema(), chosen, out=out, **given)  # type: ignore[arg-type]
    assert isinstance(found, gb.Release)
    return found


def finding(name: str = "tv2", value: float = 0.02, **options: object) -> Finding:
    """One finding; every text of it may be replaced."""
    given: dict[str, object] = {
        "title": "Distance of two-way margins",
        "group": "utility",
        "better": "lower",
        "definition": "Half the sum of absolute differences. From 0 to 1.",
        "source": "a book",
        "interval": (value * 0.9, value * 1.1),
        "interval_of": "95 %",
        "null": (("bootstrap", 0.01), ("holdout", 0.011), ("independent", 0.07)),
        **options,
    }
    return Finding(name=name, value=value, **given)  # type: ignore[arg-type]


def overlay(columns: int, levels: int = 4) -> tuple[dict[str, object], ...]:
    """The detail of tv1 for many columns."""
    return tuple(
        {"column": f"column {j}", "level": f"level {k}", "real": 1 / levels,
         "synthetic": 1 / levels + (0.01 * j / columns if k == 0 else -0.01 * j / columns / (levels - 1))}
        for j in range(columns) for k in range(levels)
    )  # fmt: skip


def pairs(names: list[str]) -> tuple[dict[str, object], ...]:
    """The detail of associations for many columns."""
    return tuple(
        {"first": a, "second": b, "statistic": "rank correlation",
         "real": math.sin(i * j), "synthetic": math.sin(i * j) * 0.8}
        for i, a in enumerate(names) for j, b in enumerate(names[:i])
    )  # fmt: skip


def findings(names: tuple[str, ...] = (SCRIPT, QUOTES, HEBREW, LONG, "plain")) -> Findings:
    """One finding of every kind that a figure knows, about columns with these names."""
    column = names[0]
    shares = tuple(
        {"column": a, "level": b, "real": 0.2 + 0.01 * i, "synthetic": 0.2}
        for i, a in enumerate(names) for b in names
    )  # fmt: skip
    terms = tuple(
        {"level": "", "term": name, "real": 0.1 * i, "real_low": 0.1 * i - 0.1,
         "real_high": 0.1 * i + 0.1, "synthetic": math.nan if i == 3 else 0.1,
         "synthetic_low": math.nan if i == 3 else 0.0, "synthetic_high": 0.2, "overlap": 0.5}
        for i, name in enumerate(names)
    )  # fmt: skip
    items = (
        finding("tv1", 0.006, title="Distance of one-way margins", detail=shares, sets=(0.006,)),
        finding("tv2", 0.021, detail=({"first": column, "second": QUOTES, "distance": 0.1},)),
        finding("tv3", 0.045, title="Distance of three-way margins"),
        finding("association", 0.03, title="Difference of associations", interval=None,
                detail=pairs(list(names))),
        finding("coefficients", 1.2, title="Coefficients", subject=(column,), detail=terms,
                note=f"{column} ~ plain."),
        finding("pmse_ratio", 4.2, title="pMSE ratio", better="near", ideal=1.0, interval=None),
        finding("intruder_mode", 0.41, title="Guessed by the mode", group="risk",
                subject=(QUOTES, column), note=SCRIPT,
                null=(("independent", 0.37), ("outsiders", 0.405), ("margin", 0.38)),
                detail=({"about": "records", "value": 0.41}, {"keys met": True, "records": 12})),
        finding("population_unique", 0.4, title="Unique rows", group="risk",
                null=(("records", 1.0),), subject=(QUOTES,)),
        finding("membership_distance", math.nan, title="Membership told by distance",
                group="risk", better="near", ideal=0.5, interval=None, null=()),
    )  # fmt: skip
    facts = {
        "rows": {"real": 400, "synthetic": [390, 390], "holdout": None},
        "columns": list(names), "seed": 0, "keys": [QUOTES], "elapsed_s": {"all": 3.21},
    }  # fmt: skip
    return Findings(items, facts)


def few() -> Findings:
    """Two findings: a page that is drawn fast."""
    every = findings()
    return Findings((every["intruder_mode"], every["membership_distance"]), every.facts)


def study() -> list[dict[str, object]]:
    """Points of a risk-utility map."""
    return [
        {"mechanism": name, "epsilon_proven": float(eps), "tv2": k / eps, "tv2_low": 0.9 * k / eps,
         "tv2_high": 1.1 * k / eps}
        for name, k in ((SCRIPT, 0.03), ("sbhg", 0.05)) for eps in (0.1, 0.5, 1, 4)
    ]  # fmt: skip
