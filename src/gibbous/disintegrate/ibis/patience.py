"""Work of a library in a thread of its own, so that Ctrl-C is heard at once and stops the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_LOOK = 0.1  # seconds


class Patience:
    """Runs one piece of work after the other, and interrupts it when this thread is stopped."""

    __slots__ = ("_pool",)

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="gibbous-database")

    def run(self, work: Callable[[], T], stop: Callable[[], object]) -> T:
        """The result of `work`.

        Args:
            work: does not touch what other threads touch.
            stop: makes `work` end soon; called when the waiting thread is interrupted.
        Raises:
            BaseException: what `work` raised, or what interrupted this thread.
        """
        future: Future[T] = self._pool.submit(work)
        try:
            while not wait([future], timeout=_LOOK).done:
                pass
        except BaseException:
            stop()
            wait([future], timeout=2.0)
            raise
        return future.result()

    def each(self, items: Iterator[T], stop: Callable[[], object]) -> Iterator[T]:
        """The items of an iterator that a library fills."""
        none = object()
        while (item := self.run(lambda: next(items, none), stop)) is not none:
            yield item  # type: ignore[misc]

    def close(self) -> None:
        """Wait for the thread, and end it."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Here:
    """The same in this thread, for libraries whose connections stay in the thread that made them."""

    def run(self, work: Callable[[], T], stop: Callable[[], object]) -> T:
        """The result of `work`."""
        return work()

    def each(self, items: Iterator[T], stop: Callable[[], object]) -> Iterator[T]:
        """The items of an iterator."""
        return items

    def close(self) -> None:
        """Nothing is left to end."""
