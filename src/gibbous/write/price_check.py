"""The least that published tables can have cost, from the noise that is in them alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from gibbous.core.claim import Claim, Relation, pure, zcdp
from gibbous.core.errors import GibbousError
from gibbous.core.tables import NoiseInfo, Tables
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.scales import gaussian_rho, geometric_epsilon
from gibbous.write.files import rejected


def check_price(tables: Tables, total: Claim, max_rows: int) -> None:
    """Hold the price of the noise against what a release says that it cost.

    Every table is taken for a histogram, of which a record changes one cell: sums of numbers cost
    more, thresholds and paid choices come on top. So the price found is a lower bound.

    Args:
        tables: as published.
        total: of the certificate.
        max_rows: most rows of one privacy unit.
    Raises:
        ModelRejected: the noise alone cost more.
    """
    if not total.is_dp:
        return
    for found in _paths(tables):
        prices = [_price(noise, n, total.relation, max_rows) for noise, n in found.items()]
        try:
            covered = accountant.within(total, prices)
        except GibbousError:
            covered = False
        if not covered:
            raise rejected(
                "PRICE",
                "the noise in its tables is too small for the price that it states; the tables cost more",
            )


def _price(noise: NoiseInfo, tables: int, relation: Relation, max_rows: int) -> Claim:
    scale = Fraction(noise.scale)
    if noise.law == "geometric":
        return pure(geometric_epsilon(scale, tables, relation, max_rows), relation=relation)
    return zcdp(gaussian_rho(scale, tables, relation, max_rows), relation=relation)


def _paths(tables: Tables) -> Iterator[Counter[NoiseInfo]]:
    """Noise of the tables that one record can be in: of parts of the records, one each."""
    own = Counter(table.noise for table in tables.items + tables.extra)
    copies = [set(map(_frozen, _paths(copy))) for copy in tables.copies]
    parts = [{_frozen(path) for part in tables.parts for path in _paths(part)}]
    for chosen in itertools.product(*copies, *(parts if tables.parts else ())):
        yield sum((Counter(dict(one)) for one in chosen), own)


def _frozen(path: Counter[NoiseInfo]) -> frozenset[tuple[NoiseInfo, int]]:
    return frozenset(path.items())
