"""DDI-Codebook XML -> what it states: labels, categories, ranges, units of measurement."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from gibbous.core.schema import Level
from gibbous.read.metadata.codebook import Codebook, Variable, levels_of_texts, unsound

_ALLOWED = "It is a DDI-Codebook file: a codeBook with dataDscr and one var a column"
_COUNTED = ("catStat", "sumStat")


def of_ddi(text: str) -> Codebook:
    """Variables of a DDI-Codebook, 1.2 to 2.6.

    Categories with labels are declared. A file with statistics was written by a tool that looked at
    the data: its ranges, and categories without labels, are inferred. The privacy unit is not stated.

    Args:
        text: XML. A document type or entities are refused: they can make small files huge.
    Raises:
        UsageError: it is not DDI, or not XML.
    Source:
        ddialliance.org, DDI-Codebook 2.5: var, labl, valrng, catgry, catValu, varFormat.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise unsound("has a document type or entities", "XML file", "XML without <!DOCTYPE>")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - no entities, see above
    except (ElementTree.ParseError, ValueError):
        raise unsound("is not XML", "file", _ALLOWED) from None
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
    variables = tuple(_variable(node) for node in _outer(root) if node.get("name"))
    if not variables:
        raise unsound("describes no variable", "XML file", _ALLOWED)
    title = root.find(".//stdyDscr/citation/titlStmt/titl")
    return Codebook(variables, None, _words(title), _words(root.find(".//stdyInfo/abstract")))


def _outer(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Every var in order, but none inside of another: they could be read again and again."""
    left = [root]
    while left:
        node = left.pop()
        if node.tag == "var":
            yield node
        else:
            left.extend(reversed(node))


def _variable(node: ElementTree.Element) -> Variable:
    name = str(node.get("name")).strip()
    texts = (
        ("label", _words(node.find("labl"))),
        ("description", _words(node.find("txt")) or _words(node.find("qstn/qstnLit"))),
        ("measured_in", node.get("measUnit")),
        ("note", _words(node.find("notes"))),
    )
    counted = any(node.find(f".//{tag}") is not None for tag in _COUNTED)
    levels, labels, bare = _categories(node)
    form = node.find("varFormat")
    whole = node.get("dcml") == "0"
    missing = any(c.get("missing") == "Y" for c in node.iter("catgry")) or None
    if levels and node.get("intrvl") != "contin":
        guessed = ("levels",) if counted and bare else ()
        ordered = node.get("nature") == "ordinal"
        return Variable(
            name, levels, labels, ordered, missing=missing, texts=texts, inferred=guessed
        )
    low, high = _range(node)
    text = form is not None and form.get("type") == "character"
    if text or low is None or high is None:
        return Variable(name, missing=missing, texts=texts, kind="" if text else "numeric")
    whole = whole and low == int(low) and high == int(high)
    ends = (int(low), int(high)) if whole else (low, high)
    inferred = ("bounds", "bins") if counted else ()
    return Variable(
        name, lower=ends[0], upper=ends[1], integer=whole, texts=texts, inferred=inferred
    )


def _categories(
    node: ElementTree.Element,
) -> tuple[tuple[Level, ...], tuple[tuple[Level, str], ...], bool]:
    """Levels, their labels, and whether one of them has none."""
    found: dict[str, str] = {}
    for category in node.findall("catgry"):
        value = _words(category.find("catValu"))
        if value and category.get("missing") != "Y":
            found[value] = _words(category.find("labl"))
    levels = levels_of_texts(list(found))
    labels = tuple((a, b) for a, b in zip(levels, found.values(), strict=True) if b)
    return tuple(levels), labels, len(labels) < len(levels)


def _range(node: ElementTree.Element) -> tuple[float | None, float | None]:
    stated = node.find("valrng/range")
    if stated is None:
        return None, None
    return _number(stated.get("min")), _number(stated.get("max"))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number - number == 0 else None


def _words(node: ElementTree.Element | None) -> str:
    return "" if node is None else " ".join("".join(node.itertext()).split())
