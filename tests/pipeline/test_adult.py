"""The main job on real data: Adult under a declared schema, verified packages, an error that counts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.encode.encode import encode

SCHEMA = gb.Schema.load(Path(__file__).with_name("adult.schema.toml"))
METHODS = {
    "sbhg": gb.Sbhg(epsilon=1.0, delta=1e-6),
    "noisy_pegs": gb.NoisyPegs(epsilon=1.0, delta=1e-6),
    "diverse_pegs": gb.DiversePegs(l=1.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_package_of_adult_is_verified_and_inside_the_schema(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    source, out = shared_data / "adult.parquet", tmp_path / name
    release = gb.synthesize(
        source, SCHEMA, METHODS[name], rows=5000, sets=2, seed=7, out=out,
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip

    report = gb.verify(out)

    assert report.sets == 2
    for frame in release.sets:
        assert frame.columns == list(SCHEMA.names)
        encode(frame, SCHEMA)  # raises on any value outside the schema
    assert SCHEMA.inferred() == ()


@pytest.mark.slow
def test_noisy_pegs_beats_independent_noisy_columns_on_adult(shared_data: Path) -> None:
    """Mean 2-way total variation at epsilon 1; independent columns get the same budget for margins alone."""
    frame = pl.read_parquet(shared_data / "adult.parquet").drop("part")
    real = encode(frame, SCHEMA).values
    ledger = gb.Ledger.ephemeral()
    release = gb.synthesize(
        frame, SCHEMA, METHODS["noisy_pegs"], rows=len(real), seed=1, ledger=ledger
    )
    drawn = encode(release.sets[0], SCHEMA).values
    # Free of noise, so a lower bound of what DP independent columns can reach.
    rng = np.random.default_rng(3)
    independent = np.stack([rng.permutation(column) for column in real.T], axis=1)

    ours, theirs = _two_way(real, drawn), _two_way(real, independent)

    assert ours < 0.75 * theirs


def _two_way(one: np.ndarray, two: np.ndarray) -> float:
    sizes: Any = SCHEMA.sizes
    found = []
    for i, j in combinations(range(len(sizes)), 2):
        cells = [
            np.bincount(x[:, i].astype(int) * sizes[j] + x[:, j], minlength=sizes[i] * sizes[j])
            / len(x)
            for x in (one, two)
        ]
        found.append(np.abs(cells[0] - cells[1]).sum() / 2)
    return float(np.mean(found))
