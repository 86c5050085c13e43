"""The methods of the study by their laws, from seeded words: the mechanisms' own draws where they have some.

All of them under one relation: one record of another origin, destinations and totals public. Seeded
words protect nobody: no record should pass through this code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

import gibbous as gb
from gibbous.core.exact import exact
from gibbous.core.protocols import Words64
from gibbous.core.request import Privacy
from gibbous.core.schema import Impossible
from gibbous.core.stream import stream_key, words
from gibbous.core.tables import Tables
from gibbous.flows import (
    FlowEngine,
    Flows,
    Geography,
    coarse,
    collected,
    flow_schema,
    miles,
    regions,
    to_places,
    to_regions,
)
from gibbous.mechanisms.onthemap import by_destination, claim, scheme
from gibbous.privacy.calibrate.stable import stable_geometric
from gibbous.sampling.flows.flow_rows import FlowRows
from gibbous.sampling.flows.grid import exponential_gaps, survivors, threshold_for
from gibbous.studies.onthemap_data import Commutes, within
from gibbous.studies.seeded_draws import Draws

_STREAM: Final = 0x6F746D70  # "otmp": apart from all other streams
MOST_CELLS: Final = 1 << 22  # of the table of destinations and grid cells, measured as a whole
PRINTED_ALPHA: Final = {200.0: 0.01245, 100.0: 0.039764}
"""Virtual records an origin [onthemap, s6], by the radius of the domain in miles."""

Law = Callable[[Commutes, float, float, Draws], Flows]
"""law(truth, epsilon, delta, draws) -> synthetic flows, within reach."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to make the table.

    Attributes:
        label: short.
        promise: whose definition holds, with (epsilon, delta) of the study.
        law: draws it.
        printed: it exists for the paper's own domains alone.
        shrinks: it pays for shrinking, and runs at the study's first epsilon.
    """

    label: str
    promise: str
    law: Law
    printed: bool = False
    shrinks: bool = False


def seeded(draws: Draws) -> Words64:
    """Words from a counter: the same for the same draws, and no protection."""
    key, at = stream_key(draws.seed, _STREAM, *draws.path), [0]

    def more(count: int) -> np.ndarray:
        at[0] += count
        return words(key, at[0] - count, count)

    return more


def as_printed(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """The paper's run: its printed alpha on the domain that its function keeps."""
    del epsilon, delta  # alpha is printed
    alpha = PRINTED_ALPHA[truth.geography.reach]
    here, there = truth.geography.origins, truth.geography.destinations
    near, shares = np.array(truth.steps).T
    groups, cells = [], []
    for group in range(len(there)):
        far = miles(there.lat[group], there.lon[group], here.lat, here.lon)
        on = truth.flows.destinations == group
        mine = np.repeat(truth.flows.origins[on], truth.flows.counts[on])
        domain = np.flatnonzero(far <= truth.geography.reach)
        share = shares[np.searchsorted(near, far[domain], side="right") - 1]
        kept = draws.at(group, 0).uniform(len(domain)) < share
        kept[np.searchsorted(domain, np.unique(mine))] = True
        cells.append(urn(mine, domain[kept], alpha, draws.at(group, 1).uniform(len(mine), 2)))
        groups.append(np.full(len(mine), group))
    return collected(np.concatenate(groups), np.concatenate(cells))


def urn(records: np.ndarray, domain: np.ndarray, alpha: float, unit: np.ndarray) -> np.ndarray:
    """As many people as records: a copy of a record or of a person before, or a virtual record.

    Args:
        records, domain: origins, int64.
        alpha: virtual records of each origin of the domain.
        unit: uniform, float64 (people, 2).
    """
    balls = list(records.tolist())
    virtual = alpha * len(domain)
    for first, second in unit.tolist():
        place = first * (len(balls) + virtual)
        if place < len(balls):
            balls.append(balls[int(place)])
        else:
            balls.append(int(domain[int(second * len(domain))]))
    return np.array(balls[len(records) :], dtype=np.int64)


def shrunk(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """`onthemap` with the same function, its cost inside epsilon, delta on the shrunken domain."""
    return _onthemap(truth, draws, epsilon=epsilon, delta=delta, keep=truth.steps)


def whole(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """`onthemap` on all origins within reach, all of epsilon for the draw."""
    return _onthemap(truth, draws, epsilon=epsilon, delta=delta)


def coarsened(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """`onthemap` on the public grid; a place of the cell is then drawn evenly."""
    return _onthemap(truth, draws, epsilon=epsilon, delta=delta, level="cell")


def threshold(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """The noisy table of `sba`: pairs that occur, with noise, above its threshold."""
    scale, least = stable_geometric(exact(epsilon), exact(delta), 1, "replace_one", 1)
    noisy = truth.flows.counts + _noise(len(truth.flows.counts), scale, draws)
    kept = noisy > least
    return collected(truth.flows.destinations[kept], truth.flows.origins[kept], noisy[kept])


def every_cell(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """The noisy table of `flows_laplace`: pure DP, pairs beyond reach dropped afterwards."""
    del delta
    noisy = _grid(truth.flows, len(truth.geography.origins), truth, epsilon, draws)
    return within(noisy, truth.geography)


def every_region(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """The same on the public grid, a place of the cell drawn evenly; pairs beyond reach dropped."""
    del delta
    regions = to_regions(truth.flows, truth.geography, "cell")
    size = len(coarse(truth.geography, "cell").origins)
    noisy = _grid(regions, size, truth, epsilon, draws)
    placed = to_places(noisy, truth.geography, "cell", seed=int(seeded(draws.at(9))(1)[0] >> 1))
    return within(placed, truth.geography)


def adaptive(truth: Commutes, epsilon: float, delta: float, draws: Draws) -> Flows:
    """`adaptive_gibbs` itself on the grid, a place of the cell drawn evenly; pairs beyond reach dropped.

    Its noise is the system's, so that repeats of the same draws differ.
    """
    from gibbous.privacy.spend import spend
    from gibbous.sampling.sample import sample

    place = coarse(truth.geography, "cell")
    schema, people = _masked(truth.geography, place), truth.flows.records
    engine = FlowEngine.holding(place, to_regions(truth.flows, truth.geography, "cell"), schema)
    method = gb.AdaptiveGibbs(epsilon, delta, "replace_one", cells=MOST_CELLS)
    made = spend(Privacy(schema, method), method.plan(schema, people), engine)
    assert isinstance(made, Tables)
    first, second = (int(word >> 1) for word in seeded(draws.at(8))(2))
    codes = sample(made, people, seed=first).by_column
    flows = collected(codes[0].astype(np.int64), codes[1].astype(np.int64))
    return within(to_places(flows, truth.geography, "cell", seed=second), truth.geography)


def _masked(whole: Geography, place: Geography) -> gb.Schema:
    """The schema of regions, those without a place within reach declared impossible."""
    of, rules = regions(whole.origins, "cell").of, []
    here, there = whole.origins, whole.destinations
    for group in range(len(there)):
        near = miles(there.lat[group], there.lon[group], here.lat, here.lon) <= whole.reach
        beyond = np.setdiff1d(np.arange(len(place.origins)), of[near])
        if len(beyond):
            where = ((place.destination, (group,)), (place.origin, tuple(beyond.tolist())))
            rules.append(Impossible(where))
    return replace(flow_schema(place), impossible=tuple(rules))


PRINTED: Final = "as printed"
METHODS: Final = (
    Method(PRINTED, "probabilistic, its delta not proven", as_printed, printed=True, shrinks=True),
    Method("onthemap, shrunk", "probabilistic", shrunk, shrinks=True),
    Method("onthemap, whole domain", "probabilistic", whole),
    Method("onthemap, grid cells", "probabilistic", coarsened),
    Method("sba", "(epsilon, delta)-DP", threshold),
    Method("Laplace, all pairs", "epsilon-DP", every_cell),
    Method("Laplace, grid cells", "epsilon-DP", every_region),
    Method("adaptive_gibbs, grid cells", "(epsilon, delta)-DP", adaptive),
)


def _onthemap(truth: Commutes, draws: Draws, **chosen: Any) -> Flows:
    place = truth.geography
    one = gb.Onthemap(
        destination=place.destination,
        reach=place.reach,
        origins=place.origins,
        destinations=place.destinations,
        **chosen,
    )
    schema = flow_schema(place)
    engine = FlowEngine.holding(place, truth.flows, schema)
    draw = FlowRows(scheme(one, schema), claim(one))
    counts = engine.tally([by_destination(schema, place.destination)])
    codes = draw(counts, schema, 0, seeded(draws)).by_column
    flows = collected(codes[0].astype(np.int64), codes[1].astype(np.int64))
    return flows if not one.level else within(flows, place)


def _noise(count: int, scale: Fraction, draws: Draws) -> np.ndarray:
    """Two-sided geometric noise: the difference of two one-sided ones."""
    one, two = (
        exponential_gaps(np.full(count, scale.numerator), seeded(draws.at(k))) // scale.denominator
        for k in (1, 2)
    )
    return np.asarray(one - two)


def _grid(flows: Flows, width: int, truth: Commutes, epsilon: float, draws: Draws) -> Flows:
    """All cells of the grid with noise, those above a threshold that lets one person pass if it can."""
    # Replace one record, the relation of onthemap: two cells of the table change by one.
    cells, scale = width * len(truth.geography.destinations), 2 / exact(epsilon)
    least = threshold_for(cells, scale, max(1000.0, 5.0 * flows.records))
    noisy = flows.counts + _noise(len(flows.counts), scale, draws)
    places, values = survivors(cells, scale, least, seeded(draws.at(3)))
    held = flows.destinations * width + flows.origins
    at = places.astype(np.int64)
    free = ~np.isin(at, held, assume_unique=True)
    kept = noisy > least
    where = np.concatenate([held[kept], at[free]])
    return collected(where // width, where % width, np.concatenate([noisy[kept], values[free]]))
