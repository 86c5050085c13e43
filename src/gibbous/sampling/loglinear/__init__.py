"""Log-linear models on any set of cliques: chains, fitting, rows, a closing pass; no records are read."""

from __future__ import annotations

from gibbous.sampling.loglinear.chains import Chains, independent, margins, start, sweep
from gibbous.sampling.loglinear.fit import Schedule, Target, fit, with_cliques
from gibbous.sampling.loglinear.planting import planted
from gibbous.sampling.loglinear.replication import Refitting, prepared, refitted

__all__ = [
    "Chains",
    "Refitting",
    "Schedule",
    "Target",
    "fit",
    "independent",
    "margins",
    "planted",
    "prepared",
    "refitted",
    "start",
    "sweep",
    "with_cliques",
]
