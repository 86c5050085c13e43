"""parallel in threads: the same bytes, prices and refusals as one part after the other; cores shared out."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.cases import secret
from gibbous.core import machine
from gibbous.core.claim import pure
from gibbous.core.errors import PrivacyRefused
from gibbous.core.stream import stream_key, words
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.parallel import Parallel
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import geometric_for
from gibbous.privacy.purse import Purse
from gibbous.sampling.sample import sample
from gibbous.structure.contexts import margins
from tests.mechanisms.linked_columns import SCHEMA, linked

BUDGET = pure(Fraction(1))


def fixed(count: int) -> np.ndarray:
    """Words that do not depend on who asks first."""
    return words(stream_key(7), 0, count)


def curator(plan: Any = None, *, threads: int, memory: int | None = None) -> Curator:
    codes = secret(SCHEMA, linked(900))
    engine = LocalEngine.from_codes(codes, threads=threads, memory_limit=memory)
    total = plan.total if plan else BUDGET
    return Curator(engine, total, SCHEMA, relation="add_remove", words=fixed)


@pytest.fixture
def _fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def noise(values: np.ndarray, scale: Fraction, **_: Any) -> np.ndarray:
        return values + (fixed(values.size).astype(np.int64) % 7).reshape(values.shape)

    monkeypatch.setattr(entropy, "geometric", noise)
    monkeypatch.setattr(entropy, "gaussian", noise)
    monkeypatch.setattr(entropy, "exponential_choice", lambda scores, **_: int(np.argmax(scores)))


@pytest.mark.usefixtures("_fixed_noise")
@pytest.mark.parametrize(
    "inside",
    [gb.Laplace(), gb.NoisyPegs(), gb.Sbhg(epsilon=5), gb.Pegs(), gb.BlockPegs(block=3)],
    ids=lambda m: m.about.name,
)
def test_threads_change_no_byte(inside: Any) -> None:
    mechanism = Parallel(inside, parts=5)
    plan = mechanism.plan(SCHEMA, 60)

    runs = [curator(plan, threads=threads) for threads in (1, 2, 5)]
    drawn = [mechanism.run(one, 60) for one in runs]
    rows = [(sample(d, 60, seed=3) if hasattr(d, "parts") else d).values for d in drawn]

    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])
    assert len({one.spent for one in runs}) == 1


@pytest.mark.parametrize(("memory", "at_once"), [(10**9, 2), (3 * 10**6, 1)])
def test_parts_run_at_once_where_memory_holds_them(memory: int, at_once: int) -> None:
    """Each of two parts waits for the other: one after the other they would wait in vain."""
    together = threading.Barrier(2)

    def work(part: Any, number: int) -> bool:
        try:
            together.wait(5 if at_once == 2 else 0.1)
        except threading.BrokenBarrierError:
            return False
        return True

    met = curator(threads=2, memory=memory).on_parts(2, work, memory=2 * 10**6)

    assert met == [at_once == 2] * 2


def test_parts_share_the_cores_and_keep_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(9), raising=False)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    account: ContextVar[str] = ContextVar("account")
    account.set("gdp")

    def seen(part: Any, number: int) -> tuple[int, int, str]:
        return machine.usable_cores(), machine.within_share(64), account.get()

    assert curator(threads=4).on_parts(6, seen) == [(2, 2, "gdp")] * 6
    assert machine.usable_cores() == 9


def test_the_first_refusal_of_a_part_is_that_of_the_run_and_ends_all_threads() -> None:
    def work(part: Any, number: int) -> None:
        if number:
            part.noisy_counts([margin_of(part)], noise(Fraction(1)))
            raise RuntimeError(str(number))
        part.noisy_counts([margin_of(part)], noise(Fraction(1, 3)))  # epsilon 3 of 1

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        curator(threads=4).on_parts(4, work)

    assert not part_threads()


def test_an_interrupt_ends_parts_where_they_report() -> None:
    begun = threading.Event()

    def work(part: Any, number: int) -> None:
        begun.set()
        while True:  # a part without an end, but for its reports
            part.report("rounds", 1, 2)

    def interrupt(stage: str, done: int, total: int) -> None:
        begun.wait(60)
        raise KeyboardInterrupt

    one = curator(threads=2)
    one._progress = interrupt

    with pytest.raises(KeyboardInterrupt):
        one.on_parts(2, work)

    assert not part_threads()


@pytest.mark.parametrize("locked", [True, False])
def test_of_two_purchases_at_once_that_fit_alone_one_is_paid(
    locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The saboteur has no lock: each purchase then sees the other, and both are refused."""
    purse, both = Purse(BUDGET), threading.Barrier(2)
    honest, paid = Purse._through, []
    if not locked:
        purse._lock = nullcontext()  # type: ignore[assignment]

    def slow(one: Purse) -> Any:
        with suppress(threading.BrokenBarrierError):  # with the lock, nobody comes
            both.wait(0.2 if locked else 30)
            found = honest(one)
            both.wait(30)
            return found
        return honest(one)

    monkeypatch.setattr(Purse, "_through", slow)
    threads = [
        threading.Thread(target=lambda: paid.append(purse.pay(pure(Fraction(3, 5)))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(paid) == ([False, True] if locked else [False, False])


def test_a_purchase_is_covered_where_every_path_of_the_whole_is() -> None:
    """Trees of parts at random; by brute force, every path from the top is added up."""
    rng = np.random.default_rng(5)
    verdicts = []
    for _ in range(40):
        top = Purse(BUDGET)
        purses = [top]
        for _ in range(int(rng.integers(1, 4))):
            purses += purses[rng.integers(len(purses))].divided(int(rng.integers(1, 4)))
        for _ in range(25):
            purse = purses[rng.integers(len(purses))]
            price = pure(Fraction(int(rng.integers(1, 5)), 10))
            before = purse._paid.total()

            covered = purse.pay(price)
            if not covered:
                purse._paid[price] += 1
            fits = all(sum(c.epsilon for c in path) <= 1 for path in _every_path(top))
            if not covered:
                purse._paid[price] -= 1

            assert covered == fits
            assert purse._paid.total() == before + covered
            verdicts.append(covered)
    assert 100 < sum(verdicts) < len(verdicts) - 100


def _every_path(purse: Purse) -> Iterator[list[Any]]:
    for chosen in itertools.product(*purse._parts):
        for paths in itertools.product(*(list(_every_path(part)) for part in chosen)):
            yield [*purse._paid.elements(), *itertools.chain(*paths)]


def part_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("gibbous-part")]


def margin_of(part: Any) -> Any:
    return margins(part.schema)[0]


def noise(scale: Fraction) -> Any:
    return geometric_for(1 / scale, 1)
