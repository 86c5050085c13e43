"""An Altair chart in, a clean SVG text out: drawn without a browser, bounded, no script, no address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from gibbous.core.extras import need

if TYPE_CHECKING:
    from altair import LayerChart

VL_VERSION: Final = "6.1"
SVG: Final = "http://www.w3.org/2000/svg"
# What a drawing may consist of; whatever else comes out of the renderer is left out.
_ELEMENTS: Final = frozenset(
    {"svg", "g", "path", "rect", "circle", "line", "polygon", "polyline", "text", "tspan"}
    | {"defs", "clipPath", "linearGradient", "stop"}
)
_GEOMETRY: Final = frozenset(
    {"d", "transform", "points", "cx", "cy", "x", "y", "x1", "x2", "y1", "y2", "r"}
    | {"width", "height"}
)
_PAINT: Final = frozenset(
    {"fill", "fill-opacity", "stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"}
    | {"stroke-miterlimit", "stroke-opacity", "stroke-width", "opacity", "stop-color", "clip-path"}
    | {"font-family", "font-size", "font-style", "font-weight", "text-anchor"}
)
_ATTRIBUTES: Final = _GEOMETRY | _PAINT | {
    "class", "dx", "dy", "gradientUnits", "id", "offset", "rx", "ry", "viewBox",
}  # fmt: skip
_DECIMAL: Final = re.compile(r"-?\d*\.\d{2,}(e-?\d+)?")
_URL: Final = re.compile(r"url\([^)]*?#([\w-]+)['\"]?\)")
_CLASS: Final = re.compile(r"mark-|role-")


@contextmanager
def unchecked() -> Iterator[None]:
    """Within it, Altair does not hold each part of a chart against its schema: the tests do.

    Raises:
        EngineFailure: the extra "report" is not installed.
    """
    with need("altair.utils.schemapi", "report").debug_mode(False):  # noqa: FBT003 - Altair's
        yield


def svg(chart: LayerChart, name: str) -> str:
    """Draw a chart.

    Args:
        name: of letters, digits and hyphens, unlike that of any other drawing on the page; it makes
            the ids inside the drawing unlike those of others.
    Returns:
        One <svg> element, hidden from screen readers: the figure around it says what it shows.
    Raises:
        EngineFailure: the renderer is not installed.
    """
    renderer = need("vl_convert", "report")
    text = renderer.vegalite_to_svg(
        chart.to_dict(validate=False),
        vl_version=VL_VERSION,
        allowed_base_urls=[],
        show_warnings=False,
    )
    return cleaned(text, name)


def cleaned(text: str, name: str) -> str:
    """The same drawing, its ids under a prefix, without anything that is not geometry, color or text."""
    root = ElementTree.fromstring(text)  # noqa: S314 - the renderer made it, in this process
    # The renderer counts its ids on from one drawing to the next: they are numbered anew.
    named = [element.get("id") for element in root.iter()]
    ids = {old: f"{name}-{k}" for k, old in enumerate(dict.fromkeys(i for i in named if i))}
    _strip(root, ids)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    box = root.get("viewBox", "0 0 1 1").split()
    root.set("style", f"max-width:{float(box[2]):g}px")
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _strip(element: ElementTree.Element, ids: dict[str, str]) -> None:
    for key, value in list(element.attrib.items()):
        if key not in _ATTRIBUTES or (key == "class" and _CLASS.search(value)):
            del element.attrib[key]
        elif key == "id":
            element.set(key, ids[value])
        elif "url(" in value:
            element.set(key, _URL.sub(lambda m: f"url(#{ids.get(m[1], 'none')})", value))
        elif key in _GEOMETRY:
            element.set(key, _DECIMAL.sub(lambda m: f"{float(m[0]):.1f}", value))
    for child in list(element):
        tag = child.tag.removeprefix(f"{{{SVG}}}")
        if tag not in _ELEMENTS or _empty(child, tag):
            element.remove(child)
            continue
        _strip(child, ids)
        if tag == "g" and len(child) == 0:
            element.remove(child)


def _empty(element: ElementTree.Element, tag: str) -> bool:
    """Whether it draws nothing: the renderer frames each group with paths without extent."""
    if element.get("display") == "none":
        return True
    return (
        tag == "path"
        and element.get("class") in ("background", "foreground")
        and (element.get("stroke") is None and element.get("fill") is None)
    )
