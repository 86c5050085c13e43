"""Perturb: a key's counts in, the weights out from which its level is drawn; with the price of a draw."""
