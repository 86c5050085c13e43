"""k and l of the output: the smallest groups on the keys, and the least diverse sensitive values in one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, find
from gibbous.evaluation.risk.groups import Cells, Tally, packed
from gibbous.evaluation.tables import Side, Subject

STEPS = (1, 2, 3, 5, 10)
K = Metric(
    name="output_k",
    title="k of the output",
    group="risk",
    better="higher",
    definition=(
        "Rows of the smallest group of synthetic rows with equal keys. The detail has the share of "
        "rows in groups of at most 1, 2, 3, 5 and 10 rows. A synthetic group is not a group of people: "
        "compare the references."
    ),
    source="Sweeney (2002), applied to the output",
    needs=("keys",),
)
L = Metric(
    name="output_l",
    title="l of the output",
    group="risk",
    better="higher",
    definition=(
        "Least exp(entropy) of the sensitive column among synthetic rows with equal keys: between 1 "
        "and its number of levels. The detail has the least number of distinct values, the means "
        "over rows, and the share of rows in groups of one value. l of the output bounds no "
        "success of an intruder and is not differential privacy."
    ),
    source="park2014, equation 3, on the output; Machanavajjhala et al. (2007)",
    needs=("keys", "sensitive"),
)


METRICS = (L, K)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """output_l of each sensitive column, and output_k."""

    def sizes(_real: Side, table: Side) -> Measured:
        return group_sizes(table, options.keys)

    def least(_real: Side, table: Side, column: str) -> Measured:
        return diversity(table, options.keys, column)

    return [
        *(
            find(L, partial(least, column=column), subject, columns=(*options.keys, column))
            for column in options.sensitive
        ),
        find(K, sizes, subject, columns=options.keys),
    ]


def group_sizes(table: Side, keys: Sequence[str]) -> Measured:
    """The smallest group, and how many rows are in small ones."""
    counts = Tally.of(packed([table], keys)[0]).counts
    detail = tuple(
        {
            "group of at most": step,
            "share of rows": float(counts[counts <= step].sum() / table.rows),
        }
        for step in STEPS
    )
    return Measured(float(counts.min()), detail=detail)


def diversity(table: Side, keys: Sequence[str], sensitive: str) -> Measured:
    """The least entropy of a group as a number of equally frequent values."""
    index, size = table.schema.index(sensitive), table.schema[sensitive].size
    cells = Cells.of(packed([table], keys)[0], table.codes.by_column[index], size)
    _, first, number = np.unique(cells.group, return_index=True, return_inverse=True)
    share = cells.count / cells.total
    entropy = np.bincount(number, weights=-share * np.log(share))
    distinct, rows = np.bincount(number), cells.total[first]
    spread = np.exp(np.maximum(entropy, 0.0))
    told = {
        "exp(entropy), least": spread.min(),
        "exp(entropy), mean over rows": np.average(spread, weights=rows),
        "distinct values, least": distinct.min(),
        "distinct values, mean over rows": np.average(distinct, weights=rows),
        "one value only, share of rows": rows[distinct == 1].sum() / table.rows,
    }
    detail = tuple({"of a group": what, "value": float(value)} for what, value in told.items())
    return Measured(float(spread.min()), detail=detail)
