"""How every refusal is checked: its exit code, its sentences, and that it carries no cell value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from gibbous.core.errors import GibbousError

MARKER = "Zaphod-SECRET-7"


@dataclass
class Caught:
    """The error, once the block has ended."""

    errors: list[GibbousError] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.errors[0].render()


@contextmanager
def refused(exit_code: int, name: str | None = None) -> Iterator[Caught]:
    """The block raises one of our errors with this exit code; the planted marker is nowhere in it."""
    caught = Caught()
    with pytest.raises(GibbousError) as info:
        yield caught
    error = info.value
    caught.errors.append(error)
    assert error.exit_code == exit_code, error.render()
    assert name is None or error.name == name, error.render()
    assert all(part.endswith((".", "?", ")")) for part in (error.wrong, error.allowed, error.fix))
    link: BaseException | None = error
    while link is not None:
        assert MARKER not in str(link)
        assert MARKER not in repr(link)
        assert MARKER not in repr(link.args)
        assert link.__cause__ is None
        link = None if link.__suppress_context__ else link.__context__
