"""Small packages made by hand: public tables or drawn rows, without records or a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.claim import Claim, approximate, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed
from gibbous.core.method_card import About
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.request import PART_ROWS, Output, Privacy
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.encode.decode import decode
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.privacy.ledger import Ledger
from gibbous.write import package, parts, purchases
from gibbous.write.certificate import Facts
from gibbous.write.output_path import check_output
from gibbous.write.signature import SigningKey
from tests.synthesize.made import sample_reference

DATASET = bytes(range(32))
SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("region", "nominal", levels=("01", "=1+1", "NA", '@"x",\n'), missing=True),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 100.0), integer=True),
        Column("pay", "numeric", edges=(-10.0, 0.5, 9.25), missing=True, decimals=2),
        Column("born", "date", edges=(700000.0, 700100.0, 730000.0)),
    ),
    null="-",
    name="tiny",
)
TOTAL = approximate(Fraction(1), Fraction("1e-6"), source="docs/proofs/tables.md")
ROW = pure(Fraction(1), unit="row", source="docs/proofs/add.md")


def about(releases: Any = "tables") -> About:
    return About(
        name="noisy_pegs", title="PeGS on noisy tables", paper="sbhg, alg. 3", unit="artifact",
        kind="approximate", releases=releases, claimed="nothing", proven="all of it, add/remove",
        audited="the contract",
    )  # fmt: skip


def tables(seed: int = 1) -> Tables:
    """A Gibbs release: dense, hashed and sparse tables."""
    rng, sizes = np.random.default_rng(seed), SCHEMA.sizes
    noise = NoiseInfo("geometric", 6.5)
    items = []
    for column, size in enumerate(sizes):
        parent = (column + 1) % len(sizes)
        if column == 2:
            context = Context(
                (column,), (parent, 0), (size,), (sizes[parent], sizes[0]), Hashed(4), "seen"
            )
            cells: Any = Sparse(
                np.array([0, 0, 3], dtype=np.uint64),
                np.array([0, 2, 1], dtype=np.uint64),
                np.array([9, 12, 7], dtype=np.int64),
            )
            items.append(Table(context, cells, NoiseInfo("geometric", 6.5, threshold=9)))
            continue
        context = Context((column,), (parent,), (size,), (sizes[parent],))
        cells = Dense(rng.integers(-5, 60, (context.keys, context.levels)))
        items.append(Table(context, cells, noise))
    recipe = Recipe("gibbs", (4, 2, 0, 1, 3), sweeps=2, kappa=1.0, fallback="reject", floor=1)
    margin = Context((0,), (), (2,), ())
    return Tables(
        SCHEMA, tuple(items), recipe, (Table(margin, Dense(np.array([[70, 80]])), noise),)
    )


def codes(rows: int, seed: int, schema: Schema = SCHEMA) -> Codes:
    """Public rows inside the schema."""
    rng = np.random.default_rng(seed)
    found = np.array([rng.integers(0, size, rows) for size in schema.sizes], schema.code_dtype())
    return Codes(schema, found.T)


def draw_plainly() -> None:
    """Draw by the numpy twin of the kernels, which gives the same rows: a new process starts faster."""

    def plain(
        tables: Any, rows: int, *, seed: int, set_index: int, start: int, **_: Any
    ) -> Iterator[Codes]:
        yield sample_reference(tables, rows, seed=seed, set_index=set_index, start=start)

    parts.stream = plain  # type: ignore[assignment]


def plan(
    *, rows: int | None = 50, sets: int = 2, by_row: bool = False, total: Claim | None = None
) -> Plan:
    claim = ROW if by_row else (total or TOTAL)
    whole = ROW.times((rows or 0) * sets) if by_row else claim
    spend = Spend("5 tables", whole, "geometric noise, scale 4.5 counts")
    return Plan(
        "noisy_pegs", {"epsilon": 1.0, "delta": 1e-6}, rows, sets, claim, whole,
        "epsilon = 1 | as printed", (spend,), 30, 1000, (("noise sd", 4.5),), ("A warning.",),
    )  # fmt: skip


def write(
    out: Path,
    ledger: Ledger,
    *,
    result: Tables | Codes | None = None,
    sets: Sequence[Codes] | None = None,
    planned: Plan | None = None,
    schema: Schema = SCHEMA,
    seed: int | None = 7,
    format: str = "parquet",
    csv_raw: bool = False,
    overwrite: bool = False,
    uncovered: tuple[str, ...] = (),
    stop: Any = None,
    part_rows: int | None = None,
    workers: Workers | None = None,
    progress: Progress = silent,
    sign: SigningKey | None = None,
) -> Release:
    """Do what the pipeline does, from the reservation on.

    Args:
        sets: what the sets must be.
        stop: called with the name of each step before it is done; may raise or kill.
    """
    result = tables() if result is None else result
    planned = planned or plan(by_row=isinstance(result, Codes))
    stop = stop or (lambda step: None)
    target = check_output(out, overwrite=overwrite)
    output = Output(
        planned.rows,
        planned.sets,
        seed,
        format,
        csv_raw,
        PART_ROWS if part_rows is None else part_rows,
        overwrite,
        out,
        sign=sign,
    )
    privacy = Privacy(schema, NoisyPegs())
    request = purchases.request_digest(privacy, output, planned, dataset=DATASET, target=target)
    with package.begin(target, output, request=request) as draft:
        if draft.release is not None:
            return draft.release
        stop("reserve")
        draft.hold(
            ledger,
            lambda: ledger.reserve(
                DATASET, planned.total, mechanism="noisy_pegs", request=request, label=target.name
            ),
        )
        stop("draw")
        if draft.result is None:
            draft.keep(result)
        assert draft.result is not None
        assert draft.result.schema == schema
        stop("commit")
        draft.commit()
        stop("set")
        draft.write_sets(workers, progress)
        stop("finish")
        facts = Facts(schema, planned, about(), planned.total.relation, uncovered)
        release = draft.finish(facts)
    for index, wanted in enumerate(sets or ()):
        assert release.sets[index].equals(
            decode(wanted, seed=release.receipt["seed"], set_index=index)
        )
    return release
