"""Small tables without a schema, and the purchase of one from them."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.claim import approximate
from gibbous.core.discovery import Discovery
from gibbous.core.schema import Schema, Unit
from gibbous.disintegrate.text_records import TextEngine
from gibbous.mechanisms._bought_schema import bought_schema
from gibbous.mechanisms._discovery_parts import Parts
from gibbous.privacy.text_curator import TextCurator

PLENTY = approximate(Fraction(10**9), Fraction(1, 2))


def visits(rows: int = 4000) -> pl.DataFrame:
    """One column of each kind, as text."""
    draw = np.random.default_rng(7)
    first = datetime.date(2019, 1, 1)
    days = [first + datetime.timedelta(days=int(d)) for d in draw.integers(0, 700, rows)]
    number = draw.gamma(2, 40, rows)
    return pl.DataFrame(
        {
            "patient": [f"P{i // 2}" for i in range(rows)],
            "sex": draw.choice(["F", "M"], rows),
            "ward": draw.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.199, 0.001]),
            "score": [str(v) for v in draw.integers(0, 4, rows)],
            "age": [str(v) for v in draw.integers(18, 91, rows)],
            "zip": [f"0{v}" for v in draw.integers(2134, 2138, rows)],
            "cost": [f"{v:.2f}" if v < 150 else "" for v in number],
            "seen": [d.strftime("%m/%d/%Y") for d in days],
            "note": [f"free text {i}" for i in range(rows)],
        }
    )


def engine_of(frame: Any, known: Discovery) -> TextEngine:
    engine = TextEngine()
    engine.scan(frame, known.schema(), key=b"k" * 32)
    return engine


def bought(
    frame: Any, *, rho: float = 1.0, unit: Unit | None = None, kind: Any = TextCurator, **more: Any
) -> Schema:
    """The schema that so much buys."""
    known = Discovery(tuple(frame.columns), unit or Unit(), **more)
    return bought_from(frame, known, rho=rho, kind=kind)


def bought_from(
    source: Any, known: Discovery, *, rho: float = 1.0, kind: Any = TextCurator
) -> Schema:
    """The schema that so much buys of any source."""
    parts = Parts(Fraction(rho), Fraction(1, 10**9), known, "add_remove")
    curator = kind(engine_of(source, known), PLENTY, known.schema(), relation="add_remove")
    schema, _ = bought_schema(curator, known, parts)
    curator.close()
    return schema
