"""Budgets to parameters and back: every closed form, with its rounding direction.

Costs are exact fractions, rounded up; scales, thresholds and virtual counts are rounded up, so that
the cost computed back from them is never above the budget they came from. Names that end in
_published are a paper's formula where it differs from the true one.
"""
