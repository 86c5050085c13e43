"""Small tables for notebooks: every text in them is shown as text, whatever it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST = 60  # rows of one table


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A titled table as HTML, at most 60 rows of it; a cell that is None is empty."""
    cells = [list(row) for row in rows]
    more = f"<p>... and {len(cells) - MOST} more</p>" if len(cells) > MOST else ""
    head = "".join(f'<th style="text-align:left">{_text(word)}</th>' for word in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in cells[:MOST])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{_text(title)}</p>{table}{more}</div>"


def _cell(value: object) -> str:
    return f'<td style="text-align:left">{_text("" if value is None else str(value))}</td>'


def _text(words: str) -> str:
    """Text that stays text, and whose direction ends with it."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return f"<bdi>{escape(plain)}</bdi>"
