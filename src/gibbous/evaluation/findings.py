"""Findings: all metrics of one evaluation, as a sequence, a frame, JSON or a report; read from JSON again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, overload

from gibbous.core.documents import Unreadable, json_value, read_bytes
from gibbous.core.errors import InputRejected, UsageError
from gibbous.core.finding import GROUPS, Finding
from gibbous.core.notebook import html_table

Reporter = Callable[["Findings", Path], Path]
"""reporter(findings, path) -> the HTML file that was written."""
MAX_BYTES: Final = 256 << 20
_WORDS: Final = ("name", "title", "definition", "source", "interval_of", "note")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Findings(Sequence[Finding]):
    """All findings of one evaluation, in order.

    Attributes:
        facts: what was compared: rows, columns, sets, seed, versions, in plain JSON values.
    """

    items: tuple[Finding, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    reporter: Reporter | None = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    @overload
    def __getitem__(self, index: str) -> Finding: ...
    def __getitem__(self, index: int | slice | str) -> Finding | tuple[Finding, ...]:
        """By position, or the first of a name; UsageError if no finding has that name."""
        if not isinstance(index, str):
            return self.items[index]
        for item in self.items:
            if item.name == index:
                return item
        raise UsageError(
            "FINDING",
            f"There is no finding {index!r}.",
            f"There are {', '.join(dict.fromkeys(f.name for f in self.items))}.",
            "Ask for one of these, or evaluate with the options that make it.",
        )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __repr__(self) -> str:
        return f"<{len(self.items)} findings>"

    def _repr_html_(self) -> str:
        rows = [
            (
                item.title,
                ", ".join(item.subject),
                f"{item.value:.4g}",
                "" if item.interval is None else "{:.4g} to {:.4g}".format(*item.interval),
                ", ".join(f"{name} {value:.4g}" for name, value in item.null),
                item.better,
            )
            for item in self.items
        ]
        warning = "; computed against real records: publishing them is a release of its own"
        title = repr(self)[1:-1] + warning * any(item.confidential for item in self.items)
        return html_table(title, ("metric", "of", "value", "interval", "beside", "better"), rows)

    def __str__(self) -> str:
        return "\n".join(str(item) for item in self.items)

    def named(self, name: str) -> tuple[Finding, ...]:
        """All findings of a name (one a column, or a formula)."""
        return tuple(item for item in self.items if item.name == name)

    def frame(self) -> Any:
        """A tidy polars frame: name, subject, value, low, high, better, one column a reference."""
        import polars as pl

        references = list(dict.fromkeys(k for item in self.items for k, _ in item.null))
        rows = [
            {
                "name": item.name,
                "group": item.group,
                "subject": ", ".join(item.subject),
                "value": item.value,
                "low": item.interval[0] if item.interval else None,
                "high": item.interval[1] if item.interval else None,
                "better": item.better,
                **{f"null_{name}": dict(item.null).get(name) for name in references},
            }
            for item in self.items
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "facts": dict(self.facts),
            "confidential": any(item.confidential for item in self.items),
            "findings": [item.to_json() for item in self.items],
        }

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file for internal use, and its JSON twin beside it.

        Raises:
            UsageError: these findings came without a reporter.
            OutputNotWritten: the file exists or cannot be written.
        """
        if self.reporter is None:
            raise UsageError(
                "REPORTER",
                "These findings cannot write a report.",
                "Findings of gibbous.evaluate can.",
                "Call gibbous.evaluate, or use to_json().",
            )
        return self.reporter(self, Path(path))


def read_findings(path: str | Path) -> Findings:
    """Read findings.json, or the JSON twin of an internal report.
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
