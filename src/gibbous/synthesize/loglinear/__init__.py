"""Log-linear models on any set of cliques: chains, fitting, rows, a closing pass; no records are read."""

from __future__ import annotations

from gibbous.synthesize.loglinear.chains import Chains, independent, margins, start, sweep
from gibbous.synthesize.loglinear.fit import Fitted, Schedule, Target, fit, with_cliques

__all__ = [
    "Chains",
    "Fitted",
    "Schedule",
    "Target",
    "fit",
    "independent",
    "margins",
    "start",
    "sweep",
    "with_cliques",
]
