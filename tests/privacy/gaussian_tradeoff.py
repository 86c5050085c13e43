"""Brute force for the constant of discrete Gaussian noise: trade-off functions at 60 digits.

Run: python -m tests.privacy.gaussian_tradeoff
It prints, for 60 values of sigma, c by comparing the trade-off functions at whole thresholds, at
which threshold it is attained, and the c that is charged. Nothing here uses the theorem.
"""

from fractions import Fraction

import mpmath as mp

from gibbous.privacy.calibrate import gdp

DIGITS = 60
SIGMAS = [Fraction(20 + k, 40) for k in range(20)] + [
    Fraction(round(2**16 * 1.19**k), 2**16) for k in range(40)
]
"""60 values from 1/2 to 884; those above 1 are scales that a sampler takes."""


def survival(sigma, reach=16):
    """S(k) = P(X >= k), k = 0 .. reach sigma, of the discrete Gaussian."""
    last = int(reach * sigma) + 30
    width = mp.mpf(sigma.numerator) / sigma.denominator
    weights = [mp.exp(-((mp.mpf(k) / width) ** 2) / 2) for k in range(last + 60 * int(1 + width))]
    whole = weights[0] + 2 * mp.fsum(weights[1:])
    out, total = [], mp.mpf(0)
    for weight in reversed(weights):
        total += weight / whole
        out.append(total)
    return out[::-1][:last]


def tail(z):
    """P(Z > z)."""
    return mp.erfc(z / mp.sqrt(2)) / 2


def upper(share):
    """z with P(Z > z) = share, by Newton's steps on the logarithm."""
    z = mp.sqrt(-2 * mp.log(share)) if share < mp.mpf("0.05") else mp.mpf(0)
    for _ in range(200):
        here = tail(z)
        step = mp.log(here / share) * here * mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2)
        z += step
        if abs(step) < mp.mpf(10) ** (-DIGITS + 8):
            return z
    raise ArithmeticError("no convergence")


def thresholds(sigma):
    """All whole thresholds up to 12 sigma; beyond 80 of them the first 20 and 60 spread ones."""
    last = int(12 * sigma) + 4
    if last <= 80:
        return range(1, last)
    return sorted({*range(1, 21), *(20 + (last - 20) * k // 60 for k in range(61))})


def constant(sigma):
    """(c, k): mu = (1 + c) / sigma is the least with G_mu(S(k)) <= 1 - S(k - 1) at every threshold."""
    tails = survival(sigma)
    width = mp.mpf(sigma.numerator) / sigma.denominator
    # G_mu(a) = P(Z <= upper(a) - mu), so a threshold asks for mu >= upper(S(k)) + upper(1 - S(k - 1)).
    asked = []
    for k in thresholds(sigma):
        before = -upper(tails[k - 1]) if k > 1 else upper(1 - tails[0])
        asked.append((upper(tails[k]) + before, k))
    mu, at = max(asked)
    return mu * width - 1, at


def charged(sigma):
    """The c of the package."""
    square = gdp.square_of_gaussian(sigma)
    return (
        mp.sqrt(mp.mpf(square.numerator) / square.denominator)
        * mp.mpf(sigma.numerator)
        / sigma.denominator
        - 1
    )


def lines(sigmas):
    """What the program prints."""
    yield "sigma        c by brute force   at k   c charged          excess"
    for sigma in sigmas:
        (found, where), ours = constant(sigma), charged(sigma)
        exact, paid, more = mp.nstr(found, 12), mp.nstr(ours, 12), mp.nstr(ours / found - 1, 3)
        yield f"{float(sigma):<12.6g} {exact:<18} {where:<6} {paid:<18} {more}"


if __name__ == "__main__":
    with mp.workdps(DIGITS):
        for line in lines(SIGMAS):
            print(line, flush=True)
