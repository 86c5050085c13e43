"""What holds confidential records, or reaches them, and shows none."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A base whose objects print as the name of their class, and are never pickled or copied."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} reaches confidential records and is never pickled")
