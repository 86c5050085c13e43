"""Workers that are this process: the calls of `spread`, one after the other, each with all its cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gibbous.core.protocols import Progress, silent


class LocalWorkers:
    """`core.protocols.Workers` without further processes.

    A call may use threads of its own; the next one starts when its result was taken, so that at most
    one part is under way.
    """

    def spread(
        self,
        work: Callable[[Any, Any], Any],
        shared: Any,
        items: Sequence[Any],
        *,
        progress: Progress = silent,
    ) -> Iterator[Any]:
        """Call work(shared, item) for every item, in order; see `core.protocols.Workers`."""
        for done, item in enumerate(items):
            progress("write", done, len(items))
            yield work(shared, item)
        progress("write", len(items), len(items))
