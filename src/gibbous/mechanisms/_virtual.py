"""What a plan of flows says of virtual people, before data."""

from __future__ import annotations

import math

from gibbous.sampling.flows.domain import virtual_records
from gibbous.sampling.flows.scheme import Scheme, profile

SIZES = (15, 150, 1500)  # records of the destinations that a plan shows
LOOKED = 9  # destinations that a plan looks at where each has a domain of its own
SHARE = "share of virtual people beside"


def beside_records(promise: Scheme, cells: int, destinations: int) -> tuple[tuple[str, float], ...]:
    """Virtual records in destinations of a few sizes; the mean of some, where domains are their own."""
    looked = range(0, destinations, -(-destinations // LOOKED)) if promise.local else (0,)
    out = []
    for n in SIZES:
        beside = [virtual_records(promise, cells, group, n) for group in looked]
        if not promise.local:
            shape = profile(promise.weights(cells), cells)
            alpha = beside[0] * shape.least / shape.weight
            out.append((f"alpha, virtual records an origin, of {n} records", alpha))
        if math.isfinite(sum(beside)):  # else no alpha keeps the promise, and nobody is a copy
            out.append((f"all virtual records beside {n} records", sum(beside) / len(beside)))
        share = sum(1.0 if math.isinf(v) else v / (v + n) for v in beside) / len(beside)
        out.append((f"{SHARE} {n} records", share))
    return tuple(out)


def mostly_virtual(errors: tuple[tuple[str, float], ...]) -> tuple[str, ...]:
    """The warning where most people of a destination of usual size are virtual."""
    share = dict(errors)[f"{SHARE} {SIZES[1]} records"]
    if share <= 0.5:
        return ()
    return (
        (
            f"{share:.0%} of the people of a destination of {SIZES[1]} records are virtual. With "
            "coordinates, coarsen = 'auto' puts far origins together; level, reach and keep leave "
            "fewer, too. The method flows_laplace does better at this epsilon, unless most pairs have "
            "one person."
        ),
    )
