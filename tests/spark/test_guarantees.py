"""B2: what a page says about persons holds for what a cluster counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gibbous as gb
from gibbous.contract.printed_guarantee import forms, unkept
from gibbous.disintegrate.spark.engine import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class _Reads(SparkEngine):
    """The engine, given the frame of an audit as a table of the session."""

    def scan(self, source: Any, schema: Any, **rest: Any) -> bytes:
        path = self.folder / f"{len(list(self.folder.iterdir()))}.parquet"
        source.write_parquet(path)
        return super().scan(self.session.read.parquet(str(path)), schema, **rest)


def test_B2_spark_keeps_the_words_about_persons(session: Any, tmp_path: Path) -> None:
    form = next(form for form in forms() if form.name == "persons")

    def engine() -> SparkEngine:
        made = _Reads(session=session)
        made.folder, made.session = tmp_path, session
        return made

    assert unkept(gb.Laplace(epsilon=1), replace(form, engine=engine)) == ""
