"""Findings read back from the JSON that an evaluation or an internal report wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gibbous.core.documents import Unreadable, json_value, read_bytes
from gibbous.core.errors import InputRejected
from gibbous.core.finding import GROUPS, Finding
from gibbous.evaluation.findings import Findings

MAX_BYTES: Final = 256 << 20
_WORDS: Final = ("name", "title", "definition", "source", "interval_of", "note")


def read_findings(path: str | Path) -> Findings:
    """Read findings.json, or the JSON twin of an internal report.

    Args:
        path: of the file.
    Returns:
        The findings; numbers that were not defined are NaN again.
    Raises:
        InputRejected: it is missing, too large, or does not hold findings.
    """
    file = Path(path)
    try:
        data = json_value(read_bytes(file, MAX_BYTES))
        items = tuple(_finding(entry) for entry in data["findings"])
        facts = data.get("facts", {})
        if not isinstance(facts, Mapping):
            raise TypeError("facts")
    except Unreadable as error:
        raise _rejected(file, f"it {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _rejected(file, "it does not hold findings") from None
    return Findings(items, facts)


def _finding(data: Mapping[str, Any]) -> Finding:
    if data["group"] not in GROUPS or data["better"] not in ("lower", "higher", "near"):
        raise ValueError("unknown group or direction")
    words = {key: data[key] for key in _WORDS}
    if not all(isinstance(text, str) for text in words.values()):
        raise TypeError("a text is expected")
    interval = data["interval"]
    ideal = data["ideal"]
    return Finding(
        group=data["group"],
        better=data["better"],
        value=_number(data["value"]),
        interval=None if interval is None else (_number(interval[0]), _number(interval[1])),
        null=tuple((str(k), _number(v)) for k, v in data["null"].items()),
        ideal=None if ideal is None else _number(ideal),
        subject=tuple(str(s) for s in data["subject"]),
        sets=tuple(_number(v) for v in data["sets"]),
        detail=tuple({str(k): _plain(v) for k, v in row.items()} for row in data["detail"]),
        confidential=bool(data["confidential"]),
        **words,
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError("details hold plain values")


def _rejected(path: Path, why: str) -> InputRejected:
    return InputRejected(
        "FINDINGS",
        f"{str(path)!r} is not a file of findings: {why}.",
        "gibbous evaluate writes findings.json; the JSON twin of an internal report holds them, too.",
        "Give one of these.",
    )
