"""Findings: all metrics of one evaluation, as a sequence, a frame, JSON or a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from gibbous.core.errors import UsageError
from gibbous.core.finding import Finding

Reporter = Callable[["Findings", Path], Path]
"""reporter(findings, path) -> the HTML file that was written."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Findings(Sequence[Finding]):
    """All findings of one evaluation, in order.

    Attributes:
        items: the findings.
        facts: what was compared: rows, columns, sets, seed, versions, in plain JSON values.
        reporter: writes the report; given by whoever stands above.
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
        """By position, or the first of a name.

        Raises:
            UsageError: no finding has that name.
        """
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
