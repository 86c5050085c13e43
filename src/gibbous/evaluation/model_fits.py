"""Likelihood fits: a design and a response in, coefficients and variances out, and which are infinite."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

Law = Literal["gaussian", "binomial", "poisson", "multinomial"]
FLAT = 1e-6  # information, as a share of that of unit variance, from which a direction has none
LOADED = 1e-3  # part of a coefficient in such a direction from which it is called infinite
STEPS = 25
"""Of Newton's method: an infinite coefficient grows by about one a step, and its steps never end."""
_HALVINGS = 30
_ENDED = 1e-8  # largest change of a coefficient
_LOST = 1e-10  # rounding of a log likelihood, relative


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients by equation and term: one equation, or one a class but class 0 (multinomial).

    Attributes:
        estimate, variance: float64 (equations, terms); NaN where the rows do not have them.
        infinite: bool of the same shape: the terms predict the response, and the likelihood is level.
    """

    estimate: np.ndarray
    variance: np.ndarray
    infinite: np.ndarray


def solved(
    law: Law,
    design: np.ndarray,
    response: np.ndarray,
    *,
    classes: int = 2,
    weights: np.ndarray | None = None,
) -> Solution:
    """Fit by maximum likelihood, with the canonical link.

    Args:
        design: float64 (rows, terms), of full rank, no column of zeros.
        response: float64 (rows,); codes from 0 on where the law is multinomial.
        classes: codes of a multinomial response; those that do not occur have no coefficients, and
            where class 0 does not there are none.
        weights: equal rows behind each row, float64 (rows,).
    """
    # Columns of one size: neither the steps nor what is level depend on units.
    size = np.sqrt(np.mean(design**2, axis=0))
    unit = design / size
    shape = (classes - 1 if law == "multinomial" else 1, design.shape[1])
    none = Solution(np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=bool))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # separation is found below
            counts = np.ones(len(unit)) if weights is None else weights
            if law in ("binomial", "poisson") and np.ptp(response) == 0:
                raise ValueError("a response that never varies")
            if law in ("binomial", "multinomial"):
                found = _by_class(unit, response.astype(np.int64), none, counts)
            else:
                found = _glm(law, unit, response, counts)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return Solution(none.estimate, none.variance, ~none.infinite)
    return Solution(found.estimate / size, found.variance / size**2, found.infinite)


def _glm(law: Law, design: np.ndarray, response: np.ndarray, weights: np.ndarray) -> Solution:
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM

    kind = families.Poisson() if law == "poisson" else families.Gaussian()
    # An infinite coefficient never ends the steps; its rows are level long before the last of them.
    model = GLM(response, design, family=kind, freq_weights=weights)
    done = model.fit(maxiter=STEPS, wls_method="qr")
    infinite = np.zeros(design.shape[1], dtype=bool)
    if law == "poisson":
        unit = np.average(response, weights=weights)
        infinite = _level(
            _gram(design, weights), _gram(design, weights * kind.variance(done.mu) / unit)
        )
    return Solution(np.asarray(done.params)[None], np.asarray(done.bse)[None] ** 2, infinite[None])


def _by_class(
    design: np.ndarray, codes: np.ndarray, none: Solution, weights: np.ndarray
) -> Solution:
    there = np.unique(codes)
    if len(there) < 2 or there[0] != 0:
        return none
    done = multinomial(design, np.searchsorted(there, codes), len(there), weights)
    none.estimate[there[1:] - 1], none.variance[there[1:] - 1] = done.estimate, done.se**2
    whole = np.kron(np.eye(len(there) - 1), _gram(design, weights))
    part = _information(design, weights, done.shares)  # of all classes: two may go off side by side
    none.infinite[there[1:] - 1] = _level(whole, part).reshape(len(there) - 1, -1)
    return none


def _gram(design: np.ndarray, weights: np.ndarray) -> np.ndarray:
    found: np.ndarray = (design * weights[:, None]).T @ design
    return found


def _level(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Coefficients with a part in a direction in which the likelihood is (almost) level.

    Args:
        whole: information of rows whose response varies as much as it can.
        part: as it varies, as fitted.
    """
    from scipy.linalg import eigh

    values, vectors = eigh(part, whole)
    lost = vectors[:, values < FLAT]
    lost = lost / np.sqrt((lost**2).sum(axis=0))
    return np.asarray(np.abs(lost).max(axis=1, initial=0.0) > LOADED)


@dataclass(frozen=True, slots=True, eq=False)
class Multinomial:
    """A fit.

    Attributes:
        estimate: float64 (classes - 1, terms), against class 0.
        se: the same shape, from the inverse information; NaN where it has none.
        shares: fitted, float64 (rows, classes); each row sums to 1.
    """

    estimate: np.ndarray
    se: np.ndarray
    shares: np.ndarray


def multinomial(
    design: np.ndarray, codes: np.ndarray, classes: int, weights: np.ndarray | None = None
) -> Multinomial:
    """Fit by maximum likelihood.

    Args:
        design: float64 (rows, terms), of full rank and with columns of about one size.
        codes: int64 (rows,), in [0, classes); each class occurs.
        classes: at least 2.
        weights: equal rows behind each row; None: one each.

    Newton's method with a check of every step: plain steps, as libraries take them, leave the numbers where
    classes are of very different sizes or where a class lacks a level, and then no coefficient is known.

    Source:
        Agresti, Categorical Data Analysis, s7.1 (baseline-category logit; likelihood and information).
    """
    first, place = alike(design)
    different = design[first]
    places = place * classes + codes
    counts = np.bincount(places, weights, len(different) * classes).astype(np.float64)
    counts = counts.reshape(len(different), classes)
    rows = counts.sum(axis=1)
    # Shares of the classes alone, where the terms hold a constant: the nearest start without a fit.
    odds = np.log(counts.sum(axis=0)[1:] / counts[:, 0].sum())
    constant = np.linalg.lstsq(different, np.ones(len(different)), rcond=None)[0]
    estimate = np.outer(odds, constant)
    shares, likelihood = _fitted(different, counts, estimate)
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
            break
    variance = np.diag(np.linalg.pinv(_information(different, rows, shares), hermitian=True))
    se = np.sqrt(np.where(variance > 0, variance, np.nan)).reshape(estimate.shape)
    return Multinomial(estimate, se, shares[place])


def alike(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each kind of row is first, and the kind of each row; rows of one kind are equal.

    Args:
        rows: float64 (rows, columns), none of them NaN.

    Numbers made of the bits are sorted, then the rows compared: to sort 20 columns takes 20 times as long.
    """
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # + 0.0: there is one zero
    odd = np.cumprod(np.full(rows.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64))
    key = (bits ^ (bits >> np.uint64(44))) @ odd  # small whole numbers differ in high bits alone
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if (rows[first[place]] != rows).any():
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _fitted(
    design: np.ndarray, counts: np.ndarray, estimate: np.ndarray
) -> tuple[np.ndarray, float]:
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
