"""Builds that are wrong on purpose, one for each way to end badly: a campaign must find them."""

from __future__ import annotations

import os
from typing import Any

TARGETS = {"raises": "release_json", "aborts": "csv", "hangs": "schema"}


def raises() -> None:
    """Fields of a certificate are used as they come: `files: null` was a traceback once."""
    from gibbous.write import load

    load.check_fields = lambda document: None


def aborts() -> None:
    """A quote that is never closed ends the process, as a fault in compiled code would."""
    from gibbous.read import csv_text

    honest = csv_text.InputRejected

    def stop(name: str, *words: Any, **more: Any) -> Any:
        if name == "UNCLOSEDQUOTE":
            os.abort()
        return honest(name, *words, **more)

    csv_text.InputRejected = stop  # type: ignore[assignment, misc]


def hangs() -> None:
    """A text of many lines that is never closed is read for ever."""
    from gibbous.core import documents

    honest = documents._check_nesting

    def slow(text: str, tokens: Any) -> None:
        while text.count("'''") == 1:
            pass
        honest(text, tokens)

    documents._check_nesting = slow
