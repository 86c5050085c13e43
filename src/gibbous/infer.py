"""`gibbous.infer`: what an analyst of synthetic sets imports; no real record is ever needed.

import gibbous as gb

rel = gb.infer.load_release("drb/release")
print(rel.glm("readmitted ~ sex + age", family="binomial").summary())
"""

from __future__ import annotations

from gibbous.evaluation.inference.analysis import Analysis, load_release
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combined_estimate import Combined, Fit, Shares
from gibbous.evaluation.inference.combining_rules import Noise
from gibbous.evaluation.inference.noise_replicates import noise_variance

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
