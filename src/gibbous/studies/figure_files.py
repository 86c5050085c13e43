"""A figure as an SVG file: on white, each mark written once and then used, so that it stays small."""

from __future__ import annotations

import re
from collections import Counter

from gibbous.studies.study_parts import Figure

_MARK = re.compile(r'<path transform="translate\(([^,()]+),([^,()]+)\)" (d="[^"]*"[^<>]*?) ?/>')
_OFTEN = 4  # times that a mark is drawn, from which on a definition is shorter


def file_of(figure: Figure) -> bytes:
    """The drawing for readers with any screen.

    Raises:
        EngineFailure: the extra "report" is not installed.
    """
    from gibbous.reporting.svg_drawing import svg

    text = svg(figure.chart, figure.name).replace('style="', 'style="background:#fff;', 1)
    return f"{compact(text, figure.name)}\n".encode()


def compact(text: str, name: str) -> str:
    """The same drawing with marks that are drawn often defined once.

    Args:
        text: an SVG document.
        name: prefix of the ids.
    """
    times = Counter(match[3] for match in _MARK.finditer(text))
    marks = [mark for mark, count in times.items() if count >= _OFTEN]
    ids = {mark: f"{name}-m{k}" for k, mark in enumerate(marks)}

    def used(match: re.Match[str]) -> str:
        if match[3] not in ids:
            return match[0]
        return f'<use href="#{ids[match[3]]}" x="{match[1]}" y="{match[2]}"/>'

    written = "".join(f'<path id="{ids[mark]}" {mark}/>' for mark in marks)
    start = text.index(">") + 1
    return f"{text[:start]}<defs>{written}</defs>{_MARK.sub(used, text[start:])}"
