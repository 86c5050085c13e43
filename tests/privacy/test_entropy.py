"""The maker of noise: its laws against the exact ones, its independence, its guards."""

import ast
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gibbous.core.errors import EngineFailure, ParameterError
from gibbous.privacy import entropy

LEVEL = 1e-6  # false alarm of one conformance test, half for each of its two statistics
MAKERS = {"geometric": entropy.geometric, "gaussian": entropy.gaussian}


def sample(law, scale, count):
    return MAKERS[law](np.zeros(count, dtype=np.int64), Fraction(scale))


def exact_law(law, scale):
    """Support (centered) and probabilities, far enough out."""
    reach = math.ceil(60 * scale) + 5
    support = np.arange(-reach, reach + 1)
    logs = -np.abs(support) / scale if law == "geometric" else -(support**2) / (2 * scale**2)
    weights = np.exp(logs)
    return support, weights / weights.sum()


def conforms(drawn, law, scale):
    """Chi-square of the whole law, and the likelihood statistic of its scale, each at LEVEL / 2."""
    support, p = exact_law(law, scale)
    statistic = np.abs if law == "geometric" else np.square
    values = statistic(support.astype(float))
    mean = float(p @ values)
    deviation = math.sqrt(float(p @ values**2) - mean**2)
    score = (
        (float(statistic(drawn.astype(float)).mean()) - mean) / deviation * math.sqrt(drawn.size)
    )

    if np.abs(drawn).max() > support[-1]:
        return False
    observed = np.bincount(drawn - support[0], minlength=support.size)
    # Cells are joined from the left until each expects at least 10.
    groups = np.floor(np.cumsum(p) * drawn.size / max(10, drawn.size / 400) * (1 - 1e-12)).astype(
        int
    )
    _, groups = np.unique(groups, return_inverse=True)
    expected = np.bincount(groups, p) * drawn.size
    counted = np.bincount(groups, observed)
    enough = expected >= 10
    expected = np.append(expected[enough], expected[~enough].sum() + 1e-300)
    counted = np.append(counted[enough], counted[~enough].sum())
    if expected[-1] < 10:
        expected, counted = _join_last(expected), _join_last(counted)
    chi2 = float(((counted - expected) ** 2 / expected).sum())
    fits = stats.chi2.sf(chi2, max(expected.size - 1, 1)) > LEVEL / 2
    return bool(fits and 2 * stats.norm.sf(abs(score)) > LEVEL / 2)


def _join_last(cells):
    return np.append(cells[:-2], cells[-2:].sum())


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
@pytest.mark.parametrize("scale", ["0.5", "4", "100"])
def test_g7_small_sample_conforms_and_a_scale_ten_percent_off_does_not(law, scale):
    """Level 1e-6, power above 0.999 at 20,000 draws."""
    drawn = sample(law, scale, 20_000)

    assert conforms(drawn, law, float(scale))
    assert not conforms(drawn, law, float(scale) * 1.1)
    assert not conforms(drawn, law, float(scale) * 0.9)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("law", ["geometric", "gaussian"])
@pytest.mark.parametrize("scale", ["0.25", "0.5", "1", "4", "16", "100"])
def test_g7_sample_conforms_and_a_scale_two_percent_off_does_not(law, scale):
    """Level 1e-6 at 2e5 draws; the scale statistic is 9 standard errors away from 2 % at scales >= 1/2."""
    drawn = sample(law, scale, 200_000)

    assert conforms(drawn, law, float(scale))
    if float(scale) >= 0.5:
        assert not conforms(drawn, law, float(scale) * 1.02)
        assert not conforms(drawn, law, float(scale) * 0.98)
    if scale in ("0.5", "16"):  # from the other side: a sampler that was made for less
        wrong = sample(law, Fraction(scale) * Fraction(98, 100), 200_000)
        assert not conforms(wrong, law, float(scale))


@pytest.mark.parametrize("make", MAKERS.values())
def test_noise_is_added_cell_by_cell_in_any_shape_without_touching_the_input(make):
    values = np.arange(6, dtype=np.int64).reshape(2, 3) * 1000
    before = values.copy()

    noisy = make(values, Fraction(1))

    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert np.array_equal(values, before)
    assert np.all(np.abs(noisy - values) < 100)  # beyond 1e-40


@pytest.mark.parametrize("make", MAKERS.values())
def test_no_cells_give_no_cells(make):
    assert make(np.zeros((0, 3), dtype=np.int64), Fraction(1)).shape == (0, 3)


def test_e4_sums_saturate_and_do_not_wrap():
    top = np.iinfo(np.int64).max

    noisy = entropy.geometric(np.array([top, -top] * 200), Fraction(10**6))

    assert np.all(np.sign(noisy) == np.tile([1, -1], 200))
    assert np.abs(noisy).max() == top  # half of them would have passed it


@pytest.mark.parametrize(
    "scale", [0, -1, 2**62, 10**400], ids=["zero", "negative", "2^62", "1e400"]
)
def test_e4_scales_that_would_give_no_noise_or_leave_64_bits_are_refused(scale):
    for make in MAKERS.values():
        with pytest.raises(ParameterError):
            make(np.zeros(1, dtype=np.int64), Fraction(scale))


def test_e9_scale_is_rounded_up_to_a_float_never_down():
    for scale in (Fraction(1, 3), Fraction(1, 10), Fraction(2**60 + 1), Fraction(1, 10**400)):
        used = entropy.noise_scale(scale)

        assert used >= scale
        assert Fraction(float(used)) == used
    assert entropy.noise_scale(Fraction(13)) == 13


def test_cells_beyond_one_chunk_all_get_noise_and_progress_hides_their_number():
    told = []
    values = np.zeros(entropy.CHUNK + 17, dtype=np.int64)

    noisy = entropy.geometric(values, Fraction(10**9), progress=lambda *step: told.append(step))

    assert np.count_nonzero(noisy) > values.size - 5
    assert told == [
        ("noise cells", 0, 2 * entropy.CHUNK),
        ("noise cells", entropy.CHUNK, 2 * entropy.CHUNK),
        ("noise cells", 2 * entropy.CHUNK, 2 * entropy.CHUNK),
    ]


def test_ctrl_c_is_heard_between_chunks():
    def interrupt(stage, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entropy.geometric(np.zeros(2 * entropy.CHUNK, np.int64), Fraction(1), progress=interrupt)


def test_words_are_uniform_and_never_the_same_twice():
    """Each of 64 bits within 6 standard errors of one half in 40,000 words: level 1.3e-7."""
    drawn = entropy.words(40_000)
    bits = np.unpackbits(drawn.view(np.uint8)).reshape(-1, 64).mean(axis=0)

    assert drawn.dtype == np.uint64
    assert np.all(np.abs(bits - 0.5) < 6 * 0.5 / math.sqrt(40_000))
    assert not np.intersect1d(drawn, entropy.words(40_000)).size


def test_g4_without_system_entropy_there_is_no_noise(monkeypatch):
    def blocked(count):
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", blocked)

    with pytest.raises(EngineFailure, match="random bytes"):
        entropy.words(1)


def test_g1_seeding_numpy_or_random_does_not_reach_noise_choices_or_words():
    import random

    draws = []
    for _ in range(2):
        np.random.seed(7)
        random.seed(7)
        cells = np.zeros(8, dtype=np.int64)
        draws.append(
            (
                tuple(entropy.geometric(cells, Fraction(10**9))),
                tuple(entropy.gaussian(cells, Fraction(10**9))),
                tuple(entropy.words(8)),
            )
        )

    assert all(a != b for a, b in zip(*draws, strict=True))


def test_g6_global_generators_of_numpy_are_neither_used_nor_changed():
    np.random.seed(3)
    before = np.random.get_state()[1].tobytes()

    entropy.geometric(np.zeros(100, dtype=np.int64), Fraction(5))
    entropy.gaussian(np.zeros(100, dtype=np.int64), Fraction(5))
    entropy.exponential_choice(np.zeros(5), epsilon=Fraction(1), sensitivity=1)
    entropy.words(5)

    assert np.random.get_state()[1].tobytes() == before


def test_g6_no_file_of_the_privacy_package_names_another_generator():
    banned = {"random", "numpy.random", "opendp.prelude"}
    for path in Path(entropy.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not banned & {name.name for name in node.names}, path.name
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in banned, path.name
            elif isinstance(node, ast.Attribute):
                assert node.attr not in ("random", "default_rng"), path.name


SCRIPT = """
import multiprocessing, sys
import numpy as np
from fractions import Fraction
from gibbous.privacy import entropy

def draw(_):
    cells = np.zeros(4, dtype=np.int64)
    noise = entropy.geometric(cells, Fraction(10**12)).tolist()
    return tuple(noise + entropy.words(2).tolist())

if __name__ == "__main__":
    draw(0)  # the parent has drawn before: a generator with state would be inherited
    with multiprocessing.get_context(sys.argv[1]).Pool(8) as pool:
        found = pool.map(draw, range(8), chunksize=1)
    print(len(set(found)))
"""


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_g2_eight_processes_draw_eight_different_noises(start, tmp_path):
    (tmp_path / "draw.py").write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, tmp_path / "draw.py", start], capture_output=True, text=True, timeout=120
    )

    assert done.stdout.strip() == "8", done.stderr


def choices(scores, count, **budget):
    drawn = [entropy.exponential_choice(np.array(scores, float), **budget) for _ in range(count)]
    return np.bincount(drawn, minlength=len(scores))


@pytest.mark.slow
def test_choice_follows_the_exponential_mechanism_and_not_permute_and_flip():
    """Chi-square at level 1e-6, 6,000 draws; permute-and-flip is 8 standard errors away."""
    counted = choices([0, 3, 6], 6000, epsilon=Fraction(2), sensitivity=3)

    right = np.exp([0.0, 1.0, 2.0])
    flip = np.array([0.0577, 0.1770, 0.7653])  # OpenDP's law under the pure measure
    assert stats.chisquare(counted, right / right.sum() * 6000).pvalue > 1e-6
    assert stats.chisquare(counted, flip / flip.sum() * 6000).pvalue < 1e-6


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_choice_rejects_ten_percent_too_much_budget(epsilon):
    """Chi-square at level 1e-7, 8,000 draws: one candidate against twenty that are three nats below it.

    It is chosen half the time, where 10 % of the budget move its share by 13 standard errors.
    """
    rate, scores = float(epsilon), np.array([6.0] + [0.0] * 20) / float(epsilon)
    counted = choices(scores, 8_000, epsilon=Fraction(epsilon), sensitivity=1)

    def p_value(used):
        law = np.exp(used * scores / 2)
        return stats.chisquare(counted, law / law.sum() * 8_000).pvalue

    assert p_value(rate) > 1e-7
    assert p_value(rate * 1.1) < 1e-7
    assert p_value(rate * 0.9) < 1e-7


def test_choice_of_one_candidate_and_of_masked_ones_is_certain():
    one = entropy.exponential_choice(np.array([5.0]), epsilon=Fraction(1), sensitivity=1)
    masked = choices([-np.inf, 0, np.nan, 0], 40, epsilon=Fraction(1), sensitivity=1)

    assert one == 0
    assert masked[0] == masked[2] == 0
    assert masked[1] > 0 < masked[3]  # each missed with probability 2^-40


def test_choice_reads_scores_in_whole_steps_so_that_low_bits_do_not_show():
    step = Fraction(1, entropy.GRID)
    base = np.array([0.1, 2.0, -7.3])
    nudged = base + np.array([1e-12, -1e-12, 0.0])

    assert np.array_equal(entropy._whole_steps(base, step), entropy._whole_steps(nudged, step))


def test_rounded_scores_of_neighbors_differ_by_no_more_steps_than_are_paid_for():
    rng = np.random.default_rng(5)
    for sensitivity in (Fraction(1), Fraction(1, 3), Fraction(7)):
        step = sensitivity / entropy.GRID
        scores = rng.uniform(-1, 1, 20_000) * 10.0 ** rng.integers(-6, 9, 20_000)
        moved = scores + rng.uniform(-1, 1, 20_000) * float(sensitivity)

        gap = np.abs(entropy._whole_steps(scores, step) - entropy._whole_steps(moved, step))

        assert gap.max() <= entropy.GRID + 2


def test_choice_without_candidates_budget_or_sensitivity_is_refused():
    for scores, epsilon, sensitivity in (([], 1, 1), ([1.0], 0, 1), ([1.0], 1, 0)):
        with pytest.raises(ParameterError):
            entropy.exponential_choice(
                np.array(scores), epsilon=Fraction(epsilon), sensitivity=sensitivity
            )


def test_a_price_above_ours_stops_the_run():
    entropy._check_price(Fraction(1), Fraction(1))
    with pytest.raises(EngineFailure, match="prices the noise higher"):
        entropy._check_price(Fraction(1) + Fraction(1, 1 << 49), Fraction(1))
