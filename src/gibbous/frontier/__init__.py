"""Frontier: mechanisms x budgets x repeats, and the risk-utility map of what came out."""
