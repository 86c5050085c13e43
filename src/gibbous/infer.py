"""`gibbous.infer`: what an analyst of synthetic sets imports; no real record is ever needed.

import gibbous as gb

rel = gb.infer.load_release("drb/release")
print(rel.glm("readmitted ~ sex + age", family="binomial").summary())
"""

from __future__ import annotations

from gibbous.evaluate.inference.analysis import Analysis, load_release
from gibbous.evaluate.inference.combine import combine
from gibbous.evaluate.inference.combined import Combined
from gibbous.evaluate.inference.redraw import noise_variance
from gibbous.evaluate.inference.results import Fit, Shares
from gibbous.evaluate.inference.rules import Noise

__all__ = [
    "Analysis",
    "Combined",
    "Fit",
    "Noise",
    "Shares",
    "combine",
    "load_release",
    "noise_variance",
]
