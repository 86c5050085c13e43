"""Brute force for tests: hockey-stick divergence of products of small discrete laws, by enumeration."""

import math
from collections import defaultdict
from itertools import product

DROPPED = "dropped"
REACH = 60


def noise_law(scale, power=1):
    """P(x) proportional to exp(-|x|^power / scale), summed far out."""
    weights = {x: math.exp(-(abs(x) ** power) / scale) for x in range(-REACH * 8, REACH * 8 + 1)}
    total = sum(weights.values())
    return {x: w / total for x, w in weights.items() if w > 0}


def kept_cell(count, noise, threshold):
    """Law of one released cell: its noisy count above the threshold, or dropped; absent if count is 0."""
    if count == 0:
        return {DROPPED: 1.0}
    law = defaultdict(float)
    for x, p in noise.items():
        law[count + x if count + x > threshold else DROPPED] += p
    return law


def losses(one, two):
    """Privacy loss distribution of one cell: {loss: (mass under one, mass under two)}, merged."""
    found = defaultdict(lambda: [0.0, 0.0])
    for outcome in one.keys() | two.keys():
        p, q = one.get(outcome, 0.0), two.get(outcome, 0.0)
        loss = math.inf if q == 0 else -math.inf if p == 0 else round(math.log(p / q), 9)
        found[loss][0] += p
        found[loss][1] += q
    return found


def hockey_stick(cells, epsilon):
    """max over events of P1(event) - e^epsilon P2(event) for independent cells [(law 1, law 2)]."""
    joint = {(): (1.0, 1.0)}
    for one, two in cells:
        joint = _merged(
            ((p1 * p2, q1 * q2), key, loss)
            for (key, (p1, q1)), (loss, (p2, q2)) in product(
                joint.items(), losses(one, two).items()
            )
        )
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in joint.values())


def _merged(parts):
    out = defaultdict(lambda: (0.0, 0.0))
    for (p, q), key, loss in parts:
        total = round(sum(key) + loss, 9) if not math.isnan(sum(key) + loss) else math.nan
        place = (total,)
        out[place] = (out[place][0] + p, out[place][1] + q)
    return dict(out)


def partitions(whole, largest=None):
    """All ways of writing `whole` as a sum of positive parts."""
    largest = whole if largest is None else largest
    if whole == 0:
        yield ()
    for first in range(min(whole, largest), 0, -1):
        for rest in partitions(whole - first, first):
            yield (first, *rest)
