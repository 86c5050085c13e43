"""Broken builds and how they are tried: the honest build passes a check, the broken one does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous import pipeline
from gibbous.contract.runs import described
from gibbous.contract.saboteurs import patched
from gibbous.core.errors import GibbousError
from gibbous.core.schema import Column, Schema
from gibbous.privacy.calibrate import gdp, stable
from tests.blinded import blinded

Check = Callable[[], object]
SIGNS_OF_DEATH = (AssertionError, GibbousError, pytest.fail.Exception)

SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("region", "nominal", levels=("01", "02", "NA", "far"), missing=True),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 60.0, 100.0), integer=True),
    ),
    name="tiny",
)
RARE = pl.DataFrame({"sex": ["f"], "region": ["far"], "age": [100]})


def killed(check: Check, mutant: AbstractContextManager[Any]) -> None:
    """The check accepts the honest build and refuses the mutant."""
    check()
    with mutant:
        try:
            check()
        except SIGNS_OF_DEATH:
            return
    raise AssertionError("the mutant survived")


@contextmanager
def faults(*places: tuple[object, str, Any]) -> Iterator[None]:
    """Within it, `owner.name` is `value` for each (owner, name, value); prices are not remembered."""
    forget_prices()
    try:
        with ExitStack() as stack:
            for owner, name, value in places:
                stack.enter_context(patched(owner, name, value=value))
            yield
    finally:
        forget_prices()


def forget_prices() -> None:
    """Prices are remembered between calls; a broken build must compute its own."""
    for module in (stable, gdp):
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


def people(rows: int = 60) -> pl.DataFrame:
    """A table in which nobody is like RARE."""
    return pl.DataFrame(
        {
            "sex": ["f" if i % 3 else "m" for i in range(rows)],
            "region": [("01", "02", "NA", None)[i % 4] for i in range(rows)],
            "age": [(i * 7) % 90 for i in range(rows)],
        }
    )


def published(
    data: pl.DataFrame,
    method: Any,
    *,
    schema: Schema = SCHEMA,
    rows: int | None = None,
    out: Path | None = None,
    engine: str = "numpy",
) -> dict[str, object]:
    """All that a blind run makes public, by name; what names the ledger entry is left out."""
    with blinded():
        release = pipeline.synthesize(
            data,
            schema,
            method,
            rows=rows,
            sets=2,
            seed=5,
            out=out,
            format="csv" if out else "parquet",
            ledger=gb.Ledger.ephemeral(),
            engine=engine,
        )
        found: dict[str, object] = {f"set {i}": _bytes(s) for i, s in enumerate(release.sets)}
    if release.tables is not None:
        found["tables"] = described(release.tables)
    found["receipt"] = json.dumps(without_entry(release.receipt.to_json()), sort_keys=True)
    if out is not None:
        found |= {p.relative_to(out).as_posix(): _file(p) for p in out.rglob("*") if p.is_file()}
    return found


def assert_blind(method: Any, *, rows: int | None = None, schema: Schema = SCHEMA) -> None:
    """A rare row more, and another order of rows, change no public byte but by noise."""
    data = people()
    first = published(data, method, rows=rows, schema=schema)
    for other in (pl.concat([data, RARE]), data.reverse()):
        assert published(other, method, rows=rows, schema=schema) == first


def _file(path: Path) -> object:
    if path.name == "ledger.json":
        return json.dumps(without_entry(json.loads(path.read_text())), sort_keys=True)
    if path.name == "manifest.json":  # it has the digest of ledger.json
        listed = json.loads(path.read_text())
        return [f for f in listed["files"] if f["path"] != "ledger.json"]
    if path.name == "SHA256SUMS":
        lines = path.read_text().splitlines()
        return [line for line in lines if not line.endswith(("ledger.json", "manifest.json"))]
    return path.read_bytes()


def without_entry(receipt: dict[str, Any]) -> dict[str, Any]:
    """A certificate less the hashes and the random name of its ledger entry."""
    entries = receipt["ledger"]["entries"]
    public = [json.loads(entry["public"]) for entry in entries.values()]
    kept = [{k: v for k, v in part.items() if k != "id"} for part in public]
    return receipt | {"ledger": kept}


def _bytes(frame: pl.DataFrame) -> bytes:
    file = BytesIO()
    frame.write_ipc(file)
    return file.getvalue()
