"""Budgets to parameters and back: every closed form, with its rounding direction.

Costs are exact fractions, rounded up; scales, thresholds and virtual counts are rounded up, so that
the cost computed back from them is never above the budget they came from. Names that end in
_published are a paper's formula where it differs from the true one.
"""

from gibbous.privacy.calibrate.composition import composed_delta, composed_epsilon
from gibbous.privacy.calibrate.dips import dirichlet_alpha, prior_alpha, smoothed_share
from gibbous.privacy.calibrate.diversity import (
    alpha_from_beta,
    beta_from_alpha,
    conditional,
    diverse_beta,
    l_from_fraction_published,
    max_probability_beta,
    mixed_with_uniform,
    q_star,
)
from gibbous.privacy.calibrate.gibbs import (
    UNIFORM,
    alpha_from_eps0,
    block_alpha,
    block_pure,
    block_zcdp,
    draws,
    eps0_from_alpha,
    pegs_alpha,
    pegs_alpha_published,
    pegs_alpha_zcdp,
    pegs_pure,
    pegs_zcdp,
    pmi_alpha,
    tilt_pure,
    tilt_zcdp,
)
from gibbous.privacy.calibrate.sba import (
    expected_l1,
    proposition1,
    proposition1_published,
    sba_delta,
    sba_threshold,
    survival,
    survival_published,
)
from gibbous.privacy.calibrate.scales import (
    gaussian_rho,
    gaussian_sigma,
    geometric_epsilon,
    geometric_scale,
    l1_sensitivity,
    l2_squared,
    steps,
)
from gibbous.privacy.calibrate.stable import (
    gaussian_threshold,
    laplace_threshold,
    stable_gaussian,
    stable_gaussian_cost,
    stable_geometric,
    stable_geometric_cost,
)
from gibbous.privacy.calibrate.tails import gaussian_tail, geometric_tail
from gibbous.privacy.calibrate.truncation import (
    truncated_laplace_epsilon,
    truncated_laplace_scale,
)
from gibbous.privacy.calibrate.zcdp import (
    delta_from_zcdp,
    epsilon_from_zcdp,
    pure_to_zcdp,
    range_to_zcdp,
    rho_from_approx,
)

__all__ = [
    "UNIFORM",
    "alpha_from_beta",
    "alpha_from_eps0",
    "beta_from_alpha",
    "block_alpha",
    "block_pure",
    "block_zcdp",
    "composed_delta",
    "composed_epsilon",
    "conditional",
    "delta_from_zcdp",
    "dirichlet_alpha",
    "diverse_beta",
    "draws",
    "eps0_from_alpha",
    "epsilon_from_zcdp",
    "expected_l1",
    "gaussian_rho",
    "gaussian_sigma",
    "gaussian_tail",
    "gaussian_threshold",
    "geometric_epsilon",
    "geometric_scale",
    "geometric_tail",
    "l1_sensitivity",
    "l2_squared",
    "l_from_fraction_published",
    "laplace_threshold",
    "max_probability_beta",
    "mixed_with_uniform",
    "pegs_alpha",
    "pegs_alpha_published",
    "pegs_alpha_zcdp",
    "pegs_pure",
    "pegs_zcdp",
    "pmi_alpha",
    "prior_alpha",
    "proposition1",
    "proposition1_published",
    "pure_to_zcdp",
    "q_star",
    "range_to_zcdp",
    "rho_from_approx",
    "sba_delta",
    "sba_threshold",
    "smoothed_share",
    "stable_gaussian",
    "stable_gaussian_cost",
    "stable_geometric",
    "stable_geometric_cost",
    "steps",
    "survival",
    "survival_published",
    "tilt_pure",
    "tilt_zcdp",
    "truncated_laplace_epsilon",
    "truncated_laplace_scale",
]
