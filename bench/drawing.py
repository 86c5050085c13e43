"""Drawing against NumPy alias gathers and against the least that any draw must do: CPU ratios inside one run.

Run: python bench/drawing.py [--quick] [--rows N] [--json FILE]
All sides draw 13 columns from the same tables, one thread: 13 draws a row and sweep, and 13 to start
with, which read one margin each. "The least" is a compiled loop that computes the same keys, one random
word each, and reads one cell at an independent place of a table of the same size.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from fractions import Fraction

import numba
import numpy as np
from common import Result, arguments, cpu_seconds, save, show, wall_seconds

from gibbous.core.context import Context, Hashed, Key, Radix, keys_of, levels_of
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense, NoiseInfo, Recipe, Table, Tables
from gibbous.perturb.add import Add
from gibbous.privacy.entropy import words as operating_system
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks
from gibbous.sampling.program import Program, prepare
from gibbous.sampling.sample import sample

COLUMNS, BLOCK = 13, 2048
SIZES = (("65 KB", 6, 3, 1.2), ("4 MB", 17, 3, 1.9), ("20 MB", 13, 4, 4.8))
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, help="rows a sweep")
    options = parser.parse_args()
    rows = options.rows or (200_000 if options.quick else 1_000_000)
    results: list[Result] = []
    for name, levels, parents, prototype in SIZES:
        results += against(name, levels, parents, prototype, rows)
    results += growth(rows)
    results += threads(rows)
    results += wide(rows)
    results += paid(rows // 10)
    results += start_up()
    show(f"Drawing, {rows:,} rows x {COLUMNS} columns", results)
    save(options.json, "drawing", results, "numpy", "numba")


def against(name: str, levels: int, parents: int, prototype: float, rows: int) -> list[Result]:
    """One size of tables, mixed-radix and hashed keys: against NumPy and the least."""
    found = []
    sweeps = 10
    for kind in ("radix", "hashed"):
        key: Key = Radix() if kind == "radix" else Hashed(1 << (levels**parents).bit_length() - 1)
        program = prepare(tables(levels, parents, key, sweeps))
        draws = rows * (sweeps + 1) * COLUMNS  # the first one of each column comes from its margin
        ours = cpu_seconds(lambda p=program: sample(p, rows, seed=1, threads=1)) / draws
        state, size = codes(levels, rows).T.copy(), program.flat.cells.nbytes
        if kind == "radix":
            floor = cpu_seconds(lambda s=state, b=size: least(s, levels, parents, b, sweeps + 1))
            found.append(
                Result(
                    f"{name}: key + word + independent gather",
                    ours / (floor / draws),
                    1.5,
                    detail=f"{ours * 1e9:.2f} and {floor / draws * 1e9:.2f} ns a draw",
                )
            )
        slow = cpu_seconds(lambda p=program, s=state: gathers(p, s), 1) / (rows * COLUMNS)
        found.append(
            Result(
                f"{name}, {kind}: of NumPy alias gathers",
                ours / slow,
                1 / 4,
                detail=f"{ours * 1e9:.2f} and {slow * 1e9:.1f} ns a draw; {size / 1e6:.2f} MB",
            )
        )
        if kind == "radix":
            found.append(
                Result(f"{name}: one draw", ours * 1e9, unit="ns", detail=f"prototype {prototype}")
            )
        del program, state
        FLOATS.clear()
        gc.collect()
    return found


def growth(rows: int) -> list[Result]:
    """Ten times the rows; and preparing the tables."""
    source = tables(13, 3, Radix(), 10)
    start = time.process_time()
    program = prepare(source)
    ready = time.process_time() - start
    one = cpu_seconds(lambda: sample(program, rows // 10, seed=1, threads=1))
    ten = cpu_seconds(lambda: sample(program, rows, seed=1, threads=1))
    cells = program.flat.cells.size
    return [
        Result("ten times the rows", ten / one, 11.0, unit="times"),
        Result("preparing tables", ready / cells * 1e9, unit="ns", detail=f"a cell, {cells} cells"),
    ]


def threads(rows: int) -> list[Result]:
    """Two threads against one: by the CPU that both take, and by the clock of an idle machine."""
    program = prepare(tables(13, 3, Radix(), 10))
    work = [lambda n=n: sample(program, 2 * rows, seed=1, threads=n) for n in (1, 2)]
    cpu = [cpu_seconds(one) for one in work]
    wall = [wall_seconds(one) for one in work]
    told = "with even shares, at most 2 / 1.7 gives 1.7 x the speed when idle"
    load = f"wall; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: idle machines only"
    return [
        Result("2 threads: CPU / CPU of 1", cpu[1] / cpu[0], 2 / 1.7, detail=told),
        Result("2 threads for 1", wall[0] / wall[1], 1.7, at_least=True, detail=load),
    ]


def wide(rows: int) -> list[Result]:
    """1,000 columns of 10 levels, each given two others, against 13 of them: a draw, one thread."""
    spent = []
    for columns in (13, 1000):
        program = prepare(chain(columns))
        count = max(4 * BLOCK, 13 * rows // columns // BLOCK * BLOCK)
        draws = count * columns * 4  # three sweeps, and the first values
        spent.append(
            cpu_seconds(lambda p=program, n=count: sample(p, n, seed=1, threads=1)) / draws
        )
    told = f"{spent[1] * 1e9:.2f} and {spent[0] * 1e9:.2f} ns a draw"
    return [Result("1,000 columns / 13 columns, a draw", spent[1] / spent[0], detail=told)]


def chain(columns: int, levels: int = 10) -> Tables:
    """Made-up noisy tables of each column given the two next ones."""
    generator, items = np.random.default_rng(4), []
    names = tuple(f"v{i}" for i in range(levels))
    schema = Schema(tuple(Column(f"c{j}", "nominal", levels=names) for j in range(columns)))
    for j in range(columns):
        given = ((j + 1) % columns, (j + 2) % columns)
        context = Context((j,), given, (levels,), (levels, levels), Radix())
        cells = Dense(generator.integers(0, 50, (context.keys, context.levels)))
        items.append(Table(context, cells, NoiseInfo("gaussian", 3.0)))
    return Tables(schema, tuple(items), Recipe("gibbs", tuple(range(columns)), 3, kappa=1.0))


def paid(rows: int) -> list[Result]:
    """Draws that are the mechanism: exact integers from operating-system words."""
    values, made = codes(10, 100_000), []
    for j in range(COLUMNS):
        context = context_of(10, 3, j, Radix())
        made.append(Counts(context, Dense(counted(context, values))))
    schema, add, found = schema_of(10), Add(Fraction(10)), []
    for name, draw in (
        ("rows from exact counts", GibbsRows(add)),
        ("reset blocks of 10", ResetBlocks(add, 10)),
    ):
        spent = cpu_seconds(lambda d=draw: d(made, schema, rows, operating_system), 1)
        found.append(Result(f"{name}: one draw", spent / rows / COLUMNS * 1e9, unit="ns"))
    return found


def start_up() -> list[Result]:
    """Importing and warming the kernels in a fresh process whose cache is filled."""
    code = "from gibbous.sampling import warmup; warmup()"
    run = [sys.executable, "-c", code]
    subprocess.run(run, check=True)
    warm = wall_seconds(lambda: subprocess.run(run, check=True), 2)
    return [Result("first draw of a process, cache filled", warm, unit="s")]


def gathers(program: Program, state: np.ndarray) -> None:
    """One sweep as NumPy users write it: float thresholds, integer aliases, two uniforms a draw."""
    generator = np.random.default_rng(1)
    rows, view = state.shape[1], state.T
    for step in program.steps:
        assert step.packed is not None
        assert step.conditional is not None
        threshold, alias = float_tables(step.packed)
        levels = threshold.shape[1]
        keys = keys_of(step.conditional.context, view).astype(np.int64)
        slots = keys if step.slots is None else step.slots[keys]
        own = generator.integers(0, levels, rows)
        point = generator.random(rows)
        place = slots * levels + own
        take = point < threshold.ravel()[place]
        state[step.targets[0]] = np.where(take, own, alias.ravel()[place])


FLOATS: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def float_tables(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unpacked alias tables, made once."""
    if id(packed) not in FLOATS:
        FLOATS[id(packed)] = (packed >> 8) / 2.0**24, (packed & 255).astype(np.int64)
    return FLOATS[id(packed)]


def least(state: np.ndarray, levels: int, parents: int, size: int, sweeps: int) -> None:
    table = np.ones(size // 4, dtype=np.uint32)
    steps = np.array([levels**i for i in range(parents, 0, -1)], dtype=np.uint32)
    _least(state, table, steps, sweeps)


@numba.njit(nogil=True)
def _least(state, table, steps, sweeps):  # type: ignore[no-untyped-def]
    columns, rows = state.shape
    keys, places = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
    share = len(table) // columns
    for start in range(0, rows, BLOCK):
        stop = min(rows, start + BLOCK)
        for sweep in range(sweeps):
            for j in range(columns):
                _least_keys(state, start, stop, j, steps, keys)
                _least_places(start, stop - start, sweep * columns + j, share, places)
                part, out = table[j * share : (j + 1) * share], state[j, start:stop]
                _least_gather(part, places, keys, out)


@numba.njit(nogil=True)
def _least_keys(state, start, stop, j, steps, keys):  # type: ignore[no-untyped-def]
    for i in range(stop - start):
        keys[i] = np.uint32(0)
    for q in range(len(steps)):
        column, step = state[(j + 1 + q) % len(state), start:stop], steps[q]
        for i in range(stop - start):
            keys[i] += np.uint32(column[i]) * step


@numba.njit(nogil=True)
def _least_places(first, rows, stream, share, places):  # type: ignore[no-untyped-def]
    wide = np.uint64(share)
    for i in range(rows):
        x = (np.uint64(first) + np.uint64(i)) * GOLDEN + np.uint64(stream)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
        places[i] = np.uint32(((x >> np.uint64(32)) * wide) >> np.uint64(32))


@numba.njit(nogil=True)
def _least_gather(table, places, keys, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        places[i] = table[places[i]]
    for i in range(len(out)):
        out[i] = (places[i] ^ keys[i]) & np.uint32(1)


def schema_of(levels: int) -> Schema:
    names = tuple(f"v{i}" for i in range(levels))
    return Schema(tuple(Column(f"c{j}", "nominal", levels=names) for j in range(COLUMNS)))


def context_of(levels: int, parents: int, target: int, key: Key) -> Context:
    given = tuple((target + 1 + i) % COLUMNS for i in range(parents))
    return Context((target,), given, (levels,), (levels,) * parents, key)


def codes(levels: int, rows: int) -> np.ndarray:
    """Made-up codes, uneven and dependent."""
    generator = np.random.default_rng(3)
    values = np.minimum(generator.geometric(0.25, (rows, COLUMNS)) - 1, levels - 1)
    follow = generator.random((rows, COLUMNS)) < 0.4
    for j in range(1, COLUMNS):
        values[:, j] = np.where(follow[:, j], values[:, j - 1], values[:, j])
    return values.astype(np.uint8)


def counted(context: Context, values: np.ndarray) -> np.ndarray:
    cell = keys_of(context, values) * np.uint64(context.levels) + levels_of(context, values)
    found = np.bincount(cell.astype(np.int64), minlength=context.cells)
    return found.reshape(context.keys, context.levels)


def tables(levels: int, parents: int, key: Key, sweeps: int) -> Tables:
    """Dense noisy conditionals of made-up records."""
    values, generator, items = codes(levels, 200_000), np.random.default_rng(4), []
    for j in range(COLUMNS):
        context = context_of(levels, parents, j, key)
        noise = np.rint(generator.normal(0, 3, (context.keys, context.levels))).astype(np.int64)
        cells = Dense(counted(context, values) + noise)
        items.append(Table(context, cells, NoiseInfo("gaussian", 3.0)))
    recipe = Recipe("gibbs", tuple(range(COLUMNS)), sweeps, kappa=1.0)
    return Tables(schema_of(levels), tuple(items), recipe)


if __name__ == "__main__":
    main()
