"""What findings out of models share: records to train on and to test on, and reference tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from gibbous.core.extras import need
from gibbous.evaluation.tables import REFERENCES, Side, Subject, independent, permutation, resampled

TEST_SHARE = 0.2  # of the real records, where no holdout is given


def references(subject: Subject) -> dict[str, Side]:
    """The reference tables that there are, by name."""
    tables = {name: subject.reference(name) for name in REFERENCES}
    return {name: table for name, table in tables.items() if table is not None}


def split(subject: Subject) -> tuple[Side, Side, str]:
    """Real records to train on, real records to test on, and a sentence about them.

    The holdout is the test where there is one. Otherwise a seeded share of the real records is: the
    synthesizer saw them, so what is trained on its rows looks better on them than on new records.
    """
    real = subject.real
    if subject.holdout is not None:
        return real, subject.holdout, f"Tested on {subject.holdout.rows} records of the holdout."
    test = max(1, round(TEST_SHARE * real.rows)) if real.rows > 1 else 0
    if test == 0:
        return real, real, "Optimistic: tested on the one real record, which is trained on, too."
    order = permutation(real.rows, subject.seed, 11)
    note = (
        f"Optimistic: tested on {test} of the {real.rows} real records, drawn by seed, because there "
        "is no holdout; the synthesizer saw them."
    )
    return real.take(np.sort(order[test:])), real.take(np.sort(order[:test])), note


def trained(subject: Subject, train: Side) -> dict[str, Side]:
    """Tables to train on beside the synthetic sets: none of them holds a record of the test.

    Returns:
        "real": the records to train on; "bootstrap" and "independent": made of them, with as many
        rows as the first set.
    """
    rows, seed = subject.sets[0].rows, subject.seed
    return {
        "real": train,
        "bootstrap": train.take(resampled(train.rows, rows, seed, 12)),
        "independent": independent(train.take(resampled(train.rows, rows, seed, 13)), seed),
    }


@contextlib.contextmanager
def one_thread(library: str = "sklearn.ensemble") -> Iterator[None]:
    """Within it, libraries of models use one thread: only what is loaded is limited, so `library` is.

    Their sums are then the same on every machine, several evaluations can run side by side, and no
    thread waits by spinning: on a busy machine boosting was over 20 times slower with two, `infer` 6.
    """
    need(library, "evaluate")
    with need("threadpoolctl", "evaluate").threadpool_limits(limits=1):
        yield
