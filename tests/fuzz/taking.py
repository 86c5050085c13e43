"""What every target needs: a folder of this process, and whether something was taken or refused."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from gibbous.core.errors import GibbousError


@functools.cache
def folder_of(name: str) -> Path:
    """A folder of this process for one target."""
    return Path(tempfile.mkdtemp(prefix=f"gibbous-fuzz-{name}-{os.getpid()}-"))


class Unfinished(Exception):
    """A refusal that does not say what is wrong, what is allowed, and what to do."""


def done(work: Callable[[], object]) -> bool:
    """Do it; False where it is refused as it should be."""
    try:
        work()
    except GibbousError as error:
        if error.exit_code < 2 or not all((error.name, error.wrong, error.allowed, error.fix)):
            raise Unfinished(error.code) from error
        return False
    return True


def named(data: bytes, *names: str) -> tuple[str, bytes]:
    first, _, body = data.partition(b"\n")
    name = first.decode(errors="replace")
    return (name if name in names else "", body)
