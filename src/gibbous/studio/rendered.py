"""METHODS.md as a page: our own headings, lists, tables, bold words and code; all else is text."""

from __future__ import annotations

import html
import re

STYLE = (
    "body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2rem .6rem;text-align:left}"
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")
_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")


def page(text: str) -> str:
    """A whole page of HTML; whatever the text holds, no tag of it is one."""
    parts: list[str] = []
    lines = [*text.splitlines(), ""]
    kind, open_lines = "", list[str]()
    for line in lines:
        now = _kind(line)
        if open_lines and (now != kind or now in ("h", "")):
            parts.append(_block(kind, open_lines))
            open_lines = []
        kind = now
        if now:
            open_lines.append(line)
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>{body}</html>'
    )


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if re.match(r"#{1,6} ", line):
        return "h"
    return {"- ": "li", "* ": "li", "|": "tr"}.get(line[:2], "tr" if line.startswith("|") else "p")


def _block(kind: str, lines: list[str]) -> str:
    if kind == "h":
        marks, _, words = lines[0].partition(" ")
        return f"<h{len(marks)}>{_words(words)}</h{len(marks)}>"
    if kind == "li":
        return f"<ul>{''.join(f'<li>{_words(line[2:])}</li>' for line in lines)}</ul>"
    if kind == "p":
        return f"<p>{'<br>'.join(map(_words, lines))}</p>"
    rows = [re.split(r"(?<!\\)\|", r.strip().strip("|")) for r in lines if not _RULE.fullmatch(r)]
    cells = ("".join(f"<td>{_words(cell.strip())}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _words(text: str) -> str:
    """Bold words and code of one line; a sign behind a backslash is that sign."""
    kept: list[str] = []

    def keep(found: str) -> str:
        kept.append(found)
        return f"\0{len(kept) - 1}\0"

    text = text.replace("\0", "")
    text = re.sub(r"`([^`]+)`", lambda m: keep(f"<code>{html.escape(m[1])}</code>"), text)
    text = _ESCAPED.sub(lambda m: keep(html.escape(m[1])), text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)
