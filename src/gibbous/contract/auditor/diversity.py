"""What can be audited of l-diversity: the entropy of the values that a method draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gibbous.contract.auditor.bounds import diversity_bound
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.auditor.parts import Run
from gibbous.contract.auditor.setups import schema_of
from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.protocols import Mechanism

RECORDS = 1000  # all of them alike: the conditional that needs most perturbation
DRAWS = 20_000


def by_diversity(mechanism: Mechanism, run: Run, *, level: float) -> Evidence:
    """Draw rows of one column from records that are all alike, and bound the law's l from above.

    Rows of such a table are drawn independently from one law. Its likeliest level bounds its
    entropy: the bound is below the claim only if the method is not diverse.
    """
    total: Claim = mechanism.plan(schema_of(1, 2), 1).total
    levels = max(4, 2 * math.ceil(total.l))
    schema = schema_of(1, levels)
    alike = np.zeros((RECORDS, 1), dtype=np.int64)
    output = run(mechanism, schema, alike, DRAWS, mechanism.plan(schema, DRAWS))
    assert isinstance(output, Codes)
    counts = np.bincount(output.values[:, 0].astype(np.int64), minlength=levels)
    most = int(counts.max())
    bound = diversity_bound(levels, most, output.rows, level)
    return Evidence(
        kind="diversity",
        name=f"one column of {levels} levels, all records alike",
        relation=total.relation,
        runs=1,
        violated=Fraction(bound) < total.l,
        claimed=float(total.l),
        bound=bound,
        level=level,
        words=f"the likeliest level came {most:,} times in {output.rows:,} draws",
    )
