"""`gibbous ledger show | cap`: what each data set has spent, and the most it may."""

from __future__ import annotations
