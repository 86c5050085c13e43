"""Numbers and texts for people: digits that mean something, texts cut and escaped for a drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

MINUS = "−"


def short(value: object) -> str:
    """A number for a table.

    Example:
        >>> short(0.0123456), short(20190), short(1e-6), short(float("nan"))
        ('0.0123', '20,190', '1e-06', 'not defined')
    """
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = _float(value)
    return text.replace("-", MINUS, 1) if value < 0 else text


def percent(share: float | None, toward: Literal["near", "up", "down"] = "near") -> str:
    """A share in [0, 1] as a percentage; near 100 % as precise as near 0 %.

    Args:
        toward: where digits are cut: a bound from above is rounded up, one from below down.

    Example:
        >>> percent(0.3712), percent(0.00004), percent(0.99966), percent(0.37121, "up")
        ('37.1 %', '0.004 %', '99.97 %', '37.2 %')
    """
    if share is None or math.isnan(share):
        return "not defined"
    value = 100 * share
    gap = min(value, 100 - value)
    if gap < 1e-12:
        return f"{round(value)} %"
    if value < 50:
        places = max(0, 2 - math.floor(math.log10(value)))
    else:
        places = max(1, 1 - math.floor(math.log10(gap)))
    scaled = value * 10.0**places
    cut = round(scaled)  # what is whole but for rounding errors stays what it is
    if abs(scaled - cut) > 1e-7 and toward != "near":
        cut = math.ceil(scaled) if toward == "up" else math.floor(scaled)
    number = f"{cut / 10.0**places:.{places}f}"
    return f"{number.rstrip('0').rstrip('.') if places else number} %"


def finite(value: object) -> bool:
    """Whether this is a number, neither NaN nor infinite."""
    return isinstance(value, int | float) and abs(float(value)) < float("inf")


def clipped(text: object, limit: int = 28) -> str:
    """A text for an axis: one line, at most `limit` characters, the rest marked by an ellipsis."""
    clean = "".join(c if c.isprintable() else " " for c in str(text))
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


def listed(texts: Sequence[str]) -> str:
    """Texts as a list in Vega's expression language: every character but letters and digits escaped."""
    return "[" + ",".join(f"'{''.join(_escaped(c) for c in text)}'" for text in texts) + "]"


def _float(value: float) -> str:
    size = abs(value)
    if value == 0:
        return "0"
    if size < 1e-4:
        return f"{value:.2g}"
    if size >= 1e7:
        return f"{value:.3g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def _escaped(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _-.,()[]"):
        return character
    units = character.encode("utf-16-be", "replace")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def apart(ends: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Places of labels at the ends of lines, moved apart where lines end close together."""
    top = max([float(e["value"]) for e in ends], default=0.0)
    gap, below = 0.075 * (top or 1.0), -1.0
    out = []
    for end in sorted(ends, key=lambda e: float(e["value"])):
        place = max(float(end["value"]), below + gap)
        below = place
        out.append({**end, "place": place})
    return out
