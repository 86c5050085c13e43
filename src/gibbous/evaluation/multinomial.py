"""Multinomial logistic regression: codes and a design in, coefficients and standard errors out.

Newton's method with a check of every step: plain steps, as libraries take them, leave the numbers where
classes are of very different sizes or where a class lacks a level, and then no coefficient is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEPS = 25
"""Of Newton's method: an infinite coefficient grows by about one a step, and its steps never end."""
_HALVINGS = 30
_ENDED = 1e-8  # largest change of a coefficient
_LOST = 1e-10  # rounding of a log likelihood, relative


@dataclass(frozen=True, slots=True, eq=False)
class Multinomial:
    """A fit.

    Attributes:
        estimate: float64 (classes - 1, terms), against class 0.
        se: the same shape, from the inverse information; NaN where it has none.
        shares: fitted, float64 (rows, classes); each row sums to 1.
        likelihood: its logarithm.
        ended: whether the steps ended; they do not where a coefficient is infinite.
    """

    estimate: np.ndarray
    se: np.ndarray
    shares: np.ndarray
    likelihood: float
    ended: bool


def multinomial(design: np.ndarray, codes: np.ndarray, classes: int) -> Multinomial:
    """Fit by maximum likelihood.

    Args:
        design: float64 (rows, terms), of full rank and with columns of about one size.
        codes: int64 (rows,), in [0, classes); each class occurs.
        classes: at least 2.
    Source:
        Agresti, Categorical Data Analysis, s7.1 (baseline-category logit; likelihood and information).
    """
    different, place = np.unique(design, axis=0, return_inverse=True)
    places = place.reshape(-1) * classes + codes
    counts = np.bincount(places, minlength=len(different) * classes).astype(np.float64)
    counts = counts.reshape(len(different), classes)
    rows = counts.sum(axis=1)
    # Shares of the classes alone, where the terms hold a constant: the nearest start without a fit.
    odds = np.log(counts.sum(axis=0)[1:] / counts[:, 0].sum())
    constant = np.linalg.lstsq(different, np.ones(len(different)), rcond=None)[0]
    estimate = np.outer(odds, constant)
    shares, likelihood = _fitted(different, counts, estimate)
    ended = False
    for _ in range(STEPS):
        slope = ((counts - rows[:, None] * shares)[:, 1:].T @ different).ravel()
        step = _solved(_information(different, rows, shares), slope).reshape(estimate.shape)
        for _ in range(_HALVINGS):
            new, reached = _fitted(different, counts, estimate + step)
            if reached >= likelihood - _LOST * abs(likelihood):
                break
            step = step / 2
        else:
            break
        estimate, shares, likelihood = estimate + step, new, reached
        if np.abs(step).max() < _ENDED:
            ended = True
            break
    variance = np.diag(np.linalg.pinv(_information(different, rows, shares), hermitian=True))
    se = np.sqrt(np.where(variance > 0, variance, np.nan)).reshape(estimate.shape)
    return Multinomial(estimate, se, shares[place.reshape(-1)], likelihood, ended)


def _fitted(
    design: np.ndarray, counts: np.ndarray, estimate: np.ndarray
) -> tuple[np.ndarray, float]:
    """Shares of the classes at each row, and the log likelihood of the counts."""
    logits = np.hstack([np.zeros((len(design), 1)), design @ estimate.T])
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.exp(logits), float((counts * logits).sum())


def _information(design: np.ndarray, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """-d2 log L, float64 (others x terms, others x terms), blocks by class."""
    others, terms = shares.shape[1] - 1, design.shape[1]
    information = np.empty((others, terms, others, terms))
    weighted = shares[:, 1:] * rows[:, None]
    for one in range(others):
        for two in range(one + 1):
            weight = weighted[:, one] * ((one == two) - shares[:, two + 1])
            block = (design * weight[:, None]).T @ design
            information[one, :, two, :] = information[two, :, one, :] = block
    return information.reshape(others * terms, others * terms)


def _solved(information: np.ndarray, slope: np.ndarray) -> np.ndarray:
    # A class that a level lacks leaves almost no information: a trace of it keeps the step finite.
    little = np.finfo(np.float64).eps * max(float(np.trace(information)), 1e-300)
    return np.asarray(np.linalg.solve(information + little * np.eye(len(slope)), slope))
