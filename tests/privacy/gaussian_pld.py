"""Smallest sigma of discrete Gaussian noise by the privacy loss distributions of dp-accounting.

Run: python -m tests.privacy.gaussian_pld
It bisects sigma for the 40 cases below (20 s of CPU) and prints the lines of SMALLEST, made with
dp-accounting 0.6.0.
"""

import math

CASES = [
    (epsilon, delta, tables, relation)
    for epsilon in ("0.1", "0.5", "1", "3", "10")
    for delta in ("1e-6", "1e-9")
    for tables in (1, 13)
    for relation in ("add_remove", "replace_one")
]

SMALLEST = {
    ("0.1", "1e-6", 1, "add_remove"): 36.3054,
    ("0.1", "1e-6", 1, "replace_one"): 51.343,
    ("0.1", "1e-6", 13, "add_remove"): 130.899,
    ("0.1", "1e-6", 13, "replace_one"): 185.12,
    ("0.1", "1e-9", 1, "add_remove"): 50.2107,
    ("0.1", "1e-9", 1, "replace_one"): 71.0079,
    ("0.1", "1e-9", 13, "add_remove"): 181.035,
    ("0.1", "1e-9", 13, "replace_one"): 256.021,
    ("0.5", "1e-6", 1, "add_remove"): 8.05251,
    ("0.5", "1e-6", 1, "replace_one"): 11.3935,
    ("0.5", "1e-6", 13, "add_remove"): 29.0525,
    ("0.5", "1e-6", 13, "replace_one"): 41.086,
    ("0.5", "1e-9", 1, "add_remove"): 10.6778,
    ("0.5", "1e-9", 1, "replace_one"): 15.0939,
    ("0.5", "1e-9", 13, "add_remove"): 38.4856,
    ("0.5", "1e-9", 13, "replace_one"): 54.4266,
    ("1", "1e-6", 1, "add_remove"): 4.23079,
    ("1", "1e-6", 1, "replace_one"): 5.97666,
    ("1", "1e-6", 13, "add_remove"): 15.2326,
    ("1", "1e-6", 13, "replace_one"): 21.5419,
    ("1", "1e-9", 1, "add_remove"): 5.49984,
    ("1", "1e-9", 1, "replace_one"): 7.77384,
    ("1", "1e-9", 13, "add_remove"): 19.8135,
    ("1", "1e-9", 13, "replace_one"): 28.0206,
    ("3", "1e-6", 1, "add_remove"): 1.562,
    ("3", "1e-6", 1, "replace_one"): 2.18354,
    ("3", "1e-6", 13, "add_remove"): 5.56707,
    ("3", "1e-6", 13, "replace_one"): 7.87201,
    ("3", "1e-9", 1, "add_remove"): 1.9489,
    ("3", "1e-9", 1, "replace_one"): 2.75413,
    ("3", "1e-9", 13, "add_remove"): 7.00812,
    ("3", "1e-9", 13, "replace_one"): 9.91121,
    ("10", "1e-6", 1, "add_remove"): 0.499906,
    ("10", "1e-6", 1, "replace_one"): 0.770828,
    ("10", "1e-6", 13, "add_remove"): 1.95248,
    ("10", "1e-6", 13, "replace_one"): 2.75835,
    ("10", "1e-9", 1, "add_remove"): 0.667038,
    ("10", "1e-9", 1, "replace_one"): 0.894086,
    ("10", "1e-9", 13, "add_remove"): 2.34583,
    ("10", "1e-9", 13, "replace_one"): 3.31522,
}


def delta_at(sigma, epsilon, cells, *, above=True):
    """Delta of `cells` counts that change by one each; a bound from above, or from below."""
    from dp_accounting.pld import privacy_loss_distribution

    step = min(2e-4, float(epsilon) / 5000)
    one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma,
        value_discretization_interval=step,
        pessimistic_estimate=above,
        use_connect_dots=above,
    )
    return one.self_compose(cells).get_delta_for_epsilon(float(epsilon))


def cells_of(tables, relation):
    """Counts that one record changes by one."""
    return tables * (2 if relation == "replace_one" else 1)


def smallest(epsilon, delta, tables, relation):
    """The sigma at which the bound from above meets delta, to five digits."""
    cells = cells_of(tables, relation)
    spread = 2 * math.log(1.25 / float(delta)) + 2 * float(epsilon)
    high = math.sqrt(cells * spread) / float(epsilon) + 1  # the classical calibration and more
    low = high / 10
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        if delta_at(middle, epsilon, cells) <= float(delta):
            high = middle
        else:
            low = middle
    return high


if __name__ == "__main__":
    for case in CASES:
        print(f"    {case!r}: {smallest(*case):.6g},".replace("'", '"'), flush=True)
