"""METHODS.md as a page."""

from __future__ import annotations

STYLE = (
    "body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2rem .6rem;text-align:left}"
)


def page(text: str) -> str:
    """A whole page of HTML; tags, pictures and links that the text holds are text."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    body = made.disable(["image", "link", "autolink", "reference"]).render(text)
    head = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>'
    return f"{head}{body}</html>"
