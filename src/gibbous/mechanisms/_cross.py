"""What mechanisms share that noise every cell of one full cross table."""

from __future__ import annotations

import math
from typing import Literal

from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema
from gibbous.core.tables import NoiseInfo
from gibbous.mechanisms import _plans

Fit = Literal["clip", "rake"]
FIT_HELP = (
    "clip reads negative counts as 0; rake takes the nearest table without any of the same total."
)
MAX_CELLS = 1 << 24  # at 5 to 9 microseconds of vetted noise a cell: two minutes


def check_cells(name: str, schema: Schema) -> None:
    """Refuse a cross table that is too large to be noised cell by cell.

    Raises:
        ResourceLimit: the figure is named.
    """
    if schema.cells > MAX_CELLS:
        raise ResourceLimit(
            "JOINT",
            f"The full cross table of {len(schema)} columns has {schema.cells:.4g} cells.",
            f"{name} adds noise to every one of at most {MAX_CELLS:,}.",
            "Use coarser or fewer columns, or noisy_pegs, which counts a few at a time.",
        )


def expected_errors(
    schema: Schema, noise: NoiseInfo, rows: int | None
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
    """Expected distances of margins from noise in every cell, and a warning where it drowns the data."""
    sd = math.sqrt(noise.variance)
    ways = sorted(schema.sizes)[len(schema) // 2]
    return _plans.noise_errors(
        noise,
        rows,
        one_way=sd * math.sqrt(schema.cells * ways),
        two_way=sd * math.sqrt(schema.cells) * ways,
    )
