"""Warm: nothing in; every kernel of reading and counting compiled and cached, on two rows."""

from __future__ import annotations

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.protocols import Progress
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.disintegrate.records import LocalEngine, contiguous

TYPES = (np.uint8, np.uint16)  # 32-bit codes (columns of more than 65,536 levels) compile when met


def compile_all(progress: Progress) -> None:
    """Count tiny tables along every route, for each type of code."""
    from gibbous.disintegrate import passes  # loads numba
    from gibbous.read import row_sums

    schema = Schema(
        (
            Column("a", "numeric", edges=tuple(float(i) for i in range(100)), integer=True),
            Column("b", "numeric", edges=tuple(float(i) for i in range(1000)), integer=True),
            Column("c", "numeric", edges=tuple(float(i) for i in range(1000)), integer=True),
        )
    )
    done, total = 0, len(TYPES) * len(_contexts(schema))
    for kind in TYPES:
        codes = Codes(schema, np.zeros((3, 2), dtype=kind).T)
        passes.small(contiguous(codes), _contexts(schema)[:1], 0, 2, lambda _: None, few=0)
        engine = LocalEngine.from_codes(codes, threads=1)
        for context in _contexts(schema):
            progress("compile", done, total)
            engine.tally([context])
            done += 1
        engine.close()
    cell = np.zeros(1, dtype=np.uint64)
    passes.added(*[Sparse(cell, cell, np.ones(1, dtype=np.int64))] * 2)  # union, merge
    row_sums.compiled([], [np.uint64(0)] * row_sums.LANES, 0)  # add_up
    progress("compile", total, total)


def _contexts(schema: Schema) -> list[Context]:
    sizes = schema.sizes

    def one(parents: tuple[int, ...], key: Key, support: str) -> Context:
        return Context(
            (0,),
            parents,
            (sizes[0],),
            tuple(sizes[j] for j in parents),
            key,
            "seen" if support == "seen" else "dense",
        )

    return [
        one((), Radix(), "dense"),  # count_many, of more rows
        one((1,), Radix(), "dense"),  # count_radix
        one((1, 2), Radix(), "seen"),  # radix_ids, 32 bits; distinct, run_lengths
        one((1,), Hashed(2), "dense"),  # lookup_ids, count_ids
        one((1, 2), Hashed(2), "dense"),  # hashed_ids
        one((1, 2), MinHash(2, 2), "dense"),  # minhash_ids
        one((1, 2), Hashed(1 << 40), "seen"),  # 64-bit distinct, run_lengths
        one((1, 2), Hashed(1), "dense"),  # radix_ids, 64 bits
    ]
