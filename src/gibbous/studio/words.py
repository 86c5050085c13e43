"""The strings of the screens, all of one file; and errors in its words."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from gibbous.core.documents import read_text, toml
from gibbous.core.errors import GibbousError, UsageError

FILE = Path(__file__).parent / "words.toml"


@functools.cache
def words() -> dict[str, Any]:
    """Every string of the screens, by screen: what a translation would replace."""
    return toml(read_text(FILE, 1 << 20))


def answer(name: object) -> str:
    """A short text in place of a page."""
    return str(words()["answers"][str(name)])


def refusal(name: str, *said: object, kind: type[GibbousError] = UsageError) -> GibbousError:
    """An error in the words of the screens; `name` is of its three sentences, `said` stands in their gaps."""
    wrong, allowed, fix = (text.format(*said) for text in words()["refusals"][name])
    return kind(name.partition("_")[0], wrong, allowed, fix)
