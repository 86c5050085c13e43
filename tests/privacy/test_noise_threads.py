"""Large tables take their noise in threads: the same cells in the same order, no draw used twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from gibbous.privacy import entropy


@pytest.fixture(autouse=True)
def _four_cores_and_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "usable_cores", lambda: 4)
    monkeypatch.setattr(entropy, "CHUNK", 64)


def noise_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("gibbous-noise")]


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_g2_threads_that_draw_at_once_draw_different_noise(
    law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 draws at scale 10^12: two of them agree by chance with probability below 1e-7."""
    honest, meeting = entropy._sampler, threading.Barrier(4)

    def together(law: str, scale: Fraction) -> Callable[[np.ndarray], list[int]]:
        sampler = honest(law, scale)

        def sample(part: np.ndarray) -> list[int]:
            meeting.wait(120)  # four threads, none of which has drawn
            return sampler(part)

        return sample

    monkeypatch.setattr(entropy, "_sampler", together)
    make = entropy.geometric if law == "geometric" else entropy.gaussian

    noise = make(np.zeros(256, dtype=np.int64), Fraction(10**12))

    assert len(np.unique(noise)) == 256
    assert not noise_threads()


@pytest.mark.parametrize("cores", [1, 4])
def test_cells_keep_their_order_and_progress_its_steps(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entropy, "usable_cores", lambda: cores)
    told: list[tuple[str, int, int]] = []
    values = np.arange(330, dtype=np.int64).reshape(33, 10)

    doubled = entropy._noised(
        values, lambda part: (2 * part).tolist(), lambda *step: told.append(step)
    )

    assert np.array_equal(doubled, 2 * values)
    assert told == [("noise cells", 64 * i, 384) for i in range(7)]


def test_an_error_or_an_interrupt_ends_all_threads() -> None:
    def failing(part: np.ndarray) -> list[int]:
        if part[0] == 128:
            raise ZeroDivisionError
        return part.tolist()  # type: ignore[no-any-return]

    def interrupt(stage: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    values = np.arange(640, dtype=np.int64)
    with pytest.raises(ZeroDivisionError):
        entropy._noised(values, failing, lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        entropy._noised(values, lambda part: part.tolist(), interrupt)

    assert not noise_threads()
