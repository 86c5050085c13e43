"""What a report is made of: sections of paragraphs, lists, tables and figures, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from gibbous.core.json_values import plain
from gibbous.reporting import svg_drawing
from gibbous.reporting.charts import NARROW, WIDE
from gibbous.reporting.labels import short

if TYPE_CHECKING:
    from altair import LayerChart

SHOWN: Final = 1500  # rows of a table on the page
Cell = str | int | float | bool | None


class Chart(Protocol):
    """Makes a chart for a width in px."""

    def __call__(self, *, width: int) -> LayerChart:
        """Draw nothing yet."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; `strong` is a short start of it in bold."""

    words: str
    strong: str = ""
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Notice:
    """A paragraph that must not be overlooked."""

    words: str
    strong: str = ""
    kind: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True, slots=True)
class Code:
    """Commands to run."""

    lines: tuple[str, ...]
    kind: Literal["code"] = "code"


@dataclass(frozen=True, slots=True)
class Terms:
    """A list of terms, each explained: (term, sentences)."""

    items: tuple[tuple[str, tuple[str, ...]], ...]
    kind: Literal["terms"] = "terms"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; where `folded`, under a heading that opens it: its caption."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False
    kind: Literal["table"] = "table"

    @property
    def right(self) -> tuple[bool, ...]:
        """Columns of numbers, which are aligned at the right."""
        return tuple(
            any(_numeric(row[i]) for row in self.rows)
            and all(_numeric(row[i]) or row[i] is None for row in self.rows)
            for i in range(len(self.head))
        )

    @property
    def shown(self) -> list[list[str]]:
        """Cells as people read them, of the first SHOWN rows."""
        return [
            ["" if value is None else short(value) for value in row] for row in self.rows[:SHOWN]
        ]

    @property
    def cut(self) -> int:
        """Rows that only the JSON twin has."""
        return max(0, len(self.rows) - SHOWN)


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure.

    Attributes:
        wide, narrow: SVG texts for wide and narrow screens; narrow is empty where one serves both.
        note: under the title, small.
    """

    title: str
    wide: str
    narrow: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawings, what they show in words, and their numbers.

    Attributes:
        name: letters, digits and hyphens; unlike that of any other figure of the report.
        caption: what to see in it.
        alt: the text alternative: what is drawn and its main numbers.
        numbers: the table behind them; None where the page has it elsewhere.
        key: (color, shape, words) of marks that the drawings do not name.
        layout: "wide" (one below the other), "grid" (small ones of any height, down the columns) or
            "pair" (small ones of one height, along the rows).
    """

    name: str
    title: str
    caption: str
    alt: str
    panels: tuple[Panel, ...]
    numbers: Grid | None
    key: tuple[tuple[str, str, str], ...] = ()
    layout: Literal["wide", "grid", "pair"] = "wide"
    kind: Literal["figure"] = field(default="figure")


Block = Text | Notice | Bullets | Code | Terms | Grid | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is under it; with `folded`, words that open what is hidden at first."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Attributes:
        headline: the most important sentence.
        facts: (name, value) at the top.
        twin: further values of the JSON twin.
    """

    audience: Literal["public", "internal"]
    title: str
    subtitle: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    twin: Mapping[str, Any] = field(default_factory=dict)
    foot: str = ""


def to_json(content: Section | Block) -> dict[str, Any]:
    """A section, or what is in it, as plain JSON values: everything but the drawings."""
    match content:
        case Section(name, title, blocks, folded):
            head = {"name": name, "title": title} | ({"folded": folded} if folded else {})
            return head | {"blocks": [to_json(block) for block in blocks]}
        case Text(words, strong, kind) | Notice(words, strong, kind):
            return {"kind": kind, "text": f"{strong} {words}".strip()}
        case Bullets(items, kind):
            return {"kind": kind, "items": list(items)}
        case Code(lines, kind):
            return {"kind": kind, "lines": list(lines)}
        case Terms(terms, kind):
            return {"kind": kind, "terms": {term: list(words) for term, words in terms}}
        case Grid(caption, head, rows, _, kind):
            cells = [[plain(value) for value in row] for row in rows]
            return {"kind": kind, "caption": caption, "head": list(head), "rows": cells}
        case Figure():
            return {
                "kind": content.kind,
                "name": content.name,
                "title": content.title,
                "caption": content.caption,
                "alternative": content.alt,
                "panels": [{"title": part.title, "note": part.note} for part in content.panels],
                "key": [words for _, _, words in content.key],
                "numbers": None if content.numbers is None else to_json(content.numbers),
            }


def panel(
    name: str, chart: Chart, *, title: str = "", note: str = "", small: bool = False
) -> Panel:
    """Draw a chart for the page.

    Args:
        name: of letters, digits and hyphens, unlike that of any other panel of the report.
        small: one drawing of the narrow width serves every screen.
    """
    with svg_drawing.unchecked():
        narrow = svg_drawing.svg(chart(width=NARROW), f"{name}-n")
        if small:
            return Panel(title, narrow, note=note)
        return Panel(title, svg_drawing.svg(chart(width=WIDE), f"{name}-w"), narrow, note)


def _numeric(value: Cell) -> bool:
    if isinstance(value, str):
        return value.endswith(" %") and value[:1].isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)
