"""What is taken when nothing is said; apart, so that help need not import what reads configurations."""

DEFAULT_METHOD = "adaptive_gibbs"
