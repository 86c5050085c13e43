"""Laws of rows that are drawn with words alone, from exact counts: log probabilities in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import keys_of, levels_of
from gibbous.core.schema import Schema, impossible_mask
from gibbous.core.tables import Counts
from gibbous.mechanisms._modips_statistics import Truncated
from gibbous.privacy.calibrate.dirichlet import WHOLE
from gibbous.sampling import cdf_rows
from gibbous.sampling.flows.flow_rows import FlowRows, plain_urns, shared_out
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks
from gibbous.sampling.imputation.imputed_rows import ImputedRows
from gibbous.sampling.urn_rows import PriorRows, SmoothedRows, UrnRows, occupied
from gibbous.structure.cdf_grid import CdfGrid


def log_law(draw: object, counts: Sequence[Counts], rows: Codes) -> float:
    """The log probability of rows, up to a term without records; nan where the law is not known.

    A draw of another package may bring its own: a method `log_law(counts, rows)` of it is asked.

    Args:
        draw: a RowDraw.
        counts: what it was given; secret.
        rows: what was drawn.
    """
    if isinstance(draw, UrnRows):
        return _urn(draw, counts[0], rows, -(-rows.rows // draw.sets))
    if isinstance(draw, PriorRows):
        return _urn(draw, counts[0], rows, 1)
    if isinstance(draw, FlowRows):
        return _flows(draw, counts[0], rows)
    if isinstance(draw, SmoothedRows):
        return _smoothed(draw, counts[0], rows)
    if isinstance(draw, GibbsRows | ResetBlocks | ImputedRows):
        return 0.0  # every column has one level: nothing is drawn
    if hasattr(draw, "log_law"):
        return float(draw.log_law(counts, rows))
    return math.nan


def function_law(
    grid: CdfGrid, counts: np.ndarray, epsilon: Fraction, function: np.ndarray
) -> float:
    """The log probability of one distribution function: the sum over the bands that hold it."""
    low, high, ratio = cdf_rows.bands(grid, counts, epsilon)
    weights = cdf_rows.band_weights(low, high, ratio)
    *_, (_, ways) = cdf_rows.paths(low, high)
    held = ((low <= function) & (function <= high)).all(axis=1)
    return math.log(float((weights / ways.sum(axis=1))[held].sum())) - math.log(
        float(weights.sum())
    )


def truncation(noise: object, one: np.ndarray, two: np.ndarray) -> Fraction:
    """What redrawing counts adds to the loss: of ln P(n + X is kept), the sum's change over the cells."""
    if not redraws(noise):
        return Fraction(0)
    scale, most = float(noise.base.scale), noise.most  # type: ignore[attr-defined]

    def kept(n: np.ndarray) -> float:
        held = n if most is None else np.minimum(n, most)
        lost = np.exp(-(held + 1) / scale)
        if most is not None:
            lost += np.exp(-(most - held + 1) / scale)
        return float(np.log1p(-lost / (1 + math.exp(-1 / scale))).sum())

    return Fraction(abs(kept(one) - kept(two)))


def redraws(noise: object) -> bool:
    """Whether a sampler is asked again for the same cell until the value will do."""
    return isinstance(noise, Truncated)


def alike(one: Counts, two: Counts, rows: Codes) -> list[Codes]:
    """As many rows, all in one cell, for each cell whose counts differ: where two laws differ most."""
    schema = rows.schema
    rows_alike = []
    held = [
        dict(zip(map(tuple, c.T.tolist()), v.tolist(), strict=True))
        for c, v in (occupied(counts, schema) for counts in (one, two))
    ]
    for cell in held[0].keys() | held[1].keys():
        codes = np.array([cell], dtype=schema.code_dtype())
        possible = not (schema.impossible and impossible_mask(schema, codes).any())
        if possible and held[0].get(cell) != held[1].get(cell):
            rows_alike.append(Codes(schema, np.repeat(codes, rows.rows, axis=0)))
    return rows_alike


def _urn(draw: Any, counts: Counts, rows: Codes, length: int) -> float:
    """Polya's urns of `length` values each."""
    ones, unit = draw.posterior.balls
    held, names, records = _held(counts, rows)
    free = ones * draw.posterior.cells
    urn = _Urn(held, free / possible_cells(rows.schema), free, unit, records)
    return sum(urn.log(names[at : at + length]) for at in range(0, len(names), length))


def _flows(draw: FlowRows, counts: Counts, rows: Codes) -> float:
    """One urn a destination, without regions, distances or kept origins."""
    scheme = draw.scheme
    if scheme.local or scheme.regions is not None or scheme.reach or scheme.accept != "none":
        return math.nan
    held = draw._held(counts)
    people = shared_out(held.records, draw.rows)
    urns, _, _ = plain_urns(scheme, held, people, scheme.weights(held.origins))
    if scheme.weights(held.origins) is not None:
        return math.nan
    cells, names, _ = _held(counts, rows)
    levels, total = counts.context.levels, 0.0
    for group, (mass, unit, records) in enumerate(
        zip(urns.mass.tolist(), urns.unit.tolist(), urns.records.tolist(), strict=True)
    ):
        mine = [name for name in names if name // levels == group]
        length = int(people[group])
        urn = _Urn(cells, mass / held.origins, mass, unit, records)
        total += sum(urn.log(mine[at : at + length]) for at in range(0, len(mine), length or 1))
    return total


@dataclass(frozen=True, slots=True)
class _Urn:
    """Balls: `each` for every cell, `free` of them in all, `unit` for a record and for a drawn value."""

    held: dict[int, int]
    each: float
    free: float
    unit: int
    records: int

    def log(self, names: Sequence[int]) -> float:
        """Log probability of values in the order they are drawn; 0 where records are drowned."""
        seen: dict[int, int] = {}
        total = 0.0
        for turn, name in enumerate(names if self.unit else ()):
            own = self.held.get(name, 0) + seen.get(name, 0)
            total += math.log(self.each + self.unit * own)
            total -= math.log(self.free + self.unit * (self.records + turn))
            seen[name] = seen.get(name, 0) + 1
        return total


def _smoothed(draw: SmoothedRows, counts: Counts, rows: Codes) -> float:
    """Each value from the records, a small table filled up, mixed with the uniform law."""
    held, names, records = _held(counts, rows)
    share, cells = draw.smoothed.parts / WHOLE, possible_cells(rows.schema)
    places = max(records, draw.smoothed.records)
    empty = (places - records) / places / cells
    return sum(
        math.log((1 - share) * (held.get(name, 0) / places + empty) + share / cells)
        for name in names
    )


def _held(counts: Counts, rows: Codes) -> tuple[dict[int, int], list[int], int]:
    """Records of each occupied cell that is possible, the cell of each row, and all records."""
    context, cells = counts.context, counts.occupied()
    codes = np.asarray(rows.values)
    mine = keys_of(context, codes) * np.uint64(context.levels) + levels_of(context, codes)
    place = cells.keys.astype(np.int64) * context.levels + cells.levels.astype(np.int64)
    counts_held = dict(zip(place.tolist(), cells.values.tolist(), strict=True))
    return counts_held, mine.astype(np.int64).tolist(), int(cells.values.sum())


def possible_cells(schema: Schema) -> int:
    """Cells of the cross table that no rule excludes."""
    if not schema.impossible:
        return schema.cells
    grid = np.indices(schema.sizes).reshape(len(schema), -1).T
    return int((~impossible_mask(schema, grid)).sum())
